"""Operations on one transaction of a store that speaks SQL, bound to one tenant: the part that both dialects share.

The transaction is begun and ended by the engine; nothing here commits. A dialect says how a statement is run, how rows
are streamed and what a lock is. Rows and conditions are encoded and decoded here (`codec`). Every failure leaves in the
words of `errors`, or as `KeyTaken`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

from muniment.core.ports.engine import (
    Advance,
    Count,
    Delete,
    Find,
    Get,
    Insert,
    Lock,
    LockAll,
    Patch,
    Put,
    Remove,
    Row,
    Select,
)
from muniment.store.engines.checks import Shape, check_advance, check_key, check_rows, shape_of
from muniment.store.engines.codec import NO_NAME, NameBook, row_decoder, row_encoder, shard_of
from muniment.store.engines.ddl import TENANTS_SHARD
from muniment.store.engines.sql import Question, Statements, key_values, leading_name, without_bound
from muniment.store.engines.turns import View

__all__ = ["SqlReader", "SqlTransaction"]

_ADVANCED_AT_ONCE = 512
"""Rows that one statement advances."""
_NAMES_READ = 256
"""Names that are read with one that is not known, since rows written together have neighbouring numbers."""


class _Changed(Protocol):
    """What a statement that changes rows answers: a cursor that counts them."""

    @property
    def rowcount(self) -> int: ...


class SqlReader(View):
    """Reads by key, by condition and by count. It is the `NameLookup` of its transaction."""

    can_wait: ClassVar[bool] = True
    """A view that only reads keeps nobody waiting."""

    def __init__(self, tenant_id: str, location: str, statements: Statements, book: NameBook) -> None:
        super().__init__()
        self._tenant_id = tenant_id
        self._location = location
        self._statements = statements
        self._book = book
        self._own_shard: int | None = None
        self._coders: dict[Any, Callable[[Row], Row] | None] = {}

    @abstractmethod
    def _fetch(self, table: str, statement: str, parameters: Sequence[Any]) -> list[Row]:
        """The stored rows that a statement answers."""

    # -- names

    @property
    def _shard(self) -> int:
        """The shard of the tenant; one that no row has if nothing was written to it yet."""
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

    def _decoded(self, shape: Shape, columns: tuple[str, ...], rows: list[Row]) -> list[Row]:
        decode = self._decoder(shape, columns)
        return rows if decode is None else list(map(decode, rows))

    def _decoder(self, shape: Shape, columns: tuple[str, ...]) -> Callable[[Row], Row] | None:
        if not shape.is_coded:
            return None
        key = (shape.spec.name, columns)
        if key not in self._coders:
            named = [shape.column[name] for name in shape.output(columns)]
            self._coders[key] = row_decoder(named, self, packs=self._statements.packs)
        return self._coders[key]

    def _get(self, op: Get) -> Row | None:
        shape = shape_of(op.table)
        check_key(shape, op.key)
        key = key_values(shape, shape.spec.key, op.key, self)
        rows = self._fetch(op.table, self._statements.get(shape), (self._shard, *key))
        return self._decoded(shape, (), rows)[0] if rows else None

    def _select(self, op: Select) -> list[Row]:
        shape = shape_of(op.table)
        if not shape.has_names or (op.after is None and leading_name(shape, op) is None):
            return self._fetched(op)
        return list(self._in_order(op, self._fetched))

    def _rows(self, select: Select) -> Iterator[Row]:
        return self._in_order(select, self._streamed)

    def _fetched(self, op: Select) -> list[Row]:
        question = self._question(op)
        return self._decoded(shape_of(op.table), op.columns, self._fetch(op.table, *question)) if question else []

    @abstractmethod
    def _streamed(self, select: Select) -> Iterator[Row]:
        """The rows of one statement one by one, in flat memory."""

    def _in_order(self, op: Select, ask: Callable[[Select], Iterable[Row]]) -> Iterator[Row]:
        """The rows in the order of their names, though they lie in that of their numbers: name by name, from one to the
        next, where names lead the order. Elsewhere the statement sorts (`Statements.select`)."""
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
        """The same question for each name that rows have in this column, which leads the order."""
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
        """The statement and its parameters; None where no row can hold what is asked."""
        shape = shape_of(op.table)
        shape.check_select(op)
        possible = shape.check_where(op.where)
        shape.output(op.columns)
        return self._statements.select(shape, self._shard, op, self) if possible else None

    def _find(self, op: Find) -> list[Row]:
        shape = shape_of(op.table)
        possible = shape.check_find(op)
        shape.output(op.columns)
        if not possible:
            return []
        rows = self._fetch(op.table, *self._statements.find(shape, self._shard, op, self))
        return self._decoded(shape, op.columns, rows)

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
    """Writes too. What it learns of names is kept for others by `publish`, once it is committed."""

    can_wait: ClassVar[bool] = False

    def __init__(self, tenant_id: str, location: str, statements: Statements, book: NameBook) -> None:
        super().__init__(tenant_id, location, statements, book)
        self._fresh_numbers: dict[tuple[int, str], int] = {}
        self._fresh_names: dict[tuple[int, int], str] = {}
        self._encoders: dict[str, Callable[[Row], Row]] = {}

    @abstractmethod
    def _run(self, table: str, statement: str, parameters: Sequence[Any]) -> _Changed: ...

    @abstractmethod
    def _run_many(self, table: str, statement: str, rows: Sequence[Row]) -> None:
        """The statement for each of these stored rows, with the shard before it."""

    @abstractmethod
    def _lock(self, names: Sequence[tuple[str, ...]]) -> None:
        """Hold these locks, taken in this order."""

    @abstractmethod
    def _new_number(self, shard: int, name: str) -> int:
        """Assign a number to a name that has none."""

    # -- names

    def publish(self) -> None:
        """After the commit: what was learned of names is true for all."""
        for (shard, name), number in self._fresh_numbers.items():
            self._book.add(shard, [(number, name)])

    @property
    def _writing_shard(self) -> int:
        """The shard of the tenant, which gets one by its first write."""
        if self._own_shard is None:
            shard = shard_of(self._number_for(TENANTS_SHARD, self._tenant_id))
            self._enter(shard)
            return shard
        return self._own_shard

    def number_for(self, name: str) -> int:
        return self._number_for(self._writing_shard, name)

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
        if not shape.is_coded:
            return rows
        encode = self._encoders.get(shape.spec.name)
        if encode is None:
            encode = row_encoder(shape.spec.columns, self, packs=self._statements.packs)
            self._encoders[shape.spec.name] = encode
        return [encode(row) for row in rows]

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
        return self._decoded(shape, (), answered)

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
