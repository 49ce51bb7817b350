"""Loads: many events of many sessions, validated and sorted on disk, then written in large transactions.

Nothing is written before all events were found valid. Every event has an idempotency key, so an interrupted load is run
again and skips what is there. Memory holds no more than one transaction and what the spool sorts. Indexing follows as
for any other entry.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from muniment.core.canonical import canonical_bytes, canonical_text, read_canonical, salted_digest
from muniment.core.instants import in_zone
from muniment.core.limits import checkpoint
from muniment.core.ports.engine import KeyTaken, Transaction
from muniment.core.ports.rows import by_ids, find
from muniment.core.ports.schema import ENTRIES, IDEMPOTENCY_KEYS, BlobRow, IdempotencyKeyRow
from muniment.core.record import Count, Record
from muniment.core.scope import Scope, is_reserved, scope_given
from muniment.errors import IdempotencyMismatch, InvalidInput, MunimentError, StorageBusy
from muniment.store.admission import admit
from muniment.store.append import Batch, append_batches, key_named, opening_draft
from muniment.store.ledger import EntryDraft, refuse_reserved

if TYPE_CHECKING:
    from datetime import tzinfo

    from muniment.core.outside.spool import Spool
    from muniment.core.policy import LedgerPolicy
    from muniment.core.scope import Trust
    from muniment.store.admission import Admitted
    from muniment.store.context import Context
    from muniment.store.ledger import EntryKind, Role

__all__ = ["LoadEvent", "LoadPhase", "LoadReport", "Loaded", "Progress", "event_key", "spool_events", "write_spooled"]

PORTION_EVENTS = 5_000
PORTION_CHARS = 8 << 20
PORTION_SESSIONS = 500
"""Sessions locked by one transaction: a server has room for some thousands of locks across all clients."""
RUNS_MAX = 4_096
SCOPES_MAX = 1 << 15
"""Scopes cached as valid: the events of a log's users alternate."""
_RACES_MAX = 4
"""Retries of a portion after another writer came first."""

LoadPhase = Literal["checked", "written", "indexed"]
Progress = Callable[[LoadPhase, int], None]
"""Called with the number of events that passed a phase since the last call."""

Address = tuple[str, str, str, str | None]


class LoadEvent(NamedTuple):
    """An event with the names it is stored under."""

    user_id: str
    agent_id: str
    session_id: str
    run_id: str | None
    """None for a run made by the load, one for each session and agent."""
    draft: EntryDraft
    where: str
    """Its place in the input, for errors."""


class LoadReport(Record):
    """The events a load wrote, and those already present."""

    events: Count
    """Events given."""
    written: Count
    already_present: Count
    """Events written earlier under the same key."""
    forgotten: Count
    """Events written earlier under the same key and forgotten since: they are not written again."""
    sessions: Count
    """Sessions that events were written to."""
    indexed: Count
    """Turns indexed, of this load or of an earlier one that was interrupted."""
    waiting: Count
    """Events of the tenant that are not indexed yet."""


class Loaded(NamedTuple):
    """The result of writing a load."""

    events: int = 0
    written: int = 0
    known: int = 0
    forgotten: int = 0
    sessions: int = 0


def event_key(address: Address, number: int, event: dict[str, Any]) -> str:
    """Return the idempotency key of an event that has none. It depends only on the event and its place in the session,
    so that loading the same events again writes nothing.
    """
    return "ingest:" + sha256(canonical_bytes([*address, number, event])).hexdigest()


# -- checking -----------------------------------------------------------------------------------------


class _Checked(NamedTuple):
    """An admitted event: everything written of it but its id, salt and place. A spool stores it as a plain tuple. Its
    request holds the caller's input before redaction.
    """

    id: str | None
    """None for a minted id."""
    kind: EntryKind
    role: Role
    ts: str | None
    trust: Trust
    flags: tuple[str, ...]
    body_text: str
    """Canonical; without the blob's name if it has one."""
    blob: bytes | None
    event: Any
    key: tuple[bytes, bytes]
    """The hash of its idempotency key, and the request's bytes."""

    @property
    def size(self) -> int:
        return len(self.body_text) + (0 if self.blob is None else len(self.blob))

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = read_canonical(self.body_text)
        return body


