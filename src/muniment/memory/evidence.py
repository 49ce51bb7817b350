"""The probability that a turn is evidence, from signs that are measured alike for every query.

A *sign* is a share, or the logarithm of a count. Two probabilities are estimated: that memory holds any evidence, by
the signs of the query as a whole, and that a hit is evidence if there is any, by the signs of the hit. Its score is
their product. Nothing here depends on the number of hits requested.

A question about one person matches another person's words just as well. So if a query names one person, that person's
turns are distinguished from everyone else's; and turns that ask are ignored, since asking is not stating. If nobody is
named, everybody counts.

The weights are numbers of `data/evidence.json`, fitted by `benchmarks.learn_evidence` on several sets of conversations
and judged on a held-out one. The policy names the file by its digest.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.canonical import digest
from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import MONTHS, analyze, term_hash
from muniment.core.text.kinds import Group, widen
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import read_data
from muniment.errors import InvalidInput
from muniment.memory._index import QUESTION, Ints, ScopeIndex
from muniment.memory.query import QUERY_CHARS_MAX, Query
from muniment.memory.scoring import Flags, Matches, Scores, only_asking, share_of, slot_weights

__all__ = [
    "FIRST",
    "FOUND_SIGNS",
    "KIND_SHARE",
    "MARKS",
    "NOTHING",
    "NO_MATCH",
    "SIGNS",
    "Calibration",
    "Match",
    "Reasons",
    "Wanted",
    "Weights",
    "Wording",
    "apply_weights",
    "calibration",
    "chance_of_fact",
    "chances",
    "match_text",
    "read_fitted",
    "read_found",
    "read_signs",
    "read_wanted",
    "read_weights",
]

Array = npt.NDArray[np.float64]

SIGNS = (
    "own",  # the share of the query's weight in the turn itself
    "around",  # the share of the query in its context, of the possible maximum
    "of_best",  # the value of its place, relative to the first place
    "place",  # the logarithm of its place
    "best_own",  # the largest own share among the first hits
    "best_around",  # the largest context share among the first hits
    "unheard",  # the share of the query's weight that no turn in the scope has
    "by_named",  # spoken by the one person whom the query names
    "by_other",  # spoken by somebody else, if the query names one person
    "other_own",  # the largest own share among the first hits of other speakers
    "asks",  # only a question
    "by_asker",  # spoken by the person asked about
    "turn_words",  # the logarithm of its length
    "query_words",  # the logarithm of the query's
    "turns",  # the logarithm of the number of turns in the scope
    "near",  # nearness in meaning, in standard deviations
    "best_near",  # the nearest of the first
    "near_window",  # nearness of the turns around it
)
"""The signs, in the column order of `read_signs`."""
FOUND_SIGNS = (
    "says",  # the largest share of the query's weight in one turn, of the person named or of anybody
    "hears",  # the largest share in one of their turns with its context, of the possible maximum
    "rival",  # the largest share in one turn of anyone other than the person named
    "part",  # how far the person named dominates the query's words: from -0.5 to 0.5
    "named",  # one person is named
    "query_words",  # the logarithm of the query's length
    "turns",  # the logarithm of the number of turns in the scope
    "nearest",  # nearest in meaning among their turns, in standard deviations
    "rival_nearest",  # nearest among the turns of others
)
"""The signs, in the column order of `read_found`."""
_COLUMNS = {name: column for column, name in enumerate(SIGNS)}
FIRST = 10
"""The number of top hits used for the query's best values: `read_signs` needs at least this many, if there are."""
_FALL = 1 - 1e-4
"""A hit is at least slightly less likely than the one above it, so that sorting by probability keeps the order."""
_DIGITS = 10
_LEAST = 1e-6
_QUESTION = term_hash(QUESTION)


# -- signs --------------------------------------------------------------------------------------------


