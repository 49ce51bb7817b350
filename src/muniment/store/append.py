"""Appending to the ledger: the only place where entries are made.

`append` writes drafts in a transaction of its own. `append_in` writes drafts that depend on what the caller's
transaction has read. `append_batches` writes prepared batches of any number of users, sessions and runs.

All three take the same steps in one transaction: lock the sessions, read the runs, count the entries of their users,
extend the chains, store entries and session heads, then run the projections that listen to these entries. An entry in
an existing session and run takes four statements on SQLite, and one more for the lock on PostgreSQL.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from muniment.core.canonical import canonical_bytes, digest, salted_digest
from muniment.core.instants import format_instant, in_zone, parse_instant
from muniment.core.limits import checkpoint, drop_tenant
from muniment.core.ports.engine import Condition, KeyTaken, Lock, LockAll, Patch, Reader, Transaction, Value
from muniment.core.ports.rows import advance, by_ids, find, first, get, insert, put, select
from muniment.core.ports.schema import (
    BLOBS,
    ENTRIES,
    IDEMPOTENCY_KEYS,
    ITEMS,
    SESSIONS,
    TENANTS,
    USERS,
    BlobRow,
    EntryRow,
    IdempotencyKeyRow,
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
from muniment.store.admission import Admitted, admit, place_blob
from muniment.store.chain import Head, Sealable, genesis, head_of, seal
from muniment.store.context import Context
from muniment.store.injection import reads_like_instructions
from muniment.store.item_terms import follow_terms
from muniment.store.items import Change, Item, add_items, item_of, latest, taken_ids, write_changes
from muniment.store.ledger import INSTRUCTION_LIKE, PINNED, RUN_STARTED, EntryDraft, LedgerEntry, entry_of_row
from muniment.store.tombstones import forgotten, load_entry

if TYPE_CHECKING:
    from muniment.core.policy import LedgerPolicy

__all__ = [
    "Admissible",
    "Batch",
    "KeyMatch",
    "append",
    "append_batches",
    "append_in",
    "check_pinned",
    "check_run",
    "enter_tenant",
    "key_named",
    "key_of",
    "lock_users",
    "locked",
    "match_keys",
    "number_entries",
    "number_of_key",
    "opening_draft",
    "prepare_batch",
    "put_keys",
    "session_head",
]

Key = tuple[bytes, bytes]
"""The hash of an idempotency key, and the bytes of the request it identifies."""
Place = tuple[str, str]
"""A user and a session."""


class Admissible(Sealable, Protocol):
    """An admitted draft, either as it was given or as a load keeps it on disk."""

    @property
    def body(self) -> dict[str, Any]: ...
    @property
    def event(self) -> Any:
        """The event named in the metadata, if any."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """New entries of one run with everything decided before their transaction, so that it can be retried."""

    scope: Scope
    opening: Admitted
    """Written before the entries if the run has none yet."""
    admitted: Sequence[Admissible]
    """The entries; a blob is already named by its salt."""
    ids: Sequence[str]
    salts: Sequence[bytes]
    keys: Sequence[Key | None]
    chosen: Sequence[str | None]
    """Ids chosen by the caller, for error messages; None for minted ones."""
    blobs: Mapping[str, BlobRow] = field(default_factory=dict)
    """Blobs by entry id."""
    after: str = ""
    """The time of the newest item that these entries build on; "" if none.

    A rebuild reads the ledger by `recorded_at`. An entry that builds on an item of another session, whose clock may be
    ahead, must therefore be recorded after it.
    """
    repairs: bool = False
    """Allow writing to a locked run."""
    expected_seq: int | None = None
    """The number of the session's last entry, if the drafts follow from the session as it was read."""
    is_new_run: bool = False
    """The run's id was just minted, so nothing can exist for it yet."""

    def without(self, skipped: Iterable[int]) -> Batch:
        """Return the batch without the entries at these places."""
        left = sorted(set(range(len(self.ids))).difference(skipped))
        ids = [self.ids[place] for place in left]
        return replace(
            self,
            admitted=[self.admitted[place] for place in left],
            ids=ids,
            salts=[self.salts[place] for place in left],
            keys=[self.keys[place] for place in left],
            chosen=[self.chosen[place] for place in left],
            blobs={id_: self.blobs[id_] for id_ in ids if id_ in self.blobs},
        )


