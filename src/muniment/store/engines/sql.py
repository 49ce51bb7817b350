"""The SQL of every operation, built once for each shape of question and kept.

Two dialects differ in their placeholder, in how a name is written and in how `in` is written. Every statement names the
shard of its tenant, always as its first condition or column, and takes it as a parameter: nothing here can forget it.
Values never enter the text; they become what the columns store (`codec`). Never touches a database.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from muniment.core.ports.engine import Condition, Count, Delete, Find, Patch, Remove, Row, Select, Value
from muniment.store.engines.checks import Shape
from muniment.store.engines.codec import NameGiver, NameLookup, row_encoder, value_encoder
from muniment.store.engines.ddl import NAMES_TABLE

__all__ = ["Question", "Statements", "bracketed", "key_values", "leading_name", "quoted", "without_bound"]

Question = tuple[str, list[Any]]
"""A statement and its parameters."""

_ARRAY = {"text": "text[]", "int": "bigint[]", "bytes": "bytea[]"}
_OF_SOMEBODY = frozenset({"user_id", "session_id", "run_id", "owner"})
"""Columns by which rows are somebody's: few of a tenant's rows have one value of them."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def bracketed(name: str) -> str:
    """A name for SQLite, which takes one in double quotes for a text where no column has it: then every row would seem
    to hold the column's name, and a condition would be one between constants."""
    return f"[{name}]"


class Statements:
    """The statements of one store. `arrays`: `in` is one array parameter (PostgreSQL), else a list of marks."""

    def __init__(self, *, mark: str, schema: str | None = None, arrays: bool = False) -> None:
        self._mark = mark
        self._name = quoted if arrays else bracketed
        self._prefix = f"{quoted(schema)}." if schema else ""
        self._arrays = arrays
        self.packs = not arrays
        """Does this side compress long texts?"""
        self._texts: dict[Any, str] = {}
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
        """For servers, which count for themselves."""

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
        """Parameters: for each of so many rows the shard, then the stored row."""
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
        """The values that rows have in a column, each once."""
        forms, parameters = self._where(shape, shard, op.where, names)

        def text() -> str:
            conditions = self._conditions(shape, forms)
            return f"SELECT DISTINCT {self._name(column)} FROM {self.table(shape)} WHERE {conditions}"

        return self._kept(("distinct", op.table, column, forms), text), parameters

    def find(self, shape: Shape, shard: int, op: Find, names: NameLookup) -> Question:
        """The keys come first, as a table that leads to the rows one by one: a list of them would be walked along.
        Told how many there are, SQLite does not read the whole table for a filter before it looks.
        """
        size, parameters = self._keys(shape, op, names)
        asked = ("find", op.table, op.by, op.columns, size)
        return self._kept(asked, lambda: self._find(shape, op, size)), [*parameters, shard]

    def remove(self, shape: Shape, shard: int, op: Remove, names: NameLookup) -> Question:
        """The keys come first, as in `find`; for servers, which take them as arrays."""
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
        """One row by its shard and a key."""

        def text() -> str:
            equal = " AND ".join(f"{self._name(name)} = {self._mark}" for name in ("shard", *by))
            return f"DELETE FROM {self.table(shape)} WHERE {equal}"

        return self._kept(("remove one", shape.spec.name, by), text)

    def _keys(self, shape: Shape, op: Find | Remove, names: NameLookup) -> tuple[int, list[Any]]:
        """How many keys the statement has room for, and their values as it takes them."""
        keys: list[Row] = [key_values(shape, op.by, key, names) for key in dict.fromkeys(op.keys)]
        if self._arrays:
            return 0, [list(values) for values in zip(*keys, strict=True)]
        size = 1 << (len(keys) - 1).bit_length()
        parameters: list[Any] = [value for key in keys for value in key]
        parameters.extend([None] * (len(op.by) * (size - len(keys))))  # keys that no row has: few statements serve all
        return size, parameters

    def _asked(self, shape: Shape, op: Find | Remove, count: int) -> tuple[list[str], str]:
        """The names of the columns of a table of keys, and what gives its rows."""
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
        values = row_encoder([shape.column[name] for name in changed], names, packs=self.packs)(
            tuple(op.values.values())
        )
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
        compared = set(order if op.after is not None else ())  # with names, which are given as they are
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
        """The name behind a number, to sort by it."""
        names = f"{self._prefix}{self._name(NAMES_TABLE)}"
        shard, number = self._name("shard"), self._name("number")
        table = self.table(shape)
        return (
            f"(SELECT {self._name('name')} FROM {names} AS sorted"
            f" WHERE sorted.{shard} = {table}.{shard} AND sorted.{number} = {table}.{self._name(column)})"
        )

    @staticmethod
    def _is_walked(shape: Shape, order: tuple[str, ...], forms: Sequence[tuple[str, str, int]]) -> bool:
        """Would SQLite walk all of a tenant's rows in the order of their key, to find those of somebody?

        It knows no better than that an index which begins with the tenant leads to few rows, so it takes the one that
        saves it sorting. A `+` before a column of the order keeps it from that.
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
        """The forms of the conditions (column, comparison, how many values) and the parameters."""
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
    """The same question without the columns at the start of its order that are bound to one value; None if no row
    comes behind its `after`."""
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
    """The first column of names in the order that is not bound to one name, unless another column sorts before it."""
    if not shape.has_names:
        return None
    bound = _bound(op.where)
    order, rest = shape.order_of(op)
    for name in (*order, *rest):
        if name not in bound:
            return name if shape.column[name].form == "name" else None
    return None


def key_values(shape: Shape, by: tuple[str, ...], key: Row, names: NameLookup) -> Row:
    """The values of these columns as they are stored."""
    coded = [value_encoder(shape.column[name], names) for name in by]
    return tuple([value if code is None else code(value) for code, value in zip(coded, key, strict=True)])


def _padded(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Filled up to a power of two by repeating the last value, so that few statements serve all lengths."""
    size = 1 << (len(values) - 1).bit_length()
    return values + values[-1:] * (size - len(values))
