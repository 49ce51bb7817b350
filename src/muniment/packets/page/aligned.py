"""Two pages side by side: which line of one is which of the other, by what they tell of; and what differs in it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import Match, SequenceMatcher
from typing import Any, Literal, NamedTuple

from muniment.core.record import Absent, Count, Items, Record
from muniment.packets.page.page_lines import PageLine

__all__ = ["LinePair", "Piece", "PlacedLine", "align"]

Change = Literal["same", "added", "removed", "moved", "reworded"]
_SAID = ("quote", "turn", "tool")
"""The same words of somebody, wherever on the page they stand."""
_MARK = re.compile(r"\[([0-9]{1,9})\]")
_WORDS = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+|\s+|[^\w\s]"
)
_WORDS_MAX = 200
"""Of longer lines only the beginning and the end are compared."""


class Piece(Record):
    """A stretch of a line, and whether the other page has it otherwise."""

    text: str
    is_changed: bool


class PlacedLine(Record):
    """A line where it stands on one of the pages."""

    number: Count
    """Of its first line, from 1."""
    block: str
    text: str
    pieces: Absent[Items[Piece]] = None
    """The same text in pieces, where it is worded otherwise on the other page."""


class LinePair(Record):
    """A line of either page, or of both, and what became of it."""

    what: Change
    is_moved: bool
    """Does it stand elsewhere? A line may be moved and worded otherwise."""
    item: Absent[str] = None
    """What it tells of; absent of a heading."""
    evidence: Items[str]
    a: Absent[PlacedLine] = None
    b: Absent[PlacedLine] = None
    reason: Absent[str] = None
    """Of a line that one page has not, why it has not: the reason that its packet gives, or how far it is known."""
    by: Absent[str] = None
    """What stands in its place, or says the same."""
    why: Absent[str] = None
    """Of a line that was added, by which rules it was chosen."""


class _Matched(NamedTuple):
    left: int
    right: int


def align(
    left: Sequence[PageLine], right: Sequence[PageLine], marks_left: Mapping[str, str], marks_right: Mapping[str, str]
) -> list[LinePair]:
    """The lines of both pages in the order of the second; what only the first has stands where it stood."""
    places = {key: at for at, key in enumerate(_keys(right))}
    matched = [_Matched(at, places[key]) for at, key in enumerate(_keys(left)) if key in places]
    still = _longest_rising(matched)
    pairs = {pair.right: pair for pair in matched if pair in still or left[pair.left].item is not None}
    paired = {pair.left for pair in pairs.values()}
    rows: list[LinePair] = []
    at_left = at_right = 0
    for stop in (*sorted(still), _Matched(len(left), len(right))):
        rows += [_alone(left[at], "removed") for at in range(at_left, stop.left) if at not in paired]
        for at in range(at_right, min(stop.right + 1, len(right))):
            pair = pairs.get(at)
            if pair is None:
                rows.append(_alone(right[at], "added"))
            else:
                is_moved = pair not in still
                rows.append(_both(left[pair.left], right[at], marks_left, marks_right, is_moved=is_moved))
        at_left, at_right = stop.left + 1, stop.right + 1
    return rows


def _keys(lines: Sequence[PageLine]) -> Iterator[tuple[str, str, int]]:
    """What a line is known by on both pages; the second of the same kind is the second there too."""
    seen: Counter[tuple[str, str]] = Counter()
    for line in lines:
        kind, _, id_ = (line.item or "").partition(":")
        key = ("said" if kind in _SAID else kind, id_) if line.item else ("", _plain(line))
        yield (*key, seen[key])
        seen[key] += 1


def _plain(line: PageLine) -> str:
    """A heading is known by its words; the line of the day by being it."""
    return line.block if line.block == "today" else f"{line.block} {line.text}"


def _longest_rising(matched: Sequence[_Matched]) -> frozenset[_Matched]:
    """As many pairs as possible that stand in the same order on both pages: what does not is moved."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for at, pair in enumerate(matched):
        place = bisect_left(ends, pair.right)
        before.append(last[place - 1] if place else -1)
        ends[place : place + 1] = [pair.right]
        last[place : place + 1] = [at]
    kept, at = set(), last[-1] if last else -1
    while at >= 0:
        kept.add(matched[at])
        at = before[at]
    return frozenset(kept)


