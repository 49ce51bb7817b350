"""The slots of a claim (who, did what, to whom, when, where, how many, negated or not), each compared with the source.

A slot is described by a few numbers: whether its word occurs in the sentences that cover the claim best, near them,
elsewhere or nowhere; how much of its context in the claim also surrounds it in the source (`tie`), compared with how
much of that context the best sentence has without it (`frame`); whether another word of its sort takes its place
(`rival`). Learned weights combine them into the log-odds that the slot was swapped (`_swaps`). Nothing is random, and
sums follow the order of words: the same bytes everywhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal, NamedTuple

from muniment.verify.facts._doubts import circumstance
from muniment.verify.facts._roles import Acts, Fillers, compare_verbs, fill_role
from muniment.verify.facts._senses import LIKE, SAME, is_irregular, nearest_kin, opposed
from muniment.verify.facts._source import Claim, Source
from muniment.verify.facts._words import (
    ARTICLES,
    GENDER,
    LINKS,
    NOT_ALONE,
    OPPOSED_LINKS,
    PASSIVE,
    Word,
    denying_stems,
    negates,
)

_PLACES_MAX = 12
_SLOTS_MAX = 100
"""Slots examined; a claim with more is a list or a table."""
_GAP_MAX = 5
_DENIAL_REACH = 5
_ALIGN_WORDS_MAX = 120
_LIGHT_TEXT = (
    "be is are was were been have has had do does did make made get got go went come came take took give gave use used "
    "say said include includ become becam seem appear know known see seen find found call name consid regard refer "
    "mean need want help keep kept let put set show base relat involv caus lead led provid contain"
)
_LIGHT = frozenset(_LIGHT_TEXT.split())
GROUP_OF: dict[SlotKind, str] = {
    "subject": "name",
    "object": "name",
    "place": "name",
    "time": "time",
    "number": "number",
    "verb": "verb",
    "polarity": "polarity",
    "word": "word",
}


class Signs(NamedTuple):
    """Measurements of a slot, each from 0 to 1."""

    absent: float = 0.0
    """Share of its words that the source lacks."""
    best: float = 0.0
    """Occurs in the sentence that covers the claim best,"""
    top: float = 0.0
    """in another that covers it well,"""
    near: float = 0.0
    """or next to one of these."""
    tie: float = 0.0
    frame: float = 0.0
    gap: float = 0.0
    """How much less of its context surrounds it than occurs without it."""
    aligned: float = 0.0
    """Aligned word by word between the claim and the best sentence."""
    rival: float = 0.0
    left: float = 0.0
    right: float = 0.0
    """The same word comes before it, or after it."""
    turned: float = 0.0
    """Occurs on the other side of the same verb."""
    straight: float = 0.0
    """For a name: on the same side of the same verb, active or passive. For a verb: the share of the names next to it
    that the best sentence has.
    """
    topic: float = 0.0
    """For a name: its frequency in the source. For a verb: 1 if it has little meaning. For a number: 1 if it is a small
    count.
    """
    other: float = 0.0
    """For a name: a pronoun may refer to it there. For a number: it counts the same thing. For a verb or word: its
    opposite occurs.
    """
    degree: float = 0.0
    """Similarity of the best replacement in the best sentence,"""
    degree_near: float = 0.0
    """or in one of the sentences around it."""
    close: float = 0.0
    """Share of the three words around it that occur close to it somewhere."""
    whole: float = 0.0
    """For a name: its words are adjacent in the source. For a verb: the best sentence has another."""
    sort: float = 0.0
    """For a name: 0 before its verb, 0.5 after it, 1 a place. For a time: 1 if a number. For a verb: 1 if the first."""
    size: float = 0.0
    """Inverse of the source's number of sentences: 1 for one, 0.5 for two, …"""
    tight: float = 0.0
    """Its neighbours match the best sentence, which has another word between them."""
    added: float = 0.0
    """Its neighbours are adjacent in the best sentence."""
    verbatim: float = 0.0
    """Share of the claim's other words that the best sentence has in the same order."""
    covered: float = 0.0
    unknown: float = 0.0
    """Share of the claim's other words that the source lacks."""
    filled: float = 0.0
    """On the same side of the same verb with the same other side. For a verb: between the same sides."""
    usurped: float = 0.0
    """Another word is there instead."""


