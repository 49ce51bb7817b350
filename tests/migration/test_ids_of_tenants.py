"""Migration 8 on stores of version 7: every row stays, ids become a tenant's own, a crash leaves all as it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy.policy import Policy
from muniment.core.ports.engine import Engine, Insert
from muniment.errors import DuplicateId, Forgotten, SchemaMismatch, StorageFailure
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines import migrations
from muniment.store.engines.postgres import opening as postgres_opening
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.sqlite import opening as sqlite_opening
from muniment.store.engines.sqlite.engine import SqliteEngine

pytestmark = pytest.mark.req("X-09")
NUMBER = 8


@contextmanager
def known(count: int, spoiled: bool = False) -> Iterator[None]:
    """Stores are opened with the first so many migrations alone; or with the last of them failing in its middle."""

    def load(package: str) -> tuple[migrations.Migration, ...]:
        found = migrations.load(package)[:count]
        last = found[-1]
        return (*found[:-1], last._replace(sql=f"{last.sql}\nSELECT no_such_column FROM ids;")) if spoiled else found

    with pytest.MonkeyPatch.context() as patch:
        for opening in (sqlite_opening, postgres_opening):
            patch.setattr(opening, "load", load)
        yield


class Place:
    """A store that can be opened again and again."""

    def __init__(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self.path = tmp_path / "store.db"
        self.dsn = self.schema = ""
        self.owner = ""
        if request.param != "sqlite":
            self.dsn, self.schema = (request.getfixturevalue(f"postgres_{name}") for name in ("dsn", "schema"))
            self.owner = self.dsn
        if request.param == "plain owner":
            self.owner = request.getfixturevalue("plain_owner")

    def engine(self, **options: Any) -> Engine:
        if self.dsn:
            return PostgresEngine(self.owner, schema=self.schema, **options)
        return SqliteEngine(self.path, **options)

    @contextmanager
    def memory(self, seed: str) -> Iterator[Memory]:
        context = new_context(engine=self.engine(), policy=Policy(), clock=TickingClock(), ids=CountingIds(seed))
        with Memory(context) as memory:
            yield memory

    def fill_old(self, *tenants: str) -> dict[str, list[bytes]]:
        """Make the store of before hold what the store of today was told; the dumps of it, by tenant."""
        now = Place.__new__(Place)
        now.path, now.dsn, now.owner = self.path.with_name("now.db"), self.dsn, self.owner
        now.schema = f"{self.schema}_now"
        with now.memory("old") as mem:
            for tenant in tenants:
                fill(mem, tenant)
            dumps = {tenant: list(mem.export(tenant_id=tenant)) for tenant in tenants}
        with known(NUMBER - 1):
            self.engine().close()
        if self.dsn:
            with psycopg.connect(self.dsn) as connection:
                _copy(connection, f'"{self.schema}"', f'"{now.schema}"', _COLUMNS_POSTGRES, self.schema)
                connection.execute("SET client_min_messages = warning")
                connection.execute(f'DROP SCHEMA "{now.schema}" CASCADE')
        else:
            with closing(sqlite3.connect(self.path)) as connection, connection:
                connection.execute("ATTACH ? AS now", (str(now.path),))
                _copy(connection, "main", "now", _COLUMNS_SQLITE)
        return dumps

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """Every row of a table, whosever, in the order of all columns."""
        if self.dsn:
            with psycopg.connect(self.dsn) as connection:
                return sorted(connection.execute(f'SELECT * FROM "{self.schema}".{table}').fetchall(), key=repr)
        with closing(sqlite3.connect(self.path)) as connection:
            return sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


_COLUMNS_SQLITE = """
    SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'"""
_COLUMNS_POSTGRES = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s"


def _copy(connection: Any, old: str, now: str, columns: str, *named: str) -> None:
    """Every row of today's tables into those of before, with the columns that were known then; items have no digest."""
    told: dict[str, list[str]] = {}
    for table, column in connection.execute(columns, named).fetchall():
        told.setdefault(table, []).append(column)
    for table in told.keys() - {"migrations"}:
        names = ", ".join(f'"{column}"' for column in told[table])
        connection.execute(f"DELETE FROM {old}.{table}")
        connection.execute(f"INSERT INTO {old}.{table} ({names}) SELECT {names} FROM {now}.{table}")
    connection.execute(f"UPDATE {old}.items SET digest = NULL")


