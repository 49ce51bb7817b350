"""Would another word of the source fill a slot better than the claim's own? Each name and verb is put to the test.

The source has the claim's verb with the same other side: who stands on this side of it there, the claim's name or
another? And between the same two sides: does the claim's verb stand there, one like it, or another? A word that fills
its slot is trusted; one in whose place another stands is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from muniment.verify.facts.claims import Claim
from muniment.verify.facts.related import relation
from muniment.verify.facts.roles import Phrase, Roles, find_breaks, is_act, read_roles
from muniment.verify.facts.slots import Slot
from muniment.verify.facts.source import Source
from muniment.verify.facts.synonyms import alike
from muniment.verify.facts.words import Word

__all__ = ["Acts", "Fillers", "compare_verbs", "fill_role"]

_OCCURRENCES_MAX = 12
_SPOTS_MAX = 4
_ALONE = 0.4
"""What the same verb is worth where its other side is another; where that is open, half of the rest more."""
_PRONOUN = 0.9
"""What is said of a pronoun is so sure of the name that it most likely stands for."""
_LIKE = 0.7
_BACK = 2
"""Sentences before one with a pronoun in which the name it stands for is looked for."""


class Fillers(NamedTuple):
    """By roles: how well the claim's own word fills its slot somewhere, and another one; which one that is."""

    filled: float = 0.0
    usurped: float = 0.0
    by: Word | None = None
    place: int = -1


def _roles_at(source: Source, place: int, position: int) -> Roles:
    """The sides of a word of the source; worked out once."""
    found = source.roles.get((place, position))
    if found is None:
        sentence = source.sentences[place]
        breaks = source.breaks.get(place)
        if breaks is None:
            text = source.documents[sentence.document].text[sentence.start : sentence.end]
            breaks = source.breaks[place] = find_breaks(text, sentence.words)
        found = source.roles[place, position] = read_roles(sentence.words, breaks, position)
    return found


class Acts:
    """The verbs of a claim with their sides, and where the source has each. One object for each claim."""

    def __init__(self, claim: Claim, source: Source) -> None:
        self._claim = claim
        self._source = source
        breaks = find_breaks(claim.text, claim.words) if "verb" in claim.roles else ()
        self.roles = {at: read_roles(claim.words, breaks, at) for at, role in enumerate(claim.roles) if role == "verb"}
        self._found: dict[int, list[tuple[int, int]]] = {}

    def occurrences(self, verb: int) -> list[tuple[int, int]]:
        """The sentences and places where the source has a verb."""
        found = self._found.get(verb)
        if found is None:
            found = self._found[verb] = list(_occurrences(self._claim, self._source, verb))
        return found


def fill_role(claim: Claim, source: Source, slot: Slot, acts: Acts) -> Fillers:
    """Who stands in the source where the claim has this name, beside the same verb?"""
    roles = acts.roles
    verb, side = _role_of(slot, roles)
    if verb < 0:
        return Fillers()
    own = {form.key for at in range(slot.at, slot.end) for form in claim.variants[at]}
    other = roles[verb].side("patient" if side == "agent" else "agent")
    theirs = _forms(claim, other)
    filled = usurped = 0.0
    by: Word | None = None
    spot = -1
    key = claim.words[verb].key
    for place, position in acts.occurrences(verb):
        sure = place in claim.tops and position in source.positions(place).get(key, ())
        there = _roles_at(source, place, position)
        mine = there.side(side)
        value = _worth(theirs, there.side("patient" if side == "agent" else "agent"), source, place)
        keys = _stand_for(source, place, mine) if mine is not None and mine.open else None
        if keys:
            value *= _PRONOUN
            if not own.isdisjoint(keys[:2]):
                filled = max(filled, value)
            elif own.isdisjoint(keys):
                usurped = max(usurped, value * sure)
        elif mine is None or mine.open or not _is_named(mine, source):
            continue  # a common noun may stand for anybody
        elif not own.isdisjoint(mine.keys):
            if value > filled:
                filled, spot = value, place
        elif sure and value > usurped:
            usurped = value
            words = source.sentences[place].words
            by = next((word for word in words[mine.at : mine.end] if word.kind == "name"), None)
            spot = place if not filled else spot
    return Fillers(filled, usurped, by, spot)