class Seen(NamedTuple):
    """A slot with its measurements, the word in its place in the evidence, and that sentence."""

    slot: Slot
    group: str
    signs: Signs
    instead: Word | None = None
    place: int = -1


_Rest = dict[str, float]
"""Measurements of the rest of the claim, by sign name."""


class _Side(NamedTuple):
    """The alignment of the claim with its best sentence: word index in the claim → in the sentence."""

    met: dict[int, int]
    words: tuple[Word, ...]
    place: int


def look_at_slots(claim: Claim, source: Source) -> list[Seen]:
    """Measure every slot of a claim; for a settled one, only the signs that settle it."""
    if claim.best < 0:
        return []
    side = _meet(claim, source)
    around, acts = Surroundings(claim, source), Acts(claim, source)
    unknown = {at for at in claim.content if not claim.variants[at]}
    found: list[Seen] = []
    for slot in read_slots(claim)[:_SLOTS_MAX]:
        others = max(1, len(claim.content) - (slot.end - slot.at))
        own = len(unknown.intersection(range(slot.at, slot.end))) if unknown else 0
        base = _rest(claim, len(source), slot, side, min(1.0, (len(unknown) - own) / others))
        if slot.kind == "polarity":
            found.append(_denial(claim, source, slot, base))
        elif slot.kind in ("verb", "word"):
            found.append(_said(claim, source, slot, side, base, around, acts))
        else:
            found.append(_held(claim, source, slot, side, base, around, acts))
    found.extend(_lost_denials(claim, source, side))
    return found


def is_settled(seen: Seen) -> bool:
    """Return whether a slot is certainly not swapped: a name on the same side of the same verb with no other name
    there, a verb with the same sense or between the same sides in the best sentence, or a merely added word.

    It reads few signs, which are measured first: if they settle a slot, the rest is skipped.
    """
    signs = seen.signs
    if seen.group == "verb":
        return (SAME <= signs.degree < 1 and signs.other == 0) or signs.filled >= 1
    if seen.group == "name":
        straight = signs.straight and signs.best and not signs.usurped
        return bool(signs.absent == 0 and (signs.filled >= 1 or straight))
    if seen.group == "number":  # "one of the", "two families": counted from the named things
        return bool(signs.absent and signs.topic and not (signs.rival or signs.tight))
    return seen.group == "word" and not (signs.rival or signs.other or signs.tight)


def _rest(claim: Claim, sentences: int, slot: Slot, side: _Side, unknown: float) -> _Rest:
    met = side.met
    size = slot.end - slot.at
    inside = sum(at in met for at in range(slot.at, slot.end))
    before = met.get(slot.at - 1) if slot.at else -1
    behind = met.get(slot.end) if slot.end < len(claim.words) else len(side.words)
    between = -1
    if before is not None and behind is not None and not inside and (slot.at or slot.end < len(claim.words)):
        between = behind - before - 1
    return {
        "size": 1.0 / sentences,
        "tight": float(0 < between <= 1 + size),
        "added": float(between == 0),
        "verbatim": (len(met) - inside) / max(1, len(claim.words) - size),
        "covered": claim.covered,
        "unknown": unknown,
    }


def _meet(claim: Claim, source: Source) -> _Side:
    words = source.sentences[claim.best].words
    theirs = [word.key for word in words]
    if len(claim.words) > _ALIGN_WORDS_MAX or len(words) > _ALIGN_WORDS_MAX:
        at_key = {key: at for at, key in reversed([*enumerate(theirs)])}
        return _Side(
            {at: at_key[word.key] for at, word in enumerate(claim.words) if word.key in at_key}, words, claim.best
        )
    have = set(theirs)
    mine = [
        word.key
        if word.key in have
        else next((form.key for form in claim.variants[at] if form.key in have and form.degree >= LIKE), word.key)
        for at, word in enumerate(claim.words)
    ]
    blocks = SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks()
    return _Side({one + step: two + step for one, two, size in blocks for step in range(size)}, words, claim.best)


# -- names, numbers, dates ----------------------------------------------------------------------------


