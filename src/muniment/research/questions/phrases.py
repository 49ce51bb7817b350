"""Phrases of a question: tidied, cut where a reader would cut them, joined as the language joins them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.script import Written
from muniment.research.questions.words import Kind

__all__ = ["Part", "clip", "join", "on_one_line", "once", "tidy", "title_case", "unquoted", "without_brackets"]

_CONTROL = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff]+")
_BRACKETS = lazy_pattern(r"\s*(?:\([^()（）]{0,300}\)|（[^()（）]{0,300}）|\[[^\[\]]{0,300}\])")
_CLOSING = {"'": "'", '"': '"', "“": "”", "‘": "’"}
_EDGES = " \t,.;:!¿¡-–—/，。；：！、·~"
_ENDS = {
    "en": (
        lazy_pattern(
            r"(?<=[\w)'\"%’”])(?=[,;:]\s|\s[-–—]\s|\s\("
            r"|\s(?:such as|including|based on|in terms of|so that|while|which)\s)"
        ),
        lazy_pattern(r"(?<=[\w)'\"%’”])(?=\s(?:that|with|through|under|by|across|for|from|in|of|on|as)\s)"),
    ),
    "zh": (lazy_pattern(r"(?=[，；：（(—])"), lazy_pattern(r"(?=、)|(?<=的)")),
}
"""Where a phrase may end: first between its clauses, else before a preposition."""
_LIST_END = lazy_pattern(r",\s(?:and|or)\s")
_HANGING = lazy_pattern(
    r"(?i)(?:\s(?:an?|the|of|in|on|for|to|by|with|and|or|as|at|from|into|its|their|this|that|these|those|is|are|be|than"
    r"|via|such|various|focused|used|operating|driven|related|taken|drawn|capable))+$"
)


class Part(NamedTuple):
    """One thing that is asked."""

    text: str
    """As it can stand in a title: a noun phrase or a question."""
    kind: Kind
    topics: tuple[str, ...] = ()
    """What it enumerates: dimensions, aspects, steps."""
    leans: bool = False
    """It needs the subject beside it to be understood."""
    head: str = ""
    """What the topics are aspects of, where it is said."""


def tidy(text: str) -> str:
    """On one line, without control signs, without punctuation at its edges."""
    return " ".join(_CONTROL.sub(" ", text).split()).strip(_EDGES)


def on_one_line(text: str) -> bool:
    """Whether it holds no line break and no other control sign."""
    return _CONTROL.search(text) is None


def unquoted(text: str) -> str:
    """Without the quotes around it, and without one that opens it and is never closed."""
    text = text.strip(" ,:，：、。")
    close, rest = _CLOSING.get(text[:1], ""), text[1:].rstrip(" .,")
    if close and rest.endswith(close):
        return rest[:-1].strip(" ,.")
    return rest if close and not re.search(rf"{close}(?!\w)", rest) else text


def without_brackets(text: str) -> str:
    """Without what stands in brackets, brackets in brackets aside."""
    return _BRACKETS.sub("", text)


def clip(text: str, chars_max: int, language: Written) -> str:
    """A phrase cut to `chars_max` where a part of it ends; never in the middle of a word."""
    if len(text) <= chars_max:
        return text
    for pattern in _ENDS[language]:
        ends = [found.start() for found in pattern.finditer(text, chars_max // 3, chars_max)]
        ends = [at for at in ends if at >= chars_max // 3 and not _is_in_list(text, at)]
        if ends:
            return _whole(text[: ends[-1]], language)
    if language == "en" and " " in text[: chars_max + 1]:
        return _whole(text[: chars_max + 1].rpartition(" ")[0], language)
    return text[:chars_max]


def _is_in_list(text: str, at: int) -> bool:
    """Whether a comma stands between items: others before it or after it, and the last behind ", and"."""
    last = _LIST_END.search(text, at, at + 300) if text[at : at + 1] == "," else None
    return last is not None and (last.start() > at or ", " in text[:at])


def _whole(text: str, language: Written) -> str:
    """Without what hangs at its end: prepositions, articles, an opened quote."""
    if language == "zh":
        return text.rstrip(f"{_EDGES}的")
    return _HANGING.sub("", text.rstrip(_EDGES)).rstrip(_EDGES)


def join(items: Sequence[str], language: Written) -> str:
    """A, B and C · A、B、C"""
    if language == "zh" or len(items) < 2:
        return "、".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def once(items: Sequence[str], most: int) -> tuple[str, ...]:
    """The first `most` of some phrases, each once, whatever its case."""
    kept: dict[str, str] = {}
    for item in items:
        kept.setdefault(item.casefold(), item)
    return tuple(kept.values())[:most]


def title_case(text: str) -> str:
    """A title with a capital letter in front, unless the first word has one of its own (iPhone)."""
    first = re.match(r"[a-z][a-z’'-]*(?=[\s:;,?]|$)", text)
    return text[0].upper() + text[1:] if first else text
