"""Doubts about a claim: each has its kind of error and the source sentence it rests on.

Doubts about single words: numbers, dates and names that the source lacks, or that the evidence replaces with another;
an added or lost negation; a word whose opposite the evidence uses. Doubts about relations: the referent of a pronoun,
the order of events, certainty. Each check looks for the same words in one sentence of the source, and raises nothing if
it finds none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from muniment.verify.facts._senses import opposed
from muniment.verify.facts._source import Claim, Source
from muniment.verify.facts._words import (
    CIRCUMSTANCE_BEFORE,
    GENDER,
    LINKS,
    MODALITY,
    OPPOSED_LINKS,
    PERIODS,
    POSSESSIVE,
    Word,
    denying_stems,
    is_cjk,
    is_hangul,
    negates,
    unit_of,
)

ErrorType = Literal["PredE", "EntE", "CircE", "CorefE", "LinkE", "OutE"]
DoubtKind = Literal[
    "number_absent",
    "number_elsewhere",
    "unit_changed",
    "date_absent",
    "name_absent",
    "name_elsewhere",
    "negation_added",
    "negation_dropped",
    "opposed",
    "certainty",
    "roles_swapped",
    "link_changed",
    "no_antecedent",
    "wrong_gender",
    "words_absent",
    "subject_unmatched",
    "object_unmatched",
    "place_unmatched",
    "time_unmatched",
    "number_unmatched",
    "verb_unmatched",
    "polarity_changed",
    "word_unmatched",
]
_COUNTED = frozenset(("one", "two", "three"))
"""Numbers that a text may express by naming that many things."""
_DENIAL_REACH = 6
_COVER_WELL = 0.6
_COVER_MIN = 0.5
"""Below it a negation may belong to something that the evidence does not mention."""
_SLOT_REACH = 4
_SILENT_TEXT = (
    "words_absent name_absent number_absent date_absent no_antecedent subject_unmatched object_unmatched "
    "place_unmatched time_unmatched number_unmatched verb_unmatched word_unmatched"
)
_SILENT = frozenset(_SILENT_TEXT.split())
"""Kinds of doubt about which the source is silent."""


class Doubt(NamedTuple):
    """A doubt; `start` and `end` are its place in the claim's text."""

    kind: DoubtKind
    error: ErrorType
    start: int
    end: int
    why: str
    weight: float = 1.0
    instead: str | None = None
    """The evidence's replacement; an empty string if it has none."""
    place: int = -1
    """Index of the source sentence it rests on."""
    quiet: bool = False
    """True if it is too weak to change a verdict, and only lowers the score."""

    @property
    def contradicts(self) -> bool:
        """True if the evidence contradicts the claim, rather than being silent."""
        return self.instead is not None or self.kind not in _SILENT


def word_doubts(claim: Claim, source: Source) -> Iterator[Doubt]:
    """Doubts raised by single words."""
    denies = "negation" in claim.roles or not denying_stems().isdisjoint(claim.keys)
    near = _NearUnits(claim, source)
    at = 0
    while at < len(claim.words):
        role = claim.roles[at]
        end = at + 1
        if role == "name":
            while end < len(claim.words) and claim.roles[end] == "name" and _adjoin(claim, end):
                end += 1
            yield from _name(claim, source, at, end)
        elif role in ("number", "date"):
            yield from _quantity(claim, source, at, near)
        elif role == "negation":
            yield from _added_negation(claim, source, at)
        elif role in ("word", "verb"):
            yield from _opposite(claim, source, at)
            if role == "verb" and not denies:
                yield from _lost_negation(claim, source, at)
        at = end


def _adjoin(claim: Claim, at: int) -> bool:
    return claim.text[claim.words[at - 1].end : claim.words[at].start] in (" ", "-", ". ", "")


def circumstance(claim: Claim, at: int) -> bool:
    """True if the word says when, where or how long rather than who or what."""
    before = claim.words[at - 1].key if at else ""
    after = claim.words[at + 1].key if at + 1 < len(claim.words) else ""
    return claim.roles[at] == "date" or before in CIRCUMSTANCE_BEFORE or after in PERIODS


