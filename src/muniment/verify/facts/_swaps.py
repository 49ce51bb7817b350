"""Decide which slots of a claim the source supports: matched, unmatched or contradicted, with doubts for the latter
two.

`data/slots.json` holds small decision trees for each group of slots, learned by `benchmarks.learn_slots` from claims
with one slot swapped; their sum is compared with a limit in the policy. Negation is checked without them.

The trees of a group are evaluated at once: their leaves are bits side by side, a condition that is true excludes the
leaves of its low side, and the first remaining leaf of each tree is its answer (Lucchese et al., QuickScorer, 2015).
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cache
from struct import Struct
from typing import Literal, NamedTuple, cast

from muniment.core.policy import FactCheckPolicy
from muniment.core.text.word_lists import read_data
from muniment.verify.facts._doubts import Doubt, DoubtKind, ErrorType
from muniment.verify.facts._slots import SLOT_KINDS, Seen, Signs, SlotKind, is_settled, look_at_slots
from muniment.verify.facts._source import Claim, Source

State = Literal["matched", "unmatched", "contradicted"]
_ERRORS: dict[SlotKind, ErrorType] = {
    "subject": "EntE",
    "object": "EntE",
    "place": "CircE",
    "time": "CircE",
    "number": "EntE",
    "verb": "PredE",
    "polarity": "PredE",
    "word": "PredE",
}
_KINDS: dict[SlotKind, DoubtKind] = {
    "subject": "subject_unmatched",
    "object": "object_unmatched",
    "place": "place_unmatched",
    "time": "time_unmatched",
    "number": "number_unmatched",
    "verb": "verb_unmatched",
    "polarity": "polarity_changed",
    "word": "word_unmatched",
}
_SURE = 0.9


class Slots(NamedTuple):
    """Number of slots of one kind, by result."""

    matched: int = 0
    unmatched: int = 0
    contradicted: int = 0

    def share(self, state: State) -> float:
        """The share of the slots in a state; 0 if there are none."""
        total = sum(self)
        return float(getattr(self, state)) / total if total else 0.0


class Alignment(NamedTuple):
    """The slots of a claim by kind."""

    subject: Slots = Slots()
    object: Slots = Slots()
    place: Slots = Slots()
    time: Slots = Slots()
    number: Slots = Slots()
    verb: Slots = Slots()
    polarity: Slots = Slots()
    word: Slots = Slots()
    swapped: float = 0.0
    """Margin in log-odds by which the most doubtful slot exceeds its limit; negative if none does."""


def is_usurped(seen: Seen) -> bool:
    """True if the evidence has another name on this side of the same verb, with the same other side."""
    signs = seen.signs
    return seen.group == "name" and signs.usurped >= _SURE and signs.filled < signs.usurped


def _over_limit(seen: Seen, limits: dict[str, float]) -> float:
    """Margin of a slot over its group's limit, in log-odds: above 0 it counts as swapped."""
    signs = seen.signs
    if seen.slot.kind == "polarity":
        return 1.0 if denial_differs(seen) else -1.0
    if is_settled(seen):
        return -1.0
    if is_usurped(seen):
        return 1.0
    return swap_score(seen.group, Signs._fields, signs) - limits[seen.group]


def denial_differs(seen: Seen) -> bool:
    """True if the claim adds a negation that the evidence lacks, or loses one it has."""
    signs = seen.signs
    if seen.group == "lost":
        return bool(signs.aligned and signs.other and signs.best >= 0.5)
    return bool(signs.added or not (signs.aligned or signs.best))


