"""SQL of every operation, and one tenant seen through one transaction: what SQLite and PostgreSQL share.

`Statements` builds the text of each shape of question once. Every statement names the shard of its tenant, always as
its first condition or column, and takes it as a parameter; values never enter the text. `SqlReader` and
`SqlTransaction` encode rows and conditions (`codec`) and decode results; a dialect defines how a statement is run, how
rows are streamed and what a lock is. The engine begins and ends transactions; nothing here commits.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from types import TracebackType
from typing import Any, ClassVar, Protocol, TypeVar, cast

from muniment.core.limits import CURRENT, Cancellation
from muniment.core.ports.engine import (
    Advance,
    Condition,
    Count,
    Delete,
    Find,
    Get,
    Insert,
    KeyTaken,
    Lock,
    LockAll,
    Op,
    Patch,
    Put,
    Remove,
    Row,
    Select,
    Value,
)
from muniment.errors import InvalidInput, MunimentError, StorageFailure, StoreDamaged
from muniment.store.engines.checks import Shape, check_advance, check_key, check_rows, shape_of
from muniment.store.engines.codec import (
    NO_NAME,
    NameBook,
    NameGiver,
    NameLookup,
    RowCoder,
    shard_of,
    value_encoder,
)
from muniment.store.engines.layout import NAMES_TABLE, TENANTS_SHARD

__all__ = [
    "NestedCallGuard",
    "Question",
    "SqlReader",
    "SqlTransaction",
    "Statements",
    "View",
    "bracketed",
    "key_values",
    "leading_name",
    "quoted",
    "without_bound",
]

# -- statements ---------------------------------------------------------------------------------------
#
# Two dialects differ in their placeholder, in how a name is written and in how `in` is written.

Question = tuple[str, list[Any]]
"""A statement and its parameters."""

_ARRAY = {"text": "text[]", "int": "bigint[]", "bytes": "bytea[]"}
_OF_SOMEBODY = frozenset({"user_id", "session_id", "run_id", "owner"})
"""Columns that select one owner's rows: few of a tenant's rows share a value."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def bracketed(name: str) -> str:
    """Quote a name for SQLite with brackets: it reads an unknown name in double quotes as a text, so that every row
    would seem to hold the column's name and conditions would compare constants.
    """
    return f"[{name}]"


