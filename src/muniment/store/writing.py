"""Writing to the ledger: the only place where entries are made.

Three ways lead here. `append` writes drafts in a transaction of its own. `append_in` writes drafts that depend on what
the caller's transaction has read. `append_batches` writes for several sessions at once what `prepare_batch` made of
their drafts before the transaction began.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from muniment.core.canonical import salted_digest
from muniment.core.instants import format_instant, parse_instant
from muniment.core.limits import checkpoint
from muniment.core.ports.engine import Condition, KeyTaken, Lock, Patch, Reader, Transaction
from muniment.core.ports.rows import advance, by_ids, get, insert, put, select
from muniment.core.ports.schema import (
    BLOBS,
    ENTRIES,
    IDEMPOTENCY,
    IDS,
    SESSIONS,
    TENANTS,
    USERS,
    BlobRow,
    EntryRow,
    IdempotencyRow,
    IdRow,
    SessionRow,
    TenantRow,
    UserRow,
)
from muniment.core.scope import Scope, lock_rank
from muniment.errors import (
    ClockWentBack,
    Conflict,
    DuplicateId,
    IdempotencyMismatch,
    IntegrityFailure,
    InvalidInput,
    MunimentError,
    RunFinished,
    RunLocked,
    StaleState,
    StoreDamaged,
    TooLarge,
)
from muniment.store.context import Context
from muniment.store.idempotency import key_of, put_keys
from muniment.store.items import Item, latest, write_changes
from muniment.store.ledger.admission import Admitted, admit, place_blob
from muniment.store.ledger.chain import Head, genesis, head_of, seal
from muniment.store.ledger.records import EntryDraft, LedgerEntry
from muniment.store.ledger.rows import entry_of_row
from muniment.store.ledger.run_events import PINNED, RUN_STARTED
from muniment.store.tombstones import forgotten, load_entry
from muniment.store.turns import is_turn

__all__ = [
    "Batch",
    "advance_head",
    "append",
    "append_batches",
    "append_in",
    "check_pinned",
    "check_run",
    "enter_tenant",
    "locked",
    "must_open",
    "number_entries",
    "opening_draft",
    "prepare",
    "prepare_batch",
    "project_entries",
    "recorded_now",
    "run_taken",
    "session_head",
    "store_rows",
]

R = TypeVar("R")


def opening_draft(said: dict[str, Any]) -> EntryDraft:
    """The `system` entry with which a run says of itself that it started, and what it is for."""
    return EntryDraft(kind="system", role="system", content="", metadata={"event": RUN_STARTED} | said)


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything about a call that is settled before its transaction, so that the work can be run again."""

    scope: Scope
    opening: Admitted
    """Written first where this is the run's first write."""
    admitted: tuple[Admitted, ...]
    """Per draft; a blob is already named, by its salt."""
    ids: tuple[str, ...]
    salts: tuple[bytes, ...]
    keys: tuple[tuple[bytes, bytes] | None, ...]
    """Per draft (key hash, the request's bytes) where it has an idempotency key."""
    prepared: Mapping[int, Any]
    """By draft, what the index of turns made of it beforehand."""
    after: str = ""
    """When the newest item was made that these entries build on; "" where they build on none.

    A rebuild reads the ledger by `recorded_at`. What builds on an item of another session, whose clock may be ahead,
    must therefore be recorded after it.
    """
    repairs: bool = False
    """May be written to a run that is locked."""
    expected_seq: int | None = None
    """The number of the session's last entry where the drafts follow from the session as it was read."""


def append(
    ctx: Context,
    scope: Scope,
    drafts: Sequence[EntryDraft],
    opening: Admitted,
    *,
    repairs: bool = False,
    expected_seq: int | None = None,
) -> list[LedgerEntry]:
    """Write the drafts as the next entries of the session, in order, in one transaction; answers their entries.

    With `expected_seq`, only while the session's last entry has that number (0 if it has none); else `StaleState`.
    Secrets in the drafts are redacted. A run whose compaction failed takes nothing but what `repairs` it (CS-08).
    """

    batch = replace(prepare(ctx, scope, drafts, opening), repairs=repairs, expected_seq=expected_seq)
    try:
        return ctx.engine.write(scope.tenant_id, lambda tx: _write(ctx, tx, batch))
    except KeyTaken:
        raise _which_id(ctx, batch) from None


