"""What rules are made of: the verbs around a value, and functions that read a value out of a match."""

# ruff: noqa: E501 - a table of words reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from muniment.memory.extraction.english.slots import Slot, read_things, shown
from muniment.memory.extraction.grammar import Place, Reader, Rule, Told

__all__ = [
    "ADVERB",
    "AGO",
    "BE",
    "ENDS",
    "HAVE",
    "JOINTS",
    "OVER",
    "fixed",
    "group",
    "is_we",
    "key",
    "make_rule",
    "slot",
    "things",
]

BE = r"(?:'m| am|'s| is|'re| are)"
HAVE = r"(?:'ve| have|'s| has)?"
ADVERB = (
    r"(?:\s?(?:really|absolutely|also|just|truly|totally|still|simply|especially|particularly|currently|now|actually|always|"
    r"definitely|genuinely|mostly|mainly|recently|finally|originally|personally|both|honestly|kind of|very much|super|very|"
    r"quite|so|pretty|usually|often|typically|generally|normally|primarily|literally|basically|already|newly|only|happily|"
    r"even|lately|sort of|a bit|rather|severely|deathly|mildly|highly|strictly|permanently|temporarily|well|back)(?=\s))*"
)
ENDS = r"(?=$|\s*[,.!;:)(?…—–\n-]|\s(?:and|but|so|or|because|since|for|with|too|btw|lol|haha|now|here|who|which|at|in|from|these|right|as|by|though|if)\b|[^\w\s'])"
OVER = rf"(?:{ENDS}|(?=\s(?:myself|unfortunately|sadly|anyway|either|again|then|just|i|we|my|me|you|it|like|when|while|although|however|until|after|not|also|can|please|unless|sometimes|than|lately|to (?:some|a))\b))"
"""What is said ends here, or goes on with a word that is no noun: `lactose intolerant`, never `… recipes`."""
JOINTS = re.compile(r",? (?:and|or|nor)(?: also)? (?:to )?|, (?:to )?|/")
AGO = r"(?: (?:in|last|this|since|a|two|three|about|over) [a-z0-9 ]{1,20})?"


def make_rule(name: str, pattern: str, read: Reader, confidence: float = 0.9, **more: object) -> Rule:
    """A rule whose pattern is tried where the subject ends."""
    return Rule(name, re.compile(pattern), read, confidence, **more)  # type: ignore[arg-type]


def key(place: Place, attribute: str) -> str:
    """`user.job`, `person.kim.job`."""
    return f"{place.subject.owner}.{attribute}"


def told(place: Place, attribute: str, value: object, where: Slot | tuple[int, int]) -> Told:
    start, end = (where.start, where.end) if isinstance(where, Slot) else where
    return Told(key(place, attribute), value, start, end)


def group(attribute: str, *, name: str = "value", is_name: bool = False) -> Reader:
    """The value is a group of the pattern, as it was written."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        span = match.span(name)
        if span[0] < span[1]:
            written = shown(place.view, *span) if is_name else place.view.verbatim(*span).strip()
            yield told(place, attribute, written, span)

    return read


def fixed(attribute: str, value: str, name: str = "value") -> Reader:
    """The value is always the same word."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        yield told(place, attribute, value, match.span(name))

    return read


def slot(attribute: str, read_slot: Callable[..., Slot | None], **how: object) -> Reader:
    """The value stands where the pattern ends."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        found = read_slot(place.view, match.end(), **how)
        if found is not None:
            yield told(place, attribute, found.value, found)

    return read


def things(attribute: str) -> Reader:
    """Values stand where the pattern ends, one or a list."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        for found in read_things(place.view, match.end()):
            yield told(place, attribute, found.value, found)

    return read


def is_we(place: Place) -> bool:
    """Does the speaker speak for several?"""
    at = place.subject.end
    return place.view.text[max(0, at - 2) : at] == "we"