class Statements:
    """The statements of one store. `arrays`: `in` is one array parameter (PostgreSQL), else a list of marks."""

    def __init__(self, *, mark: str, schema: str | None = None, arrays: bool = False) -> None:
        self._mark = mark
        self._name = quoted if arrays else bracketed
        self._prefix = f"{quoted(schema)}." if schema else ""
        self._arrays = arrays
        self.packs = not arrays
        """Compress long texts on this side."""
        self._texts: dict[Any, str] = {}
        self._coders: dict[tuple[str, tuple[str, ...]], RowCoder] = {}
        names = f"{self._prefix}{self._name(NAMES_TABLE)}"
        shard, number, name = map(self._name, ("shard", "number", "name"))
        self.name_number = f"SELECT {number} FROM {names} WHERE {shard} = {mark} AND {name} = {mark}"
        self.names_from = (
            f"SELECT {number}, {name} FROM {names} WHERE {shard} = {mark} AND {number} >= {mark}"
            f" ORDER BY {number} LIMIT {mark}"
        )
        self.new_name = (
            f"INSERT INTO {names} ({shard}, {name}) VALUES ({mark}, {mark})"
            f" ON CONFLICT ({shard}, {name}) DO NOTHING RETURNING {number}"
        )
        """For servers, which assign the numbers themselves."""

    def coder(self, shape: Shape, columns: tuple[str, ...] = ()) -> RowCoder:
        """Return the coder of rows with these columns, or with all."""
        key = (shape.spec.name, columns)
        coder = self._coders.get(key)
        if coder is None:
            named = [shape.column[name] for name in shape.output(columns)]
            coder = self._coders[key] = RowCoder(named, packs=self.packs)
        return coder

    def table(self, shape: Shape) -> str:
        return self._prefix + self._name(shape.spec.name)

    # -- rows by key

    def get(self, shape: Shape) -> str:
        return self._kept(("get", shape.spec.name), lambda: self._get(shape))

    def insert(self, shape: Shape) -> str:
        """Parameters: the shard, then the stored row."""
        return self._kept(("insert", shape.spec.name), lambda: self._insert(shape))

    def put(self, shape: Shape) -> str:
        """Parameters: the shard, then the stored row."""
        return self._kept(("put", shape.spec.name), lambda: self._insert(shape) + self.on_conflict(shape))

    def on_conflict(self, shape: Shape) -> str:
        key = ", ".join(map(self._name, ("shard", *shape.spec.key)))
        rest = [self._name(name) for name in shape.names if name not in shape.spec.key]
        if not rest:
            return f" ON CONFLICT ({key}) DO NOTHING"
        return f" ON CONFLICT ({key}) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in rest)

    def advance(self, shape: Shape, size: int) -> str:
        """Parameters: for each row, the shard, then the stored row."""
        return self._kept(("advance", shape.spec.name, size), lambda: self._advance(shape, size))

    def _advance(self, shape: Shape, size: int) -> str:
        table, name = self._name(shape.spec.name), self._name
        marks = f", ({', '.join([self._mark] * (len(shape.names) + 1))})" * (size - 1)
        key = ", ".join(map(name, ("shard", *shape.spec.key)))
        sums = ", ".join(
            f"{name(each)} = {table}.{name(each)} + excluded.{name(each)}"
            for each in shape.names
            if each not in shape.spec.key
        )
        answer = ", ".join(map(name, shape.names))
        return f"{self._insert(shape)}{marks} ON CONFLICT ({key}) DO UPDATE SET {sums} RETURNING {answer}"

    def _get(self, shape: Shape) -> str:
        columns = ", ".join(map(self._name, shape.names))
        return f"SELECT {columns} FROM {self.table(shape)} WHERE {self._by_key(shape)}"

    def _insert(self, shape: Shape) -> str:
        columns = ", ".join(map(self._name, ("shard", *shape.names)))
        marks = ", ".join([self._mark] * (len(shape.names) + 1))
        return f"INSERT INTO {self.table(shape)} ({columns}) VALUES ({marks})"

    def _by_key(self, shape: Shape) -> str:
        return " AND ".join(f"{self._name(name)} = {self._mark}" for name in ("shard", *shape.spec.key))

    # -- rows by condition

    def select(self, shape: Shape, shard: int, op: Select, names: NameLookup) -> Question:
        forms, parameters = self._where(shape, shard, op.where, names)
        if op.after is not None:
            for name, value in zip(op.order or shape.spec.key, op.after, strict=True):
                encode = value_encoder(shape.column[name], names)
                is_name = shape.column[name].form == "name"  # compared by the names themselves
                parameters.append(value if encode is None or is_name else encode(value))
        if op.limit is not None:
            parameters.append(op.limit)
        asked = (op.table, forms, op.order, op.after is None, op.descending, op.limit is None, op.columns)
        text = self._texts.get(asked)
        return text or self._kept(asked, lambda: self._select(shape, op, forms)), parameters

    def distinct(self, shape: Shape, shard: int, op: Select, column: str, names: NameLookup) -> Question:
        """Select the distinct values of a column."""
        forms, parameters = self._where(shape, shard, op.where, names)

        def text() -> str:
            conditions = self._conditions(shape, forms)
            return f"SELECT DISTINCT {self._name(column)} FROM {self.table(shape)} WHERE {conditions}"

        return self._kept(("distinct", op.table, column, forms), text), parameters

    def find(self, shape: Shape, shard: int, op: Find, names: NameLookup) -> Question:
        """Put the keys first, as a table that leads to the rows one by one: SQLite would walk along a list. Given their
        number, it does not scan the whole table for a filter first.
        """
        size, parameters = self._keys(shape, op, names)
        asked = ("find", op.table, op.by, op.columns, size)
        return self._kept(asked, lambda: self._find(shape, op, size)), [*parameters, shard]

    def remove(self, shape: Shape, shard: int, op: Remove, names: NameLookup) -> Question:
        """Put the keys first, as in `find`; for servers, which take them as arrays."""
        size, parameters = self._keys(shape, op, names)

        def text() -> str:
            names, given = self._asked(shape, op, size)
            table = self.table(shape)
            pairs = " AND ".join(
                f"{table}.{self._name(name)} = asked.{key}" for name, key in zip(op.by, names, strict=True)
            )
            return (
                f"WITH asked({', '.join(names)}) AS ({given}) DELETE FROM {table} USING asked "
                f"WHERE {table}.{self._name('shard')} = {self._mark} AND {pairs}"
            )

        return self._kept(("remove", op.table, op.by, size), text), [*parameters, shard]

    def remove_one(self, shape: Shape, by: tuple[str, ...]) -> str:
        """Remove one row by its shard and key."""

        def text() -> str:
            equal = " AND ".join(f"{self._name(name)} = {self._mark}" for name in ("shard", *by))
            return f"DELETE FROM {self.table(shape)} WHERE {equal}"

        return self._kept(("remove one", shape.spec.name, by), text)

    def _keys(self, shape: Shape, op: Find | Remove, names: NameLookup) -> tuple[int, list[Any]]:
        """Return how many keys the statement has room for, and their values in the form it takes."""
        keys: list[Row] = [key_values(shape, op.by, key, names) for key in dict.fromkeys(op.keys)]
        if self._arrays:
            return 0, [list(values) for values in zip(*keys, strict=True)]
        size = 1 << (len(keys) - 1).bit_length()
        parameters: list[Any] = [value for key in keys for value in key]
        parameters.extend([None] * (len(op.by) * (size - len(keys))))  # keys that no row has: few statements serve all
        return size, parameters

    def _asked(self, shape: Shape, op: Find | Remove, count: int) -> tuple[list[str], str]:
        """Return the column names of a table of keys, and the SQL that gives its rows."""
        names = [f"key_{number}" for number in range(len(op.by))]
        if self._arrays:
            arrays = ", ".join(f"{self._mark}::{_ARRAY[shape.stored[name]]}" for name in op.by)
            return names, f"SELECT * FROM unnest({arrays})"
        marks = f"({', '.join([self._mark] * len(op.by))})"
        return names, f"SELECT * FROM (VALUES {', '.join([marks] * count)}) LIMIT {count}"

    def _find(self, shape: Shape, op: Find, count: int) -> str:
        names, given = self._asked(shape, op, count)
        table = self.table(shape)
        columns = ", ".join(f"{table}.{self._name(name)}" for name in shape.output(op.columns))
        pairs = " AND ".join(
            f"{table}.{self._name(name)} = asked.{key}" for name, key in zip(op.by, names, strict=True)
        )
        order = ", ".join(f"{table}.{self._name(name)}" for name in op.by)
        return (
            f"WITH asked({', '.join(names)}) AS ({given}) SELECT {columns} FROM asked CROSS JOIN {table} "
            f"WHERE {table}.{self._name('shard')} = {self._mark} AND {pairs} ORDER BY {order}"
        )

    def count(self, shape: Shape, shard: int, op: Count, names: NameLookup) -> Question:
        forms, parameters = self._where(shape, shard, op.where, names)
        if op.limit is not None:
            parameters.append(op.limit)

        def text() -> str:
            rows = f"{self.table(shape)} WHERE {self._conditions(shape, forms)}"
            if op.limit is None:
                return f"SELECT count(*) FROM {rows}"
            return f"SELECT count(*) FROM (SELECT 1 FROM {rows} LIMIT {self._mark}) AS counted"

        return self._kept(("count", shape.spec.name, forms, op.limit is None), text), parameters

    def patch(self, shape: Shape, shard: int, op: Patch, names: NameGiver) -> Question:
        forms, parameters = self._where(shape, shard, op.where, names)
        changed = tuple(op.values)

        def text() -> str:
            changes = ", ".join(f"{self._name(name)} = {self._mark}" for name in changed)
            return f"UPDATE {self.table(shape)} SET {changes} WHERE {self._conditions(shape, forms)}"

        asked = ("patch", shape.spec.name, changed, forms)
        values = self.coder(shape, changed).encoder(names)(tuple(op.values.values()))
        return self._kept(asked, text), [*values, *parameters]

    def delete(self, shape: Shape, shard: int, op: Delete, names: NameLookup) -> Question:
        forms, parameters = self._where(shape, shard, op.where, names)

        def text() -> str:
            return f"DELETE FROM {self.table(shape)} WHERE {self._conditions(shape, forms)}"

        return self._kept(("delete", shape.spec.name, forms), text), parameters

    def _select(self, shape: Shape, op: Select, forms: tuple[Any, ...]) -> str:
        order, rest = shape.order_of(op)
        parts = [f"SELECT {', '.join(map(self._name, shape.output(op.columns)))} FROM {self.table(shape)}"]
        parts.append(f"WHERE {self._conditions(shape, forms)}")
        bound = _bound(op.where)
        compared = set(order if op.after is not None else ())  # with names, which are passed unencoded
        sort = {
            name: self._name_of(shape, name)
            if shape.column[name].form == "name" and (name in compared or name not in bound)
            else self._name(name)
            for name in (*order, *rest)
        }
        if op.after is not None:
            names = ", ".join(sort[name] for name in order)
            marks = ", ".join([self._mark] * len(order))
            parts.append(f"AND ({names}) {'<' if op.descending else '>'} ({marks})")
        if order or rest:
            direction = " DESC" if op.descending else ""
            sign = "+" if not self._arrays and self._is_walked(shape, order, forms) else ""
            parts.append("ORDER BY " + ", ".join(sign + each + direction for each in sort.values()))
        if op.limit is not None:
            parts.append(f"LIMIT {self._mark}")
        return " ".join(parts)

    def _name_of(self, shape: Shape, column: str) -> str:
        """Return the SQL for the name behind a number, to sort by it."""
        names = f"{self._prefix}{self._name(NAMES_TABLE)}"
        shard, number = self._name("shard"), self._name("number")
        table = self.table(shape)
        return (
            f"(SELECT {self._name('name')} FROM {names} AS sorted"
            f" WHERE sorted.{shard} = {table}.{shard} AND sorted.{number} = {table}.{self._name(column)})"
        )

    @staticmethod
    def _is_walked(shape: Shape, order: tuple[str, ...], forms: Sequence[tuple[str, str, int]]) -> bool:
        """Return whether SQLite would walk all of a tenant's rows in key order to find one owner's.

        It assumes that an index beginning with the tenant leads to few rows, so it takes the one that saves sorting. A
        `+` before a column of the order prevents that.
        """
        bound = {name for name, form, _ in forms if form in ("=", "in", "null")}
        if not shape.spec.key or order != shape.spec.key or order[0] in bound:
            return False
        for index in (*shape.spec.unique, *shape.spec.indexes):
            led = list(takewhile(bound.__contains__, index))
            if not _OF_SOMEBODY.isdisjoint(led):
                return True
        return False

    def _where(
        self, shape: Shape, shard: int, where: tuple[Condition, ...], names: NameLookup
    ) -> tuple[tuple[Any, ...], list[Any]]:
        """Return the forms of the conditions (column, comparison, number of values) and the parameters."""
        forms: list[tuple[str, str, int]] = []
        parameters: list[Any] = [shard]
        for name, comparison, value in where:
            if value is None:
                forms.append((name, "null", 0))
                continue
            encode = value_encoder(shape.column[name], names)
            if type(value) is not tuple:
                forms.append((name, comparison, 1))
                parameters.append(value if encode is None else encode(value))
                continue
            values = value if encode is None else tuple([encode(each) for each in value])
            if self._arrays:
                forms.append((name, "array", 1))
                parameters.append(list(values))
            else:
                padded = _padded(values)
                forms.append((name, "in", len(padded)))
                parameters.extend(padded)
        return tuple(forms), parameters

    def _conditions(self, shape: Shape, forms: Sequence[tuple[str, str, int]]) -> str:
        parts = [f"{self._name('shard')} = {self._mark}"]
        for name, form, size in forms:
            column = self._name(name)
            if form == "null":
                parts.append(f"{column} IS NULL")
            elif form == "array":
                parts.append(f"{column} = ANY ({self._mark}::{_ARRAY[shape.stored[name]]})")
            elif form == "in":
                parts.append(f"{column} IN ({', '.join([self._mark] * size)})")
            else:
                parts.append(f"{column} {form} {self._mark}")
        return " AND ".join(parts)

    def _kept(self, asked: Any, build: Callable[[], str]) -> str:
        text = self._texts.get(asked)
        if text is None:
            text = self._texts[asked] = build()
        return text


