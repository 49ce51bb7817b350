"""A claim laid beside the source slot by slot: is each slot's word there, and does it stand with the same words?

For each slot a few numbers are seen: is the word in the sentences that cover the claim best, near them, elsewhere or
nowhere; how much of what stands around it in the claim stands around it in the source (`tie`), against how much of that
the best sentence has without it (`frame`); does another word of its sort stand in its place (`rival`). Learned weights
make one number of them: the log-odds that the slot was swapped (`matching`). Nothing here is random, and every sum is
taken in the order of the words: the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from muniment.verify.facts.claims import Claim
from muniment.verify.facts.contrast import Fillers, antecedent, best_other, claim_roles, compare_verbs, fill_role
from muniment.verify.facts.lexicon import GENDER, LINKS, NOT_ALONE, OPPOSED_LINKS, PASSIVE, denying_stems, negates
from muniment.verify.facts.related import is_irregular, relation, table_opposed
from muniment.verify.facts.roles import Roles
from muniment.verify.facts.slots import Slot, SlotKind, read_slots
from muniment.verify.facts.source import Source
from muniment.verify.facts.synonyms import alike, opposed
from muniment.verify.facts.words import Word

__all__ = ["GROUP_OF", "Seen", "Signs", "look_at_slots"]

_CONTEXT_MAX = 8
_CLOSE_MAX = 3
_CONTEXT_REACH = 10
_PLACES_MAX = 12
_NEAR_WORTH = 0.3
"""What stands in the sentence before or behind counts so much."""
_FAR_WORTH = 0.6
"""What stands in the same sentence, but further away than in the claim, counts so much."""
_SLACK = 3
_SLOTS_MAX = 100
"""A claim with more is a list or a table, of which the first are looked at."""
_GAP_MAX = 5
_DENIAL_REACH = 5
_ALIGN_WORDS_MAX = 120
_LIKE = 0.7
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
    """What is seen of a slot, each from 0 to 1."""

    absent: float = 0.0
    """The share of its words that the source does not have."""
    best: float = 0.0
    """It stands in the sentence that covers the claim best,"""
    top: float = 0.0
    """in another that covers it well,"""
    near: float = 0.0
    """or beside one of these."""
    tie: float = 0.0
    frame: float = 0.0
    gap: float = 0.0
    """How much less of its surroundings stands around it than without it."""
    aligned: float = 0.0
    """Word by word the claim and the best sentence meet in it."""
    rival: float = 0.0
    left: float = 0.0
    right: float = 0.0
    """The same word stands before it, behind it."""
    turned: float = 0.0
    """It stands on the other side of the same verb."""
    straight: float = 0.0
    """A name: it stands on the same side of the same verb, be the sentence active or passive. A verb: the share of the
    names next to it that the best sentence has."""
    topic: float = 0.0
    """A name: how often the source says it. A verb: is it one that says little? A number: is it a small count?"""
    other: float = 0.0
    """A name: a pronoun can stand for it there. A number: what it counts is the same. A verb or word: its opposite."""
    degree: float = 0.0
    """How well a word of the best sentence can stand for it,"""
    degree_near: float = 0.0
    """or one of the sentences around it."""
    close: float = 0.0
    """How much of the three words around it stands close to it somewhere."""
    whole: float = 0.0
    """The words of a name stand side by side in the source. A verb: the best sentence has another."""
    sort: float = 0.0
    """Of a name: 0 before its verb, 0.5 behind it, 1 a place. Of a time: is it a number? Of a verb: is it the first?"""
    size: float = 0.0
    """Does the source have few sentences? 1 one, 0.5 two, …"""
    tight: float = 0.0
    """The words next to it are those of the best sentence, which has something else between them."""
    added: float = 0.0
    """The words next to it stand side by side in the best sentence."""
    verbatim: float = 0.0
    """The share of the claim's other words that the best sentence has in the same order."""
    covered: float = 0.0
    unknown: float = 0.0
    """The share of the claim's other words that the source does not have."""
    lead: float = 0.0
    """How much more of its surroundings stands around it than around another word of its sort: 0 less, 0.5 as much."""
    filled: float = 0.0
    """It stands on the same side of the same verb, whose other side is the same too. A verb: between the same sides."""
    usurped: float = 0.0
    """Another one stands there."""
    unsaid: float = 0.0
    """A pronoun or a common noun stands there."""
    meant: float = 0.0
    """A pronoun of a good sentence most likely stands for it."""


class Seen(NamedTuple):
    """A slot with what was seen of it: what stands in its place in the evidence, and in which sentence."""

    slot: Slot
    group: str
    signs: Signs
    instead: Word | None = None
    place: int = -1


