"""Regular expressions that are compiled when they are first used, and a quick look at whether one can match at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set
from typing import Any, NamedTuple, cast

__all__ = ["Needles", "Sign", "lazy_pattern", "needle_sets_of", "needles_of", "sign"]


class _Lazy:
    def __init__(self, source: str | Callable[[], str]) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        source = self._source if isinstance(self._source, str) else self._source()
        found = source if name == "pattern" else getattr(re.compile(source), name)
        setattr(self, name, found)  # from now on as quick as that of the pattern itself
        return found


def lazy_pattern(source: str | Callable[[], str]) -> re.Pattern[str]:
    """What `re.compile` gives, for use by its methods: most processes meet only some of the patterns.

    What tells the pattern, as where it is made of a word list, is called when it is first used."""
    return cast("re.Pattern[str]", _Lazy(source))


class Sign(NamedTuple):
    """What tells that a text asks in some way."""

    cues: frozenset[str]
    """An English text that does so has one of these words."""
    pattern: re.Pattern[str]

    def is_in(self, folded: str, words: Set[str] | None) -> bool:
        """`words` are those of an ASCII text: most have no cue, and that is quickly told."""
        return (words is None or not self.cues.isdisjoint(words)) and self.pattern.search(folded) is not None


def sign(cues: str, pattern: str) -> Sign:
    """`cues` are words with spaces between them."""
    return Sign(frozenset(cues.split()), lazy_pattern(pattern))


# -- what every match holds ---------------------------------------------------------------------------

Needles = frozenset[str]

_NEEDLES_MAX = 32
_LONG = 4
"""A needle of so many signs is rare enough: from there on fewer needles are better than longer ones."""
_WIDTHLESS = frozenset("bBAZ")
_REPEATED = re.compile(r"([*+?]|\{(\d*)(?:,\d*)?\})[?+]?")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_OPENING = re.compile(r"\((\?:|\?=|\?!|\?<=|\?<!|\?P<\w+>)?")


def needles_of(source: str) -> Needles | None:
    """Words of which every text holds one that a pattern is found in; None where no such words can be told.

    To look for a few words takes a fraction of the time of a search. The pattern is one of ours, without flags, back
    references and atomic groups.
    """
    found, at = _alternatives(source, 0)
    if at != len(source):
        raise ValueError(f"not a pattern that is understood here, from {at} on: {source!r:.200}")
    return None if found is None else _shortest(found)


def needle_sets_of(source: str) -> tuple[Needles, ...]:
    """Sets of words: of each of them every text holds one that a pattern is found in. Those of `needles_of`, and where
    the pattern is no choice of several, the longest of the others that it asks for.
    """
    told, at = _told(source, 0)
    if at < len(source):
        best = needles_of(source)
        return () if best is None else (best,)
    sets = [_shortest(each) for each in told if len(each) <= _NEEDLES_MAX]
    best = _best(sets)
    if best is None:
        return ()
    long = [each for each in sets if each != best and sum(map(len, each)) >= _LONG * len(each)]
    return best, *sorted(long, key=lambda each: (-sum(map(len, each)) / len(each), sorted(each)))[:1]


def _shortest(found: Needles) -> Needles:
    """Without those that hold another one."""
    return frozenset(word for word in found if not any(word != other and other in word for other in found))


def _alternatives(source: str, at: int) -> tuple[Needles | None, int]:
    found, at = _sequence(source, at)
    while source[at : at + 1] == "|":
        other, at = _sequence(source, at + 1)
        found = None if found is None or other is None else found | other
    return (None if found is None or len(found) > _NEEDLES_MAX else found), at


def _sequence(source: str, at: int) -> tuple[Needles | None, int]:
    """The best needles of what stands one after the other, and where it ends."""
    told, at = _told(source, at)
    return _best(told), at


def _told(source: str, at: int) -> tuple[list[Needles], int]:
    """The needles of each part of what stands one after the other, and where it ends."""
    told: list[Needles] = []
    run = ""
    while at < len(source) and source[at] not in "|)":
        sign, at, inner, is_widthless = _part(source, at)
        repeated = None if is_widthless else _REPEATED.match(source, at)
        at = repeated.end() if repeated is not None else at
        may_lack = repeated is not None and (repeated[1] in "*?" or repeated[2] in ("", "0"))
        if inner is not None and not may_lack:
            told.append(inner)
        if is_widthless:
            continue
        if sign is not None and not may_lack:
            run += sign
        if (sign is None or repeated is not None) and run:
            told.append(frozenset((run,)))
            run = ""
    if run:
        told.append(frozenset((run,)))
    return told, at


def _part(source: str, at: int) -> tuple[str | None, int, Needles | None, bool]:
    """The next part: the sign it stands for, where it ends, what its matches hold, and does it take no room?"""
    sign = source[at]
    if sign == "(":
        opening = cast("re.Match[str]", _OPENING.match(source, at))
        inner, end = _alternatives(source, opening.end())
        kind = opening[1] or ""
        return None, end + 1, None if "!" in kind else inner, kind in ("?=", "?!", "?<=", "?<!")
    if sign == "[":
        held = cast("re.Match[str]", _CLASS.match(source, at))
        return held[0][1] if len(held[0]) == 3 else None, held.end(), None, False
    if sign == "\\":
        escaped = source[at + 1]
        is_itself = not escaped.isalnum()
        return escaped if is_itself else None, at + 2, None, escaped in _WIDTHLESS
    return None if sign == "." else sign, at + 1, None, sign in "^$"


def _best(told: Iterable[Needles]) -> Needles | None:
    """Long ones before short ones, then few, then the longest."""

    def worth(needles: Needles) -> tuple[int, int, int, list[str]]:
        shortest = min(map(len, needles))
        return min(_LONG, shortest), -len(needles), shortest, sorted(needles)

    return max(told, key=worth, default=None)
