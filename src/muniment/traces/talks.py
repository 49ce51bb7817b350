"""A session as traces find it: what it holds, and what is about to be written to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import digest_of
from muniment.core.listing import listing_given
from muniment.store.reading import content_of, list_entries
from muniment.traces.aligning import KnownSession, KnownTurn, Marks
from muniment.traces.dialects.said import Called
from muniment.traces.units import Sent

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.ledger.records import LedgerEntry

__all__ = ["Pending", "Place", "TracedTalk", "load_talk"]

_KNOWN_MAX = 4_000
"""How many of a session's latest entries a trace is laid beside."""


class Place(NamedTuple):
    """The run that an event goes to."""

    agent: str
    run_id: str


class Pending(NamedTuple):
    """An event that is to be written."""

    place: Place
    event: dict[str, Any]
    signal: Sent


@dataclass
class TracedTalk:
    """What is known of a session, and what is to be written to it."""

    user: str
    session: str
    known: KnownSession = field(default_factory=KnownSession)
    calls: dict[str, Called] = field(default_factory=dict)
    prompts: set[str] = field(default_factory=set)
    pending: list[Pending] = field(default_factory=list)
    seq: int = 0
    """The number of the session's last entry that is known here."""

    def write(self, place: Place, event: dict[str, Any], ts: str, signal: Sent) -> None:
        self.pending.append(Pending(place, event | ({"ts": ts} if ts else {}), signal))


def load_talk(ctx: Context, tenant_id: str, user: str, sessions: Iterable[str], marks: Marks) -> TracedTalk:
    """The last of these sessions as it stands, with what was said in the others."""
    names = list(sessions)
    talk = TracedTalk(user, names[-1])
    asked = listing_given(order="desc", limit=_KNOWN_MAX)
    for name in names:
        entries = list(list_entries(ctx, tenant_id, user, name, None, asked))
        talk.known.is_cut |= len(entries) >= _KNOWN_MAX
        talk.seq = entries[0].seq if entries else 0
        for entry in reversed(entries):
            _know(ctx, talk, entry, marks)
    return talk


def _know(ctx: Context, talk: TracedTalk, entry: LedgerEntry, marks: Marks) -> None:
    agent = entry.scope.agent_id
    if entry.is_forgotten:
        if entry.kind in ("message", "tool_result", "system"):  # what a call was given stands in an event of the system
            talk.known.add([KnownTurn("", entry.role, entry.ts, agent)])
        return
    if entry.kind not in ("message", "tool_result") and entry.metadata.get("event") != "tool_calls":
        if entry.kind == "system" and isinstance(entry.metadata.get("otel"), Mapping):
            talk.prompts.add(digest_of(_content(ctx, entry)))
        return
    made = entry.metadata.get("tool_calls")
    calls = [_called(call) for call in made if isinstance(call, Mapping)] if isinstance(made, list | tuple) else []
    talk.calls |= {call.id: call for call in calls}
    tool = entry.body.tool if entry.body is not None else None
    call_id = (tool.call_id if tool is not None else None) or ""
    mark = marks.of(entry.role, _content(ctx, entry), call_id, [call.id for call in calls], is_recorded=True)
    talk.known.add([KnownTurn(mark, entry.role, entry.ts, agent)])


def _called(call: Mapping[str, Any]) -> Called:
    args = call.get("args")
    return Called(str(call.get("id")), str(call.get("name")), dict(args) if isinstance(args, Mapping) else None)


def _content(ctx: Context, entry: LedgerEntry) -> str:
    if entry.content is not None:
        return entry.content
    return content_of(ctx, entry.scope.tenant_id, entry.id, entry.scope.user_id)
