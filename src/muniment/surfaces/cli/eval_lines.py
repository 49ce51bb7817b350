"""An eval in words for a terminal: a table of the arms, how they differ, what was missed and why, what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from muniment.surfaces.cli.explained import REASONS
from muniment.surfaces.cli.terminal import Cell, counted, one_line, strong, style, table

if TYPE_CHECKING:
    from muniment.verify.evals.measures import Miss
    from muniment.verify.evals.report import ArmSummary, Asked, BaselineDiff, Difference, EvalReport

__all__ = ["baseline_lines", "difference_words", "miss_words", "missed_words", "report_lines"]

_SHOWN_MAX = 20
"""Missed questions that are shown; the page and the JSON have all."""
_SAID = 100


# -- words --------------------------------------------------------------------------------------------


def miss_words(miss: Miss) -> str:
    """What is not as expected, and what is known of the cause."""
    said = f"“{one_line(miss.text or miss.said, _SAID)}”{f' ({one_line(miss.said)})' if miss.text else ''}"
    match miss.what:
        case "missing":
            return f"missing {said}{_why_missing(miss)}"
        case "cut":
            return f"missing {said}: its turn is there, these words were cut"
        case "untold":
            return f"no answer stands in it: {said}"
        case "stale":
            return f"outdated, above the evidence: {said}"
        case "told":
            return f"told what must not be: {said}"
        case "not_recognised":
            return "memory holds no answer, and that was not recognised"
        case "refused":
            return "memory was said to hold no answer"


def _why_missing(miss: Miss) -> str:
    reason = f": {REASONS.get(miss.because, miss.because)}" if miss.because else ""
    if miss.rank is None:
        return reason
    where = f"a search has it at {miss.rank}" if miss.rank else "a search does not have it among its first hundred"
    return f"{reason}{'; ' if reason else ': '}{where}"


def missed_words(report: EvalReport) -> dict[str, str]:
    """What each question missed with the first arm, by its id."""
    return {each.question.name: "; ".join(map(miss_words, row.misses)) for each, row in report.scored(report.main)}


def difference_words(each: Difference, main: str) -> str:
    more = "more" if each.difference > 0 else "less"
    interval = f"{each.lower:+.3f} to {each.upper:+.3f} on {counted(each.questions, 'question')}"
    return f"{each.arm} has {abs(each.difference):.3f} {more} {each.measure} than {main} ({interval})"


# -- the report ---------------------------------------------------------------------------------------


def report_lines(report: EvalReport) -> Iterator[str]:
    """The table, what differs surely, and what the first arm missed."""
    yield f"{strong(report.name)}: {counted(len(report.asked), 'question')}{_model(report)}"
    yield ""
    measures = report.measures()
    rows = [_row(summary, measures) for summary in report.summaries.values()]
    yield from table(["arm", "passed", *measures, "tokens", "ms"], rows)
    sure = [each for each in report.differences if each.is_sure]
    if sure:
        yield ""
        yield strong("surely different (95 %, paired)")
        yield from (f"  {difference_words(each, report.main)}" for each in sure)
    yield from _broken_lines(report)
    yield from _missed_lines(report)


def _model(report: EvalReport) -> str:
    return f", answered by {report.model}" if report.model else ""


def _row(summary: ArmSummary, measures: tuple[str, ...]) -> list[Cell]:
    means = [f"{summary.means[name].mean:.3f}" if name in summary.means else "·" for name in measures]
    all_passed = summary.passed == summary.judged
    passed = f"{summary.passed}/{summary.judged}" if summary.judged else "·"
    cells: list[Cell] = [summary.arm.name, (passed, "green" if all_passed else "yellow"), *means]
    return [*cells, f"{summary.tokens_mean:.0f}", f"{summary.median_ms:.1f}"]


def _broken_lines(report: EvalReport) -> Iterator[str]:
    if not report.broken:
        return
    yield ""
    yield strong(f"cannot be asked: {len(report.broken)}")
    for each in report.broken:
        yield f"  {_named(each)}"
        yield from (style(f"      {one_line(said, 200)}", fg="red") for said in each.broken)


def _missed_lines(report: EvalReport) -> Iterator[str]:
    missed = [(each, row) for each, row in report.scored(report.main) if row.passed is False]
    yield ""
    if not missed:
        yield f"nothing was missed with {report.main}"
        return
    yield strong(f"missed with {report.main}: {len(missed)}")
    for each, row in missed[:_SHOWN_MAX]:
        yield f"  {_named(each)}"
        yield from (f"      {miss_words(miss)}" for miss in row.misses)
    if len(missed) > _SHOWN_MAX:
        yield f"  and {len(missed) - _SHOWN_MAX} more; --html and --json have all"


def _named(each: Asked) -> str:
    return f"{each.question.name}  {each.user_id}: {one_line(each.question.question)}"


# -- since the run before -----------------------------------------------------------------------------


def baseline_lines(since: BaselineDiff, name: str) -> Iterator[str]:
    """What changed since the run before."""
    counts: Mapping[str, int] = {"new": len(since.added), "changed": len(since.changed), "gone": len(since.gone)}
    others = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    yield ""
    yield f"{strong(f'since {name}')}: {counted(since.same, 'question')} the same{f', {others}' if others else ''}"
    for moved in since.moved:
        verdict = style("worse", fg="red") if moved.is_worse else "better" if moved.after > moved.before else "less"
        yield f"  {verdict}: {moved.measure} of {moved.arm} {moved.before:.3f} → {moved.after:.3f}"
    for flip in since.flips:
        verdict = "passes, and did not" if flip.passed else style("passed, and does not", fg="red")
        yield f"  {verdict}: {flip.question_id} with {flip.arm}: {one_line(flip.question, 80)}"
    if not since.moved and not since.flips:
        yield "  nothing is otherwise"
