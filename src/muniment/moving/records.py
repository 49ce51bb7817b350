"""What readers of other systems' files find, and what a move reports: counts, and every item that was not carried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Literal, NamedTuple

from muniment.contracts.portable import (
    PortableFact,
    PortableMemory,
    PortableMessage,
    PortableSession,
    PortableSummary,
)
from muniment.core.record import Count, Items, Record

__all__ = [
    "LEFT_OUT_MAX",
    "ONE_USER",
    "SYSTEMS",
    "Carried",
    "Found",
    "LeftOut",
    "MoveReport",
    "NotCarried",
    "Read",
    "System",
    "content_hash",
    "kind_of",
    "not_carried",
]

System = Literal["portable", "mem0", "zep", "letta", "chatgpt", "claude"]
SYSTEMS: tuple[System, ...] = ("portable", "mem0", "zep", "letta", "chatgpt", "claude")
"""What an import can read."""
ONE_USER: tuple[System, ...] = ("letta", "chatgpt", "claude")
"""Systems whose files name no user: whose they are has to be said."""
LEFT_OUT_MAX = 10_000
"""So many items that were not carried are named in a report; the rest is counted."""

Carried = PortableSession | PortableMessage | PortableMemory | PortableFact | PortableSummary


class Found(NamedTuple):
    """Something that can be carried, where it stood, and whose the source says it is, if it says so."""

    path: str
    item: Carried
    user: str | None = None


class LeftOut(NamedTuple):
    """Something that is not carried, and why. What holds no words of anybody's is no loss."""

    path: str
    kind: str
    why: str
    is_loss: bool = True
    times: int = 1
    """How many of its kind it stands for."""


Read = Iterator[Found | LeftOut]
"""What a reader of a format answers, in the order of the file."""


class NotCarried(Record):
    """An item of the source that is not here now: where it stood there, what it was, and why."""

    path: str
    kind: str
    why: str
    is_loss: bool
    """False of what holds no words of anybody's: an empty node, a vector, a tool's definition."""


class MoveReport(Record):  # MV-05
    """What an import did, or would do: the same report either way."""

    system: str
    tenant_id: str
    users: Items[str]
    dry_run: bool
    sessions: Count
    """The conversations that what was read belongs to."""
    read: dict[str, Count]
    """What the source holds that can be carried, by kind."""
    written: dict[str, Count]
    known: dict[str, Count]
    """What was here already: nothing is written twice."""
    changed: Count
    """Of what was written: newer versions of what an earlier import brought."""
    flagged: Count
    """Of what was written: what reads like instructions from outside, and is not quoted."""
    left_out: Items[NotCarried]
    left_out_counts: dict[str, Count]
    """All of what was not carried, by kind, also what is not named one by one."""
    losses: Count
    """How many of these hold words of somebody's."""

    @property
    def is_complete(self) -> bool:
        """Was everything carried that holds anybody's words?"""
        return self.losses == 0


_KINDS: dict[type, str] = {
    PortableSession: "sessions",
    PortableMessage: "messages",
    PortableMemory: "memories",
    PortableFact: "facts",
    PortableSummary: "summaries",
}


def kind_of(item: Carried) -> str:
    """The kind of an item as reports count it."""
    return _KINDS[type(item)]


def content_hash(text: str) -> str:
    """The SHA-256 (hex) of a text, by which a reader of the file can check it."""
    return sha256(text.encode()).hexdigest()


def not_carried(items: Iterable[LeftOut]) -> tuple[NotCarried, ...]:
    """What was left out as a report names it."""
    return tuple(NotCarried(path=each.path, kind=each.kind, why=each.why, is_loss=each.is_loss) for each in items)
