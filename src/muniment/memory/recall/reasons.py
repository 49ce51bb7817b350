"""Why a turn was found, in the asker's own words; what of a query a turn says; how well a short text answers it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import MONTHS, analyze, term_hash
from muniment.core.text.kinds import Group, widen
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.stated.attributes import CHANGE, QUANTITY, AskedAttribute, asked_attributes, name_of
from muniment.memory.recall.index import QUESTION
from muniment.memory.recall.newer_values import marks_wanted
from muniment.memory.recall.query import QUERY_CHARS_MAX, Query

__all__ = [
    "ATTRIBUTE_SHARE",
    "KIND_SHARE",
    "MARKS",
    "NOTHING",
    "NO_MATCH",
    "Match",
    "Reasons",
    "Wanted",
    "Wording",
    "match_text",
    "read_wanted",
    "terms_of",
]

_CHANGE, _QUANTITY, _QUESTION = term_hash(CHANGE), term_hash(QUANTITY), term_hash(QUESTION)
MARKS = frozenset((_CHANGE, _QUANTITY, _QUESTION))
"""What a turn is marked with and does not say."""


def terms_of(query: Query) -> list[int]:
    """All that is looked up for a query, each once."""
    terms = [slot.term for slot in query.slots]
    for kind in query.kinds:
        terms += kind.terms
    return list(dict.fromkeys([*terms, *MARKS, *marks_wanted(query)]))


_HANGUL = "\uac00-\ud7a3"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3041-\u30ff"
_WORD = lazy_pattern(
    rf"[{_HANGUL}]+|[{_HAN}]+|\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?|[^\W\d_{_HANGUL}{_HAN}][^\W_{_HANGUL}{_HAN}]*"
)
_ASCII_WORD = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?|[^\W\d_][^\W_]*")
_MONTH_NAMES = {number: name.capitalize() for name, number in reversed(MONTHS.items())}

Span = tuple[int, int]


class Wording:
    """The words that a text is written with, by their terms."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._written: dict[str, list[Span]] | None = None

    def of(self, terms: Iterable[str]) -> list[str]:
        """The words that have these terms, in the order of the text and each once; dates behind them."""
        if self._written is None:
            self._written = _where_written(self._text)
        known, terms = self._written, list(terms)
        spans = [span for term in terms for span in known.get(term, ())]
        words = [self._text[start:end] for start, end in _joined(spans)]
        dates = [date for term in terms if term not in known and (date := _date(term, self._text))]
        lasting = [date for date in dates if not any(date != other and other.startswith(date) for other in dates)]
        return list(dict.fromkeys([*words, *lasting]))


class Reasons:
    """The reasons of the turns that were found for one query."""

    def __init__(self, text: str, query: Query, speakers: Sequence[str], policy: RecallPolicy) -> None:
        self._wording = Wording(text[:QUERY_CHARS_MAX])
        slots = [(1 << place, slot.word, name_of(slot.word)) for place, slot in enumerate(query.slots)]
        self._words = [(bit, word) for bit, word, name in slots if name is None]
        self._states = [(bit, name) for bit, _, name in slots if name is not None]
        self._kinds = [
            (1 << place, [query.slots[slot].word for slot in kind.slots])
            for place, kind in enumerate(query.kinds, len(slots))
        ]
        self._recency = policy.recency / 2
        self._known: dict[int, tuple[str, ...]] = {}
        self._features = {
            "speaker": "" if query.speaker is None else f"said by {speakers[query.speaker]}",
            "company": "said among " + " and ".join([speakers[number] for number in query.speakers]),
            "role": "said by the one asked about",
            "time": "said in the time asked about",
            "marked": "a call of the kind asked about",
            "asked_order": "stands where it is asked for",
            "named_event": "may be the event that is named",
        }

    def of(self, held: int, parts: Mapping[str, float]) -> list[str]:
        """`held` says what of the query a turn says itself (`Said.held`), `parts` what its score is the sum of."""
        if held not in self._known:
            self._known[held] = tuple(self._matches_told(held))
        reasons = list(self._known[held])
        if not reasons and ("words" in parts or "kinds" in parts):
            reasons.append("stands beside what matches")
        reasons += [reason for name, reason in self._features.items() if name in parts]
        if parts.get("recency", 0) > self._recency:  # of the newer half
            reasons.append("recent, and the present state is asked for")
        if parts.get("dense_turn", 0) > 0 or parts.get("dense_window", 0) > 0:
            reasons.append("near in meaning")
        return reasons

    def _matches_told(self, held: int) -> Iterator[str]:
        """In words, which words, attributes and kinds of the query a turn holds."""
        words = [word for bit, word in self._words if held & bit]
        said = self._wording.of(words) or [word.lstrip("^") for word in words if not word.startswith("#")]
        states = [name for bit, name in self._states if held & bit]
        kinds = [word for bit, terms in self._kinds if held & bit for word in self._wording.of(terms)]
        if said:
            yield "says " + ", ".join(dict.fromkeys(said))
        if states:
            yield "states " + ", ".join(dict.fromkeys(states))
        if kinds := [word for word in dict.fromkeys(kinds) if word not in said]:
            yield "may speak of " + ", ".join(kinds)