def read_signs(
    query: Query, index: ScopeIndex, policy: RecallPolicy, scores: Scores, matches: Matches, worths: Array
) -> Array:
    """The signs of matched turns, best first, a row each. `worths` are the values of their places."""
    turns, count = matches.turns, len(matches.turns)
    own = share_of(matches.weights, matches.words) + KIND_SHARE * share_of(matches.weights, matches.meant)
    around = (_part(scores, "words", turns) + _part(scores, "kinds", turns)) * scores.unit
    whole, unsaid = float(np.add.reduce(matches.weights)), np.array(matches.counts, np.int64) == 0
    found = {
        "own": own,
        "around": around,
        "of_best": worths / worths[0] if count and worths[0] > 0 else 0.0,
        "place": np.log1p(np.searchsorted(-worths, -worths)),  # turns of equal worth share a place
        "best_own": own[:FIRST].max(initial=0.0),
        "best_around": around[:FIRST].max(initial=0.0),
        "unheard": float(np.add.reduce(matches.weights * unsaid)) / whole if whole else 0.0,
        "asks": only_asking(index)[turns],
        "by_asker": _part(scores, "role", turns) > 0,
        "turn_words": np.log1p(index.length[turns]) / 5,
        "query_words": math.log1p(len(query.slots)) / 3,
        "turns": math.log1p(len(index.ts)) / 8,
    }
    if query.speaker is not None:
        is_named = index.speaker[turns] == query.speaker
        found |= {"by_named": is_named, "by_other": ~is_named, "other_own": own[~is_named][:FIRST].max(initial=0.0)}
    if "dense_turn" in scores.parts:
        near = _part(scores, "dense_turn", turns) / (policy.dense_turn or 1.0) / 3
        window = _part(scores, "dense_window", turns) / (policy.dense_window or 1.0) / 3
        found |= {"near": near, "best_near": near[:FIRST].max(initial=0.0), "near_window": window}
    signs = np.zeros((count, len(SIGNS)))
    for name, values in found.items():
        signs[:, _COLUMNS[name]] = values
    return signs


def _part(scores: Scores, name: str, among: Ints) -> Array:
    part = scores.parts.get(name)
    return np.zeros(len(among)) if part is None else part[among]


def read_found(query: Query, index: ScopeIndex, policy: RecallPolicy, scores: Scores) -> Array:
    """The signs of a query: one row."""
    weights = slot_weights(query, index, [len(index.postings(slot.term)[0]) for slot in query.slots]).tolist()
    telling = index.kept("tells", lambda: _tells(index))
    if scores.eligible is not None:
        telling = telling & scores.eligible
    (theirs,) = telling.nonzero()
    others = theirs[:0]
    if query.speaker is not None:
        is_named = index.speaker[theirs] == query.speaker
        theirs, others = theirs[is_named], theirs[~is_named]
    says, rival = _said(query, index, weights, (theirs, others))
    heard = [part[theirs] for name in ("words", "kinds") if (part := scores.parts.get(name)) is not None]
    found = {
        "says": says,
        "hears": _most(sum(heard, np.zeros(len(theirs)))) * scores.unit,
        "rival": rival,
        "part": 0.0 if query.speaker is None else _part_of_named(query, index, weights, telling),
        "named": query.speaker is not None,
        "query_words": math.log1p(len(query.slots)) / 3,
        "turns": math.log1p(len(index.ts)) / 8,
        "nearest": _nearest(policy, scores, theirs),
        "rival_nearest": _nearest(policy, scores, others),
    }
    return np.array([[float(found[name]) for name in FOUND_SIGNS]])


def _tells(index: ScopeIndex) -> Flags:
    tells = np.ones(len(index.ts), bool)
    tells[index.postings(_QUESTION)[0]] = False
    return tells


