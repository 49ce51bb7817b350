"""A turn that may be quoted, a sentence of one, and a stretch of them."""

from functools import cache, cached_property
from typing import Literal

from muniment.core.record import Absent, Count, Items, Number, Record
from muniment.core.scope import IdText, Trust
from muniment.core.text.sentences import Words, read_words

__all__ = [
    "EpisodeCandidate",
    "Excerpt",
    "PacketRole",
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
    """Who said it, where they have a name; of a tool's result, its call (`memory.results.tool_text`)."""
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