# -- numbers, dates, names ----------------------------------------------------------------------------


class _NearUnits:
    """Units of each number in the sentences near a claim, read on first use."""

    def __init__(self, claim: Claim, source: Source) -> None:
        self._claim, self._source = claim, source
        self._places: dict[str, list[tuple[int, int]]] | None = None
        self._units: dict[str, dict[str, int]] = {}

    def of(self, key: str) -> dict[str, int]:
        """The units of a number there, each with its first sentence."""
        units = self._units.get(key)
        if units is None:
            units = self._units[key] = {}
            for place, spot in self._read().get(key, ()):
                sentence = self._source.sentences[place]
                text = self._source.documents[sentence.document].text[sentence.start : sentence.end]
                unit = unit_of(text, sentence.words, spot)
                if unit is not None:
                    units.setdefault(unit, place)
        return units

    def _read(self) -> dict[str, list[tuple[int, int]]]:
        if self._places is None:
            self._places = {}
            for place in self._claim.near:
                for spot, word in enumerate(self._source.sentences[place].words):
                    if word.kind == "number":
                        self._places.setdefault(word.key, []).append((place, spot))
        return self._places


def _quantity(claim: Claim, source: Source, at: int, near: _NearUnits) -> Iterator[Doubt]:
    word, role = claim.words[at], claim.roles[at]
    absent = not claim.variants[at]
    if not absent and any(form.key in claim.around for form in claim.variants[at]):
        yield from _unit(claim, at, near)
        return
    rival = _rival(claim, source, at, at + 1)
    if not absent and (role == "date" or not _has_other(claim, source)):
        return
    kind: DoubtKind = "number_absent" if role == "number" else "date_absent"
    if not absent:
        kind = "number_elsewhere"
    counted = role == "number" and word.text.casefold() in _COUNTED
    error: ErrorType = "OutE" if absent else "CircE" if circumstance(claim, at) else "EntE"
    yield Doubt(
        kind,
        error,
        word.start,
        word.end,
        f"“{word.text}” {'is not in the source' if absent else 'stands elsewhere in the source'}"
        + (f"; the evidence has “{rival}” in its place" if rival else ""),
        0.3 if counted else 1.0,
        rival,
        claim.best,
        quiet=(counted and absent) or (not absent and (rival is None or claim.covered < _COVER_WELL)),
    )


def _unit(claim: Claim, at: int, near: _NearUnits) -> Iterator[Doubt]:
    """Doubt a number that the source gives in another unit."""
    ours = unit_of(claim.text, claim.words, at)
    if ours is None or claim.covered < _COVER_MIN:
        return
    word = claim.words[at]
    theirs = near.of(word.key)
    if theirs and ours not in theirs:
        error: ErrorType = "CircE" if circumstance(claim, at) else "EntE"
        unit, place = next(iter(theirs.items()))
        why = f"the evidence counts “{word.text}” in another unit ({unit}, not {ours})"
        yield Doubt("unit_changed", error, word.start, word.end, why, place=place)


def _has_other(claim: Claim, source: Source) -> bool:
    """True if the best sentence has numbers that the claim lacks."""
    words = source.sentences[claim.best].words if claim.best >= 0 else ()
    return any(word.kind == "number" and word.key not in claim.keys for word in words)


def _name(claim: Claim, source: Source, at: int, end: int) -> Iterator[Doubt]:
    missing = [place for place in range(at, end) if not claim.variants[place]]
    start, stop = claim.words[at].start, claim.words[end - 1].end
    text = claim.text[start:stop]
    if missing:
        rival = _rival(claim, source, at, end)
        why = f"“{text}” is not in the source" + (f"; the evidence has “{rival}” in its place" if rival else "")
        partly = len(missing) < end - at and rival is None and _known_alone(claim, source, at, end)
        heavy = 0.3 if partly else float(min(2, len(missing)))
        yield Doubt("name_absent", "OutE", start, stop, why, heavy, rival, claim.best, quiet=partly)
        return
    if any(form.key in claim.around for place in range(at, end) for form in claim.variants[place]):
        return
    rival = _rival(claim, source, at, end, sure=True)
    if rival is not None:
        error: ErrorType = "CircE" if circumstance(claim, at) else "EntE"
        why = f"the evidence has “{rival}” where the claim has “{text}”"
        yield Doubt("name_elsewhere", error, start, stop, why, 1.0, rival, claim.best)


