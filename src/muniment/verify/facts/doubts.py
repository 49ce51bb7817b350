"""What speaks against a claim, word by word: each check gives doubts, each with its kind of error and what it rests on.

Numbers, dates and names that the source does not hold, or holds elsewhere while the evidence has another in their
place; a denial that the evidence does not share, or one that the claim lost; a word whose opposite the evidence uses.
Checks of how words hang together are in `relations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from muniment.verify.facts.claims import Claim
from muniment.verify.facts.lexicon import CIRCUMSTANCE_BEFORE, PERIODS, denying_stems, negates
from muniment.verify.facts.related import table_opposed
from muniment.verify.facts.source import Source
from muniment.verify.facts.synonyms import opposed
from muniment.verify.facts.units import unit_of
from muniment.verify.facts.words import Word

__all__ = ["Doubt", "DoubtKind", "ErrorType", "word_doubts"]

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
"""Numbers that a text may give by naming so many things."""
_DENIAL_REACH = 6
_COVER_WELL = 0.6
_COVER_MIN = 0.5
"""Below it a denial may belong to something that the evidence does not speak of."""
_SLOT_REACH = 4
_SILENT_TEXT = (
    "words_absent name_absent number_absent date_absent no_antecedent subject_unmatched object_unmatched "
    "place_unmatched time_unmatched number_unmatched verb_unmatched word_unmatched"
)
_SILENT = frozenset(_SILENT_TEXT.split())
"""What the source says nothing about."""


class Doubt(NamedTuple):
    """One thing that speaks against a claim: `start` and `end` are its place in the claim's text."""

    kind: DoubtKind
    error: ErrorType
    start: int
    end: int
    why: str
    weight: float = 1.0
    instead: str | None = None
    """What the evidence has in its place; an empty string where it has nothing."""
    place: int = -1
    """The sentence of the source that it rests on."""
    quiet: bool = False
    """Too little to change a verdict: it counts towards the score alone."""

    @property
    def contradicts(self) -> bool:
        """Does the evidence say otherwise, rather than say nothing?"""
        return self.instead is not None or self.kind not in _SILENT


def word_doubts(claim: Claim, source: Source) -> Iterator[Doubt]:
    """The doubts that single words raise."""
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
    """Does the word tell when, where or how long rather than who or what?"""
    before = claim.words[at - 1].key if at else ""
    after = claim.words[at + 1].key if at + 1 < len(claim.words) else ""
    return claim.roles[at] == "date" or before in CIRCUMSTANCE_BEFORE or after in PERIODS


# -- numbers, dates, names ----------------------------------------------------------------------------


class _NearUnits:
    """What the sentences near a claim count in which unit, by the number: read once, when first asked for."""

    def __init__(self, claim: Claim, source: Source) -> None:
        self._claim, self._source = claim, source
        self._places: dict[str, list[tuple[int, int]]] | None = None
        self._units: dict[str, dict[str, int]] = {}

    def of(self, key: str) -> dict[str, int]:
        """The units in which a number stands there, each with the first sentence that has it so."""
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
    """Doubts about a number that the source gives too, but of something else."""
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
    """Does the best sentence have numbers that the claim has not?"""
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
    """Does the evidence have the last word of a name, never behind another name than the claim's?"""
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
    """What the best sentence has of the same sort beside the same words, and the claim has not; one year for another.

    Where only one small word beside it is the same, the sentence has to cover the claim well, or, to be `sure`, it is
    not enough.
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
    """Years stand for years, months for months, days of the week for each other; digits for digits among dates."""
    if one.kind == "date":
        return one.key[:2] == other.key[:2] and one.text.isdecimal() == other.text.isdecimal()
    return _is_year(one) == _is_year(other)


def _is_year(word: Word) -> bool:
    return len(word.text) == 4 and word.text.isdecimal() and "1500" <= word.key <= "2100"


def _runs(words: Sequence[Word], kind: str) -> list[tuple[int, int]]:
    """First and last places of stretches of one sort; names that follow each other are one, all else stands alone."""
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
    """A denial where the evidence denies nothing, and nowhere denies what is denied here."""
    if claim.best < 0:
        return
    behind = claim.words[at].text.isascii()
    reach = range(at + 1, at + 1 + _DENIAL_REACH) if behind else range(max(0, at - _DENIAL_REACH), at)
    denied = [place for place in reach if place < len(claim.words) and claim.words[place].kind != "small"]
    for place in denied[:2] if behind else denied[-2:]:
        key = claim.words[place].key
        if (
            place == denied[0]
            and key not in claim.evidence
            and not claim.evidence.isdisjoint(opposed(key) | table_opposed(key))
        ):
            return  # to deny a word is to say its opposite
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
    """A verb that the evidence denies and the claim, which it covers well and which denies nothing, does not."""
    if claim.best < 0 or claim.covered < _COVER_WELL:
        return
    word = claim.words[at]
    sentence = source.sentences[claim.best]
    spots = [sentence.base + offset for offset, other in enumerate(sentence.words) if other.key == word.key]
    if spots and all(source.denied(spot, 2) for spot in spots):
        why = f"the evidence denies “{word.text}”"
        yield Doubt("negation_dropped", "PredE", word.start, word.end, why, place=claim.best)


def _opposite(claim: Claim, source: Source, at: int) -> Iterator[Doubt]:
    """A word the evidence lacks, while it uses one that means the opposite."""
    word = claim.words[at]
    if word.key in claim.around or claim.best < 0 or claim.denies(at):
        return
    others = opposed(word.key) & (claim.evidence - claim.keys)
    if not others:
        return
    if any(form.degree >= 0.7 and form.key in claim.evidence for form in claim.variants[at]):
        return  # the evidence also says the same in other words
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
    """The words of content shortly before and behind a place."""
    near = (*words[max(0, at - _SLOT_REACH) : at], *words[at + 1 : at + 1 + _SLOT_REACH])
    return frozenset(word.key for word in near if word.kind != "small")
