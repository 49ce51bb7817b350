"""A quotable turn, a sentence of one, and a stretch of turns."""

from __future__ import annotations

import math
import re
from functools import cache, cached_property
from typing import Literal, NamedTuple

from muniment.core.record import Absent, Count, Items, Number, Record
from muniment.core.scope import IdText, Trust
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import Words, read_words, sentence_spans

__all__ = [
    "LINE_CHARS_MAX",
    "EpisodeCandidate",
    "Excerpt",
    "PacketRole",
    "ReadTurn",
    "Sentence",
    "SessionLine",
    "Stretch",
    "SummaryKind",
    "SummaryLine",
    "Turn",
    "fields_of",
    "told_text",
]

PacketRole = Literal["user", "assistant", "tool"]


class Stretch(Record):
    """Verbatim words of a long text, and their place in it."""

    start: Count
    """Characters before it."""
    line: Count
    """Line breaks before it."""
    text: str


class Excerpt(Record):
    """The shown part of a long text: stretches in text order, and its size."""

    chars: Count
    breaks: Count
    """Line breaks in all of it."""
    stretches: Items[Stretch]

    @property
    def text(self) -> str:
        """The stretches alone, on separate lines."""
        return "\n".join(stretch.text for stretch in self.stretches)


class Turn(Record):
    """A quotable event: a message or a tool's result, never a system or developer message."""

    id: IdText
    session_id: IdText
    seq: Count
    kind: Literal["message", "tool_result"]
    role: PacketRole
    speaker: str | None
    """The speaker's name, if there is one; for a tool's result, its call (`memory.tool_results`)."""
    ts: str
    text: str
    trust: Trust
    flags: Items[str]
    excerpt: Absent[Excerpt] = None
    """For a tool's long result: the stretches that make up `text`."""
    cited: Absent[dict[str, str]] = None
    """For an answer observed with its build: the evidence named by its marks, by number; unknown marks map to ""."""

    @property
    def quotable(self) -> str:
        """The quotable text: all that a pool holds."""
        return self.text

    @cached_property
    def words(self) -> Words:
        """The words of its text, for detecting repetition; cached.

        A tool's call and whole result count as one word: two calls that differ in a letter are different.
        """
        if self.kind == "tool_result":
            whole = told_text(self, self.text)
            return Words(frozenset((whole,)), (whole,))
        return read_words(self.text)


@cache
def fields_of(*, has_excerpt: bool, is_answer: bool) -> set[str]:
    """The fields that are set on a turn; a shared set that must not be modified."""
    absent = {name for name, is_there in (("excerpt", has_excerpt), ("cited", is_answer)) if not is_there}
    return set(Turn.model_fields) - absent


def told_text(turn: Turn, text: str) -> str:
    """A turn's text, or a part of it, as speech; a tool's output is prefixed with its call."""
    return f"{turn.speaker or turn.role} → {text}" if turn.kind == "tool_result" else text


class SummaryLine(Record):
    """A sentence taken verbatim from an event."""

    evidence_id: IdText
    text: str
    ts: str
    weight: Number
    role: Absent[PacketRole] = None
    speaker: Absent[str] = None
    trust: Absent[Trust] = None
    cited: Absent[dict[str, str]] = None
    """As for a turn."""
    flags: Absent[Items[str]] = None
    """For an imported sentence, its origin; for a given summary, the flags set on admission."""

    @cached_property
    def words(self) -> Words:
        """The words of the sentence, for detecting repetition; cached."""
        return read_words(self.text)


SummaryKind = Literal["constraint", "commitment", "decision", "given"]


class SessionLine(SummaryLine):
    """A line of a session's summary. With a kind it is a settled point that still holds, or the caller's summary."""

    kind: Absent[SummaryKind] = None
    sources: Absent[Items[str]] = None
    """The evidence of a caller's summary."""


class EpisodeCandidate(Record):
    """A stretch of a session: its turns in order (sources), its best sentences, best first."""

    episode_id: IdText
    session_id: IdText
    start: str
    end: str
    lines: Items[SummaryLine]
    sources: Items[str]
    tags: Items[str]
    entities: Items[str]
    score: Number
    """Match with the query, 0 without a query."""
    trust: Trust


# -- turns ---------------------------------------------------------------------------------------------
#
# A turn with its sentences and their terms. Computed once, used often.


LINE_CHARS_MAX = 240
"""Longer sentences are not used as summary lines."""
_READ_CHARS_MAX = 2_000
"""Characters of a turn considered for a summary."""
_TERMS_MIN = 2
_OF_ONESELF = re.compile(
    r"\W*(?:i|my|we|our|ich|mein\w*|wir|unser\w*|je|j|mon|ma|mes|nous|notre|nos|yo|soy|mis?|somos|nuestr[ao]s?"
    r"|io|sono|mi[oa]|siamo|eu|sou|meus?|minhas?|somos|ik|mijn|wij|ons|onze)\b",
    re.IGNORECASE,
)
"""Openings of statements about oneself: "I am vegan." says much in one word."""
_CIVIL = "sorry agree fine understand hope thank thanks appreciate glad ready okay ok see hear guess wonder promise"
"""Polite first-person words without content."""
_NAME = re.compile(r" (?<=[\w,] )[A-Z][a-z]")
_LABEL = re.compile(r"\s*#{1,6}\s.*|.*[:：]\s*[*_]*\s*", re.DOTALL)
"""A heading or lead-in, which says nothing by itself."""
_FIGURE = re.compile(r"\d")


class Sentence(NamedTuple):
    """A sentence usable in a summary."""

    text: str
    terms: frozenset[str]
    factor: float
    """The weight of its kind."""


class ReadTurn:
    """A turn with its labels and its analysed sentences."""

    def __init__(
        self, turn: Turn, tags: tuple[str, ...] = (), entities: tuple[str, ...] = (), line: str | None = None
    ) -> None:
        self.turn = turn
        self.tags = tags
        self.entities = entities
        self.line = line
        """For a tool's result: the line that represents it."""

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences of the turn that may represent it in a list."""
        spans = sentence_spans(self.turn.text[:_READ_CHARS_MAX])
        found = (_sentence(self.turn, self.turn.text[start:end]) for start, end in spans)
        return tuple(sentence for sentence in found if sentence is not None)


def _sentence(turn: Turn, text: str) -> Sentence | None:
    """A sentence of a turn, if it may represent the turn."""
    if len(text) > LINE_CHARS_MAX or _LABEL.fullmatch(text):
        return None
    terms = frozenset(analyze(text))
    speaks = 1.1 if turn.role == "user" else 1.0
    if len(terms) < _TERMS_MIN and not _tells_of_oneself(turn, text, terms):
        return None
    return Sentence(text, terms, speaks * _factor(text) / math.sqrt(4 + len(terms)))


def _tells_of_oneself(turn: Turn, text: str, terms: frozenset[str]) -> bool:
    """True if the user states one thing about themselves: short as it is, it may be said nowhere else."""
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
