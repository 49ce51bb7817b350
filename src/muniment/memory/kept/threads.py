"""Threads of a graph: checkpoints and the writes of tasks since, each an entry of the ledger.

The entries of a thread form a session of their own. Data removed from a thread goes with its session: the rest is
rewritten first, so that no checkpoint is a delta against a forgotten one.
"""

from __future__ import annotations

import base64
import binascii
import threading
import zlib
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
from muniment.memory.kept.values import THREAD, after_path, labels_of, micros, path_of, scope_of, space_of
from muniment.store.admission import admit
from muniment.store.append import append_in, opening_draft
from muniment.store.forget import Selector, forget
from muniment.store.ledger import CHECKPOINT_KEPT, WRITES_KEPT, EntryDraft, check_header, read_body
from muniment.store.turns import blob_text

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader, Transaction
    from muniment.store.context import Context
    from muniment.store.ledger import Receipt

__all__ = [
    "CHAIN_MAX",
    "Channel",
    "Checkpoint",
    "Delta",
    "NewCheckpoint",
    "Place",
    "Threads",
    "Typed",
    "Write",
    "apply_delta",
    "channels_told",
    "make_delta",
    "pack",
    "pack_typed",
    "state_of",
    "typed_of",
    "unpack",
]


# -- deltas --------------------------------------------------------------------------------------------
#
# A byte string as a delta against a similar one: copied ranges and new bytes. Pure. A state that grows by a message
# each step then takes the space of its messages, not of all its states.


Delta = list[tuple[int, int] | bytes]
"""In order: (start, length) of the base, or new bytes."""

_ANCHOR = 24
"""This many equal bytes count as a common stretch."""
_STEPS_MAX = 64
"""Maximum number of differences; the rest is stored as new."""
_REACH = (0, 1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256)
"""Offsets behind a difference at which a common stretch is looked for."""


def make_delta(base: bytes, new: bytes) -> Delta:
    """The delta that produces `new` from `base`. Its work is bounded by both lengths."""
    delta: Delta = []
    at_base = at_new = 0
    literal_from = 0
    for _ in range(_STEPS_MAX):
        length = _common(base, at_base, new, at_new)
        if length >= _ANCHOR or (length and at_base == at_new == 0):
            if literal_from < at_new:
                delta.append(new[literal_from:at_new])
            delta.append((at_base, length))
            at_base, at_new = at_base + length, at_new + length
            literal_from = at_new
        if at_new >= len(new):
            break
        meeting = _meeting(base, at_base, new, at_new)
        if meeting is None:
            break
        at_base, at_new = meeting
    if literal_from < len(new):
        delta.append(new[literal_from:])
    return delta


def apply_delta(base: bytes, delta: Delta) -> bytes:
    return b"".join(part if isinstance(part, bytes) else base[part[0] : part[0] + part[1]] for part in delta)


def _common(base: bytes, at_base: int, new: bytes, at_new: int) -> int:
    """The length of the common prefix from two offsets, found by bisection."""
    most = min(len(base) - at_base, len(new) - at_new)
    alike = 0
    step = most
    while step > 0 and alike < most:
        step = min(step, most - alike)
        here, there = at_base + alike, at_new + alike
        if base[here : here + step] == new[there : there + step]:
            alike += step
        else:
            step //= 2
    return alike


def _meeting(base: bytes, at_base: int, new: bytes, at_new: int) -> tuple[int, int] | None:
    """The nearest offsets from which both continue alike after an insertion, deletion or change."""
    found: list[tuple[int, int]] = []
    for reach in _REACH:
        anchor = base[at_base + reach : at_base + reach + _ANCHOR]
        if len(anchor) == _ANCHOR and (place := new.find(anchor, at_new)) >= 0:
            found.append((at_base + reach, place))
            break
    for reach in _REACH:
        anchor = new[at_new + reach : at_new + reach + _ANCHOR]
        if len(anchor) == _ANCHOR and (place := base.find(anchor, at_base)) >= 0:
            found.append((place, at_new + reach))
            break
    return min(found, key=lambda each: each[0] - at_base + each[1] - at_new) if found else None


# -- states --------------------------------------------------------------------------------------------
#
# Thread states as the text of entries: each channel whole, as a delta against another, or as a reference. A channel
# equal to that of the previous checkpoint refers to the entry that holds it. A changed one is stored as a delta, until
# the deltas take as much space as the whole or the chain gets long.


Typed = tuple[str, bytes]
"""Serialized data: the name of its format, and the bytes."""

CHAIN_MAX = 64
"""Maximum number of entries to read for a channel."""
_SMALL = 256
"""Shorter values are not worth a delta."""
_INFLATED_MAX = 1 << 31


class Channel(NamedTuple):
    """A known channel of a checkpoint: its bytes, and the entry that holds them."""

    typed: Typed
    entry_id: str
    depth: int
    """The number of other entries to read first."""
    spent: int
    """The size of its deltas since it was last stored whole."""


def pack(data: bytes) -> dict[str, Any]:
    """Encode bytes for JSON, compressed if that is shorter."""
    pressed = zlib.compress(data, 6) if len(data) >= 64 else data
    if len(pressed) < len(data):
        return {"z": base64.b64encode(pressed).decode("ascii"), "size": len(data)}
    return {"b": base64.b64encode(data).decode("ascii")}


