"""Documents in the form the fact checker reads, and sentences of the output matched with them.

A source is sentences, words, and the places of each word; it is read once. A claim is a unit of the output with its
words, the role of each, and the evidence that covers it best.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import sentence_spans
from muniment.verify.facts._senses import Senses, is_irregular, is_ordinary, is_verb, read_senses
from muniment.verify.facts._words import (
    ARTICLES,
    AUXILIARY,
    GENDER,
    LINKS,
    NOT_ALONE,
    Word,
    may_negate,
    negates,
    read_words,
    verb_stems,
)

if TYPE_CHECKING:
    from muniment.verify.facts._roles import Roles

_SENTENCE_GAP = 4
"""Minimum distance of words in different sentences."""
_SENTENCE_WORDS_MAX = 200
"""Longer sentences are tables or lists without stops: they are cut, to bound the cost of each sentence."""
_SENTENCES_MAX = 400
_PLACES_MAX = 200
"""Maximum occurrences compared for a frequent word, which carries little information."""


_NAME_WORDS_MAX = 8
_SPOTS_MAX = 6
_STOP = Word(".", 0, 0, ".", "word")


class SourceText(NamedTuple):
    """A document to check against. `id` is the name used in references; `source` is the contract's kind of evidence."""

    id: str
    text: str
    source: Literal["x_ref", "artifact", "tool"] = "x_ref"


class Sentence(NamedTuple):
    """A sentence of a document: the document, its place in it, its words, and the running index of its first word."""

    document: int
    start: int
    end: int
    words: tuple[Word, ...]
    base: int


class Variant(NamedTuple):
    """A form in the source that may match a word of the output, and how well (1 is the word itself)."""

    key: str
    degree: float


