"""Logs and tasks as the flow map reads them; worlds whose rates are known are those of the benchmark."""

from __future__ import annotations

import random
from collections.abc import Sequence

from muniment.rules.flow_map import FlowRow, FlowTask, Rung, Tried, stage_of

NOW = "2026-03-01T00:00:00.000000Z"
EASY, HARD = "I1|math|clarity_high", "I3|code|clarity_low"
LADDER = (Rung("main", None, 1), Rung("kroll", "probe", 2), Rung("kroll", "full", 3), Rung("synth", "full", 1))
"""What mode `auto` plans."""


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


def levels_of(rungs: Sequence[Rung]) -> list[Rung]:
    """The rungs attempt by attempt."""
    return [rung._replace(k=1) for rung in rungs for _ in range(rung.k)]


def task_rows(
    number: int, results: Sequence[bool | None], rungs: Sequence[Rung] = LADDER, *, cost: float = 100.0, **more: object
) -> list[FlowRow]:
    """The logs of one task, tried as far as there are results."""
    made = [
        Tried(level.mode, level.tier, passed, cost) for level, passed in zip(levels_of(rungs), results, strict=False)
    ]
    rows = [
        row(
            1_000 * number + at, passed=each.passed, mode=each.mode, tier=each.tier, cost=cost,
            is_first=at == 0, **more,
        )  # type: ignore[arg-type]
        for at, each in enumerate(made)
    ]  # fmt: skip
    return [rows[0]._replace(task=FlowTask(tuple(rungs), tuple(made))), *rows[1:]]


def until_passed(made: random.Random, rate: float, most: int = 6) -> list[bool]:
    """Attempts that pass by chance, made until one does."""
    results: list[bool] = []
    while len(results) < most and not any(results):
        results.append(made.random() < rate)
    return results
