"""Checks that every engine applies before a row or condition reaches storage.

Holds the shape of each table (looked up once) and the checks of tenants, rows, keys and conditions against it, so that
SQLite and PostgreSQL refuse the same things with the same messages. Never touches storage.

Plain values only: exactly str, int, bytes or None. Subclasses (bool, enums) are refused, because drivers disagree about
how to store them. NUL characters and lone surrogates are refused, because PostgreSQL cannot hold the first and no file
can hold the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import NoneType
from typing import Any, Literal, NamedTuple, cast

from muniment.core.ports.engine import Condition, Find, Row, Select, Value
from muniment.core.ports.schema import OPAQUE, TABLES, Column, Table
from muniment.errors import InvalidInput, StorageFailure, TooLarge

__all__ = [
    "IN_MAX",
    "TENANT_ANY",
    "Shape",
    "check_advance",
    "check_key",
    "check_rows",
    "check_tenant",
    "check_value",
    "shape_of",
]

IN_MAX = 16_384
"""Maximum number of values in one `in` (SQLite binds at most 32,766)."""

TENANT_ANY = "*"
"""Every tenant, to the PostgreSQL policy on `tenants`; so no tenant may have this name."""

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_PYTHON_TYPE: dict[str, type] = {"text": str, "int": int, "bytes": bytes}
_STORED: dict[str, Literal["text", "int", "bytes"]] = {"id": "bytes", "ids": "bytes", "name": "int", "instant": "int"}
_COMPARISONS = frozenset({"=", "<", "<=", ">", ">=", "in"})
_FEW = 4
"""Up to this many rows are checked value by value, more are checked column by column."""


class Shape(NamedTuple):
    """A table with everything an operation needs to know about it."""

    spec: Table[Any]
    names: tuple[str, ...]
    position: dict[str, int]
    column: dict[str, Column]
    types: tuple[type, ...]
    key_positions: tuple[int, ...]
    texts: frozenset[str]
    """Columns that hold any text and can be queried by it."""
    stored: dict[str, Literal["text", "int", "bytes"]]
    """Storage form of each column (`codec`)."""
    has_names: bool
    is_coded: bool
    """True if a column's stored form differs from its plain one."""
    fixed: frozenset[str]
    """Columns of the primary and unique keys: a Patch may not touch them."""
    can_advance: bool
    """True if all columns outside its key are numbers."""

    def key_of(self, row: Row) -> Row:
        return tuple([row[position] for position in self.key_positions])

    def last_of_each_key(self, rows: Sequence[Row]) -> list[Row]:
        """Keep one row for each primary key, the last given: the effect of a Put of these rows."""
        if len(self.key_positions) == len(self.names):  # nothing but a key: equal keys are equal rows
            return list(dict.fromkeys(rows))
        return list({self.key_of(row): row for row in rows}.values())

    def column_named(self, name: str) -> Column:
        column = self.column.get(name)
        if column is None:
            raise InvalidInput(f"table {self.spec.name} has no column {name!r}")
        return column

    def output(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        for name in columns:
            self.column_named(name)
        return columns or self.names

    def order_of(self, select: Select) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the order given plus the key columns that make it total, so that ties are the same everywhere."""
        order = select.order or self.spec.key
        for name in order:
            if self.column_named(name).nullable:
                raise InvalidInput(f"cannot order {self.spec.name} by {name}, which may be null")
        if len(set(order)) != len(order):
            raise InvalidInput(f"an order names a column twice: {', '.join(order)}")
        if any(set(order) >= set(unique) for unique in self.spec.unique):
            return order, ()
        return order, tuple(name for name in self.spec.key if name not in order)

    def check_select(self, select: Select) -> None:
        """Check the parts of a Select that are not in its shape: the values of `after` and `limit`."""
        if select.after is not None:
            order = select.order or self.spec.key
            if not order or len(select.after) != len(order):
                raise InvalidInput(f"after has {len(select.after)} values for an order of {len(order)} columns")
            for name, value in zip(order, select.after, strict=True):
                check_value(self, self.column_named(name), value, null=False)
        self.check_limit(select.limit)

    def check_limit(self, limit: int | None) -> None:
        if limit is not None and (type(limit) is not int or not 0 <= limit <= _INT_MAX):
            raise InvalidInput(f"a limit is a whole number from 0 on, not {limit!r}")

    def check_find(self, find: Find) -> bool:
        """Refuse a lookup by a non-unique key, or by invalid values; False where it asks nothing."""
        if not find.by or (find.by != self.spec.key and find.by not in self.spec.unique):
            raise InvalidInput(f"({', '.join(find.by)}) is no unique key of {self.spec.name}")
        if len(find.keys) * len(find.by) > IN_MAX:
            raise TooLarge(f"a question takes at most {IN_MAX} values", hint="split the question")
        if any(len(key) != len(find.by) for key in find.keys):
            raise InvalidInput(f"a key of {self.spec.name} here is ({', '.join(find.by)})")
        for name, values in zip(find.by, zip(*find.keys, strict=True), strict=bool(find.keys)):
            _check_values(self, self.column_named(name), values)
        return bool(find.keys)

    def check_condition(self, condition: Condition) -> bool:
        """Refuse a meaningless condition; False where nothing can meet it."""
        name, comparison, value = condition
        column = self.column_named(name)
        if comparison == "in":
            if type(value) is not tuple:
                raise InvalidInput(f"in takes a tuple of values for {name}, not {type(value).__name__}")
            if len(value) > IN_MAX:
                raise TooLarge(f"in takes at most {IN_MAX} values, not {len(value)}", hint="split the question")
            _check_values(self, column, value)
            return bool(value)
        if comparison not in _COMPARISONS:
            raise InvalidInput(f"unknown comparison {comparison!r}")
        if type(value) is tuple:
            raise InvalidInput(f"{comparison} takes one value for {name}, not a tuple")
        is_asked_for = comparison == "=" if column.form == "name" else (comparison, value) == (">=", "")
        if value is not None and (column.form in OPAQUE or column.form == "name") and not is_asked_for:
            raise InvalidInput(f"{self.spec.name}.{name} cannot be compared by {comparison}")
        check_value(self, column, value, null=comparison == "=")  # type: ignore[arg-type]
        return value is not None or column.nullable

    def check_patch(self, where: tuple[Condition, ...], values: dict[str, Value]) -> bool:
        if not values:
            raise InvalidInput("a patch sets at least one column")
        for name, value in values.items():
            column = self.column_named(name)
            if name in self.fixed:
                raise InvalidInput(f"{name} is part of a key of {self.spec.name} and cannot be patched")
            check_value(self, column, value)
        return self.check_where(where, needed=True)

    def check_where(self, where: tuple[Condition, ...], *, needed: bool = False) -> bool:
        if needed and not where:
            raise InvalidInput("at least one condition is needed to change or remove rows")
        possible = True
        for condition in where:
            name, comparison, value = condition
            if comparison == "=" and type(value) is str and name in self.texts and _is_plain(value):
                continue  # most are of this kind
            possible = self.check_condition(condition) and possible
        return possible


def _shape(spec: Table[Any]) -> Shape:
    names = tuple(column.name for column in spec.columns)
    position = {name: index for index, name in enumerate(names)}
    fixed = frozenset(spec.key).union(*spec.unique)
    return Shape(
        spec=spec,
        names=names,
        position=position,
        column={column.name: column for column in spec.columns},
        types=tuple(_PYTHON_TYPE[column.type] for column in spec.columns),
        key_positions=tuple(position[name] for name in spec.key),
        texts=frozenset(
            column.name
            for column in spec.columns
            if column.type == "text" and column.form not in OPAQUE and column.form != "instant"
        ),
        stored={column.name: _STORED.get(column.form, column.type) for column in spec.columns},
        has_names=any(column.form == "name" for column in spec.columns),
        is_coded=any(column.form != "plain" for column in spec.columns),
        fixed=fixed,
        can_advance=all(column.type == "int" for column in spec.columns if column.name not in spec.key),
    )


@cache
def _shapes() -> dict[str, Shape]:
    return {spec.name: _shape(spec) for spec in TABLES}


def shape_of(table: str) -> Shape:
    shape = _shapes().get(table)
    if shape is None:
        raise InvalidInput(f"no such table: {table!r}")
    return shape


def check_tenant(tenant_id: str) -> None:
    """Check a tenant name, a non-empty text other than `*`: an unset PostgreSQL setting reads as the empty text."""
    if type(tenant_id) is not str or not tenant_id or tenant_id == TENANT_ANY:
        raise InvalidInput(f"not a tenant: {tenant_id!r}")
    _check_text("tenant_id", tenant_id)


def _is_plain(text: str) -> bool:
    return text.isascii() and "\0" not in text


def _check_text(name: str, value: str) -> None:
    try:
        held = "\0" in value if value.isascii() else 0 in value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{name} holds a lone surrogate, which is no text") from error
    if held:
        raise InvalidInput(f"{name} holds a NUL character", hint="remove it: no store can hold it safely")


def check_value(shape: Shape, column: Column, value: Value, *, null: bool | None = None) -> None:
    """Refuse a value the column cannot hold. `null` overrides whether None is allowed."""
    if value is None:
        if not (column.nullable if null is None else null):
            raise InvalidInput(f"{shape.spec.name}.{column.name} cannot be null here")
        return
    if type(value) is not _PYTHON_TYPE[column.type]:
        raise InvalidInput(f"{shape.spec.name}.{column.name} takes {column.type}, not {type(value).__name__}")
    if type(value) is str:
        _check_text(f"{shape.spec.name}.{column.name}", value)
    elif type(value) is int and not _INT_MIN <= value <= _INT_MAX:
        raise InvalidInput(f"{shape.spec.name}.{column.name} takes 64-bit numbers")


def _check_values(shape: Shape, column: Column, values: tuple[Value, ...]) -> None:
    """Check the values of an `in`: plain texts all at once, everything else one by one."""
    if set(map(type, values)) == {str} == {_PYTHON_TYPE[column.type]} and _is_plain("".join(cast("Any", values))):
        return
    for value in values:
        check_value(shape, column, value, null=False)


def check_key(shape: Shape, key: Row) -> None:
    if len(key) != len(shape.spec.key):
        raise InvalidInput(f"the key of {shape.spec.name} is ({', '.join(shape.spec.key)})")
    for name, value in zip(shape.spec.key, key, strict=True):
        check_value(shape, shape.column[name], value, null=False)


def check_rows(shape: Shape, rows: Sequence[Row]) -> None:
    """Refuse rows the table cannot hold. The common case is checked column by column, at the speed of C."""
    width = len(shape.names)
    for row in rows:
        if len(row) != width:
            raise InvalidInput(f"a row of {shape.spec.name} has {width} values, not {len(row)}")
    if len(rows) <= _FEW:
        for row in rows:
            _check_row(shape, row)
        return
    for column, values in zip(shape.spec.columns, zip(*rows, strict=True), strict=True):
        _check_column(shape, column, values)


def check_advance(shape: Shape, rows: Sequence[Row]) -> None:
    """Refuse rows that cannot be added to others: of a table with more than numbers, or two of one key."""
    check_rows(shape, rows)
    if not shape.can_advance:
        raise InvalidInput(f"rows of {shape.spec.name} hold more than numbers")
    if len(rows) > 1 and len({shape.key_of(row) for row in rows}) < len(rows):
        raise InvalidInput(f"a key of {shape.spec.name} is given twice")


def _check_row(shape: Shape, row: Row) -> None:
    """Check a row: plain texts at a glance, other values one by one."""
    plain = _is_plain("".join([value for value in row if type(value) is str]))
    for wanted, value, column in zip(shape.types, row, shape.spec.columns, strict=True):
        if type(value) is wanted:
            if wanted is bytes or (plain if wanted is str else _INT_MIN <= value <= _INT_MAX):  # type: ignore[operator]
                continue
        elif value is None and column.nullable:
            continue
        check_value(shape, column, value)


def _check_column(shape: Shape, column: Column, values: tuple[Value, ...]) -> None:
    wanted = _PYTHON_TYPE[column.type]
    types = set(map(type, values))
    if not (types == {wanted} or (column.nullable and types <= {wanted, NoneType})):
        for value in values:
            check_value(shape, column, value)
        raise StorageFailure(f"{shape.spec.name}.{column.name}: checks disagree")
    if wanted is str:
        texts = cast("list[str]", [value for value in values if value is not None] if column.nullable else values)
        name = f"{shape.spec.name}.{column.name}"
        if not column.content:
            _check_text(name, "".join(texts))
            return
        for text in texts:  # may be long: not copied
            if not _is_plain(text):
                _check_text(name, text)
    elif wanted is int:
        numbers = cast("list[int]", [value for value in values if value is not None])
        for number in (min(numbers, default=0), max(numbers, default=0)):
            check_value(shape, column, number)
