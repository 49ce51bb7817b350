"""LG-02 on PostgreSQL: the server itself keeps tenants apart, whatever SQL a connection of the store sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from muniment.core.ports.engine import Count, Insert
from muniment.core.ports.schema import TABLES, Table, column_names, table
from muniment.errors import InvalidInput, StorageFailure, StorageReadOnly
from muniment.store.engines.codec import shard_of
from muniment.store.engines.layout import TENANTS_SHARD
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.engine_contract import sample_row, stored_row
from muniment.testing.postgres import fresh_schema

pytestmark = pytest.mark.req("LG-02")
Connection = psycopg.Connection[Any]
every_table = pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)


SHARDS = {"mine": shard_of(1), "other": shard_of(2), "third": shard_of(3)}
"""Tenants are numbered as they come."""


@pytest.fixture(scope="module")
def store(postgres_dsn: str) -> Iterator[tuple[PostgresEngine, str]]:
    """A store in which the tenant `mine` has a row in every table."""
    with fresh_schema(postgres_dsn) as schema:
        engine = PostgresEngine(postgres_dsn, schema=schema)
        engine.write("mine", lambda transaction: transaction.do(Insert("tenants", [sample_row(table("tenants"), 1)])))
        with raw(engine, "mine") as connection:
            assert connection.execute(f'SELECT number FROM "{schema}".names').fetchall() == [(1,)]
            for spec in TABLES:
                if spec.name != "tenants":
                    connection.execute(insert_of(schema, spec), (SHARDS["mine"], *stored_row(spec, 1)))
            connection.execute("COMMIT")
        yield engine, schema
        engine.close()


@contextmanager
def raw(engine: PostgresEngine, tenant: str | None = None) -> Iterator[Connection]:
    """A connection as the engine's own are, in a transaction of that tenant, rolled back in the end."""
    with engine._pool.connection() as connection:
        connection.execute("BEGIN")
        try:
            if tenant is not None:
                connection.execute("SELECT set_config('muniment.tenant', %s, true)", (tenant,))
                shard = SHARDS.get(tenant, "")
                connection.execute("SELECT set_config('muniment.shard', %s, true)", (str(shard),))
            yield connection
        finally:
            connection.execute("ROLLBACK")


def tables_of(connection: Connection, schema: str) -> list[str]:
    rows = connection.execute(
        """SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = %s AND c.relkind IN ('r', 'v', 'm', 'f') ORDER BY 1""",
        (schema,),
    )
    return [name for (name,) in rows]


def insert_of(schema: str, spec: Table) -> str:
    names = ("shard", *column_names(spec))
    return f'INSERT INTO "{schema}"."{spec.name}" ({", ".join(names)}) VALUES ({", ".join(["%s"] * len(names))})'


def test_every_table_is_walled(store: tuple[PostgresEngine, str]) -> None:
    engine, schema = store
    with raw(engine) as connection:
        found = connection.execute(
            """SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity,
                      (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'own_tenant'
                         AND p.polwithcheck IS NOT NULL AND p.polqual IS NOT NULL AND p.polcmd = '*')
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = %s AND c.relkind = 'r' AND relname NOT IN ('layout', 'objects')""",
            (schema,),
        ).fetchall()
        assert {name for name, *_ in found} == {"names", *[spec.name for spec in TABLES]}
        assert {tuple(rest) for _, *rest in found} == {(True, True, 1)}
        policies = connection.execute("SELECT DISTINCT policyname FROM pg_policies WHERE schemaname = %s", (schema,))
        assert {name for (name,) in policies} == {"own_tenant", "own_number", "every_tenant"}


def test_connections_work_as_a_role_that_is_bound(store: tuple[PostgresEngine, str]) -> None:
    engine, schema = store
    with raw(engine) as connection:
        row = connection.execute(
            "SELECT rolsuper, rolbypassrls, rolcanlogin, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        assert row == (False, False, False, False)
        owners = connection.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = %s", (schema,))
        assert ("muniment_app",) not in owners.fetchall()


@pytest.mark.parametrize("tenant", [None, "", "other"], ids=repr)
@every_table
def test_without_the_tenant_nothing_is_read_or_changed(
    store: tuple[PostgresEngine, str], spec: Table, tenant: str | None
) -> None:
    engine, schema = store
    name = f'"{schema}"."{spec.name}"'
    with raw(engine, tenant) as connection:
        assert connection.execute(f"SELECT * FROM {name}").fetchall() == []
        assert connection.execute(f"SELECT * FROM {name} WHERE shard = {SHARDS['mine']}").fetchall() == []
        assert connection.execute(f"UPDATE {name} SET shard = shard").rowcount == 0
        assert connection.execute(f"DELETE FROM {name}").rowcount == 0
        for named in ("mine", "third"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(insert_of(schema, spec), (SHARDS[named], *stored_row(spec, 2)))
    with raw(engine, "mine") as connection:
        assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() == (1,)


@every_table
def test_a_row_cannot_be_moved_to_another_tenant(store: tuple[PostgresEngine, str], spec: Table) -> None:
    engine, schema = store
    with raw(engine, "mine") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(f'UPDATE "{schema}"."{spec.name}" SET shard = {SHARDS["other"]}')


@pytest.mark.parametrize("statement", ["TRUNCATE {}", "ALTER TABLE {} DISABLE ROW LEVEL SECURITY", "DROP TABLE {}"])
@every_table
def test_the_wall_cannot_be_taken_down(store: tuple[PostgresEngine, str], spec: Table, statement: str) -> None:
    engine, schema = store
    with raw(engine, "mine") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement.format(f'"{schema}"."{spec.name}"'))


def test_the_operator_lists_tenants_and_nothing_else(store: tuple[PostgresEngine, str]) -> None:
    engine, schema = store
    assert engine.tenants() == ["mine"]
    with raw(engine, "*") as connection:
        for name in tables_of(connection, schema):
            if name not in ("layout", "names"):
                rows = connection.execute(f'SELECT count(*) FROM "{schema}"."{name}"').fetchone()
                assert rows == (1 if name == "tenants" else 0,), name
        numbered = connection.execute(f'SELECT shard, name FROM "{schema}".names').fetchall()
        assert numbered == [(TENANTS_SHARD, "mine")]
        assert connection.execute(f'DELETE FROM "{schema}".names').rowcount == 0
        assert connection.execute(f'DELETE FROM "{schema}".tenants').rowcount == 0
        assert connection.execute(f'UPDATE "{schema}".tenants SET created_at = created_at').rowcount == 0
    for tenant in ("*", ""):
        with pytest.raises(InvalidInput):
            engine.read(tenant, lambda reader: reader.do(Count("tenants")))


def test_the_tenant_ends_with_its_transaction(postgres_dsn: str, postgres_schema: str) -> None:
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema, pool_max=1)
    try:
        engine.write("mine", lambda transaction: transaction.do(Insert("links", [("a", "b")])))
        engine.read("mine", lambda reader: reader.do(Count("links")))
        with raw(engine) as connection:
            assert connection.execute("SELECT current_setting('muniment.tenant', true)").fetchone() == ("",)
            assert connection.execute(f'SELECT * FROM "{postgres_schema}".links').fetchall() == []
    finally:
        engine.close()