def _alone(line: PageLine, what: Literal["added", "removed"]) -> LinePair:
    side: dict[str, Any] = {"b" if what == "added" else "a": _placed(line)}
    return _pair(line, what, **side)


def _both(
    left: PageLine,
    right: PageLine,
    marks_left: Mapping[str, str],
    marks_right: Mapping[str, str],
    *,
    is_moved: bool,
) -> LinePair:
    is_moved = is_moved or left.block != right.block
    if _unnumbered(left.text, marks_left) == _unnumbered(right.text, marks_right):
        return _pair(right, "moved" if is_moved else "same", is_moved=is_moved, a=_placed(left), b=_placed(right))
    pieces_left, pieces_right = _compared(left.text, right.text)
    a, b = _placed(left, pieces_left), _placed(right, pieces_right)
    return _pair(right, "reworded", is_moved=is_moved, a=a, b=b)


def _pair(line: PageLine, what: Change, *, is_moved: bool = False, **sides: Any) -> LinePair:
    item: dict[str, Any] = {} if line.item is None else {"item": line.item}
    return LinePair(what=what, is_moved=is_moved, evidence=line.evidence, **item, **sides)


def _placed(line: PageLine, pieces: tuple[Piece, ...] | None = None) -> PlacedLine:
    given: dict[str, Any] = {} if pieces is None else {"pieces": pieces}
    return PlacedLine(number=line.number, block=line.block, text=line.text, **given)


def _unnumbered(text: str, marks: Mapping[str, str]) -> str:
    """The text with what each mark names in its place: two sessions number the same evidence otherwise."""
    return _MARK.sub(lambda found: f"[{marks.get(found[1], found[1])}]", text)


def _compared(left: str, right: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both texts in pieces, those that differ marked."""
    words = _WORDS.findall(left), _WORDS.findall(right)
    if max(map(len, words)) > _WORDS_MAX:
        same = _ends(*words)
    else:
        blocks = SequenceMatcher(None, *words, autojunk=False).get_matching_blocks()
        same = [(block.a, block.b, block.size) for block in blocks if _says(words[0], block) or _is_end(words, block)]
    left_same = [(start, size) for start, _, size in same]
    right_same = [(start, size) for _, start, size in same]
    return _pieces(words[0], left_same), _pieces(words[1], right_same)


def _says(words: Sequence[str], block: Match) -> bool:
    """Are there words in it? A blank or a comma that two texts have in common says nothing."""
    return any(word[0].isalnum() for word in words[block.a : block.a + block.size])


def _is_end(words: tuple[Sequence[str], Sequence[str]], block: Match) -> bool:
    begins = block.a == block.b == 0
    return begins or (block.a + block.size == len(words[0]) and block.b + block.size == len(words[1]))


def _ends(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int, int]]:
    """What both begin and end with."""
    most = min(len(left), len(right))
    first = next((at for at in range(most) if left[at] != right[at]), most)
    last = next((at for at in range(most - first) if left[-1 - at] != right[-1 - at]), most - first)
    return [(0, 0, first), (len(left) - last, len(right) - last, last)]


def _pieces(words: Sequence[str], same: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    found: list[Piece] = []
    at = 0
    for start, size in (*same, (len(words), 0)):
        for is_changed, stretch in ((True, words[at:start]), (False, words[start : start + size])):
            if stretch:
                found.append(Piece(text="".join(stretch), is_changed=is_changed))
        at = start + size
    return tuple(found)
