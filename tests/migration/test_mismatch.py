"""Stores that are not what this muniment would have written are refused; many first openings at once are not."""

from __future__ import annotations

import hashlib
import multiprocessing
import sqlite3
from contextlib import closing
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment.core.ports.engine import Count, Insert
from muniment.errors import SchemaMismatch
from muniment.store.engines.migrations import Migration, load, pending
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.sqlite.engine import SqliteEngine

ALTER = {
    "hash": "UPDATE {}migrations SET sha256 = 'altered' WHERE number = 1",
    "name": "UPDATE {}migrations SET name = 'altered' WHERE number = 1",
    "newer": "INSERT INTO {}migrations (number, name, sha256, applied_at) VALUES (99, 'future', 'x', 'then')",
    "gap": "UPDATE {}migrations SET number = number - 1",
}
alterations = pytest.mark.parametrize("how", ALTER)


@alterations
@pytest.mark.parametrize("read_only", [False, True])
def test_sqlite_refuses_what_it_did_not_write(tmp_path: Path, how: str, read_only: bool) -> None:
    path = tmp_path / "store.db"
    SqliteEngine(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(ALTER[how].format(""))
    before = hashlib.sha256(path.read_bytes()).digest()
    with pytest.raises(SchemaMismatch) as caught:
        SqliteEngine(path, read_only=read_only)
    assert ("newer" in str(caught.value)) == (how == "newer")
    assert hashlib.sha256(path.read_bytes()).digest() == before


@alterations
def test_postgres_refuses_what_it_did_not_write(postgres_dsn: str, postgres_schema: str, how: str) -> None:
    PostgresEngine(postgres_dsn, schema=postgres_schema).close()
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(ALTER[how].format(f'"{postgres_schema}".'))
    with pytest.raises(SchemaMismatch) as caught:
        PostgresEngine(postgres_dsn, schema=postgres_schema)
    assert ("newer" in str(caught.value)) == (how == "newer")


def test_an_older_store_is_brought_up_to_date() -> None:
    known = [Migration(n, f"m{n}", f"h{n}", "") for n in (1, 2, 3)]
    assert pending(known, []) == tuple(known)
    assert pending(known, [(1, "m1", "h1")]) == tuple(known[1:])
    damaged: list[Any] = [(2, None, "h2"), (None, "m2", "h2"), (2, "m2", b"h2"), ("2", "m2", "h2")]
    for row in damaged:
        with pytest.raises(SchemaMismatch, match="list of migrations in the store is damaged"):
            pending(known, [(1, "m1", "h1"), row])
    assert pending(known, [(3, "m3", "h3"), (1, "m1", "h1"), (2, "m2", "h2")]) == ()
    with pytest.raises(SchemaMismatch):
        pending(known, [(1, "m1", "h1"), (3, "m3", "h3")])


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_migrations_are_numbered_without_gaps(engine: str) -> None:
    numbers = [migration.number for migration in load(f"muniment.store.engines.{engine}")]
    assert numbers == list(range(1, len(numbers) + 1))


def _open_and_write(arguments: tuple[str, str | None, int]) -> int:
    target, schema, number = arguments
    engine = PostgresEngine(target, schema=schema) if schema else open_engine(target)
    try:
        engine.write(f"t{number}", lambda transaction: transaction.do(Insert("tenants", [("now",)])))
        return engine.read(f"t{number}", lambda reader: reader.do(Count("tenants")))
    finally:
        engine.close()


@pytest.fixture(scope="module")
def processes() -> Pool:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(abs, range(8), chunksize=1)  # all are up before the race begins
        yield pool
        pool.close()
        pool.join()


@pytest.mark.soak
def test_many_processes_make_one_sqlite_store(tmp_path: Path, processes: Pool) -> None:
    for attempt in range(5):
        path = str(tmp_path / f"store{attempt}.db")
        assert processes.map(_open_and_write, [(path, None, n) for n in range(8)], chunksize=1) == [1] * 8
        engine = open_engine(path)
        assert engine.tenants() == [f"t{n}" for n in range(8)]
        engine.close()


def test_many_processes_make_one_postgres_store(postgres_dsn: str, postgres_schema: str, processes: Pool) -> None:
    calls = [(postgres_dsn, postgres_schema, n) for n in range(8)]
    assert processes.map(_open_and_write, calls, chunksize=1) == [1] * 8
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema)
    assert engine.tenants() == [f"t{n}" for n in range(8)]
    engine.close()
