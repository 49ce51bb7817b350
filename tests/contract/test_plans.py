"""Questions by a declared key or index are answered through it: no engine walks a whole table for them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from muniment.core.ports.engine import Find, Insert, Row, Select
from muniment.store.engines.checks import shape_of
from muniment.store.engines.codec import shard_of
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.sql import Question, Statements
from muniment.store.engines.sqlite.engine import SqliteEngine
from muniment.testing.engine_contract import row_with
from muniment.testing.postgres import fresh_schema

QUESTIONS = {
    "key": Select("entries", (("id", "=", "e7"),)),
    "keys": Select("entries", (("id", "in", ("e7", "e8", "e9")),)),
    "unique, a page": Select(
        "entries", (("user_id", "=", "u"), ("session_id", "=", "s")), ("seq",), after=(100,), limit=50
    ),
    "unique, a page backwards": Select(
        "entries", (("user_id", "=", "u"), ("session_id", "=", "s")), ("seq",), after=(100,), descending=True, limit=50
    ),
    "unique, a range": Select("entries", (("user_id", "=", "u"), ("session_id", "=", "s"), ("seq", ">=", 4000))),
    "index": Select("links", (("item_id", "=", "i7"),)),
    "index of a user": Select("lineages", (("user_id", "=", "u7"),)),
    "marks of a pool": Select(
        "marks",
        (("user_id", "=", "u7"), ("session_id", "=", "s"), ("evidence_id", "in", ("e7", "e8", "e9"))),
    ),
    "last mark of a session": Select(
        "marks",
        (("user_id", "=", "u7"), ("session_id", "=", "s")),
        ("user_id", "session_id", "number"),
        descending=True,
        limit=1,
    ),
    "extracts of a level": Select(
        "extracts", (("user_id", "=", "u7"), ("session_id", "=", "s"), ("level", "=", 0), ("first", ">=", 1025))
    ),
    "index with nulls": Select("items", (("kind", "=", "k"), ("user_id", "=", None), ("name", "=", "n7"))),
    "newest version": Select("items", (("id", "=", "e7"),), ("id", "version"), descending=True, limit=1),
    "newest of a kind": Select("items", (("kind", "=", "k7"),), ("created_at",), descending=True, limit=5),
    "all, page by page": Select("items", after=("e7", 1), limit=50),
    "a range of the key, in its order": Select(
        "sessions", (("user_id", ">=", "u1"), ("user_id", "<", "u2")), ("user_id", "session_id"), limit=50
    ),
    "the next status of a list": Select(
        "items",
        (("kind", "=", "k7"), ("owner", "=", "u7"), ("newest", "=", 1), ("status", ">", "active")),
        ("status", "placed_at", "id"),
        limit=1,
    ),
    "the next status of a tenant's list": Select(
        "items",
        (("kind", "=", "k7"), ("newest", "=", 1), ("status", ">", "active")),
        ("status", "placed_at", "id"),
        limit=1,
    ),
    "a page of a list backwards, of a status": Select(
        "items",
        (("kind", "=", "k7"), ("owner", "=", "u7"), ("newest", "=", 1), ("status", "=", "active")),
        ("placed_at", "id"),
        after=("c7", "i7"),
        descending=True,
        limit=20,
    ),
    "a page of a tenant's list, of a time": Select(
        "items",
        (("kind", "=", "k7"), ("newest", "=", 1), ("status", "=", "active"), ("placed_at", ">=", "c1")),
        ("placed_at", "id"),
        descending=True,
        limit=20,
    ),
    "a page of a run's entries": Select(
        "entries",
        (("run_id", "=", "r7"),),
        ("seq",),
        after=(7,),
        limit=20,
    ),
    "a page of episodes backwards": Select(
        "episodes",
        (("user_id", "=", "u7"),),
        ("user_id", "session_id", "first"),
        after=("u7", "s", 41),
        descending=True,
        limit=20,
    ),
    "a run's entries, in the order of the key": Select("entries", (("run_id", "=", "r7"),)),
    "the first of a run's entries": Select("entries", (("run_id", "=", "r7"),), limit=1),
    "items of owners, in the order of the key": Select(
        "items", (("kind", "in", ("k7", "k8")), ("user_id", "in", ("u1", "u2")))
    ),
    "index, several owners": Select(
        "items", (("kind", "=", "k7"), ("user_id", "in", ("u1", "u2"))), columns=("user_id", "id", "receipt_id")
    ),
}
SHARD = shard_of(1)


class Numbered:
    """Numbers of names: a plan does not depend on them."""

    def number_of(self, name: str) -> int:
        return 1 + len(name)

    def number_for(self, name: str) -> int:
        return self.number_of(name)

    def name_of(self, number: int) -> str:
        return str(number)


every_question = pytest.mark.parametrize("name", QUESTIONS)
ROWS = 3000


def _item(n: int) -> Row:
    listed = {"owner": f"u{n % 9}", "newest": int(n % 4 > 0), "placed_at": f"c{n}"}
    status = "active" if n % 3 else "gone"
    return row_with("items", n, id=f"e{n}", kind=f"k{n % 50}", name=f"n{n}", status=status, **listed)


def inserts() -> list[Insert]:
    numbers = range(ROWS)
    return [
        Insert(
            "entries",
            [
                row_with("entries", n, id=f"e{n}", user_id="u", session_id="s", run_id=f"r{n % 40}", seq=n)
                for n in numbers
            ],
        ),
        Insert("episodes", [(f"u{n % 40}", "s", 40 * n + 1, 40 * n + 40, 40, "", "") for n in numbers]),
        Insert("links", [(f"e{n}", f"i{n}") for n in numbers]),
        Insert("lineages", [(f"i{n}", f"u{n}", f"e{n}") for n in numbers]),
        Insert("marks", [(f"u{n}", "s", number, f"e{number}") for n in numbers[:40] for number in range(1, 26)]),
        Insert("extracts", [(f"u{n}", "s", 0, 64 * at + 1, b"") for n in numbers[:40] for at in range(25)]),
        Insert("sessions", [row_with("sessions", n, user_id=f"u{n}", session_id="s") for n in numbers]),
        Insert("items", [_item(n) for n in numbers]),
    ]


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "store.db"
    with closing(SqliteEngine(path)) as engine:
        engine.write("t1", lambda transaction: [transaction.do(op) for op in inserts()])
        with closing(sqlite3.connect(path)) as connection:
            yield connection


@every_question
def test_sqlite(sqlite_store: sqlite3.Connection, name: str) -> None:
    select = QUESTIONS[name]
    text, parameters = Statements(mark="?").select(shape_of(select.table), SHARD, select, Numbered())
    plan = [row[3] for row in sqlite_store.execute(f"EXPLAIN QUERY PLAN {text}", parameters)]
    assert plan[0].startswith("SEARCH"), plan
    assert plan[0].count("=?") + plan[0].count(">") + plan[0].count("<") >= 2, plan
    if select.limit is not None and "newest of" not in name and "first of" not in name:
        assert not any("TEMP B-TREE" in line for line in plan), plan


NEIGHBOURS = Find(
    "entries", ("user_id", "session_id", "seq"), [("u", "s", number) for number in range(2, 3000, 70)], ("id", "hash")
)


def test_sqlite_finds_by_a_unique_key(sqlite_store: sqlite3.Connection) -> None:
    text, parameters = Statements(mark="?").find(shape_of("entries"), SHARD, NEIGHBOURS, Numbered())
    plan = [row[3] for row in sqlite_store.execute(f"EXPLAIN QUERY PLAN {text}", parameters)]
    assert any(line.startswith("SEARCH entries") and line.count("=?") == 4 for line in plan), plan


@pytest.fixture(scope="module")
def postgres_store(postgres_dsn: str) -> Iterator[PostgresEngine]:
    with fresh_schema(postgres_dsn) as schema:
        engine = PostgresEngine(postgres_dsn, schema=schema)
        for tenant in ("t1", "t2"):
            engine.write(tenant, lambda transaction: [transaction.do(op) for op in inserts()])
        with psycopg.connect(postgres_dsn, autocommit=True) as connection:
            connection.execute("ANALYZE")
        yield engine
        engine.close()


@every_question
def test_postgres(postgres_store: PostgresEngine, name: str) -> None:
    """As the role the engine works as, so with the policies in the plan."""
    select = QUESTIONS[name]
    plan = _plan(postgres_store, _spoken(postgres_store).select(shape_of(select.table), SHARD, select, Numbered()))
    assert "Index" in plan, plan
    assert "Seq Scan" not in plan, plan


def test_postgres_finds_by_a_unique_key(postgres_store: PostgresEngine) -> None:
    plan = _plan(postgres_store, _spoken(postgres_store).find(shape_of("entries"), SHARD, NEIGHBOURS, Numbered()))
    assert "Index" in plan, plan
    assert "Seq Scan" not in plan, plan


def _spoken(engine: PostgresEngine) -> Statements:
    return Statements(mark="%s", schema=engine.schema, arrays=True)


def _plan(engine: PostgresEngine, question: Question) -> str:
    text, parameters = question
    with engine._pool.connection() as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT set_config('muniment.tenant', 't1', true)")
        connection.execute("SELECT set_config('muniment.shard', %s, true)", (str(SHARD),))
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {text}", parameters))
        connection.execute("ROLLBACK")
    return plan