@pytest.fixture
def plain_owner(postgres_dsn: str, postgres_schema: str) -> Iterator[str]:
    """A URL of a role that row-level security binds: what it says in a migration reaches no row of a tenant."""
    name = f"{postgres_schema}_owner"
    with psycopg.connect(postgres_dsn, autocommit=True) as admin:
        admin.execute(f'CREATE ROLE "{name}" LOGIN')
        admin.execute(f'GRANT CREATE ON DATABASE "{admin.info.dbname}" TO "{name}"')
        try:
            yield psycopg.conninfo.make_conninfo(postgres_dsn, user=name)
        finally:
            admin.execute("SET client_min_messages = warning")
            admin.execute(f'DROP OWNED BY "{name}" CASCADE')
            admin.execute(f'DROP ROLE "{name}"')


@pytest.fixture(params=["sqlite", "postgres", "plain owner"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request, tmp_path)


TABLES = ("tenants", "ids", "sessions", "entries", "items", "links", "lineages", "idempotency", "marks")


def fill(mem: Memory, tenant_id: str) -> None:
    run = mem.run(user_id="ana", tenant_id=tenant_id, session_id="s1", run_id=f"r-{tenant_id}")
    run.observe("user", f"I live in {tenant_id}.", id=f"e-{tenant_id}", idempotency_key="k")
    run.observe("user", "Forget this.", id=f"gone-{tenant_id}")
    run.remember("user.city", tenant_id, sources=[f"e-{tenant_id}"])
    run.compose("responder", query="Where?")
    mem.forget(event=f"gone-{tenant_id}", tenant_id=tenant_id)


def test_a_store_of_before_goes_on_with_ids_of_its_tenants(place: Place) -> None:
    dumps = place.fill_old("acme", "globex")
    before = {table: place.rows(table) for table in TABLES}
    assert {row[0] for row in before["ids"]} == {"acme", "globex"}
    with pytest.raises(SchemaMismatch):
        place.engine(read_only=True)
    with known(NUMBER):
        place.engine().close()
    assert {table: place.rows(table) for table in TABLES} == before
    with place.memory("new") as mem:
        for tenant in ("acme", "globex"):
            assert list(mem.export(tenant_id=tenant)) == dumps[tenant]
            assert mem.verify(tenant_id=tenant).ok
        acme = mem.run(user_id="ana", tenant_id="acme", run_id="r-globex")
        acme.observe("user", "Ours.", id="e-globex")
        acme.observe("user", "Ours too.", id="gone-globex")
        with pytest.raises(DuplicateId):
            acme.observe("user", "Once more.", id="gone-acme")
        with pytest.raises(Forgotten):
            mem.ledger.content("gone-globex", tenant_id="globex")
        assert mem.ledger.content("e-globex", tenant_id="acme") == "Ours."
        assert mem.ledger.content("e-globex", tenant_id="globex") == "I live in globex."
        assert mem.verify().ok
    with place.memory("again") as mem:
        assert mem.verify().ok


def test_a_migration_that_breaks_off_leaves_the_store_as_it_was(place: Place) -> None:
    place.fill_old("acme")
    before = {table: place.rows(table) for table in (*TABLES, "migrations")}
    with known(NUMBER, spoiled=True), pytest.raises(StorageFailure):
        place.engine()
    assert {table: place.rows(table) for table in (*TABLES, "migrations")} == before
    with place.memory("new") as mem:
        assert mem.verify().ok
        mem.run(user_id="ana", tenant_id="globex").observe("user", "x", id="e-acme")


def test_a_process_of_before_that_is_still_open_writes_on(place: Place) -> None:
    """The table keeps its name and columns: what the older code says of it still holds."""
    with known(NUMBER - 1):
        older = place.engine()
    try:
        older.write("acme", lambda tx: tx.do(Insert("ids", [("one", "k")])))
        place.engine().close()
        older.write("acme", lambda tx: tx.do(Insert("ids", [("two", "k")])))
    finally:
        older.close()
    assert [row[:2] for row in place.rows("ids")] == [("acme", "one"), ("acme", "two")]
