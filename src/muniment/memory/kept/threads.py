"""Threads of a graph: checkpoints and what tasks wrote since, each an entry of the ledger.

The entries of a thread are a session of their own. What is to go from a thread goes with its session: what stays is
written anew first, so that no checkpoint is told by one that was forgotten.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import canonical_text, digest_of, read_canonical
from muniment.core.limits import drop_tenant
from muniment.core.ports.engine import Lock
from muniment.core.ports.rows import first, get, select
from muniment.core.ports.schema import ENTRIES, LIVE, PLACES, PlaceRow
from muniment.core.scope import corpus_holder, is_reserved
from muniment.errors import Forbidden, InvalidInput, StoreDamaged
from muniment.memory.kept.names import THREAD, after_path, labels_of, path_of, scope_of, space_of
from muniment.memory.kept.states import Channel, Typed, channels_told, pack_typed, state_of, typed_of
from muniment.memory.kept.values import micros
from muniment.store.admission import admit
from muniment.store.append import append_in, opening_draft
from muniment.store.forget import Selector, forget
from muniment.store.ledger import CHECKPOINT_KEPT, WRITES_KEPT, EntryDraft, check_header, read_body
from muniment.store.turns import blob_text

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader, Transaction
    from muniment.store.context import Context
    from muniment.store.ledger import Receipt

__all__ = ["Checkpoint", "NewCheckpoint", "Place", "Threads", "Write"]

CACHED_BYTES_MAX = 64 * 1024 * 1024


class Write(NamedTuple):
    """What a task wrote to a channel after a checkpoint."""

    task_id: str
    task_path: str
    number: int
    channel: str
    typed: Typed


class NewCheckpoint(NamedTuple):
    """A checkpoint that is to be kept."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent_id: str | None
    head: Typed
    """All of it but the values of its channels."""
    metadata: Typed
    values: Mapping[str, Typed]


class Checkpoint(NamedTuple):
    """A checkpoint as it was kept, and what was written after it."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent_id: str | None
    head: Typed
    metadata: Typed
    values: Mapping[str, Typed]
    writes: tuple[Write, ...]
    seq: int


Place = tuple[str, int, tuple[str, str]]
"""Where a checkpoint stands among others: its id, its number in its session, its thread and namespace."""


class StateCache:
    """Channels of entries, which never change. Never the only copy. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str, str], Channel] = OrderedDict()
        self._size = 0

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)
            self._size = sum(len(channel.typed[1]) + 200 for channel in self._held.values())

    def get(self, tenant_id: str, entry_id: str, name: str) -> Channel | None:
        with self._lock:
            found = self._held.get((tenant_id, entry_id, name))
            if found is not None:
                self._held.move_to_end((tenant_id, entry_id, name))
            return found

    def keep(self, tenant_id: str, entry_id: str, name: str, channel: Channel) -> None:
        key = (tenant_id, entry_id, name)
        with self._lock:
            if key in self._held:
                return
            self._held[key] = channel
            self._size += len(channel.typed[1]) + 200
            while self._size > CACHED_BYTES_MAX and self._held:
                _, gone = self._held.popitem(last=False)
                self._size -= len(gone.typed[1]) + 200