def spool_events(
    events: Iterable[LoadEvent],
    policy: LedgerPolicy,
    spool: Spool,
    tenant_id: str,
    progress: Progress,
    timezone: tzinfo | None = None,
) -> None:
    """Check every event as the ledger would, and spool it; raises for the first that would be refused."""
    spool.label = (tenant_id, policy)
    scopes: set[Address] = set()
    for event in events:
        checkpoint()
        try:
            _check_scope(event, tenant_id, scopes)
            checked = _check_draft(event, policy, tenant_id, timezone)
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


def _check_draft(event: LoadEvent, policy: LedgerPolicy, tenant_id: str, timezone: tzinfo | None) -> _Checked:
    draft = event.draft
    if draft.idempotency_key is None:
        raise InvalidInput("an event that is loaded has a key", path="$.idempotency_key")
    if draft.cited is not None:
        said = "what an answer cites is read from its marks, and not of what is loaded in bulk"
        raise InvalidInput(said, path="$.cited", hint="observe such answers one by one, with their build")
    refuse_reserved(draft, "$")
    key = key_named(draft, tenant_id, event.user_id, event.agent_id, event.session_id)
    said_at = draft.ts if draft.ts is None or timezone is None else in_zone(draft.ts, timezone)
    return _checked(admit(draft, policy, said_at), key)


def _checked(admitted: Admitted, key: tuple[bytes, bytes]) -> _Checked:
    draft = admitted.draft
    return _Checked(
        draft.id,
        draft.kind,
        draft.role,
        admitted.ts,
        admitted.trust,
        admitted.flags,
        admitted.body_text if admitted.blob is None else canonical_text(admitted.body),
        admitted.blob,
        admitted.event,
        key,
    )


# -- writing ------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Consecutive events of one session and one run, with their places in the input."""

    scope: Scope
    events: list[_Checked]
    where: list[str]
    is_new: bool
    """The run was just made for it, so it has no entries yet."""


def write_spooled(ctx: Context, tenant_id: str, spool: Spool, progress: Progress) -> Loaded:
    """Write all spooled events that are not there yet."""
    if spool.count and spool.label != (tenant_id, ctx.policy.ledger):
        said = "these events were checked for another tenant or under another policy"
        raise InvalidInput(said, path="$.policy", hint="check them with what the store was opened with")
    opening = admit(opening_draft({"task_type": "generic"}), ctx.policy.ledger)
    total = Loaded()
    last: tuple[str, str] | None = None
    for parts in _portions(_parts(ctx, tenant_id, spool)):
        checkpoint()
        done = _write_portion(ctx, tenant_id, parts, opening)
        places = dict.fromkeys((part.scope.user_id, part.scope.session_id) for part in parts)
        total = Loaded(
            total.events + done.events,
            total.written + done.written,
            total.known + done.known,
            total.forgotten + done.forgotten,
            total.sessions + len(places) - (last in places),
        )
        last = next(reversed(places))
        progress("written", done.events)
    return total


def _parts(ctx: Context, tenant_id: str, spool: Spool) -> Iterator[_Part]:
    """Split the spooled events into parts of one run, none larger than a portion."""
    runs: OrderedDict[Address, Scope] = OrderedDict()
    held: _Part | None = None
    chars = 0
    for user_id, session_id, (agent_id, run_id, where, record) in spool.read():
        event = _Checked(*record)
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
            held, chars = _Part(scope, [], [], is_new), event.size
        held.events.append(event)
        held.where.append(where)
    if held is not None:
        yield held


