"""What matters for a question that asks for advice, which topic a key of a fact belongs to, and the words of each.

Words and tables are those of `data/topics.txt`. Pure.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from muniment.core.text.analyzer import analyze, term_hash
from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.english.words import known_things
from muniment.memory.extraction.standing import technology_words

__all__ = ["OTHER", "Matter", "household", "matter_of", "relatives", "topic_of", "trigger_terms"]

_TOPICS = WordList(__package__, "topics.txt")
OTHER = "other"
"""The kind of a question of which no word tells what it is about."""
_MARK = "#"
"""What a term begins with that is no word: what the index says of a turn."""


class Matter(NamedTuple):
    """What a question is about, and the topics that matter for it, what matters most first."""

    kinds: tuple[str, ...]
    topics: tuple[str, ...]


def matter_of(query: str) -> Matter:
    """By the words of the question; where none tells, whatever may matter to anybody."""
    asked = set(analyze(query))
    found = [
        (len(terms & asked), -place, kind) for place, (kind, terms) in enumerate(_kinds().items()) if terms & asked
    ]
    kinds = tuple(kind for _, _, kind in sorted(found, reverse=True)) or (OTHER,)
    matters = dict(_TOPICS.pairs("matters"))
    lists = [matters[kind].split() for kind in kinds]
    ranked = [topic for place in range(max(map(len, lists))) for topics in lists for topic in topics[place : place + 1]]
    return Matter(kinds, tuple(dict.fromkeys(ranked)))


def topic_of(key: str) -> str | None:
    """The topic of a fact's key: of `person.kim.allergy` that of `user.allergy`; None where it bears on nothing."""
    parts = key.split(".")
    named = _keys()
    return next((named[part] for part in reversed(parts[1:]) if part in named), None)


@cache
def trigger_terms(name: str) -> tuple[int, ...]:
    """The terms, as the index has them, of which a turn has one that may state something of a topic."""
    words = [*_TOPICS.words(f"triggers of {name}")]
    if name == "stack":
        words += sorted(technology_words())
    elif name == "taste":  # that somebody likes it may be said in words that no index has
        words += sorted(known_things())
    terms = [term for word in words for term in ([word] if word[0] == _MARK else analyze(word))]
    return tuple(dict.fromkeys(term_hash(term) for term in terms))


@cache
def household() -> frozenset[str]:
    """What those are to a person whom advice for them has to do with, asked or not."""
    return frozenset(_TOPICS.words("household"))


@cache
def relatives() -> frozenset[str]:
    """What those are to a person whom advice for several may have to do with."""
    return frozenset(_TOPICS.words("with them"))


@cache
def _kinds() -> dict[str, frozenset[str]]:
    """Kinds of questions, each with the terms that tell it."""
    return {
        kind: frozenset(term for word in _TOPICS.words(f"words of {kind}") for term in analyze(word))
        for kind, _ in _TOPICS.pairs("matters")
        if kind != OTHER
    }


@cache
def _keys() -> dict[str, str]:
    return dict(_TOPICS.pairs("keys"))