def unpack(packed: Mapping[str, Any]) -> bytes:
    try:
        if "b" in packed:
            return base64.b64decode(packed["b"], validate=True)
        size = packed["size"]
        inflater = zlib.decompressobj()
        data = inflater.decompress(base64.b64decode(packed["z"], validate=True), min(size + 1, _INFLATED_MAX))
    except (binascii.Error, zlib.error, KeyError, TypeError) as error:
        raise StoreDamaged(f"what a checkpoint holds cannot be read: {type(error).__name__}") from None
    if len(data) != size:
        raise StoreDamaged("what a checkpoint holds is not as long as it says")
    return data


def pack_typed(typed: Typed) -> dict[str, Any]:
    return {"type": typed[0], **pack(typed[1])}


def typed_of(packed: Mapping[str, Any]) -> Typed:
    return str(packed["type"]), unpack(packed)


def channels_told(
    values: Mapping[str, Typed], before: Mapping[str, Channel], entry_id: str
) -> tuple[dict[str, Any], dict[str, Channel]]:
    """The encoded channels of a checkpoint, given those before it, and the channels known afterwards."""
    told: dict[str, Any] = {}
    known: dict[str, Channel] = {}
    for name, typed in values.items():
        held = before.get(name)
        if held is not None and held.typed == typed:
            told[name] = {"at": held.entry_id}
            known[name] = held
            continue
        whole = pack_typed(typed)
        delta = None if held is None else _told_by(held, typed, whole)
        if delta is None or held is None:
            told[name], known[name] = whole, Channel(typed, entry_id, 0, 0)
        else:
            told[name] = delta
            known[name] = Channel(typed, entry_id, held.depth + 1, held.spent + _size(delta))
    return told, known


def _told_by(held: Channel, typed: Typed, whole: Mapping[str, Any]) -> dict[str, Any] | None:
    if held.depth >= CHAIN_MAX or len(typed[1]) < _SMALL or held.typed[0] != typed[0]:
        return None
    delta = make_delta(held.typed[1], typed[1])
    parts = [pack(part) if isinstance(part, bytes) else list(part) for part in delta]
    told = {"type": typed[0], "by": held.entry_id, "parts": parts, "size": len(typed[1])}
    is_shorter = _size(told) * 2 < _size(whole) and held.spent + _size(told) <= _size(whole)
    return {**told, "depth": held.depth + 1, "spent": held.spent + _size(told)} if is_shorter else None


def _size(told: Mapping[str, Any]) -> int:
    """Its approximate size in an entry."""
    own = sum(len(told[key]) for key in ("b", "z") if key in told)
    parts = told.get("parts", ())
    return own + sum(12 if isinstance(part, list) else 8 + _size(part) for part in parts)


def state_of(said: Mapping[str, Any], entry_id: str, base: Channel | None) -> Channel:
    """Decode a channel of an entry; `base` is the same channel of the entry that it refers to, if any."""
    if "at" in said or "by" in said:
        if base is None:
            raise StoreDamaged("what a checkpoint builds on is missing", details={"id": entry_id})
        if "at" in said:
            return base
        delta: Delta = [unpack(part) if isinstance(part, dict) else (part[0], part[1]) for part in said["parts"]]
        data = apply_delta(base.typed[1], delta)
        if len(data) != said["size"]:
            raise StoreDamaged("what a checkpoint holds is not as long as it says", details={"id": entry_id})
        return Channel((said["type"], data), entry_id, said["depth"], said["spent"])
    return Channel(typed_of(said), entry_id, 0, 0)


CACHED_BYTES_MAX = 64 * 1024 * 1024


class Write(NamedTuple):
    """A task's write to a channel after a checkpoint."""

    task_id: str
    task_path: str
    number: int
    channel: str
    typed: Typed


class NewCheckpoint(NamedTuple):
    """A checkpoint to be kept."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent_id: str | None
    head: Typed
    """Everything except the values of its channels."""
    metadata: Typed
    values: Mapping[str, Typed]


class Checkpoint(NamedTuple):
    """A stored checkpoint and the writes that followed it."""

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
"""A checkpoint's place: its id, its number in its session, its thread and namespace."""


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
    """The threads of one saver, optionally restricted to one user. Thread-safe."""

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
        """Keep a checkpoint; it replaces an earlier one with the same id."""

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
        """Keep a task's writes. An earlier write with the same number is kept, or replaced if `replaces`."""

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
        """The session in which a thread continues, and its owner."""
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
        """The channels against which a new checkpoint is encoded: its parent's, or the last of its namespace."""
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
        """A checkpoint of a thread, by default its last."""

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
        """Checkpoints of a thread, of one namespace, or of all threads, newest first, from the place `after` on."""
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
        """True if a thread may be shown to this user; without a user, all of the saver's threads may."""
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
        """Decode a channel of an entry of this saver, starting from the nearest known one."""
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
        """The body of an entry, checked against the row that led to it."""
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

    # -- erasing and rewriting --------------------------------------------------------------------------

    def forget(self, thread_id: str, keep: Collection[tuple[str, str]] = ()) -> list[Receipt]:
        """Erase a thread, after rewriting the checkpoints to keep (by namespace and id); returns the receipts."""
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
        """The checkpoints below a path with one of these names, in order."""
        rows = [(labels_of(row.path)[1], row.name, row) for row in self._rows(reader, self.space, path)]
        found = sorted((each for each in rows if each[:2] in names), key=lambda each: each[:2])
        return [self._checkpoint(reader, row) for _, _, row in found]

    def copy(self, source_id: str, target_id: str) -> None:
        """Copy all checkpoints of a thread into another."""
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
        """The ids of all non-empty threads."""
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
