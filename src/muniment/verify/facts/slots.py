"""The slots of a claim: who, did what, to whom, when, where, how many, and whether it is denied.

Read from the row of words alone: names by their capitals, numbers and dates as they are written, verbs by their form
and the tables. Subject and object are told by the verb between them, places and times by what stands before them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal, NamedTuple

from muniment.verify.facts.claims import Claim
from muniment.verify.facts.doubts import circumstance
from muniment.verify.facts.lexicon import ARTICLES

__all__ = ["SLOT_KINDS", "Slot", "SlotKind", "read_slots"]

SlotKind = Literal["subject", "object", "place", "time", "number", "verb", "polarity", "word"]
SLOT_KINDS: tuple[SlotKind, ...] = ("subject", "object", "place", "time", "number", "verb", "polarity", "word")


class Slot(NamedTuple):
    """The places of a slot's words in the claim (`end` is behind the last), and the verb it hangs on (-1: none)."""

    kind: SlotKind
    at: int
    end: int
    verb: int = -1


def read_slots(claim: Claim) -> list[Slot]:
    """All slots, in reading order."""
    slots: list[Slot] = []
    verbs = [at for at, role in enumerate(claim.roles) if role == "verb"]
    at = 0
    while at < len(claim.words):
        role, end = claim.roles[at], at + 1
        if role == "name":
            while end < len(claim.words) and claim.roles[end] == "name" and _adjoin(claim, end):
                end += 1
            verb = _nearest(verbs, at)
            slots.append(Slot(_name_kind(claim, at, verb), at, end, verb))
        elif role == "number":
            kind: SlotKind = "time" if _is_year(claim, at) or _beside_month(claim, at) else "number"
            slots.append(Slot(kind, at, end, _nearest(verbs, at)))
        elif role == "date":
            slots.append(Slot("time", at, end, _nearest(verbs, at)))
        elif role == "verb":
            slots.append(Slot("verb", at, end, at))
        elif role == "negation":
            slots.append(Slot("polarity", at, end, _nearest(verbs, at)))
        elif role in ("word", "link"):
            slots.append(Slot("word", at, end, _nearest(verbs, at)))
        at = end
    return slots


def _adjoin(claim: Claim, at: int) -> bool:
    return claim.text[claim.words[at - 1].end : claim.words[at].start] in (" ", "-", ". ", "")


def _nearest(verbs: Sequence[int], at: int) -> int:
    """Of the verbs, which rise, the one that stands nearest; the one before where two stand equally near."""
    behind = bisect_left(verbs, at)
    near = verbs[max(0, behind - 1) : behind + 1]
    return min(near, key=lambda verb: (abs(verb - at), verb), default=-1)


def _name_kind(claim: Claim, at: int, verb: int) -> SlotKind:
    before = claim.words[at - 1].key if at else ""
    if before in ARTICLES and at > 1:
        before = claim.words[at - 2].key
    if circumstance(claim, at) or before in ("to", "into", "across", "through"):
        return "place"
    return "subject" if verb < 0 or at < verb else "object"


def _is_year(claim: Claim, at: int) -> bool:
    text = claim.words[at].text
    return len(text) == 4 and text.isdecimal() and "1500" <= text <= "2100"


def _beside_month(claim: Claim, at: int) -> bool:
    near = claim.roles[max(0, at - 1) : at + 2]
    return "date" in near