def _where_written(text: str) -> dict[str, list[Span]]:
    """Term → where a word of the text has it.

    A word is shown whole, but for Chinese and Japanese, which have no spaces: there the signs that match are. What
    stands for a Korean word is how it begins: syllables inside it, and its endings, are often met by chance.
    """
    found: dict[str, list[Span]] = {}
    for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text):
        word, start = match[0], match.start()
        is_han = "\u3041" <= word[0] <= "\u9fff"
        for term in dict.fromkeys(analyze(word)):  # one sign over and over is looked for once
            if is_han:
                at = word.find(term)
                while at >= 0:
                    found.setdefault(term, []).append((start + at, start + at + len(term)))
                    at = word.find(term, at + 1)
            elif not "\uac00" <= word[0] <= "\ud7a3" or term in ("^" + word[0], word[:2], word):
                found.setdefault(term, []).append(match.span())
    return found


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, with those that overlap joined to one."""
    joined: list[Span] = []
    for start, end in sorted(set(spans)):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _date(term: str, text: str) -> str:
    """A day or a month in the language of the query; a year is the number it is."""
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
"""A word that may stand for one of the query, against that word itself."""


ATTRIBUTE_SHARE = 2.0
"""The attribute that is asked for, against one word."""


class Wanted(NamedTuple):
    """What a query wants of a short text."""

    terms: tuple[str, ...]
    kinds: tuple[Group, ...]
    attributes: tuple[AskedAttribute, ...]
    wording: Wording
    """The words it is asked with, for reasons."""


class Match(NamedTuple):
    """How much of it a text holds, from 0 to 1, and why."""

    score: float
    reasons: tuple[str, ...]


NO_MATCH = Match(0.0, ())


NOTHING = Wanted((), (), (), Wording(""))


def read_wanted(query: str) -> Wanted:
    terms = tuple(dict.fromkeys(analyze(query)))
    return Wanted(terms, tuple(widen(terms)), tuple(asked_attributes(query)), Wording(query))


def match_text(wanted: Wanted, text: str, attributes: Collection[str] = ()) -> Match:
    """The share of what is wanted that a text holds, `attributes` being the terms of those it states."""
    whole = len(wanted.terms) + (ATTRIBUTE_SHARE if wanted.attributes else 0.0)
    if not whole:
        return NO_MATCH
    held = set(analyze(text.replace(".", " ").replace("_", " ")))
    stated = [asked for asked in wanted.attributes if asked.term in attributes]
    words = [term for term in wanted.terms if term in held]
    kinds = {term for head, group in wanted.kinds if not held.isdisjoint(group) for term in head} - held
    asking = {term for asked in stated for term in asked.words} & set(wanted.terms) - held
    score = len(words) + len(asking) + KIND_SHARE * len(kinds - asking) + (ATTRIBUTE_SHARE if stated else 0.0)
    reasons = []
    if words:
        reasons.append("says " + ", ".join(wanted.wording.of(words) or words))
    if stated:
        reasons.append("states " + ", ".join(sorted({str(name_of(asked.term)) for asked in stated})))
    if spoken_of := wanted.wording.of(sorted(kinds - asking)):
        reasons.append("may speak of " + ", ".join(spoken_of))
    return Match(score / whole, tuple(reasons))