def compare_verbs(claim: Claim, source: Source, verb: int, roles: Roles) -> Fillers:
    """Which verb stands between the same sides in the source: the claim's, one like it, or another?"""
    mine = (_forms(claim, roles.agent), _forms(claim, roles.patient))
    if mine == (None, None):
        return Fillers()
    key = claim.words[verb].key
    like = alike(key)
    filled = usurped = 0.0
    by: Word | None = None
    for place in claim.tops:
        for position, other in _acts(source, place):
            there = _roles_at(source, place, position)
            value = _both(mine, there, source)
            if value <= 0:
                continue
            near = 1.0 if other.key == key else max(relation(key, other.key), _LIKE if other.key in like else 0.0)
            if value * near > filled:
                filled = value * near
            if near < _LIKE and value > usurped:
                usurped, by = value, other
    return Fillers(filled, usurped, by)


def _acts(source: Source, place: int) -> list[tuple[int, Word]]:
    """What a sentence says is done, and where it says so."""
    found = source.acts.get(place)
    if found is None:
        words = source.sentences[place].words
        found = source.acts[place] = [(at, word) for at, word in enumerate(words) if is_act(words, at)][
            :_OCCURRENCES_MAX
        ]
    return found


def _both(mine: tuple[set[str] | None, set[str] | None], there: Roles, source: Source) -> float:
    """How far both sides are the same: a half for each; a side that is open counts a quarter where the other is met."""
    value = met = 0.0
    for own, phrase in zip(mine, (there.agent, there.patient), strict=True):
        if own is None or phrase is None:
            continue
        if not own.isdisjoint(phrase.keys):
            value += 0.5
            met = 1.0
        elif phrase.open or not _is_named(phrase, source):
            value += 0.2
    return value * met


def _role_of(slot: Slot, roles: dict[int, Roles]) -> tuple[int, str]:
    for verb, sides in roles.items():
        for name in ("agent", "patient"):
            phrase = sides.side(name)
            if phrase is not None and phrase.at < slot.end and phrase.end > slot.at:
                return verb, name
    return -1, ""


def _forms(claim: Claim, phrase: Phrase | None) -> set[str] | None:
    """What may stand in the source for a side of a claim's verb; None where it has none or leaves it open."""
    if phrase is None or phrase.open:
        return None
    return {form.key for at in range(phrase.at, phrase.end) for form in claim.variants[at]}


def _worth(own: set[str] | None, phrase: Phrase | None, source: Source, place: int) -> float:
    """What a verb of the source is worth by its other side: the same, open, or another."""
    if own is not None and phrase is not None and phrase.open:
        return 1.0 if not own.isdisjoint(_stand_for(source, place, phrase)) else (1 + _ALONE) / 2
    if own is None or phrase is None:
        return (1 + _ALONE) / 2
    if not own.isdisjoint(phrase.keys):
        return 1.0
    return _ALONE if _is_named(phrase, source) else (1 + _ALONE) / 2


def _is_named(phrase: Phrase, source: Source) -> bool:
    return phrase.named or not phrase.keys.isdisjoint(source.named)


def _occurrences(claim: Claim, source: Source, verb: int) -> Iterator[tuple[int, int]]:
    """Where the source has the verb, the sentences that cover the claim best first."""
    keys = [form.key for form in claim.variants[verb]]
    tops = [place for place in claim.tops if any(key in source.keys[place] for key in keys)]
    near = [at for at in claim.near if at not in tops]
    places = [*tops, *near, *(place for key in keys for place in source.spread.get(key, ())[:_OCCURRENCES_MAX])]
    for place in list(dict.fromkeys(places))[:_OCCURRENCES_MAX]:
        if not any(key in source.keys[place] for key in keys):
            continue
        rows = source.positions(place)
        for key in keys:
            for position in rows.get(key, ())[:_SPOTS_MAX]:
                yield place, position


def _sort(source: Source, place: int, kind: str) -> list[tuple[int, Word]]:
    """The words of one sort in a sentence."""
    found = source.sorts.get((place, kind))
    if found is None:
        words = source.sentences[place].words
        found = source.sorts[place, kind] = [
            (at, word)
            for at, word in enumerate(words)
            if word.kind == kind and (at > 0 or kind != "name" or word.key in source.named)
        ]
    return found


def _names_before(source: Source, place: int, spot: int) -> list[str]:
    """The names that a pronoun may stand for: of its sentence before it, else of the next sentence before that has
    any."""
    names = [word.key for at, word in _sort(source, place, "name") if at < spot]
    for back in range(1, _BACK + 1):
        if names or place - back < 0:
            break
        names = [word.key for _, word in _sort(source, place - back, "name")]
    return names


def _stand_for(source: Source, place: int, phrase: Phrase) -> list[str]:
    return _names_before(source, place, phrase.at)