def append_in(
    ctx: Context,
    tx: Transaction,
    scope: Scope,
    drafts: Sequence[EntryDraft],
    opening: Admitted,
    after: str,
    *,
    repairs: bool = False,
) -> list[LedgerEntry]:
    """Write drafts as the next entries of the session, in the caller's transaction; answers their entries.

    It is for drafts that depend on what the transaction has read. `after` is when the newest item was made that they
    build on, "" where they build on none (see `Batch.after`). The caller has redacted the drafts: here their ids
    could not be told from card numbers.
    """
    batch = prepare(ctx, scope, drafts, opening, is_redacted=True)
    return _write(ctx, tx, replace(batch, after=after, repairs=repairs))


def prepare_batch(
    ctx: Context, scope: Scope, drafts: Sequence[EntryDraft], opening: Admitted, *, after: str = ""
) -> Batch:
    """Admit, salt and embed drafts that the caller has redacted: all the work on them that needs no transaction.

    `after` is when the newest item was made that they build on (see `Batch.after`).
    """
    return replace(prepare(ctx, scope, drafts, opening, is_redacted=True), after=after)


def append_batches(ctx: Context, tx: Transaction, batches: Sequence[Batch]) -> None:
    """Write prepared batches, each to its own session, in the caller's transaction.

    The turns of a user are indexed together, once all of them are written.
    """
    pending: list[_Turns] = []
    for batch in batches:
        _write(ctx, tx, batch, pending)
    for user_id in dict.fromkeys(turns.scope.user_id for turns in pending):
        _index(ctx, tx, [turns for turns in pending if turns.scope.user_id == user_id])


def prepare(
    ctx: Context,
    scope: Scope,
    drafts: Sequence[EntryDraft],
    opening: Admitted,
    *,
    is_redacted: bool = False,
) -> Batch:
    """Settle everything about a call that needs no transaction."""
    policy = ctx.policy.ledger.model_copy(update={"redact_secrets": False}) if is_redacted else ctx.policy.ledger
    if len(drafts) > policy.batch_entries_max:
        raise TooLarge(
            f"{len(drafts)} entries in one call are over the limit of {policy.batch_entries_max}",
            hint="write them in several calls",
        )
    many = len(drafts) > 1
    admitted: list[Admitted] = []
    for index, draft in enumerate(drafts):
        checkpoint()
        try:
            admitted.append(admit(draft, policy))
        except MunimentError as error:
            if many and error.path:
                error.path = f"$[{index}]{error.path[1:]}"
            raise
    mint = ctx.ids.new
    salts = ctx.ids.salts(len(drafts))
    for index, item in enumerate(admitted):
        if item.blob is not None:
            admitted[index] = place_blob(item, salts[index])
    ids = tuple([draft.id or mint("evt") for draft in drafts])
    return Batch(
        scope=scope,
        opening=opening,
        admitted=tuple(admitted),
        ids=ids,
        salts=tuple(salts),
        keys=tuple(key_of(scope, draft) for draft in drafts),
        prepared=ctx.derived.index.prepare(ctx, drafts, admitted) if policy.index_turns else {},
    )


class _Turns(NamedTuple):
    """The turns of a batch, to be indexed: entries with their texts, and by id what the index prepared of them."""

    scope: Scope
    said: list[tuple[LedgerEntry, str]]
    prepared: list[tuple[str, Any]]


