"""Stores that are not what this muniment would have written are refused; many first openings at once are not."""

from __future__ import annotations

import hashlib
import multiprocessing
import sqlite3
from contextlib import closing
from multiprocessing.pool import Pool
from pathlib import Path

import psycopg
import pytest

from muniment.core.ports.engine import Count, Insert
from muniment.errors import SchemaMismatch
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.store.engines.sqlite import SqliteEngine

ALTER = {
    "fingerprint": "UPDATE {}layout SET fingerprint = 'altered'",
    "newer": "UPDATE {}layout SET number = 99",
    "older": "UPDATE {}layout SET number = 1",
    "two": "INSERT INTO {}layout (number, fingerprint) VALUES (99, 'x')",
    "none": "DELETE FROM {}layout",
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
