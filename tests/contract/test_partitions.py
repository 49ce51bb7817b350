"""A PostgreSQL store in partitions: from the first open, by conversion of one that is in use, and what is refused."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import muniment
from effort import SOAK
from muniment.core.ports.engine import Condition, Count, Delete, Get, Insert, KeyTaken, Patch, Put, Select
from muniment.core.ports.schema import TABLES, column_names, table
from muniment.errors import Conflict, InvalidInput, MunimentError, SchemaMismatch, StorageBusy, StorageFailure
from muniment.store.engines.migrations import load
from muniment.store.engines.opening import open_engine, partition_store
from muniment.store.engines.postgres import opening, partitioning
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.postgres.layouts import (
    WHOLE,
    Layout,
    is_by_user,
    is_under_way,
    partitioned_names,
)
from muniment.store.engines.postgres.partitioning import Step, convert
from muniment.testing.rows import row_with, sample_row
from partition_room import BIG, TENANTS, converted, fill, held, layout, leftovers, relations, target, url_of
from products import for_each

pytestmark = pytest.mark.soak


@pytest.fixture
def engine(postgres_dsn: str, postgres_schema: str) -> Iterator[PostgresEngine]:
    """A store in whole tables, with a row of each tenant in every one."""
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema)
    fill(engine)
    yield engine
    engine.close()


# -- from the first open


def test_a_url_makes_a_new_store_partitioned(postgres_dsn: str, postgres_schema: str) -> None:
    url = url_of(postgres_dsn, postgres_schema, partitions=4)
    with muniment.open(url) as mem:
        for tenant in TENANTS:
            mem.run(tenant_id=tenant, user_id="ana", session_id="s").observe("user", f"I moved to {tenant} in May.")
        assert mem.verify().ok
        assert mem.store.tenants() == sorted(TENANTS)
    assert layout(postgres_dsn, postgres_schema) == Layout(4)
    found = relations(postgres_dsn, postgres_schema)
    assert {name for name, (kind, *_) in found.items() if kind == "p"} == {*partitioned_names()}
    assert {each[2:] for each in found.values()} == {(True, True)}
    assert len(found) == 1 + 5 * len(partitioned_names())
    for again in (url, url_of(postgres_dsn, postgres_schema)):  # whether or not it says so
        with muniment.open(again) as mem:
            assert "acme" in mem.run(tenant_id="acme", user_id="ana").search("where to in May")[0].text
    with psycopg.connect(postgres_dsn) as connection:
        spread = connection.execute(f'SELECT count(DISTINCT tableoid) FROM "{postgres_schema}".entries').fetchone()
        assert spread is not None
        assert spread[0] > 1


@pytest.mark.parametrize("given", ["0", "1", "-1", "", "many", "65", "8.0", "٣", "1" * 5000])
def test_what_is_no_number_of_partitions(given: str) -> None:
    with pytest.raises(InvalidInput, match="partitions is a whole number from 2 to 64") as caught:
        open_engine(f"postgresql://nobody:secret@127.0.0.1:1/none?partitions={given}")
    assert "secret" not in str(caught.value.to_dict())


def test_a_whole_store_is_not_taken_for_a_partitioned_one(engine: PostgresEngine, postgres_dsn: str) -> None:
    before = held(engine)
    with pytest.raises(SchemaMismatch, match="has whole tables, and its URL says partitions=4") as caught:
        open_engine(url_of(postgres_dsn, engine.schema, partitions=4))
    assert "muniment store partition --parts 4" in (caught.value.hint or "")
    assert held(engine) == before


def test_another_number_of_partitions(postgres_dsn: str, postgres_schema: str) -> None:
    open_engine(url_of(postgres_dsn, postgres_schema, partitions=3)).close()
    with pytest.raises(SchemaMismatch, match="has 3 partitions, and its URL says partitions=4") as caught:
        open_engine(url_of(postgres_dsn, postgres_schema, partitions=4))
    assert "muniment store partition --parts 4" in (caught.value.hint or "")


BY_HAND = """
ALTER TABLE {s}.{t} RENAME TO gone;
CREATE TABLE {s}.{t} (LIKE {s}.gone INCLUDING ALL) PARTITION BY HASH ({key});
CREATE TABLE {s}.{t}_0 PARTITION OF {s}.{t} FOR VALUES WITH (MODULUS 1, REMAINDER 0);
DROP TABLE {s}.gone;
ALTER TABLE {s}.{t} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {s}.{t} USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON {s}.{t} TO muniment_app;
"""
HALVES = {
    "one table": (None, BY_HAND.replace("{t}", "links").replace("{key}", "tenant_id")),
    "by another key": (None, BY_HAND.replace("{t}", "ids").replace("{key}", "id")),
    "a partition is missing": (3, "DROP TABLE {s}.items_1"),
}


@pytest.mark.parametrize("how", HALVES)
def test_a_half_partitioned_schema_is_refused_and_made_whole_by_the_command(
    postgres_dsn: str, postgres_schema: str, how: str
) -> None:
    parts, statement = HALVES[how]
    PostgresEngine(postgres_dsn, schema=postgres_schema, partitions=parts).close()
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute(statement.format(s=f'"{postgres_schema}"').encode())
    for more in ({}, {"partitions": 3}):
        with pytest.raises(SchemaMismatch, match="half partitioned") as caught:
            open_engine(url_of(postgres_dsn, postgres_schema, **more))
        assert "muniment store partition --parts" in (caught.value.hint or "")
    list(partition_store(url_of(postgres_dsn, postgres_schema), 3))
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema, partitions=3)
    fill(engine)
    assert all(len(rows) == 1 for (_, name), rows in held(engine).items() if table(name).key)
    engine.close()


# -- migrations know both shapes


@contextmanager
def of_before(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[None]:
    """A muniment that knows the first migrations alone."""
    with monkeypatch.context() as patched:
        patched.setattr(opening, "load", lambda package: load(package)[:number])
        yield


def login(dsn: str, name: str) -> str:
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f'CREATE ROLE "{name}" LOGIN')
        admin.execute(f'GRANT CREATE ON DATABASE "{admin.info.dbname}" TO "{name}"')
    return psycopg.conninfo.make_conninfo(dsn, user=name)


@pytest.fixture
def owner_dsn(postgres_dsn: str, postgres_schema: str) -> Iterator[str]:
    """A role that row-level security binds, and that owns what it makes; another that owns nothing."""
    names = (f"{postgres_schema}_owner", f"{postgres_schema}_app")
    login(postgres_dsn, names[1])
    yield login(postgres_dsn, names[0])
    with psycopg.connect(postgres_dsn, autocommit=True) as admin:
        admin.execute("SET client_min_messages = warning")
        for name in names:
            admin.execute(f'DROP OWNED BY "{name}" CASCADE')
            admin.execute(f'DROP ROLE "{name}"')


SESSION = "INSERT INTO {}.sessions (tenant_id, {}) VALUES (%s, {})"


MIGRATED = [
    pytest.param(number, role == "owner", id=f"{number}-{role}")
    for at, number in enumerate((1, 7, 9, 12))
    for role in (("superuser", "owner") if SOAK else (("superuser", "owner")[at % 2],))
]
"""By either role from each of these migrations under a soak; the roles take turns in every run."""


@pytest.mark.parametrize(("number", "as_owner"), MIGRATED)
def test_what_a_migration_makes_is_partitioned_too(
    postgres_dsn: str,
    owner_dsn: str,
    postgres_schema: str,
    monkeypatch: pytest.MonkeyPatch,
    as_owner: bool,
    number: int,
) -> None:
    """Tables, columns and indexes, and the rows that a migration fills in: migration 10 makes episodes of sessions."""
    dsn = owner_dsn if as_owner else postgres_dsn
    with of_before(monkeypatch, number):
        PostgresEngine(dsn, schema=postgres_schema, partitions=3).close()
    names = column_names(table("sessions"))
    with psycopg.connect(postgres_dsn) as connection:
        insert = SESSION.format(f'"{postgres_schema}"', ", ".join(names), ", ".join(["%s"] * len(names)))
        for tenant in TENANTS:
            connection.execute(insert.encode(), (tenant, *row_with("sessions", 1, user_id="ana")))
    engine = PostgresEngine(dsn, schema=postgres_schema, partitions=3)
    for tenant in TENANTS:
        assert engine.read(tenant, lambda reader: reader.do(Count("sessions"))) == 1
        assert engine.read(tenant, lambda reader: reader.do(Count("episodes"))) == (1 if number < 10 else 0)
    engine.close()
    assert layout(postgres_dsn, postgres_schema) == Layout(3)
    assert leftovers(postgres_dsn, postgres_schema) == []
    with psycopg.connect(postgres_dsn) as connection:
        made = connection.execute(
            "SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'I'",
            (postgres_schema,),
        ).fetchall()
    declared = {f"{spec.name}_pkey" for spec in TABLES if spec.name != "tenants"} | {
        f"{spec.name}_{'_'.join(columns)}" for spec in TABLES for columns in (*spec.unique, *spec.indexes)
    }
    assert {name for (name,) in made} == declared


def test_a_store_with_tenants_of_their_own_is_brought_up_to_date(
    postgres_dsn: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with of_before(monkeypatch, 9):
        PostgresEngine(postgres_dsn, schema=postgres_schema).close()
    converted(postgres_dsn, postgres_schema, BIG)
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema)
    fill(engine)
    engine.close()
    assert layout(postgres_dsn, postgres_schema) == BIG


def test_no_migration_in_the_middle_of_a_conversion(
    postgres_dsn: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with of_before(monkeypatch, 9):
        PostgresEngine(postgres_dsn, schema=postgres_schema).close()
    steps = convert(target(postgres_dsn, postgres_schema), Layout(3))
    for _ in range(10):
        next(steps)
    steps.close()  # type: ignore[attr-defined]
    with pytest.raises(SchemaMismatch, match="being partitioned, and cannot be brought up to date") as caught:
        PostgresEngine(postgres_dsn, schema=postgres_schema)
    assert "muniment store partition" in (caught.value.hint or "")
    converted(postgres_dsn, postgres_schema, Layout(3))
    PostgresEngine(postgres_dsn, schema=postgres_schema, partitions=3).close()


# -- a store that is in use


LAYOUTS = [Layout(3), BIG, Layout(2), WHOLE]


@pytest.mark.slow
@pytest.mark.req("TM-18")
def test_there_and_back_with_every_row(engine: PostgresEngine, postgres_dsn: str) -> None:
    """The same engine goes on with it: statements it keeps ready find the new tables by their names."""
    for number in range(2, 5):
        fill(engine, number)
    plain = relations(postgres_dsn, engine.schema)
    before = held(engine)
    for wanted in LAYOUTS:
        steps = converted(postgres_dsn, engine.schema, wanted, batch_rows=7)
        assert steps[-1] == Step("", "finished")
        assert {step.table for step in steps if step.done == "replaced"} == {*partitioned_names()}
        assert held(engine) == before
        assert layout(postgres_dsn, engine.schema) == wanted
        assert leftovers(postgres_dsn, engine.schema) == []
        assert converted(postgres_dsn, engine.schema, wanted) == [Step("", "finished")]
    assert relations(postgres_dsn, engine.schema) == plain


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [Layout(3), BIG], ids=["spread", "own"])
def test_every_step_by_a_process_of_its_own(engine: PostgresEngine, postgres_dsn: str, wanted: Layout) -> None:
    """Whoever stops after any step and begins again, with writes of every kind in between, ends with the same rows."""
    for number in range(2, 4):
        fill(engine, number)
    model = held(engine)
    numbers = iter(range(4, 10_000))
    stopped: set[str] = set()
    counts = itertools.cycle((1, 3, 4, 2, 6, 9))
    while "finished" not in stopped:
        steps = convert(target(postgres_dsn, engine.schema), wanted, batch_rows=6)
        last = list(itertools.islice(steps, next(counts)))[-1]
        stopped.add(last.done)
        steps.close()  # type: ignore[attr-defined]
        number = next(numbers)
        tenant = TENANTS[number % len(TENANTS)]
        _change(engine, tenant, number)
        for spec in (table("items"), table("links"), table("segments"), table("entries")):
            model[tenant, spec.name] = engine.read(tenant, lambda reader, spec=spec: reader.do(Select(spec.name)))  # type: ignore[misc]
    assert stopped == {"begun", "copied", "compared", "replaced", "finished"}
    assert held(engine) == model
    assert layout(postgres_dsn, engine.schema) == wanted
    assert leftovers(postgres_dsn, engine.schema) == []


def _change(engine: PostgresEngine, tenant: str, number: int) -> None:
    """An insert, a row put over another, a patch and a delete."""
    items, links, segments = table("items"), table("links"), table("segments")
    old = engine.read(tenant, lambda reader: reader.do(Select("items", limit=1)))[0]
    gone = engine.read(tenant, lambda reader: reader.do(Select("links", limit=1)))[0]
    over = engine.read(tenant, lambda reader: reader.do(Select("segments", limit=1)))[0]
    engine.write(
        tenant,
        lambda tx: [
            tx.do(Insert(items.name, [sample_row(items, number)])),
            tx.do(Insert("entries", [sample_row(table("entries"), number)])),
            tx.do(Insert(links.name, [sample_row(links, number)])),
            tx.do(Patch(items.name, (("id", "=", old[0]),), {"body": f"body {number}"})),
            tx.do(Put(segments.name, [(*over[:-1], f"data {number}".encode())])),
            tx.do(Delete(links.name, (("source_id", "=", gone[0]), ("item_id", "=", gone[1])))),
        ],
    )


@pytest.mark.parametrize("how", ["changed", "deleted"])
def test_rows_that_change_while_they_are_copied(engine: PostgresEngine, postgres_dsn: str, how: str) -> None:
    """A batch waits for who is changing one of its rows, and copies it as it came to be."""
    steps = convert(target(postgres_dsn, engine.schema), Layout(3))
    while (step := next(steps)) != Step("items", "begun"):
        pass
    item = sample_row(table("items"), 1)
    done: list[Step] = []

    def go_on() -> None:
        while not done or done[-1].done != "finished":
            done.append(next(steps))

    thread = threading.Thread(target=go_on)

    def change(tx: Any) -> None:
        where: tuple[Condition, ...] = (("id", "=", item[0]),)
        tx.do(Patch("items", where, {"status": "changed"}) if how == "changed" else Delete("items", where))
        thread.start()
        thread.join(0.5)
        assert done == []  # it waits

    engine.write("acme", change)
    thread.join(60)
    row = engine.read("acme", lambda reader: reader.do(Get("items", item[:2])))
    assert done[-1].done == "finished"
    assert (None if row is None else row[7]) == ("changed" if how == "changed" else None)
    assert step == Step("items", "begun")


def test_a_reader_of_before_keeps_what_it_saw(
    engine: PostgresEngine, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began before the rows were copied: were the tables replaced under it, it would find none."""
    before = held(engine)["acme", "entries"]
    done = threading.Event()

    def work() -> None:
        converted(postgres_dsn, engine.schema, Layout(3))
        done.set()

    with engine.snapshot("acme") as view:
        view.do(Count("tenants"))  # it has its snapshot, and has come to no other table
        thread = threading.Thread(target=work)
        thread.start()
        assert not done.wait(3)
        assert view.do(Select("entries")) == before
    thread.join(120)
    assert done.is_set()
    assert layout(postgres_dsn, engine.schema) == Layout(3)
    monkeypatch.setattr(partitioning, "_OLDER_WAIT_S", 0.2)
    with engine.snapshot("acme") as view:
        view.do(Count("tenants"))
        with pytest.raises(StorageBusy, match="have been open for more than"):
            converted(postgres_dsn, engine.schema, Layout(2))
        assert view.do(Select("entries")) == before
    converted(postgres_dsn, engine.schema, Layout(2))  # goes on
    assert held(engine)["acme", "entries"] == before


