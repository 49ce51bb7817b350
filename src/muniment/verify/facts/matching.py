"""Which slots of a claim the source bears: matched, unmatched or contradicted, and the doubts of those it does not.

`data/slots.json` holds small trees of questions for each group of slots, learned by `benchmarks.learn_slots` from
claims with one slot swapped; what they come to is compared with a limit in the policy. Whether a denial is shared is
asked without them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from muniment.core.policy import FactCheckPolicy
from muniment.verify.facts.alignment import Seen, Signs, is_settled, look_at_slots
from muniment.verify.facts.claims import Claim
from muniment.verify.facts.doubts import Doubt, DoubtKind, ErrorType
from muniment.verify.facts.slots import SLOT_KINDS, SlotKind
from muniment.verify.facts.source import Source
from muniment.verify.facts.swap_trees import swap_score

__all__ = ["Alignment", "Slots", "denial_differs", "is_settled", "is_usurped", "match_slots", "swap_score"]

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
    """How many slots of one kind there are, and what became of them."""

    matched: int = 0
    unmatched: int = 0
    contradicted: int = 0

    def share(self, state: State) -> float:
        """The share of the slots in a state; 0 where there is no slot."""
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
    """How far the most doubtful slot lies over its limit, in log-odds; below 0: under it."""


def is_usurped(seen: Seen) -> bool:
    """Does another name stand on this side of the same verb in the evidence, the other side being the same?"""
    signs = seen.signs
    return seen.group == "name" and signs.usurped >= _SURE and signs.filled < signs.usurped


def _over_limit(seen: Seen, limits: dict[str, float]) -> float:
    """How far a slot lies over the limit of its group, in log-odds: above 0 it counts as swapped."""
    signs = seen.signs
    if seen.slot.kind == "polarity":
        return 1.0 if denial_differs(seen) else -1.0
    if is_settled(seen):
        return -1.0
    if is_usurped(seen):
        return 1.0
    return swap_score(seen.group, Signs._fields, signs) - limits[seen.group]


def denial_differs(seen: Seen) -> bool:
    """Is a denial added that the evidence does not make, or one lost that it makes?"""
    signs = seen.signs
    if seen.group == "lost":
        return bool(signs.aligned and signs.other and signs.best >= 0.5)
    return bool(signs.added or not (signs.aligned or signs.best))


def match_slots(
    claim: Claim, source: Source, policy: FactCheckPolicy, doubted: Collection[Doubt]
) -> tuple[Alignment, list[Doubt]]:
    """The slots by what became of them, and a doubt for each that the source does not bear and nothing doubts yet."""
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
