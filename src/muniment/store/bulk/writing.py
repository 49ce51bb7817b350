"""A portion of a load, written in one transaction: what it asks of the store it asks for all events at once.

The rows are those that `store.writing` makes of the same events one by one. The index and the extracts of sessions are
left for later: the stretches that wait for them stand in `backlog`, written with their entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from muniment.core.canonical import salted_digest
from muniment.core.ports.engine import KeyTaken, Lock, Transaction
from muniment.core.ports.rows import by_ids, find, insert
from muniment.core.ports.schema import (
    BACKLOG,
    ENTRIES,
    IDEMPOTENCY,
    IDS,
    SESSIONS,
    BacklogRow,
    EntryRow,
    IdempotencyRow,
    SessionRow,
)
from muniment.core.scope import Scope
from muniment.errors import DuplicateId, IdempotencyMismatch
from muniment.store.context import Context
from muniment.store.idempotency import put_keys
from muniment.store.ledger.admission import Admitted
from muniment.store.ledger.chain import Head, genesis, seal
from muniment.store.ledger.records import EntryDraft, LedgerEntry
from muniment.store.ledger.rows import entry_of_row
from muniment.store.sealing import add_seal
from muniment.store.turns import is_turn
from muniment.store.writing import (
    Batch,
    advance_head,
    enter_tenant,
    must_open,
    prepare,
    project_entries,
    recorded_now,
    resending,
    session_head,
    store_rows,
    write_batches,
)

__all__ = ["Part", "Written", "write_portion"]

Place = tuple[str, str]
"""A user and a session."""


class Part(NamedTuple):
    """Consecutive events of one session that are of one run, and where each stood in what was given."""

    scope: Scope
    drafts: list[EntryDraft]
    where: list[str]
    is_new: bool
    """The run was just made for it, and nothing is there of it."""


class Written(NamedTuple):
    """What became of a portion."""

    written: int
    known: int
    forgotten: int


def write_portion(ctx: Context, tenant_id: str, parts: Sequence[Part], opening: Admitted) -> Written:
    """Write the events that were not written before, all of them or none; those of a session stand together."""

    def attempt() -> Written:
        batches = [prepare(ctx, part.scope, part.drafts, opening, is_indexed=False) for part in parts]
        return write_batches(ctx, tenant_id, batches, lambda tx: _Portion(ctx, tx, parts, batches).write())

    try:
        return resending(attempt)
    except KeyTaken:  # somebody wrote one of these keys or ids at the same time: by now it can be seen
        return resending(attempt)


def _taken(id_: str, where: str) -> DuplicateId:
    return DuplicateId(f"{where}: the id {id_!r} is taken", path="$.id", hint="leave id out to have one minted")


class _Held(NamedTuple):
    user_id: str
    key_hash: bytes
    entry_id: str
    request_hash: bytes | None


class _Salted(NamedTuple):
    id: str
    salt: bytes | None
    receipt_id: str | None


@dataclass(slots=True)
class _Session:
    """A session within the transaction: where its chain ends by now, and what was put behind it."""

    scope: Scope
    head: Head | None
    is_new: bool
    first: int
    begun: str = ""
    """When the first of what was put behind it was recorded."""
    said: list[tuple[LedgerEntry, str]] = field(default_factory=list)


class _Portion:
    """One try at writing a portion: the engine may ask for another after a lost race."""

    def __init__(self, ctx: Context, tx: Transaction, parts: Sequence[Part], batches: Sequence[Batch]) -> None:
        self._ctx, self._tx, self._parts, self._batches = ctx, tx, parts, batches
        self._rows: list[EntryRow] = []
        self._admitted: list[Admitted] = []
        self._keys: list[IdempotencyRow] = []
        self._sessions: dict[Place, _Session] = {}
        self._open = {part.scope.run_id: False for part in parts}
        """By run, whether it was seen to have begun."""
        self._new = {part.scope.run_id for part in parts if part.is_new}
        self._known_sessions: set[Place] = set()
        self._seen: dict[tuple[str, bytes], bytes] = {}
        self._forgotten = self._known = self._written = 0

    def write(self) -> Written:
        skipped = self._skipped()
        self._check_ids(skipped)
        places = sorted({(batch.scope.user_id, batch.scope.session_id) for batch in self._batches})
        for place in places:
            self._tx.do(Lock(("session", *place)))
        held = find(self._tx, SESSIONS, ("user_id", "session_id"), places, into=SessionRow)
        self._known_sessions = {(row.user_id, row.session_id) for row in held}
        sealed: list[tuple[Batch, list[EntryRow], list[Admitted]]] = []
        for number, batch in enumerate(self._batches):
            fresh = [at for at in range(len(batch.admitted)) if (number, at) not in skipped]
            if fresh:
                sealed.append(self._seal(batch, fresh))
        if not self._rows:
            return Written(0, self._known, self._forgotten)
        sent = {name: row for batch in self._batches for name, row in batch.held.items()}
        store_rows(self._tx, self._rows, self._admitted, sent)
        self._store_sessions()
        if self._keys:
            put_keys(self._tx, self._keys, are_new=True)
        for batch, rows, admitted in sealed:
            self._derive(batch, rows, admitted)
        self._leave_for_later()
        return Written(self._written, self._known, self._forgotten)

    def _skipped(self) -> set[tuple[int, int]]:
        """Which events were written before, by their keys; raises where a key was used for another request."""
        wanted = {
            (batch.scope.user_id, key[0]): (number, at)
            for number, batch in enumerate(self._batches)
            for at, key in enumerate(batch.keys)
            if key is not None
        }
        by = ("user_id", "key_hash")
        held = {(row.user_id, row.key_hash): row for row in find(self._tx, IDEMPOTENCY, by, list(wanted), into=_Held)}
        entries = {
            row.id: row for row in by_ids(self._tx, ENTRIES, [row.entry_id for row in held.values()], into=_Salted)
        }
        skipped: set[tuple[int, int]] = set()
        for number, batch in enumerate(self._batches):
            for at, key in enumerate(batch.keys):
                if key is None:
                    continue
                named = (batch.scope.user_id, key[0])
                if named in self._seen:
                    self._hold_against(self._seen[named] == key[1], number, at)
                    self._known += 1
                    skipped.add((number, at))
                elif named in held:
                    self._count_known(held[named], entries.get(held[named].entry_id), key[1], number, at)
                    skipped.add((number, at))
                self._seen[named] = key[1]
        return skipped

    def _check_ids(self, skipped: set[tuple[int, int]]) -> None:
        """Ids that the caller chose are free."""
        chosen: dict[str, str] = {}
        for number, part in enumerate(self._parts):
            for at, (draft, where) in enumerate(zip(part.drafts, part.where, strict=True)):
                if draft.id is not None and (number, at) not in skipped:
                    if draft.id in chosen:
                        raise _taken(draft.id, where)
                    chosen[draft.id] = where
        taken = {row.id for row in by_ids(self._tx, IDS, list(chosen))}
        for id_, where in chosen.items():
            if id_ in taken:
                raise _taken(id_, where)

    def _count_known(self, held: _Held, entry: _Salted | None, request: bytes, number: int, at: int) -> None:
        if entry is None or entry.salt is None or held.request_hash is None:
            self._forgotten += 1
            return
        self._hold_against(held.request_hash == salted_digest(entry.salt, request), number, at)
        self._known += 1

    def _hold_against(self, is_same: bool, number: int, at: int) -> None:
        if not is_same:
            raise IdempotencyMismatch(
                f"{self._parts[number].where[at]}: this idempotency key was used for another request",
                path="$.idempotency_key",
                hint="use a new key for a new request",
            )

    def _session(self, scope: Scope) -> _Session:
        place = (scope.user_id, scope.session_id)
        held = self._sessions.get(place)
        if held is None:
            # Of a new session nothing is looked for: an entry without its session would take the first number.
            head = session_head(self._ctx, self._tx, scope) if place in self._known_sessions else None
            first = 1 if head is None else head.seq + 1
            held = self._sessions[place] = _Session(scope, head, is_new=head is None, first=first)
        return held

    def _seal(self, batch: Batch, fresh: list[int]) -> tuple[Batch, list[EntryRow], list[Admitted]]:
        """Put the fresh events of a part behind the chain of its session."""
        scope, session = batch.scope, self._session(batch.scope)
        admitted = [batch.admitted[at] for at in fresh]
        ids, salts = [batch.ids[at] for at in fresh], [batch.salts[at] for at in fresh]
        if not self._open[scope.run_id]:
            self._open[scope.run_id] = True
            if scope.run_id in self._new or must_open(self._tx, scope, batch.opening, repairs=False):
                ids, salts = [self._ctx.ids.new("evt"), *ids], [*self._ctx.ids.salts(1), *salts]
                admitted = [batch.opening, *admitted]
        recorded_at = recorded_now(self._ctx, session.head, "")
        start = session.head or genesis(scope.tenant_id, scope.user_id, scope.session_id)
        rows, session.head = seal(scope, start, admitted, ids, salts, recorded_at)
        session.begun = session.begun or recorded_at
        self._rows += rows
        self._admitted += admitted
        for at, row in zip(fresh, rows[len(rows) - len(fresh) :], strict=True):
            key = batch.keys[at]
            if key is not None:
                request_hash = salted_digest(batch.salts[at], key[1])
                self._keys.append(IdempotencyRow(scope.user_id, key[0], row.id, request_hash))
        self._written += len(fresh)
        return batch, rows, admitted

    def _store_sessions(self) -> None:
        new: list[SessionRow] = []
        for (user_id, session_id), session in self._sessions.items():
            end = session.head
            assert end is not None
            if session.is_new:
                new.append(SessionRow(user_id, session_id, end.seq, end.hash, end.recorded_at, session.begun))
            else:
                advance_head(self._tx, user_id, session_id, end)
        if new:
            enter_tenant(self._tx, min(row.created_at for row in new))
            insert(self._tx, SESSIONS, new)

    def _derive(self, batch: Batch, rows: list[EntryRow], admitted: list[Admitted]) -> None:
        """What stands in items comes with the entries, as it does one by one."""
        scope = batch.scope
        entries = [
            entry_of_row(scope.tenant_id, row, scope=scope, body=item.body)
            for row, item in zip(rows, admitted, strict=True)
        ]
        project_entries(self._ctx, self._tx, entries)
        said = self._sessions[scope.user_id, scope.session_id].said
        for entry, item in zip(entries, admitted, strict=True):
            if item.secrets:
                add_seal(self._ctx, self._tx, scope, batch.seal_key, entry, item.secrets)
            if is_turn(entry):
                said.append((entry, item.text))

    def _leave_for_later(self) -> None:
        backlog: list[BacklogRow] = []
        for (user_id, session_id), session in self._sessions.items():
            assert session.head is not None
            last = session.head.seq
            self._ctx.derived.extracts.postpone(
                self._tx, user_id, session_id, last, last - session.first + 1, session.said
            )
            backlog.append(BacklogRow(user_id, session_id, session.first, last))
        if self._ctx.policy.ledger.index_turns:
            insert(self._tx, BACKLOG, backlog)