def test_a_copy_that_differs_replaces_nothing(engine: PostgresEngine, postgres_dsn: str) -> None:
    """Somebody wrote with triggers switched off: the copy lacks a row, and is thrown away."""
    steps = convert(target(postgres_dsn, engine.schema), Layout(3))
    while next(steps) != Step("links", "copied", len(TENANTS)):
        pass
    with psycopg.connect(postgres_dsn) as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(f'INSERT INTO "{engine.schema}".links VALUES (%s, %s, %s)', ("acme", "a", "unseen"))
    with pytest.raises(StorageFailure, match="has other rows than the table") as caught:
        list(steps)
    assert "Start the command again" in (caught.value.hint or "")
    assert ("a", "unseen") in held(engine)["acme", "links"]
    converted(postgres_dsn, engine.schema, Layout(3))
    assert ("a", "unseen") in held(engine)["acme", "links"]
    assert layout(postgres_dsn, engine.schema) == Layout(3)


def test_one_that_was_begun_is_finished_before_another(engine: PostgresEngine, postgres_dsn: str) -> None:
    steps = convert(target(postgres_dsn, engine.schema), BIG)
    while (reached := next(steps)).done != "compared":
        pass
    steps.close()  # type: ignore[attr-defined]
    with pytest.raises(Conflict) as caught:
        converted(postgres_dsn, engine.schema, Layout(5))
    assert "--parts 3 --own acme=2" in (caught.value.hint or "")
    before = held(engine)
    with pytest.raises(SchemaMismatch, match="is being partitioned") as refused:
        open_engine(url_of(postgres_dsn, engine.schema, partitions=3))
    assert "muniment store partition" in (refused.value.hint or "")
    opened = open_engine(url_of(postgres_dsn, engine.schema))  # in use all the while
    assert opened.read("acme", lambda reader: reader.do(Count("entries"))) == 1
    report = opened.scrub([b"x"], thorough=True)
    assert report.due
    assert "is being partitioned" in report.note
    opened.close()
    with psycopg.connect(postgres_dsn) as admin, pytest.raises(psycopg.errors.ObjectInUse):
        admin.execute(f'TRUNCATE "{engine.schema}"."{reached.table}"')
    assert held(engine) == before
    converted(postgres_dsn, engine.schema, BIG)
    assert held(engine) == before