def _held(claim: Claim, source: Source, slot: Slot, side: _Side, base: _Rest, beside: Surroundings, acts: Acts) -> Seen:
    places = range(slot.at, slot.end)
    content = [at for at in places if claim.words[at].kind != "small"] or [slot.at]
    missing = sum(not claim.variants[at] for at in content) / len(content)
    known = [at for at in content if claim.variants[at]]
    group = GROUP_OF[slot.kind]
    if not known:
        return _unknown(claim, slot, side, base, beside)
    rare = min(known, key=lambda at: (len(source.spread.get(claim.variants[at][0].key, ())), at))
    keys = [form.key for form in claim.variants[rare]]
    spread = _spread(claim, source, keys)
    spots = [(spot, at) for spot in spread for key in keys for at in source.positions(spot).get(key, ())[:4]]
    best, turned, straight = float(claim.best in spread), False, False
    fillers = fill_role(claim, source, slot, acts) if group == "name" else Fillers()
    if group == "name" and slot.verb >= 0:
        turned, straight = _facings(claim, source, slot, rare, spots)
        early = Signs(absent=missing, best=best, straight=float(straight and not turned), **base)
        early = early._replace(filled=fillers.filled, usurped=fillers.usurped)
        if is_settled(Seen(slot, group, early)):
            return Seen(slot, group, early, None, claim.best)
    context = beside.context(slot)
    frame, rival = beside.frame(context), _rival(claim, slot, side, group)
    tie, close, left, right, place = 0.0, 0.0, 0.0, 0.0, -1
    for spot, position in spots:
        value, near = beside.ties(context, spot, position - rare)
        if value > tie or place < 0:
            tie, place = value, spot
        close = max(close, near)
        sentence = source.sentences[spot].words
        left = max(left, _same_left(claim, slot.at, sentence, position - (rare - slot.at)))
        right = max(right, _same_right(claim, slot.end, sentence, position + (slot.end - rare)))
    tops = claim.tops[1:]
    around = {near for top in claim.tops for near in (top - 2, top - 1, top + 1)}
    signs = Signs(
        absent=missing,
        best=best,
        top=float(any(top in spread for top in tops)),
        near=float(any(spot in around for spot in spread)),
        tie=tie,
        frame=frame,
        gap=max(0.0, frame - tie),
        aligned=float(rare in side.met),
        rival=float(rival is not None and rare not in side.met),
        close=close,
        whole=float(all(pair in source.pairs for pair in pairwise(claim.words[at].key for at in places))),
        sort={"object": 0.5, "place": 1.0, "time": float(claim.words[slot.at].kind == "number")}.get(slot.kind, 0.0),
        left=left,
        right=right,
        turned=float(turned and not straight),
        straight=float(straight and not turned),
        topic=_weight_of(claim, source, slot, keys),
        other=_other(claim, source, slot, spread, keys),
        degree_near=float(
            slot.kind == "number" and _opposite(claim.words[rare].text.casefold(), claim, side) is not None
        ),
        degree=max((form.degree for form in claim.variants[rare]), default=0.0),
        filled=fillers.filled,
        usurped=fillers.usurped,
        **base,
    )
    if fillers.usurped > fillers.filled and fillers.by is not None:
        return Seen(slot, group, signs, fillers.by, fillers.place)
    return Seen(slot, group, signs, rival if rare not in side.met else None, place if rare in side.met else claim.best)


def _unknown(claim: Claim, slot: Slot, side: _Side, base: _Rest, beside: Surroundings) -> Seen:
    """Measure a slot whose words the source lacks."""
    group = GROUP_OF[slot.kind]
    frame, rival = beside.frame(beside.context(slot)), _rival(claim, slot, side, group)
    spelled = float(slot.kind == "number" and not claim.words[slot.at].text[:1].isdecimal())
    signs = Signs(absent=1.0, frame=frame, gap=frame, rival=float(rival is not None), topic=spelled, **base)
    return Seen(slot, group, signs, rival, claim.best)


def _spread(claim: Claim, source: Source, keys: Sequence[str]) -> list[int]:
    """Sentences with one of these words, those near the claim's best ones first."""
    every = dict.fromkeys(place for key in keys for place in source.spread.get(key, ()))
    close = [near for top in claim.tops for near in (top, top - 1, top + 1, top - 2) if near in every]
    return list(dict.fromkeys((*close, *every)))[:_PLACES_MAX]


