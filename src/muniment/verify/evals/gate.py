"""Is an eval good enough? Shares that must be reached, and a run before that it must be no worse than. Pure.

Against the run before, only questions that are the same in both count, with arms of the same name. What follows from
the store alone is the same every time, so that a mean that falls at all is worse; what a model said is worse where the
whole paired interval lies below nought, on ten questions or more.
The reference may fall as it likes: it is there to be read against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, NamedTuple

from pydantic import Field

from muniment.core.record import Items, JsonObject, OpenRecord
from muniment.core.stats import PAIRS_MIN, paired_bounds
from muniment.verify.evals.measures import MEASURES, MODEL_MEASURES
from muniment.verify.evals.report import FORMAT, EvalReport, Scored
from muniment.verify.junit import JUnitCase

__all__ = [
    "Baseline",
    "BaselineDiff",
    "Flip",
    "Least",
    "Moved",
    "check_least",
    "compare",
    "junit_cases",
    "read_baseline",
]

_SLACK = 1e-9
_ROUNDED = 5e-5
"""A run that was kept has four digits."""


# -- shares that must be reached ----------------------------------------------------------------------


class Least(NamedTuple):
    """A measure that must be reached, by the first arm unless another is named."""

    measure: str
    share: float
    arm: str | None = None

    def words(self, main: str) -> str:
        return f"{self.measure} of {self.arm or main} at least {self.share:g}"


def check_least(report: EvalReport, wanted: Iterable[Least]) -> list[tuple[Least, str | None]]:
    """Each with what is wrong, or None. What no arm or no question measures is not reached."""
    return [(least, _shortfall(report, least)) for least in wanted]


def _shortfall(report: EvalReport, least: Least) -> str | None:
    name = least.arm or report.main
    summary = report.summaries.get(name)
    if summary is None:
        return f"there is no arm {name!r:.80}: arms are {', '.join(report.summaries)}"
    if least.measure not in summary.means:
        return f"no question measures {least.measure} of {name}: measured are {', '.join(summary.means) or 'none'}"
    mean = summary.means[least.measure].mean
    return None if mean >= least.share - _SLACK else f"{least.measure} of {name} is {mean:.3f}, below {least.share:g}"


# -- a run before -------------------------------------------------------------------------------------


class KeptAnswer(OpenRecord):
    """What an arm came to with one question."""

    measures: dict[str, float]
    passed: bool | None


class KeptQuestion(OpenRecord):
    """A question of the run before."""

    id: str
    question: str
    user_id: str
    expected: JsonObject
    given: dict[str, KeptAnswer] = Field(default_factory=dict)


class Baseline(OpenRecord):
    """What is read of the JSON of a run before."""

    eval: Literal[1]
    questions: Items[KeptQuestion]


def read_baseline(data: Any, where: str) -> Baseline:
    return Baseline.of_given(
        data, f"{where} is not the report of an eval of format {FORMAT}", hint="what --save wrote, or --json printed"
    )


class Flip(NamedTuple):
    """A question that passes and did not, or the other way round."""

    arm: str
    question_id: str
    question: str
    passed: bool


class Moved(NamedTuple):
    """A mean that is not what it was."""

    arm: str
    measure: str
    before: float
    after: float
    questions: int
    is_worse: bool


@dataclass(frozen=True, slots=True)
class BaselineDiff:
    """What changed since the run before."""

    moved: tuple[Moved, ...]
    flips: tuple[Flip, ...]
    same: int
    """Questions that are the same in both."""
    added: tuple[str, ...]
    changed: tuple[str, ...]
    """Questions by the same id that ask or expect something else."""
    gone: tuple[str, ...]

    @property
    def worse(self) -> tuple[Moved, ...]:
        return tuple(each for each in self.moved if each.is_worse)


def compare(report: EvalReport, before: Baseline) -> BaselineDiff:
    """This run against the one before."""
    kept = {question.id: question for question in before.questions}
    asked = {each.question.name: each for each in report.asked}
    same = {
        name
        for name, each in asked.items()
        if name in kept
        and (kept[name].question, kept[name].user_id, kept[name].expected)
        == (each.question.question, each.user_id, each.question.expected)
    }
    moved: list[Moved] = []
    flips: list[Flip] = []
    for arm, summary in report.summaries.items():
        pairs = [
            (each.question.name, each.question.question, kept[each.question.name].given[arm], scored)
            for each, scored in report.scored(arm)
            if each.question.name in same and arm in kept[each.question.name].given
        ]
        moved += _moved(arm, [(old, new) for _, _, old, new in pairs], can_be_worse=summary.arm.kind != "bm25")
        flips += [
            Flip(arm, name, text, bool(new.passed))
            for name, text, old, new in pairs
            if None not in (old.passed, new.passed) and old.passed is not new.passed
        ]
    return BaselineDiff(
        tuple(moved),
        tuple(flips),
        len(same),
        tuple(name for name in asked if name not in kept),
        tuple(name for name in asked if name in kept and name not in same),
        tuple(name for name in kept if name not in asked),
    )


def _moved(arm: str, pairs: list[tuple[KeptAnswer, Scored]], *, can_be_worse: bool) -> Iterator[Moved]:
    for name in MEASURES:
        values = [
            (old.measures[name], new.measures[name])
            for old, new in pairs
            if name in old.measures and name in new.measures
        ]
        gaps = [after - before for before, after in values]
        if not gaps or all(abs(gap) <= _ROUNDED for gap in gaps):
            continue
        before, after = fmean([pair[0] for pair in values]), fmean([pair[1] for pair in values])
        fell = after < before - _ROUNDED
        is_sure = name not in MODEL_MEASURES or (len(gaps) >= PAIRS_MIN and paired_bounds(gaps).upper < 0)
        yield Moved(arm, name, before, after, len(gaps), can_be_worse and fell and is_sure)


# -- for CI -------------------------------------------------------------------------------------------


def junit_cases(
    report: EvalReport,
    least: Iterable[tuple[Least, str | None]],
    compared: BaselineDiff | None,
    words: Mapping[str, str],
) -> Iterator[JUnitCase]:
    """A case for each question with the first arm, each share that must be reached, and each measure of the run before.

    `words` says by question what was missed. Where nothing else decides, a missed question fails; where shares or a run
    before do, a question fails that passed then, and others that were missed are told as skipped.
    """
    demands = list(least)
    lost = (
        {flip.question_id for flip in compared.flips if flip.arm == report.main and not flip.passed}
        if compared
        else set()
    )
    is_gated = bool(demands) or compared is not None
    for each in report.asked:
        name = each.question.name
        if each.broken:
            yield JUnitCase("question", name, "error", "; ".join(each.broken))
            continue
        passed = each.by_arm[report.main].passed
        if passed is None or (not passed and is_gated and name not in lost):
            yield JUnitCase(
                "question", name, "skipped", words.get(name, "") or "nothing that this arm can be judged by"
            )
        else:
            yield JUnitCase("question", name, "passed" if passed else "failed", words.get(name, ""))
    for demand, problem in demands:
        yield JUnitCase("least", demand.words(report.main), "failed" if problem else "passed", problem or "")
    for moved in compared.moved if compared else ():
        said = f"{moved.before:.3f} → {moved.after:.3f} on {moved.questions} questions"
        yield JUnitCase("baseline", f"{moved.measure} of {moved.arm}", "failed" if moved.is_worse else "passed", said)