def append(
    ctx: Context,
    scope: Scope,
    drafts: Sequence[EntryDraft],
    opening: Admitted,
    *,
    repairs: bool = False,
    expected_seq: int | None = None,
) -> list[LedgerEntry]:
    """Write the drafts as the next entries of the session, in order, in one transaction; returns their entries.

    With `expected_seq`, only while the session's last entry has that number (0 if it has none); else `StaleState`.
    Secrets in the drafts are redacted. A run whose compaction failed accepts only entries that repair it (`repairs`,
    CS-08).
    """
    batch = _prepare(ctx, scope, drafts, opening, ctx.policy.ledger, repairs=repairs, expected_seq=expected_seq)
    try:
        return ctx.write(scope.tenant_id, lambda tx: _append_one(ctx, tx, batch))
    except KeyTaken:
        said = "an id of this call is taken"
        raise DuplicateId(said, path="$.id", hint="leave ids out to have them minted") from None


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
    """Write drafts as the next entries of the session, in the caller's transaction; returns their entries.

    Use it for drafts that depend on what the transaction has read. `after` is the time of the newest item that they
    build on, "" if none (see `Batch.after`). The caller has already redacted the drafts: here their ids could be
    mistaken for card numbers.
    """
    return _append_one(ctx, tx, prepare_batch(ctx, scope, drafts, opening, after=after, repairs=repairs))


def prepare_batch(
    ctx: Context,
    scope: Scope,
    drafts: Sequence[EntryDraft],
    opening: Admitted,
    *,
    after: str = "",
    repairs: bool = False,
) -> Batch:
    """Admit and salt drafts that the caller has redacted: all the work that needs no transaction."""
    policy = ctx.policy.ledger.model_copy(update={"redact_secrets": False})
    return _prepare(ctx, scope, drafts, opening, policy, after=after, repairs=repairs)


def append_batches(
    ctx: Context, tx: Transaction, batches: Sequence[Batch], *, is_load: bool = False, is_wary: bool = False
) -> None:
    """Write prepared batches in the caller's transaction, each behind the chain of its session.

    Their idempotency keys are stored as new ones: the caller has removed entries that were already written. `is_load`:
    the caller indexes the appended entries, or not at all. `is_wary`: each session is compared with its last entries.
    """
    _write(ctx, tx, batches, is_load=is_load, is_wary=is_wary)


def opening_draft(said: dict[str, Any]) -> EntryDraft:
    """Return the `system` entry that opens a run and states its purpose."""
    return EntryDraft(kind="system", role="system", content="", metadata={"event": RUN_STARTED} | said)


def _prepare(
    ctx: Context, scope: Scope, drafts: Sequence[EntryDraft], opening: Admitted, policy: LedgerPolicy, **more: Any
) -> Batch:
    if len(drafts) > policy.batch_entries_max:
        raise TooLarge(
            f"{len(drafts)} entries in one call are over the limit of {policy.batch_entries_max}",
            hint="write them in several calls",
        )
    admitted = _admit_all(ctx, drafts, policy)
    salts = ctx.ids.salts(len(drafts))
    ids = [draft.id or ctx.ids.new("evt") for draft in drafts]
    chosen: list[str | None] = []
    blobs: dict[str, BlobRow] = {}
    keys: list[Key | None] = []
    for place, (draft, id_) in enumerate(zip(drafts, ids, strict=True)):
        chosen.append(None if draft.id is None else f"$[{place}].id" if len(drafts) > 1 else "$.id")
        data = admitted[place].blob
        if data is not None:
            admitted[place] = named = place_blob(admitted[place], salts[place])
            blobs[id_] = BlobRow(bytes.fromhex(named.body["blob"]), id_, len(data), data)
        keys.append(None if draft.idempotency_key is None else key_of(scope, draft))
    return Batch(scope, opening, admitted, ids, salts, keys, chosen, blobs, **more)


def _admit_all(ctx: Context, drafts: Sequence[EntryDraft], policy: LedgerPolicy) -> list[Admitted]:
    admitted: list[Admitted] = []
    now = None if ctx.timezone is None else ctx.clock()
    for place, draft in enumerate(drafts):
        checkpoint()
        try:
            said_at = draft.ts or now
            if said_at is not None and ctx.timezone is not None:
                said_at = in_zone(said_at, ctx.timezone)
            admitted.append(admit(draft, policy, said_at))
        except MunimentError as error:
            if len(drafts) > 1 and error.path:
                error.path = f"$[{place}]{error.path[1:]}"
            raise
    return admitted


