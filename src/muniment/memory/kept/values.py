"""Values under keys and namespaces: put, read, removed, prolonged, erased; each change an entry of the ledger.

Rows lead to the entries. Each entry read is checked against its hash and against its row, so that no altered data is
returned, nor data of another owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import (
    canonical_bytes,
    canonical_text,
    digest,
    digest_of,
    nests_within,
    read_canonical,
    short_id,
)
from muniment.core.limits import remembered
from muniment.core.ports.engine import Condition, Delete, Lock
from muniment.core.ports.rows import by_ids, chunked, first, put, select, stream
from muniment.core.ports.schema import (
    ENTRIES,
    LIVE,
    NEVER,
    PLACE_VECTORS,
    PLACES,
    PREFIXES,
    REMOVED,
    SESSIONS,
    SUPERSEDED,
    VALUES_SESSION,
    PlaceRow,
    PlaceVectorRow,
    PrefixRow,
)
from muniment.core.scope import Scope, is_corpus, is_reserved, owner_of, scope_given
from muniment.errors import Forbidden, InvalidInput, StoreDamaged
from muniment.store.admission import admit
from muniment.store.append import append_batches, opening_draft, prepare_batch
from muniment.store.forget import Selector, forget
from muniment.store.ledger import (
    CHECKPOINT_KEPT,
    VALUE_KEPT,
    VALUE_REMOVED,
    VALUES_PROLONGED,
    WRITES_KEPT,
    EntryDraft,
    check_header,
    read_body,
)
from muniment.store.secrets import redact_value
from muniment.store.turns import blob_text

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.ports.schema import EntryRow
    from muniment.store.context import Context
    from muniment.store.ledger import Receipt

__all__ = [
    "AGENT",
    "THREAD",
    "KeptEntry",
    "KeptValue",
    "NewValue",
    "Placed",
    "SessionPlaces",
    "Values",
    "after_path",
    "fold",
    "is_kept",
    "is_searched",
    "labels_of",
    "micros",
    "moment",
    "name_of",
    "names_in",
    "path_of",
    "place_of",
    "prefix_rows",
    "prefixes_of",
    "scope_of",
    "space_of",
    "vector_digest",
]


# -- names ---------------------------------------------------------------------------------------------
#
# Names of stored data: paths of labels, disjoint spaces, and the owners of entries.


AGENT = "kept"
THREAD = "thread"
"""The prefix of thread session names."""
PATH_CHARS_MAX = 1000
"""The index key size that every engine supports."""
_END, _ESCAPE = "\x1f", "\x1e"
_NEXT = "\x20"
"""The character after `_END`."""


def path_of(labels: Sequence[str]) -> str:
    """Join labels, each followed by a separator that no label contains."""
    return _path_of(tuple(labels))


@remembered(1024)
def _path_of(labels: tuple[str, ...]) -> str:
    path = "".join(f"{_escaped(label)}{_END}" for label in labels)
    if len(path) > PATH_CHARS_MAX or "\x00" in path:
        raise InvalidInput(
            f"names of {len(path)} characters that stand below each other are over the limit of {PATH_CHARS_MAX}"
            if "\x00" not in path
            else "a name holds no zero byte",
            path="$.namespace",
        )
    return path


def _escaped(label: str) -> str:
    if _END not in label and _ESCAPE not in label:
        return label
    return label.replace(_ESCAPE, f"{_ESCAPE}0").replace(_END, f"{_ESCAPE}1")


def labels_of(path: str) -> tuple[str, ...]:
    labels = path.split(_END)[:-1]
    if _ESCAPE not in path:
        return tuple(labels)
    return tuple(label.replace(f"{_ESCAPE}1", _END).replace(f"{_ESCAPE}0", _ESCAPE) for label in labels)


@remembered(1024)
def prefixes_of(path: str) -> tuple[str, ...]:
    """Every prefix path of this one, itself included."""
    parts = path.split(_END)[:-1]
    return ("", *accumulate(f"{part}{_END}" for part in parts))


def after_path(path: str) -> str:
    """The first string after everything below a path."""
    return path[:-1] + _NEXT if path else "\U0010ffff"


def space_of(kind: str, name: str, *more: str | int | None) -> str:
    """The namespace of one store or saver, shared with no other."""
    return short_id(kind, [name, *more])


def name_of(path: str, key: str) -> str:
    """A value's name in a row; it reveals no word of its key."""
    return digest_of([path, key])[:32]


