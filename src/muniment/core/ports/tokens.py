"""What counts the tokens of a text against a budget, and says whether the count is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

__all__ = ["TokenCounter", "WeighingCounter", "adds_lines", "weighing"]


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
