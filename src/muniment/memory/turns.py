"""A turn that may be quoted, a sentence of one, and a stretch of them."""

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
    """Words of a long text, verbatim, and where they stand in it."""

    start: Count
    """Characters before it."""
    line: Count
    """Line breaks before it."""
    text: str


class Excerpt(Record):
    """What is shown of a text that is too long to be shown whole: stretches in its own order, and its size."""

    chars: Count
    breaks: Count
    """Line breaks in all of it."""
    stretches: Items[Stretch]

    @property
    def text(self) -> str:
        """The stretches alone, each on lines of its own."""
        return "\n".join(stretch.text for stretch in self.stretches)


class Turn(Record):
    """An event that may be quoted: a message or a tool's result, never a system or developer message."""

    id: IdText
    session_id: IdText
    seq: Count
    kind: Literal["message", "tool_result"]
    role: PacketRole
    speaker: str | None
    """Who said it, where they have a name; of a tool's result, its call (`memory.tool_results`)."""
    ts: str
    text: str
    trust: Trust
    flags: Items[str]
    excerpt: Absent[Excerpt] = None
    """Of a tool's long result: which stretches of it `text` is made of."""
    cited: Absent[dict[str, str]] = None
    """Of an answer that was observed with its build: what its marks named there, by number; nothing, an empty text."""

    @property
    def quotable(self) -> str:
        """As much of its text as may be quoted: all that a pool holds."""
        return self.text

    @cached_property
    def words(self) -> Words:
        """The words of its text, for telling whether it was said already: read once, like the rest.

        Of a tool's result the call and the whole of it are one word: two calls that differ in a letter are two.
        """
        if self.kind == "tool_result":
            whole = told_text(self, self.text)
            return Words(frozenset((whole,)), (whole,))
        return read_words(self.text)


@cache
def fields_of(*, has_excerpt: bool, is_answer: bool) -> set[str]:
    """The fields that are set of a turn; shared, since nobody adds to them."""
    absent = {name for name, is_there in (("excerpt", has_excerpt), ("cited", is_answer)) if not is_there}
    return set(Turn.model_fields) - absent


def told_text(turn: Turn, text: str) -> str:
    """A turn's text, or a part of it, as what was said: by a tool, it is said in answer to a call."""
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
    """As a turn's."""
    flags: Absent[Items[str]] = None
    """Of a sentence that was not said here: where it comes from; of a summary that was given, what was noticed."""

    @cached_property
    def words(self) -> Words:
        """The words of the sentence, for telling whether it was said already: read once, like a turn's."""
        return read_words(self.text)


SummaryKind = Literal["constraint", "commitment", "decision", "given"]


class SessionLine(SummaryLine):
    """A line of a session's summary. With a kind it is more than a good sentence: it says what was settled, and still
    holds, or it is the summary that the caller gave."""

    kind: Absent[SummaryKind] = None
    sources: Absent[Items[str]] = None
    """Of a summary that the caller gave: the evidence it rests on."""


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
    """Match with the query, 0 where it has none."""
    trust: Trust


# -- turns ---------------------------------------------------------------------------------------------
#
# A turn with what it says that matters here: its sentences and their terms. Read once, asked often.


LINE_CHARS_MAX = 240
"""Longer sentences are not lines of a summary."""
_READ_CHARS_MAX = 2_000
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
        spans = sentence_spans(self.turn.text[:_READ_CHARS_MAX])
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