def _said(query: Query, index: ScopeIndex, weights: Sequence[float], groups: Iterable[Ints]) -> list[float]:
    """For each group, the largest share of the query's weight in one turn; stand-ins for a word count in part."""
    held, whole = np.zeros(len(index.ts)), sum(weights)
    if not whole:
        return [0.0 for _ in groups]
    for place, (slot, weight) in enumerate(zip(query.slots, weights, strict=True)):
        if not weight:
            continue
        said = index.postings(slot.term)[0]
        meant = {term for kind in query.kinds if place in kind.slots for term in kind.terms}
        if meant:
            share = np.zeros(len(held))
            for term in meant:
                share[index.postings(term)[0]] = KIND_SHARE
            share[said] = 1.0
            held += weight * share
        else:
            held[said] += weight
    return [_most(held[turns]) / whole for turns in groups]


def _most(values: Array) -> float:
    return float(values.max(initial=0.0))


def _nearest(policy: RecallPolicy, scores: Scores, turns: Ints) -> float:
    near = scores.parts.get("dense_turn")
    return 0.0 if near is None else _most(near[turns] / (policy.dense_turn or 1.0) / 3)


def _part_of_named(query: Query, index: ScopeIndex, weights: Sequence[float], telling: Flags) -> float:
    whole = sum(weights)
    total = 0.0
    for slot, weight in zip(query.slots, weights, strict=True):
        said = index.postings(slot.term)[0]
        said = said[telling[said]]
        own = int(np.count_nonzero(index.speaker[said] == query.speaker))
        total += weight * (own + 0.5) / (len(said) + 1)
    return total / whole - 0.5 if whole else 0.0


# -- from signs to probabilities ------------------------------------------------------------------------


class Weights(NamedTuple):
    """Weights of signs and of products of two signs, with and without vectors."""

    terms: tuple[Ints, Ints]
    """The two columns multiplied in each term; the column after the last sign is all ones."""
    words: Array
    vectors: Array


class Calibration(NamedTuple):
    """Maps signs to probabilities."""

    hit: Weights
    """For a hit's signs: the probability that it is evidence, given that there is any."""
    found: Weights
    """For the query's signs: the probability that there is any evidence."""
    fact: tuple[float, float]
    """For a fact's match."""


@cache
def calibration(name: str) -> Calibration:
    """The bundled calibration, checked against this digest."""
    held = read_fitted("evidence", name)
    return Calibration(
        read_weights(held["hit"], SIGNS), read_weights(held["found"], FOUND_SIGNS), (held["fact"][0], held["fact"][1])
    )


def read_weights(held: Mapping[str, Any], signs: Sequence[str]) -> Weights:
    """Read weights over these signs from the data file."""
    places = {sign: place for place, sign in enumerate((*signs, "1"))}
    pairs = [[places[sign] for sign in f"{term}*1".split("*")[:2]] for term in held["terms"]]
    first, second = np.array(pairs, np.int64).T
    words, vectors = (np.array(held[kind], np.float64) for kind in ("words", "vectors"))
    return Weights((first, second), words, vectors)


def apply_weights(made: Weights, signs: Array, *, has_vectors: bool) -> Array:
    """The probability of each row, from 0 to 1."""
    whole = np.ones((len(signs), signs.shape[1] + 1))
    whole[:, :-1] = signs
    first, second = made.terms
    weights = made.vectors if has_vectors else made.words
    total = np.add.reduce(whole[:, first] * whole[:, second] * weights, axis=1)
    found: Array = 1 / (1 + np.exp(-total.clip(-40, 40)))
    return found


def chances(signs: Array, found: Array, worths: Array, made: Calibration, *, has_vectors: bool) -> list[float]:
    """The probability of each hit, from 0 to 1: that there is evidence at all, times that it is this hit given there
    is.

    The order is the ranking's: no hit is above its predecessor, and one whose place is worth less is strictly below.
    `found` is the row of the query's signs.
    """
    any_is = float(apply_weights(made.found, found, has_vectors=has_vectors)[0])
    each = apply_weights(made.hit, signs, has_vectors=has_vectors) * any_is
    most, before = 1.0, math.inf
    likely: list[float] = []
    for chance, worth in zip(each.tolist(), worths.tolist(), strict=True):
        if worth < before:
            most, before = most * _FALL, worth
        most = most if most < chance else chance
        likely.append(most)
    rounded: list[float] = np.maximum(likely, _LEAST).round(_DIGITS).tolist()
    return rounded


