"""`MemoryEngine`: one lock, plain dicts, an undo journal. Nothing outlives the process, nothing touches a file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from muniment.core.ports.engine import (
    Count,
    Delete,
    EngineInfo,
    Get,
    Insert,
    Lock,
    Patch,
    Put,
    Reader,
    Row,
    ScrubReport,
    Select,
    Transaction,
)
from muniment.errors import Closed, StorageReadOnly
from muniment.store.engines.checks import check_key, check_rows, check_tenant, shape_of
from muniment.store.engines.memory.table import Journal, TableRows
from muniment.store.engines.turns import Turns, View

__all__ = ["MemoryEngine"]

R = TypeVar("R")
Tables = dict[str, TableRows]


class _MemoryReader(View):
    """Reads the tables of one tenant; a table that has no rows yet does not exist."""

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables

    def _table(self, name: str) -> TableRows:
        return self._tables.get(name) or TableRows(shape_of(name), "", None)

    def _get(self, op: Get) -> Row | None:
        check_key(shape_of(op.table), op.key)
        return self._table(op.table).rows.get(tuple(op.key))

    def _select(self, op: Select) -> list[Row]:
        shape = shape_of(op.table)
        shape.check_select(op)
        shape.order_of(op)
        shape.output(op.columns)
        return self._table(op.table).select(op) if shape.check_where(op.where) else []

    def _count(self, op: Count) -> int:
        table = self._table(op.table)
        if not op.where:
            return len(table.rows)
        return len(table.matching(op.where)) if table.shape.check_where(op.where) else 0

    def _rows(self, select: Select) -> Iterator[Row]:
        yield from self._select(select)

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {Get: _get, Select: _select, Count: _count}


class _MemoryTransaction(_MemoryReader):
    def __init__(self, tenant_id: str, tables: Tables, owners: dict[str, dict[Row, str]]) -> None:
        super().__init__(tables)
        self._tenant_id = tenant_id
        self._owners = owners
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
            shape = shape_of(name)
            owners = self._owners.setdefault(name, {}) if shape.spec.global_key else None
            table = self._tables[name] = TableRows(shape, self._tenant_id, owners)
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

    def _lock(self, op: Lock) -> None:
        """Only one transaction runs at a time, so every lock is held already."""

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        **_MemoryReader.ops,
        Insert: _insert,
        Put: _put,
        Patch: _patch,
        Delete: _delete,
        Lock: _lock,
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
        self._owners: dict[str, dict[Row, str]] = {}
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
            transaction = _MemoryTransaction(tenant_id, self._tenants.setdefault(tenant_id, {}), self._owners)
            done = False
            try:
                answer = work(transaction)
                if transaction.failure is not None:
                    raise transaction.failure
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

    def tenants(self) -> list[str]:
        with self._turns, self._lock:
            self._refuse_closed()
            return sorted(
                name for name, tables in self._tenants.items() if (table := tables.get("tenants")) and table.rows
            )

    def scrub(self, needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        with self._turns, self._lock:
            self._refuse_closed()
        del needles, thorough
        return ScrubReport(clean=True, vacuumed=False, note="the store has no files")

    def close(self) -> None:
        with self._turns, self._lock:
            self._closed = True
            self._tenants = {}
            self._owners = {}

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Closed("the store has been closed")
