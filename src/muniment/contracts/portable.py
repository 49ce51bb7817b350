"""Portable memory v1: a neutral file format for a user's memory, with its evidence.

JSON lines. Each line is an object with one key, which names its type: the header first, then sessions, messages,
memories, facts and summaries, and the end with counts and a digest. A message or memory comes before its dependents.
Deleted content is not included. Structure only: consistency between lines is checked by the reader (`moving.portable`).
"""

from typing import Literal

from muniment.core.record import (
    Absent,
    Confidence,
    Count,
    Items,
    JsonObject,
    JsonValue,
    Record,
    Timestamp,
)
from muniment.core.scope import IdText, Origin, Trust

__all__ = [
    "FORMAT",
    "VERSION",
    "PortableAssertion",
    "PortableEnd",
    "PortableFact",
    "PortableHeader",
    "PortableLine",
    "PortableMemory",
    "PortableMessage",
    "PortableObjection",
    "PortableSession",
    "PortableSummary",
]

FORMAT: Literal["muniment.portable"] = "muniment.portable"
VERSION: Literal[1] = 1


class PortableHeader(Record):
    """The first line: which format, whose memory, written when and by what."""

    format: Literal["muniment.portable"]
    version: Literal[1]
    user_id: IdText
    exported_at: Timestamp
    generator: Absent[str] = None


class PortableSession(Record):
    """A conversation; its messages follow, in order."""

    session_id: IdText
    agent_id: Absent[IdText] = None
    title: Absent[str] = None
    started_at: Absent[Timestamp] = None


class PortableMessage(Record):
    """What was said, verbatim. `sha256` is over the UTF-8 bytes of the content, so that a reader can check it."""

    id: IdText
    session_id: IdText
    role: Literal["user", "assistant", "tool", "system", "developer"]
    content: str
    sha256: str
    ts: Timestamp
    speaker: Absent[str] = None
    tags: Absent[Items[str]] = None
    entities: Absent[Items[str]] = None
    metadata: Absent[JsonObject] = None
    tool: Absent[JsonObject] = None
    """For a tool's result: its name, its arguments, and whether it worked."""
    trust: Absent[Trust] = None
    origin: Absent[Origin] = None
    """Source from which the exporting store imported it; absent if observed there."""


class PortableMemory(Record):
    """A note that a system keeps in words of its own, such as a memory of mem0. Never what somebody said."""

    id: IdText
    text: str
    sha256: str
    ts: Timestamp
    """When it was written, as far as is known."""
    origin: Origin
    session_id: Absent[IdText] = None
    speaker: Absent[str] = None
    """Its category there, such as a block `human`."""
    metadata: Absent[JsonObject] = None


class PortableAssertion(Record):
    """One saying of a fact, and the evidence it rests on, by id."""

    sources: Items[IdText]
    order: Count
    """Its place among all assertions of the file: contradictions are resolved in this order."""
    since: Timestamp
    confidence: Absent[Confidence] = None
    trust: Absent[Trust] = None
    valid_from: Absent[Timestamp] = None
    valid_to: Absent[Timestamp] = None
    quote: Absent[str] = None
    """Words quoted from one of the sources."""
    notes: Absent[str] = None


class PortableObjection(Record):
    """Somebody disputed a fact."""

    sources: Items[IdText]
    reason: Absent[str] = None


class PortableFact(Record):
    """A keyed statement with everything that was said for it, and how it stands. Its history: the facts of its key."""

    id: IdText
    key: IdText
    value: JsonValue
    status: Literal["active", "disputed", "deprecated"]
    assertions: Items[PortableAssertion]
    """In the order in which they were made."""
    ended_at: Absent[Timestamp] = None
    superseded_by: Absent[IdText] = None
    is_retracted: Absent[bool] = None
    is_preference: Absent[bool] = None
    objections: Absent[Items[PortableObjection]] = None


class PortableSummary(Record):
    """A summary of a session that a caller gave, and what it rests on."""

    session_id: IdText
    text: str
    sources: Items[IdText]
    given_at: Absent[Timestamp] = None


class PortableEnd(Record):
    """The last line: how many lines of each kind, and the SHA-256 (hex) over the bytes of every line before it."""

    counts: dict[str, Count]
    digest: str
    left_out: Absent[dict[str, Count]] = None
    """Counts, by kind, of this user's data that the format cannot hold."""


class PortableLine(Record):  # MV-01
    """One line of a portable file: exactly one of these."""

    header: Absent[PortableHeader] = None
    session: Absent[PortableSession] = None
    message: Absent[PortableMessage] = None
    memory: Absent[PortableMemory] = None
    fact: Absent[PortableFact] = None
    summary: Absent[PortableSummary] = None
    end: Absent[PortableEnd] = None
