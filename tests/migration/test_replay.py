"""A store made from the migrations is the one `core.ports.schema` declares: columns, types, nulls, keys, indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from muniment.core.ports.schema import TABLES, Table
from muniment.store.engines.migrations import load
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.sqlite.engine import SqliteEngine
from muniment.store.engines.sqlite.opening import APPLICATION_ID

every_table = pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
MIGRATIONS_COLUMNS = ["number", "name", "sha256", "applied_at"]


def declared_columns(spec: Table) -> list[tuple[str, str, bool]]:
    return [("tenant_id", "text", False), *[(c.name, c.type, c.nullable) for c in spec.columns]]


def declared_key(spec: Table) -> tuple[str, ...]:
    return ("tenant_id", *spec.key)


def declared_indexes(spec: Table) -> set[tuple[bool, tuple[str, ...]]]:
    """(unique, columns) of every index but that of the primary key."""
    return {
        *[(True, ("tenant_id", *columns)) for columns in spec.unique],
        *[(False, ("tenant_id", *columns)) for columns in spec.indexes],
    }


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("replay") / "store.db"
    SqliteEngine(path).close()
    with closing(sqlite3.connect(path)) as connection:
        yield connection


class TestSqlite:
    TYPES = {"TEXT": "text", "INTEGER": "int", "BLOB": "bytes"}  # noqa: RUF012

    @every_table
    def test_table(self, sqlite_store: sqlite3.Connection, spec: Table) -> None:
        info = sqlite_store.execute(f"PRAGMA table_info({spec.name})").fetchall()
        columns = [(name, self.TYPES[kind], not_null == 0) for _, name, kind, not_null, _, _ in info]
        assert columns == declared_columns(spec)
        key = sorted((place, name) for _, name, _, _, _, place in info if place)
        assert tuple(name for _, name in key) == declared_key(spec)
        found = set()
        for _, name, unique, origin, partial in sqlite_store.execute(f"PRAGMA index_list({spec.name})"):
            assert not partial
            parts = sqlite_store.execute(f"PRAGMA index_xinfo({name})").fetchall()
            assert all((descending, collation) == (0, "BINARY") for _, _, _, descending, collation, key in parts if key)
            if origin != "pk":
                found.add((bool(unique), tuple(column for _, _, column, _, _, key in parts if key)))
        assert found == declared_indexes(spec)

    def test_nothing_else(self, sqlite_store: sqlite3.Connection) -> None:
        names = {name for (name,) in sqlite_store.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        assert names - {"migrations", "objects", "sqlite_stat1"} == {spec.name for spec in TABLES}
        other = sqlite_store.execute("SELECT type FROM sqlite_schema WHERE type NOT IN ('table', 'index')").fetchall()
        assert other == []

    def test_the_planner_is_told_about_every_index(self, sqlite_store: sqlite3.Connection) -> None:
        found = set(sqlite_store.execute("SELECT tbl, idx FROM sqlite_stat1"))
        for name, stat in sqlite_store.execute("SELECT idx, stat FROM sqlite_stat1 WHERE idx <> tbl"):
            columns = [column for _, _, column in sqlite_store.execute(f"PRAGMA index_info({name})")]
            assert len(stat.split()) == len(columns) + 1, name
        every = "SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index'"
        # their key is the table itself
        in_key_order = {
            (name, name) for name in ("ids", "links", "marks", "listings", "episodes", "backlog", "places", "prefixes")
        }
        assert in_key_order <= found
        assert found - in_key_order == set(sqlite_store.execute(every))

    def test_settings_of_the_file(self, sqlite_store: sqlite3.Connection) -> None:
        assert sqlite_store.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert sqlite_store.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert sqlite_store.execute("PRAGMA encoding").fetchone() == ("UTF-8",)

    @every_table
    def test_content_lies_in_append_only_rowid_tables(self, sqlite_store: sqlite3.Connection, spec: Table) -> None:
        strict, without_rowid = sqlite_store.execute(
            "SELECT strict, wr FROM pragma_table_list WHERE name = ?", (spec.name,)
        ).fetchone()
        assert strict == 1
        if any(column.content for column in spec.columns):
            assert without_rowid == 0

    def test_migrations_are_recorded(self, sqlite_store: sqlite3.Connection) -> None:
        cursor = sqlite_store.execute("SELECT * FROM migrations ORDER BY number")
        assert [column[0] for column in cursor.description] == MIGRATIONS_COLUMNS
        known = [(m.number, m.name, m.sha256) for m in load("muniment.store.engines.sqlite")]
        assert [row[:3] for row in cursor] == known


@pytest.fixture(scope="module")
def postgres_store(postgres_dsn: str) -> Iterator[tuple[psycopg.Connection[Any], str]]:
    from muniment.testing.postgres_server import fresh_schema

    with fresh_schema(postgres_dsn) as schema:
        PostgresEngine(postgres_dsn, schema=schema).close()
        with psycopg.connect(postgres_dsn, autocommit=True) as connection:
            yield connection, schema


class TestPostgres:
    TYPES = {"text": "text", "bigint": "int", "bytea": "bytes"}  # noqa: RUF012

    @every_table
    def test_table(self, postgres_store: tuple[psycopg.Connection[Any], str], spec: Table) -> None:
        connection, schema = postgres_store
        info = connection.execute(
            """SELECT column_name, data_type, is_nullable = 'YES', collation_name FROM information_schema.columns
               WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position""",
            (schema, spec.name),
        ).fetchall()
        assert [(name, self.TYPES[kind], null) for name, kind, null, _ in info] == declared_columns(spec)
        assert {collation for _, kind, _, collation in info if kind == "text"} == {"C"}
        indexes = connection.execute(
            """SELECT i.indisprimary, i.indisunique, array_agg(a.attname ORDER BY k.place)
               FROM pg_index i
               JOIN pg_class c ON c.oid = i.indrelid
               JOIN pg_namespace n ON n.oid = c.relnamespace
               CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)
               JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
               WHERE n.nspname = %s AND c.relname = %s
               GROUP BY i.indexrelid, i.indisprimary, i.indisunique""",
            (schema, spec.name),
        ).fetchall()
        assert [tuple(columns) for primary, _, columns in indexes if primary] == [declared_key(spec)]
        assert {(unique, tuple(columns)) for primary, unique, columns in indexes if not primary} == declared_indexes(
            spec
        )

    def test_nothing_else(self, postgres_store: tuple[psycopg.Connection[Any], str]) -> None:
        connection, schema = postgres_store
        names = connection.execute(
            """SELECT c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = %s AND c.relkind NOT IN ('i', 't')""",
            (schema,),
        ).fetchall()
        assert {name for name, _ in names} - {"migrations", "objects"} == {spec.name for spec in TABLES}
        assert {kind for _, kind in names} == {"r"}

    def test_migrations_are_recorded(self, postgres_store: tuple[psycopg.Connection[Any], str]) -> None:
        connection, schema = postgres_store
        cursor = connection.execute(f'SELECT * FROM "{schema}".migrations ORDER BY number')
        assert cursor.description is not None
        assert [column.name for column in cursor.description] == MIGRATIONS_COLUMNS
        known = [(m.number, m.name, m.sha256) for m in load("muniment.store.engines.postgres")]
        assert [row[:3] for row in cursor] == known


def test_both_engines_have_the_same_migrations() -> None:
    """So that a schema number means the same store everywhere."""
    numbered = [[(m.number, m.name) for m in load(f"muniment.store.engines.{name}")] for name in ("sqlite", "postgres")]
    assert numbered[0] == numbered[1]
