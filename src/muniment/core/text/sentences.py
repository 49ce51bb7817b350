"""Where sentences begin and end, in Latin, Chinese, Japanese and Korean text; spans, never rewritten words."""

from __future__ import annotations

from muniment.core.text.patterns import lazy_pattern

__all__ = ["sentence_spans"]

_SHORT = frozenset(("mr", "mrs", "ms", "dr", "prof", "st", "vs", "etc", "e.g", "i.e", "approx", "jr", "sr"))
# Possessive, and only from the start of a run: a page of dots is read once, not once for each of them. The sign that it
# begins with stands before the alternatives, so that the rest of a text is passed over without trying them.
_END = lazy_pattern(
    r"[.!?…。！？\n](?:(?<=\n)\n*+|(?<=[。！？])[。！？]*+[”’」』）]*+"
    r"|(?<=[.!?…])(?<![.!?…]{2})[.!?…]*+[\"'”’)\]]*+(?=\s))"
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the sentences of a text, white space around each left out. Every other character is in one."""
    spans: list[tuple[int, int]] = []
    start = 0
    for found in _END.finditer(text):
        if found[0] == "." and _is_short(text, start, found.start()):
            continue
        _add(spans, text, start, found.end())
        start = found.end()
    _add(spans, text, start, len(text))
    return spans


def _is_short(text: str, start: int, dot: int) -> bool:
    """Does the dot close an abbreviation or an initial rather than a sentence?"""
    word = text[max(start, dot - 8) : dot].rsplit(maxsplit=1)[-1:] or [""]
    bare = word[0].lstrip("(\"'“").casefold()
    return bare in _SHORT or (len(bare) == 1 and bare.isalpha() and bare != "i")


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end].rstrip()
    end = start + len(piece)
    start = end - len(piece.lstrip())
    if start < end:
        spans.append((start, end))
