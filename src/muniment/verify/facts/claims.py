"""A sentence of the output beside the source: its words, what each does, and the evidence that covers it best."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Literal, NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import sentence_spans
from muniment.verify.facts.lexicon import ARTICLES, AUXILIARY, GENDER, LINKS, NOT_ALONE, negates, verb_stems
from muniment.verify.facts.related import is_irregular, is_ordinary, is_verb
from muniment.verify.facts.source import Source, Variant
from muniment.verify.facts.words import Word, read_words

__all__ = ["Claim", "Role", "Unit", "read_claim", "split_units", "unmarked"]

Role = Literal["word", "verb", "name", "number", "date", "pronoun", "negation", "link"]
_BEFORE, _AFTER = 0.4, 0.3
"""How much a sentence's neighbours count towards what it covers: pronouns and subjects stand there."""
_MEANT = 0.5
"""And so much more where the sentence has a pronoun, for the names of the sentence before."""
_TOPS_MAX = 3
_DENIED_REACH = 3
_MARK = lazy_pattern(r"\[\d{1,3}\]")
_CLAUSE_END = lazy_pattern(r";\s+|,\s+(?:and|but|while|whereas)\s+|[；;]")
_CLAUSE_WORDS_MIN = 3
_SINGULAR = frozenset(("is", "was", "has", "does"))
"""Behind a single word without an article: a name, or a matter that the source would have to speak of."""
_NOUN_ENDS = ("tion", "sion", "ment", "ence", "ance", "er", "ers", "or", "ors")
"""A word of a verb's stem that ends so is no verb."""


class Unit(NamedTuple):
    """A part of the output that is judged by itself."""

    id: str
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A unit's words and roles, the source's forms for each word, and the sentence that covers it best (-1: none)."""

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
    """The share of the weight of its words that the best sentence holds, its neighbours counted in."""
    keys: frozenset[str]
    evidence: frozenset[str]
    around: frozenset[str]

    def denies(self, at: int) -> bool:
        """Does a denial stand shortly before a word?"""
        return "negation" in self.roles[max(0, at - _DENIED_REACH) : at]


def unmarked(output: str, source: Source) -> str:
    """The output with blanks for the marks that cite a document by the mark it begins with; all else in its place.

    A number in brackets by which no document calls itself is a figure like any other.
    """
    marks = {found[0] for document in source.documents if (found := _MARK.match(document.text))}
    return _MARK.sub(lambda mark: " " * len(mark[0]) if mark[0] in marks else mark[0], output) if marks else output


def split_units(output: str, unitization: Literal["sentence", "atomic_claim"]) -> list[Unit]:
    """Sentences `s0`, `s1`, …; or their clauses `s0.c0`, `s0.c1`, … where each says something of its own.

    Signs without a letter or a digit, a stray full stop say, are no sentence and are not judged beside others.
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
    """The few that cover it best, and how much of it the first of them does."""
    cover: dict[int, float] = {}
    meant: dict[int, float] = {}
    said = Counter(
        (word.key, word.kind, tuple(forms)) for word, forms in zip(words, variants, strict=True) if word.kind != "small"
    )
    total = sum(source.rarity(key) * times for (key, _, _), times in said.items())
    for (_, kind, forms), times in said.items():  # a word that is said again goes through the source once
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
    """What a word does in its sentence, as far as the tables and its neighbours tell."""
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
    """Is the first word, whose capital says nothing, a name? So it seems before another capital, or if no text writes
    it small."""
    word = words[0]
    if word.key in source.written_small or not word.text.isascii():
        return False
    if word.key in source.places:
        return not is_ordinary(word.key)
    if len(words) > 1 and words[1].kind == "name":
        return True
    alone = len(words) > 1 and (words[1].key in _SINGULAR or word.text.endswith(("'s", "’s")))
    return not is_ordinary(word.key) or (alone and not word.text.endswith("ing"))