class Source:
    """Sentences of all documents, with an index of their words."""

    def __init__(self, documents: Sequence[SourceText]) -> None:
        self.documents = tuple(documents)
        self.sentences: list[Sentence] = []
        self.keys: list[frozenset[str]] = []
        self.exact: dict[str, int] = {}
        """Sentence text → its index."""
        self.places: dict[str, list[int]] = {}
        """Word key → its running word positions over all sentences."""
        self.spread: dict[str, list[int]] = {}
        """Word key → sentences with the word, limited to the first ones if there are very many."""
        self.pairs: set[tuple[str, str]] = set()
        self.named: set[str] = set()
        """Words capitalised inside a sentence."""
        self.written_small: set[str] = set()
        """Words written in lower case."""
        self.genders: set[str] = set()
        """The pronouns among "he" and "she" that the source uses."""
        self.with_pronoun: set[int] = set()
        """Sentences that refer to someone by a pronoun."""
        self.denials: list[int] = []
        """Positions of negating words."""
        self.roles: dict[tuple[int, int], Roles] = {}
        """Cached roles of a word in a sentence: both sides of it."""
        self.breaks: dict[int, tuple[int, ...]] = {}
        self.acts: dict[int, list[tuple[int, Word]]] = {}
        self.sorts: dict[tuple[int, str], list[tuple[int, Word]]] = {}
        self._positions: dict[int, dict[str, list[int]]] = {}
        self._content: dict[int, tuple[str, ...]] = {}
        self._senses: dict[int, list[Senses]] = {}
        self._sentence_at: list[int] = []
        self._rarities: dict[int, float] = {}
        for number, document in enumerate(documents):
            for start, end in sentence_spans(document.text):
                words = read_words(document.text[start:end])
                if len(words) <= _SENTENCE_WORDS_MAX:
                    self._add(number, start, end, words)
                    continue
                for at in range(0, len(words), _SENTENCE_WORDS_MAX):
                    part = words[at : at + _SENTENCE_WORDS_MAX]
                    left, right = start + part[0].start, start + part[-1].end
                    self._add(number, left, right, read_words(document.text[left:right]))

    def _add(self, document: int, start: int, end: int, words: list[Word]) -> None:
        place, base = len(self.sentences), len(self._sentence_at)
        keys = [word.key for word in words]
        held = frozenset(keys)
        text = self.documents[document].text[start:end]
        self.sentences.append(Sentence(document, start, end, tuple(words), base))
        self.exact.setdefault(text, place)
        self.keys.append(held)
        for spot, key in enumerate(keys, start=base):
            spots = self.places.get(key)
            if spots is None:
                self.places[key], self.spread[key] = [spot], [place]
                continue
            spots.append(spot)
            spread = self.spread[key]
            if spread[-1] != place and len(spread) < _SENTENCES_MAX:
                spread.append(place)
        self.pairs.update(pairwise(keys))
        self.written_small.update([word.key for word in words if word.kind == "word"])
        self.named.update([word.key for word in words[1:] if word.kind == "name"])
        if not GENDER.keys().isdisjoint(held):
            self.with_pronoun.add(place)
            self.genders.update({GENDER[key] for key in held if key in GENDER} & {"he", "she"})
        if may_negate(text, held):
            self.denials += [base + at for at, word in enumerate(words) if negates(word.text, word.key)]
        self._sentence_at += [place] * (len(keys) + _SENTENCE_GAP)

    def __len__(self) -> int:
        return len(self.sentences)

    def positions(self, place: int) -> dict[str, list[int]]:
        """Positions of each word in a sentence, limited to the first few."""
        found = self._positions.get(place)
        if found is None:
            found = self._positions[place] = {}
            for at, word in enumerate(self.sentences[place].words):
                spots = found.setdefault(word.key, [])
                if len(spots) < _SPOTS_MAX:
                    spots.append(at)
        return found

    def content(self, place: int) -> tuple[str, ...]:
        """Distinct content words of a sentence, without names and numbers."""
        found = self._content.get(place)
        if found is None:
            kept = dict.fromkeys(
                word.key for at, word in enumerate(self.sentences[place].words) if word.kind == "word" or at == 0
            )
            found = self._content[place] = tuple(kept)
        return found

    def senses(self, place: int) -> list[Senses]:
        """Senses of these words in the tables."""
        found = self._senses.get(place)
        if found is None:
            found = self._senses[place] = read_senses(self.content(place))
        return found

    def holds(self, place: int, key: str) -> bool:
        """True if a sentence has a word; false for indices out of range."""
        return 0 <= place < len(self.keys) and key in self.keys[place]

    def denies(self, place: int) -> bool:
        """True if a sentence negates anything."""
        sentence = self.sentences[place]
        at = bisect_left(self.denials, sentence.base)
        return at < len(self.denials) and self.denials[at] < sentence.base + len(sentence.words)

    @cached_property
    def short_names(self) -> dict[str, str]:
        """Short forms of names → the rarest word of the name: initials (MFA), and two words joined (Gameboy)."""
        found: dict[str, str] = {}
        for sentence in self.sentences:
            run: list[Word] = []
            for word in (*sentence.words, _STOP):
                if word.kind == "name":
                    if run and len(run) < _NAME_WORDS_MAX:
                        found.setdefault((run[-1].text + word.text).casefold(), word.key)
                    run.append(word)
                elif not (run and word.kind == "small" and word.text.islower() and len(word.text) < 4):
                    if len(run) > 1:
                        found.setdefault("".join(one.text[0] for one in run[:_NAME_WORDS_MAX]).casefold(), run[-1].key)
                    run = []
        return found

    @cached_property
    def name_count_max(self) -> int:
        """Number of sentences with the commonest name."""
        return max((len(self.spread.get(key, ())) for key in self.named), default=1) or 1

    @cached_property
    def _openings(self) -> dict[str, list[str]]:
        """Word prefixes → words with them, in order of first occurrence."""
        found: dict[str, list[str]] = {}
        for key in self.places:
            found.setdefault(_opening(key), []).append(key)
        return found

    def rarity(self, key: str) -> float:
        """Weight of a word: the fewer sentences have it, the higher."""
        count = len(self.spread.get(key, ()))
        found = self._rarities.get(count)
        if found is None:
            found = self._rarities[count] = math.log(1 + (len(self) + 0.5) / (count + 0.5))
        return found

    def variants(self, word: Word) -> list[Variant]:
        """Forms in which the source may have a word: itself, or else words with the same beginning."""
        if word.key in self.places:
            return [Variant(word.key, 1.0)]
        if word.kind == "number":  # "9 April" and "the 9th of April"
            other = word.key[:-2] if word.key.endswith("th") else word.key + "th"
            return [Variant(other, 0.9)] if other in self.places else []
        if word.kind not in ("word", "name"):
            return []
        if word.kind == "name":
            known = self.short_names.get(word.text.casefold().split("'")[0].split("’")[0].replace(".", ""))
            if known is not None:
                return [Variant(known, 0.9)]
        opening = _opening(word.key)
        return [Variant(key, 0.6) for key in self._openings.get(opening, ())[:8]] if opening else []

    def closeness(self, left: str, right: str, apart: int) -> float:
        """How near two words come in the source, relative to their distance in the output: 1 as near, 0 never near."""
        ones, others = self.places.get(left, ())[:_PLACES_MAX], self.places.get(right, ())
        best = 0.0
        for place in ones:
            at = bisect_left(others, place)
            for near in others[max(0, at - 1) : at + 2]:
                if near == place:
                    continue
                value = 1 / (1 + max(0, abs(near - place) - apart - 1) / 4)
                if near < place:
                    value *= 0.85
                gap = abs(self._sentence_at[near] - self._sentence_at[place])
                value *= 1.0 if gap == 0 else 0.6 if gap == 1 else 0.0
                best = max(best, value)
            if best >= 1:
                break
        return best

    def denied(self, place: int, reach: int = 6) -> bool:
        """True if a negation comes shortly before this place (or in the two words after it: "is not")."""
        at = bisect_left(self.denials, place - reach)
        return at < len(self.denials) and self.denials[at] <= place + 2


