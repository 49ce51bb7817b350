"""A text in one spelling, each sign of it with its place in the text it was made from, so that quotes stay verbatim."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["View", "make_view"]


@dataclass(frozen=True, slots=True)
class View:
    """What rules read in the place of a text."""

    text: str
    """In one spelling: small letters, straight apostrophes, words as they are commonly written."""
    source: str
    """The whole message."""
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    """For each sign of `text`, where what it stands for begins and ends in the message."""

    def verbatim(self, start: int, end: int) -> str:
        """The words of the message for a stretch of this text, as they were written."""
        return self.source[self.starts[start] : self.ends[end - 1]] if start < end else ""

    def is_capital(self, at: int) -> bool:
        """Was the sign at this place written large?"""
        return self.source[self.starts[at]].isupper()


def make_view(source: str, parts: Iterable[tuple[str, int, int]]) -> View:
    """A view out of its parts: how each is spelled, and where it stands in the message."""
    text: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for spelled, start, end in parts:
        text.append(spelled)
        if len(spelled) == end - start:  # sign by sign
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
        else:
            starts.extend([start] * len(spelled))
            ends.extend([end] * len(spelled))
    return View("".join(text), source, tuple(starts), tuple(ends))
