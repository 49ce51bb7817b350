"""Migration 6 on stores that lack it: what was there stays, and whoever could work with the store still can."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import muniment
from muniment.store.engines import migrations
from muniment.store.engines.postgres import opening as postgres_opening
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.sqlite import opening as sqlite_opening
from muniment.store.engines.sqlite.engine import SqliteEngine

NEW = {"marks", "extracts"}


@pytest.fixture
def of_before(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Until it is undone, stores are made with the first five migrations alone."""
    for opening in (sqlite_opening, postgres_opening):
        monkeypatch.setattr(opening, "load", lambda package: migrations.load(package)[:5])
    return monkeypatch


def test_a_file_of_before_gets_the_tables(tmp_path: Path, of_before: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    SqliteEngine(path).close()
    with closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        assert not names & NEW
    of_before.undo()
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        for number in range(70):
            run.observe("user", f"turn {number}")
        assert mem.verify().ok
    with closing(sqlite3.connect(path)) as connection:
        numbers = [number for (number,) in connection.execute("SELECT number FROM migrations ORDER BY number")]
        assert numbers == [*range(1, len(migrations.load("muniment.store.engines.sqlite")) + 1)]
        known = {name for (name,) in connection.execute("SELECT tbl FROM sqlite_stat1")}
        assert known >= NEW


def test_rights_on_the_ledger_are_handed_on(
    postgres_dsn: str, postgres_schema: str, of_before: pytest.MonkeyPatch
) -> None:
    """A server whose role owns nothing was granted the tables one by one, before these were there."""
    role = f"server_{postgres_schema}"
    PostgresEngine(postgres_dsn, schema=postgres_schema).close()
    with psycopg.connect(postgres_dsn, autocommit=True) as owner:
        owner.execute(f'CREATE ROLE "{role}" NOLOGIN')
        try:
            owner.execute(f'GRANT USAGE ON SCHEMA "{postgres_schema}" TO "{role}"')
            owner.execute(f'GRANT SELECT, INSERT ON "{postgres_schema}".entries TO "{role}"')
            of_before.undo()
            PostgresEngine(postgres_dsn, schema=postgres_schema).close()
            for table in sorted(NEW):
                name = f'"{postgres_schema}".{table}'
                held = [
                    right
                    for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")
                    for (holds,) in owner.execute("SELECT has_table_privilege(%s, %s, %s)", (role, name, right))
                    if holds
                ]
                assert held == ["SELECT", "INSERT"], table
        finally:
            owner.execute(f'DROP OWNED BY "{role}"')
            owner.execute(f'DROP ROLE "{role}"')