def _opening(key: str) -> str:
    """Beginning shared by related words: five letters, or two syllables of Hangul; empty for a word too short."""
    size = 2 if "\uac00" <= key[0] <= "\ud7a3" else 5
    return key[:size] if len(key) >= size else ""


# -- claims --------------------------------------------------------------------------------------------

Role = Literal["word", "verb", "name", "number", "date", "pronoun", "negation", "link"]
_BEFORE, _AFTER = 0.4, 0.3
"""Weight of the neighbouring sentences in coverage, as subjects and antecedents are often there."""
_MEANT = 0.5
"""Added weight for names of the previous sentence if the sentence has a pronoun."""
_TOPS_MAX = 3
_DENIED_REACH = 3
_MARK = lazy_pattern(r"\[\d{1,3}\]")
_CLAUSE_END = lazy_pattern(r";\s+|,\s+(?:and|but|while|whereas)\s+|[；;]")
_CLAUSE_WORDS_MIN = 3
_SINGULAR = frozenset(("is", "was", "has", "does"))
"""Verbs that, after a single word without an article, mark it as a name or a topic that the source must mention."""
_NOUN_ENDS = ("tion", "sion", "ment", "ence", "ance", "er", "ers", "or", "ors")
"""Endings that mark a word with a verb's stem as a noun."""


