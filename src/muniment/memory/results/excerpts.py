"""What is shown of a long text: its beginning, its end and the lines that match, verbatim and in their order.

Nothing is written that does not stand in the text; how much lies between two stretches is said by numbers (`Gap`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from muniment.core.requests import furthest
from muniment.core.text.analyzer import analyze
from muniment.memory.turns import Excerpt, Stretch

__all__ = ["Gap", "cut_excerpt", "excerpt_of", "gaps_of"]

LINE_CHARS_MAX = 240
"""A longer line is taken in pieces."""
PIECE_CHARS_MIN = 60
"""Of the pieces that are tried where there is no room for a whole line."""
HEAD_CHARS, TAIL_CHARS = 2_000, 1_000
"""Of the beginning and the end that an excerpt for a pool holds; the rest of it goes to lines that match."""
SCAN_CHARS_MAX = 8_000_000
"""Further into one text nobody looks for a match."""
FOUND_MAX = 1_000
"""Lines that are read closely because a word of the query stands in them."""
MATCHES_MAX = 12
"""Lines that are shown because they match,"""
AROUND_MAX = 3
"""and how many of them with the two lines before and behind."""
HEAD_LINES, TAIL_LINES = 8, 4
"""Of the beginning and the end of what is not shown whole."""
_WORD = re.compile(r"\w+")
_SPACE = re.compile(r"\s")

Span = tuple[int, int]
K = TypeVar("K", int, Span)
Fits = Callable[[Excerpt], bool]


class Gap(NamedTuple):
    """What is left out before, between or behind the stretches of an excerpt."""

    start: int
    """Characters before it."""
    chars: int
    lines: int
    """Whole lines; 0 where it lies within one."""


def gaps_of(excerpt: Excerpt) -> list[Gap]:
    """One more than there are stretches: before the first, between them, behind the last; 0 characters where none."""
    gaps: list[Gap] = []
    end = end_line = 0
    for at, stretch in enumerate(excerpt.stretches):
        breaks = stretch.line - end_line
        gaps.append(Gap(end, stretch.start - end, breaks if at == 0 else max(0, breaks - 1)))
        end = stretch.start + len(stretch.text)
        end_line = stretch.line + stretch.text.count("\n")
    gaps.append(Gap(end, excerpt.chars - end, excerpt.breaks - end_line))
    return gaps


# -- for a pool: what of a very long text may be chosen from ------------------------------------------


def excerpt_of(text: str, query: str, chars_max: int) -> Excerpt:
    """The beginning, the end and the lines that match a query best, in no more than about so many characters."""
    text = text.rstrip()
    head, tail = (0, _end_of_head(text)), (_start_of_tail(text), len(text))
    left = chars_max - (head[1] - head[0]) - (tail[1] - tail[0])
    spans = [head, tail]
    for span in _matching(text[:SCAN_CHARS_MAX], query):
        wide = _with_neighbours(text, span)
        if wide[1] - wide[0] > left:
            wide = span
        if wide[1] - wide[0] > left:
            break
        spans.append(wide)
        left -= wide[1] - wide[0]
    return _excerpt(text, _merged(text, spans))


def _end_of_head(text: str) -> int:
    at = text.rfind("\n", 0, HEAD_CHARS)
    return at if at > 0 and not text[:at].isspace() else HEAD_CHARS


def _start_of_tail(text: str) -> int:
    at = text.find("\n", len(text) - TAIL_CHARS)
    return len(text) - TAIL_CHARS if at < 0 else at + 1


def _matching(text: str, query: str) -> list[Span]:
    """Lines, or pieces of long ones, that share words with the query: those that share the rarest first."""
    terms = frozenset(analyze(query))
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that is two in lower case: places must stay what they are
        lowered = text
    found: dict[Span, None] = {}
    for needle in _needles(query, lowered):
        at = lowered.find(needle)
        while at >= 0 and len(found) < FOUND_MAX:
            span = _line_at(text, at, at + len(needle))
            found[span] = None
            at = lowered.find(needle, max(span[1], at + 1))
    return _ranked([(span, text[slice(*span)]) for span in found], terms)


def _needles(query: str, lowered: str) -> list[str]:
    """What to look for: words of the query as they stand, or else their stems; the rarest first."""
    wanted: set[str] = set()
    for word in dict.fromkeys(_WORD.findall(query.lower())):
        terms = analyze(word)
        if not word.isascii():
            wanted.update(term for term in terms if len(term) > 1 and term in lowered)
        elif terms:
            wanted.update(each for each in (word, terms[0].rstrip("i"))[: 1 if word in lowered else 2] if each)
    return sorted(wanted, key=lambda needle: (lowered.count(needle), needle))


def _line_at(text: str, start: int, end: int) -> Span:
    """The line around a place; of a long one, the piece."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    if last - first <= LINE_CHARS_MAX:
        return first, last
    near = LINE_CHARS_MAX // 2
    return max(first, start - near), min(last, end + near)


def _with_neighbours(text: str, span: Span) -> Span:
    """A line with the one before it and the one behind it, unless they are long."""
    start, end = span
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    behind = text.find("\n", end + 1)
    behind = len(text) if behind < 0 else behind
    whole_line = (start == 0 or text[start - 1] == "\n") and (end == len(text) or text[end] == "\n")
    if not whole_line:
        return span
    return (
        before if start - before <= LINE_CHARS_MAX else start,
        behind if behind - end <= LINE_CHARS_MAX else end,
    )