def test_two_commands_at_once_do_it_together(engine: PostgresEngine, postgres_dsn: str) -> None:
    for number in range(2, 5):
        fill(engine, number)
    before = held(engine)
    first = convert(target(postgres_dsn, engine.schema), Layout(3), batch_rows=9)
    second = convert(target(postgres_dsn, engine.schema), Layout(3), batch_rows=11)
    failures: list[MunimentError] = []
    for steps in (first, second):
        next(steps)
    for steps in (first, second):  # the second finds what the first has done meanwhile
        try:
            list(steps)
        except Conflict as error:
            failures.append(error)
    assert all("another command has replaced" in error.message for error in failures)
    converted(postgres_dsn, engine.schema, Layout(3))
    assert held(engine) == before
    assert layout(postgres_dsn, engine.schema) == Layout(3)


def test_a_conversion_behind_a_pooler(engine: PostgresEngine, postgres_dsn: str, pooled_dsn: str) -> None:
    """Nothing is kept in the session: each step may be on another."""
    before = held(engine)
    converted(pooled_dsn, engine.schema, Layout(3))
    assert held(engine) == before
    assert layout(postgres_dsn, engine.schema) == Layout(3)
    behind = PostgresEngine(pooled_dsn, schema=engine.schema, partitions=3)
    assert held(behind) == before
    behind.close()