class Unit(NamedTuple):
    """A part of the output that is judged separately."""

    id: str
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A unit's words and roles, the source's forms of each word, and the sentence that covers it best (-1: none)."""

    text: str
    words: tuple[Word, ...]
    roles: tuple[Role | None, ...]
    variants: tuple[tuple[Variant, ...], ...]
    content: tuple[int, ...]
    best: int
    tops: tuple[int, ...]
    """The sentences that cover it best, the best first."""
    near: range
    covered: float
    """Share of its weight that the best sentence and its neighbours cover."""
    keys: frozenset[str]
    evidence: frozenset[str]
    around: frozenset[str]

    def denies(self, at: int) -> bool:
        """True if a negation comes shortly before a word."""
        return "negation" in self.roles[max(0, at - _DENIED_REACH) : at]


def unmarked(output: str, source: Source) -> str:
    """Replace marks that cite a document by spaces, keeping all positions.

    A bracketed number that is no document's mark is a figure like any other.
    """
    marks = {found[0] for document in source.documents if (found := _MARK.match(document.text))}
    return _MARK.sub(lambda mark: " " * len(mark[0]) if mark[0] in marks else mark[0], output) if marks else output


def split_units(output: str, unitization: Literal["sentence", "atomic_claim"]) -> list[Unit]:
    """Split into sentences `s0`, `s1`, …; or into their clauses `s0.c0`, `s0.c1`, … if each makes its own statement.

    Pieces without a letter or a digit, such as a stray full stop, are not judged if there are others.
    """
    units: list[Unit] = []
    spans = sentence_spans(output)
    told = [span for span in spans if any(sign.isalnum() for sign in output[span[0] : span[1]])]
    for number, (start, end) in enumerate(told or spans):
        if unitization == "sentence":
            units.append(Unit(f"s{number}", start, output[start:end]))
            continue
        for place, (left, right) in enumerate(_clauses(output[start:end])):
            units.append(Unit(f"s{number}.c{place}", start + left, output[start + left : start + right]))
    return units


def _clauses(sentence: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    starts = [word.start for word in read_words(sentence) if word.kind != "small"]
    start = 0
    for found in _CLAUSE_END.finditer(sentence):
        before = bisect_left(starts, found.start()) - bisect_left(starts, start)
        behind = len(starts) - bisect_left(starts, found.end())
        if min(before, behind) >= _CLAUSE_WORDS_MIN:
            spans.append((start, found.start()))
            start = found.end()
    return [*spans, (start, len(sentence))]


def read_claim(text: str, source: Source) -> Claim:
    words = tuple(read_words(text))
    variants = tuple(tuple(source.variants(word)) if word.kind != "small" else () for word in words)
    tops, covered = _best_sentences(words, variants, source)
    best = tops[0] if tops else -1
    near = range(max(0, best - 1), min(len(source), best + 2)) if best >= 0 else range(0)
    return Claim(
        text=text,
        words=words,
        roles=tuple(_role(words, at, source) for at in range(len(words))),
        variants=variants,
        content=tuple(at for at, word in enumerate(words) if word.kind != "small"),
        best=best,
        tops=tops,
        near=near,
        covered=covered,
        keys=frozenset(word.key for word in words),
        evidence=source.keys[best] if best >= 0 else frozenset(),
        around=frozenset().union(*(source.keys[place] for place in near)),
    )


def _best_sentences(
    words: Sequence[Word], variants: Sequence[Sequence[Variant]], source: Source
) -> tuple[tuple[int, ...], float]:
    """The few best-covering sentences, and the share that the first of them covers."""
    cover: dict[int, float] = {}
    meant: dict[int, float] = {}
    said = Counter(
        (word.key, word.kind, tuple(forms)) for word, forms in zip(words, variants, strict=True) if word.kind != "small"
    )
    total = sum(source.rarity(key) * times for (key, _, _), times in said.items())
    for (_, kind, forms), times in said.items():  # a repeated word is looked up once
        held: dict[int, float] = {}
        for form in forms:
            worth = form.degree * source.rarity(form.key) * times
            for place in source.spread[form.key]:
                held[place] = max(held.get(place, 0.0), worth)
        for place, worth in held.items():
            cover[place] = cover.get(place, 0.0) + worth
            if kind == "name" and place + 1 in source.with_pronoun and place + 1 not in held:
                meant[place + 1] = meant.get(place + 1, 0.0) + _MEANT * worth
    values = {
        place: held + meant.get(place, 0.0) + _BEFORE * cover.get(place - 1, 0.0) + _AFTER * cover.get(place + 1, 0.0)
        for place, held in cover.items()
    }
    tops = tuple(nsmallest(_TOPS_MAX, values, key=lambda place: (-values[place], place)))
    return tops, values[tops[0]] / total if tops and total else 0.0


def _role(words: Sequence[Word], at: int, source: Source) -> Role | None:
    """Role of a word in its sentence, judged by the tables and its neighbours."""
    word = words[at]
    if word.kind == "small" and word.key in GENDER:
        return "pronoun"
    if negates(word.text, word.key):
        return None if at + 1 < len(words) and words[at + 1].key in NOT_ALONE else "negation"
    if word.key in LINKS:
        return "link"
    if word.kind == "small":
        return None
    if word.kind == "number":
        return "number"
    if word.kind == "date":
        return "date"
    if word.kind == "name" and (at > 0 or word.key in source.named or _opens_name(words, source)):
        return "name"
    before = words[at - 1].key if at else ""
    if before in ARTICLES or word.text.endswith(_NOUN_ENDS):
        return "word"
    if word.key in verb_stems() or (before in AUXILIARY and word.text.endswith(("ed", "ing", "en"))):
        return "verb"
    past = (word.text.endswith("ed") and (is_verb(word.key) or is_verb(word.text[:-1]))) or is_irregular(word.text)
    return "verb" if past else "word"


def _opens_name(words: Sequence[Word], source: Source) -> bool:
    """True if the first word, whose capital is no evidence, is a name: it precedes another capital, or is never written
    in lower case.
    """
    word = words[0]
    if word.key in source.written_small or not word.text.isascii():
        return False
    if word.key in source.places:
        return not is_ordinary(word.key)
    if len(words) > 1 and words[1].kind == "name":
        return True
    alone = len(words) > 1 and (words[1].key in _SINGULAR or word.text.endswith(("'s", "’s")))
    return not is_ordinary(word.key) or (alone and not word.text.endswith("ing"))
