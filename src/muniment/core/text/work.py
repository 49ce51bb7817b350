"""How much of a text is analysed: a budget of work, told by the text alone, so that it is the same everywhere.

Every reader of a text is linear in it, but some read a sentence as often as they have patterns for one. So work is
bounded by the size of the text and by the pieces that it falls into, never by a clock.
"""

from __future__ import annotations

import re

__all__ = ["analysed_chars"]

_PIECE_END = re.compile(r"[.!?;。！？；\n]++")
"""Where a sentence, a clause or a line ends."""


def analysed_chars(text: str, chars_max: int, pieces_max: int) -> int:
    """How many characters of a text are analysed: all of a usual one."""
    reach = min(len(text), chars_max)
    if reach <= pieces_max:  # a piece has a character at least
        return reach
    for number, end in enumerate(_PIECE_END.finditer(text, 0, reach), 1):
        if number == pieces_max:
            return end.end()
    return reach
