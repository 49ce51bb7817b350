"""A transaction that holds back the rows it is given, table by table, so that many small writes become few large ones.

Whoever writes through it is told what the store would tell: a question about rows that may be among those held back
lets them go first. What is known not to be there is answered without asking. Never decides what is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from muniment.core.ports.engine import Find, Get, Insert, Lock, LockAll, Op, Patch, Put, Row, Select, Transaction
from muniment.core.ports.schema import Table, column_names, table

__all__ = ["Gathered"]

R = TypeVar("R")


class _Known:
    """What is known of a table, by some of its columns: values that no row of the store has, and those held back."""

    def __init__(self, spec: Table[Any], by: tuple[str, ...], absent: Iterable[Row]) -> None:
        names = column_names(spec)
        self.by = by
        self.places = [names.index(name) for name in by]
        self.absent = set(absent)
        self.held: set[Row] = set()

    def take(self, rows: Iterable[Row]) -> None:
        places = self.places
        self.held.update(tuple([row[place] for place in places]) for row in rows)


class Gathered:
    """See above. `flush` lets everything go; nothing that was held back is written without it."""

    def __init__(self, tx: Transaction) -> None:
        self.inner = tx
        """What is asked and written in the end."""
        self._held: dict[str, tuple[type[Insert] | type[Put], list[Row]]] = {}
        self._known: dict[str, _Known] = {}
        self._locks: set[tuple[str, ...]] = set()

    def tell_absent(self, spec: Table[Any], by: tuple[str, ...], keys: Iterable[Row]) -> None:
        """No row has one of these values of the columns `by`, as the caller saw in this transaction."""
        self._known[spec.name] = _Known(spec, by, keys)

    def do(self, op: Op[R]) -> R:
        if isinstance(op, Insert | Put):
            return cast("R", self._hold(op))
        if isinstance(op, Lock | LockAll):
            return cast("R", self._lock(op.names if isinstance(op, LockAll) else (op.parts,)))
        asked = self._asked(op)
        if asked is None:
            self._let_go(op.table)  # type: ignore[attr-defined] # every other operation has one
        elif asked:
            return cast("R", None if isinstance(op, Get) else [])
        return self.inner.do(op)

    def stream(self, select: Select) -> Iterator[Row]:
        asked = self._asked(select)
        if asked:
            return iter(())
        if asked is None:
            self._let_go(select.table)
        return self.inner.stream(select)

    def flush(self) -> None:
        """Write all that was held back."""
        for name in list(self._held):
            self._let_go(name)

    def _lock(self, names: Sequence[tuple[str, ...]]) -> None:
        """A lock that is held is not taken again."""
        new = [name for name in dict.fromkeys(names) if name not in self._locks]
        self._locks.update(new)
        if new:
            self.inner.do(LockAll(new))

    def _hold(self, op: Insert | Put) -> None:
        kind = type(op)
        if self._held.get(op.table, (kind,))[0] is not kind:
            self._let_go(op.table)
        self._held.setdefault(op.table, (kind, []))[1].extend(op.rows)
        known = self._known.get(op.table)
        if known is not None:
            known.take(op.rows)

    def _let_go(self, name: str) -> None:
        kind, rows = self._held.pop(name, (Insert, []))
        if rows:
            self.inner.do(kind(name, rows))

    def _asked(self, op: Op[Any]) -> bool | None:
        """True for a question about what is not there, False for one about nothing that is held back, None where that
        cannot be told."""
        if isinstance(op, Get):
            where = dict(zip(table(op.table).key, op.key, strict=False))
        elif isinstance(op, Select | Patch):
            where = {name: value for name, how, value in op.where if how == "="}  # type: ignore[misc]
        elif isinstance(op, Find):
            return False if op.table not in self._held else None
        else:
            return None
        known = self._known.get(op.table)
        if known is None or not where.keys() >= set(known.by):
            return False if op.table not in self._held else None
        key = tuple([where[name] for name in known.by])
        if key in known.held:
            return None
        return isinstance(op, Get | Select) and key in known.absent