def _known_alone(claim: Claim, source: Source, at: int, end: int) -> bool:
    """True if the evidence has the last word of a name, but never after another first name."""
    own = {word.key for word in claim.words[at:end]}
    forms = {form.key for form in claim.variants[end - 1]}
    found = False
    for place in claim.near:
        words = source.sentences[place].words
        for spot, word in enumerate(words):
            if word.key in forms:
                found = True
                if spot and words[spot - 1].kind == "name" and words[spot - 1].key not in own:
                    return False
    return found


def _rival(claim: Claim, source: Source, at: int, end: int, *, sure: bool = False) -> str | None:
    """The best sentence's word of the same sort in the same context that the claim lacks, such as another year.

    If the context is only one small word, the sentence has to cover the claim well; for `sure`, even that is not
    enough.
    """
    if claim.best < 0:
        return None
    kind, sentence = claim.words[at].kind, source.sentences[claim.best]
    left = claim.words[at - 1] if at else None
    right = claim.words[end] if end < len(claim.words) else None
    alone = (kind == "date" or _is_year(claim.words[at])) and claim.covered >= _COVER_WELL
    text = source.documents[sentence.document].text
    found: list[str] = []
    for first, last in _runs(sentence.words, kind):
        run = sentence.words[first : last + 1]
        if any(word.key in claim.keys for word in run) or not _same_sort(claim.words[at], run[0]):
            continue
        before = sentence.words[first - 1] if first else None
        after = sentence.words[last + 1] if last + 1 < len(sentence.words) else None
        same = [one for one, two in ((left, before), (right, after)) if one and two and one.key == two.key]
        is_close = same and not sure and claim.covered >= _COVER_WELL
        if len(same) == 2 or any(word.kind != "small" for word in same) or is_close or alone:
            found.append(text[sentence.start + run[0].start : sentence.start + run[-1].end])
    return found[0] if len(set(found)) == 1 else None


def _same_sort(one: Word, other: Word) -> bool:
    """True for two years, months, weekdays, or digit groups of dates."""
    if one.kind == "date":
        return one.key[:2] == other.key[:2] and one.text.isdecimal() == other.text.isdecimal()
    return _is_year(one) == _is_year(other)


def _is_year(word: Word) -> bool:
    return len(word.text) == 4 and word.text.isdecimal() and "1500" <= word.key <= "2100"


def _runs(words: Sequence[Word], kind: str) -> list[tuple[int, int]]:
    """First and last indices of runs of one sort; consecutive names are one run, anything else is single."""
    runs: list[tuple[int, int]] = []
    for at, word in enumerate(words):
        if word.kind != kind or (kind == "name" and at == 0):
            continue
        if kind == "name" and runs and runs[-1][1] == at - 1 and word.start - words[at - 1].end <= 1:
            runs[-1] = (runs[-1][0], at)
        else:
            runs.append((at, at))
    return runs


# -- denial and opposites -----------------------------------------------------------------------------