def _same_left(claim: Claim, at: int, sentence: Sequence[Word], position: int) -> float:
    if at == 0 or position <= 0:
        return float(at == 0 and position == 0)
    return float(position <= len(sentence) and claim.words[at - 1].key == sentence[position - 1].key)


def _same_right(claim: Claim, end: int, sentence: Sequence[Word], position: int) -> float:
    if end >= len(claim.words) or not 0 <= position < len(sentence):
        return float(end >= len(claim.words) and position == len(sentence))
    return float(claim.words[end].key == sentence[position].key)


def _facings(claim: Claim, source: Source, slot: Slot, at: int, spots: Sequence[tuple[int, int]]) -> tuple[bool, bool]:
    """Whether a name is on the other side of its verb in some sentence, and whether it is on the same side in some."""
    verbs = [form.key for form in claim.variants[slot.verb]]
    if not verbs:
        return False, False
    mine = (at < slot.verb) != _is_passive(claim.words, slot.verb)
    turned = straight = False
    for place, position in spots:
        rows, sentence = source.positions(place), source.sentences[place].words
        near = (spot for verb in verbs for spot in rows.get(verb, ()) if abs(spot - position) <= CONTEXT_REACH)
        spot = next(near, None)
        if spot is not None:
            is_same = mine == ((position < spot) != _is_passive(sentence, spot))
            turned, straight = turned or not is_same, straight or is_same
    return turned, straight


def _is_passive(words: Sequence[Word], verb: int) -> bool:
    return any(word.key in PASSIVE for word in words[max(0, verb - 3) : verb]) and any(
        word.key == "by" for word in words[verb + 1 : verb + 5]
    )


def _weight_of(claim: Claim, source: Source, slot: Slot, keys: Sequence[str]) -> float:
    if slot.kind == "number":
        return float(not claim.words[slot.at].text[:1].isdecimal())
    most = max(len(source.spread.get(key, ())) for key in keys)
    return min(1.0, most / source.name_count_max)


def _other(claim: Claim, source: Source, slot: Slot, spread: Sequence[int], keys: Sequence[str]) -> float:
    if slot.kind in ("number", "time"):
        behind = [at for at in claim.content if slot.end <= at < slot.end + 3]
        before = [at for at in claim.content if slot.at - 3 <= at < slot.at]
        for at in (*behind[:1], *before[-1:]):
            forms = [form.key for form in claim.variants[at]]
            for spot in spread:
                rows = source.positions(spot)
                spots = [place for form in forms for place in rows.get(form, ())]
                if any(abs(one - two) <= 3 for key in keys for one in rows.get(key, ()) for two in spots):
                    return 1.0
        return 0.0
    for top in claim.tops:
        words = source.sentences[top].words
        if any(word.key in GENDER for word in words) and any(top - 3 <= spot < top for spot in spread):
            return 1.0
    return 0.0


def _rival(claim: Claim, slot: Slot, side: _Side, group: str) -> Word | None:
    """The best sentence's word of the same sort between the same neighbours that the claim lacks."""
    gap = _gap(claim, slot, side)
    for word in side.words[gap[0] : gap[1]] if gap else ():
        if word.key in claim.keys:
            continue
        if group in ("verb", "word"):
            if word.kind == "word":
                return word
        elif word.kind == ("name" if group == "name" else claim.words[slot.at].kind):
            return word
    return None


def _gap(claim: Claim, slot: Slot, side: _Side) -> tuple[int, int] | None:
    """The stretch of the best sentence between the words that the claim has before and after a slot."""
    before = next((at for at in range(slot.at - 1, max(-1, slot.at - 4), -1) if at in side.met), None)
    behind = next((at for at in range(slot.end, min(len(claim.words), slot.end + 3)) if at in side.met), None)
    if before is None and behind is None:
        return None
    first = side.met[before] + 1 if before is not None else max(0, side.met[behind or 0] - (slot.end - slot.at) - 1)
    last = side.met[behind] if behind is not None else min(len(side.words), first + (slot.end - slot.at) + 1)
    if not 0 < last - first <= _GAP_MAX:
        return None
    return first, last


# -- verbs and other words ----------------------------------------------------------------------------