def scope_of(tenant_id: str, space: str, holder: str | None, session_id: str) -> Scope:
    """The scope of a space's entries: under its own name, or under its user's."""
    owner = owner_of(space, holder)
    run_id = short_id("run", [tenant_id, owner, session_id])
    named = {"tenant_id": tenant_id, "user_id": owner, "agent_id": AGENT, "session_id": session_id, "run_id": run_id}
    return scope_given(named)


def is_kept(owner: str, session_id: str) -> bool:
    """True for a session of named storage."""
    return is_corpus(owner) and (session_id == VALUES_SESSION or session_id.startswith(f"{THREAD}_"))


# -- fold ----------------------------------------------------------------------------------------------
#
# The rows that result from storage entries. Pure, so that a rebuild gives the same rows.


_KEEPING = (VALUE_KEPT, CHECKPOINT_KEPT, WRITES_KEPT)


class KeptEntry(NamedTuple):
    """An entry and its storage data."""

    entry_id: str
    user_id: str
    session_id: str
    seq: int
    told: Mapping[str, Any]


class Placed(NamedTuple):
    """The subject of a name."""

    space: str
    path: str
    name: str


def place_of(row: PlaceRow) -> Placed:
    return Placed(row.space, row.path, row.name)


def names_in(told: Mapping[str, Any]) -> Iterator[Placed]:
    """The names that an entry mentions."""
    if told.get("event") == VALUES_PROLONGED:
        for path, name, _ in told["prolonged"]:
            yield Placed(told["space"], path, name)
    elif told.get("event") in (*_KEEPING, VALUE_REMOVED):
        path = path_of(told["path"])
        for name in told["names"]:
            yield Placed(told["space"], path, name)


def fold(entries: Iterable[KeptEntry], standing: dict[Placed, PlaceRow]) -> list[PlaceRow]:
    """The rows added or changed by these entries, which follow `standing`; `standing` is updated."""
    changed: dict[tuple[str, int], PlaceRow] = {}

    def write(row: PlaceRow) -> None:
        changed[row.entry_id, row.number] = row

    for entry in entries:
        told = entry.told
        event = told.get("event")
        if event == VALUES_PROLONGED:
            for path, name, expires in told["prolonged"]:
                held = standing.get(Placed(told["space"], path, name))
                if held is not None:
                    write(held._replace(expires=expires))
                    standing[place_of(held)] = held._replace(expires=expires)
            continue
        for number, placed in enumerate(names_in(told)):
            before = standing.pop(placed, None)
            if before is not None:
                write(before._replace(state=REMOVED if event == VALUE_REMOVED else SUPERSEDED, expires=NEVER))
            if event in _KEEPING:
                row = _row(entry, number, placed, before)
                standing[placed] = row
                write(row)
    return list(changed.values())


def _row(entry: KeptEntry, number: int, placed: Placed, before: PlaceRow | None) -> PlaceRow:
    at = entry.told["at"]
    goes_on = before is not None and before.expires > at
    return PlaceRow(
        entry_id=entry.entry_id,
        number=number,
        user_id=entry.user_id,
        session_id=entry.session_id,
        seq=entry.seq,
        space=placed.space,
        path=placed.path,
        name=placed.name,
        state=LIVE,
        made=before.made if before is not None and goes_on else entry.told.get("made", at),
        changed=at,
        expires=entry.told.get("expires", NEVER),
    )


def prefix_rows(row: PlaceRow) -> list[PrefixRow]:
    """The rows through which a search finds a live value."""
    return [PrefixRow(row.space, prefix, row.changed, row.entry_id) for prefix in prefixes_of(row.path)]


# -- rows ----------------------------------------------------------------------------------------------
#
# The stored rows of named data: written with the entries, recreated by a rebuild.


Where = tuple[Condition, ...]


def is_searched(space: str) -> bool:
    """True if a space is searchable, so that its rows are listed under every prefix."""
    return space.startswith("values_")


def vector_digest(entry_id: str, embedder: str, number: int, data: bytes) -> bytes:
    return digest(canonical_bytes([entry_id, embedder, number]) + data)


