"""A portion of a load, written in one transaction: what it asks of the store it asks for all events at once.

The rows are those that `store.writing` makes of the same events one by one. The index follows as it does there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from muniment.core.canonical import salted_digest
from muniment.core.ports.engine import KeyTaken, LockAll, Transaction
from muniment.core.ports.rows import by_ids, find, insert, put
from muniment.core.ports.schema import (
    BLOBS,
    ENTRIES,
    IDEMPOTENCY,
    IDS,
    ITEMS,
    SESSIONS,
    BlobRow,
    EntryRow,
    IdempotencyRow,
    IdRow,
    SessionRow,
)
from muniment.core.scope import Scope
from muniment.errors import DuplicateId, IdempotencyMismatch, StorageBusy
from muniment.store.admission import Admitted
from muniment.store.bulk.gathering import Gathered
from muniment.store.bulk.records import Checked, checked_of
from muniment.store.chain import Head, genesis, head_of, seal
from muniment.store.context import Context
from muniment.store.idempotency import put_keys
from muniment.store.ledger import entry_of_row
from muniment.store.writing import (
    enter_tenant,
    must_open,
    number_entries,
    project_entries,
    recorded_now,
    run_taken,
    session_head,
)

__all__ = ["Part", "Written", "write_portion"]

_RACES_MAX = 4
"""How often a portion is written anew after somebody was quicker."""
Place = tuple[str, str]
"""A user and a session."""


class Part(NamedTuple):
    """Consecutive events of one session that are of one run, and where each stood in what was given."""

    scope: Scope
    events: list[Checked]
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

    def attempt(*, is_wary: bool) -> Written:
        settled = _Settled(opening, [_settled(ctx, part) for part in parts])

        def work(tx: Transaction) -> Written:
            return _Portion(ctx, tx, parts, settled, is_wary=is_wary).write()

        return ctx.engine.write(tenant_id, work)

    taken = ""
    for number in range(_RACES_MAX):
        try:
            return attempt(is_wary=number > 0)
        except KeyTaken as error:  # somebody wrote one of these keys or ids at the same time: by now it can be seen
            taken = error.table
    if taken == IDS.name:
        said = "an id that these events need is taken"
        raise DuplicateId(said, path="$.id", hint="leave id and run_id out to have them minted")
    raise StorageBusy(f"others write the same rows of {taken} again and again", hint="load the same events again")


class _Batch(NamedTuple):
    """The events of a part with all that needs no transaction."""

    scope: Scope
    events: list[Checked]
    ids: list[str]
    salts: list[bytes]
    blobs: dict[str, BlobRow]
    """By the id of its entry, where an event has one."""


class _Settled(NamedTuple):
    """All that is settled of a portion before its transaction, so that the work can be run again."""

    opening: Admitted
    batches: list[_Batch]


def _settled(ctx: Context, part: Part) -> _Batch:
    mint = ctx.ids.new
    salts = ctx.ids.salts(len(part.events))
    ids = [event.id or mint("evt") for event in part.events]
    events, blobs = part.events, {}
    if any(event.blob is not None for event in events):
        events = list(events)
        for at, event in enumerate(events):
            if event.blob is not None:
                events[at], name = event.placed(salts[at])
                blobs[ids[at]] = BlobRow(name, ids[at], len(event.blob), event.blob)
    return _Batch(part.scope, events, ids, salts, blobs)


def _taken(id_: str, where: str) -> DuplicateId:
    return DuplicateId(f"{where}: the id {id_!r} is taken", path="$.id", hint="leave id out to have one minted")


class _Held(NamedTuple):
    user_id: str
    key_hash: bytes
    entry_id: str
    request_hash: bytes | None


class _Id(NamedTuple):
    id: str


class _End(NamedTuple):
    user_id: str
    session_id: str
    seq: int
    hash: bytes
    recorded_at: str


class _Salted(NamedTuple):
    id: str
    salt: bytes | None
    receipt_id: str | None


@dataclass(slots=True)
class _Session:
    """A session within the transaction: where its chain ends by now, and what was put behind it."""

    head: Head | None
    created_at: str | None
    """None of one that is new."""
    first: int
    begun: str = ""
    """When the first of what was put behind it was recorded."""


class _Portion:
    """One try at writing a portion: the engine may ask for another after a lost race.

    With `is_wary`, each session is held against its last entries by itself: a key was taken, and nobody knows by whom.
    """

    def __init__(
        self, ctx: Context, tx: Transaction, parts: Sequence[Part], settled: _Settled, *, is_wary: bool = False
    ) -> None:
        self._ctx, self._tx, self._parts, self._settled = ctx, tx, parts, settled
        self._is_wary = is_wary
        self._opening = checked_of(settled.opening)
        self._out = Gathered(tx)
        self._rows: list[EntryRow] = []
        self._keys: list[IdempotencyRow] = []
        self._sessions: dict[Place, _Session] = {}
        self._begun: dict[str, Scope] = {}
        """By run, the scope under which it was seen to have begun."""
        self._new = {part.scope.run_id for part in parts if part.is_new}
        self._known_sessions: dict[Place, SessionRow] = {}
        self._seen: dict[tuple[str, bytes], bytes] = {}
        self._odd: set[Place] = set()
        """Sessions that do not end where their heads say."""
        self._forgotten = self._known = self._written = 0

    def write(self) -> Written:
        skipped = self._skipped()
        self._check_ids(skipped)
        places = sorted({(part.scope.user_id, part.scope.session_id) for part in self._parts})
        self._tx.do(LockAll([("session", *place) for place in places]))
        self._look(places)
        sealed: list[tuple[Scope, list[EntryRow], list[Checked]]] = []
        for number, batch in enumerate(self._settled.batches):
            fresh = [at for at in range(len(batch.events)) if (number, at) not in skipped]
            if fresh:
                sealed.append(self._seal(batch, fresh))
        if not self._rows:
            return Written(0, self._known, self._forgotten)
        self._store_entries()
        self._store_sessions()
        if self._keys:
            put_keys(self._out, self._keys, are_new=True)
        for scope, rows, events in sealed:
            self._derive(scope, rows, events)
        self._out.flush()
        return Written(self._written, self._known, self._forgotten)

    def _look(self, places: Sequence[Place]) -> None:
        """What is there of these sessions and runs, in a few questions for all of them."""
        held = find(self._tx, SESSIONS, ("user_id", "session_id"), places, into=SessionRow)
        self._known_sessions = {(row.user_id, row.session_id): row for row in held}
        runs = list({part.scope.run_id: None for part in self._parts})
        items = {row.id for row in by_ids(self._tx, ITEMS, runs, into=_Id)}
        self._out.tell_absent(ITEMS, ("id",), [(run_id,) for run_id in runs if run_id not in items])
        ids = {row.id for row in by_ids(self._tx, IDS, runs)}
        self._out.tell_absent(IDS, ("id",), [(run_id,) for run_id in runs if run_id not in ids])
        if not self._is_wary:
            self._check_ends()

    def _check_ends(self) -> None:
        """Each session ends where its head says: that entry is there, and none behind it."""
        by = ("user_id", "session_id", "seq")
        ends = {(*place, row.head_seq): row for place, row in self._known_sessions.items() if row.head_seq}
        behind = [(*place, row.head_seq + 1) for place, row in self._known_sessions.items()]
        found = {row[:3]: row for row in find(self._tx, ENTRIES, by, [*ends, *behind], into=_End)}
        for key, row in ends.items():
            last = found.pop(key, None)
            if last is None or (last.hash, last.recorded_at) != (row.head_hash, row.head_recorded_at):
                found[key] = last or _End(*key, b"", "")
        self._odd = {key[:2] for key in found}

    def _skipped(self) -> set[tuple[int, int]]:
        """Which events were written before, by their keys; raises where a key was used for another request."""
        wanted = {
            (part.scope.user_id, event.key[0]): None
            for part in self._parts
            for event in part.events
            if event.key is not None
        }
        by = ("user_id", "key_hash")
        held = {(row.user_id, row.key_hash): row for row in find(self._tx, IDEMPOTENCY, by, list(wanted), into=_Held)}
        entries = {
            row.id: row for row in by_ids(self._tx, ENTRIES, [row.entry_id for row in held.values()], into=_Salted)
        }
        skipped: set[tuple[int, int]] = set()
        for number, part in enumerate(self._parts):
            for at, event in enumerate(part.events):
                key = event.key
                if key is None:
                    continue
                named = (part.scope.user_id, key[0])
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
        runs = {part.scope.run_id for part in self._parts}
        for number, part in enumerate(self._parts):
            for at, (event, where) in enumerate(zip(part.events, part.where, strict=True)):
                if event.id is not None and (number, at) not in skipped:
                    if event.id in chosen or event.id in runs:
                        raise _taken(event.id, where)
                    chosen[event.id] = where
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
            row = self._known_sessions.get(place)
            # Of a new session nothing is looked for: an entry without its session would take the first number.
            head = None if row is None else head_of(row)
            if head is not None and (self._is_wary or place in self._odd):
                head = session_head(self._ctx, self._tx, scope)
            first = 1 if head is None else head.seq + 1
            held = self._sessions[place] = _Session(head, None if row is None else row.created_at, first)
        return held

    def _seal(self, batch: _Batch, fresh: list[int]) -> tuple[Scope, list[EntryRow], list[Checked]]:
        """Put the fresh events of a part behind the chain of its session."""
        scope, session = batch.scope, self._session(batch.scope)
        events = [batch.events[at] for at in fresh]
        ids, salts = [batch.ids[at] for at in fresh], [batch.salts[at] for at in fresh]
        begun = self._begun.get(scope.run_id)
        if begun is not None and begun != scope:  # its run is not written yet, so nobody else would say so
            raise run_taken(scope)
        if begun is None:
            self._begun[scope.run_id] = scope
            if scope.run_id in self._new or must_open(self._out, scope, self._settled.opening, repairs=False):
                ids, salts = [self._ctx.ids.new("evt"), *ids], [*self._ctx.ids.salts(1), *salts]
                events = [self._opening, *events]
        recorded_at = recorded_now(self._ctx, session.head, "")
        start = session.head or genesis(scope.tenant_id, scope.user_id, scope.session_id)
        rows, session.head = seal(scope, start, events, ids, salts, recorded_at)
        session.begun = session.begun or recorded_at
        self._rows += rows
        for at, row in zip(fresh, rows[len(rows) - len(fresh) :], strict=True):
            key = batch.events[at].key
            if key is not None:
                request_hash = salted_digest(batch.salts[at], key[1])
                self._keys.append(IdempotencyRow(scope.user_id, key[0], row.id, request_hash))
        self._written += len(fresh)
        return scope, rows, events

    def _store_entries(self) -> None:
        insert(self._out, IDS, [IdRow(row.id, "event") for row in self._rows])
        insert(self._out, ENTRIES, number_entries(self._tx, self._rows)[0])
        held = {id_: blob for batch in self._settled.batches for id_, blob in batch.blobs.items()}
        blobs = [held[row.id] for row in self._rows if row.id in held] if held else []
        if blobs:
            insert(self._tx, BLOBS, blobs)

    def _store_sessions(self) -> None:
        new: list[SessionRow] = []
        going_on: list[SessionRow] = []
        for (user_id, session_id), session in self._sessions.items():
            end = session.head
            assert end is not None
            created_at = session.created_at or session.begun
            row = SessionRow(user_id, session_id, end.seq, end.hash, end.recorded_at, created_at)
            (new if session.created_at is None else going_on).append(row)
        if new:
            enter_tenant(self._tx, min(row.created_at for row in new))
            insert(self._tx, SESSIONS, new)
        if going_on:
            put(self._tx, SESSIONS, going_on)

    def _derive(self, scope: Scope, rows: list[EntryRow], events: list[Checked]) -> None:
        """What stands in items comes with the entries, as it does one by one."""
        for row, event in zip(rows, events, strict=True):
            if self._ctx.hears(event.kind, event.event):
                entry = entry_of_row(scope.tenant_id, row, scope=scope, body=event.body)
                project_entries(self._ctx, self._out, [entry])