def _added_negation(claim: Claim, source: Source, at: int) -> Iterator[Doubt]:
    """Doubt a negation if the evidence negates nothing, and the source nowhere negates the same word."""
    if claim.best < 0:
        return
    behind = claim.words[at].text.isascii()
    reach = range(at + 1, at + 1 + _DENIAL_REACH) if behind else range(max(0, at - _DENIAL_REACH), at)
    denied = [place for place in reach if place < len(claim.words) and claim.words[place].kind != "small"]
    for place in denied[:2] if behind else denied[-2:]:
        key = claim.words[place].key
        if place == denied[0] and key not in claim.evidence and not claim.evidence.isdisjoint(opposed(key)):
            return  # negating a word asserts its opposite
        for form in claim.variants[place]:
            if any(source.denied(spot, _DENIAL_REACH) for spot in source.places[form.key][:50]):
                return
    words = source.sentences[claim.best].words
    if any(negates(word.text, word.key) or word.key in denying_stems() for word in words):
        return
    word = claim.words[at]
    removable = word.key in ("not", "never") and word.text.casefold() in ("not", "never")
    why = f"the evidence does not deny this: “{word.text}” is added"
    instead, quiet = ("" if removable else None), claim.covered < _COVER_MIN
    yield Doubt("negation_added", "PredE", word.start, word.end, why, 1.0, instead, claim.best, quiet)


def _lost_negation(claim: Claim, source: Source, at: int) -> Iterator[Doubt]:
    """Doubt an affirmative claim that the evidence covers well but negates."""
    if claim.best < 0 or claim.covered < _COVER_WELL:
        return
    word = claim.words[at]
    sentence = source.sentences[claim.best]
    spots = [sentence.base + offset for offset, other in enumerate(sentence.words) if other.key == word.key]
    if spots and all(source.denied(spot, 2) for spot in spots):
        why = f"the evidence denies “{word.text}”"
        yield Doubt("negation_dropped", "PredE", word.start, word.end, why, place=claim.best)


def _opposite(claim: Claim, source: Source, at: int) -> Iterator[Doubt]:
    """Doubt a word that the evidence lacks if it uses one of opposite meaning."""
    word = claim.words[at]
    if word.key in claim.around or claim.best < 0 or claim.denies(at):
        return
    others = opposed(word.key) & (claim.evidence - claim.keys)
    if not others:
        return
    if any(form.degree >= 0.7 and form.key in claim.evidence for form in claim.variants[at]):
        return  # the evidence also has a synonym
    sentence = source.sentences[claim.best].words
    beside = _beside(claim.words, at)
    rivals = (
        other for place, other in enumerate(sentence) if other.key in others and beside & _beside(sentence, place)
    )
    rival = next(rivals, None)
    if rival is None:
        why = f"the evidence speaks of the opposite of “{word.text}”"
        yield Doubt("opposed", "PredE", word.start, word.end, why, 0.5, place=claim.best, quiet=True)
        return
    why = f"the evidence says “{rival.text}” where the claim says “{word.text}”"
    weight = 1.0 if not claim.variants[at] else 0.5
    yield Doubt("opposed", "PredE", word.start, word.end, why, weight, rival.text, claim.best)


def _beside(words: Sequence[Word], at: int) -> frozenset[str]:
    """The content words shortly before and after a place."""
    near = (*words[max(0, at - _SLOT_REACH) : at], *words[at + 1 : at + 1 + _SLOT_REACH])
    return frozenset(word.key for word in near if word.kind != "small")


# -- how words hang together ---------------------------------------------------------------------------

_ROLE_REACH = 4
_NOUN_REACH = 2
"""Maximum distance of a verb's sides from it: names, and other nouns."""
_LINK_COVER_MIN = 0.6
_PRONOUN_COVER_MIN = 0.6
"""If the evidence covers this much of the claim, an opening "it" is no reason to doubt it."""
_CERTAINTY_COVER_MIN = 0.7
_SIGNS_ALIKE_MIN = 0.5
_WORDS_ALIKE_MIN = 0.4
_SUBSTITUTE_SIGNS_MAX = 4
_SUBSTITUTE_TEXT_MAX = 400
_ABSENT_COUNT_MIN = 3


class Before(NamedTuple):
    """Context of a unit in the output: whether anything was named before, the last person named, and whether the unit
    is the whole output.
    """

    content: bool = False
    name: str | None = None
    alone: bool = False