class SessionPlaces:
    """See `SessionFold`."""

    def extend(self, tx: Transaction, user_id: str, session_id: str, last_seq: int, written: int) -> None:
        if is_kept(user_id, session_id):
            _place(tx, list(_entries(tx, user_id, session_id, last_seq - written)))

    def rebuild(self, tx: Transaction, user_id: str) -> None:
        if not is_corpus(user_id):
            return
        sessions = select(tx, SESSIONS, (("user_id", "=", user_id),))
        sessions = [each for each in sessions if is_kept(user_id, each.session_id)]
        if not sessions:
            return
        for session in sessions:
            tx.do(Lock(("session", user_id, session.session_id)))
        held = [row.entry_id for row in stream(tx, PLACES, (("user_id", "=", user_id),), into=_Id)]
        for chunk in chunked(held):
            tx.do(Delete("prefixes", (("entry_id", "in", chunk),)))
        tx.do(Delete("places", (("user_id", "=", user_id),)))
        for session in sorted(sessions, key=lambda each: (each.created_at, each.session_id)):
            _place(tx, list(_entries(tx, user_id, session.session_id, 0)))
        for row in list(_unsound_vectors(tx, held)):
            this: Where = (("entry_id", "=", row.entry_id), ("embedder", "=", row.embedder))
            tx.do(Delete("place_vectors", this))

    def fault(self, reader: Reader, user_id: str, session_id: str, last_seq: int) -> tuple[int, str] | None:
        if not last_seq or not is_kept(user_id, session_id):
            return None
        of_session: Where = (("user_id", "=", user_id), ("session_id", "=", session_id))
        held = {(row.entry_id, row.number): row for row in stream(reader, PLACES, of_session)}
        made = {(row.entry_id, row.number): row for row in fold(_entries(reader, user_id, session_id, 0), {})}
        for key in sorted(held.keys() | made.keys()):
            row, other = held.get(key), made.get(key)
            if row == other or (row is not None and other is not None and _is_moved(reader, row, other)):
                continue
            here = row or other
            assert here is not None
            return here.seq, f"what its entry {here.seq} keeps does not stand where it should"
        return _prefix_fault(reader, held.values()) or _vector_fault(reader, held.values())


class _Id(NamedTuple):
    entry_id: str


class _Entry(NamedTuple):
    id: str
    user_id: str
    session_id: str
    seq: int
    kind: str
    content_hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None


def _entries(reader: Reader, user_id: str, session_id: str, after: int) -> Iterator[KeptEntry]:
    """The storage entries of a session after a number, without forgotten ones."""
    where: Where = (("user_id", "=", user_id), ("session_id", "=", session_id), ("seq", ">", after))
    for row in stream(reader, ENTRIES, where, into=_Entry, order=("user_id", "session_id", "seq")):
        body = read_body(row) if row.kind == "state_patch" else None
        if body is not None:
            yield KeptEntry(row.id, user_id, session_id, row.seq, body.get("metadata") or {})


def _place(tx: Transaction, entries: Sequence[KeptEntry]) -> None:
    """Write the rows that result from these entries."""
    asked = {placed for entry in entries for placed in names_in(entry.told)}
    standing: dict[Placed, PlaceRow] = {}
    for row in by_ids(tx, PLACES, sorted({placed.name for placed in asked}), column="name", where=(_IS_LIVE,)):
        if place_of(row) in asked:
            standing[place_of(row)] = row
    before = {row.entry_id for row in standing.values() if is_searched(row.space)}
    changed = fold(entries, standing)
    if not changed:
        return
    put(tx, PLACES, changed)
    for chunk in chunked(sorted(before & {row.entry_id for row in changed if row.state != LIVE})):
        tx.do(Delete("prefixes", (("entry_id", "in", chunk),)))
    fresh = [row for row in changed if row.state == LIVE and row.entry_id not in before and is_searched(row.space)]
    if fresh:
        put(tx, PREFIXES, [each for row in fresh for each in prefix_rows(row)])


_IS_LIVE: Condition = ("state", "=", LIVE)


def _is_moved(reader: Reader, row: PlaceRow, made: PlaceRow) -> bool:
    """True if a row differs from its session's result only because another session put the same name."""
    named: Where = (("name", "=", row.name), _IS_LIVE, ("space", "=", row.space), ("path", "=", row.path))
    other = first(reader, PLACES, named)
    is_elsewhere = other is not None and other.session_id != row.session_id
    if row.state == LIVE:  # it replaced a value from another session
        return made._replace(made=row.made) == row
    return is_elsewhere and made._replace(state=row.state, expires=row.expires) == row