def _append_one(ctx: Context, tx: Transaction, batch: Batch) -> list[LedgerEntry]:
    """Write one batch; entries already written under the same idempotency keys are returned and not written again."""
    if not any(batch.keys):
        (part,) = _write(ctx, tx, [batch])
        return part.written
    before = written_before(tx, batch)
    if len(before) == len(batch.ids):
        return [before[place] for place in range(len(batch.ids))]
    (part,) = _write(ctx, tx, [batch.without(before)])
    written = iter(part.written)
    return [before[place] if place in before else next(written) for place in range(len(batch.ids))]


# -- one transaction ----------------------------------------------------------------------------------


class _Part:
    """A batch while it is written: its entries, preceded by the run's opening if it has none yet."""

    __slots__ = ("admitted", "batch", "entries", "ids", "opens", "place", "rows", "salts")

    def __init__(self, ctx: Context, batch: Batch, *, opens: bool) -> None:
        self.batch = batch
        self.opens = opens
        self.place: Place = (batch.scope.user_id, batch.scope.session_id)
        self.admitted, self.ids, self.salts = batch.admitted, batch.ids, batch.salts
        if opens:
            self.admitted = [batch.opening, *batch.admitted]
            self.ids = [ctx.ids.new("evt"), *batch.ids]
            self.salts = [*ctx.ids.salts(1), *batch.salts]
        self.rows: list[EntryRow] = []
        self.entries: dict[int, LedgerEntry] = {}

    def entry(self, place: int) -> LedgerEntry:
        """Return the record of an entry that was just sealed."""
        made = self.entries.get(place)
        if made is None:
            scope, body = self.batch.scope, self.admitted[place].body
            made = entry_of_row(scope.tenant_id, self.rows[place], scope=scope, body=body)
            self.entries[place] = made
        return made

    @property
    def written(self) -> list[LedgerEntry]:
        """Return the records of the batch's own entries."""
        return [self.entry(place) for place in range(self.opens, len(self.rows))]


def _write(
    ctx: Context, tx: Transaction, batches: Sequence[Batch], *, is_load: bool = False, is_wary: bool = False
) -> list[_Part]:
    """Write the new entries of batches."""
    _lock_sessions(tx, batches)
    parts = _open_runs(ctx, tx, batches)
    filled = [part for part in parts if part.ids]
    if not filled:
        return parts  # a run that is only to be started was
    if ctx.policy.ledger.flag_instructions and not is_load:
        for part in filled:
            _flag_repeated_orders(tx, part)
    users = _count_entries(tx, filled)
    if not is_load:
        ctx.note_tails(batches[0].scope.tenant_id, *users)
    last = {user.user_id: user.tail for user in users}
    for part in filled:
        last[part.place[0]] -= len(part.ids)
    _extend_chains(ctx, tx, filled, last, is_wary=is_wary)
    _check_ids(tx, filled)
    _store_entries(tx, filled)
    _project(ctx, tx, filled)
    for part in filled:
        ctx.derived.sessions.extend(tx, *part.place, part.rows[-1].seq, len(part.rows))
    return parts


_READ_BY_ASSISTANT = 64
"""Number of entries before an assistant's message that are searched for a flagged one."""


class _Flags(NamedTuple):
    flags: str


def _flag_repeated_orders(tx: Reader, part: _Part) -> None:
    """Flag an assistant's messages that read like instructions, where the assistant was shown something flagged.

    Its own words are not checked otherwise. Text it passes on from a page keeps that page's flag (LG-08).
    """
    admitted = list(part.admitted)
    is_suspect = None
    for at, each in enumerate(admitted):
        if not isinstance(each, Admitted) or each.role != "assistant":
            continue
        if not any(INSTRUCTION_LIKE in other.flags for other in admitted[:at]):
            is_suspect = _holds_flagged(tx, part.place) if is_suspect is None else is_suspect
            if not is_suspect:
                continue
        if INSTRUCTION_LIKE not in each.flags and reads_like_instructions(each.text):
            admitted[at] = each._replace(flags=tuple(sorted((*each.flags, INSTRUCTION_LIKE))))
    part.admitted = admitted


def _holds_flagged(tx: Reader, place: Place) -> bool:
    where: tuple[Condition, ...] = (("user_id", "=", place[0]), ("session_id", "=", place[1]))
    newest = select(tx, ENTRIES, where, into=_Flags, order=("seq",), descending=True, limit=_READ_BY_ASSISTANT)
    return any(INSTRUCTION_LIKE in row.flags.split(",") for row in newest)


