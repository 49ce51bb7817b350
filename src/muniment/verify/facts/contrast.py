"""Would another word of the source fill a slot better than the claim's own? Each slot is put to the test.

Two tests. By *roles*: the source has the claim's verb, with the same other side: who or what stands on this side of it
there, the claim's name or another? By *nearness*: how much of what stands around the slot in the claim stands around
its own word in the source, and how much around any other word of its sort? A word that is the best filler is trusted;
one that another surpasses is suspect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muniment.verify.facts.claims import Claim
from muniment.verify.facts.lexicon import GENDER
from muniment.verify.facts.related import relation
from muniment.verify.facts.roles import Phrase, Roles, find_breaks, is_act, read_roles
from muniment.verify.facts.slots import Slot
from muniment.verify.facts.source import Source
from muniment.verify.facts.synonyms import alike
from muniment.verify.facts.words import Word

__all__ = ["Fillers", "antecedent", "claim_roles", "compare_verbs", "fill_role", "measure_lead"]

_OCCURRENCES_MAX = 12
_SPOTS_MAX = 4
_ALONE = 0.4
"""What the same verb is worth where its other side is another; where that is open, half of the rest more."""
_PRONOUN = 0.9
"""What is said of a pronoun is so sure of the name that it most likely stands for."""
_SLACK = 3
_FAR = 0.6
_LIKE = 0.7
_BACK = 2
"""Sentences before one with a pronoun in which the name it stands for is looked for."""

_Hits = list[tuple[float, int, Sequence[int]]]
"""What a word around the slot is worth, its place in the claim, its places in a sentence."""


class Fillers(NamedTuple):
    """By roles: how well the claim's own word fills its slot somewhere, and another one; which one that is."""

    filled: float = 0.0
    usurped: float = 0.0
    open: float = 0.0
    """The slot is filled by a pronoun or a common noun there."""
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


def claim_roles(claim: Claim) -> dict[int, Roles]:
    """Each verb of a claim with its sides."""
    breaks = find_breaks(claim.text, claim.words)
    return {at: read_roles(claim.words, breaks, at) for at, role in enumerate(claim.roles) if role == "verb"}


def fill_role(claim: Claim, source: Source, slot: Slot, roles: dict[int, Roles]) -> Fillers:
    """Who stands in the source where the claim has this name, beside the same verb?"""
    verb, side = _role_of(slot, roles)
    if verb < 0:
        return Fillers()
    own = {form.key for at in range(slot.at, slot.end) for form in claim.variants[at]}
    other = roles[verb].side("patient" if side == "agent" else "agent")
    theirs = _forms(claim, other)
    filled = usurped = unsaid = 0.0
    by: Word | None = None
    spot = -1
    for place, position in _occurrences(claim, source, verb):
        there = _roles_at(source, place, position)
        mine = there.side(side)
        value = _worth(theirs, there.side("patient" if side == "agent" else "agent"), source, place)
        keys = _stand_for(source, place, mine) if mine is not None and mine.open else None
        if keys:
            value *= _PRONOUN
            if not own.isdisjoint(keys[:2]):
                filled = max(filled, value)
            elif own.isdisjoint(keys):
                usurped = max(usurped, value * (place in claim.tops))
        elif mine is None or mine.open or not _is_named(mine, source):
            unsaid = max(unsaid, value * (place in claim.tops))
        elif not own.isdisjoint(mine.keys):
            if value > filled:
                filled, spot = value, place
        elif place in claim.tops and value > usurped:
            usurped = value
            words = source.sentences[place].words
            by = next((word for word in words[mine.at : mine.end] if word.kind == "name"), None)
            spot = place if not filled else spot
    return Fillers(filled, usurped, unsaid, by, spot)


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
        words = source.sentences[place].words
        for position in _acts(source, place):
            there = _roles_at(source, place, position)
            value = _both(mine, there, source)
            if value <= 0:
                continue
            other = words[position]
            near = 1.0 if other.key == key else max(relation(key, other.key), _LIKE if other.key in like else 0.0)
            if value * near > filled:
                filled = value * near
            if near < _LIKE and value > usurped:
                usurped, by = value, other
    return Fillers(filled, usurped, 0.0, by)


def _acts(source: Source, place: int) -> list[int]:
    found = source.acts.get(place)
    if found is None:
        words = source.sentences[place].words
        found = source.acts[place] = [at for at in range(len(words)) if is_act(words, at)][:_OCCURRENCES_MAX]
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
        rows = source.positions(place)
        for key in keys:
            for position in rows.get(key, ())[:_SPOTS_MAX]:
                yield place, position


# -- by nearness --------------------------------------------------------------------------------------


def _hits_of(claim: Claim, source: Source, context: Sequence[tuple[int, float]], place: int) -> _Hits:
    """The words around a slot that a sentence has."""
    rows = source.positions(place)
    found: _Hits = []
    for at, weight in context:
        best: tuple[float, int, Sequence[int]] | None = None
        for form in claim.variants[at]:
            spots = rows.get(form.key)
            if spots is not None and (best is None or weight * form.degree > best[0]):
                best = (weight * form.degree, at, spots)
        if best is not None:
            found.append(best)
    return found


def _value(hits: _Hits, shift: int) -> float:
    held = 0.0
    for worth, at, spots in hits:
        apart = min(abs(spot - at - shift) for spot in spots)
        held += worth if apart <= _SLACK else worth * _FAR
    return held


def measure_lead(
    claim: Claim, source: Source, slot: Slot, context: Sequence[tuple[int, float]], own: Sequence[str]
) -> float:
    """How much more of the context stands around the slot's own word than around the best other one of its sort: 1 all
    of it, 0.5 as much, 0 all of it around the other."""
    total = sum(weight for _, weight in context)
    if not total:
        return 0.5
    kind = claim.words[slot.at].kind
    ours = most = 0.0
    for place in dict.fromkeys((*claim.tops, *claim.near)):
        hits = _hits_of(claim, source, context, place)
        if not hits:
            continue
        for position, word in _sort(source, place, kind):
            value = _value(hits, position - slot.at)
            if word.key in own:
                ours = max(ours, value)
            elif value > most and word.key not in claim.keys:
                most = value
    return (1 + (ours - most) / total) / 2


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


def antecedent(claim: Claim, source: Source, own: Sequence[str]) -> float:
    """Where a good sentence has a pronoun: 1 if the name before it that it most likely stands for is the slot's own,
    0.5 if that is another one of the sentences before, 0 if it is none or there is no pronoun."""
    found = 0.0
    for top in claim.tops:
        words = source.sentences[top].words
        spot = next((at for at, word in enumerate(words) if word.key in GENDER), None)
        if spot is None:
            continue
        names = _names_before(source, top, spot)
        if any(key in own for key in names[:2]):
            return 1.0
        if any(key in own for key in names):
            found = 0.5
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
