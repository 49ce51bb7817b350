"""Schemas of the test server that are emptied and handed on: to make one, and to drop it, costs more than most tests.

For tests that use a store as it is. Those that change its tables, roles or pages take a fresh schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from muniment.core.ports.schema import TABLES
from muniment.testing.postgres_server import fresh_schema

__all__ = ["drop_kept", "kept_schema"]

_kept = ExitStack()
_free: dict[str, list[str]] = {}


@contextmanager
def kept_schema(dsn: str, kind: str = "") -> Iterator[str]:
    """The name of a schema in which no store was made yet, or one of this kind without a row."""
    free = _free.setdefault(f"{kind} {dsn}", [])
    name = free.pop() if free else _kept.enter_context(fresh_schema(dsn))
    yield name
    _empty(dsn, name)
    free.append(name)


def _empty(dsn: str, name: str) -> None:
    import psycopg

    tables = [f'"{name}".{spec.name}' for spec in TABLES]
    with psycopg.connect(dsn, autocommit=True) as connection:
        made = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f'"{name}".migrations',)).fetchone()
        if made != (True,):
            return
        asked = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables)
        full = [table for (table,) in connection.execute(asked.encode())]
        if full:
            connection.execute(f"TRUNCATE {', '.join(full)}".encode())


def drop_kept() -> None:
    """At the end of the session: the server may be one that stays."""
    _free.clear()
    _kept.close()