def _lock_sessions(tx: Transaction, batches: Sequence[Batch]) -> None:
    """Lock sessions in the order of their users' names, with corpora and banks last."""
    if len(batches) == 1:
        scope = batches[0].scope
        tx.do(Lock(("session", scope.user_id, scope.session_id)))
        return
    places = {(batch.scope.user_id, batch.scope.session_id) for batch in batches}
    ordered = sorted(places, key=lambda place: (lock_rank(place[0]), place[1]))
    tx.do(LockAll([("session", *place) for place in ordered]))


def _open_runs(ctx: Context, tx: Transaction, batches: Sequence[Batch]) -> list[_Part]:
    """Refuse runs that have ended, are locked or belong to another scope; open those that have not begun."""
    runs = _read_runs(tx, batches)
    opened: dict[str, Scope] = {}
    parts: list[_Part] = []
    for batch in batches:
        scope = batch.scope
        run, begun = runs.get(scope.run_id), opened.get(scope.run_id)
        if run is not None:
            _check_open(tx, run, batch)
        elif begun is None:
            opened[scope.run_id] = scope
        elif begun != scope:
            raise _run_taken(scope)
        parts.append(_Part(ctx, batch, opens=run is None and begun is None))
    return parts


class _Run(NamedTuple):
    """The part of a run that decides whether it accepts entries."""

    id: str
    kind: str
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    status: str


_BY_VERSION = ("id", "version")


def _read_runs(reader: Reader, batches: Sequence[Batch]) -> dict[str, _Run]:
    ids = list(dict.fromkeys(batch.scope.run_id for batch in batches if not batch.is_new_run))
    if len(ids) == 1:
        run = first(reader, ITEMS, (("id", "=", ids[0]),), into=_Run, order=_BY_VERSION, descending=True)
        return {} if run is None else {ids[0]: run}
    return {run.id: run for run in by_ids(reader, ITEMS, ids, into=_Run, order=_BY_VERSION)}


def _check_open(reader: Reader, run: _Run, batch: Batch) -> None:
    _check_scope(run, batch.scope)
    if run.status == "finished":
        said = f"the run {run.id} has ended"
        raise RunFinished(said, path="$.run_id", hint="start a new run in the same session")
    is_locked = run.status == "locked" and not batch.repairs
    if is_locked or _pinned(batch.opening):
        item = latest(reader, run.id)
        assert item is not None
        if is_locked:
            raise locked(item)
        check_pinned(item, batch.opening)


def _count_entries(tx: Transaction, parts: Sequence[_Part]) -> list[UserRow]:
    """Count the new entries and keys in their users' rows, which stay locked from here on; returns the rows."""
    entries: dict[str, int] = {}
    keys: dict[str, int] = {}
    for part in parts:
        user_id, batch = part.place[0], part.batch
        entries[user_id] = entries.get(user_id, 0) + len(part.ids)
        named = [number_of_key(key[0], id_) for key, id_ in zip(batch.keys, batch.ids, strict=True) if key is not None]
        keys[user_id] = keys.get(user_id, 0) + sum(named)
    users = sorted(entries, key=lock_rank) if len(entries) > 1 else entries
    return advance(tx, USERS, [UserRow(user, entries[user], 0, 0, 0, keys[user]) for user in users])


def lock_users(tx: Transaction, *user_ids: str) -> None:
    """Lock the rows of users until the transaction ends, for a caller that appends to several of them one by one."""
    held = [UserRow(user_id, 0, 0, 0, 0) for user_id in sorted(set(user_ids), key=lock_rank)]
    advance(tx, USERS, held)


def number_entries(tx: Transaction, rows: Sequence[EntryRow]) -> tuple[list[EntryRow], list[UserRow]]:
    """Number imported entries, in the order in which they are written, after those that their users have.

    Returns the entries and the current rows of their users.
    """
    added: dict[str, int] = {}
    for row in rows:
        added[row.user_id] = added.get(row.user_id, 0) + 1
    users = advance(tx, USERS, [UserRow(user_id, added[user_id], 0, 0, 0) for user_id in sorted(added, key=lock_rank)])
    last = {user.user_id: user.tail - added[user.user_id] for user in users}
    numbered = []
    for row in rows:
        last[row.user_id] += 1
        numbered.append(row._replace(n=last[row.user_id]))
    return numbered, users


# -- chains -------------------------------------------------------------------------------------------


ENDS_MAX = 4096


