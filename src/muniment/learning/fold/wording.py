"""How what was learnt is put into words: short, one line, and checked whoever wrote it.

A `Wording` (a model, as a rule) may say a text better. It is not trusted: what it returns must keep the figures of the
original and bring no others, fit the budget, and hold neither secrets nor orders; else the original stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern

__all__ = ["Clean", "Count", "Wording", "Writer"]

Count = Callable[[str], int]
"""How many tokens a text has."""
Clean = Callable[[str], bool]
"""Whether a text is free of secrets, and of words that try to give orders to whoever reads it."""
Wording = Callable[[str], str]
"""Says a text in other words."""

_SPACE = lazy_pattern(r"\s+")
_ENDS = "?!…？！。"
"""What ends a sentence without a full stop."""
_FIGURE = lazy_pattern(r"\d+(?:[.,]\d+)*")


class Writer(NamedTuple):
    """Writes within a budget."""

    count: Count
    tokens_max: int
    clean: Clean
    wording: Wording | None = None

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

    def reword(self, text: str) -> str:
        """What the wording makes of it, if that holds; else as it was."""
        if self.wording is None:
            return text
        answer = self.wording(text)
        said = _SPACE.sub(" ", answer).strip() if isinstance(answer, str) else ""
        keeps_figures = sorted(_FIGURE.findall(said)) == sorted(_FIGURE.findall(text))
        return said if said and keeps_figures and self.fits(said) and self.clean(said) else text
