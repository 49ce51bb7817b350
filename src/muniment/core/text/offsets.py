"""Places in a text told otherwise: as offsets in its UTF-8 bytes, as numbers of lines."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

__all__ = ["ByteOffsets", "lines_at"]


class ByteOffsets:
    """`offsets[index]` is where the character begins; the text's length is the end of the last."""

    def __init__(self, text: str) -> None:
        self._offsets = None if text.isascii() else list(accumulate(map(_width, text), initial=0))

    def __getitem__(self, index: int) -> int:
        return index if self._offsets is None else self._offsets[index]


def _width(char: str) -> int:
    return len(char.encode())


def lines_at(text: str | bytes, places: Iterable[int]) -> list[int]:
    """The line of each place, from 1 on, in one walk; the places are given in their order."""
    lines: list[int] = []
    line, at = 1, 0
    for place in places:
        line += text.count("\n", at, place) if isinstance(text, str) else text.count(b"\n", at, place)
        at = place
        lines.append(line)
    return lines
