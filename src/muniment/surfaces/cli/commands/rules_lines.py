"""What the commands of `rules …` share: rules, findings, checks and rates as lines, and which command comes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from muniment.surfaces.cli.terminal import Cell, bar, one_line, spanned, style, table

if TYPE_CHECKING:
    from muniment.core.stats import Tally
    from muniment.handles.rulebook import Rulebook
    from muniment.learning.records import StoredMemory
    from muniment.rules._records import GateReport, LintFinding
    from muniment.rules._statistics import RuleStats
    from muniment.surfaces.cli.calling import Call

__all__ = [
    "CLAIMS",
    "RULE",
    "STAGES",
    "arms_of",
    "check_lines",
    "finding_lines",
    "next_command",
    "place_text",
    "rate_line",
    "rate_text",
    "signed_text",
    "span_of",
    "stage_cell",
    "stage_of",
    "stage_text",
    "tally_with",
    "way_back",
    "whose_book",
]

RULE = {"rule_id": "RULE"}
STAGES = {
    "drafted": "bright_black",
    "gated": "yellow",
    "replayed": "yellow",
    "canary": "cyan",
    "active": "green",
    "retired": "red",
    "pruned": "red",
    "user": "magenta",
}
"""Where a rule stands, and its colour; `user` are those that a person wrote."""
CLAIMS = {"better": "green", "not_harmful": "green", "harmful": "red", "undecided": "yellow"}
_WITH = ("canary", "active")


# -- rules --------------------------------------------------------------------------------------------


def whose_book(book: Rulebook) -> str:
    """`the rulebook of user ana`, `the tenant's rulebook`."""
    kind, _, name = book.name.partition(":")
    return f"the rulebook of {kind} {one_line(name, 60)}" if name else "the tenant's rulebook"


def stage_of(memory: StoredMemory) -> str:
    if memory.status in ("retired", "pruned"):
        return memory.status
    return "user" if memory.layer == "user" else memory.stage or "drafted"


def stage_cell(memory: StoredMemory) -> Cell:
    stage = stage_of(memory)
    return (stage, STAGES[stage])


def stage_text(stage: str) -> str:
    return style(stage, fg=STAGES[stage])


def place_text(record: Mapping[str, Any]) -> str:
    """Where a rule applies, in one line."""
    where = record.get("applicability") or {}
    parts = [
        f"{name} {where[key]}" for name, key in (("domain", "domain_tag"), ("family", "task_family")) if where.get(key)
    ]
    same = {f'{key} == "{where[key]}"' for key in ("domain_tag", "task_family") if where.get(key)}
    parts += [str(each) for each in where.get("predicates") or () if each not in same]
    if where.get("bucket_keys"):
        parts.append(f"buckets {', '.join(where['bucket_keys'])}")
    return "; ".join(parts) or "everywhere"


def signed_text(signed_by: str | None, allowed_by: str | None = None) -> str:
    if signed_by:
        return one_line(signed_by, 40)
    return f"policy {one_line(allowed_by, 30)}" if allowed_by else "–"


def finding_lines(findings: tuple[LintFinding, ...]) -> Iterator[str]:
    rows: list[list[Cell]] = [
        [(each.severity, "red" if each.severity == "error" else "yellow"), each.code, each.path, each.message]
        for each in findings
    ]
    return table(("", "code", "at", "what"), rows)


def check_lines(report: GateReport) -> Iterator[str]:
    """What a gate asked for and found; what fails first."""
    rows: list[list[Cell]] = [
        [("ok", "green") if each.ok else ("no", "red"), each.name, f"{each.found} (needed: {each.needed})"]
        for each in sorted(report.checks, key=lambda each: each.ok)
    ]
    return table(("", "check", "found"), rows)


# -- commands to be typed -----------------------------------------------------------------------------


def way_back(call: Call, to: int) -> str:
    """The command that puts an earlier revision in force again. It names the rulebook, whether or not this one did."""
    kind, _, name = call.handle.name.partition(":")
    named = (f"--{kind}", name) if name else ()
    return call.spelled("rules", "rollback", "--to", str(to), *named, "--signed-by", "NAME")


def next_command(call: Call, memory: StoredMemory) -> str | None:
    """What comes next for a rule, to be typed."""
    steps: dict[str, tuple[str, ...]] = {
        "drafted": ("gate", memory.id, "--agent", "MODULE:FUNCTION"),
        "gated": ("replay", memory.id, "--agent", "MODULE:FUNCTION", "--verifier", "MODULE:FUNCTION"),
        "replayed": ("canary", memory.id),
        "canary": ("report", memory.id),
    }
    words = steps.get(stage_of(memory))
    if words is not None and words[0] == "gate" and not _is_tested(memory):
        words = ("tests", memory.id, "--make")
    return None if words is None else call.spelled("rules", *words)


def _is_tested(memory: StoredMemory) -> bool:
    tests: Any = memory.record.get("tests") or {}
    return bool(tests.get("regression_tests") and tests.get("counterexample_tests"))


# -- rates --------------------------------------------------------------------------------------------


def tally_with(tallies: Mapping[Any, Tally], *, had_it: bool) -> Tally:
    """The tally of the runs that had a rule, or of those that left it out."""
    from muniment.core.stats import Tally

    found = Tally()
    for arm, tally in tallies.items():
        if (arm in _WITH) == had_it:
            found = found.merge(tally)
    return found


def rate_text(tally: Tally) -> str:
    return f"{tally.passes}/{tally.n}" if tally.n else "–"


def span_of(tally: Tally, thin_n: int) -> tuple[str, str]:
    """A pass rate as a picture, and its 95 % bounds; unknown where there are few runs."""
    from muniment.core.stats import wilson_bounds

    if tally.n < thin_n:
        return " " * 20, f"unknown: under {thin_n} runs"
    bounds = wilson_bounds(tally.passes, tally.n)
    return spanned(bounds.lower, tally.passes / tally.n, bounds.upper), f"{bounds.lower:.0%} to {bounds.upper:.0%}"


def rate_line(tally: Tally, thin_n: int) -> str:
    """`21 of 25  ████████▍   84 %, 95 % bounds 65 % to 94 %`."""
    of = f"{tally.passes} of {tally.n}"
    if tally.n < thin_n:
        return f"{of}, which says nothing yet: fewer than {thin_n} runs"
    rate = tally.passes / tally.n
    return f"{of}  {bar(rate)} {rate:.0%}, 95 % bounds {span_of(tally, thin_n)[1]}"


def arms_of(stats: RuleStats) -> Mapping[Any, Tally]:
    return {arm: counts.runs for arm, counts in stats.arms.items()}