class Threads:
    """The threads of one saver; with a user, of that user alone. Thread-safe."""

    def __init__(self, ctx: Context, tenant_id: str, name: str, user_id: str | None = None) -> None:
        if user_id is not None and (not user_id or is_reserved(user_id)):
            raise InvalidInput(f"{user_id!r:.60} is not the name of a user", path="$.user_id")
        self._ctx = ctx
        self._tenant_id = tenant_id
        self._user_id = user_id
        self.space = space_of("threads", name, user_id)
        self._writes_space = f"{self.space}.w"
        self._opening = admit(opening_draft({"task_type": "kept"}), ctx.policy.ledger)

    # -- writing --------------------------------------------------------------------------------------

    def put(self, new: NewCheckpoint, holder: str | None = None) -> None:
        """Keep a checkpoint; one of the same id takes the place of the one before."""

        def work(tx: Transaction) -> None:
            session_id, owner = self._session(tx, new.thread_id, holder)
            scope = scope_of(self._tenant_id, self.space, owner, session_id)
            tx.do(Lock(("session", scope.user_id, session_id)))
            self._append(tx, scope, [self._draft(self._before(tx, new), new)])

        self._ctx.write(self._tenant_id, work)

    def put_writes(
        self,
        thread_id: str,
        namespace: str,
        checkpoint_id: str,
        writes: Sequence[Write],
        *,
        replaces: bool,
        holder: str | None = None,
    ) -> None:
        """Keep what a task wrote. What it wrote before under the same number stays, or is replaced."""

        def work(tx: Transaction) -> None:
            session_id, owner = self._session(tx, thread_id, holder)
            scope = scope_of(self._tenant_id, self.space, owner, session_id)
            tx.do(Lock(("session", scope.user_id, session_id)))
            path = path_of((thread_id, namespace, checkpoint_id))
            held = {row.name for row in self._rows(tx, self._writes_space, path, path)} if not replaces else set()
            fresh = [write for write in writes if _name_of(write) not in held]
            if fresh:
                self._append(tx, scope, [self._writes_draft((thread_id, namespace, checkpoint_id), fresh)])

        if writes:
            self._ctx.write(self._tenant_id, work)

    def _session(self, tx: Transaction, thread_id: str, holder: str | None) -> tuple[str, str | None]:
        """The session in which a thread goes on, and whose it is."""
        row = self._any_row(tx, thread_id)
        given = holder if self._user_id is None else self._user_id
        if given is not None and is_reserved(given):
            raise InvalidInput(f"{given!r:.60} is not the name of a user", path="$.user_id")
        if row is None:
            return self._ctx.ids.new(THREAD), given
        held = corpus_holder(row.user_id)
        if given is not None and held != given:
            raise Forbidden(f"the thread {thread_id!r:.80} is another user's", path="$.thread_id")
        return row.session_id, held

    def _any_row(self, reader: Reader, thread_id: str) -> PlaceRow | None:
        path = path_of((thread_id,))
        for space in (self.space, self._writes_space):
            row = first(reader, PLACES, _below(space, path), order=("path", "name"), descending=True)
            if row is not None:
                return row
        return None

    def _before(self, tx: Transaction, new: NewCheckpoint) -> dict[str, Channel]:
        """The channels of the checkpoint that a new one is told by: its parent, or the last of its namespace."""
        path = path_of((new.thread_id, new.namespace))
        named = (*_at(self.space, path), ("name", "=", new.parent_id))
        row = None if new.parent_id is None else first(tx, PLACES, named)
        row = row or first(tx, PLACES, _at(self.space, path), order=("name",), descending=True)
        if row is None:
            return {}
        told = self._read(tx, row)
        return {name: self._channel(tx, row.entry_id, name, told) for name in told["channels"]}

    def _draft(self, before: Mapping[str, Channel], new: NewCheckpoint) -> EntryDraft:
        entry_id = self._ctx.ids.new("evt")
        channels, known = channels_told(new.values, before, entry_id)
        cache = self._ctx.cache(StateCache)
        for name, channel in known.items():
            cache.keep(self._tenant_id, entry_id, name, channel)
        said = {
            "parent": new.parent_id,
            "head": pack_typed(new.head),
            "metadata": pack_typed(new.metadata),
            "channels": channels,
        }
        told = self._told(CHECKPOINT_KEPT, self.space, (new.thread_id, new.namespace), [new.checkpoint_id])
        return _draft(told, said, entry_id)

    def _writes_draft(self, labels: tuple[str, str, str], writes: Sequence[Write]) -> EntryDraft:
        said = [[each.task_id, each.task_path, each.number, each.channel, pack_typed(each.typed)] for each in writes]
        told = self._told(WRITES_KEPT, self._writes_space, labels, [_name_of(each) for each in writes])
        return _draft(told, {"writes": said}, self._ctx.ids.new("evt"))

    def _told(self, event: str, space: str, labels: Sequence[str], names: list[str]) -> dict[str, Any]:
        at = micros(self._ctx.clock())
        return {"event": event, "space": space, "path": list(labels), "names": names, "at": at}

    def _append(self, tx: Transaction, scope: Any, drafts: Sequence[EntryDraft]) -> None:
        append_in(self._ctx, tx, scope, drafts, self._opening, "")

    # -- reading --------------------------------------------------------------------------------------

    def get(
        self, thread_id: str, namespace: str, checkpoint_id: str | None = None, holder: str | None = None
    ) -> Checkpoint | None:
        """A checkpoint of a thread, or its last."""

        def work(reader: Reader) -> Checkpoint | None:
            where = _at(self.space, path_of((thread_id, namespace)))
            if checkpoint_id is not None:
                where = (*where, ("name", "=", checkpoint_id))
            row = first(reader, PLACES, where, order=("name",), descending=True)
            return None if row is None or not self._is_of(row, holder) else self._checkpoint(reader, row)

        return self._ctx.engine.read(self._tenant_id, work)

    def walk(
        self,
        thread_id: str | None,
        namespace: str | None,
        *,
        checkpoint_id: str | None = None,
        before: str | None = None,
        holder: str | None = None,
        after: Place | None = None,
    ) -> Iterator[Checkpoint]:
        """Checkpoints of a thread, of one namespace of it, or of all threads, newest first; behind a place, `after`."""
        labels = () if thread_id is None else (thread_id,) if namespace is None else (thread_id, namespace)
        path = path_of(labels)
        is_exact = thread_id is not None and namespace is not None
        rows = self._ctx.engine.read(
            self._tenant_id, lambda reader: self._rows(reader, self.space, path, path if is_exact else None)
        )
        if checkpoint_id is not None:
            rows = [row for row in rows if row.name == checkpoint_id]
        if before is not None:
            rows = [row for row in rows if row.name < before]
        placed = sorted(((row.name, row.seq, row.path), row) for row in rows)
        for place, row in reversed(placed):
            is_asked = namespace is None or labels_of(row.path)[1] == namespace
            if after is not None and place >= (after[0], after[1], path_of(after[2])):
                continue
            if is_asked and self._is_of(row, holder):
                yield self._ctx.engine.read(self._tenant_id, lambda reader, row=row: self._checkpoint(reader, row))  # type: ignore[misc]

    def _is_of(self, row: PlaceRow, holder: str | None) -> bool:
        """Whether a thread may be shown to this user: whoever asks as nobody may see all of the saver's."""
        return holder is None or corpus_holder(row.user_id) == holder

    def _rows(self, reader: Reader, space: str, path: str, exact: str | None = None) -> list[PlaceRow]:
        return select(reader, PLACES, _below(space, path) if exact is None else _at(space, exact))

    def _checkpoint(self, reader: Reader, row: PlaceRow) -> Checkpoint:
        told = self._read(reader, row)
        values = {name: self._channel(reader, row.entry_id, name, told).typed for name in told["channels"]}
        thread_id, namespace = labels_of(row.path)
        return Checkpoint(
            thread_id=thread_id,
            namespace=namespace,
            checkpoint_id=row.name,
            parent_id=told["parent"],
            head=typed_of(told["head"]),
            metadata=typed_of(told["metadata"]),
            values=values,
            writes=tuple(self._writes(reader, path_of((thread_id, namespace, row.name)))),
            seq=row.seq,
        )

    def _writes(self, reader: Reader, path: str) -> list[Write]:
        rows = self._rows(reader, self._writes_space, path, path)
        read: dict[str, Any] = {}
        found: list[Write] = []
        for row in rows:
            if row.entry_id not in read:
                read[row.entry_id] = self._read(reader, row)
            task_id, task_path, index, channel, packed = read[row.entry_id]["writes"][row.number]
            found.append(Write(task_id, task_path, index, channel, typed_of(packed)))
        return sorted(found, key=lambda each: (each.task_path, each.task_id, each.number))

    def _channel(self, reader: Reader, entry_id: str, name: str, told: Mapping[str, Any] | None = None) -> Channel:
        """A channel as an entry of this saver tells it, from the nearest that is known on."""
        cache = self._ctx.cache(StateCache)
        waiting: list[tuple[str, Mapping[str, Any]]] = []
        at: str | None = entry_id
        known: Channel | None = None
        while at is not None:
            known = cache.get(self._tenant_id, at, name)
            if known is not None:
                break
            said = told if told is not None and at == entry_id else self._read_entry(reader, at)
            part = said["channels"][name]
            waiting.append((at, part))
            at = part.get("at") or part.get("by")
        for here, part in reversed(waiting):
            known = state_of(part, here, known)
            cache.keep(self._tenant_id, here, name, known)
        assert known is not None
        return known

    def _read(self, reader: Reader, row: PlaceRow) -> Any:
        """What an entry tells, which is what the row says that led to it."""
        return self._read_entry(reader, row.entry_id, row)

    def _read_entry(self, reader: Reader, entry_id: str, row: PlaceRow | None = None) -> Any:
        entry = get(reader, ENTRIES, (entry_id,))
        body = None
        if entry is not None:
            check_header(self._tenant_id, entry)
            body = read_body(entry)
        told = {} if body is None else body.get("metadata") or {}
        is_own = told.get("space") in (self.space, self._writes_space)
        is_led = row is None or (
            is_own
            and told["space"] == row.space
            and path_of(told["path"]) == row.path
            and told["names"][row.number : row.number + 1] == [row.name]
        )
        if entry is None or body is None or not is_own or not is_led:
            raise StoreDamaged(f"the event {entry_id} does not keep what its row says", details={"id": entry_id})
        text = body["content"] if "blob" not in body else blob_text(reader, entry.id, body["blob"], entry.salt)
        return read_canonical(text)

    # -- what goes, and what is written anew ----------------------------------------------------------

    def forget(self, thread_id: str, keep: Collection[tuple[str, str]] = ()) -> list[Receipt]:
        """Erase a thread; what is to be kept, by namespace and id, is written anew first. Answers the receipts."""
        path = path_of((thread_id,))
        where = (("path", ">=", path), ("path", "<", after_path(path)))

        def sessions(reader: Reader) -> set[tuple[str, str]]:
            spaces: tuple[Condition, ...] = (("space", "in", (self.space, self._writes_space)),)
            rows = select(reader, PLACES, (*spaces, *where))  # type: ignore[arg-type]
            return {(row.user_id, row.session_id) for row in rows}

        def work(tx: Transaction) -> set[tuple[str, str]]:
            gone = sessions(tx)
            kept = self._named(tx, path, keep) if gone and keep else []
            if kept:
                owner = corpus_holder(min(gone)[0])
                self._write_anew(tx, thread_id, kept, owner, self._ctx.ids.new(THREAD))
            return gone

        gone = self._ctx.write(self._tenant_id, work)
        by_owner: dict[str, list[str]] = {}
        for owner, session_id in sorted(gone):
            by_owner.setdefault(owner, []).append(session_id)
        return [
            forget(self._ctx, self._tenant_id, Selector(user_id=owner, document=tuple(ids)))
            for owner, ids in by_owner.items()
        ]

    def _named(self, reader: Reader, path: str, names: Collection[tuple[str, str]]) -> list[Checkpoint]:
        """The checkpoints below a path that have one of these names, in order."""
        rows = [(labels_of(row.path)[1], row.name, row) for row in self._rows(reader, self.space, path)]
        found = sorted((each for each in rows if each[:2] in names), key=lambda each: each[:2])
        return [self._checkpoint(reader, row) for _, _, row in found]

    def copy(self, source_id: str, target_id: str) -> None:
        """Keep all checkpoints of a thread in another as well."""
        kept = sorted(self.walk(source_id, None), key=lambda each: (each.namespace, each.checkpoint_id))

        def work(tx: Transaction) -> None:
            source = self._any_row(tx, source_id)
            session_id, owner = self._session(tx, target_id, None if source is None else corpus_holder(source.user_id))
            self._write_anew(tx, target_id, kept, owner, session_id)

        if kept:
            self._ctx.write(self._tenant_id, work)

    def _write_anew(
        self, tx: Transaction, thread_id: str, kept: Sequence[Checkpoint], owner: str | None, session_id: str
    ) -> None:
        scope = scope_of(self._tenant_id, self.space, owner, session_id)
        drafts: list[EntryDraft] = []
        before: dict[str, Channel] = {}
        namespace: str | None = None
        cache = self._ctx.cache(StateCache)
        for each in kept:
            if each.namespace != namespace:
                before, namespace = {}, each.namespace
            new = NewCheckpoint(thread_id, *each[1:7])
            draft = self._draft(before, new)
            assert draft.id is not None
            known = {name: cache.get(self._tenant_id, draft.id, name) for name in each.values}
            before = {name: channel for name, channel in known.items() if channel is not None}
            drafts.append(draft)
            if each.writes:
                drafts.append(self._writes_draft((thread_id, each.namespace, each.checkpoint_id), each.writes))
        tx.do(Lock(("session", scope.user_id, session_id)))
        self._append(tx, scope, drafts)

    def thread_ids(self) -> list[str]:
        """Every thread in which something is kept."""
        rows = self._ctx.engine.read(self._tenant_id, lambda reader: self._rows(reader, self.space, ""))
        return sorted({labels_of(row.path)[0] for row in rows})


def _name_of(write: Write) -> str:
    return digest_of([write.task_id, write.number])[:32]


def _draft(told: Mapping[str, Any], said: Any, entry_id: str) -> EntryDraft:
    return EntryDraft(
        kind="state_patch", role="assistant", content=canonical_text(said), metadata=dict(told), id=entry_id
    )


def _at(space: str, path: str) -> tuple[Condition, ...]:
    return ("space", "=", space), ("state", "=", LIVE), ("path", "=", path)


def _below(space: str, path: str) -> tuple[Condition, ...]:
    return ("space", "=", space), ("state", "=", LIVE), ("path", ">=", path), ("path", "<", after_path(path))