def _bound(where: tuple[Condition, ...]) -> set[str]:
    return {name for name, comparison, _ in where if comparison == "="}


def without_bound(shape: Shape, op: Select) -> Select | None:
    """Drop the order's leading columns that are bound to one value; None if no row can come after its `after`."""
    values = {name: value for name, comparison, value in op.where if comparison == "="}
    order, after = op.order or shape.spec.key, op.after
    place = 0
    while place < len(order) and order[place] in values:
        if after is not None and values[order[place]] != after[place]:
            is_behind = (values[order[place]] > after[place]) is not op.descending  # type: ignore[operator]
            if not is_behind:
                return None
            after = None
        place += 1
    if after is not None and place == len(order):
        return None
    return replace(op, order=order[place:], after=None if after is None else after[place:])


def leading_name(shape: Shape, op: Select) -> str | None:
    """Return the first column of names in the order not bound to one name, unless another column sorts before it."""
    if not shape.has_names:
        return None
    for part in (op.order or shape.spec.key, shape.order_of(op)[1]):
        for name in part:
            if not any(bound == name and comparison == "=" for bound, comparison, _ in op.where):
                return name if shape.column_named(name).form == "name" else None
    return None


def key_values(shape: Shape, by: tuple[str, ...], key: Row, names: NameLookup) -> Row:
    """Return the stored values of these columns."""
    coded = [value_encoder(shape.column[name], names) for name in by]
    return tuple([value if code is None else code(value) for code, value in zip(coded, key, strict=True)])