class _Rest(NamedTuple):
    """What is seen of the claim beside the slot."""

    size: float
    tight: float
    added: float
    verbatim: float
    covered: float
    unknown: float


class _Side(NamedTuple):
    """The claim and its best sentence word by word: a word's place in the claim → its place in the sentence."""

    met: dict[int, int]
    words: tuple[Word, ...]
    place: int


def look_at_slots(claim: Claim, source: Source) -> list[Seen]:
    """Every slot of a claim with what the source shows of it."""
    if claim.best < 0:
        return []
    side = _meet(claim, source)
    roles = claim_roles(claim)
    unknown = sum(not claim.variants[at] for at in claim.content)
    found: list[Seen] = []
    for slot in read_slots(claim)[:_SLOTS_MAX]:
        others = max(1, len(claim.content) - (slot.end - slot.at))
        own = sum(not claim.variants[at] for at in range(slot.at, slot.end) if claim.words[at].kind != "small")
        base = _rest(claim, len(source), slot, side, min(1.0, (unknown - own) / others))
        if slot.kind == "polarity":
            found.append(_denial(claim, source, slot, base))
        elif slot.kind in ("verb", "word"):
            found.append(_said(claim, source, slot, side, base, roles))
        else:
            found.append(_held(claim, source, slot, side, base, roles))
    found.extend(_lost_denials(claim, side))
    return found


def _rest(claim: Claim, sentences: int, slot: Slot, side: _Side, unknown: float) -> _Rest:
    met = side.met
    before = met.get(slot.at - 1) if slot.at else -1
    behind = met.get(slot.end) if slot.end < len(claim.words) else len(side.words)
    tight = added = 0.0
    if before is not None and behind is not None and (slot.at or slot.end < len(claim.words)):
        between = behind - before - 1
        same = any(at in met for at in range(slot.at, slot.end))
        tight = float(not same and 0 < between <= 1 + slot.end - slot.at)
        added = float(not same and between == 0)
    size = slot.end - slot.at
    inside = sum(at in met for at in range(slot.at, slot.end))
    verbatim = (len(met) - inside) / max(1, len(claim.words) - size)
    return _Rest(1.0 / sentences, tight, added, verbatim, claim.covered, unknown)


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
        else next((form.key for form in claim.variants[at] if form.key in have and form.degree >= _LIKE), word.key)
        for at, word in enumerate(claim.words)
    ]
    blocks = SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks()
    return _Side({one + step: two + step for one, two, size in blocks for step in range(size)}, words, claim.best)


# -- names, numbers, dates ----------------------------------------------------------------------------


def _held(claim: Claim, source: Source, slot: Slot, side: _Side, base: _Rest, roles: dict[int, Roles]) -> Seen:
    places = range(slot.at, slot.end)
    content = [at for at in places if claim.words[at].kind != "small"] or [slot.at]
    missing = sum(not claim.variants[at] for at in content) / len(content)
    known = [at for at in content if claim.variants[at]]
    context = _context(claim, source, slot)
    frame = max((_tie(claim, source, context, place, None) for place in claim.tops), default=0.0)
    group = GROUP_OF[slot.kind]
    rival = _rival(claim, slot, side, group)
    if not known:
        spelled = float(slot.kind == "number" and not claim.words[slot.at].text[:1].isdecimal())
        signs = Signs(
            absent=1.0, frame=frame, gap=frame, rival=float(rival is not None), topic=spelled, **base._asdict()
        )
        return Seen(slot, group, signs, rival, claim.best)
    rare = min(known, key=lambda at: (len(source.spread.get(claim.variants[at][0].key, ())), at))
    keys = [form.key for form in claim.variants[rare]]
    spread = _spread(claim, source, keys)
    nearest = context[:_CLOSE_MAX]
    tie, close, left, right, place = 0.0, 0.0, 0.0, 0.0, -1
    turned = straight = False
    for spot in spread:
        rows = source.positions(spot)
        for key in keys:
            for position in rows.get(key, ())[:4]:
                value = _tie(claim, source, context, spot, position - rare)
                if value > tie or place < 0:
                    tie, place = value, spot
                close = max(close, _tie(claim, source, nearest, spot, position - rare, near=False))
                sentence = source.sentences[spot].words
                left = max(left, _same_left(claim, slot.at, sentence, position - (rare - slot.at)))
                right = max(right, _same_right(claim, slot.end, sentence, position + (slot.end - rare)))
                if group == "name" and slot.verb >= 0:
                    facing = _facing(claim, slot, rare, rows, sentence, position)
                    turned, straight = turned or facing < 0, straight or facing > 0
    ours, contest = best_other(claim, source, slot, context, keys)
    fillers = fill_role(claim, source, slot, roles) if group == "name" else Fillers()
    tops = claim.tops[1:]
    around = {near for top in claim.tops for near in (top - 2, top - 1, top + 1)}
    signs = Signs(
        absent=missing,
        best=float(claim.best in spread),
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
        lead=(1 + ours - contest.value) / 2,
        filled=fillers.filled,
        usurped=fillers.usurped,
        unsaid=fillers.open,
        meant=antecedent(claim, source, keys) if group == "name" else 0.0,
        **base._asdict(),
    )
    if fillers.usurped > fillers.filled and fillers.by is not None:
        return Seen(slot, group, signs, fillers.by, fillers.place)
    return Seen(slot, group, signs, rival if rare not in side.met else None, place if rare in side.met else claim.best)


