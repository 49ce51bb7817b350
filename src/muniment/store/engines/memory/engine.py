"""One tenant's rows of one table, with a sorted list for every declared key and index.

Finds rows by bisection where a key or index leads there, and puts every change into a journal that can be
played backwards. Knows nothing of threads or transactions; rows are taken as checked."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar, cast

from muniment.core.ports.engine import (
    Condition,
    Count,
    Delete,
    EngineInfo,
    Find,
    Get,
    Insert,
    KeyTaken,
    Lock,
    LockAll,
    Patch,
    Put,
    Reader,
    Remove,
    Row,
    ScrubReport,
    Select,
    StoreSizes,
    Transaction,
    Value,
)
from muniment.errors import Closed, StorageReadOnly
from muniment.store.engines.checks import Shape, check_key, check_rows, check_tenant, shape_of
from muniment.store.engines.turns import Turns, View

__all__ = ["Journal", "MemoryEngine", "TableRows"]

Journal = list[tuple["TableRows", Row | None, Row | None]]
"""(table, the row that was, the row that is) for every change, oldest first."""

Entry = tuple[Any, ...]


class _Top:
    """Sorts after everything."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_TOP = _Top()


class _Sorted:
    """A sorted list of (values of the columns…, primary key). A null is `()`, a value that may be null `(value,)`."""

    __slots__ = ("columns", "entries", "nullable", "positions", "unique")

    def __init__(self, shape: Shape, columns: tuple[str, ...], *, unique: bool) -> None:
        self.columns = columns
        self.positions = tuple(shape.position[name] for name in columns)
        self.nullable = frozenset(name for name in columns if shape.column[name].nullable)
        self.unique = unique
        self.entries: list[Entry] = []

    def copy(self) -> _Sorted:
        other = object.__new__(_Sorted)
        other.columns, other.positions, other.nullable, other.unique = (
            self.columns,
            self.positions,
            self.nullable,
            self.unique,
        )
        other.entries = list(self.entries)
        return other

    def wrap(self, name: str, value: Value) -> Any:
        if name not in self.nullable:
            return value
        return () if value is None else (value,)

    def entry(self, row: Row, key: Row) -> Entry:
        if self.nullable:
            pairs = zip(self.columns, self.positions, strict=True)
            return (*[self.wrap(name, row[position]) for name, position in pairs], key)
        return (*[row[position] for position in self.positions], key)

    def holds(self, row: Row) -> bool:
        """Is there a row with the same values (nulls are never the same)?"""
        values = self.entry(row, ())[:-1]
        if () in values:
            return False
        index = bisect_left(self.entries, values)
        return index < len(self.entries) and self.entries[index][:-1] == values

    def given(self, start: int, end: int, values: Mapping[str, Any]) -> Entry:
        """The values of these columns, as entries have them."""
        return tuple([self.wrap(name, values[name]) for name in self.columns[start:end]])

    def span(self, low: Entry, high: Entry) -> tuple[int, int]:
        return bisect_left(self.entries, low), bisect_left(self.entries, high)