def relation_doubts(claim: Claim, source: Source, before: Before, absent_share: float) -> Iterator[Doubt]:
    """Doubts raised by words together. `absent_share` is the largest tolerated share of the claim unknown to the
    source.
    """
    yield from _pronouns(claim, source, before)
    if claim.best >= 0:
        yield from _swapped_roles(claim, source)
        yield from _changed_link(claim, source)
        yield from _certainty(claim, source)
        if any(is_cjk(word.text[0]) for word in claim.words):
            yield from _substituted(claim, source)
    yield from _extrinsic(claim, absent_share)


# -- whom a pronoun means -----------------------------------------------------------------------------


def _pronouns(claim: Claim, source: Source, before: Before) -> Iterator[Doubt]:
    name, content = before.name, before.content
    for at, word in enumerate(claim.words):
        role = claim.roles[at]
        if role == "name":
            name = word.key
        if role == "pronoun":
            known, meant = _gender_in(source, name), GENDER[word.key]
            if known is not None and meant in ("he", "she") and meant != known:
                why = f"the source speaks of “{known}”, the claim of “{word.text}”"
                yield Doubt("wrong_gender", "CorefE", word.start, word.end, why, place=claim.best)
                return
            if not content and not (at and word.key in POSSESSIVE):
                why = f"“{word.text}” stands for nobody named so far"
                told = meant == "it" and claim.covered >= _PRONOUN_COVER_MIN
                quiet = before.alone or told or _says(source, claim.best, meant)
                yield Doubt("no_antecedent", "CorefE", word.start, word.end, why, place=claim.best, quiet=quiet)
                return
        content = content or word.kind != "small"


def _says(source: Source, place: int, gender: str) -> bool:
    """True if the sentence itself uses such a pronoun."""
    return place >= 0 and any(GENDER.get(word.key) == gender for word in source.sentences[place].words)


def _gender_in(source: Source, name: str | None) -> str | None:
    """`he` or `she`, if the source uses only one of them, for everyone or for this name."""
    if len(source.genders) == 1:
        return next(iter(source.genders))
    if name is None:
        return None
    found: set[str] = set()
    for place in source.spread.get(name, ()):
        words = source.sentences[place].words
        named = [at for at, word in enumerate(words) if word.kind == "name"]
        if {words[at].key for at in named} != {name}:
            continue  # another name is nearby, so the pronoun may be theirs
        found |= {GENDER[word.key] for word in words[named[-1] :] if word.key in GENDER} & {"he", "she"}
    return next(iter(found)) if len(found) == 1 else None


# -- who does what to whom ----------------------------------------------------------------------------


def _swapped_roles(claim: Claim, source: Source) -> Iterator[Doubt]:
    """Doubt two names around a verb that a source sentence has the other way round."""
    known: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for at, role in enumerate(claim.roles):
        if role != "verb" or claim.words[at].text.endswith("ing"):
            continue
        left = _side(claim, range(at - 1, -1, -1))
        right = _side(claim, range(at + 1, len(claim.words)))
        if left is None or right is None or claim.words[left].key == claim.words[right].key:
            continue
        ours = _agent(claim.words, left, at, right)
        key_left, verb, key_right = claim.words[left].key, claim.words[at].key, claim.words[right].key
        sides = key_left, verb, key_right
        if sides not in known:
            known[sides] = _agents(source, *sides)
        found = known[sides]
        if found and all(agent != ours for _, agent in found):
            word = claim.words[at]
            why = f"in the evidence the two sides of “{word.text}” stand the other way round"
            yield Doubt("roles_swapped", "EntE", claim.words[left].start, word.end, why, place=found[0][0])
            return


def _agents(source: Source, one: str, verb: str, other: str) -> list[tuple[int, str]]:
    """Sentences with the verb between the two names, each with the agent there."""
    found: list[tuple[int, str]] = []
    for place in source.spread.get(verb, ()):
        if one in source.keys[place] and other in source.keys[place]:
            agent = _agent_of(source.sentences[place].words, one, verb, other)
            if agent is not None:
                found.append((place, agent))
    return found


def _side(claim: Claim, places: range) -> int | None:
    """The name on one side of a verb, or else the nearest noun."""
    near = [place for place in places[:_ROLE_REACH] if claim.roles[place] == "name"]
    near += [place for place in places[:_NOUN_REACH] if claim.roles[place] == "word"]
    return near[0] if near else None