def _spread(claim: Claim, source: Source, keys: Sequence[str]) -> list[int]:
    """The sentences that hold one of these, those near the claim's best ones first."""
    every = dict.fromkeys(place for key in keys for place in source.spread.get(key, ()))
    close = [near for top in claim.tops for near in (top, top - 1, top + 1, top - 2) if near in every]
    return list(dict.fromkeys((*close, *every)))[:_PLACES_MAX]


def _context(claim: Claim, source: Source, slot: Slot) -> list[tuple[int, float]]:
    """The words of content around a slot, the nearest first, and what each counts."""
    near = [
        (min(abs(at - slot.at), abs(at - slot.end + 1)), at)
        for at in claim.content
        if not slot.at <= at < slot.end and -_CONTEXT_REACH <= at - slot.at <= _CONTEXT_REACH + slot.end - slot.at
    ]
    return [
        (at, 1.0 / (1.0 + apart / 4) * source.rarity(claim.words[at].key)) for apart, at in sorted(near)[:_CONTEXT_MAX]
    ]


def _tie(
    claim: Claim,
    source: Source,
    context: Sequence[tuple[int, float]],
    place: int,
    shift: int | None,
    *,
    near: bool = True,
) -> float:
    """How much of the context a sentence has, near the slot's word (`shift`: from the claim's place to it)."""
    rows = source.positions(place)
    held = total = 0.0
    for at, weight in context:
        total += weight
        worth = 0.0
        for form in claim.variants[at]:
            spots = rows.get(form.key)
            if spots is not None:
                close = shift is None or min(abs(spot - at - shift) for spot in spots) <= _SLACK
                worth = max(worth, form.degree * (1.0 if close else _FAR_WORTH if near else 0.0))
            elif (
                near
                and worth < _NEAR_WORTH
                and (source.holds(place - 1, form.key) or source.holds(place + 1, form.key))
            ):
                worth = max(worth, form.degree * _NEAR_WORTH)
        held += weight * worth
    return held / total if total else 0.5


def _same_left(claim: Claim, at: int, sentence: Sequence[Word], position: int) -> float:
    if at == 0 or position <= 0:
        return float(at == 0 and position == 0)
    return float(position <= len(sentence) and claim.words[at - 1].key == sentence[position - 1].key)


def _same_right(claim: Claim, end: int, sentence: Sequence[Word], position: int) -> float:
    if end >= len(claim.words) or not 0 <= position < len(sentence):
        return float(end >= len(claim.words) and position == len(sentence))
    return float(claim.words[end].key == sentence[position].key)


def _facing(
    claim: Claim, slot: Slot, at: int, rows: dict[str, list[int]], sentence: Sequence[Word], position: int
) -> int:
    """Does the name stand on the same side of its verb (1), on the other (-1), or is the verb not near (0)?"""
    for form in claim.variants[slot.verb] if slot.verb >= 0 else ():
        for spot in rows.get(form.key, ()):
            if abs(spot - position) <= _CONTEXT_REACH:
                mine = (at < slot.verb) != _is_passive(claim.words, slot.verb)
                theirs = (position < spot) != _is_passive(sentence, spot)
                return 1 if mine == theirs else -1
    return 0


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
    """What the best sentence has between the same neighbours, of the same sort, and the claim has not."""
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
    """The stretch of the best sentence between the words that the claim has before and behind a slot."""
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


