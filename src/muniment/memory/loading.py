"""Bulk loading of a caller's events: each under its names, with a key, then written and indexed.

The checks are those of the ledger; this module decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from muniment.core.outside.spool import Spool, spool
from muniment.errors import InvalidInput, MunimentError
from muniment.memory.index import count_unindexed, index_tenant
from muniment.store.ledger import draft_of
from muniment.store.load import LoadEvent, LoadReport, event_key, spool_events, write_spooled

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.load import LoadPhase, Progress

__all__ = ["load_events"]

_NAMES = ("user_id", "agent_id", "session_id", "run_id")


def load_events(
    ctx: Context,
    events: Iterable[Mapping[str, Any] | LoadEvent] | Spool,
    tenant_id: str,
    agent_id: str,
    *,
    index: bool,
    progress: Progress | None,
) -> LoadReport:
    """Check all events, write the missing ones, and index the tails of the tenant's users."""
    tell = progress or _tell_nobody
    if not isinstance(events, Spool) and (
        isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable)
    ):
        raise InvalidInput("load takes a list of events", path="$", hint="wrap a single event in a list")
    with ExitStack() as held:
        checked = events
        if not isinstance(checked, Spool):
            checked = held.enter_context(spool())
            named = _named(events, agent_id)  # type: ignore[arg-type] # not a spool, as checked above
            spool_events(named, ctx.policy.ledger, checked, tenant_id, tell, ctx.timezone)
        done = write_spooled(ctx, tenant_id, checked, tell)
    indexed = index_tenant(ctx, tenant_id, progress=lambda count: tell("indexed", count)) if index else 0
    return LoadReport(
        events=done.events,
        written=done.written,
        already_present=done.known,
        forgotten=done.forgotten,
        sessions=done.sessions,
        indexed=indexed,
        waiting=count_unindexed(ctx, tenant_id),
    )


def _tell_nobody(_phase: LoadPhase, _count: int) -> None:
    """Ignore progress."""


def _named(events: Iterable[Mapping[str, Any] | LoadEvent], agent_id: str) -> Iterator[LoadEvent]:
    places: Counter[tuple[str, str]] = Counter()
    for number, event in enumerate(events):
        if isinstance(event, LoadEvent):
            yield event
            continue
        try:
            yield _event(event, number, agent_id, places)
        except MunimentError as error:
            error.path = f"$[{number}]{(error.path or '$')[1:]}"
            raise


def _event(event: Any, number: int, agent_id: str, places: Counter[tuple[str, str]]) -> LoadEvent:
    if not isinstance(event, Mapping):
        raise InvalidInput(f"an event should be an object, found {type(event).__name__}", path="$")
    bare = dict(event)
    names = {name: bare.pop(name, None) for name in _NAMES}
    for name in ("user_id", "session_id"):
        if not isinstance(names[name], str) or not names[name]:
            said = f"an event that is loaded says its {name}"
            raise InvalidInput(said, path=f"$.{name}", hint="1 to 256 characters")
    user_id, session_id, run_id = names["user_id"], names["session_id"], names["run_id"]
    agent = agent_id if names["agent_id"] is None else names["agent_id"]
    places[user_id, session_id] += 1
    if bare.get("idempotency_key") is None:
        bare["idempotency_key"] = event_key((user_id, agent, session_id, run_id), places[user_id, session_id], bare)
    return LoadEvent(user_id, agent, session_id, run_id, draft_of(bare), f"event {number}")
