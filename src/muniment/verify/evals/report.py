"""One run of an eval: what came of every question with every arm, the means, and how arms differ. Pure.

The same questions on the same memory give the same bytes; how long each arm took stands apart, under `times`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, median
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_bytes
from muniment.core.stats import PAIRS_MIN, paired_bounds
from muniment.verify.evals.arms import Arm
from muniment.verify.evals.measures import MEASURES, Given, Miss
from muniment.verify.evals.questions import EvalQuestion
from muniment.verify.junit import JUnitCase, to_junit

__all__ = ["FORMAT", "ArmSummary", "Asked", "Difference", "EvalReport", "Mean", "Scored"]

FORMAT = 1
"""Which shape the report's JSON has."""
_DIGITS = 4


class Scored(NamedTuple):
    """What one arm gave for one question, measured."""

    given: Given
    measures: Mapping[str, float]
    passed: bool | None
    misses: tuple[Miss, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, of whose memory and when it was asked, and what came of it; or why it could not be."""

    question: EvalQuestion
    user_id: str
    asked_at: str
    broken: tuple[str, ...] = ()
    """What it names and memory does not hold: it is not measured, and never passes."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """What the events say that it names by their ids, for people."""
    by_arm: Mapping[str, Scored] = field(default_factory=dict)


class Mean(NamedTuple):
    """The mean of a measure over the questions that it applies to."""

    mean: float
    questions: int


class ArmSummary(NamedTuple):
    """What an arm came to."""

    arm: Arm
    means: Mapping[str, Mean]
    passed: int
    judged: int
    tokens_mean: float
    tokens_max: int
    median_ms: float


class Difference(NamedTuple):
    """How much more an arm has of a measure than the first one, on the questions of both, and between which bounds."""

    arm: str
    measure: str
    difference: float
    lower: float
    upper: float
    questions: int

    @property
    def is_sure(self) -> bool:
        """Do enough questions lie on one side of nought?"""
        return self.questions >= PAIRS_MIN and (self.lower > 0 or self.upper < 0)


@dataclass(frozen=True)
class EvalReport:
    """The results of an eval, in the order of its questions; the first arm is the one the others are compared with."""

    name: str
    arms: tuple[Arm, ...]
    asked: tuple[Asked, ...]
    counter: str
    """What counted the tokens."""
    model: str | None = None

    @property
    def main(self) -> str:
        return self.arms[0].name

    @cached_property
    def summaries(self) -> dict[str, ArmSummary]:
        """By the name of the arm."""
        return {arm.name: self._summary(arm) for arm in self.arms}

    @property
    def broken(self) -> tuple[Asked, ...]:
        return tuple(each for each in self.asked if each.broken)

    def measures(self) -> tuple[str, ...]:
        """Those that apply to some question, in their order."""
        used = {name for summary in self.summaries.values() for name in summary.means}
        return tuple(name for name in MEASURES if name in used)

    def scored(self, arm: str) -> Iterator[tuple[Asked, Scored]]:
        """What came of every question that could be asked."""
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
        """Every other arm against the first, measure by measure."""
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
    """Without what was said: the JSON is kept beside code, the page is not."""
    return {name: value for name, value in miss._asdict().items() if name != "text" and value not in ("", None)}


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, _DIGITS) if isinstance(value, float) else value for name, value in values.items()}