def _said(claim: Claim, source: Source, slot: Slot, side: _Side, base: _Rest, roles: dict[int, Roles]) -> Seen:
    at = slot.at
    word = claim.words[at]
    if slot.kind == "word" and at in side.met:  # nothing more is asked of a word that the evidence has in its place
        signs = Signs(best=1.0, near=1.0, aligned=1.0, degree=1.0, **base._asdict())
        return Seen(slot, GROUP_OF[slot.kind], signs, None, claim.best)
    degree, kin = _kin(word.key, source, (claim.best,))
    degree_top, _ = _kin(word.key, source, claim.tops[1:])
    degree_near, _ = _kin(word.key, source, [*claim.near])
    context = _context(claim, source, slot)
    frame = max((_tie(claim, source, context, place, None) for place in claim.tops), default=0.0)
    tie = close = 0.0
    spread: list[int] = []
    if slot.kind == "verb":
        spread = _spread(claim, source, [word.key, *([kin] if kin else [])])
        for spot in spread:
            for key in dict.fromkeys((word.key, kin)):
                for position in source.positions(spot).get(key, ())[:4]:
                    tie = max(tie, _tie(claim, source, context, spot, position - at))
                    close = max(close, _tie(claim, source, context[:_CLOSE_MAX], spot, position - at, near=False))
    against = _opposite(word.key, claim, side)
    names, free = _around_verb(claim, at, side) if slot.kind == "verb" else (0.0, 0.0)
    rival = _rival(claim, slot, side, GROUP_OF[slot.kind]) if at not in side.met else None
    gap = _gap(claim, slot, side) if against is not None else None
    framed = gap is not None and against in side.words[gap[0] : gap[1]]
    words = source.sentences[claim.best].words
    met = side.met.get(at, -1)
    fillers = compare_verbs(claim, source, at, roles[at]) if slot.kind == "verb" else Fillers()
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
        **base._asdict(),
    )
    instead = against if framed else rival
    return Seen(slot, GROUP_OF[slot.kind], signs, instead, claim.best)


def _around_verb(claim: Claim, at: int, side: _Side) -> tuple[float, float]:
    """The share of the names next to a verb that the best sentence has; does it have a verb that the claim has not?"""
    before = next((spot for spot in range(at - 1, -1, -1) if claim.roles[spot] == "name"), None)
    behind = next((spot for spot in range(at + 1, len(claim.words)) if claim.roles[spot] == "name"), None)
    names = [spot for spot in (before, behind) if spot is not None]
    held = sum(any(form.key in claim.evidence for form in claim.variants[spot]) for spot in names)
    free = any(
        word.kind == "word" and word.key not in claim.keys and (word.text.endswith("ed") or is_irregular(word.text))
        for word in side.words
    )
    return (held / len(names) if names else 0.5), float(free)


def _kin(key: str, source: Source, places: Sequence[int]) -> tuple[float, str]:
    """How well a word of some sentences can stand for this one, and which."""
    best, which = 0.0, ""
    if any(key in source.content(place) for place in places):
        return 1.0, key
    like = alike(key)
    for place in places:
        for other in source.content(place):
            value = max(relation(key, other), _LIKE if other in like else 0.0)
            if value > best:
                best, which = value, other
                if value >= 1.0:
                    return best, which
    return best, which


def _opposite(key: str, claim: Claim, side: _Side) -> Word | None:
    """A word of the best sentence that means the opposite, which the claim does not have."""
    if key in claim.evidence:
        return None
    against = opposed(key) | table_opposed(key)
    sense = OPPOSED_LINKS.get(LINKS.get(key, ""))
    for word in side.words:
        if word.key in claim.keys:
            continue
        if word.key in against or (sense is not None and LINKS.get(word.key) == sense):
            return word
    return None


# -- denial -------------------------------------------------------------------------------------------


def _denial(claim: Claim, source: Source, slot: Slot, base: _Rest) -> Seen:
    """A denial of the claim: does the evidence deny the same?"""
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
    denying = not denying_stems().isdisjoint(claim.evidence) or any(_is_opposed(claim, at) for at in targets)
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
        **base._asdict(),
    )
    return Seen(slot, "polarity", signs, None, claim.best)


def _is_opposed(claim: Claim, at: int) -> bool:
    """Does the evidence have the opposite of a word, which says the same as denying it?"""
    key = claim.words[at].key
    return not claim.evidence.isdisjoint(opposed(key) | table_opposed(key))


def _lost_denials(claim: Claim, side: _Side) -> Iterator[Seen]:
    """What the best sentence denies and the claim says without a denial."""
    if any(negates(word.text, word.key) for word in claim.words):
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
    return any(negates(word.text, word.key) or word.key in denying_stems() for word in near)