def _agent(words: Sequence[Word], left: int, verb: int, right: int) -> str:
    """The agent: the name after "by", with a helper verb ("was sold by") or without ("sold by")."""
    by = any(word.key == "by" for word in words[verb + 1 : min(right, verb + 4)])
    passive = by and not words[verb].text.endswith("ing")
    return words[right].key if passive else words[left].key


def _agent_of(words: Sequence[Word], one: str, verb: str, other: str) -> str | None:
    """The agent among two names with the verb between them."""
    spots = [at for at, word in enumerate(words) if word.key == verb and word.kind == "word"]
    for at in spots:
        behind, ahead = range(at - 1, -1, -1)[:_ROLE_REACH], range(at + 1, len(words))[:_ROLE_REACH]
        left = next((place for place in behind if words[place].key in (one, other)), None)
        right = next((place for place in ahead if words[place].key in (one, other)), None)
        if left is not None and right is not None and words[left].key != words[right].key:
            return _agent(words, left, at, right)
    return None


# -- what follows what --------------------------------------------------------------------------------


class _Joined(NamedTuple):
    """Two clauses and their link: main clause, linked clause."""

    sense: str
    main: frozenset[str]
    linked: frozenset[str]
    at: int


def _changed_link(claim: Claim, source: Source) -> Iterator[Doubt]:
    if claim.covered < _LINK_COVER_MIN:
        return
    ours = _joined(claim.words, claim.text)
    sentence = source.sentences[claim.best]
    text = source.documents[sentence.document].text[sentence.start : sentence.end]
    theirs = _joined(sentence.words, text)
    if ours is None or theirs is None:
        return
    straight = len(ours.main & theirs.main) + len(ours.linked & theirs.linked)
    crossed = len(ours.main & theirs.linked) + len(ours.linked & theirs.main)
    if straight == crossed:
        return
    same = ours.sense == theirs.sense
    opposite = OPPOSED_LINKS.get(ours.sense) == theirs.sense
    turned = crossed > straight
    directed = ours.sense in ("earlier", "later", "cause")
    order = ours.sense in ("earlier", "later")
    if (same and turned and directed) or (opposite and not (turned and order)):
        word, rival = claim.words[ours.at], sentence.words[theirs.at]
        why = f"the evidence links this by “{rival.text}”, the claim by “{word.text}”"
        if same:
            why = f"the evidence has what “{word.text}” links the other way round"
        instead = None if same else rival.text
        yield Doubt("link_changed", "LinkE", word.start, word.end, why, instead=instead, place=claim.best)


def _joined(words: Sequence[Word], text: str) -> _Joined | None:
    """The single link of a sentence with clauses on both sides of it; "After X, Y" is read as "Y after X"."""
    links = [at for at, word in enumerate(words) if word.key in LINKS and LINKS[word.key] != "condition"]
    if len(links) != 1:
        return None
    at = links[0]
    if at == 0:
        comma = text.find(",", words[0].end)
        split = next((place for place, word in enumerate(words) if word.start > comma), len(words)) if comma > 0 else 0
        linked, main = words[1:split], words[split:]
    else:
        main, linked = words[:at], words[at + 1 :]
    sides = [frozenset(word.key for word in side if word.kind != "small") for side in (main, linked)]
    return _Joined(LINKS[words[at].key], sides[0], sides[1], at) if all(sides) else None


# -- how sure -----------------------------------------------------------------------------------------


def _certainty(claim: Claim, source: Source) -> Iterator[Doubt]:
    """Doubt a claim that states as certain what the evidence, in the same words, says is only possible."""
    if claim.covered < _CERTAINTY_COVER_MIN:
        return
    words = source.sentences[claim.best].words
    if any(MODALITY.get(word.text.casefold(), 2) < 2 for word in claim.words):
        return
    for at, role in enumerate(claim.roles):
        if role != "verb":
            continue
        key = claim.words[at].key
        spots = [place for place, word in enumerate(words) if word.key == key]
        unsure = [[word for word in words[max(0, spot - 2) : spot] if _unsure(word)] for spot in spots]
        if spots and all(unsure):
            word, modal = claim.words[at], unsure[0][0].text
            why = f"the evidence says only “{modal}” of “{word.text}”"
            yield Doubt("certainty", "PredE", word.start, word.end, why, place=claim.best)
            return