def _portions(parts: Iterable[_Part]) -> Iterator[list[_Part]]:
    """Group parts into portions of one transaction each."""
    held: list[_Part] = []
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


def _write_portion(ctx: Context, tenant_id: str, parts: Sequence[_Part], opening: Admitted) -> Loaded:
    """Write the portion's new events, all of them or none."""
    taken = ""
    for number in range(_RACES_MAX):
        batches = [_batch(ctx, part, opening) for part in parts]

        def work(tx: Transaction, batches: list[Batch] = batches, is_wary: bool = number > 0) -> Loaded:
            skipped, forgotten = _find_written(tx, parts)
            fresh = [batch.without(places) for batch, places in zip(batches, skipped, strict=True)]
            append_batches(ctx, tx, [batch for batch in fresh if batch.ids], is_load=True, is_wary=is_wary)
            events = sum(len(part.events) for part in parts)
            known = sum(map(len, skipped))
            return Loaded(events, events - known, known - forgotten, forgotten)

        try:
            return ctx.engine.write(tenant_id, work)
        except KeyTaken as error:  # another writer came first with one of these keys: by now it can be seen
            taken = error.table
    raise StorageBusy(f"others write the same rows of {taken} again and again", hint="load the same events again")


def _batch(ctx: Context, part: _Part, opening: Admitted) -> Batch:
    salts = ctx.ids.salts(len(part.events))
    ids = [event.id or ctx.ids.new("evt") for event in part.events]
    events = list(part.events)
    blobs: dict[str, BlobRow] = {}
    for place, event in enumerate(events):
        if event.blob is not None:
            name = salted_digest(salts[place], event.blob)
            body = event.body | {"blob": name.hex(), "bytes": len(event.blob)}
            events[place] = event._replace(body_text=canonical_text(body))
            blobs[ids[place]] = BlobRow(name, ids[place], len(event.blob), event.blob)
    return Batch(
        scope=part.scope,
        opening=opening,
        admitted=events,
        ids=ids,
        salts=salts,
        keys=[event.key for event in events],
        chosen=[None if event.id is None else where for event, where in zip(events, part.where, strict=True)],
        blobs=blobs,
        is_new_run=part.is_new,
    )


class _Salted(NamedTuple):
    id: str
    salt: bytes | None


def _find_written(tx: Transaction, parts: Sequence[_Part]) -> tuple[list[set[int]], int]:
    """Return the places of each part's events that were already written, and how many were forgotten since.

    Raises `IdempotencyMismatch` if a key was used for another request.
    """
    asked = dict.fromkeys((part.scope.user_id, event.key[0]) for part in parts for event in part.events)
    rows = find(tx, IDEMPOTENCY_KEYS, ("user_id", "key_hash"), list(asked), into=IdempotencyKeyRow)
    held = {(row.user_id, row.key_hash): row for row in rows}
    entries = by_ids(tx, ENTRIES, [row.entry_id for row in held.values()], into=_Salted)
    salts = {entry.id: entry.salt for entry in entries}
    skipped: list[set[int]] = []
    seen: dict[tuple[str, bytes], bytes] = {}
    forgotten = 0
    for part in parts:
        places: set[int] = set()
        skipped.append(places)
        for place, event in enumerate(part.events):
            named, request = (part.scope.user_id, event.key[0]), event.key[1]
            row, earlier = held.get(named), seen.setdefault(named, request)
            if earlier is not request:
                is_same = earlier == request
            elif row is None:
                continue
            else:
                salt = salts.get(row.entry_id)
                is_gone = salt is None or row.request_hash is None
                forgotten += is_gone
                is_same = is_gone or row.request_hash == salted_digest(salt or b"", request)
            if not is_same:
                said = f"{part.where[place]}: this idempotency key was used for another request"
                raise IdempotencyMismatch(said, path="$.idempotency_key", hint="use a new key for a new request")
            places.add(place)
    return skipped, forgotten