class _KnownEnds:
    """Ends of sessions that this process wrote: an unchanged one is not read again. Thread-safe."""

    def __init__(self) -> None:
        self._ends: OrderedDict[tuple[str, Place], Head] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, tenant_id: str, place: Place, end: Head) -> None:
        with self._lock:
            self._ends[tenant_id, place] = end
            self._ends.move_to_end((tenant_id, place))
            while len(self._ends) > ENDS_MAX:
                self._ends.popitem(last=False)

    def get(self, tenant_id: str, place: Place) -> Head | None:
        with self._lock:
            return self._ends.get((tenant_id, place))

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._ends, tenant_id)


def _extend_chains(
    ctx: Context, tx: Transaction, parts: Sequence[_Part], last: dict[str, int], *, is_wary: bool
) -> None:
    """Seal the entries behind their sessions, and move the session heads.

    A single entry is sealed behind the end this process knows. If the session has moved on, nothing is changed and the
    entry is sealed again behind the new end.
    """
    known = ctx.cache(_KnownEnds)
    tenant_id = parts[0].batch.scope.tenant_id
    if len(parts) == 1 and parts[0].batch.expected_seq is None:
        place = parts[0].place
        end = known.get(tenant_id, place)
        if end is not None:
            heads = {place: end}
            if _seal(ctx, parts, heads, dict(last)) and _move_head(tx, place, end, heads[place]):
                known.keep(tenant_id, place, heads[place])
                return
    sessions = _read_sessions(ctx, tx, tenant_id, {part.place for part in parts}, is_wary=is_wary)
    heads = {place: genesis(tenant_id, *place) if row is None else head_of(row) for place, row in sessions.items()}
    for part in parts:
        _check_seq(part.batch, heads[part.place].seq)
    _seal(ctx, parts, heads, last, is_final=True)
    _store_sessions(tx, parts, sessions, heads)
    for place, end in heads.items():
        known.keep(tenant_id, place, end)


def _seal(
    ctx: Context, parts: Sequence[_Part], heads: dict[Place, Head], last: dict[str, int], *, is_final: bool = False
) -> bool:
    """Make the rows of all parts, and move `heads` and `last` behind them. False if the clock does not allow it."""
    for part in parts:
        head, batch, user_id = heads[part.place], part.batch, part.place[0]
        try:
            recorded_at = _recorded_now(ctx, head.recorded_at, batch.after)
        except ClockWentBack:
            if is_final:
                raise
            return False
        part.rows, heads[part.place] = seal(
            batch.scope, head, part.admitted, part.ids, part.salts, recorded_at, last[user_id]
        )
        last[user_id] += len(part.rows)
    return True


def _check_seq(batch: Batch, seq: int) -> None:
    if batch.expected_seq is not None and batch.expected_seq != seq:
        raise StaleState(
            f"the session {batch.scope.session_id!r:.80} was written meanwhile",
            hint="read the session again",
            details={"current_version": seq},
        )


def _recorded_now(ctx: Context, head: str, after: str) -> str:
    """Return the current time, held if the clock stepped back a little, refused if it stepped back far."""
    now = ctx.clock()
    text = format_instant(now)
    last = max(head, after)
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


def _read_sessions(
    ctx: Context, reader: Reader, tenant_id: str, places: Iterable[Place], *, is_wary: bool
) -> dict[Place, SessionRow | None]:
    """Read the rows of sessions, None for a new one; raises `StoreDamaged` if one does not end where its row claims."""
    ordered = sorted(places)
    if len(ordered) == 1:
        row = get(reader, SESSIONS, ordered[0])
        _check_end(ctx, reader, tenant_id, ordered[0], row)
        return {ordered[0]: row}
    found = {(row.user_id, row.session_id): row for row in find(reader, SESSIONS, _PLACE, ordered, into=SessionRow)}
    for place in ordered if is_wary else _odd_sessions(reader, found):
        _check_end(ctx, reader, tenant_id, place, found.get(place))
    return {place: found.get(place) for place in ordered}


_PLACE = ("user_id", "session_id")


class _End(NamedTuple):
    user_id: str
    session_id: str
    seq: int
    hash: bytes
    recorded_at: str