def _write(ctx: Context, tx: Transaction, batch: Batch, pending: list[_Turns] | None = None) -> list[LedgerEntry]:
    """Write one batch; answers the entries of its drafts.

    The turns are indexed at once, or left to the caller in `pending`, where one is given.
    """
    scope = batch.scope
    earlier = _earlier(tx, batch)
    fresh = [index for index in range(len(batch.admitted)) if index not in earlier]
    if not fresh and batch.admitted:
        return [earlier[index] for index in range(len(batch.admitted))]
    tx.do(Lock(("session", scope.user_id, scope.session_id)))
    admitted = [batch.admitted[index] for index in fresh]
    ids = [batch.ids[index] for index in fresh]
    salts = [batch.salts[index] for index in fresh]
    opens = must_open(tx, scope, batch.opening, repairs=batch.repairs)
    if opens:
        admitted, ids, salts = [batch.opening, *admitted], [ctx.ids.new("evt"), *ids], [*ctx.ids.salts(1), *salts]
    elif not admitted:
        return []  # a run that is only to be started was
    head = session_head(ctx, tx, scope)
    _check_seq(scope, batch.expected_seq, 0 if head is None else head.seq)
    recorded_at = recorded_now(ctx, head, batch.after)
    rows, end = seal(
        scope, head or genesis(scope.tenant_id, scope.user_id, scope.session_id), admitted, ids, salts, recorded_at
    )
    _store(tx, scope, rows, admitted, end, is_new=head is None)
    ctx.cache(_KnownEnds).keep(scope, end)
    entries = [
        entry_of_row(scope.tenant_id, row, scope=scope, body=item.body)
        for row, item in zip(rows, admitted, strict=True)
    ]
    project_entries(ctx, tx, entries)
    said = [(entry, item.text) for entry, item in zip(entries, admitted, strict=True) if is_turn(entry)]
    ctx.derived.extracts.extend(tx, scope.user_id, scope.session_id, end.seq, len(rows), said)
    if ctx.policy.ledger.index_turns:
        prepared = [(batch.ids[place], batch.prepared[place]) for place in fresh if place in batch.prepared]
        turns = _Turns(scope, said, prepared)
        if pending is None:
            _index(ctx, tx, [turns])
        else:
            pending.append(turns)
    written = entries[1:] if opens else entries
    if not any(batch.keys):
        return written
    _remember_keys(tx, batch, fresh, written)
    by_index = earlier | dict(zip(fresh, written, strict=True))
    return [by_index[index] for index in range(len(batch.admitted))]


def _check_seq(scope: Scope, expected: int | None, seq: int) -> None:
    if expected is not None and expected != seq:
        raise StaleState(
            f"the session {scope.session_id!r:.80} was written meanwhile",
            hint="read the session again",
            details={"current_version": seq},
        )


def _index(ctx: Context, tx: Transaction, pending: Sequence[_Turns]) -> None:
    """Index the turns of one user, in the transaction that writes them."""
    said = [each for turns in pending for each in turns.said]
    prepared = [each for turns in pending for each in turns.prepared]
    ctx.derived.index.add(ctx, tx, pending[0].scope, said, prepared)


def _earlier(tx: Transaction, batch: Batch) -> dict[int, LedgerEntry]:
    """The entries that earlier calls wrote under the same idempotency keys (LG-06)."""
    if not any(batch.keys):
        return {}
    user_id, tenant_id = batch.scope.user_id, batch.scope.tenant_id
    for key_hash in sorted({key[0] for key in batch.keys if key}):
        tx.do(Lock(("idempotency", user_id, key_hash.hex())))
    found: dict[int, LedgerEntry] = {}
    seen: set[bytes] = set()
    for index, key in enumerate(batch.keys):
        if key is None:
            continue
        if key[0] in seen:
            raise InvalidInput("an idempotency key stands twice in one call", path=f"$[{index}].idempotency_key")
        seen.add(key[0])
        known = get(tx, IDEMPOTENCY, (user_id, key[0]))
        if known is None:
            continue
        entry_id = known.entry_id
        entry_row = get(tx, ENTRIES, (entry_id,))
        if entry_row is None:
            raise IntegrityFailure(
                f"the event {entry_id!r} of an idempotency key is gone", hint="run `muniment verify`"
            )
        entry = load_entry(tx, tenant_id, entry_row)
        if entry.is_forgotten:
            raise forgotten(entry, "what this idempotency key wrote was forgotten", path="$.idempotency_key")
        if known.request_hash != salted_digest(entry_row.salt or b"", key[1]):
            raise IdempotencyMismatch(
                "this idempotency key was used for another request",
                path="$.idempotency_key",
                hint="use a new key for a new request",
                details={"id": entry_id},
            )
        found[index] = entry
    return found


def must_open(tx: Transaction, scope: Scope, opening: Admitted, *, repairs: bool) -> bool:
    """Is this the run's first write? Refuses a run that has ended, is locked or belongs elsewhere."""
    run = latest(tx, scope.run_id)
    if run is None:
        return True
    check_run(run, scope)
    if run.status == "finished":
        raise RunFinished(
            f"the run {scope.run_id} has ended", path="$.run_id", hint="start a new run in the same session"
        )
    if run.status == "locked" and not repairs:
        raise locked(run)
    check_pinned(run, opening)
    return False


