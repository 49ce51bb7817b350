"""An engine whose readers see through: content that lies outside stands in its row as if it lay there.

What reads rows does not know where content lies: a search, a packet, an export, a verification. Writing is not
touched: what goes out was sent before the transaction (`store.objects.sending`). Nothing is fetched within a
transaction (`store.objects.fetching`), but in long views. An object that is missing leaves the row without content, and
one that was altered with bytes that do not hash to its name: who reads says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

from muniment.core.ports.engine import Engine, Find, Get, Op, Reader, Row, Select, Transaction
from muniment.core.ports.objects import ARCHIVE_GONE, ObjectRow
from muniment.core.ports.rows import by_ids, get, select
from muniment.core.ports.schema import BLOBS, ENTRIES, OBJECTS, BlobRow, column_names
from muniment.store.bulk.gathering import Gathered
from muniment.store.objects.archives import MARK, marker_of
from muniment.store.objects.fetching import Brought, Fetcher, Wanted
from muniment.store.objects.outside import Outside

__all__ = ["OutsideEngine", "OutsideReader", "near", "sees_through"]

R = TypeVar("R")

_BLOB, _ENTRY = BLOBS.name, ENTRIES.name
_BLOB_COLUMNS, _ENTRY_COLUMNS = column_names(BLOBS), column_names(ENTRIES)
_BODY, _HASH = _ENTRY_COLUMNS.index("body"), _BLOB_COLUMNS.index("hash")
_USES = ("blob", "archive", "rewrite")
_NAMED = re.compile(r'"blob":"([0-9a-f]{64})"')
_STREAM_ROWS = 64
"""Rows of a stream that are looked through at once for what lies outside: so many at first, and twice as many each time
that the work was begun again, so that a long stream is not begun again for each window of it."""
_STREAM_ROWS_MAX = 4_096
_NOTED_MAX = 10_000


class _Salt(NamedTuple):
    id: str
    salt: bytes | None


class OutsideReader:
    """A view of one tenant, with what lies outside filled in."""

    def __init__(self, inner: Reader, held: Brought) -> None:
        self.inner = inner
        self._held = held
        self._rows: dict[bytes, ObjectRow | None] = {}
        """Archives that were asked for: a transaction that writes one anew reads none of it after that."""
        self._noted: dict[bytes, None] = {}
        """Names that stood in rows so far, and are likely to be asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def do(self, op: Op[R]) -> R:
        if isinstance(op, Get | Select | Find) and op.table in (_BLOB, _ENTRY):
            return cast("R", self._see(op))
        return self.inner.do(op)

    def stream(self, asked: Select) -> Iterator[Row]:
        if asked.table == _ENTRY:
            return self._streamed(self.inner.stream(asked), asked.columns)
        if asked.table == _BLOB and "data" in (asked.columns or _BLOB_COLUMNS):
            return map(_narrower(asked.columns), map(self._filled_blob, self.inner.stream(_whole(asked))))
        return self.inner.stream(asked)

    def _see(self, op: Get | Select | Find) -> Any:
        if isinstance(op, Get):
            row = self.inner.do(op)
            if row is None:
                return None
            return self._filled_blob(row) if op.table == _BLOB else self._filled([row], ())[0]
        if op.table == _BLOB:
            return self._blobs(op) if "data" in (op.columns or _BLOB_COLUMNS) else self.inner.do(op)
        return self._filled(self.inner.do(op), op.columns)

    # -- blobs ----------------------------------------------------------------------------------------

    def _blobs(self, op: Select | Find) -> list[Row]:
        """Asked for whole, since the rest of a row says where its content lies; then cut to what was asked."""
        whole = Find(op.table, op.by, op.keys) if isinstance(op, Find) else _whole(op)
        rows = self.inner.do(whole)
        for row in rows:
            self._note(cast("bytes", row[_HASH]))
        return [*map(_narrower(op.columns), map(self._filled_blob, rows))]

    def _filled_blob(self, row: Row) -> Row:
        blob = BlobRow(*row)  # type: ignore[arg-type]
        if blob.data is not None:
            return row
        held = get(self.inner, OBJECTS, (blob.hash,))
        if held is None or held.use != "blob":
            return row
        salts = select(self.inner, ENTRIES, (("id", "=", blob.entry_id),), into=_Salt)
        wanted = Wanted(held, salts[0].salt if salts else None)
        return blob._replace(data=self._held.read(wanted, self._others))

    # -- entries --------------------------------------------------------------------------------------

    def _streamed(self, rows: Iterator[Row], columns: Sequence[str]) -> Iterator[Row]:
        """Each is filled in when it is asked for: who stops early needs nothing of the rest."""
        fill, place = self._filler(columns)
        if place is None:
            yield from rows
            return
        window = min(_STREAM_ROWS << self._held.restarts, _STREAM_ROWS_MAX)
        while some := list(islice(rows, window)):
            self._note_bodies(some, place)
            yield from map(fill, some)

    def _filled(self, rows: list[Row], columns: Sequence[str]) -> list[Row]:
        fill, place = self._filler(columns)
        if place is not None:
            self._note_bodies(rows, place)
        return list(map(fill, rows))

    def _filler(self, columns: Sequence[str]) -> tuple[Callable[[Row], Row], int | None]:
        """What fills in a row of these columns, and where its body stands; None where it has none."""
        names = columns or _ENTRY_COLUMNS
        if "body" not in names:
            return lambda row: row, None
        place = _BODY if not columns else names.index("body")

        def fill(row: Row) -> Row:
            body = row[place]
            if not isinstance(body, str) or not body.startswith(MARK):
                return row
            return (*row[:place], self._archived(body), *row[place + 1 :])

        return fill, place

    def _archived(self, written: str) -> str:
        """The body that stands behind a marker."""
        marker = marker_of(written)
        if marker is not None and marker.name not in self._rows:
            self._rows[marker.name] = get(self.inner, OBJECTS, (marker.name,))
        row = None if marker is None else self._rows[marker.name]
        if marker is None or row is None or row.use not in ("archive", "rewrite"):
            return ARCHIVE_GONE
        held = self._held.read(Wanted(row), self._others)
        found = None if held is None else held.get(str(marker.number))
        return ARCHIVE_GONE if found is None else str(found[1])

    # -- what may be asked for next -------------------------------------------------------------------

    def _note(self, name: bytes) -> None:
        if not self._held.is_patient and len(self._noted) < _NOTED_MAX:
            self._noted[name] = None

    def _note_bodies(self, rows: Sequence[Row], place: int) -> None:
        for row in rows:
            body = row[place]
            if not isinstance(body, str):
                continue
            if body.startswith(MARK):
                marker = marker_of(body)
                if marker is not None:
                    self._note(marker.name)
            elif '"blob":"' in body and (named := _NAMED.search(body)) is not None:
                self._note(bytes.fromhex(named[1]))

    def _others(self) -> list[Wanted]:
        """As many as are to be fetched ahead, of those that were named and are not at hand."""
        ahead, found = self._held.ahead, list[ObjectRow]()
        if not ahead:
            return []
        for row in by_ids(self.inner, OBJECTS, list(self._noted), column="name", where=(("use", "in", _USES),)):
            if len(found) >= ahead:
                break
            if not self._held.has(row.held_at):
                found.append(row)
        ids = [row.subject for row in found if row.use == "blob"]
        salts = {each.id: each.salt for each in by_ids(self.inner, ENTRIES, ids, into=_Salt)}
        return [Wanted(row, salts.get(row.subject) if row.use == "blob" else None) for row in found]


