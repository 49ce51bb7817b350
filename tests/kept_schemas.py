"""Schemas of the test server that are emptied and handed on: to make one, and to drop it, costs more than most tests.

For tests that use a store as it is. Those that change its tables, roles or pages take a fresh schema. An engine is
handed on the same way: to open one costs more than most questions to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from muniment.core.ports.schema import TABLES
from muniment.testing.postgres import fresh_schema

if TYPE_CHECKING:
    import psycopg

    from muniment.store.engines.postgres import PostgresEngine

__all__ = ["drop_kept", "kept_engine", "kept_schema"]

_kept = ExitStack()
_free: dict[str, list[str]] = {}
_engines: dict[str, PostgresEngine] = {}
_emptying: dict[str, psycopg.Connection] = {}
"""By server: a session that has read about the tables once, which takes it longer than to empty them."""


@contextmanager
def kept_schema(dsn: str, kind: str = "") -> Iterator[str]:
    """The name of a schema in which no store was made yet, or one of this kind without a row."""
    free = _free.setdefault(f"{kind} {dsn}", [])
    name = free.pop() if free else _kept.enter_context(fresh_schema(dsn))
    yield name
    _empty(dsn, name)
    free.append(name)


@contextmanager
def kept_engine(dsn: str, **how: Any) -> Iterator[PostgresEngine]:
    """An engine over a schema without a row; a test that closes it has the next one opened anew."""
    from muniment.store.engines.postgres import PostgresEngine

    kind = f"{how} {dsn}"
    engine = _engines.pop(kind, None)
    if engine is None:
        engine = PostgresEngine(dsn, schema=_kept.enter_context(fresh_schema(dsn)), **how)
        _kept.callback(engine.close)
    yield engine
    _empty(dsn, engine.schema)
    if not engine._closed:
        _engines[kind] = engine


def _empty(dsn: str, name: str) -> None:
    tables = [f'"{name}".{spec.name}' for spec in TABLES]
    connection = _emptier(dsn)
    made = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f'"{name}".layout',)).fetchone()
    if made != (True,):
        return
    asked = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables)
    full = [table for (table,) in connection.execute(asked.encode())]
    if full:
        connection.execute(f"TRUNCATE {', '.join(full)}".encode())


def _emptier(dsn: str) -> psycopg.Connection:
    import psycopg

    if dsn not in _emptying or _emptying[dsn].closed:
        _emptying[dsn] = _kept.enter_context(psycopg.connect(dsn, autocommit=True))
    return _emptying[dsn]


def drop_kept() -> None:
    """At the end of the session: the server may be one that stays."""
    _free.clear()
    _emptying.clear()
    _engines.clear()
    _kept.close()
