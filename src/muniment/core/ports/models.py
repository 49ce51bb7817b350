"""Ports of the runtime: clock, ids, token counters, embedders and graders, as protocols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Clock = Callable[[], datetime]
"""Returns the current time as an aware datetime."""


class Ids(Protocol):
    """Mints unique ids and unguessable salts."""

    def new(self, prefix: str) -> str:
        """Return a fresh id `prefix_…`, unique everywhere, sorting roughly by time of minting."""
        ...

    def salts(self, count: int) -> list[bytes]:
        """Return `count` unguessable salts of `core.canonical.SALT_BYTES` bytes."""
        ...


class TokenCounter(Protocol):
    """Counts as a model would, or over-counts a little: a packet within budget here is within budget there."""

    @property
    def name(self) -> str:
        """Name in budget reports: the vocabulary (`o200k_base`) or the estimate (`estimate_v1`)."""
        ...

    @property
    def is_exact(self) -> bool:
        """True where the model's own vocabulary counted, False for an estimate with its margin."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of one text, special tokens read as plain text."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """`count` of each, in order."""
        ...


class WeighingCounter(TokenCounter, Protocol):
    """A counter whose count follows from a weight, where the weights of lines add up as in `adds_lines`."""

    def weigh_many(self, texts: Sequence[str]) -> list[int]:
        """Return the weight of each, in order."""
        ...

    def tokens_of_weight(self, weight: int) -> int:
        """Return the tokens of a text of this weight; 0 for none."""
        ...


def adds_lines(counter: TokenCounter) -> bool:
    """Return whether the counter declares that the tokens of lines, with their line breaks, add up to those of the
    page.

    It may where no line starts with a space, a line break or a slash. The declaration includes that a number of up to
    three digits in brackets counts the same whatever the digits.
    """
    return getattr(counter, "adds_lines", False) is True


def weighing(counter: TokenCounter) -> WeighingCounter | None:
    """Return the counter if it declares that it weighs lines."""
    return cast("WeighingCounter", counter) if getattr(counter, "weighs_lines", False) is True else None


class Embedder(Protocol):
    """Turns text into unit vectors; the same text gives the same bits, whatever else is in its batch."""

    @property
    def identity(self) -> str:
        """Name, version, dimension and digest of the weights: two embedders of one identity agree, others never mix."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each query text; a blank text gives a row of zeros."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each stored text; a blank text gives a row of zeros."""
        ...


class Grade(NamedTuple):
    """A grader's score from 0 to 1, with the prompt and answer."""

    score: float
    answer: str = ""
    """The grader's own words."""
    prompt: str = ""
    """The whole prompt."""
    cost_usd: float | None = None


class Grader(Protocol):
    """An NLI model, or an LLM asked to be one."""

    @property
    def name(self) -> str:
        """Name shown with its grades."""
        ...

    def grade(self, claim: str, evidence: Sequence[str]) -> float | Grade:
        """Return a score from 0, the evidence contradicts the claim, to 1, it entails it; 0.5 if undecided."""
        ...


class RubricGrader(Grader, Protocol):
    """A grader that also follows rubrics in words."""

    def grade_rubric(self, rubric: str, answer: str, task: str | None) -> float | Grade:
        """Return a score from 0, the answer misses the rubric entirely, to 1, it meets it fully."""
        ...


class Judgement(NamedTuple):
    """One grade as stored: its unit, grader and prompt; no score where the grader failed."""

    of: str
    """The unit, or the rubric."""
    grader: str
    score: float | None
    prompt_hash: str
    answer: str = ""
    why: str = ""
    """Reason for a missing score."""

    def to_dict(self) -> dict[str, Any]:
        """Return the stored form, without unknown fields."""
        return {name: value for name, value in self._asdict().items() if value not in (None, "")}


class RubricJudge(Protocol):
    """Grades for checks: any failure of a grader becomes a judgement too."""

    def judge_rubric(self, rubric: str, answer: str, task: str | None) -> Judgement: ...
