"""The report of one eval run: results of every question with every arm, means, and differences between arms. Pure.

The same questions on the same memory give the same bytes; durations are kept apart, under `times`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

from pydantic import Field

from muniment.core.canonical import canonical_bytes
from muniment.core.policy import Policy
from muniment.core.record import Items, JsonObject, OpenRecord
from muniment.core.stats import PAIRS_MIN, paired_bounds
from muniment.errors import InvalidInput
from muniment.verify.evals.measures import MEASURES, MODEL_MEASURES, Given, Miss
from muniment.verify.evals.questions import EvalQuestion
from muniment.verify.junit import JUnitCase, to_junit

FORMAT = 1
"""Version of the report's JSON format."""
_DIGITS = 4


class Scored(NamedTuple):
    """The measured result of one arm for one question."""

    given: Given
    measures: Mapping[str, float]
    passed: bool | None
    misses: tuple[Miss, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its user, its time and its results, or the reason it could not be asked."""

    question: EvalQuestion
    user_id: str
    asked_at: str
    broken: tuple[str, ...] = ()
    """Evidence that memory does not hold: the question is not measured, and never passes."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts of events given by id, for display."""
    by_arm: Mapping[str, Scored] = field(default_factory=dict)


class Mean(NamedTuple):
    """The mean of a measure over the questions it applies to."""

    mean: float
    questions: int


class ArmSummary(NamedTuple):
    """Totals of one arm."""

    arm: Arm
    means: Mapping[str, Mean]
    passed: int
    judged: int
    tokens_mean: float
    tokens_max: int
    median_ms: float


class Difference(NamedTuple):
    """An arm's lead over the first arm in one measure, with confidence bounds, on the questions of both."""

    arm: str
    measure: str
    difference: float
    lower: float
    upper: float
    questions: int

    @property
    def is_sure(self) -> bool:
        """True if the interval excludes zero."""
        return self.questions >= PAIRS_MIN and (self.lower > 0 or self.upper < 0)


@dataclass(frozen=True)
class EvalReport:
    """Results of an eval, in the order of its questions; other arms are compared with the first."""

    name: str
    arms: tuple[Arm, ...]
    asked: tuple[Asked, ...]
    counter: str
    """Name of the token counter."""
    model: str | None = None

    @property
    def main(self) -> str:
        return self.arms[0].name

    @cached_property
    def summaries(self) -> dict[str, ArmSummary]:
        """Summaries by arm name."""
        return {arm.name: self._summary(arm) for arm in self.arms}

    @property
    def broken(self) -> tuple[Asked, ...]:
        return tuple(each for each in self.asked if each.broken)

    def measures(self) -> tuple[str, ...]:
        """Measures that apply to some question, in order."""
        used = {name for summary in self.summaries.values() for name in summary.means}
        return tuple(name for name in MEASURES if name in used)

    def scored(self, arm: str) -> Iterator[tuple[Asked, Scored]]:
        """Results of every question that could be asked."""
        return ((each, each.by_arm[arm]) for each in self.asked if not each.broken)

    def _summary(self, arm: Arm) -> ArmSummary:
        rows = [scored for _, scored in self.scored(arm.name)]
        values = {name: [row.measures[name] for row in rows if name in row.measures] for name in MEASURES}
        judged = [row.passed for row in rows if row.passed is not None]
        return ArmSummary(
            arm,
            {name: Mean(fmean(found), len(found)) for name, found in values.items() if found},
            sum(judged),
            len(judged),
            fmean([row.given.tokens for row in rows]) if rows else 0.0,
            max((row.given.tokens for row in rows), default=0),
            median([row.given.duration_ms for row in rows]) if rows else 0.0,
        )

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Differences between every other arm and the first, by measure."""
        return tuple(
            found
            for arm in self.arms[1:]
            for name in self.measures()
            if (found := self._difference(arm.name, name)) is not None
        )

    def _difference(self, arm: str, measure: str) -> Difference | None:
        pairs = [
            (scored.measures[measure], asked.by_arm[self.main].measures[measure])
            for asked, scored in self.scored(arm)
            if measure in scored.measures and measure in asked.by_arm[self.main].measures
        ]
        if not pairs:
            return None
        gaps = [mine - other for mine, other in pairs]
        return Difference(arm, measure, fmean(gaps), *paired_bounds(gaps), len(gaps))

    # -- for machines ---------------------------------------------------------------------------------

    def to_dict(self, *, timings: bool = True) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "eval": FORMAT,
            "name": self.name,
            "tokens_counted_by": self.counter,
            "main": self.main,
            "arms": [_arm(summary) for summary in self.summaries.values()],
            "compared_with_main": [_rounded(each._asdict()) for each in self.differences],
            "questions": [_asked(each) for each in self.asked],
        }
        if self.model is not None:
            plain["model"] = self.model
        if timings:
            plain["times"] = {name: round(summary.median_ms, 2) for name, summary in self.summaries.items()}
        return plain

    def to_json(self, *, timings: bool = True) -> bytes:
        """Canonical JSON; without timings, the same results give the same bytes."""
        return canonical_bytes(self.to_dict(timings=timings)) + b"\n"

    def to_junit(self, cases: Sequence[JUnitCase]) -> bytes:
        return to_junit(f"eval {self.name}", cases)


def _arm(summary: ArmSummary) -> dict[str, Any]:
    arm = summary.arm
    told = {"max_tokens": arm.max_tokens, "k": arm.k, "purpose": arm.purpose if arm.kind == "packet" else None}
    if arm.policy is not None:
        told |= {"policy_id": arm.policy.policy_id, "policy_digest": arm.policy.digest}
    return {
        "name": arm.name,
        "kind": arm.kind,
        **{name: value for name, value in told.items() if value is not None},
        "measures": {name: _rounded(mean._asdict()) for name, mean in summary.means.items()},
        "passed": summary.passed,
        "judged": summary.judged,
        "tokens_mean": round(summary.tokens_mean, 1),
        "tokens_max": summary.tokens_max,
    }


def _asked(asked: Asked) -> dict[str, Any]:
    question = asked.question
    shape: dict[str, Any] = {
        "id": question.name,
        "question": question.question,
        "user_id": asked.user_id,
        "asked_at": asked.asked_at,
        "expected": question.expected,
    }
    if asked.broken:
        return shape | {"broken": list(asked.broken)}
    return shape | {"given": {name: _scored(scored) for name, scored in asked.by_arm.items()}}


def _scored(scored: Scored) -> dict[str, Any]:
    given = scored.given
    shape: dict[str, Any] = {
        "measures": _rounded(dict(scored.measures)),
        "passed": scored.passed,
        "tokens": given.tokens,
        "events": list(given.event_ids),
        "misses": [_miss(each) for each in scored.misses],
    }
    return shape if given.answer is None else shape | {"answer": given.answer}


def _miss(miss: Miss) -> dict[str, Any]:
    """A miss without any event text, as the JSON may be committed with code."""
    return {name: value for name, value in miss._asdict().items() if name != "text" and value not in ("", None)}


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, _DIGITS) if isinstance(value, float) else value for name, value in values.items()}


# -- is it good enough ---------------------------------------------------------------------------------

_SLACK = 1e-9
_ROUNDED = 5e-5
"""A stored report has four decimal digits."""


# -- shares that must be reached ----------------------------------------------------------------------


class Least(NamedTuple):
    """A minimum for a measure, of the first arm unless another is named."""

    measure: str
    share: float
    arm: str | None = None

    def words(self, main: str) -> str:
        return f"{self.measure} of {self.arm or main} at least {self.share:g}"


def check_least(report: EvalReport, wanted: Iterable[Least]) -> list[tuple[Least, str | None]]:
    """Pair each minimum with its failure, or None. A measure that applies to no arm or question fails."""
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
    """The stored result of an arm for one question."""

    measures: dict[str, float]
    passed: bool | None


class KeptQuestion(OpenRecord):
    """A question of the previous run."""

    id: str
    question: str
    user_id: str
    expected: JsonObject
    given: dict[str, KeptAnswer] = Field(default_factory=dict)


class Baseline(OpenRecord):
    """The parts of a previous run's JSON that are compared."""

    eval: Literal[1]
    questions: Items[KeptQuestion]


def read_baseline(data: Any, where: str) -> Baseline:
    return Baseline.of_given(
        data, f"{where} is not the report of an eval of format {FORMAT}", hint="what --save wrote, or --json printed"
    )


class Flip(NamedTuple):
    """A question that newly passes or newly fails."""

    arm: str
    question_id: str
    question: str
    passed: bool


class Moved(NamedTuple):
    """A mean that has changed."""

    arm: str
    measure: str
    before: float
    after: float
    questions: int
    is_worse: bool


@dataclass(frozen=True, slots=True)
class BaselineDiff:
    """Changes since the previous run."""

    moved: tuple[Moved, ...]
    flips: tuple[Flip, ...]
    same: int
    """Number of questions unchanged between runs."""
    added: tuple[str, ...]
    changed: tuple[str, ...]
    """Questions with the same id whose wording or expectations changed."""
    gone: tuple[str, ...]

    @property
    def worse(self) -> tuple[Moved, ...]:
        return tuple(each for each in self.moved if each.is_worse)


def compare(report: EvalReport, before: Baseline) -> BaselineDiff:
    """Compare this run with the previous one."""
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
    """Yield a case for each question with the first arm, each minimum, and each measure of the previous run.

    `words` gives the misses by question. By default, a missed question fails; with minimums or a previous run, only a
    question that passed then fails, and other misses are reported as skipped.
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


# -- arms ----------------------------------------------------------------------------------------------

ArmKind = Literal["packet", "search", "bm25"]
BUDGETS = (512, 1024)
"""Default token budgets of packets."""
K = 10
"""Default number of search results."""


class Arm(NamedTuple):
    """A way to answer a question. Packets and BM25 texts have a token budget; searches and BM25 lists have a length."""

    name: str
    kind: ArmKind
    max_tokens: int | None = None
    k: int | None = None
    purpose: str = "responder"
    policy: Policy | None = None
    """Policy of a packet, if not the store's own."""


def make_arms(
    *,
    budgets: Iterable[int] = BUDGETS,
    purposes: Iterable[str] = ("responder",),
    policies: Mapping[str, Policy] | None = None,
    k: int = K,
    reference: bool = True,
) -> tuple[Arm, ...]:
    """Make arms: packets at every budget, for every purpose, under the store's policy and each named one; a search; and
    plain BM25 at the same sizes. The first arm is the baseline of comparisons.
    """
    sizes, wanted = tuple(dict.fromkeys(budgets)), tuple(dict.fromkeys(purposes))
    if not sizes or not wanted:
        raise InvalidInput("an eval has at least one packet", path="$.budgets", hint="such as 512")
    chosen: list[tuple[str, Policy | None]] = [("", None), *(policies or {}).items()]
    arms = [
        Arm(_packet_name(purpose, size, name), "packet", size, purpose=purpose, policy=policy)
        for name, policy in chosen
        for purpose in wanted
        for size in sizes
    ]
    arms.append(Arm(f"search@{k}", "search", k=k))
    if reference:
        arms += [Arm(f"bm25 {size}", "bm25", size) for size in sizes]
        arms.append(Arm(f"bm25@{k}", "bm25", k=k))
    return tuple(arms)


def _packet_name(purpose: str, max_tokens: int, policy: str) -> str:
    kind = "packet" if purpose == "responder" else purpose
    return " ".join(filter(None, (kind, str(max_tokens), policy)))
