"""Texts as sentences that stand on their own, with their places; what is coded, cited or too long is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Sentence", "sentences"]

TEXT_CHARS_MAX = 50_000
SENTENCE_CHARS_MAX = 600
"""Longer runs are lists, pasted text and the like: nobody's plain word."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{0,500}`", re.DOTALL)
_CAPTION = re.compile(r"\[[^\[\]\n]{0,400}\]")
"""What stands in brackets is not said: a caption, a mark of what was left out."""
_CITED_LINE = re.compile(r"^[ \t]{0,8}(?:>|\|).*$", re.MULTILINE)
_ABBREVIATION = re.compile(r"\b(?:St|Mt|Ft|Mr|Mrs|Ms|Dr|Jr|Sr|vs|etc|No|approx|e\.g|i\.e|[A-Z])\.\Z")
# Possessive, and only from the start of a run: a page of dots is read once, not once for each of them.
_END = re.compile(r"(?<![.!?])[.!?]++(?=[\s)\]]|\Z)|[。！？；!?;…]+|\n+")
_MARKS = re.compile("[\"“”„«»「」『』《》]|(?<!\\w)['‘]|['’](?!\\w)")


_TWO_SIGNS = re.compile(r"\w\W*+\w")


class Sentence(NamedTuple):
    """A sentence: its text without the end mark, the mark, and where it stands in its message."""

    text: str
    end: str
    is_first: bool = False
    """Nothing was said before it in its message."""
    start: int = 0
    """Where its text begins in the message, in characters."""
    paragraph: int = 0
    """How many empty lines stand before it."""

    @property
    def is_question(self) -> bool:
        return "?" in self.end or "？" in self.end

    @property
    def is_quoting(self) -> bool:
        """Holds quotation marks: someone else's words, or words talked about. An apostrophe is none."""
        return _MARKS.search(self.text) is not None

    @property
    def is_bare(self) -> bool:
        """Holds no two letters or figures: too little to say something of somebody."""
        return _TWO_SIGNS.search(self.text) is None


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text, in order; code and cited lines are not among them."""
    plain = _CAPTION.sub(_blank, _CITED_LINE.sub(_blank, _FENCE.sub(_blank, text[:TEXT_CHARS_MAX])))
    start, is_first, paragraph = 0, True, 0
    for match in _END.finditer(plain):
        if match[0] == "." and _ABBREVIATION.search(plain[max(0, match.start() - 8) : match.end()]):
            continue
        yield from _sentence(plain, start, match.start(), match[0], is_first=is_first, paragraph=paragraph)
        is_first = is_first and not plain[start : match.start()].strip()
        paragraph += match[0].count("\n") > 1
        start = match.end()
    yield from _sentence(plain, start, len(plain), "", is_first=is_first, paragraph=paragraph)


def _blank(match: re.Match[str]) -> str:
    """As long as what it replaces, and no part of any sentence."""
    return "\n" * len(match[0])


def _sentence(plain: str, start: int, stop: int, end: str, *, is_first: bool, paragraph: int) -> Iterator[Sentence]:
    text = plain[start:stop]
    at = start + len(text) - len(text.lstrip())
    text = text.strip()
    if text and len(text) <= SENTENCE_CHARS_MAX:
        yield Sentence(text, end, is_first, at, paragraph)
