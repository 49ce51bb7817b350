"""The trees that tell a swapped slot: each asks a few signs, and all of them are answered at once.

`data/slots.json` holds rows of small trees, one row for each group of slots (`benchmarks.learn_slots` grows them). The
leaves of a row stand side by side as bits. A question whose answer is high bars the leaves of its low side; what is
barred by a sign of some value, in all trees together, is worked out once for each limit that is asked of it. So a slot
takes one search among the limits of each sign, and the first leaf that is not barred in each tree is its answer.
(Lucchese et al., QuickScorer, 2015.)
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import NamedTuple, cast

from muniment.core.text.word_lists import read_data

__all__ = ["swap_score"]

_BLOCKS = (("B", 8), ("H", 16), ("I", 32), ("Q", 64))
"""How `struct` calls a block of bits, and how many there are: a tree has as many leaves at the most."""
_Row = float | Sequence[object]
"""A tree as it is written: a leaf, or which sign is asked, up to which value the third part answers, and else the
fourth."""


class _Asked(NamedTuple):
    """What is asked of one sign: the limits, lowest first, and the leaves left by a value above the first so many."""

    sign: int
    limits: tuple[float, ...]
    left: tuple[int, ...]


class _Trees(NamedTuple):
    asked: tuple[_Asked, ...]
    every: int
    """The leaves of all trees."""
    blocks: Struct
    """How the bits are cut into trees."""
    says: tuple[dict[int, float], ...]
    """What each leaf of a tree says, by its bit."""


@cache
def _groups(names: tuple[str, ...]) -> dict[str, _Trees]:
    found = json.loads(read_data(__package__, "slots.json"))
    return {group: _laid_out(rows, names) for group, rows in found["trees"].items()}


def _laid_out(rows: Sequence[_Row], signs: Sequence[str]) -> _Trees:
    barred: dict[int, list[tuple[float, int]]] = {}
    trees: list[list[float]] = []
    most = max(map(_count, rows))
    letter, width = next((letter, bits) for letter, bits in _BLOCKS if bits >= most)
    for number, row in enumerate(rows):
        trees.append([])
        _lay_out(row, number * width, trees[-1], barred, signs)
    every = (1 << len(rows) * width) - 1
    asked: list[_Asked] = []
    for sign, questions in sorted(barred.items()):
        limits = sorted({limit for limit, _ in questions})
        left = [every]
        for limit in limits:
            gone = 0
            for other, leaves_low in questions:
                gone |= leaves_low if other == limit else 0
            left.append(left[-1] & ~gone)
        asked.append(_Asked(sign, tuple(limits), tuple(left)))
    says = tuple({1 << at: value for at, value in enumerate(tree)} for tree in trees)
    return _Trees(tuple(asked), every, Struct(f"<{len(rows)}{letter}"), says)


def _count(row: _Row) -> int:
    """How many leaves a tree has."""
    return 1 if isinstance(row, float | int) else sum(map(_count, cast("Sequence[_Row]", row[2:])))


def _lay_out(
    row: _Row, start: int, values: list[float], barred: dict[int, list[tuple[float, int]]], signs: Sequence[str]
) -> None:
    """The leaves of a tree from left to right, and for each question the leaves of its low side."""
    if isinstance(row, float | int):
        values.append(float(row))
        return
    sign, limit, low, high = cast("tuple[str, float, _Row, _Row]", tuple(row))
    first = len(values)
    _lay_out(low, start, values, barred, signs)
    leaves = (1 << (start + len(values))) - (1 << (start + first))
    barred.setdefault(signs.index(sign), []).append((float(limit), leaves))
    _lay_out(high, start, values, barred, signs)


def swap_score(group: str, names: tuple[str, ...], signs: Sequence[float]) -> float:
    """The log-odds that a slot was swapped, as the trees of its group have it; `names` are those of the signs."""
    trees = _groups(names).get(group)
    if trees is None:
        return 0.0
    asked, left, blocks, says = trees
    for sign, limits, leaves in asked:
        left &= leaves[bisect_left(limits, signs[sign])]
    total = 0.0
    for tree, bits in zip(says, blocks.unpack(left.to_bytes(blocks.size, "little")), strict=True):
        total += tree[bits & -bits]
    return total