def _merged(text: str, spans: Iterable[Span]) -> list[Span]:
    """Spans in order; those that touch, or have nothing but white space between them, are one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and (start <= merged[-1][1] or not text[merged[-1][1] : start].strip()):
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _excerpt(text: str, spans: Iterable[Span]) -> Excerpt:
    stretches: list[Stretch] = []
    line = counted = 0
    for start, end in spans:
        line += text.count("\n", counted, start)
        counted = start
        stretches.append(Stretch(start=start, line=line, text=text[start:end]))
    return Excerpt(chars=len(text), breaks=text.count("\n"), stretches=tuple(stretches))


# -- for a page: what of it has room ------------------------------------------------------------------


class _Piece(NamedTuple):
    """A line, or a part of a long one."""

    source: int
    """The number of the stretch it is a part of."""
    start: int
    """Within that stretch."""
    end: int


def cut_excerpt(text: str, excerpt: Excerpt | None, fits: Fits, terms: Collection[str] = ()) -> Excerpt | None:
    """Of a text that is not shown whole, as much as fits of this: the line that matches best, the first and the last,
    further matches, the lines around them, the rest of its beginning and its end.

    `excerpt` is what is known of the text, where that is not all of it. None where nothing fits.
    """
    whole = excerpt or _excerpt(body := text.rstrip(), [(0, len(body))])
    for size in (LINE_CHARS_MAX, PIECE_CHARS_MIN):
        pieces = list(_pieces(whole.stretches, size))
        order = _order(whole.stretches, pieces, frozenset(terms))
        kept = furthest(len(order), partial(_fitting, fits, whole, pieces, order))
        if kept:
            return _taken(whole, pieces, order[:kept])
    return None


def _fitting(fits: Fits, whole: Excerpt, pieces: Sequence[_Piece], order: Sequence[int], count: int) -> bool:
    return fits(_taken(whole, pieces, order[:count]))


def _pieces(stretches: Sequence[Stretch], size: int) -> Iterator[_Piece]:
    """Lines with something on them; of longer ones, pieces that end at white space where there is any."""
    for source, stretch in enumerate(stretches):
        at = 0
        skipped: int | None = 0  # blank lines at the beginning are part of the first piece: they are nothing left out
        for line in stretch.text.split("\n"):
            start, end = at, at + len(line)
            at = end + 1
            if skipped is not None and line.strip():
                start, skipped = skipped, None
            while end - start > size:
                spaces = [found.end() for found in _SPACE.finditer(stretch.text, start + size // 2, start + size)]
                split = spaces[-1] if spaces else start + size
                yield _Piece(source, start, split)
                start = split
            if stretch.text[start:end].strip():
                yield _Piece(source, start, end)


def _order(stretches: Sequence[Stretch], pieces: Sequence[_Piece], terms: frozenset[str]) -> list[int]:
    """The numbers of the pieces, those that are shown first first."""
    texts = [(number, stretches[piece.source].text[piece.start : piece.end]) for number, piece in enumerate(pieces)]
    matches = _ranked(texts, terms)[:MATCHES_MAX]
    count = len(pieces)
    around = [
        number + step
        for number in matches[:AROUND_MAX]
        for step in (-1, 1, -2, 2)
        if 0 <= number + step < count and pieces[number + step].source == pieces[number].source
    ]
    head, tail = list(range(min(HEAD_LINES, count))), list(range(count - 1, max(count - 1 - TAIL_LINES, -1), -1))
    return list(dict.fromkeys([*matches[:1], *head[:1], *tail[:1], *matches, *around, *head, *tail]))


def _taken(whole: Excerpt, pieces: Sequence[_Piece], numbers: Iterable[int]) -> Excerpt:
    """These pieces, in their order; neighbours are one stretch."""
    stretches: list[Stretch] = []
    before: int | None = None
    first: _Piece | None = None
    counted = (-1, 0, 0)
    for number in [*sorted(numbers), None]:
        if first is not None and before is not None:
            if number is not None and number == before + 1 and pieces[number].source == first.source:
                before = number
                continue
            source = whole.stretches[first.source]
            text = source.text[first.start : pieces[before].end]
            at, breaks = counted[1:] if counted[0] == first.source else (0, 0)
            counted = first.source, first.start, breaks + source.text.count("\n", at, first.start)
            line = source.line + counted[2]
            stretches.append(Stretch(start=source.start + first.start, line=line, text=text))
        if number is not None:
            first, before = pieces[number], number
    return Excerpt(chars=whole.chars, breaks=whole.breaks, stretches=tuple(stretches))


def _ranked(texts: Sequence[tuple[K, str]], terms: frozenset[str]) -> list[K]:
    """The keys of the texts that share terms with the query, best first: a rare term counts for more than a common."""
    if not terms:
        return []
    shared = {key: terms.intersection(analyze(text)) for key, text in texts}
    holding = Counter(term for held in shared.values() for term in held)
    worth = {term: math.log1p(len(texts) / count) for term, count in holding.items()}
    weight = {key: math.fsum(worth[term] for term in held) for key, held in shared.items() if held}
    return sorted(weight, key=lambda key: (-round(weight[key], 6), key))
