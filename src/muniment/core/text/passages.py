"""Long texts cut into passages: groups of whole sentences about as long as what people say at once.

What is asked for stands in one place of a long answer; the words of the rest of it only tell that much was said. So a
long turn is weighed by the passage that fits best, and a short one is a passage as it stands.
"""

from __future__ import annotations

from muniment.core.text.sentences import sentence_spans

__all__ = ["PASSAGE_WORDS", "passage_spans"]

PASSAGE_WORDS = 45
"""About how many words a passage has; of scripts that write no spaces, four times as many signs."""
_SHORT_CHARS = 240
"""A text that is no longer is one passage, however it is written."""
_SHORT_SIGNS = 80
"""The same of a text that has letters beyond Latin."""


def passage_spans(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the passages of a text, in order, white space between them left out; none of an empty one."""
    if len(text) <= (_SHORT_CHARS if text.isascii() else _SHORT_SIGNS):
        return [(0, len(text))] if text.strip() else []
    spans: list[tuple[int, int]] = []
    begin, last, held = 0, 0, 0
    for start, end in _pieces(text):
        count = _words(text, start, end)
        if held and held + count > PASSAGE_WORDS * 4 // 3:
            spans.append((begin, last))
            held = 0
        begin = begin if held else start
        last, held = end, held + count
    if held:
        if spans and held < PASSAGE_WORDS // 4:  # a closing remark belongs to what it closes
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((begin, last))
    return spans


def _pieces(text: str) -> list[tuple[int, int]]:
    """The sentences; one that is too long for a passage in even parts, cut at spaces where it has any."""
    pieces: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        count = _words(text, start, end)
        if count <= 2 * PASSAGE_WORDS:
            pieces.append((start, end))
            continue
        step = -(-(end - start) * PASSAGE_WORDS // count)
        while start < end:
            cut = min(start + step, end)
            if cut < end and (space := text.rfind(" ", start + step // 2, cut)) > 0:
                cut = space
            pieces.append((start, cut))
            start = cut
    return pieces


def _words(text: str, start: int, end: int) -> int:
    """How many words a stretch has, about: by its spaces, or by its signs where it has few of them."""
    spaces = text.count(" ", start, end) + 1
    return spaces if text.isascii() else max(spaces, _signs(text[start:end]) // 4)


def _signs(text: str) -> int:
    """How many of the signs are of scripts that stand without spaces between words."""
    return sum(1 for sign in text if sign >= "\u0e00" and not "\uac00" <= sign <= "\ud7a3")
