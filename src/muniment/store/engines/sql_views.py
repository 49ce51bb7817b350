"""Operations on one transaction of a store that speaks SQL, bound to one tenant: the part that both dialects share.

The transaction is begun and ended by the engine; nothing here commits. A dialect says how a statement is run, how rows
are streamed and what a lock is. Every failure leaves in the words of `errors`, or as `KeyTaken`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from muniment.core.ports.engine import Count, Delete, Find, Get, Insert, Lock, LockAll, Patch, Put, Remove, Row, Select
from muniment.store.engines.checks import check_key, check_rows, shape_of
from muniment.store.engines.sql import Question, Statements
from muniment.store.engines.turns import View

__all__ = ["SqlReader", "SqlTransaction"]


class _Changed(Protocol):
    """What a statement that changes rows answers: a cursor that counts them."""

    @property
    def rowcount(self) -> int: ...


class SqlReader(View):
    """Reads by key, by condition and by count."""

    can_wait: ClassVar[bool] = True
    """A view that only reads keeps nobody waiting."""

    def __init__(self, tenant_id: str, location: str, statements: Statements) -> None:
        super().__init__()
        self._tenant_id = tenant_id
        self._location = location
        self._statements = statements

    @abstractmethod
    def _fetch(self, table: str, statement: str, parameters: Sequence[Any]) -> list[Row]: ...

    def _get(self, op: Get) -> Row | None:
        shape = shape_of(op.table)
        check_key(shape, op.key)
        rows = self._fetch(op.table, self._statements.get(shape), (self._tenant_id, *op.key))
        return rows[0] if rows else None

    def _select(self, op: Select) -> list[Row]:
        question = self._question(op)
        return self._fetch(op.table, *question) if question else []

    def _question(self, op: Select) -> Question | None:
        """The statement and its parameters; None where no row can hold what is asked."""
        shape = shape_of(op.table)
        shape.check_select(op)
        possible = shape.check_where(op.where)
        question = self._statements.select(shape, self._tenant_id, op)
        return question if possible else None

    def _find(self, op: Find) -> list[Row]:
        shape = shape_of(op.table)
        possible = shape.check_find(op)
        shape.output(op.columns)
        return self._fetch(op.table, *self._statements.find(shape, self._tenant_id, op)) if possible else []

    def _count(self, op: Count) -> int:
        shape = shape_of(op.table)
        shape.check_limit(op.limit)
        if not shape.check_where(op.where):
            return 0
        (count,) = self._fetch(op.table, *self._statements.count(shape, self._tenant_id, op))[0]
        assert isinstance(count, int)
        return count

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        Get: _get,
        Select: _select,
        Find: _find,
        Count: _count,
    }


class SqlTransaction(SqlReader):
    """Writes too."""

    can_wait: ClassVar[bool] = False

    @abstractmethod
    def _run(self, table: str, statement: str, parameters: Sequence[Any]) -> _Changed: ...

    @abstractmethod
    def _run_many(self, table: str, statement: str, rows: Sequence[Row]) -> None:
        """The statement for each of these rows, with the tenant before it."""

    @abstractmethod
    def _lock(self, names: Sequence[tuple[str, ...]]) -> None:
        """Hold these locks, taken in this order."""

    def _insert(self, op: Insert) -> None:
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        self._run_many(op.table, self._statements.insert(shape), op.rows)

    def _put(self, op: Put) -> None:
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        self._run_many(op.table, self._statements.put(shape), shape.last_of_each_key(op.rows))

    def _patch(self, op: Patch) -> int:
        shape = shape_of(op.table)
        if not shape.check_patch(op.where, dict(op.values)):
            return 0
        return self._run(op.table, *self._statements.patch(shape, self._tenant_id, op)).rowcount

    def _delete(self, op: Delete) -> int:
        shape = shape_of(op.table)
        if not shape.check_where(op.where, needed=True):
            return 0
        return self._run(op.table, *self._statements.delete(shape, self._tenant_id, op)).rowcount

    def _remove(self, op: Remove) -> int:
        shape = shape_of(op.table)
        if not shape.check_find(Find(op.table, op.by, op.keys)):
            return 0
        return self._run(op.table, *self._statements.remove(shape, self._tenant_id, op)).rowcount

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        **SqlReader.ops,
        Insert: _insert,
        Put: _put,
        Patch: _patch,
        Delete: _delete,
        Remove: lambda view, op: view._remove(op),
        Lock: lambda view, op: view._lock((op.parts,)),
        LockAll: lambda view, op: view._lock(op.names),
    }
