"""Where characters begin in UTF-8: from an index of a string to the offset in its bytes."""

from __future__ import annotations

from itertools import accumulate

__all__ = ["ByteOffsets"]


class ByteOffsets:
    """`offsets[index]` is where the character begins; the text's length is the end of the last."""

    def __init__(self, text: str) -> None:
        self._offsets = None if text.isascii() else list(accumulate(map(_width, text), initial=0))

    def __getitem__(self, index: int) -> int:
        return index if self._offsets is None else self._offsets[index]


def _width(char: str) -> int:
    return len(char.encode())