def _said(claim: Claim, source: Source, slot: Slot, side: _Side, base: _Rest, beside: Surroundings, acts: Acts) -> Seen:
    at = slot.at
    word, group = claim.words[at], GROUP_OF[slot.kind]
    if slot.kind == "word" and at in side.met:  # a word aligned with the evidence needs no further checks
        signs = Signs(best=1.0, near=1.0, aligned=1.0, degree=1.0, **base)
        return Seen(slot, group, signs, None, claim.best)
    denied = claim.denies(at)
    against = _opposite(word.key, claim, side) if not denied else None
    rival = _rival(claim, slot, side, group) if at not in side.met else None
    degree, kin = beside.kin(word.key, (claim.best,)) if slot.kind == "verb" else (0.0, "")
    if denied and _is_opposed(claim, at):  # negating a word asserts its opposite
        degree = SAME
    early = Signs(rival=float(rival is not None), other=float(against is not None), degree=degree, **base)
    if is_settled(Seen(slot, group, early)):
        return Seen(slot, group, early, None, claim.best)
    if slot.kind == "word":
        degree, kin = beside.kin(word.key, (claim.best,))
    degree_top, _ = beside.kin(word.key, claim.tops[1:])
    degree_near, _ = beside.kin(word.key, claim.near)
    context = beside.context(slot)
    frame = beside.frame(context)
    tie = close = 0.0
    if slot.kind == "verb":
        for spot in _spread(claim, source, [word.key, *([kin] if kin else [])]):
            for key in dict.fromkeys((word.key, kin)):
                for position in source.positions(spot).get(key, ())[:4]:
                    value, near = beside.ties(context, spot, position - at)
                    tie, close = max(tie, value), max(close, near)
    names, free = _around_verb(claim, at, side) if slot.kind == "verb" else (0.0, 0.0)
    gap = _gap(claim, slot, side) if against is not None else None
    framed = gap is not None and against in side.words[gap[0] : gap[1]]
    words = source.sentences[claim.best].words
    met = side.met.get(at, -1)
    fillers = compare_verbs(claim, source, at, acts.roles[at]) if slot.kind == "verb" else Fillers()
    signs = Signs(
        absent=float(not claim.variants[at] and degree_near == 0),
        best=float(word.key in claim.evidence),
        top=degree_top,
        near=float(word.key in claim.around),
        tie=tie,
        frame=frame,
        gap=max(0.0, frame - tie),
        aligned=float(met >= 0),
        rival=float(rival is not None),
        close=close,
        left=_same_left(claim, at, words, met) if met >= 0 else 0.0,
        right=_same_right(claim, at + 1, words, met + 1) if met >= 0 else 0.0,
        turned=float(framed),
        topic=float(word.key in _LIGHT),
        straight=names,
        whole=free,
        sort=float("verb" not in claim.roles[:at]),
        other=float(against is not None),
        degree=degree,
        degree_near=degree_near,
        filled=fillers.filled,
        usurped=fillers.usurped,
        **base,
    )
    instead = against if framed else rival
    return Seen(slot, group, signs, instead, claim.best)


def _around_verb(claim: Claim, at: int, side: _Side) -> tuple[float, float]:
    """The share of the names next to a verb that the best sentence has, and whether it has a verb that the
    claim lacks.
    """
    before = next((spot for spot in range(at - 1, -1, -1) if claim.roles[spot] == "name"), None)
    behind = next((spot for spot in range(at + 1, len(claim.words)) if claim.roles[spot] == "name"), None)
    names = [spot for spot in (before, behind) if spot is not None]
    held = sum(any(form.key in claim.evidence for form in claim.variants[spot]) for spot in names)
    free = any(
        word.kind == "word" and word.key not in claim.keys and (word.text.endswith("ed") or is_irregular(word.text))
        for word in side.words
    )
    return (held / len(names) if names else 0.5), float(free)


def _opposite(key: str, claim: Claim, side: _Side) -> Word | None:
    """A word of opposite meaning in the best sentence that the claim lacks."""
    if key in claim.evidence:
        return None
    against = opposed(key)
    sense = OPPOSED_LINKS.get(LINKS.get(key, ""))
    if not against and sense is None:
        return None
    for word in side.words:
        if word.key in claim.keys:
            continue
        said = word.text.casefold() if word.kind == "number" else word.key  # "first" is a number, and has an opposite
        if said in against or (sense is not None and LINKS.get(word.key) == sense):
            return word
    return None