def _prefix_fault(reader: Reader, held: Iterable[PlaceRow]) -> tuple[int, str] | None:
    searched = {row.entry_id: row for row in held if is_searched(row.space)}
    found: dict[str, list[tuple[object, ...]]] = {}
    for leading in by_ids(reader, PREFIXES, sorted(searched), column="entry_id"):
        found.setdefault(leading.entry_id, []).append(tuple(leading))
    for entry_id, row in searched.items():
        wanted = sorted(map(tuple, prefix_rows(row))) if row.state == LIVE else []
        if sorted(found.get(entry_id, []), key=repr) != sorted(wanted, key=repr):
            return row.seq, f"searches are not led to what its entry {row.seq} keeps"
    return None


def _unsound_vectors(reader: Reader, entry_ids: Sequence[str]) -> Iterator[PlaceVectorRow]:
    for row in by_ids(reader, PLACE_VECTORS, sorted(set(entry_ids)), column="entry_id"):
        if row.digest != vector_digest(row.entry_id, row.embedder, row.number, row.data):
            yield row


def _vector_fault(reader: Reader, held: Iterable[PlaceRow]) -> tuple[int, str] | None:
    seqs = {row.entry_id: row.seq for row in held}
    for row in _unsound_vectors(reader, list(seqs)):
        return seqs[row.entry_id], f"what searches compare with what its entry {seqs[row.entry_id]} keeps was altered"
    return None


Labels = tuple[str, ...]
Named = tuple[Labels, str]
"""A namespace, and a key in it."""
STATES = {LIVE: "live", SUPERSEDED: "superseded", REMOVED: "retracted"}
LEVELS_MAX = 96
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE = 256


class NewValue(NamedTuple):
    """A value to be put."""

    labels: Labels
    key: str
    value: Mapping[str, Any]
    index: Any = None
    ttl_minutes: float | None = None
    times: tuple[int, int] | None = None
    """When it was first put and when it changed, if that was earlier."""


class KeptValue(NamedTuple):
    """A value as it was put, and its place."""

    entry_id: str
    labels: Labels
    key: str
    value: dict[str, Any]
    index: Any
    ttl_minutes: float | None
    state: str
    made: int
    changed: int
    expires: int


def micros(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)


def moment(number: int) -> datetime:
    return _EPOCH + timedelta(microseconds=number)


