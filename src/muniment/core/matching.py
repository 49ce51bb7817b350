"""Common stretches of two lists, in the same order.

A list that only grew, or lost its beginning, is aligned with the other by its ends alone. Between them the longest
common stretches are sought, at quadratic cost where lists repeat themselves or differ everywhere: past a bound,
elements unique in both align them, and their surroundings are compared in step. So the cost stays linear in the length.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

__all__ = ["Stretch", "common_stretches", "erased_places"]

_STEPS_MAX = 400_000
"""Maximum number of comparisons for the longest stretches."""


class Stretch(NamedTuple):
    """The places of a common stretch in both lists, and its length."""

    at: int
    place: int
    size: int


def common_stretches(one: Sequence[str], other: Sequence[str]) -> list[Stretch]:
    """Return the common stretches, in order."""
    start = _same(one, other, 0, 0, min(len(one), len(other)))
    end = _same_back(one, other, len(one), len(other), min(len(one), len(other)) - start)
    found = [Stretch(0, 0, start)]
    found += _between(one, other, start, (len(one) - end, len(other) - end))
    found.append(Stretch(len(one) - end, len(other) - end, end))
    return _merged(found)


def _between(one: Sequence[str], other: Sequence[str], start: int, ends: tuple[int, int]) -> Iterator[Stretch]:
    mine, theirs = one[start : ends[0]], other[start : ends[1]]
    if not mine or not theirs:
        return
    times = Counter(theirs)
    pairs = sum(times[each] for each in mine)
    if (pairs + len(mine)) * min(len(mine), len(theirs), pairs + 1) <= _STEPS_MAX:
        blocks = SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks()
        yield from (Stretch(at + start, place + start, size) for at, place, size in blocks)
        return
    at = place = 0
    for anchor in [*_anchors(mine, theirs), (len(mine), len(theirs))]:
        room = min(anchor[0] - at, anchor[1] - place)
        first = _same(mine, theirs, at, place, room)
        last = _same_back(mine, theirs, *anchor, room - first)
        yield Stretch(at + start, place + start, first)
        yield Stretch(anchor[0] - last + start, anchor[1] - last + start, last)
        at, place = anchor


def _anchors(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of elements unique in each list: the longest rising sequence in both."""
    mine, theirs = Counter(one), Counter(other)
    places = {each: place for place, each in enumerate(other) if theirs[each] == 1}
    pairs = [(at, places[each]) for at, each in enumerate(one) if mine[each] == 1 and each in places]
    ends: list[int] = []  # the least end of a rising sequence of each length, and its pair
    held: list[int] = []
    before: list[int | None] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(held[length - 1] if length else None)
        ends[length : length + 1] = [place]
        held[length : length + 1] = [number]
    row: list[tuple[int, int]] = []
    last = held[-1] if held else None
    while last is not None:
        row.append(pairs[last])
        last = before[last]
    return row[::-1]


def _same(one: Sequence[str], other: Sequence[str], at: int, place: int, most: int) -> int:
    """Count equal elements from here on."""
    count = 0
    while count < most and one[at + count] == other[place + count]:
        count += 1
    return count


def _same_back(one: Sequence[str], other: Sequence[str], at: int, place: int, most: int) -> int:
    """Count equal elements up to here."""
    count = 0
    while count < most and one[at - count - 1] == other[place - count - 1]:
        count += 1
    return count


def _merged(stretches: list[Stretch]) -> list[Stretch]:
    """Drop empty stretches, and join those adjacent in both lists."""
    found: list[Stretch] = []
    for each in stretches:
        if not each.size:
            continue
        last = found[-1] if found else None
        if last is not None and (last.at + last.size, last.place + last.size) == each[:2]:
            found[-1] = last._replace(size=last.size + each.size)
        else:
            found.append(each)
    return found


def erased_places(
    found: Mapping[int, int], roles: Sequence[str], gone: Mapping[int, str], turns: tuple[int, int]
) -> set[int]:
    """Return the places of a list that held a known, erased turn, between the same neighbours and by the same role:
    erased content does not return because it is repeated. `found` maps places to known turns, `gone` maps erased turns
    to their owners; `turns` are the first to examine and the one after the last.
    """
    erased: set[int] = set()
    anchors = [(-1, turns[0] - 1), *sorted(found.items()), (len(roles), turns[1])]
    for (place, turn), (next_place, next_turn) in pairwise(anchors) if gone else ():
        left = [gone[number] for number in range(turn + 1, next_turn) if number in gone]
        at = 0
        for number in range(place + 1, next_place):
            if roles[number] in left[at:]:
                erased.add(number)
                at = left.index(roles[number], at) + 1
    return erased