class TableRows:
    __slots__ = ("_paths", "rows", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.rows: dict[Row, Row] = {}
        spec = shape.spec
        self._paths = [
            _Sorted(shape, spec.key, unique=False),
            *[_Sorted(shape, columns, unique=True) for columns in spec.unique],
            *[_Sorted(shape, columns, unique=False) for columns in spec.indexes],
        ]

    def copy(self) -> TableRows:
        other = object.__new__(TableRows)
        other.shape = self.shape
        other.rows = dict(self.rows)
        other._paths = [path.copy() for path in self._paths]
        return other

    # -- changes

    def insert(self, row: Row, journal: Journal) -> None:
        if self.shape.key_of(row) in self.rows:
            raise KeyTaken(self.shape.spec.name)
        self._refuse_taken(row)
        self.add(row)
        journal.append((self, None, row))

    def put(self, row: Row, journal: Journal) -> None:
        old = self.rows.get(self.shape.key_of(row))
        if old is None:
            self.insert(row, journal)
        else:
            self.replace(old, row, journal)

    def replace(self, old: Row, new: Row, journal: Journal) -> None:
        """Put `new` in the place of `old`, which has the same primary key."""
        self.remove(old)
        try:
            self._refuse_taken(new)
        except KeyTaken:
            self.add(old)
            raise
        self.add(new)
        journal.append((self, old, new))

    def delete(self, row: Row, journal: Journal) -> None:
        self.remove(row)
        journal.append((self, row, None))

    def add(self, row: Row) -> None:
        key = self.shape.key_of(row)
        self.rows[key] = row
        for path in self._paths:
            entry = path.entry(row, key)
            if not path.entries or path.entries[-1] < entry:
                path.entries.append(entry)
            else:
                insort(path.entries, entry)

    def remove(self, row: Row) -> None:
        key = self.shape.key_of(row)
        del self.rows[key]
        for path in self._paths:
            del path.entries[bisect_left(path.entries, path.entry(row, key))]

    def _refuse_taken(self, row: Row) -> None:
        for path in self._paths:
            if path.unique and path.holds(row):
                raise KeyTaken(self.shape.spec.name)

    # -- questions

    def matching(self, where: tuple[Condition, ...]) -> list[Row]:
        candidates, _, left = self._candidates(where, (), ())
        return list(self._filter(candidates, left))

    def count(self, where: tuple[Condition, ...]) -> int:
        """How many rows meet these conditions; by two bisections where a path leads to them and no others."""
        equal = {name: value for name, comparison, value in where if comparison == "="}
        ranged = [name for name, comparison, _ in where if comparison not in ("=", "in")]
        is_plain = len(set(ranged)) <= 1 and not any(self.shape.column[name].nullable for name in ranged)
        if is_plain and len(equal) + len(ranged) == len(where):
            for path in self._paths:
                led = _led(path, 0, equal)
                if led == len(equal) and (not ranged or path.columns[led : led + 1] == (ranged[0],)):
                    low, high = self._narrow(path, path.given(0, led, equal), where, (), equal, None, False)
                    return max(0, high - low)
        return sum(1 for _ in self._filter(*self._candidates(where, (), ())[::2]))

    def select(self, select: Select) -> list[Row]:
        order, rest = self.shape.order_of(select)
        output = self.shape.output(select.columns)
        candidates, ordered, left = self._candidates(select.where, order, rest, select.after, select.descending)
        rows = self._filter(candidates, left)
        places = [self.shape.position[name] for name in order]
        if (after := select.after) is not None:
            if select.descending:
                rows = (row for row in rows if tuple([row[place] for place in places]) < after)
            else:
                rows = (row for row in rows if tuple([row[place] for place in places]) > after)
        if not ordered:
            all_places = [*places, *[self.shape.position[name] for name in rest]]
            rows = iter(
                sorted(rows, key=lambda row: [cast("Any", row[p]) for p in all_places], reverse=select.descending)
            )
        found = list(rows) if select.limit is None else [row for _, row in zip(range(select.limit), rows, strict=False)]
        return self._picked(found, output)

    def find(self, find: Find) -> list[Row]:
        return self._picked(self.having(find.by, find.keys), self.shape.output(find.columns))

    def having(self, by: tuple[str, ...], keys: Sequence[Row]) -> list[Row]:
        """The rows with one of these values of a unique key, sorted by it."""
        path = next(path for path in self._paths if path.columns == by)
        found: list[Row] = []
        for key in sorted(set(keys), key=lambda key: [cast("Any", value) for value in key]):
            start = path.given(0, len(by), dict(zip(by, key, strict=True)))
            low, high = path.span(start, (*start, _TOP))
            found += [self.rows[entry[-1]] for entry in path.entries[low:high]]
        return found

    def _picked(self, rows: list[Row], output: tuple[str, ...]) -> list[Row]:
        if output == self.shape.names:
            return rows
        picked = [self.shape.position[name] for name in output]
        return [tuple([row[place] for place in picked]) for row in rows]

    def _filter(self, rows: Iterator[Row], where: Sequence[Condition]) -> Iterator[Row]:
        if not where:
            return rows
        tests = [(self.shape.position[name], comparison, value) for name, comparison, value in where]
        return (row for row in rows if all(_meets(row[place], how, value) for place, how, value in tests))

    def _candidates(
        self,
        where: tuple[Condition, ...],
        order: tuple[str, ...],
        rest: tuple[str, ...],
        after: Row | None = None,
        descending: bool = False,
    ) -> tuple[Iterator[Row], bool, list[Condition]]:
        """Rows that may meet `where`, by the path that leads nearest, whether they come in order, and the conditions
        that are still to be looked at.
        """
        equal = {name: value for name, comparison, value in where if comparison == "="}
        among = {name: value for name, comparison, value in where if comparison == "in"}
        wanted = [name for name in (*order, *rest) if name not in equal]
        best: tuple[tuple[float, bool], _Sorted, int] | None = None
        for path in self._paths:
            led = _led(path, 0, equal)
            more = led < len(path.columns) and path.columns[led] in among
            behind = 0.1 * (_led(path, led + 1, equal) - led) if more else 0.0
            given = [name for name in dict.fromkeys((*path.columns[led:], *self.shape.spec.key)) if name not in equal]
            score = (led + 0.4 * more + behind, not more and given[: len(wanted)] == wanted)
            if best is None or score > best[0]:
                best = (score, path, led)
        assert best is not None
        (_, ordered), path, led = best
        prefix = path.given(0, led, equal)
        if led < len(path.columns) and path.columns[led] in among:
            name = path.columns[led]
            values = sorted({path.wrap(name, value) for value in cast("tuple[Value, ...]", among[name])})
            if path.columns == (name,) == self.shape.spec.key:
                held = [row for value in values if (row := self.rows.get((value,))) is not None]
                left = [each for each in where if each != (name, "in", among[name])]
                return (reversed(held) if ordered and descending else iter(held)), ordered, left
            rest_given = path.given(led + 1, _led(path, led + 1, equal), equal)
            starts = [(*prefix, value, *rest_given) for value in values]
            spans = [path.span(start, (*start, _TOP)) for start in starts]
        else:
            spans = [self._narrow(path, prefix, where, order if ordered else (), equal, after, descending)]
        met = {(name, "=", equal[name]) for name in path.columns[:led]}
        left = [each for each in where if each not in met]
        return self._rows_at(path, spans, reverse=ordered and descending), ordered, left

    def _rows_at(self, path: _Sorted, spans: list[tuple[int, int]], *, reverse: bool) -> Iterator[Row]:
        """The rows of these stretches of a path, each read when it is asked for."""
        rows, entries = self.rows, path.entries
        for low, high in reversed(spans) if reverse else spans:
            for at in range(high - 1, low - 1, -1) if reverse else range(low, high):
                yield rows[entries[at][-1]]

    def _narrow(
        self,
        path: _Sorted,
        prefix: Entry,
        where: tuple[Condition, ...],
        order: tuple[str, ...],
        equal: dict[str, Any],
        after: Row | None,
        descending: bool,
    ) -> tuple[int, int]:
        """The stretch of the path under `prefix`, narrowed by a range on its next column and by `after`."""
        low, high = path.span(prefix, (*prefix, _TOP))
        led = len(prefix)
        if led < len(path.columns):
            name = path.columns[led]
            for column, comparison, value in where:
                if column == name and comparison in ("<", "<=", ">", ">="):
                    bound = (*prefix, path.wrap(name, cast("Value", value)))
                    place = bisect_left(path.entries, bound if comparison in ("<", ">=") else (*bound, _TOP))
                    low, high = (low, min(high, place)) if comparison[0] == "<" else (max(low, place), high)
        if after is not None and order:
            pairs = list(zip(order, after, strict=True))
            if all(value == equal[name] for name, value in pairs if name in equal):
                values = [value for name, value in pairs if name not in equal]
                whole = len(values) <= len(path.columns) - led
                bound = (*prefix, *values[: len(path.columns) - led])
                if descending:
                    high = min(high, bisect_left(path.entries, bound if whole else (*bound, _TOP)))
                else:
                    low = max(low, bisect_left(path.entries, (*bound, _TOP) if whole else bound))
        return low, high


def _led(path: _Sorted, at: int, equal: Container[str]) -> int:
    """How far the columns of a path are given, from this one on."""
    while at < len(path.columns) and path.columns[at] in equal:
        at += 1
    return at


def _meets(value: Any, comparison: str, other: Any) -> bool:
    match comparison:
        case "=":
            return bool(value == other)
        case "in":
            return value is not None and value in other
        case "<":
            return value is not None and value < other
        case "<=":
            return value is not None and value <= other
        case ">":
            return value is not None and value > other
        case _:
            return value is not None and value >= other


R = TypeVar("R")
Tables = dict[str, TableRows]


class _MemoryReader(View):
    """Reads the tables of one tenant; a table that has no rows yet does not exist."""

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables

    def _table(self, name: str) -> TableRows:
        return self._tables.get(name) or TableRows(shape_of(name))

    def _get(self, op: Get) -> Row | None:
        check_key(shape_of(op.table), op.key)
        return self._table(op.table).rows.get(tuple(op.key))

    def _select(self, op: Select) -> list[Row]:
        shape = shape_of(op.table)
        shape.check_select(op)
        shape.order_of(op)
        shape.output(op.columns)
        return self._table(op.table).select(op) if shape.check_where(op.where) else []

    def _find(self, op: Find) -> list[Row]:
        shape = shape_of(op.table)
        possible = shape.check_find(op)
        shape.output(op.columns)
        return self._table(op.table).find(op) if possible else []

    def _count(self, op: Count) -> int:
        table = self._table(op.table)
        table.shape.check_limit(op.limit)
        if not table.shape.check_where(op.where):
            return 0
        found = len(table.rows) if not op.where else table.count(op.where)
        return found if op.limit is None else min(found, op.limit)

    def _rows(self, select: Select) -> Iterator[Row]:
        yield from self._select(select)

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        Get: _get,
        Select: _select,
        Find: _find,
        Count: _count,
    }