class Values:
    """The values of one store. `user_at` is the namespace label that names the owning user. Thread-safe.

    With `user_id` only that user's values are visible: those under the user's label or, if no label names a user, in
    names of the user's own.
    """

    def __init__(
        self, ctx: Context, tenant_id: str, name: str, user_at: int | None = None, user_id: str | None = None
    ) -> None:
        if user_id is not None and (not user_id or is_reserved(user_id)):
            raise InvalidInput(f"{user_id!r:.60} is not the name of a user", path="$.user_id")
        self.ctx = ctx
        self.tenant_id = tenant_id
        self._is_own = user_id is not None and user_at is None
        self.space = space_of("values", name, user_at, *([user_id] if self._is_own else []))
        self._user_at = user_at
        self._user_id = user_id
        self._opening = admit(opening_draft({"task_type": "kept"}), ctx.policy.ledger)

    # -- writing --------------------------------------------------------------------------------------

    def write(
        self,
        puts: Sequence[NewValue],
        removed: Sequence[Named],
        now: datetime,
        features: Mapping[str, Sequence[Sequence[bytes]]] | None = None,
    ) -> None:
        """Put values and remove others, each name once, in one transaction. `features` are search features: by feature
        name, for each put, for each of its texts.
        """
        at = micros(now)
        drafts: list[tuple[Labels, EntryDraft]] = []
        for number, new in enumerate(puts):
            drafts.append((new.labels, self._draft(new, at + number)))
        drafts += [(labels, self._removal(labels, key, at)) for labels, key in removed]
        self._append(drafts, lambda tx, ids: _put_features(tx, ids[: len(puts)], features or {}))

    def prolong(self, values: Iterable[KeptValue], now: datetime) -> None:
        """Extend the lifetime of values, from now, by their original lifetime."""
        by_owner: dict[Labels, list[list[Any]]] = {}
        for each in values:
            path = path_of(each.labels)
            expires = micros(now + timedelta(minutes=each.ttl_minutes or 0))
            by_owner.setdefault(each.labels, []).append([path, name_of(path, each.key), expires])
        drafts = [
            (labels, _draft({"event": VALUES_PROLONGED, "space": self.space, "prolonged": told}))
            for labels, told in by_owner.items()
        ]
        self._append(drafts)

    def fill(self, features: Mapping[str, Sequence[bytes]], name: str) -> int:
        """Store search features for existing entries of this store; return their number."""

        def work(tx: Transaction) -> int:
            rows = by_ids(tx, PLACES, list(features), column="entry_id", where=(("state", "=", LIVE),))
            known = {row.entry_id for row in rows if row.space == self.space and self._is_of_user(row)}
            ids = [id_ for id_ in features if id_ in known]
            _put_features(tx, ids, {name: [features[id_] for id_ in ids]})
            return len(ids)

        return self.ctx.write(self.tenant_id, work)

    def _is_of_user(self, row: PlaceRow) -> bool:
        return self._user_id is None or row.user_id == owner_of(self.space, self._user_id)

    def erase(self, named: Sequence[Named]) -> list[Receipt]:
        """Erase all versions of values; returns the receipts."""
        by_owner: dict[str, list[str]] = {}
        for labels, rows in self._rows_of(named, states=tuple(STATES)).items():
            if rows:
                by_owner.setdefault(self._owner(labels[0]), []).extend(row.entry_id for row in rows)
        return [
            forget(self.ctx, self.tenant_id, Selector(user_id=owner, values=tuple(sorted(ids))))
            for owner, ids in by_owner.items()
        ]

    def _draft(self, new: NewValue, at: int) -> EntryDraft:
        value: Any = dict(new.value)
        if not nests_within(value, LEVELS_MAX):
            raise InvalidInput(f"nested deeper than {LEVELS_MAX} levels", path="$.value", hint="store it as a text")
        if self.ctx.policy.ledger.redact_secrets:
            from collections import Counter

            value = redact_value(value, Counter())
        path = path_of(new.labels)
        told: dict[str, Any] = {"event": VALUE_KEPT, "space": self.space, "path": list(new.labels), "at": at}
        told["names"] = [name_of(path, new.key)]
        if new.times is not None:
            told |= {"made": new.times[0], "at": new.times[1]}
        if new.ttl_minutes is not None:
            told["expires"] = at + round(new.ttl_minutes * 60_000_000)
        said = {"key": new.key, "value": value, "index": new.index, "ttl": new.ttl_minutes}
        return _draft(told, canonical_text(said))

    def _removal(self, labels: Labels, key: str, at: int) -> EntryDraft:
        told = {"event": VALUE_REMOVED, "space": self.space, "path": list(labels), "at": at}
        return _draft({**told, "names": [name_of(path_of(labels), key)]})

    def _append(self, drafts: Sequence[tuple[Labels, EntryDraft]], beside: Any = None) -> None:
        """Write drafts to the sessions of their owners, with their accompanying rows, in one transaction."""
        if not drafts:
            return
        by_holder: dict[str | None, list[int]] = {}
        for number, (labels, _) in enumerate(drafts):
            by_holder.setdefault(self._holder(labels), []).append(number)
        batches, ids = [], [""] * len(drafts)
        for holder, numbers in sorted(by_holder.items(), key=lambda each: each[0] or ""):
            scope = scope_of(self.tenant_id, self.space, holder, VALUES_SESSION)
            batch = prepare_batch(self.ctx, scope, [drafts[number][1] for number in numbers], self._opening)
            batches.append(batch)
            for number, id_ in zip(numbers, batch.ids, strict=True):
                ids[number] = id_

        def work(tx: Transaction) -> None:
            append_batches(self.ctx, tx, batches)
            if beside is not None:
                beside(tx, ids)

        self.ctx.write(self.tenant_id, work)

    def _holder(self, labels: Labels) -> str | None:
        """The owner of a namespace; refuse another user's if the store is restricted to one."""
        if self._is_own:
            return self._user_id
        at = self._user_at
        holder = labels[at] if at is not None and at < len(labels) else None
        if holder is not None and is_reserved(holder):
            raise InvalidInput(f"{holder!r:.60} is not the name of a user", path="$.namespace")
        if self._user_id is not None and holder != self._user_id:
            raise Forbidden(
                "this namespace is not the user's", path="$.namespace", hint=f"its label {at} names the user"
            )
        return holder

    def keeps_to(self, labels: Labels) -> str | None:
        """The owner to filter by below these labels, if the labels do not determine it."""
        if self._user_id is None or self._is_own or not self._is_open(labels):
            return None
        return owner_of(self.space, self._user_id)

    def _is_open(self, labels: Labels) -> bool:
        """True if namespaces below these labels may belong to other users."""
        return self._user_at is not None and len(labels) <= self._user_at

    def is_seen(self, labels: Labels) -> bool:
        """True if anything below these labels may be shown."""
        if self._user_id is None or self._is_own or self._is_open(labels):
            return True
        return self._user_at is not None and labels[self._user_at] == self._user_id

    def _owner(self, labels: Labels) -> str:
        return owner_of(self.space, self._holder(labels))

    # -- reading --------------------------------------------------------------------------------------

    def get_many(self, named: Sequence[Named]) -> dict[Named, KeptValue]:
        """The live values under these names."""

        def work(reader: Reader) -> dict[Named, KeptValue]:
            rows = self._rows_in(reader, named, (LIVE,))
            kept = {
                each.entry_id: each for each in self.read(reader, [row for found in rows.values() for row in found])
            }
            return {name: kept[found[0].entry_id] for name, found in rows.items() if found}

        return self.ctx.engine.read(self.tenant_id, work)

    def history(self, labels: Labels, key: str) -> list[KeptValue]:
        """Every value ever kept under a name and not erased, oldest first."""

        def work(reader: Reader) -> list[KeptValue]:
            rows = self._rows_in(reader, [(labels, key)], tuple(STATES))[labels, key]
            return sorted(self.read(reader, rows), key=lambda each: each.changed)

        return self.ctx.engine.read(self.tenant_id, work)

    def expired(self, now: datetime) -> list[KeptValue]:
        """The values past their lifetime."""
        at = micros(now)
        owner = self.keeps_to(())
        where: tuple[Condition, ...] = (("space", "=", self.space), ("expires", "<", at))

        def work(reader: Reader) -> list[KeptValue]:
            if owner is None:
                return list(self.read(reader, select(reader, PLACES, where)))
            return list(self.read(reader, [row for row in self.own_rows(reader, owner, ()) if row.expires < at]))

        return self.ctx.engine.read(self.tenant_id, work)

    def namespaces(self, prefix: Labels, now: datetime) -> Iterator[Labels]:
        """The non-empty namespaces below a prefix, in order."""
        owner = self.keeps_to(prefix)
        if owner is not None or not self.is_seen(prefix):
            yield from self._own_namespaces(owner, prefix, micros(now))
            return
        start = path_of(prefix)
        last, bound, at = None, after_path(start), micros(now)
        while True:
            seek: tuple[Condition, ...] = (("path", ">=", start),) if last is None else (("path", ">", last),)
            where = (("space", "=", self.space), ("state", "=", LIVE), *seek, ("path", "<", bound))
            page = self.ctx.engine.read(self.tenant_id, lambda reader, where=where: _paths(reader, where))  # type: ignore[misc]
            shown = dict.fromkeys(row.path for row in page if row.expires > at)
            for path in shown:
                yield labels_of(path)
            if len(page) < _PAGE:
                return
            last = page[-1].path
            if last not in shown and self._stands(last, at):
                yield labels_of(last)

    def _stands(self, path: str, at: int) -> bool:
        """True if a namespace still holds a live value, given that a page showed only expired ones."""
        where: tuple[Condition, ...] = (("space", "=", self.space), ("state", "=", LIVE), ("path", "=", path))
        rows = self.ctx.engine.read(self.tenant_id, lambda reader: select(reader, PLACES, where, into=_Path))
        return any(row.expires > at for row in rows)

    def _own_namespaces(self, owner: str | None, prefix: Labels, at: int) -> list[Labels]:
        if owner is None:
            return []
        rows = self.ctx.engine.read(self.tenant_id, lambda reader: self.own_rows(reader, owner, prefix))
        return [labels_of(path) for path in sorted({row.path for row in rows if row.expires > at})]

    def own_rows(self, reader: Reader, owner: str, labels: Labels) -> list[PlaceRow]:
        """The rows of one owner below labels, found by owner: other owners' data costs nothing."""
        path = path_of(labels)
        where: tuple[Condition, ...] = (("user_id", "=", owner), ("session_id", "=", VALUES_SESSION))
        rows = select(reader, PLACES, where)
        return [row for row in rows if row.state == LIVE and row.space == self.space and row.path.startswith(path)]

    def _rows_of(self, named: Sequence[Named], *, states: tuple[int, ...]) -> dict[Named, list[PlaceRow]]:
        return self.ctx.engine.read(self.tenant_id, lambda reader: self._rows_in(reader, named, states))

    def _rows_in(self, reader: Reader, named: Sequence[Named], states: tuple[int, ...]) -> dict[Named, list[PlaceRow]]:
        asked: dict[tuple[str, str], Named] = {}
        for labels, key in named:
            path = path_of(labels)
            if self.is_seen(labels) and self.keeps_to(labels) is None:
                asked[path, name_of(path, key)] = (labels, key)
        found: dict[Named, list[PlaceRow]] = {name: [] for name in named}
        for row in by_ids(reader, PLACES, [name for _, name in asked], column="name", where=(("state", "in", states),)):
            name = asked.get((row.path, row.name))
            if name is not None and row.space == self.space:
                found[name].append(row)
        return found

    def read(self, reader: Reader, rows: Sequence[PlaceRow]) -> Iterator[KeptValue]:
        """The values of these rows, in their order."""
        entries = {row.id: row for row in by_ids(reader, ENTRIES, [row.entry_id for row in rows])}
        for row in rows:
            yield _value(reader, self.tenant_id, row, entries.get(row.entry_id))

    def read_ids(self, reader: Reader, entry_ids: Sequence[str], labels: Labels = ()) -> dict[str, KeptValue]:
        """The live values of these entries by id, restricted to those below these labels."""
        rows = [row for row in by_ids(reader, PLACES, entry_ids, column="entry_id") if row.state == LIVE]
        path = path_of(labels)
        for row in rows:
            if row.space != self.space or not row.path.startswith(path):
                raise StoreDamaged(
                    f"a search was led to the event {row.entry_id}, which stands elsewhere",
                    details={"id": row.entry_id},
                )
        return {each.entry_id: each for each in self.read(reader, rows)}


