"""Logs as the flow map reads them; worlds whose rates are known are those of the benchmark."""

from __future__ import annotations

from muniment.rules.flowmap.rows import FlowRow, stage_of

NOW = "2026-03-01T00:00:00.000000Z"
EASY, HARD = "I1|math|clarity_high", "I3|code|clarity_low"


def row(
    number: int = 0,
    *,
    passed: bool | None = True,
    codes: tuple[str, ...] = (),
    mode: str = "main",
    **more: object,
) -> FlowRow:
    """A log; what it passed decides its verdict, unless that is said."""
    verdict, outcome = {True: ("PASS", "OK"), False: ("FAIL", "FAIL"), None: ("PARTIAL", "UNKNOWN")}[passed]
    made = FlowRow(
        trace_id=f"trc_{number}", stage=stage_of(mode), verdict=verdict, outcome=outcome, passed=passed,
        reason_codes=codes, mode=mode, bucket_key=EASY, at=f"2026-02-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
    )  # fmt: skip
    return made._replace(**more)  # type: ignore[arg-type]


def rows_of(passes: int, fails: int, start: int = 0, **more: object) -> list[FlowRow]:
    made = [row(start + at, passed=True, **more) for at in range(passes)]  # type: ignore[arg-type]
    return made + [row(start + passes + at, passed=False, **more) for at in range(fails)]  # type: ignore[arg-type]
