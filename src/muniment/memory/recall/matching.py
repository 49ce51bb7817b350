"""How well a short text that is not a turn answers a query: a fact by its key and value, a procedure by its task.

The same reading of the query as for turns: its words, what may stand for them (`core.text.kinds`), what of a person
that it asks for (`core.text.attributes`). Such texts are few and short, so there is no index and no statistics.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.core.text.attributes import AskedAttribute, asked_attributes, name_of
from muniment.core.text.kinds import Group, widen
from muniment.memory.recall.reasons import Wording

__all__ = ["NOTHING", "Match", "Wanted", "match_text", "read_wanted"]

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
