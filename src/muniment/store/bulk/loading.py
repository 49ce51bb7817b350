"""A load from its first event to its last: everything is checked and put in order on disk, then written in portions.

Nothing is written before all of it was found to be in order. Each portion is one transaction, and every event has a
key, so that a load that was broken off at any moment is run again: what is there is passed over. It never holds more
in memory than a portion and what the spool sorts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from muniment.core.canonical import canonical_bytes
from muniment.core.limits import checkpoint
from muniment.core.scope import Scope, is_reserved, scope_given
from muniment.errors import InvalidInput, MunimentError
from muniment.store.bulk.records import Checked, LoadEvent, checked_of
from muniment.store.bulk.writing import Part, write_portion
from muniment.store.idempotency import key_named
from muniment.store.ledger.admission import admit
from muniment.store.ledger.drafts import refuse_reserved
from muniment.store.writing import opening_draft

if TYPE_CHECKING:
    from muniment.core.outside.spool import Spool
    from muniment.core.policy import LedgerPolicy
    from muniment.store.context import Context

__all__ = ["LoadPhase", "Loaded", "Progress", "event_key", "spool_events", "write_spooled"]

PORTION_EVENTS = 5_000
PORTION_CHARS = 8 << 20
PORTION_SESSIONS = 500
"""Sessions that one transaction locks: a server has room for some thousands of locks, of everybody together."""
RUNS_MAX = 4_096
SCOPES_MAX = 1 << 15
"""Names that are known to be in order: a log has its users in turns."""

LoadPhase = Literal["checked", "written", "indexed"]
Progress = Callable[[LoadPhase, int], None]
"""Called with so many events more that came so far."""

Address = tuple[str, str, str, str | None]


class Loaded(NamedTuple):
    """What was written of a load."""

    events: int = 0
    written: int = 0
    known: int = 0
    forgotten: int = 0
    sessions: int = 0


def event_key(address: Address, number: int, event: dict[str, Any]) -> str:
    """The idempotency key of an event that has none. It depends on the event and its place in the session alone, so
    that the same events given again write nothing."""
    return "ingest:" + sha256(canonical_bytes([*address, number, event])).hexdigest()


def spool_events(
    events: Iterable[LoadEvent], policy: LedgerPolicy, spool: Spool, tenant_id: str, progress: Progress
) -> None:
    """Bring every event to the door of the ledger without letting one in; raises for the first that it would refuse."""
    spool.label = (tenant_id, policy)
    scopes: set[Address] = set()
    for event in events:
        checkpoint()
        try:
            _check_scope(event, tenant_id, scopes)
            checked = _check_draft(event, policy, tenant_id)
        except MunimentError as error:
            error.message = f"{event.where}: {error.message}"
            raise
        spool.add(event.user_id, event.session_id, (event.agent_id, event.run_id, event.where, tuple(checked)))
        progress("checked", 1)


def _check_scope(event: LoadEvent, tenant_id: str, seen: set[Address]) -> None:
    address = (event.user_id, event.agent_id, event.session_id, event.run_id)
    if address in seen:
        return
    if is_reserved(event.user_id):
        raise InvalidInput(
            f"{event.user_id!r:.60} is the name of a corpus or a bank, not of a user",
            path="$.user_id",
            hint="documents are added through mem.corpus(…)",
        )
    _scope(tenant_id, address, "run")
    if len(seen) >= SCOPES_MAX:
        seen.clear()
    seen.add(address)


def _scope(tenant_id: str, address: Address, run_id: str) -> Scope:
    user_id, agent_id, session_id, named = address
    names = {"tenant_id": tenant_id, "user_id": user_id, "agent_id": agent_id, "session_id": session_id}
    return scope_given(names | {"run_id": run_id if named is None else named})


def _check_draft(event: LoadEvent, policy: LedgerPolicy, tenant_id: str) -> Checked:
    draft = event.draft
    if draft.idempotency_key is None:
        raise InvalidInput("an event that is loaded has a key", path="$.idempotency_key")
    if draft.cited is not None:
        said = "what an answer cites is read from its marks, and not of what is loaded in bulk"
        raise InvalidInput(said, path="$.cited", hint="observe such answers one by one, with their build")
    refuse_reserved(draft, "$")
    key = key_named(draft, tenant_id, event.user_id, event.agent_id, event.session_id)
    return checked_of(admit(draft, policy), key)


def write_spooled(ctx: Context, tenant_id: str, spool: Spool, progress: Progress) -> Loaded:
    """Write all that was spooled and is not there yet."""
    if spool.count and spool.label != (tenant_id, ctx.policy.ledger):
        said = "these events were checked for another tenant or under another policy"
        raise InvalidInput(said, path="$.policy", hint="check them with what the store was opened with")
    opening = admit(opening_draft({"task_type": "generic"}), ctx.policy.ledger)
    total = Loaded()
    last: tuple[str, str] | None = None
    for parts in _portions(_parts(ctx, tenant_id, spool)):
        checkpoint()
        done = write_portion(ctx, tenant_id, parts, opening)
        places = dict.fromkeys((part.scope.user_id, part.scope.session_id) for part in parts)
        count = sum(len(part.events) for part in parts)
        total = Loaded(
            total.events + count,
            total.written + done.written,
            total.known + done.known,
            total.forgotten + done.forgotten,
            total.sessions + len(places) - (last in places),
        )
        last = next(reversed(places))
        progress("written", count)
    return total


def _parts(ctx: Context, tenant_id: str, spool: Spool) -> Iterator[Part]:
    """The spooled events in parts of one run, none larger than a portion."""
    runs: OrderedDict[Address, Scope] = OrderedDict()
    held: Part | None = None
    chars = 0
    for user_id, session_id, (agent_id, run_id, where, record) in spool.read():
        event = Checked(*record)
        address = (user_id, agent_id, session_id, run_id)
        scope, is_new = runs.get(address), False
        if scope is None:
            is_new = run_id is None
            scope = runs[address] = _scope(tenant_id, address, ctx.ids.new("run") if run_id is None else "")
            if len(runs) > RUNS_MAX:
                runs.popitem(last=False)
        chars += event.size
        is_full = held is None or len(held.events) >= PORTION_EVENTS or chars > PORTION_CHARS
        if held is None or is_full or (scope is not held.scope and scope != held.scope):
            if held is not None:
                yield held
            held, chars = Part(scope, [], [], is_new), event.size
        held.events.append(event)
        held.where.append(where)
    if held is not None:
        yield held


def _portions(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """As many parts as one transaction takes."""
    held: list[Part] = []
    events = chars = 0
    for part in parts:
        size = sum(event.size for event in part.events)
        is_full = events + len(part.events) > PORTION_EVENTS or chars + size > PORTION_CHARS
        if held and (is_full or len(held) >= PORTION_SESSIONS):
            yield held
            held, events, chars = [], 0, 0
        held.append(part)
        events += len(part.events)
        chars += size
    if held:
        yield held