class _Path(NamedTuple):
    path: str
    expires: int


def _paths(reader: Reader, where: tuple[Condition, ...]) -> list[_Path]:
    return select(reader, PLACES, where, into=_Path, order=("path", "name"), limit=_PAGE)


def _draft(told: Mapping[str, Any], content: str = "") -> EntryDraft:
    return EntryDraft(kind="state_patch", role="assistant", content=content, metadata=dict(told))


def _value(reader: Reader, tenant_id: str, row: PlaceRow, entry: EntryRow | None) -> KeptValue:
    """The value in an entry, checked against the row that led to it."""
    body = None
    if entry is not None:
        check_header(tenant_id, entry)
        body = read_body(entry)
    if entry is None or body is None or not _is_told(body.get("metadata") or {}, row):
        raise StoreDamaged(
            f"the event {row.entry_id} does not keep what its row says", details={"id": row.entry_id, "seq": row.seq}
        )
    text = body["content"] if "blob" not in body else blob_text(reader, entry.id, body["blob"], entry.salt)
    said = read_canonical(text)
    return KeptValue(
        row.entry_id,
        labels_of(row.path),
        said["key"],
        said["value"],
        said["index"],
        said["ttl"],
        STATES[row.state],
        row.made,
        row.changed,
        row.expires,
    )


def _is_told(told: Mapping[str, Any], row: PlaceRow) -> bool:
    return (
        told.get("event") == VALUE_KEPT
        and told["space"] == row.space
        and path_of(told["path"]) == row.path
        and told["names"] == [row.name]
        and told["at"] == row.changed
    )


def _put_features(tx: Transaction, ids: Sequence[str], features: Mapping[str, Sequence[Sequence[bytes]]]) -> None:
    rows = [
        PlaceVectorRow(id_, embedder, number, vector_digest(id_, embedder, number, data), data)
        for embedder, made in features.items()
        for id_, texts in zip(ids, made, strict=True)
        for number, data in (enumerate(texts) if texts else [(-1, b"")])
    ]
    if rows:
        put(tx, PLACE_VECTORS, rows)