def match_slots(
    claim: Claim, source: Source, policy: FactCheckPolicy, doubted: Collection[Doubt]
) -> tuple[Alignment, list[Doubt]]:
    """Classify the slots, and raise a doubt for each that the source does not support and nothing doubts yet."""
    limits: dict[str, float] = vars(policy.slots)
    counts = {kind: [0, 0, 0] for kind in SLOT_KINDS}
    doubts: list[Doubt] = []
    most = -1e9
    for seen in look_at_slots(claim, source):
        over = _over_limit(seen, limits)
        most = max(most, over)
        if over <= 0:
            counts[seen.slot.kind][0] += seen.group != "lost"
            continue
        doubt = _doubt(claim, seen)
        counts[seen.slot.kind][2 if doubt.contradicts else 1] += 1
        if not any(one.start < doubt.end and one.end > doubt.start and not one.quiet for one in doubted):
            doubts.append(doubt)
    return Alignment(**{kind: Slots(*row) for kind, row in counts.items()}, swapped=round(max(most, -9.0), 6)), doubts


def _doubt(claim: Claim, seen: Seen) -> Doubt:
    slot, signs = seen.slot, seen.signs
    start, end = claim.words[slot.at].start, claim.words[slot.end - 1].end
    text = claim.text[start:end]
    theirs = seen.instead.text if seen.instead is not None else ""
    if slot.kind == "polarity":
        lost = seen.group == "lost"
        why = (
            f"polarity: the evidence denies “{text}” (“{theirs}”), the claim does not"
            if lost
            else (f"polarity: the evidence does not deny this, the claim says “{text}”")
        )
        instead = "" if not lost and text in ("not", "never") else None
        return Doubt("polarity_changed", "PredE", start, end, why, 1.0, instead, claim.best)
    error = _ERRORS[slot.kind]
    if signs.absent >= 1 and slot.kind not in ("verb", "word"):
        error = "OutE"
    where = "is not in the source" if signs.absent else "is not said so by the evidence"
    why = f"{slot.kind}: “{text}” {where}" + (f", which has “{theirs}” there" if theirs else "")
    opposite = slot.kind in ("verb", "word") and bool(signs.turned)
    sure = bool(theirs) and (opposite or (slot.kind not in ("verb", "word") and bool(signs.tight)))
    return Doubt(_KINDS[slot.kind], error, start, end, why, 1.0, theirs if sure else None, claim.best)


# -- trees ---------------------------------------------------------------------------------------------

_BLOCKS = (("B", 8), ("H", 16), ("I", 32), ("Q", 64))
"""`struct` codes of bit blocks and their sizes: the maximum leaves of a tree."""
_Row = float | Sequence[object]
"""A tree as stored: a leaf, or the sign tested, its threshold, the subtree up to it, and the one above it."""


class _Asked(NamedTuple):
    """All conditions on one sign: thresholds in rising order, and the leaves that remain above the first n of them."""

    sign: int
    limits: tuple[float, ...]
    left: tuple[int, ...]


class _Trees(NamedTuple):
    asked: tuple[_Asked, ...]
    every: int
    """A bit for every leaf of all trees."""
    blocks: Struct
    """The layout of the bits by tree."""
    says: tuple[dict[int, float], ...]
    """The value of each leaf of a tree, by its bit."""


@cache
def _trees_by_group(names: tuple[str, ...]) -> dict[str, _Trees]:
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
    """The number of leaves of a tree."""
    return 1 if isinstance(row, float | int) else sum(map(_count, cast("Sequence[_Row]", row[2:])))


def _lay_out(
    row: _Row, start: int, values: list[float], barred: dict[int, list[tuple[float, int]]], signs: Sequence[str]
) -> None:
    """Number the leaves of a tree from left to right, and collect the low-side leaves of each condition."""
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
    """The log-odds that a slot was swapped, from the trees of its group; `names` are those of the signs."""
    trees = _trees_by_group(names).get(group)
    if trees is None:
        return 0.0
    asked, left, blocks, says = trees
    for sign, limits, leaves in asked:
        left &= leaves[bisect_left(limits, signs[sign])]
    total = 0.0
    for tree, bits in zip(says, blocks.unpack(left.to_bytes(blocks.size, "little")), strict=True):
        total += tree[bits & -bits]
    return total
