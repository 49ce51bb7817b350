"""A turn with what it says that matters here: its sentences and their terms. Read once, asked often."""

from __future__ import annotations

import math
import re
from functools import cache, cached_property
from typing import NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import sentence_spans
from muniment.memory.turns import Turn

__all__ = ["LINE_CHARS_MAX", "ReadTurn", "Sentence"]

LINE_CHARS_MAX = 240
"""Longer sentences are not lines of a summary."""
TURN_CHARS_MAX = 2_000
"""Characters of a turn that are looked at for a summary: of a longer one, its start."""
_TERMS_MIN = 2
_OF_ONESELF = re.compile(
    r"\W*(?:i|my|we|our|ich|mein\w*|wir|unser\w*|je|j|mon|ma|mes|nous|notre|nos|yo|soy|mis?|somos|nuestr[ao]s?"
    r"|io|sono|mi[oa]|siamo|eu|sou|meus?|minhas?|somos|ik|mijn|wij|ons|onze)\b",
    re.IGNORECASE,
)
"""How somebody begins who speaks of themselves: "I am vegan." says much in one word."""
_CIVIL = "sorry agree fine understand hope thank thanks appreciate glad ready okay ok see hear guess wonder promise"
"""What people say of themselves without telling anything."""
_NAME = re.compile(r" (?<=[\w,] )[A-Z][a-z]")
_LABEL = re.compile(r"\s*#{1,6}\s.*|.*[:：]\s*[*_]*\s*", re.DOTALL)
"""A heading, or what only leads to what follows: by itself it says nothing."""
_FIGURE = re.compile(r"\d")


class Sentence(NamedTuple):
    """A sentence that may stand in a summary."""

    text: str
    terms: frozenset[str]
    factor: float
    """What kind of sentence it is, as a weight."""


class ReadTurn:
    """A turn and its labels, and what is read in it, once."""

    def __init__(
        self, turn: Turn, tags: tuple[str, ...] = (), entities: tuple[str, ...] = (), line: str | None = None
    ) -> None:
        self.turn = turn
        self.tags = tags
        self.entities = entities
        self.line = line
        """Of a tool's result: what stands for it, in one line."""

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences of the turn that may stand for it in a list."""
        spans = sentence_spans(self.turn.text[:TURN_CHARS_MAX])
        found = (_sentence(self.turn, self.turn.text[start:end]) for start, end in spans)
        return tuple(sentence for sentence in found if sentence is not None)


def _sentence(turn: Turn, text: str) -> Sentence | None:
    """A sentence of a turn, if it may stand for it."""
    if len(text) > LINE_CHARS_MAX or _LABEL.fullmatch(text):
        return None
    terms = frozenset(analyze(text))
    speaks = 1.1 if turn.role == "user" else 1.0
    if len(terms) < _TERMS_MIN and not _tells_of_oneself(turn, text, terms):
        return None
    return Sentence(text, terms, speaks * _factor(text) / math.sqrt(4 + len(terms)))


def _tells_of_oneself(turn: Turn, text: str, terms: frozenset[str]) -> bool:
    """Whether the user says one thing of themselves: short as it is, nothing else may say it."""
    is_theirs = turn.role == "user" and turn.trust == "user" and _OF_ONESELF.match(text) is not None
    return is_theirs and bool(terms) and not _asks(text) and terms.isdisjoint(_civil_terms())


@cache
def _civil_terms() -> frozenset[str]:
    return frozenset(analyze(_CIVIL))


def _factor(text: str) -> float:
    factor = 1.2 if _FIGURE.search(text) or _NAME.search(text) else 1.0
    return factor * 0.5 if _asks(text) else factor


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)").endswith(("?", "？"))
