"""Of values that are stated of one matter, the later above the earlier: decided over passages, and over nothing else.

A long turn is about many things, and words of a query stand all over it. So what is compared is a passage: it has to
say much of what is asked *beside* a value of the kind that is asked for. Two such passages by one person, of one kind
of value, are two states of the same matter, whatever else their turns say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from muniment.core.text.analyzer import term_hash
from muniment.core.text.stated.measures import MEASURES, counted, stated
from muniment.memory.recall.query import Query

__all__ = ["Passage", "Stating", "marks_wanted", "newer_above", "wanted_values"]


class Passage(NamedTuple):
    """What a passage of a turn says, as bits."""

    slots: int
    """The slots of the query."""
    values: int
    """The values it states: one bit for each of `MEASURES`, then one for each slot that is counted."""


class Stating(NamedTuple):
    """A turn that was found, by the passages in which it states a value."""

    ordinal: int
    session: int
    speaker: int
    when: tuple[int, int]
    """Its second, and its place within that."""
    passages: Sequence[Passage]

    def is_after(self, other: Stating) -> bool:
        """Surely later: of one moment only within a session."""
        if self.when == other.when:
            return self.session == other.session and self.ordinal > other.ordinal
        return self.when > other.when


def marks_wanted(query: Query) -> list[int]:
    """What marks the values that may answer: each kind, each slot that is counted; nothing where none is asked for."""
    if query.looks_back or not (query.quantity or query.measures):
        return []
    return [term_hash(mark) for mark in [*map(stated, MEASURES), *[counted(slot.word) for slot in query.slots]]]


def wanted_values(query: Query, found: Sequence[int]) -> int:
    """The bits of the values that may answer.

    Those of the kinds that the query names and those of what it has counted; those of any kind where it names none, or
    where among what was `found` there are no two to compare.
    """
    size = len(MEASURES) + len(query.slots)
    if "number" in query.measures:
        return (1 << size) - 1
    wanted = ((1 << len(query.slots)) - 1) << len(MEASURES)
    for place, measure in enumerate(MEASURES):
        wanted |= (measure in query.measures) << place
    return wanted if sum([bool(values & wanted) for values in found]) > 1 else (1 << size) - 1


def newer_above(
    stating: Mapping[int, Stating], wanted: int, weigh: Callable[[int], float], match: float, overlap: float
) -> dict[int, list[int]]:
    """By the place of an older value, the places of the newer ones that belong above it, the newest first.

    `match` is the share of the most that any says of what is asked, beside a value, that each of two has to say;
    `overlap` the share of what either of them says that both do.
    """
    best = {place: each for place, turn in stating.items() if (each := _best(turn.passages, wanted, weigh)) is not None}
    least = match * max([weigh(each.slots) for each in best.values()], default=0.0)
    places = [place for place, each in best.items() if 0 < least <= weigh(each.slots)]
    newest = sorted(places, key=lambda place: (stating[place].when, stating[place].ordinal), reverse=True)
    found = {}
    for place in places:
        turn, older = stating[place], best[place]
        newer = [
            other
            for other in newest
            if stating[other].is_after(turn)
            and stating[other].speaker == turn.speaker
            and best[other].values & older.values & wanted
            and weigh(best[other].slots & older.slots) >= overlap * weigh(best[other].slots | older.slots)
        ]
        if newer:
            found[place] = newer
    return found


def _best(passages: Sequence[Passage], wanted: int, weigh: Callable[[int], float]) -> Passage | None:
    """The passage that says most of what is asked beside a value that is wanted; of several, the first."""
    return max([each for each in passages if each.values & wanted], key=lambda each: weigh(each.slots), default=None)