# -- walls, owner, rights


@pytest.mark.req("LG-02")
def test_walls_owner_and_rights_are_kept(postgres_dsn: str, owner_dsn: str, postgres_schema: str) -> None:
    """A plain owner converts it, whom row-level security binds: every row comes along all the same."""
    engine = PostgresEngine(owner_dsn, schema=postgres_schema)
    fill(engine)
    app = f"{postgres_schema}_app"
    with psycopg.connect(owner_dsn, autocommit=True) as owner:
        owner.execute(f'GRANT USAGE ON SCHEMA "{postgres_schema}" TO "{app}"')
        owner.execute(f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{postgres_schema}" TO "{app}"')
        owner.execute(f'REVOKE DELETE ON "{postgres_schema}".entries FROM "{app}"')
        owner.execute(f'GRANT SELECT (tenant_id, id) ON "{postgres_schema}".entries TO PUBLIC')
        owner.execute(f'ALTER TABLE "{postgres_schema}".entries SET (fillfactor = 90)')
    app_dsn = psycopg.conninfo.make_conninfo(postgres_dsn, user=app)
    before, rights = held(engine), _rights(postgres_dsn, postgres_schema)
    with pytest.raises(StorageFailure, match="does not own the tables"):
        converted(app_dsn, postgres_schema, Layout(3))
    for wanted in (Layout(3), BIG):
        converted(owner_dsn, postgres_schema, wanted, batch_rows=2)
        found = relations(postgres_dsn, postgres_schema)
        assert {each[1:] for each in found.values()} == {(f"{postgres_schema}_owner", True, True)}
        assert _rights(postgres_dsn, postgres_schema) == rights
        assert held(engine) == before
        for dsn in (owner_dsn, app_dsn):
            with psycopg.connect(dsn) as connection:
                for name in found:
                    if "_" in name and dsn is app_dsn and name not in partitioned_names():
                        continue  # no right on a partition at all
                    rows = connection.execute(f'SELECT count(*) FROM "{postgres_schema}"."{name}"').fetchone()
                    assert rows == (0,), name
                connection.execute("SET LOCAL muniment.partitioning = 'on'")  # it lets nobody see more than before
                assert connection.execute(f'SELECT count(*) FROM "{postgres_schema}".entries').fetchone() == (0,)
    with psycopg.connect(app_dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(f'SELECT * FROM "{postgres_schema}".entries_0')
    with psycopg.connect(postgres_dsn) as connection:
        options = connection.execute(
            """SELECT DISTINCT reloptions FROM pg_class JOIN pg_partition_tree(%s) ON relid = oid WHERE isleaf""",
            (f'"{postgres_schema}".entries',),
        )
        assert options.fetchall() == [(["fillfactor=90"],)]
    engine.close()
    served = PostgresEngine(app_dsn, schema=postgres_schema)
    assert held(served) == before
    served.close()


def _rights(dsn: str, schema: str) -> set[Any]:
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            """SELECT table_name::text, grantee::text, privilege_type::text FROM information_schema.role_table_grants
               WHERE table_schema = %s AND table_name = ANY (%s)""",
            (schema, list(partitioned_names())),
        ).fetchall()
        policies = connection.execute(
            """SELECT tablename::text, policyname::text, cmd, roles::text, qual, with_check FROM pg_policies
               WHERE schemaname = %s""",
            (schema,),
        ).fetchall()
        columns = connection.execute(
            "SELECT attname::text, attacl::text FROM pg_attribute WHERE attrelid = %s::regclass AND attacl IS NOT NULL",
            (f'"{schema}".entries',),
        ).fetchall()
        return {*tables, *policies, *columns}


# -- a tenant with partitions of its own


def test_a_large_tenant_is_spread_by_user(postgres_dsn: str, postgres_schema: str) -> None:
    with muniment.open(url_of(postgres_dsn, postgres_schema)) as mem:
        for tenant in ("acme", "globex"):
            for user in ("ana", "ben", "cleo", "dan", "eve"):
                run = mem.run(tenant_id=tenant, user_id=user, session_id="s")
                run.observe("user", f"{user} moved to Berlin in May.")
                run.compose("responder", query="Who moved?")
        converted(postgres_dsn, postgres_schema, Layout.checked(2, {"acme": 4}))
        assert mem.verify().ok
        said = mem.run(tenant_id="acme", user_id="ana", session_id="s").observe("user", "I like it here.", id="chosen")
        with pytest.raises(Conflict):  # the id alone is no key of the ledger there: the table of ids holds it
            mem.run(tenant_id="acme", user_id="ben", session_id="s").observe("user", "I do not.", id="chosen")
        assert mem.forget(event=said.id, tenant_id="acme").counts["entries"] == 1
        assert mem.verify().ok
    with psycopg.connect(postgres_dsn) as connection:
        rows = connection.execute(
            f"""SELECT tenant_id, tableoid::regclass::text, count(DISTINCT user_id)
                FROM "{postgres_schema}".entries GROUP BY 1, 2"""
        ).fetchall()
        places = {tenant: {name for owner, name, _ in rows if owner == tenant} for tenant in ("acme", "globex")}
        assert len(places["acme"]) > 1
        assert len(places["globex"]) == 1
        assert not places["acme"] & places["globex"]
    split = {spec.name for spec in TABLES if is_by_user(spec)}
    assert split >= {"entries", "sessions", "segments", "vectors", "idempotency", "marks", "extracts", "episodes"}
    assert not split & {"ids", "items", "links", "proofs", "blobs"}


def test_other_tenants_keep_their_unique_ids(engine: PostgresEngine, postgres_dsn: str) -> None:
    converted(postgres_dsn, engine.schema, BIG)
    entry = row_with("entries", 1, user_id="somebody", session_id="else", seq=77)
    with pytest.raises(KeyTaken):
        engine.write("globex", lambda tx: tx.do(Insert("entries", [entry])))
    with pytest.raises(KeyTaken):
        engine.write("acme", lambda tx: tx.do(Insert("entries", [row_with("entries", 1, id="another")])))


@for_each(
    ("parts", "own"),
    [(1, {}), (65, {}), (-1, {}), (True, {}), (0, {"acme": 4}), (4, {"acme": -1}), (4, {"acme": 65}), (4, {"*": 2})],
)
def test_layouts_without_sense(parts: int, own: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        partition_store("postgresql://nobody@127.0.0.1:1/none", parts, own)


@for_each("db", ["store.db", ":memory:", "sqlite:///a.db", "mysql://host/x", ""])
def test_only_postgresql_has_partitions(db: str) -> None:
    with pytest.raises(InvalidInput, match="only a store of PostgreSQL"):
        partition_store(db, 4)


def test_there_is_no_store_to_partition(postgres_dsn: str, postgres_schema: str) -> None:
    with pytest.raises(SchemaMismatch, match="has no store"):
        converted(postgres_dsn, postgres_schema, Layout(3))
    with psycopg.connect(postgres_dsn) as connection:
        assert not is_under_way(connection, postgres_schema)