def chance_of_fact(match: float, made: Calibration) -> float:
    """The probability that a fact is evidence, by the share of the query that it holds; 0 if that is nothing."""
    bias, slope = made.fact
    return round(1 / (1 + math.exp(-(bias + slope * match))), _DIGITS) if match > 0 else 0.0


def read_fitted(field: str, name: str) -> dict[str, Any]:
    """Load the data file of a field of the recall policy, which names it by a prefix of its digest."""
    written = read_data(__package__, f"{field}.json")
    if digest(written).hex()[: len(name)] != name or not name:
        raise InvalidInput(
            f"this version has no {field} that is called {name[:80]!r}",
            path=f"$.recall.{field}",
            hint="leave it out: the default names the one that this version has",
        )
    held: dict[str, Any] = json.loads(written)
    return held


# -- reasons -------------------------------------------------------------------------------------------
#
# The reasons a turn was found, in the query's own words, and how well a short text answers a query.


MARKS = frozenset((term_hash(QUESTION),))
"""Terms that mark a turn without being words of it."""

_HANGUL = "\uac00-\ud7a3"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3041-\u30ff"
_WORD = lazy_pattern(
    rf"[{_HANGUL}]+|[{_HAN}]+|\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?|[^\W\d_{_HANGUL}{_HAN}][^\W_{_HANGUL}{_HAN}]*"
)
_ASCII_WORD = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?|[^\W\d_][^\W_]*")
_MONTH_NAMES = {number: name.capitalize() for name, number in reversed(MONTHS.items())}

Span = tuple[int, int]