def _unsure(word: Word) -> bool:
    return MODALITY.get(word.text.casefold()) == 0 and word.text[:1].islower()


# -- what is foreign to the source --------------------------------------------------------------------


def _substituted(claim: Claim, source: Source) -> Iterator[Doubt]:
    """Doubt a short differing piece between identical ones, in scripts without capitals."""
    sentence = source.sentences[claim.best]
    theirs = source.documents[sentence.document].text[sentence.start : sentence.end]
    if max(len(theirs), len(claim.text)) > _SUBSTITUTE_TEXT_MAX:
        return
    pieces = _hangul_pieces(sentence.words, claim.words) or _han_pieces(theirs, claim.text)
    for start, end, left, right in pieces:
        mine, other = claim.text[start:end], theirs[left:right]
        absent = not any(mine in one.text for one in source.documents)
        error: ErrorType = "OutE" if absent else "EntE"
        kind: DoubtKind = "name_absent" if absent else "name_elsewhere"
        why = f"the evidence has “{other}” where the claim has “{mine}”"
        yield Doubt(kind, error, start, end, why, instead=other, place=claim.best)


_Piece = tuple[int, int, int, int]
"""Its place in the claim, and the place of the differing piece in the evidence."""


def _framed(theirs: Sequence[str], mine: Sequence[str], alike_min: float) -> list[_Piece]:
    """Replaced stretches between equal ones, in two sequences that are mostly alike."""
    codes = SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes()
    same = sum(code[4] - code[3] for code in codes if code[0] == "equal")
    if same < alike_min * len(mine):
        return []
    rows = zip(codes, codes[1:], codes[2:], strict=False)
    return [
        (code[3], code[4], code[1], code[2])
        for before, code, after in rows
        if code[0] == "replace" and before[0] == after[0] == "equal"
    ]


def _han_pieces(theirs: str, mine: str) -> list[_Piece]:
    """Two to four characters in place of two to four others."""
    sizes = range(2, _SUBSTITUTE_SIGNS_MAX + 1)
    return [
        piece
        for piece in _framed(theirs, mine, _SIGNS_ALIKE_MIN)
        if piece[1] - piece[0] in sizes
        and piece[3] - piece[2] in sizes
        and all(
            is_cjk(sign) and not is_hangul(sign) for sign in mine[piece[0] : piece[1]] + theirs[piece[2] : piece[3]]
        )
    ]


def _hangul_pieces(theirs: Sequence[Word], mine: Sequence[Word]) -> list[_Piece]:
    """One word with a particle (a noun) in place of another, before the same final verb."""
    pieces: list[_Piece] = []
    for start, end, left, right in _framed(
        [word.key for word in theirs], [word.key for word in mine], _WORDS_ALIKE_MIN
    ):
        one, other = mine[start], theirs[left]
        nouns = all(is_hangul(word.text[0]) and word.kind == "word" and word.key != word.text for word in (one, other))
        if end - start == right - left == 1 and nouns:
            pieces.append((one.start, one.end, other.start, other.end))
    return pieces


def _extrinsic(claim: Claim, absent_share: float) -> Iterator[Doubt]:
    unknown = [at for at in claim.content if not claim.variants[at]]
    if len(unknown) < _ABSENT_COUNT_MIN or len(unknown) < absent_share * len(claim.content):
        return
    first, last = claim.words[unknown[0]], claim.words[unknown[-1]]
    shown = ", ".join(dict.fromkeys(claim.words[at].text for at in unknown[:4]))
    why = f"{len(unknown)} of {len(claim.content)} words are not in the source: {shown}"
    yield Doubt("words_absent", "OutE", first.start, last.end, why)