def check_pinned(run: Item, opening: Admitted) -> None:
    """What a run is for was said when it started, and never changes (CS-05)."""
    said = opening.body.get("metadata", {})
    named = [name for name in PINNED if name in said]
    if not named or run.body is None:
        return
    held = run.plain()
    for name in named:
        is_forgotten = name in held and held[name] is None
        if held.get(name) != said[name] and not is_forgotten:
            raise Conflict(
                f"the run {run.id} was started with another {name}",
                path=f"$.{name}",
                hint=f"leave {name} out to take the run up again; start a new run for another {name}",
                details={"run_id": run.id, name: held.get(name)},
            )


def locked(run: Item) -> RunLocked:
    """What a run that failed its compaction answers to whoever would go on (CS-08)."""
    diagnosis = {} if run.body is None else run.plain().get("diagnosis") or {}
    failed = [check["message"] for check in diagnosis.get("checks", ()) if check.get("status") == "FAIL"]
    return RunLocked(
        f"the run {run.id} is locked: its snapshot does not hold: {'; '.join(failed) or 'see the diagnosis'}",
        path="$.run_id",
        hint="mem.resume(run_id, repair=True): correct by new entries, then unlock(reason)",
        details={"run_id": run.id, "validation": diagnosis},
    )


def check_run(run: Item, scope: Scope) -> None:
    """A run id stands for one run of one scope."""
    if (run.kind, run.user_id, run.agent_id, run.session_id) != (
        "run",
        scope.user_id,
        scope.agent_id,
        scope.session_id,
    ):
        raise run_taken(scope)


def run_taken(scope: Scope) -> DuplicateId:
    """The error for a run id that stands for something else."""
    return DuplicateId(f"the id {scope.run_id!r} is taken", path="$.run_id", hint="leave run_id out to have one minted")


ENDS_MAX = 4096


class _KnownEnds:
    """Ends of sessions that this process wrote itself: one that the store still has is not looked at. Thread-safe."""

    def __init__(self) -> None:
        self._ends: OrderedDict[tuple[str, str, str], Head] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, scope: Scope, end: Head) -> None:
        key = (scope.tenant_id, scope.user_id, scope.session_id)
        with self._lock:
            self._ends[key] = end
            self._ends.move_to_end(key)
            while len(self._ends) > ENDS_MAX:
                self._ends.popitem(last=False)

    def has(self, scope: Scope, end: Head) -> bool:
        with self._lock:
            return self._ends.get((scope.tenant_id, scope.user_id, scope.session_id)) == end

    def clear(self) -> None:
        with self._lock:
            self._ends.clear()


class _End(NamedTuple):
    seq: int
    hash: bytes
    recorded_at: str


def _check_end(ctx: Context, reader: Reader, scope: Scope, head: Head | None) -> None:
    """The session's last entry is its head; a session without a head has no entries. Raises `StoreDamaged`."""
    if head is not None and ctx.cache(_KnownEnds).has(scope, head):
        return
    where: tuple[Condition, ...] = (
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
        ("seq", ">=", 0 if head is None else head.seq),
    )
    last = select(reader, ENTRIES, where, into=_End, order=("user_id", "session_id", "seq"), limit=2)
    if [Head(*row) for row in last] != ([] if head is None or head.seq == 0 else [head]):
        raise StoreDamaged(
            f"the session {scope.session_id!r:.80} does not end where its head says: nothing is written behind it",
            details={"session_id": scope.session_id, "seq": 0 if head is None else head.seq},
        )


def session_head(ctx: Context, tx: Transaction, scope: Scope) -> Head | None:
    """The end of the session's chain, which the next entry follows; None of a session that is new."""
    session = get(tx, SESSIONS, (scope.user_id, scope.session_id))
    head = None if session is None else head_of(session)
    _check_end(ctx, tx, scope, head)
    return head


def recorded_now(ctx: Context, head: Head | None, after: str) -> str:
    """The clock's reading, held where it stepped back a little, refused where it stepped back far."""
    now = ctx.clock()
    text = format_instant(now)
    last = max("" if head is None else head.recorded_at, after)
    if text > last or (text == last and not after):
        return text
    back = parse_instant(last) - parse_instant(now)
    if back > timedelta(milliseconds=ctx.policy.ledger.clock_back_ms_max):
        raise ClockWentBack(
            f"the clock reads {text}, but this session was last written at {last}",
            hint="set the clock right; to record something of the past, give its ts",
            details={"clock": text, "recorded_at": last},
        )
    return format_instant(parse_instant(last) + timedelta(microseconds=1)) if last == after else last


