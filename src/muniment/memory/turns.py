"""A turn that may be quoted, a sentence of one, and a stretch of them."""

from functools import cached_property
from json.encoder import encode_basestring as _quote
from typing import Literal

from muniment.core.canonical import Written, canonical_text
from muniment.core.record import Absent, Count, Items, Number, Record
from muniment.core.scope import IdText
from muniment.core.text.duplicates import Words, read_words
from muniment.core.vocabulary import Trust

__all__ = ["EpisodeCandidate", "PacketRole", "SummaryLine", "Turn"]

PacketRole = Literal["user", "assistant", "tool"]


class Turn(Record):
    """An event that may be quoted: a message or a tool's result, never a system or developer message."""

    id: IdText
    session_id: IdText
    seq: Count
    kind: Literal["message", "tool_result"]
    role: PacketRole
    speaker: str | None
    ts: str
    text: str
    trust: Trust
    flags: Items[str]

    @cached_property
    def written(self) -> Written:
        """The turn as canonical JSON, field by field: it stands in many pools, and is written once."""
        return Written(
            f'{{"flags":{canonical_text(self.flags)},"id":{_quote(self.id)},"kind":"{self.kind}","role":"{self.role}",'
            f'"seq":{self.seq},"session_id":{_quote(self.session_id)},'
            f'"speaker":{"null" if self.speaker is None else _quote(self.speaker)},'
            f'"text":{_quote(self.text)},"trust":"{self.trust}","ts":{_quote(self.ts)}}}'
        )

    @cached_property
    def words(self) -> Words:
        """The words of its text, for telling whether it was said already: read once, like the rest."""
        return read_words(self.text)


class SummaryLine(Record):
    """A sentence taken verbatim from an event."""

    evidence_id: IdText
    text: str
    ts: str
    weight: Number
    role: Absent[PacketRole] = None
    speaker: Absent[str] = None
    trust: Absent[Trust] = None


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