@pytest.mark.req("X-09")
@every_table
def test_no_key_tells_of_a_row_that_the_wall_hides(store: tuple[PostgresEngine, str], spec: Table) -> None:
    """A unique key that spanned tenants would be checked against rows that row-level security hides."""
    engine, schema = store
    with raw(engine, "other") as connection:
        assert connection.execute(f'SELECT count(*) FROM "{schema}"."{spec.name}"').fetchone() == (0,)
        connection.execute(insert_of(schema, spec), (SHARDS["other"], *stored_row(spec, 1)))
    with raw(engine, "mine") as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute(insert_of(schema, spec), (SHARDS["mine"], *stored_row(spec, 1)))


def test_every_key_is_led_by_the_shard(store: tuple[PostgresEngine, str]) -> None:
    engine, schema = store
    with raw(engine) as connection:
        found = connection.execute(
            """SELECT c.relname, a.attname FROM pg_index i
               JOIN pg_class c ON c.oid = i.indrelid
               JOIN pg_namespace n ON n.oid = c.relnamespace
               JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
               WHERE n.nspname = %s AND c.relname <> 'layout'""",
            (schema,),
        ).fetchall()
    assert {leader for _, leader in found} == {"shard"}


@contextmanager
def login(dsn: str, name: str, options: str) -> Iterator[str]:
    """A URL of a role of its own that owns nothing yet."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f'CREATE ROLE "{name}" LOGIN {options}')
        database = admin.info.dbname
        admin.execute(f'GRANT CREATE ON DATABASE "{database}" TO "{name}"')
        try:
            yield psycopg.conninfo.make_conninfo(dsn, user=name)
        finally:
            admin.execute("SET client_min_messages = warning")
            admin.execute(f'DROP OWNED BY "{name}" CASCADE')
            admin.execute(f'DROP ROLE "{name}"')


def test_an_ordinary_owner_is_bound_too(postgres_dsn: str, postgres_schema: str) -> None:
    with login(postgres_dsn, f"{postgres_schema}_owner", "") as dsn:
        engine = PostgresEngine(dsn, schema=postgres_schema)
        try:
            engine.write("mine", lambda transaction: transaction.do(Insert("links", [("a", "b")])))
            with raw(engine) as connection:
                assert connection.execute("SELECT current_user").fetchone() == (f"{postgres_schema}_owner",)
                assert connection.execute(f'SELECT * FROM "{postgres_schema}".links').fetchall() == []
            with raw(engine, "other") as connection:
                assert connection.execute(f'DELETE FROM "{postgres_schema}".links').rowcount == 0
            assert engine.scrub([b"x"], thorough=True).vacuumed
        finally:
            engine.close()


def test_a_role_that_nothing_binds_is_refused(postgres_dsn: str, postgres_schema: str) -> None:
    """BYPASSRLS without the right to make or take a plain role."""
    with login(postgres_dsn, f"{postgres_schema}_free", "BYPASSRLS") as dsn:
        with pytest.raises(StorageFailure) as caught:
            PostgresEngine(dsn, schema=postgres_schema, app_role=f"{postgres_schema}_app")
        assert caught.value.hint


def test_a_store_opened_for_reading(postgres_dsn: str, postgres_schema: str) -> None:
    PostgresEngine(postgres_dsn, schema=postgres_schema).close()
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema, read_only=True)
    try:
        assert engine.read("mine", lambda reader: reader.do(Count("links"))) == 0
        with pytest.raises(StorageReadOnly):
            engine.write("mine", lambda transaction: transaction.do(Insert("links", [("a", "b")])))
    finally:
        engine.close()