class _MemoryTransaction(_MemoryReader):
    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self._journal: Journal = []

    def roll_back(self) -> None:
        for table, old, new in reversed(self._journal):
            if new is not None:
                table.remove(new)
            if old is not None:
                table.add(old)
        self._journal.clear()

    def _table(self, name: str) -> TableRows:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = TableRows(shape_of(name))
        return table

    def _insert(self, op: Insert) -> None:
        table = self._table(op.table)
        check_rows(table.shape, op.rows)
        for row in op.rows:
            table.insert(tuple(row), self._journal)

    def _put(self, op: Put) -> None:
        table = self._table(op.table)
        check_rows(table.shape, op.rows)
        for row in table.shape.last_of_each_key(op.rows):
            table.put(tuple(row), self._journal)

    def _patch(self, op: Patch) -> int:
        table = self._table(op.table)
        values = dict(op.values)
        if not table.shape.check_patch(op.where, values):
            return 0
        rows = table.matching(op.where)
        places = {table.shape.position[name]: value for name, value in values.items()}
        for row in rows:
            changed = tuple([places.get(place, value) if place in places else value for place, value in enumerate(row)])
            table.replace(row, changed, self._journal)
        return len(rows)

    def _delete(self, op: Delete) -> int:
        table = self._table(op.table)
        if not table.shape.check_where(op.where, needed=True):
            return 0
        rows = table.matching(op.where)
        for row in rows:
            table.delete(row, self._journal)
        return len(rows)

    def _remove(self, op: Remove) -> int:
        table = self._table(op.table)
        if not table.shape.check_find(Find(op.table, op.by, op.keys)):
            return 0
        rows = table.having(op.by, op.keys)
        for row in rows:
            table.delete(row, self._journal)
        return len(rows)

    def _lock(self, op: Lock | LockAll) -> None:
        """Only one transaction runs at a time, so every lock is held already."""

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        **_MemoryReader.ops,
        Insert: _insert,
        Put: _put,
        Patch: _patch,
        Delete: _delete,
        Remove: _remove,
        Lock: _lock,
        LockAll: _lock,
    }


