"""How what was learnt is put into words: short, in one line, and without what may not be quoted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern

__all__ = ["Clean", "Count", "Writer"]

Count = Callable[[str], int]
"""How many tokens a text has."""
Clean = Callable[[str], bool]
"""Whether a text is free of secrets, and of words that try to give orders to whoever reads it."""

_SPACE = lazy_pattern(r"\s+")
_ENDS = "?!…？！。"
"""What ends a sentence without a full stop."""


class Writer(NamedTuple):
    """Writes within a budget."""

    count: Count
    tokens_max: int
    clean: Clean

    def fits(self, text: str) -> bool:
        return self.count(text) <= self.tokens_max

    def quote(self, text: str | None, chars_max: int) -> str:
        """Somebody's words in one line, cut between words; nothing where they may not be quoted."""
        line = _SPACE.sub(" ", text or "").strip()
        if not line or not self.clean(line):
            return ""
        if len(line) <= chars_max:
            return line.rstrip(".")
        cut = line[:chars_max]
        return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"

    def join(self, sentences: Sequence[str]) -> str:
        """The sentences as far as they fit, the first at least in part; the last go first."""
        kept = [sentence if sentence[-1] in _ENDS else f"{sentence}." for sentence in sentences if sentence]
        while len(kept) > 1 and not self.fits(" ".join(kept)):
            kept.pop()
        text = " ".join(kept)
        chars = len(text)
        while chars and not self.fits(text):
            chars = chars * 3 // 4
            text = f"{text[:chars].rstrip('…')}…"
        return text
