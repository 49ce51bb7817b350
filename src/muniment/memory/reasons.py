"""Why a turn was found, in the asker's own words; what of a query a turn says; how well a short text answers it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from muniment.core.text.analyzer import MONTHS, analyze, term_hash
from muniment.core.text.kinds import Group, widen
from muniment.core.text.patterns import lazy_pattern
from muniment.memory._index import QUESTION
from muniment.memory.query import QUERY_CHARS_MAX, Query
from muniment.memory.scoring import Matches

__all__ = [
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
]

MARKS = frozenset((term_hash(QUESTION),))
"""What a turn is marked with and does not say."""

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
        """Of the turn at a position of the matches; `parts` is what its score is the sum of."""
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
        """In words, which words of the query a turn says, and which it may speak of."""
        terms = [word for word, is_said in zip(self._words, said, strict=True) if is_said]
        words = self._wording.of(terms) or [word.lstrip("^") for word in terms if not word.startswith("#")]
        if words:
            yield "says " + ", ".join(dict.fromkeys(words))
        terms = [word for word, is_meant in zip(self._words, meant, strict=True) if is_meant]
        if others := [word for word in self._wording.of(terms) if word not in words]:
            yield "may speak of " + ", ".join(others)


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


class Wanted(NamedTuple):
    """What a query wants of a short text."""

    terms: tuple[str, ...]
    kinds: tuple[Group, ...]
    wording: Wording
    """The words it is asked with, for reasons."""


class Match(NamedTuple):
    """How much of it a text holds, from 0 to 1, and why."""

    score: float
    reasons: tuple[str, ...]


NO_MATCH = Match(0.0, ())


NOTHING = Wanted((), (), Wording(""))


def read_wanted(query: str) -> Wanted:
    terms = tuple(dict.fromkeys(analyze(query)))
    return Wanted(terms, tuple(widen(terms)), Wording(query))


def match_text(wanted: Wanted, text: str) -> Match:
    """The share of what is wanted that a text holds."""
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