def _odd_sessions(reader: Reader, sessions: Mapping[Place, SessionRow]) -> list[Place]:
    """Return the sessions whose last entry is missing, differs from the head, or is followed by another."""
    ends = {(*place, row.head_seq): row for place, row in sessions.items() if row.head_seq}
    behind = [(*place, row.head_seq + 1) for place, row in sessions.items()]
    odd: dict[Place, None] = {}
    for last in find(reader, ENTRIES, (*_PLACE, "seq"), [*ends, *behind], into=_End):
        row = ends.pop(last[:3], None)
        if row is None or (last.hash, last.recorded_at) != (row.head_hash, row.head_recorded_at):
            odd[last[:2]] = None
    return [*odd, *(key[:2] for key in ends)]


def session_head(ctx: Context, reader: Reader, scope: Scope) -> Head | None:
    """Return the end of the session's chain, which the next entry follows; None for a new session."""
    place = (scope.user_id, scope.session_id)
    row = get(reader, SESSIONS, place)
    _check_end(ctx, reader, scope.tenant_id, place, row)
    return None if row is None else head_of(row)


def _check_end(ctx: Context, reader: Reader, tenant_id: str, place: Place, session: SessionRow | None) -> None:
    """Check that the session's last entry is its head, and that a session without a row has no entries. Raises
    `StoreDamaged`.
    """
    head = None if session is None else head_of(session)
    if head is not None and ctx.cache(_KnownEnds).get(tenant_id, place) == head:
        return
    seq = 0 if head is None else head.seq
    where: tuple[Condition, ...] = (("user_id", "=", place[0]), ("session_id", "=", place[1]), ("seq", ">=", seq))
    last = select(reader, ENTRIES, where, into=_End, order=(*_PLACE, "seq"), limit=2)
    if [Head(*row[2:]) for row in last] != ([] if head is None or head.seq == 0 else [head]):
        raise StoreDamaged(
            f"the session {place[1]!r:.80} does not end where its head says: nothing is written behind it",
            details={"session_id": place[1], "seq": seq},
        )


def _move_head(tx: Transaction, place: Place, head: Head, end: Head) -> bool:
    """Move a session's head to its new end; False if it is not at the old one."""
    where: tuple[Condition, ...] = (
        ("user_id", "=", place[0]),
        ("session_id", "=", place[1]),
        ("head_hash", "=", head.hash),
    )
    moved: dict[str, Value] = {"head_seq": end.seq, "head_hash": end.hash, "head_recorded_at": end.recorded_at}
    return tx.do(Patch("sessions", where, moved)) == 1


def _store_sessions(
    tx: Transaction,
    parts: Sequence[_Part],
    sessions: Mapping[Place, SessionRow | None],
    heads: Mapping[Place, Head],
) -> None:
    begun: dict[Place, str] = {}
    for part in parts:
        begun.setdefault(part.place, part.rows[0].recorded_at)
    new: list[SessionRow] = []
    extended: list[SessionRow] = []
    for place, row in sessions.items():
        end = heads[place]
        created_at = begun[place] if row is None else row.created_at
        moved = SessionRow(*place, end.seq, end.hash, end.recorded_at, created_at)
        (new if row is None else extended).append(moved)
    if new:
        enter_tenant(tx, min(row.created_at for row in new))
        insert(tx, SESSIONS, new)
    if extended:
        put(tx, SESSIONS, extended)


def enter_tenant(tx: Transaction, created_at: str) -> None:
    """Register the tenant with its first session. Uses put, since two first sessions may arrive at once."""
    if get(tx, TENANTS, ()) is None:
        put(tx, TENANTS, [TenantRow(created_at)])


# -- rows ---------------------------------------------------------------------------------------------


def _check_ids(tx: Transaction, parts: Sequence[_Part]) -> None:
    """Check that caller-chosen ids are free: no event or item of the tenant has or had them (X-09).

    A minted id is never taken. Code that makes an item locks its id too.
    """
    chosen: dict[str, str] = {}
    for part in parts:
        for id_, where in zip(part.batch.ids, part.batch.chosen, strict=True):
            if where is None:
                continue
            if id_ in chosen:
                raise _taken(id_, where)
            chosen[id_] = where
    if not chosen:
        return
    tx.do(LockAll([("id", id_) for id_ in sorted(chosen)]))
    taken = taken_ids(tx, list(chosen)) | {part.batch.scope.run_id for part in parts}
    for id_, where in chosen.items():
        if id_ in taken:
            raise _taken(id_, where)


def _taken(id_: str, where: str) -> DuplicateId:
    said, hint = f"the id {id_!r} is taken", "leave id out to have one minted"
    if where.startswith("$"):
        return DuplicateId(said, path=where, hint=hint)
    return DuplicateId(f"{where}: {said}", path="$.id", hint=hint)


