"""Sample rows for any declared table, so that a suite covers tables that do not exist yet. Never touches storage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from muniment.core.instants import format_instant
from muniment.core.ports.engine import Row, Value
from muniment.core.ports.schema import Table, column_names, table
from muniment.store.engines.checks import shape_of

__all__ = ["row_with", "sample_key", "sample_row", "stored_row"]

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def sample_row(spec: Table[Any], number: int) -> Row:
    """A row unlike that of any other number, in every column."""
    make: dict[str, Value] = {"text": f"{spec.name} {number:06d}", "int": number, "bytes": b"%s %06d" % (b"b", number)}
    moment = format_instant(_FIRST + timedelta(seconds=number))
    return tuple(moment if column.form == "instant" else make[column.type] for column in spec.columns)


def sample_key(spec: Table[Any], number: int) -> Row:
    row = sample_row(spec, number)
    names = column_names(spec)
    return tuple(row[names.index(name)] for name in spec.key)


def row_with(table_name: str, number: int = 1, **values: Value) -> Row:
    """The sample row of a table with some columns given."""
    spec = table(table_name)
    unknown = values.keys() - set(column_names(spec))
    if unknown:
        raise KeyError(f"{table_name} has no column {', '.join(sorted(unknown))}")
    names = column_names(spec)
    return tuple(values.get(name, value) for name, value in zip(names, sample_row(spec, number), strict=True))


def stored_row(spec: Table[Any], number: int) -> Row:
    """A row as SQL would write it, without its shard."""
    make: dict[str, Value] = {"text": f"={number:06d}", "int": number, "bytes": b"%06d" % number}
    return tuple(make[kind] for kind in shape_of(spec.name).stored.values())
