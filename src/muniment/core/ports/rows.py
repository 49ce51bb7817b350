"""Rows by name: reading and writing tables as the row classes that `core.ports.schema` declares.

Code outside the engines queries through these functions, so that a row's columns have names and types everywhere. Each
builds one operation of `core.ports.engine` (several for many ids); none decides anything.

`into` narrows a query to the columns that another NamedTuple has as fields, in its order. Stored rows are trusted to
match the declaration: engines check them on writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from muniment.core.ports.engine import (
    Advance,
    Condition,
    Find,
    Get,
    Insert,
    Put,
    Reader,
    Remove,
    Row,
    Select,
    Transaction,
)
from muniment.core.ports.schema import Table, column_names, table
from muniment.errors import InvalidInput

__all__ = [
    "ASKED_MAX",
    "advance",
    "by_ids",
    "chunked",
    "find",
    "first",
    "get",
    "insert",
    "put",
    "remove",
    "select",
    "stream",
    "stream_texts",
    "texts",
]

ASKED_MAX = 500
"""Number of ids in one query."""

R = TypeVar("R", bound=tuple[Any, ...])
P = TypeVar("P", bound=tuple[Any, ...])
T = TypeVar("T")
AnyTable = Table[Any]
Where = tuple[Condition, ...]

if TYPE_CHECKING:  # the other options of a query, as in `Select`

    class Order(TypedDict, total=False):
        order: tuple[str, ...]
        descending: bool

    class Page(Order, total=False):
        after: Row | None
        limit: int | None

    class Among(TypedDict, total=False):
        column: str
        where: Where
        order: tuple[str, ...]


@overload
def select(reader: Reader, spec: Table[R], where: Where = (), **asked: Unpack[Page]) -> list[R]: ...
@overload
def select(reader: Reader, spec: AnyTable, where: Where = (), *, into: type[P], **asked: Unpack[Page]) -> list[P]: ...
def select(reader: Reader, spec: AnyTable, where: Where = (), **asked: Any) -> list[Any]:
    """Return the rows that meet all conditions, as `Select` does."""
    make, question = _question(spec, where, **asked)
    return list(map(make, reader.do(question)))


@overload
def stream(reader: Reader, spec: Table[R], where: Where = (), **asked: Unpack[Page]) -> Iterator[R]: ...
@overload
def stream(
    reader: Reader, spec: AnyTable, where: Where = (), *, into: type[P], **asked: Unpack[Page]
) -> Iterator[P]: ...
def stream(reader: Reader, spec: AnyTable, where: Where = (), **asked: Any) -> Iterator[Any]:
    """Stream the rows that meet all conditions, in flat memory."""
    make, question = _question(spec, where, **asked)
    return map(make, reader.stream(question))


@overload
def first(reader: Reader, spec: Table[R], where: Where = (), **asked: Unpack[Order]) -> R | None: ...
@overload
def first(reader: Reader, spec: AnyTable, where: Where = (), *, into: type[P], **asked: Unpack[Order]) -> P | None: ...
def first(reader: Reader, spec: AnyTable, where: Where = (), **asked: Any) -> Any:
    """Return the first row that meets all conditions; None where there is none."""
    make, question = _question(spec, where, limit=1, **asked)
    rows = reader.do(question)
    return make(rows[0]) if rows else None


@overload
def by_ids(reader: Reader, spec: Table[R], ids: Sequence[Any], **asked: Unpack[Among]) -> Iterator[R]: ...
@overload
def by_ids(
    reader: Reader, spec: AnyTable, ids: Sequence[Any], *, into: type[P], **asked: Unpack[Among]
) -> Iterator[P]: ...
def by_ids(
    reader: Reader, spec: AnyTable, ids: Sequence[Any], *, column: str = "id", where: Where = (), **asked: Any
) -> Iterator[Any]:
    """Yield the rows whose column is one of any number of ids; sorted within each portion."""
    for portion in chunked(ids):
        make, question = _question(spec, ((column, "in", portion), *where), **asked)
        yield from map(make, reader.do(question))


def get(reader: Reader, spec: Table[R], key: Row) -> R | None:
    """Return the row with this primary key."""
    row = reader.do(Get(spec.name, key))
    return None if row is None else _maker(spec.row)(row)


def find(reader: Reader, spec: AnyTable, by: tuple[str, ...], keys: Sequence[Row], *, into: type[P]) -> Iterator[P]:
    """Yield the rows with one of any number of values of a unique key; sorted within each portion."""
    make, columns = _maker(into), _columns(spec.name, into)
    for portion in chunked(keys):
        yield from map(make, reader.do(Find(spec.name, by, portion, columns)))


def texts(reader: Reader, spec: AnyTable, column: str, where: Where = (), **asked: Unpack[Page]) -> list[str]:
    """Return one never-null text column of the rows that meet all conditions."""
    question = Select(spec.name, where, columns=(_always_text(spec, column),), **asked)
    return [row[0] for row in reader.do(question)]  # type: ignore[misc]


def stream_texts(reader: Reader, spec: AnyTable, column: str, where: Where = ()) -> Iterator[str]:
    """Stream one never-null text column, in flat memory."""
    question = Select(spec.name, where, columns=(_always_text(spec, column),))
    return (row[0] for row in reader.stream(question))  # type: ignore[misc]


def chunked(ids: Sequence[T], size: int = ASKED_MAX) -> Iterator[tuple[T, ...]]:
    """Split into portions of at most this size, in order."""
    for at in range(0, len(ids), size):
        yield tuple(ids[at : at + size])


def insert(tx: Transaction, spec: Table[R], rows: Sequence[R]) -> None:
    """Add rows; raises `KeyTaken` where a key exists."""
    tx.do(Insert(spec.name, rows))


def put(tx: Transaction, spec: Table[R], rows: Sequence[R]) -> None:
    """Add rows, replacing those with the same primary key."""
    tx.do(Put(spec.name, rows))


def advance(tx: Transaction, spec: Table[R], rows: Sequence[R]) -> list[R]:
    """Add the numbers of rows to those of the rows with the same keys; returns the sums (`Advance`)."""
    return list(map(_maker(spec.row), tx.do(Advance(spec.name, rows))))


def remove(tx: Transaction, spec: AnyTable, by: tuple[str, ...], keys: Sequence[Row]) -> int:
    """Remove the rows with one of any number of values of a unique key; returns how many."""
    return sum(tx.do(Remove(spec.name, by, portion)) for portion in chunked(keys))


def _question(spec: AnyTable, where: Where, *, into: Any = None, **asked: Any) -> tuple[Callable[[Row], Any], Select]:
    """Return the operation, and the function that makes a row of each result."""
    row: Any = spec.row if into is None else into
    return _maker(row), Select(spec.name, where, columns=() if into is None else _columns(spec.name, row), **asked)


@cache
def _maker(row: Any) -> Callable[[Row], Any]:
    """Return a row maker, twice as fast as calling the class: the engine returns the right number of columns."""
    return partial(tuple.__new__, row)


@cache
def _columns(name: str, into: Any) -> tuple[str, ...]:
    """Return the columns to name in a Select for these fields: none where they are all columns in order."""
    fields: tuple[str, ...] = into._fields
    return () if fields == column_names(table(name)) else fields


def _always_text(spec: AnyTable, name: str) -> str:
    if not any(column.name == name and column.type == "text" and not column.nullable for column in spec.columns):
        raise InvalidInput(f"table {spec.name} has no column {name!r} that always holds a text")
    return name