def _store_entries(tx: Transaction, parts: Sequence[_Part]) -> None:
    """Insert the entries, their blobs and their idempotency keys."""
    insert(tx, ENTRIES, parts[0].rows if len(parts) == 1 else [row for part in parts for row in part.rows])
    blobs = [blob for part in parts for blob in part.batch.blobs.values()]
    if blobs:
        insert(tx, BLOBS, blobs)
    keys: list[IdempotencyKeyRow] = []
    for part in parts:
        batch = part.batch
        for key, id_, salt in zip(batch.keys, batch.ids, batch.salts, strict=True):
            if key is not None:
                keys.append(IdempotencyKeyRow(batch.scope.user_id, key[0], id_, salted_digest(salt, key[1])))
    if keys:
        insert(tx, IDEMPOTENCY_KEYS, keys)


def _project(ctx: Context, tx: Transaction, parts: Sequence[_Part]) -> None:
    """Run every projection that listens to an entry's kind, in the order of the entries.

    Items of runs that begin here are known to be new, and are added together.
    """
    absent = {part.batch.scope.run_id for part in parts if part.opens}
    held: dict[str, Change] = {}

    def lookup(item_id: str) -> Item | None:
        if item_id in held:
            return item_of(held[item_id], 1)
        return None if item_id in absent else latest(tx, item_id)

    for part in parts:
        for place, item in enumerate(part.admitted):
            if not ctx.hears(item.kind, item.event):
                continue
            entry = part.entry(place)
            for project in ctx.listeners(entry):
                for change in project(entry, lookup):
                    if change.id in absent and change.id not in held:
                        held[change.id] = change
                        continue
                    if change.id in held:
                        add_items(tx, list(held.values()))
                        absent -= held.keys()
                        held.clear()
                    written = write_changes(tx, [change])
                    if not change.is_mention:
                        follow_terms(ctx, tx, written)
    if held:
        add_items(tx, list(held.values()))


# -- runs ---------------------------------------------------------------------------------------------


def check_pinned(run: Item, opening: Admitted) -> None:
    """Check that a run's purpose is unchanged: it is set when the run starts (CS-05)."""
    named = _pinned(opening)
    if not named or run.body is None:
        return
    held, said = run.plain(), opening.body["metadata"]
    for name in named:
        is_forgotten = name in held and held[name] is None
        if held.get(name) != said[name] and not is_forgotten:
            raise Conflict(
                f"the run {run.id} was started with another {name}",
                path=f"$.{name}",
                hint=f"leave {name} out to take the run up again; start a new run for another {name}",
                details={"run_id": run.id, name: held.get(name)},
            )


def _pinned(opening: Admitted) -> list[str]:
    said = opening.body.get("metadata", {})
    return [name for name in PINNED if name in said]


def locked(run: Item) -> RunLocked:
    """The error for a run that failed its compaction (CS-08)."""
    diagnosis = {} if run.body is None else run.plain().get("diagnosis") or {}
    failed = [check["message"] for check in diagnosis.get("checks", ()) if check.get("status") == "FAIL"]
    return RunLocked(
        f"the run {run.id} is locked: its snapshot does not hold: {'; '.join(failed) or 'see the diagnosis'}",
        path="$.run_id",
        hint="mem.resume(run_id, repair=True): correct by new entries, then unlock(reason)",
        details={"run_id": run.id, "validation": diagnosis},
    )


def check_run(run: Item, scope: Scope) -> None:
    """Check that a run id belongs to one run of one scope."""
    _check_scope(run, scope)


def _check_scope(run: Item | _Run, scope: Scope) -> None:
    own = ("run", scope.user_id, scope.agent_id, scope.session_id)
    if (run.kind, run.user_id, run.agent_id, run.session_id) != own:
        raise _run_taken(scope)


def _run_taken(scope: Scope) -> DuplicateId:
    return DuplicateId(f"the id {scope.run_id!r} is taken", path="$.run_id", hint="leave run_id out to have one minted")


# -- idempotency keys (LG-06) -------------------------------------------------------------------------


def key_of(scope: Scope, draft: EntryDraft) -> Key | None:
    """Return the hash of a draft's idempotency key and the request it identifies; None if it has no key."""
    if draft.idempotency_key is None:
        return None
    return key_named(draft, scope.tenant_id, scope.user_id, scope.agent_id, scope.session_id)