def _whole(op: Select) -> Select:
    return Select(op.table, op.where, op.order, op.after, op.descending, op.limit)


def _narrower(columns: Sequence[str]) -> Callable[[Row], Row]:
    """What cuts a whole row of `blobs` to these columns."""
    places = [_BLOB_COLUMNS.index(name) for name in columns or _BLOB_COLUMNS]
    return lambda row: tuple(row[place] for place in places)


class OutsideEngine:
    """An engine with its views replaced; everything else is the engine's own."""

    def __init__(self, engine: Engine, outside: Outside) -> None:
        self.inner = engine
        self._fetcher = Fetcher(outside)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, tenant_id: str, work: Callable[[Transaction], R]) -> R:
        return self._fetcher.call(
            tenant_id, lambda held: self.inner.write(tenant_id, lambda tx: work(OutsideReader(tx, held)))
        )

    def read(self, tenant_id: str, work: Callable[[Reader], R]) -> R:
        return self._fetcher.call(
            tenant_id, lambda held: self.inner.read(tenant_id, lambda reader: work(OutsideReader(reader, held)))
        )

    @contextmanager
    def snapshot(self, tenant_id: str) -> Iterator[Reader]:
        with self.inner.snapshot(tenant_id) as reader:
            yield OutsideReader(reader, self._fetcher.view(tenant_id))


def near(reader: Reader) -> Reader:
    """The same view, of rows as they are: nothing outside is asked."""
    if isinstance(reader, Gathered):
        reader.flush()  # what it holds back is part of what it sees
        return near(reader.inner)
    return reader.inner if isinstance(reader, OutsideReader) else reader


def sees_through(reader: Reader) -> bool:
    return isinstance(reader.inner if isinstance(reader, Gathered) else reader, OutsideReader)
