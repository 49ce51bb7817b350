"""Every declared index answers the question that it names, and no engine walks a whole table for one by a key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment.core.ports.engine import Engine, Find, Insert, Reader, Row, Select
from muniment.core.ports.schema import TABLES
from muniment.store.engines.layout import NAMES_TABLE, index_name
from muniment.store.engines.postgres import PostgresEngine, PostgresReader
from muniment.store.engines.sqlite import SqliteEngine, SqliteReader
from muniment.testing.engine_contract import sample_row
from muniment.testing.postgres import fresh_schema

ROWS = 3000


def instant(number: int) -> str:
    return f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000000Z"


_SESSION = (("user_id", "=", "u7"), ("session_id", "=", "s7"))
_LISTED = (("kind", "=", "k7"), ("newest", "=", 1), ("status", "=", "active"))

INDEXES: dict[str, Select | Find] = {
    "sessions_session_id_user_id": Select("sessions", (("session_id", "=", "s7"),)),
    "entries_user_id_session_id_seq": Select("entries", _SESSION, ("seq",), after=(7,), limit=50),
    "entries_user_id_n": Select("entries", (("user_id", "=", "u7"), ("n", ">", 7)), ("user_id", "n"), limit=50),
    "entries_run_id_seq": Select("entries", (("run_id", "=", "r7"),), ("seq",), after=(7,), limit=20),
    "blobs_entry_id": Select("blobs", (("entry_id", "in", ("e7", "e8")),)),
    "items_kind_user_id_name_created_at": Select(
        "items", (("kind", "=", "k7"), ("user_id", "=", "u7"), ("name", "=", "n7"))
    ),
    "items_kind_run_id": Select("items", (("kind", "=", "k7"), ("run_id", "=", "r7"))),
    "items_kind_created_at": Select("items", (("kind", "=", "k7"),), ("created_at",), descending=True, limit=5),
    "items_kind_owner_newest_status_placed_at_id_version": Select(
        "items", (*_LISTED, ("owner", "=", "u7")), ("placed_at", "id"), (instant(1500), "e7"), descending=True, limit=20
    ),
    "items_kind_newest_status_placed_at_id_version": Select(
        "items", (*_LISTED, ("placed_at", ">=", instant(1))), ("placed_at", "id"), descending=True, limit=20
    ),
    "links_item_id_source_id": Select("links", (("item_id", "=", "i7"),)),
    "lineages_user_id_item_id": Select("lineages", (("user_id", "=", "u7"),)),
    "item_terms_item_id_term": Select("item_terms", (("item_id", "=", "i7"),), ("term",)),
    "proofs_item_id_version": Find("proofs", ("item_id", "version"), [("i7", 1), ("i8", 1)]),
    "idempotency_keys_entry_id": Select("idempotency_keys", (("entry_id", "in", ("e7", "e8")),)),
    "marks_user_id_session_id_evidence_id": Select("marks", (*_SESSION, ("evidence_id", "in", ("e7", "e8", "e9")))),
    "places_name_state": Select("places", (("name", "=", "n7"), ("state", "=", 1))),
    "places_space_state_path_name": Select(
        "places",
        (("space", "=", "p7"), ("state", "=", 1), ("path", ">=", "a"), ("path", "<", "b")),
        ("path", "name"),
        limit=9,
    ),
    "places_space_expires": Select("places", (("space", "=", "p7"), ("expires", "<=", 7))),
    "places_user_id_session_id_seq": Select("places", _SESSION),
    "prefixes_entry_id": Select("prefixes", (("entry_id", "in", ("e7", "e8")),)),
    "leases_is_open_id": Select("leases", (("is_open", "=", 1),)),
    "replies_kept_created_at": Select("replies", (("kept", "=", 1),), ("created_at",), descending=True, limit=9),
    "keys_number": Select("keys", order=("number",), descending=True, limit=1),
}
"""The question that each index names."""

KEYS: dict[str, Select | Find] = {
    "key": Select("entries", (("id", "=", "e7"),)),
    "keys": Select("entries", (("id", "in", ("e7", "e8", "e9")),)),
    "neighbours": Find(
        "entries", ("user_id", "session_id", "seq"), [("u7", "s7", n) for n in range(2, ROWS, 400)], ("id", "hash")
    ),
    "a page backwards": Select("entries", _SESSION, ("seq",), after=(100,), descending=True, limit=50),
    "a range": Select("entries", (*_SESSION, ("seq", ">=", 4000))),
    "last mark of a session": Select("marks", _SESSION, ("user_id", "session_id", "number"), descending=True, limit=1),
    "the newest items with a term": Select(
        "item_terms", (("owner", "=", "u7"), ("term", "=", 7)), ("placed_at", "item_id"), descending=True, limit=9
    ),
    "all facts of an owner, by status": Select(
        "items",
        (("kind", "=", "k7"), ("owner", "=", "u7"), ("newest", "=", 1)),
        ("status", "placed_at", "id"),
        limit=201,
    ),
    "a user's best statements": Select(
        "statements", (("user_id", "=", "u7"),), ("user_id", "rank", "n", "start"), descending=True, limit=50
    ),
    "newest version": Select("items", (("id", "=", "e7"),), ("id", "version"), descending=True, limit=1),
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
    "a page of episodes backwards": Select(
        "episodes",
        (("user_id", "=", "u7"),),
        ("user_id", "session_id", "first"),
        after=("u7", "s7", 41),
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
SORTED = ("newest version", "the first of a run's entries")
"""Few rows, which may be sorted although only some of them are asked for."""


def test_each_index_names_a_question_that_is_asked_here() -> None:
    declared = {index_name(spec, each) for spec in TABLES for each in (*spec.unique, *spec.indexes)}
    assert declared == set(INDEXES)
    for spec in TABLES:
        assert len(spec.serves) == len(spec.unique) + len(spec.indexes), spec.name
        assert all(spec.serves), spec.name


Asked = tuple[str, Any]
"""A statement and its parameters."""


def _listen(patch: pytest.MonkeyPatch, cls: Any, heard: list[Asked]) -> None:
    inner = cls._fetch

    def fetch(self: Any, table: str, statement: str, parameters: Any) -> list[Row]:
        if table != NAMES_TABLE:
            heard.append((statement, parameters))
        return inner(self, table, statement, parameters)  # type: ignore[no-any-return]

    patch.setattr(cls, "_fetch", fetch)


def _asked(engine: Engine, op: Select | Find, heard: list[Asked]) -> list[Asked]:
    """The statements by which an engine answers a question."""
    heard.clear()

    def read(reader: Reader) -> None:
        reader.do(op)

    engine.read("t1", read)
    assert heard, "nothing was asked"
    return list(heard)


def _row(table: str, n: int) -> Row:
    own = {
        "id": f"e{n}",
        "entry_id": f"e{n}",
        "item_id": f"i{n}",
        "source_id": f"e{n}",
        "evidence_id": f"e{n}",
        "user_id": f"u{n % 9}",
        "session_id": f"s{n // 9}" if table == "sessions" else "s7",
        "run_id": f"r{n % 40}",
        "agent_id": "a",
        "seq": n,
        "kind": f"k{n % 8}",
        "name": f"n{n}",
        "status": "active" if n % 3 else "gone",
        "owner": f"u{n % 9}",
        "n": n,
        "newest": int(n % 4 > 0),
        "placed_at": instant(n),
        "created_at": instant(n),
        "number": n,
        "term": n % 9,
        "version": 1,
        "rank": n % 8,
        "first": 40 * n + 1,
        "last": 40 * n + 40,
        "level": 0,
        "space": f"p{n % 9}",
        "path": f"a{n}",
        "state": 1,
        "key_hash": n.to_bytes(4),
        "hash": n.to_bytes(4),
        "expires": n,
        "kept": 1,
        "is_open": int(n == 7),
    }
    spec = _TABLE[table]
    row = zip(spec.columns, sample_row(spec, n), strict=True)
    fits = {"text": str, "int": int, "bytes": bytes}
    return tuple(own[c.name] if isinstance(own.get(c.name), fits[c.type]) else value for c, value in row)


_TABLE = {spec.name: spec for spec in TABLES}


def _inserts() -> list[Insert]:
    asked = {op.table for op in (*INDEXES.values(), *KEYS.values())}
    return [Insert(table, [_row(table, n) for n in range(ROWS)]) for table in sorted(asked)]


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteEngine, Path]]:
    path = tmp_path_factory.mktemp("plans") / "store.db"
    with closing(SqliteEngine(path)) as engine:
        engine.write("t1", lambda transaction: [transaction.do(op) for op in _inserts()])
        yield engine, path


def test_sqlite(sqlite_store: tuple[SqliteEngine, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, path = sqlite_store
    heard: list[Asked] = []
    _listen(monkeypatch, SqliteReader, heard)
    wrong: list[Any] = []
    with closing(sqlite3.connect(path)) as connection:
        for name, op in (INDEXES | KEYS).items():
            for statement, parameters in _asked(engine, op, heard):
                plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
                if not _is_by_key(plan, op.table) or (name in INDEXES and f" {name} " not in f"{plan} "):
                    wrong.append((name, statement, plan))
                if getattr(op, "limit", None) is not None and name not in SORTED and _is_sorted(plan):
                    wrong.append((name, statement, plan))
    assert not wrong, _report(wrong)


def _report(wrong: list[Any]) -> str:
    return "\n".join("\n  ".join(map(str, each)) for each in wrong)


def _is_by_key(plan: list[str], table: str) -> bool:
    """Is the table searched by its shard and something more, or by its shard alone in the order of an index?"""
    found = [line for line in plan if line.startswith(f"SEARCH {table} ")]
    conditions = [line.count("=?") + line.count(">") + line.count("<") for line in found]
    return len(found) == 1 and (conditions[0] >= 2 or not _is_sorted(plan))


def _is_sorted(plan: list[str]) -> bool:
    """Are all rows sorted? Rows that share the first columns of the order may be, one group after another."""
    return any("TEMP B-TREE" in line and "RIGHT PART" not in line and "LAST" not in line for line in plan)


@pytest.fixture(scope="module")
def postgres_store(postgres_dsn: str) -> Iterator[PostgresEngine]:
    with fresh_schema(postgres_dsn) as schema:
        engine = PostgresEngine(postgres_dsn, schema=schema)
        for tenant in ("t1", "t2"):
            engine.write(tenant, lambda transaction: [transaction.do(op) for op in _inserts()])
        with psycopg.connect(postgres_dsn, autocommit=True) as connection:
            connection.execute("ANALYZE")
        yield engine
        engine.close()


def test_postgres(postgres_store: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the role the engine works as, so with the policies in the plan."""
    engine, heard = postgres_store, list[Asked]()
    _listen(monkeypatch, PostgresReader, heard)
    wrong: list[Any] = []
    for name, op in (INDEXES | KEYS).items():
        for statement, parameters in _asked(engine, op, heard):
            plan = _postgres_plan(engine, statement, parameters)
            if f"Seq Scan on {op.table} " in plan or "Index" not in plan or (name in INDEXES and name not in plan):
                wrong.append((name, statement, plan))
    assert not wrong, _report(wrong)


def _postgres_plan(engine: PostgresEngine, statement: str, parameters: Any) -> str:
    with engine._pool.connection() as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT set_config('muniment.tenant', 't1', true)")
        connection.execute(
            "SELECT set_config('muniment.shard', %s, true)", (str(engine._book.number(0, "t1") * 65536),)
        )
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {statement}", parameters))
        connection.execute("ROLLBACK")
    return plan
