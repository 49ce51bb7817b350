"""A turn with what it says that matters here: its sentences and their terms, its promises. Read once, asked often."""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import sentence_spans
from muniment.memory.turns import Turn

__all__ = ["LINE_CHARS_MAX", "ReadTurn", "Sentence", "questions_of"]

LINE_CHARS_MAX = 240
"""Longer sentences are not lines of a summary."""
TURN_CHARS_MAX = 2_000
"""Characters of a turn that are looked at for a summary: of a longer one, its start."""
LOOP_CHARS_MAX = 300
"""Longer sentences are neither questions nor promises."""
_TERMS_MIN = 2
_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-z]+")
_FIGURE = re.compile(r"\d")
_PROMISE = re.compile(
    r"(?i)^(?:ok(?:ay)?[,.!]?\s+|sure[,.!]?\s+|yes[,.!]?\s+)?(?:i['’]ll|i will|let me|i['’]m going to)\s+"
    r"(?:check|look|find|get back|send|book|call|ask|follow|confirm|update|prepare|write|remind|let you know|schedule)"
    r"|^(?:好的?[,，]?)?我(?:会|来|去|马上)(?:查|看|问|找|发|订|联系|确认|提醒|准备)"
    r"|(?:확인|연락|예약|준비|전달|안내|알려)(?:해)?\s?(?:드리겠|할게|드릴게|보겠)"
)


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

    @cached_property
    def promises(self) -> tuple[str, ...]:
        """What an assistant promises in the turn, in its own words."""
        return tuple(_promises(self.turn.text)) if self.turn.role == "assistant" else ()


def questions_of(turn: Turn) -> list[str]:
    """The sentences that ask."""
    return [sentence for sentence in _short(turn.text) if _asks(sentence)]


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


def _promises(text: str) -> list[str]:
    return [sentence for sentence in _short(text) if _PROMISE.search(sentence)]


def _short(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text) if end - start <= LOOP_CHARS_MAX]
