"""An engine whose readers see through: content that lies outside stands in its row as if it lay there.

What reads rows does not know where content lies: a search, a packet, an export, a verification. Writing is not
touched: what goes out was sent before the transaction (`store.objects.sending`). An object that is missing leaves the
row without content, and one that was altered with bytes that do not hash to its name: who reads says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, cast

from muniment.core.ports.engine import Engine, Find, Get, Op, Reader, Row, Select, Transaction
from muniment.core.ports.rows import get, select
from muniment.core.ports.schema import BLOBS, ENTRIES, OBJECTS, BlobRow, column_names
from muniment.store.objects.archives import MARK, Archives
from muniment.store.objects.outside import Outside

__all__ = ["OutsideEngine", "OutsideReader", "near", "sees_through"]

R = TypeVar("R")

_BLOB, _ENTRY = BLOBS.name, ENTRIES.name
_BLOB_COLUMNS, _ENTRY_COLUMNS = column_names(BLOBS), column_names(ENTRIES)
_BODY = _ENTRY_COLUMNS.index("body")


class _Salt(NamedTuple):
    salt: bytes | None


class OutsideReader:
    """A view of one tenant, with what lies outside filled in."""

    def __init__(self, inner: Reader, tenant_id: str, outside: Outside) -> None:
        self.inner = inner
        self._tenant_id = tenant_id
        self._outside = outside
        self._archives = Archives(inner, tenant_id, outside)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def do(self, op: Op[R]) -> R:
        if isinstance(op, Get | Select | Find) and op.table in (_BLOB, _ENTRY):
            return cast("R", self._see(op))
        return self.inner.do(op)

    def stream(self, asked: Select) -> Iterator[Row]:
        if asked.table == _ENTRY:
            return map(self._filler(asked.columns), self.inner.stream(asked))
        if asked.table == _BLOB and "data" in (asked.columns or _BLOB_COLUMNS):
            return map(_narrower(asked.columns), map(self._filled_blob, self.inner.stream(_whole(asked))))
        return self.inner.stream(asked)

    def _see(self, op: Get | Select | Find) -> Any:
        if isinstance(op, Get):
            row = self.inner.do(op)
            if row is None:
                return None
            return self._filled_blob(row) if op.table == _BLOB else self._filler(())(row)
        if op.table == _BLOB:
            return self._blobs(op) if "data" in (op.columns or _BLOB_COLUMNS) else self.inner.do(op)
        return list(map(self._filler(op.columns), self.inner.do(op)))

    # -- blobs ----------------------------------------------------------------------------------------

    def _blobs(self, op: Select | Find) -> list[Row]:
        """Asked for whole, since the rest of a row says where its content lies; then cut to what was asked."""
        whole = Find(op.table, op.by, op.keys) if isinstance(op, Find) else _whole(op)
        return [*map(_narrower(op.columns), map(self._filled_blob, self.inner.do(whole)))]

    def _filled_blob(self, row: Row) -> Row:
        blob = BlobRow(*row)  # type: ignore[arg-type]
        if blob.data is not None:
            return row
        held = get(self.inner, OBJECTS, (blob.hash,))
        if held is None or held.use != "blob":
            return row
        salts = select(self.inner, ENTRIES, (("id", "=", blob.entry_id),), into=_Salt)
        data = self._outside.blob(self._tenant_id, held, salts[0].salt if salts else None)
        return blob._replace(data=data)

    # -- entries --------------------------------------------------------------------------------------

    def _filler(self, columns: Sequence[str]) -> Callable[[Row], Row]:
        names = columns or _ENTRY_COLUMNS
        if "body" not in names:
            return lambda row: row
        place = _BODY if not columns else names.index("body")

        def fill(row: Row) -> Row:
            body = row[place]
            if not isinstance(body, str) or not body.startswith(MARK):
                return row
            return (*row[:place], self._archives.body(body), *row[place + 1 :])

        return fill


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
        self._outside = outside

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, tenant_id: str, work: Callable[[Transaction], R]) -> R:
        return self.inner.write(tenant_id, lambda tx: work(OutsideReader(tx, tenant_id, self._outside)))

    def read(self, tenant_id: str, work: Callable[[Reader], R]) -> R:
        return self.inner.read(tenant_id, lambda reader: work(OutsideReader(reader, tenant_id, self._outside)))

    @contextmanager
    def snapshot(self, tenant_id: str) -> Iterator[Reader]:
        with self.inner.snapshot(tenant_id) as reader:
            yield OutsideReader(reader, tenant_id, self._outside)


def near(reader: Reader) -> Reader:
    """The same view, of rows as they are: nothing outside is asked."""
    return reader.inner if isinstance(reader, OutsideReader) else reader


def sees_through(reader: Reader) -> bool:
    return isinstance(reader, OutsideReader)
