"""Where everything that is kept stands, in storage: written with the entries, made again by a rebuild."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.canonical import canonical_bytes, digest
from muniment.core.ports.engine import Condition, Delete, Lock
from muniment.core.ports.rows import by_ids, chunked, first, put, select, stream
from muniment.core.ports.schema import (
    ENTRIES,
    LIVE,
    PLACE_VECTORS,
    PLACES,
    PREFIXES,
    SESSIONS,
    PlaceRow,
    PlaceVectorRow,
)
from muniment.core.scope import is_corpus
from muniment.memory.kept.fold import KeptEntry, Placed, fold, names_in, place_of, prefix_rows
from muniment.memory.kept.names import is_kept
from muniment.store.ledger import read_body

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction

__all__ = ["SessionPlaces", "is_searched", "vector_digest"]

Where = tuple[Condition, ...]


def is_searched(space: str) -> bool:
    """Whether searches go through a space, so that its rows lead from every prefix."""
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
    """The entries of a session behind a number that tell what is kept, and were not forgotten."""
    where: Where = (("user_id", "=", user_id), ("session_id", "=", session_id), ("seq", ">", after))
    for row in stream(reader, ENTRIES, where, into=_Entry, order=("user_id", "session_id", "seq")):
        body = read_body(row) if row.kind == "state_patch" else None
        if body is not None:
            yield KeptEntry(row.id, user_id, session_id, row.seq, body.get("metadata") or {})


def _place(tx: Transaction, entries: Sequence[KeptEntry]) -> None:
    """Write where everything stands after these entries."""
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
    """Whether a row differs from what its session gives by what another session put under the same name."""
    named: Where = (("name", "=", row.name), _IS_LIVE, ("space", "=", row.space), ("path", "=", row.path))
    other = first(reader, PLACES, named)
    is_elsewhere = other is not None and other.session_id != row.session_id
    if row.state == LIVE:  # it took the place of what another session had put
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
