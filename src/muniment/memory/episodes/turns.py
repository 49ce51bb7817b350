"""A turn with what it says that matters here: its sentences and their terms. Read once, asked often."""

from __future__ import annotations

import math
import re
from functools import cached_property
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
_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-z]+")
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
        """The sentences of the turn that may stand in a summary."""
        return tuple(_sentences(self.turn))


def _sentences(turn: Turn) -> list[Sentence]:
    found: list[Sentence] = []
    speaks = 1.1 if turn.role == "user" else 1.0
    for start, end in sentence_spans(turn.text[:TURN_CHARS_MAX]):
        text = turn.text[start:end]
        if len(text) > LINE_CHARS_MAX:
            continue
        terms = frozenset(analyze(text))
        if len(terms) >= _TERMS_MIN:
            found.append(Sentence(text, terms, speaks * _factor(text) / math.sqrt(4 + len(terms))))
    return found


def _factor(text: str) -> float:
    factor = 1.2 if _FIGURE.search(text) or _NAME.search(text) else 1.0
    return factor * 0.5 if _asks(text) else factor


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)").endswith(("?", "？"))