# -- denial -------------------------------------------------------------------------------------------


def _denial(claim: Claim, source: Source, slot: Slot, base: _Rest) -> Seen:
    """Measure a negation of the claim: whether the evidence negates the same."""
    reach = range(slot.at + 1, min(len(claim.words), slot.at + 1 + _DENIAL_REACH))
    targets = [at for at in reach if claim.words[at].kind != "small"][:2]
    here = elsewhere = undenied = False
    for at in targets:
        for form in claim.variants[at]:
            for place in (*claim.tops, *source.spread.get(form.key, ())[:_PLACES_MAX]):
                for position in source.positions(place).get(form.key, ()):
                    denied = _denied(source.sentences[place].words, position)
                    here = here or (denied and place in claim.tops)
                    elsewhere = elsewhere or denied
                    undenied = undenied or (not denied and place == claim.best)
    best = [negates(word.text, word.key) for word in source.sentences[claim.best].words]
    denying = not denying_stems().isdisjoint(claim.evidence)
    here = here or any(_is_opposed(claim, at) for at in targets[:1])
    signs = Signs(
        absent=float(not source.denials),
        best=float(any(best)),
        near=float(any(source.denies(place) for place in claim.near)),
        aligned=float(here),
        left=float(elsewhere),
        right=float(denying),
        other=float(undenied),
        frame=float(bool(targets)),
        topic=float(undenied and not here and not any(best)),
        **base,
    )
    return Seen(slot, "polarity", signs, None, claim.best)


def _is_opposed(claim: Claim, at: int) -> bool:
    """True if the evidence has the opposite of a word, which equals negating it."""
    key = claim.words[at].key
    return key not in claim.evidence and not claim.evidence.isdisjoint(opposed(key))


def _lost_denials(claim: Claim, source: Source, side: _Side) -> Iterator[Seen]:
    """Words that the best sentence negates and the claim does not."""
    if not source.denies(side.place) or any(negates(word.text, word.key) for word in claim.words):
        return
    at_key = {word.key: at for at, word in enumerate(claim.words) if word.kind != "small"}
    found = 0
    for spot, word in enumerate(side.words):
        if not negates(word.text, word.key) or (spot + 1 < len(side.words) and side.words[spot + 1].key in NOT_ALONE):
            continue
        behind = range(spot + 1, min(len(side.words), spot + 1 + _DENIAL_REACH))
        targets = [other for other in behind if side.words[other].kind != "small"][:2]
        held = [other for other in targets if side.words[other].key in at_key]
        if not held or found >= 2:
            continue
        found += 1
        at = at_key[side.words[held[0]].key]
        signs = Signs(
            best=1.0 / (held[0] - spot),
            aligned=float(at in side.met),
            top=len(held) / len(targets),
            left=float(claim.roles[at] == "verb"),
            right=float(not denying_stems().isdisjoint(claim.keys)),
            frame=float(at > 0 and at - 1 in side.met and side.met[at - 1] < spot < side.met.get(at, -1)),
            other=float(held[0] == targets[0]),
            covered=claim.covered,
            unknown=sum(not claim.variants[one] for one in claim.content) / max(1, len(claim.content)),
        )
        yield Seen(Slot("polarity", at, at + 1, at), "lost", signs, word, claim.best)


def _denied(words: Sequence[Word], position: int) -> bool:
    near = words[max(0, position - _DENIAL_REACH) : position]
    return any(negates(word.text, word.key) for word in near) or any(word.key in denying_stems() for word in near[-2:])


# -- reading slots -------------------------------------------------------------------------------------

SlotKind = Literal["subject", "object", "place", "time", "number", "verb", "polarity", "word"]
SLOT_KINDS: tuple[SlotKind, ...] = ("subject", "object", "place", "time", "number", "verb", "polarity", "word")


class Slot(NamedTuple):
    """Positions of a slot's words in the claim (`end` is exclusive), and of its verb (-1: none)."""

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
            kind: SlotKind = "time" if _is_year_at(claim, at) or _beside_month(claim, at) else "number"
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
    """The nearest of the verbs, given in rising order; the earlier one in a tie."""
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


def _is_year_at(claim: Claim, at: int) -> bool:
    text = claim.words[at].text
    return len(text) == 4 and text.isdecimal() and "1500" <= text <= "2100"


