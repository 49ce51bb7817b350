"""A model that says whether evidence entails a claim, or an answer fits a rubric. Off unless a caller gives one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

__all__ = ["Grade", "Grader", "Judgement", "RubricGrader", "RubricJudge"]


class Grade(NamedTuple):
    """What a grader says, and what it was asked: a score from 0 to 1."""

    score: float
    answer: str = ""
    """Its own words."""
    prompt: str = ""
    """What it was shown, whole."""
    cost_usd: float | None = None


class Grader(Protocol):
    """An NLI model, or an LLM asked to be one."""

    @property
    def name(self) -> str:
        """What stands beside its grades."""
        ...

    def grade(self, claim: str, evidence: Sequence[str]) -> float | Grade:
        """From 0, the evidence contradicts the claim, to 1, it entails it; 0.5 where it cannot tell."""
        ...


class RubricGrader(Grader, Protocol):
    """A grader that can be asked in words as well."""

    def grade_rubric(self, rubric: str, answer: str, task: str | None) -> float | Grade:
        """From 0, the answer is nothing like what the rubric asks, to 1, it is just so."""
        ...


class Judgement(NamedTuple):
    """One grade as it is kept: of what, by whom, from which prompt; no score where the grader failed."""

    of: str
    """The unit, or the rubric."""
    grader: str
    score: float | None
    prompt_hash: str
    answer: str = ""
    why: str = ""
    """Why there is no score."""

    def to_dict(self) -> dict[str, Any]:
        """What is kept; what is not known is absent."""
        return {name: value for name, value in self._asdict().items() if value not in (None, "")}


class RubricJudge(Protocol):
    """What a check asks: whatever a grader does wrong, a judgement comes of it."""

    def judge_rubric(self, rubric: str, answer: str, task: str | None) -> Judgement: ...