def _padded(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Pad to a power of two by repeating the last value, so that few statements serve all lengths."""
    size = 1 << (len(values) - 1).bit_length()
    return values + values[-1:] * (size - len(values))


# -- one transaction ----------------------------------------------------------------------------------
#
# Engines would disagree about what a nested call sees, and one of them would deadlock.

R = TypeVar("R")
_ROWS_BETWEEN = 256
"""Rows of a stream between checks for cancellation."""


class NestedCallGuard(threading.local):
    """Allows one call at a time for each thread: `with turns:` around the work of a call."""

    busy = False

    def __enter__(self) -> None:
        if self.busy:
            raise StorageFailure(
                "a store call inside the work of another store call",
                hint="use the transaction handed to the work, or call after it has ended",
            )
        self.busy = True

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.busy = False


class View(ABC):
    """One tenant seen through one transaction. Subclasses fill `ops` and `_rows`.

    After an operation has failed, all others fail and the transaction is rolled back even if the work swallows the
    error: servers behave so, so every engine does. Each operation first checks for cancellation (`core.limits`).
    """

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]]
    can_wait: ClassVar[bool] = False
    """True if it holds no lock that others wait for."""

    def __init__(self) -> None:
        self.failure: MunimentError | KeyTaken | None = None
        self._ended = False
        self._streams: list[Iterator[Row]] = []

    def do(self, op: Op[R]) -> R:
        if self._ended or self.failure is not None:
            self._refuse()
        run = self.ops.get(type(op))
        cancellation = CURRENT.get()
        try:
            if run is None:
                raise InvalidInput(f"{type(op).__name__} cannot be done here", hint="a reader only reads")
            if cancellation is None:
                return cast("R", run(self, op))
            return cast("R", self._cancellable(cancellation, lambda: run(self, op)))
        except (MunimentError, KeyTaken) as error:
            self.failure = error
            raise

    def _cancellable(self, cancellation: Cancellation, run: Callable[[], R]) -> R:
        cancellation.check(can_wait=self.can_wait)
        cancellation.begin(self._interrupt)
        try:
            return run()
        except StorageFailure:
            cancellation.check()  # cancelled: reported as such
            raise
        finally:
            cancellation.end()

    def _interrupt(self) -> None:  # noqa: B027
        """Interrupt the statement running in another thread, where the engine can."""

    def settle(self) -> None:
        """Check for cancellation one last time before a commit."""
        cancellation = CURRENT.get()
        if cancellation is not None:
            cancellation.settle()

    def stream(self, select: Select) -> Iterator[Row]:
        """Stream rows one by one. Do not change the table while its stream is open."""
        if self._ended or self.failure is not None:
            self._refuse()
        rows = self._watched(self._rows(select))
        self._streams.append(rows)
        return rows

    def _watched(self, rows: Iterator[Row]) -> Iterator[Row]:
        try:
            while (cancellation := CURRENT.get()) is not None:
                some = self._cancellable(cancellation, lambda: list(islice(rows, _ROWS_BETWEEN)))
                yield from some
                if len(some) < _ROWS_BETWEEN:
                    return
            yield from rows
        except (MunimentError, KeyTaken) as error:
            self.failure = error
            raise

    def end(self) -> None:
        """Refuse further operations; open streams are closed with the transaction."""
        self._ended = True
        for rows in self._streams:
            close = getattr(rows, "close", None)
            if close is not None:
                close()
        self._streams.clear()

    @abstractmethod
    def _rows(self, select: Select) -> Iterator[Row]: ...

    def _refuse(self) -> None:
        if isinstance(self.failure, StoreDamaged):
            raise self.failure  # a search for further damage reports this one again
        if self.failure is not None:
            raise StorageFailure("an operation of this transaction has failed; nothing more can be done in it")
        raise StorageFailure("this transaction has ended", hint="keep no transaction beyond its work")


# -- operations ---------------------------------------------------------------------------------------

_ADVANCED_AT_ONCE = 512
"""Rows that one statement advances."""
_NAMES_READ = 256
"""Names read along with an unknown one, since rows written together have neighbouring numbers."""


class _Changed(Protocol):
    """The result of a statement that changes rows: a cursor that counts them."""

    @property
    def rowcount(self) -> int: ...


class SqlReader(View):
    """Reads by key, by condition and by count. It is the `NameLookup` of its transaction."""

    can_wait: ClassVar[bool] = True
    """True, as a view that only reads blocks nobody."""

    def __init__(self, tenant_id: str, location: str, statements: Statements, book: NameBook) -> None:
        super().__init__()
        self._tenant_id = tenant_id
        self._location = location
        self._statements = statements
        self._book = book
        self._own_shard: int | None = None

    @abstractmethod
    def _fetch(self, table: str, statement: str, parameters: Sequence[Any]) -> list[Row]:
        """Return the stored rows that a statement selects."""

    # -- names

    @property
    def _shard(self) -> int:
        """Return the shard of the tenant, or an unused one if nothing was written to it yet."""
        if self._own_shard is None:
            number = self._number(TENANTS_SHARD, self._tenant_id)
            if number == NO_NAME:
                return shard_of(NO_NAME)
            self._enter(shard_of(number))
            return shard_of(number)
        return self._own_shard

    def _enter(self, shard: int) -> None:
        self._own_shard = shard

    def number_of(self, name: str) -> int:
        return self._number(self._shard, name)

    def name_of(self, number: int) -> str:
        shard = self._shard
        name = self._known_name(shard, number)
        if name is None:
            self._learn(shard, self._fetch("names", self._statements.names_from, (shard, number, _NAMES_READ)))
            name = self._known_name(shard, number)
        return f"\ufffd{number}" if name is None else name

    def _number(self, shard: int, name: str) -> int:
        number = self._known_number(shard, name)
        if number is None:
            found = self._fetch("names", self._statements.name_number, (shard, name))
            self._learn(shard, [(row[0], name) for row in found])
            return found[0][0] if found else NO_NAME  # type: ignore[return-value]
        return number

    def _known_number(self, shard: int, name: str) -> int | None:
        return self._book.number(shard, name)

    def _known_name(self, shard: int, number: int) -> str | None:
        return self._book.name(shard, number)

    def _learn(self, shard: int, found: Sequence[Any]) -> None:
        self._book.add(shard, found)

    # -- operations

    def _decoded(self, shape: Shape, columns: tuple[str, ...], rows: Iterable[Row]) -> Iterable[Row]:
        coder = self._statements.coder(shape, columns)
        return rows if coder.is_plain else map(coder.decoder(self), rows)

    def _get(self, op: Get) -> Row | None:
        shape = shape_of(op.table)
        check_key(shape, op.key)
        key = key_values(shape, shape.spec.key, op.key, self)
        rows = self._fetch(op.table, self._statements.get(shape), (self._shard, *key))
        return next(iter(self._decoded(shape, (), rows))) if rows else None

    def _select(self, op: Select) -> list[Row]:
        shape = shape_of(op.table)
        if not shape.has_names or (op.after is None and leading_name(shape, op) is None):
            return self._fetched(op)
        return list(self._in_order(op, self._fetched))

    def _rows(self, select: Select) -> Iterator[Row]:
        return self._in_order(select, self._streamed)

    def _fetched(self, op: Select) -> list[Row]:
        question = self._question(op)
        if question is None:
            return []
        return list(self._decoded(shape_of(op.table), op.columns, self._fetch(op.table, *question)))

    @abstractmethod
    def _streamed(self, select: Select) -> Iterator[Row]:
        """Stream the rows of one statement in flat memory."""

    def _in_order(self, op: Select, ask: Callable[[Select], Iterable[Row]]) -> Iterator[Row]:
        """Stream rows in the order of their names, though they are stored by number: name by name where names lead the
        order. Elsewhere the statement sorts (`Statements.select`).
        """
        shape = shape_of(op.table)
        if not shape.has_names:
            yield from ask(op)
            return
        shape.check_select(op)
        asked = without_bound(shape, op) if shape.check_where(op.where) else None
        if asked is None:
            return
        column = leading_name(shape, asked)
        if column is None:
            yield from ask(asked)
            return
        left = asked.limit
        for part in self._parts(shape, asked, column):
            if left == 0:
                return
            for row in self._in_order(part if left is None else replace(part, limit=left), ask):
                yield row
                left = None if left is None else left - 1

    def _parts(self, shape: Shape, op: Select, column: str) -> Iterator[Select]:
        """Split the question by the names that rows have in this column, which leads the order."""
        after = op.after
        for name in sorted(self._names_in(shape, op, column), reverse=op.descending):
            begun = None
            if after is not None:
                last = after[0]
                if name != last and (name < last) is not op.descending:  # type: ignore[operator]
                    continue
                if name == last:
                    if len(after) == 1:
                        continue
                    begun = after[1:]
            order = (shape.order_of(op)[0])[1:]
            yield replace(op, where=(*op.where, (column, "=", name)), order=order, after=begun)

    def _names_in(self, shape: Shape, op: Select, column: str) -> set[str]:
        asked = [value for name, sign, value in op.where if name == column and sign == "in"]
        if asked:
            return set(asked[0])  # type: ignore[arg-type]
        found = self._fetch(op.table, *self._statements.distinct(shape, self._shard, op, column, self))
        return {self.name_of(number) for (number,) in found if number is not None}  # type: ignore[arg-type]

    def _question(self, op: Select) -> Question | None:
        """Return the statement and its parameters; None where no row can match."""
        shape = shape_of(op.table)
        shape.check_select(op)
        if shape.check_where(op.where):
            return self._statements.select(shape, self._shard, op, self)
        shape.output(op.columns)
        return None

    def _find(self, op: Find) -> list[Row]:
        shape = shape_of(op.table)
        if not shape.check_find(op):
            shape.output(op.columns)
            return []
        rows = self._fetch(op.table, *self._statements.find(shape, self._shard, op, self))
        return list(self._decoded(shape, op.columns, rows))

    def _count(self, op: Count) -> int:
        shape = shape_of(op.table)
        shape.check_limit(op.limit)
        if not shape.check_where(op.where):
            return 0
        (count,) = self._fetch(op.table, *self._statements.count(shape, self._shard, op, self))[0]
        assert isinstance(count, int)
        return count

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        Get: _get,
        Select: _select,
        Find: _find,
        Count: _count,
    }


class SqlTransaction(SqlReader):
    """A transaction that writes too. Names it learns are shared by `publish` once it is committed."""

    can_wait: ClassVar[bool] = False

    def __init__(self, tenant_id: str, location: str, statements: Statements, book: NameBook) -> None:
        super().__init__(tenant_id, location, statements, book)
        self._fresh_numbers: dict[tuple[int, str], int] = {}
        self._fresh_names: dict[tuple[int, int], str] = {}
        self._own_numbers: dict[str, int] = {}

    @abstractmethod
    def _run(self, table: str, statement: str, parameters: Sequence[Any]) -> _Changed: ...

    @abstractmethod
    def _run_many(self, table: str, statement: str, rows: Sequence[Row]) -> None:
        """Run the statement for each of these stored rows, preceded by the shard."""

    @abstractmethod
    def _lock(self, names: Sequence[tuple[str, ...]]) -> None:
        """Acquire these locks in this order."""

    @abstractmethod
    def _new_number(self, shard: int, name: str) -> int:
        """Assign a number to a name that has none."""

    # -- names

    def publish(self) -> None:
        """Share the names learned, after the commit."""
        for (shard, name), number in self._fresh_numbers.items():
            self._book.add(shard, [(number, name)])

    @property
    def _writing_shard(self) -> int:
        """Return the shard of the tenant, assigning one on its first write."""
        if self._own_shard is None:
            shard = shard_of(self._number_for(TENANTS_SHARD, self._tenant_id))
            self._enter(shard)
            return shard
        return self._own_shard

    def number_for(self, name: str) -> int:
        number = self._own_numbers.get(name)
        if number is None:
            number = self._own_numbers[name] = self._number_for(self._writing_shard, name)
        return number

    def _number_for(self, shard: int, name: str) -> int:
        number = self._number(shard, name)
        if number == NO_NAME:
            number = self._new_number(shard, name)
            self._learn(shard, [(number, name)])
        return number

    def _known_number(self, shard: int, name: str) -> int | None:
        number = self._fresh_numbers.get((shard, name))
        return self._book.number(shard, name) if number is None else number

    def _known_name(self, shard: int, number: int) -> str | None:
        return self._fresh_names.get((shard, number)) or self._book.name(shard, number)

    def _learn(self, shard: int, found: Sequence[Any]) -> None:
        for number, name in found:
            self._fresh_numbers[shard, name] = number
            self._fresh_names[shard, number] = name

    # -- operations

    def _encoded(self, shape: Shape, rows: Sequence[Row]) -> Sequence[Row]:
        coder = self._statements.coder(shape)
        return rows if coder.is_plain else list(map(coder.encoder(self), rows))

    def _insert(self, op: Insert) -> None:
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        self._run_many(op.table, self._statements.insert(shape), self._encoded(shape, op.rows))

    def _put(self, op: Put) -> None:
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        rows = self._encoded(shape, shape.last_of_each_key(op.rows))
        self._run_many(op.table, self._statements.put(shape), rows)

    def _advance(self, op: Advance) -> list[Row]:
        shape = shape_of(op.table)
        check_advance(shape, op.rows)
        rows = self._encoded(shape, op.rows)
        shard = self._writing_shard
        answered: list[Row] = []
        at = 0
        while at < len(rows):  # by powers of two, so that few statements serve all numbers of rows
            size = min(_ADVANCED_AT_ONCE, 1 << ((len(rows) - at).bit_length() - 1))
            parameters = [value for row in rows[at : at + size] for value in (shard, *row)]
            answered += self._fetch(op.table, self._statements.advance(shape, size), parameters)
            at += size
        if len(rows) > 1:
            by_key = {shape.key_of(row): row for row in answered}
            answered = [by_key[shape.key_of(row)] for row in rows]
        return list(self._decoded(shape, (), answered))

    def _patch(self, op: Patch) -> int:
        shape = shape_of(op.table)
        if not shape.check_patch(op.where, dict(op.values)):
            return 0
        return self._run(op.table, *self._statements.patch(shape, self._shard, op, self)).rowcount

    def _delete(self, op: Delete) -> int:
        shape = shape_of(op.table)
        if not shape.check_where(op.where, needed=True):
            return 0
        return self._run(op.table, *self._statements.delete(shape, self._shard, op, self)).rowcount

    def _remove(self, op: Remove) -> int:
        shape = shape_of(op.table)
        if not shape.check_find(Find(op.table, op.by, op.keys)):
            return 0
        return self._run(op.table, *self._statements.remove(shape, self._shard, op, self)).rowcount

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        **SqlReader.ops,
        Insert: _insert,
        Put: _put,
        Advance: _advance,
        Patch: _patch,
        Delete: _delete,
        Remove: lambda view, op: view._remove(op),
        Lock: lambda view, op: view._lock((op.parts,)),
        LockAll: lambda view, op: view._lock(op.names),
    }