class Wording:
    """The written words of a text, by their terms."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._written: dict[str, list[Span]] | None = None

    def of(self, terms: Iterable[str]) -> list[str]:
        """The words with these terms, in text order and each once, followed by dates."""
        if self._written is None:
            self._written = _where_written(self._text)
        known, terms = self._written, list(terms)
        spans = [span for term in terms for span in known.get(term, ())]
        words = [self._text[start:end] for start, end in _joined(spans)]
        dates = [date for term in terms if term not in known and (date := _date(term, self._text))]
        lasting = [date for date in dates if not any(date != other and other.startswith(date) for other in dates)]
        return list(dict.fromkeys([*words, *lasting]))


class Reasons:
    """The reasons for the turns found for one query."""

    def __init__(self, text: str, query: Query, speakers: Sequence[str], matches: Matches) -> None:
        self._wording = Wording(text[:QUERY_CHARS_MAX])
        self._words = [slot.word for slot in query.slots]
        self._matches = matches
        self._known: dict[tuple[bytes, bytes], tuple[str, ...]] = {}
        self._features = {
            "speaker": "" if query.speaker is None else f"said by {speakers[query.speaker]}",
            "company": "said among " + " and ".join([speakers[number] for number in query.speakers]),
            "role": "said by the one asked about",
            "time": "said in the time asked about",
            "marked": "a call of the kind asked about",
            "asked_order": "stands where it is asked for",
            "named_event": "may be the event that is named",
        }

    def of(self, position: int, parts: Mapping[str, float]) -> list[str]:
        """The reasons for the turn at a position of the matches; `parts` are the summands of its score."""
        said, meant = self._matches.words[:, position], self._matches.meant[:, position]
        key = said.tobytes(), meant.tobytes()
        if key not in self._known:
            self._known[key] = tuple(self._matching(said.tolist(), meant.tolist()))
        reasons = list(self._known[key])
        if not reasons and ("words" in parts or "kinds" in parts):
            reasons.append("stands beside what matches")
        reasons += [reason for name, reason in self._features.items() if name in parts]
        if parts.get("dense_turn", 0) > 0 or parts.get("dense_window", 0) > 0:
            reasons.append("near in meaning")
        return reasons

    def _matching(self, said: Sequence[bool], meant: Sequence[bool]) -> Iterator[str]:
        """Describe which words of the query a turn has, and which it may refer to."""
        terms = [word for word, is_said in zip(self._words, said, strict=True) if is_said]
        words = self._wording.of(terms) or [word.lstrip("^") for word in terms if not word.startswith("#")]
        if words:
            yield "says " + ", ".join(dict.fromkeys(words))
        terms = [word for word, is_meant in zip(self._words, meant, strict=True) if is_meant]
        if others := [word for word in self._wording.of(terms) if word not in words]:
            yield "may speak of " + ", ".join(others)


def _where_written(text: str) -> dict[str, list[Span]]:
    """Map each term to the spans of words with it.

    A word is shown whole, except in Chinese and Japanese, which have no spaces: there the matching characters are
    shown. A Korean word is matched by its beginning, since inner syllables and endings often match by chance.
    """
    found: dict[str, list[Span]] = {}
    for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text):
        word, start = match[0], match.start()
        is_han = "\u3041" <= word[0] <= "\u9fff"
        for term in dict.fromkeys(analyze(word)):  # repeated characters are looked up once
            if is_han:
                at = word.find(term)
                while at >= 0:
                    found.setdefault(term, []).append((start + at, start + at + len(term)))
                    at = word.find(term, at + 1)
            elif not "\uac00" <= word[0] <= "\ud7a3" or term in ("^" + word[0], word[:2], word):
                found.setdefault(term, []).append(match.span())
    return found


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, with overlapping ones merged."""
    joined: list[Span] = []
    for start, end in sorted(set(spans)):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _date(term: str, text: str) -> str:
    """A day or a month in the language of the query; a year is the bare number."""
    if not term.startswith(("#m", "#d")):
        return term if term.isdecimal() else ""
    month, _, day = term[2:].partition("-")
    if _has(text, "\uac00", "\ud7a3"):
        return f"{month}월 {day}일" if day else f"{month}월"
    if _has(text, "\u4e00", "\u9fff"):
        return f"{month}月{day}日" if day else f"{month}月"
    return f"{_MONTH_NAMES[int(month)]} {day}".strip()


def _has(text: str, first: str, last: str) -> bool:
    return not text.isascii() and any(first <= char <= last for char in text)


KIND_SHARE = 0.5
"""The weight of a stand-in for a query word, relative to the word itself."""


class Wanted(NamedTuple):
    """The terms of a query to match against a short text."""

    terms: tuple[str, ...]
    kinds: tuple[Group, ...]
    wording: Wording
    """The wording of the query, for reasons."""


class Match(NamedTuple):
    """The share of the query that a text matches, from 0 to 1, and the reasons."""

    score: float
    reasons: tuple[str, ...]


NO_MATCH = Match(0.0, ())


NOTHING = Wanted((), (), Wording(""))


def read_wanted(query: str) -> Wanted:
    terms = tuple(dict.fromkeys(analyze(query)))
    return Wanted(terms, tuple(widen(terms)), Wording(query))


def match_text(wanted: Wanted, text: str) -> Match:
    """Match a text against a query."""
    if not wanted.terms:
        return NO_MATCH
    held = set(analyze(text.replace(".", " ").replace("_", " ")))
    words = [term for term in wanted.terms if term in held]
    kinds = {term for head, group in wanted.kinds if not held.isdisjoint(group) for term in head} - held
    reasons = []
    if words:
        reasons.append("says " + ", ".join(wanted.wording.of(words) or words))
    if spoken_of := wanted.wording.of(sorted(kinds)):
        reasons.append("may speak of " + ", ".join(spoken_of))
    return Match((len(words) + KIND_SHARE * len(kinds)) / len(wanted.terms), tuple(reasons))