class MemoryEngine:
    """Everything in this process, gone with it."""

    is_shared_between_processes = False
    is_walled_by_the_server = False

    def __init__(self, *, read_only: bool = False) -> None:
        self._lock = threading.RLock()
        self._turns = Turns()
        self._read_only = read_only
        self._closed = False
        self._tenants: dict[str, Tables] = {}
        self._commits = 0

    @property
    def info(self) -> EngineInfo:
        return EngineInfo("memory", "1", ":memory:", "none", 1)

    def write(self, tenant_id: str, work: Callable[[Transaction], R]) -> R:
        check_tenant(tenant_id)
        with self._turns, self._lock:
            self._refuse_closed()
            if self._read_only:
                raise StorageReadOnly("the store was opened for reading only")
            transaction = _MemoryTransaction(self._tenants.setdefault(tenant_id, {}))
            done = False
            try:
                answer = work(transaction)
                if transaction.failure is not None:
                    raise transaction.failure
                transaction.settle()
                done = True
                self._commits += 1
            finally:
                transaction.end()
                if not done:
                    transaction.roll_back()
            return answer

    def read(self, tenant_id: str, work: Callable[[Reader], R]) -> R:
        check_tenant(tenant_id)
        with self._turns, self._lock:
            self._refuse_closed()
            reader = _MemoryReader(self._tenants.get(tenant_id, {}))
            try:
                return work(reader)
            finally:
                reader.end()

    @contextmanager
    def snapshot(self, tenant_id: str) -> Iterator[Reader]:
        check_tenant(tenant_id)
        with self._turns, self._lock:
            self._refuse_closed()
            tables = {name: table.copy() for name, table in self._tenants.get(tenant_id, {}).items()}
        reader = _MemoryReader(tables)
        try:
            yield reader
        finally:
            reader.end()

    def mark(self) -> str:
        with self._turns, self._lock:
            self._refuse_closed()
            return str(self._commits)

    def tenants(self, after: str | None = None, limit: int | None = None) -> list[str]:
        with self._turns, self._lock:
            self._refuse_closed()
            named = sorted(
                name for name, tables in self._tenants.items() if (table := tables.get("tenants")) and table.rows
            )
        return named[0 if after is None else bisect_right(named, after) :][:limit]

    def unlisted_tenants(self) -> list[str]:
        with self._turns, self._lock:
            self._refuse_closed()
            held = {
                name: [bool((table := tables.get(each)) and table.rows) for each in ("sessions", "tenants")]
                for name, tables in self._tenants.items()
            }
        return sorted(name for name, is_there in held.items() if is_there == [True, False])

    def is_copied(self) -> bool:
        return True

    def sizes(self) -> StoreSizes:
        with self._turns, self._lock:
            self._refuse_closed()
            tables = (tables.get("entries") for tables in self._tenants.values())
            return StoreSizes(0, sum(len(table.rows) for table in tables if table))

    def scrub(self, needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        with self._turns, self._lock:
            self._refuse_closed()
        del needles, thorough
        return ScrubReport(clean=True, vacuumed=False, note="the store has no files")

    def close(self) -> None:
        with self._turns, self._lock:
            self._closed = True
            self._tenants = {}

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Closed("the store has been closed")