def _store(
    tx: Transaction,
    scope: Scope,
    rows: list[EntryRow],
    admitted: list[Admitted],
    end: Head,
    *,
    is_new: bool,
) -> None:
    store_rows(tx, rows, admitted)
    if is_new:
        enter_tenant(tx, end.recorded_at)
        session = SessionRow(scope.user_id, scope.session_id, end.seq, end.hash, end.recorded_at, end.recorded_at)
        insert(tx, SESSIONS, [session])
    else:
        advance_head(tx, scope.user_id, scope.session_id, end)


def store_rows(tx: Transaction, rows: list[EntryRow], admitted: list[Admitted]) -> None:
    """Entries with their ids, and the blobs of those that have one."""
    insert(tx, IDS, [IdRow(row.id, "event") for row in rows])
    insert(tx, ENTRIES, number_entries(tx, rows))
    blobs = [
        BlobRow(bytes.fromhex(item.body["blob"]), row.id, len(item.blob), item.blob)
        for row, item in zip(rows, admitted, strict=True)
        if item.blob is not None
    ]
    if blobs:
        insert(tx, BLOBS, blobs)


def number_entries(tx: Transaction, rows: Sequence[EntryRow]) -> list[EntryRow]:
    """Number new entries, which come in the order in which they are written, behind those that their users have."""
    added = Counter(row.user_id for row in rows)
    users = advance(tx, USERS, [UserRow(user_id, added[user_id], 0, 0, 0) for user_id in sorted(added, key=lock_rank)])
    last = {user.user_id: user.tail - added[user.user_id] for user in users}
    numbered = []
    for row in rows:
        last[row.user_id] += 1
        numbered.append(row._replace(n=last[row.user_id]))
    return numbered


def enter_tenant(tx: Transaction, created_at: str) -> None:
    """The tenant's first session enters it. Put, since two first sessions may come at once."""
    if get(tx, TENANTS, ()) is None:
        put(tx, TENANTS, [TenantRow(created_at)])


def advance_head(tx: Transaction, user_id: str, session_id: str, end: Head) -> None:
    tx.do(
        Patch(
            "sessions",
            (("user_id", "=", user_id), ("session_id", "=", session_id)),
            {"head_seq": end.seq, "head_hash": end.hash, "head_recorded_at": end.recorded_at},
        )
    )


def project_entries(ctx: Context, tx: Transaction, entries: Sequence[LedgerEntry]) -> None:
    """Every derivation that listens to an entry's kind sees it, in order, in this transaction."""

    def lookup(item_id: str) -> Item | None:
        return latest(tx, item_id)

    for entry in entries:
        for project in ctx.listeners(entry):
            changes = project(entry, lookup)
            if changes:
                write_changes(tx, changes)


def _remember_keys(tx: Transaction, batch: Batch, fresh: list[int], written: list[LedgerEntry]) -> None:
    rows: list[IdempotencyRow] = []
    for index, entry in zip(fresh, written, strict=True):
        key = batch.keys[index]
        if key is not None:
            request_hash = salted_digest(batch.salts[index], key[1])
            rows.append(IdempotencyRow(batch.scope.user_id, key[0], entry.id, request_hash))
    if rows:
        put_keys(tx, rows)


def _which_id(ctx: Context, batch: Batch) -> DuplicateId:
    """A key was taken: name the caller's id that did it."""
    given = [(index, item.draft.id) for index, item in enumerate(batch.admitted) if item.draft.id is not None]
    names = tuple(dict.fromkeys(id_ for _, id_ in given))
    taken = ctx.engine.read(batch.scope.tenant_id, lambda reader: {row.id for row in by_ids(reader, IDS, names)})
    seen: set[str] = set()
    for index, id_ in given:
        if id_ in taken or id_ in seen or len(given) == 1:
            path = f"$[{index}].id" if len(batch.admitted) > 1 else "$.id"
            return DuplicateId(f"the id {id_!r} is taken", path=path, hint="leave id out to have one minted")
        seen.add(id_)
    return DuplicateId("an id of this call is taken", path="$.id", hint="leave ids out to have them minted")