def _beside_month(claim: Claim, at: int) -> bool:
    near = claim.roles[max(0, at - 1) : at + 2]
    return "date" in near


# -- surroundings --------------------------------------------------------------------------------------

CONTEXT_REACH = 10
_CONTEXT_MAX = 8
_CLOSE_MAX = 3
_NEAR_WORTH = 0.3
"""Weight of a word in the sentence before or after."""
_FAR_WORTH = 0.6
"""Weight of a word in the same sentence, but further away than in the claim."""
_SLACK = 3

Context = Sequence[tuple[int, float]]
"""Content words around a slot, the nearest first, with their weights."""


class _Sight(NamedTuple):
    """Occurrence of a word of the claim in a sentence."""

    whole: float
    """How well the sentence contains the word, anywhere."""
    beside: float
    """How well the sentence before or after does."""
    forms: list[tuple[float, list[int]]]
    """Its forms there, each with its similarity and its places."""


class Surroundings:
    """Contexts of a claim's slots, compared with the source."""

    def __init__(self, claim: Claim, source: Source) -> None:
        self._claim = claim
        self._source = source
        self._sights: dict[int, dict[int, _Sight]] = {}
        self._kin: dict[tuple[str, int], tuple[float, str]] = {}

    def context(self, slot: Slot) -> Context:
        """The content words around a slot."""
        first, last = slot.at, slot.end - 1
        near = [
            (min(abs(at - first), abs(at - last)), at)
            for at in self._claim.content
            if -CONTEXT_REACH <= at - first <= CONTEXT_REACH + 1 + last - first and not first <= at <= last
        ]
        near.sort()
        words, rarity = self._claim.words, self._source.rarity
        return [(at, 1.0 / (1.0 + apart / 4) * rarity(words[at].key)) for apart, at in near[:_CONTEXT_MAX]]

    def frame(self, context: Context) -> float:
        """Share of a context that the best sentences contain, anywhere in them."""
        best = 0.0
        for place in self._claim.tops:
            sights = self._sights.setdefault(place, {})
            held = total = 0.0
            for at, weight in context:
                total += weight
                held += weight * (sights.get(at) or self._see(place, at)).whole
            best = max(best, held / total if total else 0.5)
        return best

    def ties(self, context: Context, place: int, shift: int) -> tuple[float, float]:
        """Share of a context that a sentence has near the slot's word (`shift`: from the claim's place to it), and
        share of the nearest context words close to that word.
        """
        sights = self._sights.setdefault(place, {})
        held = total = close_held = close_total = 0.0
        for number, (at, weight) in enumerate(context):
            _, worth, forms = sights.get(at) or self._see(place, at)
            close = 0.0
            for degree, spots in forms:
                far = degree * _FAR_WORTH
                if far > worth:
                    worth = far
                if degree > close:
                    for spot in spots:
                        if -_SLACK <= spot - at - shift <= _SLACK:
                            close = degree
                            break
            total += weight
            held += weight * (close if close > worth else worth)
            if number < _CLOSE_MAX:
                close_total += weight
                close_held += weight * close
        return (held / total, close_held / close_total) if total else (0.5, 0.5)

    def _see(self, place: int, at: int) -> _Sight:
        rows, holds = self._source.positions(place), self._source.holds
        whole = beside = 0.0
        forms: list[tuple[float, list[int]]] = []
        for key, degree in self._claim.variants[at]:
            spots = rows.get(key)
            if spots is not None:
                forms.append((degree, spots))
                whole = max(whole, degree)
            elif holds(place - 1, key) or holds(place + 1, key):
                beside = max(beside, degree * _NEAR_WORTH)
        found = _Sight(max(whole, beside), beside, forms)
        self._sights[place][at] = found
        return found

    def kin(self, key: str, places: Sequence[int]) -> tuple[float, str]:
        """The most similar word in some sentences, with its similarity."""
        best, which = 0.0, ""
        for place in places:
            found = self._kin.get((key, place))
            if found is None:
                source = self._source
                is_there = key in source.content(place)
                found = (1.0, key) if is_there else nearest_kin(key, source.senses(place))
                self._kin[key, place] = found
            if found[0] > best:
                best, which = found
        return best, which