def key_named(draft: EntryDraft, tenant_id: str, user_id: str, agent_id: str, session_id: str) -> Key:
    """Return the hash of the draft's key and the request it identifies, under these names."""
    request = draft.model_dump(mode="json", exclude={"idempotency_key", "cited"}, exclude_defaults=True)
    request["scope"] = [session_id, agent_id]
    # Never the bare digest of the key: a caller may well use the content, or its hash, as the key (LG-07).
    named = canonical_bytes(["muniment.idempotency.v1", tenant_id, user_id, draft.idempotency_key])
    return digest(named), canonical_bytes(request)


def number_of_key(key_hash: bytes, entry_id: str) -> int:
    """Return a 32-bit number for an idempotency key and its entry; a user's row holds the sum of these."""
    return int.from_bytes(digest(key_hash + entry_id.encode())[:4], "big")


def put_keys(tx: Transaction, rows: Sequence[IdempotencyKeyRow]) -> None:
    """Store new keys of existing entries, and add them to the sums in the rows of their users."""
    if rows:
        insert(tx, IDEMPOTENCY_KEYS, rows)
        added: dict[str, int] = {}
        for row in rows:
            added[row.user_id] = added.get(row.user_id, 0) + number_of_key(row.key_hash, row.entry_id)
        advance(tx, USERS, [UserRow(user_id, 0, 0, 0, 0, added[user_id]) for user_id in sorted(added, key=lock_rank)])


def written_before(tx: Transaction, batch: Batch) -> dict[int, LedgerEntry]:
    """Return, by place, the entries written earlier under the same idempotency keys, which stay locked from here on."""
    user_id, tenant_id = batch.scope.user_id, batch.scope.tenant_id
    tx.do(LockAll([("idempotency", user_id, named) for named in sorted({key[0].hex() for key in batch.keys if key})]))
    found: dict[int, LedgerEntry] = {}
    seen: set[bytes] = set()
    for place, key in enumerate(batch.keys):
        if key is None:
            continue
        if key[0] in seen:
            path = f"$[{place}].idempotency_key"
            raise InvalidInput("an idempotency key stands twice in one call", path=path)
        seen.add(key[0])
        known = get(tx, IDEMPOTENCY_KEYS, (user_id, key[0]))
        if known is None:
            continue
        entry_row = get(tx, ENTRIES, (known.entry_id,))
        if entry_row is None:
            raise IntegrityFailure(
                f"the event {known.entry_id!r} of an idempotency key is gone", hint="run `muniment verify`"
            )
        entry = load_entry(tx, tenant_id, entry_row)
        if entry.is_forgotten:
            raise forgotten(entry, "what this idempotency key wrote was forgotten", path="$.idempotency_key")
        if known.request_hash != salted_digest(entry_row.salt or b"", key[1]):
            raise IdempotencyMismatch(
                "this idempotency key was used for another request",
                path="$.idempotency_key",
                hint="use a new key for a new request",
                details={"id": known.entry_id},
            )
        found[place] = entry
    return found


class KeyMatch(NamedTuple):
    """The entry found under a draft's key: none, an equal one, a different one, or one forgotten since."""

    entry_id: str | None
    is_same: bool


class _Salted(NamedTuple):
    id: str
    salt: bytes | None


def match_keys(reader: Reader, scope: Scope, drafts: Sequence[EntryDraft]) -> list[KeyMatch]:
    """Match each draft against earlier uses of its key, in a fixed number of reads."""
    keys = [key_of(scope, draft) for draft in drafts]
    hashes = [(scope.user_id, key[0]) for key in keys if key is not None]
    by = ("user_id", "key_hash")
    held = {row.key_hash: row for row in find(reader, IDEMPOTENCY_KEYS, by, hashes, into=IdempotencyKeyRow)}
    named = [row.entry_id for row in held.values()]
    salts = {row.id: row.salt for row in by_ids(reader, ENTRIES, named, into=_Salted)}
    return [_match(key, None if key is None else held.get(key[0]), salts) for key in keys]


def _match(key: Key | None, row: IdempotencyKeyRow | None, salts: dict[str, bytes | None]) -> KeyMatch:
    if key is None or row is None:
        return KeyMatch(None, is_same=False)
    salt = salts.get(row.entry_id)
    if row.request_hash is None or salt is None:  # forgotten: no longer verifiable
        return KeyMatch(row.entry_id, is_same=True)
    return KeyMatch(row.entry_id, is_same=row.request_hash == salted_digest(salt, key[1]))
