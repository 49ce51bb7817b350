"""What the runtime asks of the outside world: a clock, ids, token counters, embedders and graders, as protocols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Clock = Callable[[], datetime]
"""Returns the present as an aware datetime."""


class Ids(Protocol):
    """Mints what must be unique or unguessable."""

    def new(self, prefix: str) -> str:
        """A fresh id `prefix_…`, unique everywhere, sorting roughly by time of minting."""
        ...

    def salts(self, count: int) -> list[bytes]:
        """`count` salts of `core.canonical.SALT_BYTES` bytes that nobody can guess."""
        ...


class TokenCounter(Protocol):
    """Counts as a model would, or over-counts a little: a packet within budget here is within budget there."""

    @property
    def name(self) -> str:
        """What a budget report shows: the vocabulary (`o200k_base`) or the estimate (`estimate_v1`)."""
        ...

    @property
    def is_exact(self) -> bool:
        """True where the model's own vocabulary counted, False for an estimate with its margin."""
        ...

    def count(self, text: str) -> int:
        """Tokens of one text, special tokens read as plain text."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """`count` of each, in order."""
        ...


class WeighingCounter(TokenCounter, Protocol):
    """One whose count follows from a weight, where the weights of lines add up as `adds_lines` says of tokens."""

    def weigh_many(self, texts: Sequence[str]) -> list[int]:
        """The weight of each, in order."""
        ...

    def tokens_of_weight(self, weight: int) -> int:
        """The tokens of a text that weighs so much; 0 for none."""
        ...


def adds_lines(counter: TokenCounter) -> bool:
    """Does it say of itself that the tokens of lines, each with its line break, add up to those of the page?

    It may where the first sign of each line is neither a space, a line break nor a slash. That a number of up to three
    digits in brackets counts for the same whatever the digits is part of it.
    """
    return getattr(counter, "adds_lines", False) is True


def weighing(counter: TokenCounter) -> WeighingCounter | None:
    """The counter, where it says of itself that it weighs lines."""
    return cast("WeighingCounter", counter) if getattr(counter, "weighs_lines", False) is True else None


class Embedder(Protocol):
    """Text in, unit vectors out; the same text gives the same bits, whatever is embedded with it."""

    @property
    def identity(self) -> str:
        """Name, version, dimension and digest of the weights: two embedders of one identity agree, others never mix."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row for each text that is searched for; a blank text gives a row of zeros."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row for each text that is found, likewise."""
        ...


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
