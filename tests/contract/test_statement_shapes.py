"""Every statement that the library makes names its shard by equality.

They are caught where the driver is given them, while every operation of an engine is carried out on every table, and
while a memory is used. What does not name a tenant is on a short list, with a reason.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import muniment
from muniment.core.ports.engine import (
    Advance,
    Count,
    Delete,
    Engine,
    Find,
    Get,
    Insert,
    Lock,
    LockAll,
    Patch,
    Put,
    Remove,
    Select,
)
from muniment.core.ports.schema import TABLES, column_names
from muniment.errors import MunimentError
from muniment.store.engines.postgres import COPY_ROWS_MIN, PostgresEngine
from muniment.testing.engine_contract import sample_key, sample_row
from muniment.testing.postgres import fresh_schema
from muniment.testing.stories import Teller, random_script

TENANT = "acme"
WITHOUT_A_TENANT = {
    r"(BEGIN|COMMIT|ROLLBACK|SET LOCAL|SELECT pg_advisory_xact_lock|FETCH|CLOSE|CHECKPOINT|SET )": "touches no table",
    r"SELECT pg_current_snapshot\(\)": "touches no table",
    r"SELECT (to_regclass|count\(\*\) FROM pg_)": "reads the catalog",
    r"\s*SELECT name FROM \S+ AS tenant\s+WHERE shard = 0": "lists the tenants, or those that no row lists",
    r"SELECT set_config\(": "touches no table",
    r"\s*SELECT\s+\(SELECT coalesce\(sum\(pg_total_relation_size": "reads the catalog",
    r"VACUUM ": "rebuilds whole tables, in a scrub",
    r"SELECT (\(SELECT count\(\*\) FROM pg_replication_slots|pg_current_wal_lsn\(\))": "asks for copies, for a receipt",
    r"SELECT has_database_privilege\(": "touches no table",
    r"(COPY|DROP TABLE) pg_temp\.": "a table that is the transaction's own, and ends with it",
    r'CREATE TEMPORARY TABLE pg_temp\."\w+" \(LIKE "\w+"\."\w+"\) ON COMMIT DROP': "likewise; no row is read",
}
COPIED = re.compile(r'INSERT INTO \S+ \(("shard"(?:, "\w+")*)\) SELECT (.+) FROM pg_temp\."\w+"')
"""From a table of the transaction's own, into which the driver wrote the tenant with every row."""


NAMES_SORTED = re.compile(
    r'\(SELECT "name" FROM "\w+"\."names" AS sorted'
    r' WHERE sorted\."shard" = ("\w+"\."\w+")\."shard" AND sorted\."number" = \1\."\w+"\)'
)
"""The names that rows are sorted by: rows of the same shard."""


class Said(NamedTuple):
    text: str
    parameters: Any
    is_many: bool


@pytest.fixture(scope="module")
def said(postgres_dsn: str) -> Iterator[tuple[PostgresEngine, list[Said]]]:
    """A store, and everything that was said to the server while it was used."""
    heard: dict[str, Said] = {}
    patch = pytest.MonkeyPatch()
    with fresh_schema(postgres_dsn) as schema:
        url = f"{postgres_dsn}&schema={schema}"
        mem = muniment.open(url)
        engine = mem._ctx.engine
        assert isinstance(engine, PostgresEngine)
        _listen(patch, heard)
        try:
            _use_the_engine(engine)
            _use_the_memory(mem)
        finally:
            patch.undo()
        yield engine, list(heard.values())
        mem.close()


def _listen(patch: pytest.MonkeyPatch, heard: dict[str, Said]) -> None:
    def wrap(cls: Any, name: str) -> None:
        inner: Callable[..., Any] = getattr(cls, name)

        def method(self: Any, query: Any, params: Any = None, **more: Any) -> Any:
            text = query.decode() if isinstance(query, bytes) else str(query)
            is_many = name == "executemany"
            rows = list(params) if is_many else params
            heard.setdefault(text, Said(text, rows[0] if is_many and rows else rows, is_many))
            return inner(self, query, rows, **more)

        patch.setattr(cls, name, method)

    wrap(psycopg.Cursor, "execute")
    wrap(psycopg.Cursor, "executemany")
    wrap(psycopg.ServerCursor, "execute")
    wrap(psycopg.Cursor, "copy")


def _use_the_engine(engine: Engine) -> None:
    """Every operation on every table, with every comparison on every column."""
    for spec in TABLES:
        rows = [sample_row(spec, number) for number in ((1, 2, 3) if spec.key else (1,))]
        names = column_names(spec)
        engine.write("walls", lambda tx, spec=spec, rows=rows: tx.do(Insert(spec.name, rows)))  # type: ignore[misc]
        engine.write("walls", lambda tx, spec=spec, rows=rows: tx.do(Put(spec.name, rows[:1])))  # type: ignore[misc]
        asked: list[Any] = [
            Select(spec.name),
            Count(spec.name),
            Count(spec.name, limit=2),
            Get(spec.name, sample_key(spec, 1)),
        ]
        for name, value in zip(names, rows[0], strict=True):
            if value is None:
                continue
            form = spec.columns[names.index(name)].form
            signs = {"body": (), "ids": (), "packed": (), "name": ("=", "in")}.get(
                form, ("=", "<", "<=", ">", ">=", "in")
            )
            for sign in signs:
                if sign == "in":
                    asked.append(Count(spec.name, ((name, "in", (value,)),)))
                else:
                    asked.append(Select(spec.name, ((name, sign, value),), limit=5))
        if spec.key:
            key = sample_key(spec, 1)
            asked += [Select(spec.name, after=key, limit=2, descending=down) for down in (False, True)]
            asked.append(Find(spec.name, spec.key, [key, sample_key(spec, 2)]))
        for op in asked:
            engine.read("walls", lambda reader, op=op: reader.do(op))  # type: ignore[misc]
        engine.read("walls", lambda reader, spec=spec: list(reader.stream(Select(spec.name))))  # type: ignore[misc]
        fixed = {*spec.key}.union(*spec.unique)
        free = next((name for name in names if name not in fixed), None)
        where = ((names[0], "=", rows[0][0]),)
        if free is not None:
            value = rows[0][names.index(free)]
            engine.write("walls", lambda tx, s=spec, w=where, f=free, v=value: tx.do(Patch(s.name, w, {f: v})))  # type: ignore[misc]
        engine.write("walls", lambda tx, spec=spec, where=where: tx.do(Delete(spec.name, where)))  # type: ignore[misc]
        for by in (spec.key, *spec.unique) if spec.key else ():
            gone = [tuple(row[names.index(name)] for name in by) for row in rows]
            if all(value is not None for each in gone for value in each):
                engine.write("walls", lambda tx, s=spec, b=by, k=gone: tx.do(Remove(s.name, b, k)))  # type: ignore[misc]
    engine.write("walls", lambda tx: tx.do(Advance("users", [("a", 1, 0, 0, 0, 0), ("b", 1, 0, 0, 0, 0)])))
    engine.write("walls", lambda tx: tx.do(Lock(("session", "a"))))
    engine.write("walls", lambda tx: tx.do(LockAll([("session", "a"), ("session", "b")])))
    engine.mark(), engine.tenants(), engine.unlisted_tenants(), engine.sizes()


def _use_the_memory(mem: muniment.Memory) -> None:
    runs = [mem.run(tenant_id=TENANT, user_id=user, session_id="s1") for user in ("ana", "ben")]
    teller = Teller(mem, runs)
    for act in random_script(7, 90):
        with suppress(MunimentError):
            teller.tell(act)
    run = mem.run(tenant_id=TENANT, user_id="ana", session_id="s2")
    turns = [
        run.observe("user", f"I moved to Berlin in May, for the {n}th time. I am allergic to nuts.") for n in range(60)
    ]
    run.observe("user", "x" * 90_000, idempotency_key="once")
    run.extract()
    run.search("where does she live", k=5)
    build = run.compose("responder", query="What is she allergic to?")
    mem.replay(build.id, tenant_id=TENANT)
    mem.corpus("docs", tenant_id=TENANT).add("The field study followed 550 homes.", title="Study")
    mem.store.users(tenant_id=TENANT)
    mem.store.overview(tenant_id=TENANT)
    mem.store.attention(tenant_id=TENANT)
    mem.ledger.entries(user_id="ana", tenant_id=TENANT)
    dump = list(mem.export(tenant_id=TENANT))
    mem.forget(event=turns[3].id, tenant_id=TENANT)
    mem.forget(session="s1", user_id="ben", tenant_id=TENANT)
    mem.store.scrub()
    mem.store.rebuild(tenant_id=TENANT)
    assert mem.verify(tenant_id=TENANT).ok
    mem.verify()
    mem.forget(tenant=TENANT)
    mem.import_(dump)
    _load(mem)


def _load(mem: muniment.Memory) -> None:
    """More rows at once than are inserted one by one, with an index that is made after them."""
    events = (
        {"user_id": f"u{n % 9}", "session_id": f"s{n % 9}", "role": "user", "content": f"Turn {n} of the ferry."}
        for n in range(COPY_ROWS_MIN + 200)
    )
    assert mem.store.load(events, tenant_id=TENANT, index=False).written == COPY_ROWS_MIN + 200
    mem.store.upkeep()
    assert mem.run(tenant_id=TENANT, user_id="u3").search("ferry")


def _ours(said: tuple[PostgresEngine, list[Said]]) -> list[Said]:
    return [each for each in said[1] if not any(re.match(form, each.text) for form in WITHOUT_A_TENANT)]


@pytest.mark.soak
def test_enough_was_said(said: tuple[PostgresEngine, list[Said]]) -> None:
    """Of every table and every kind, and each reason of the list is needed."""
    ours = _ours(said)
    assert len(ours) > 300
    for table in ("entries", "idempotency_keys"):
        assert any(COPIED.fullmatch(each.text) and f'"{table}" (' in each.text for each in ours), table
    for spec in TABLES:
        kinds = {each.text.split()[0] for each in ours if f'"{spec.name}"' in each.text}
        assert kinds >= {"SELECT", "INSERT", "DELETE"}, spec.name
    for form in WITHOUT_A_TENANT:
        assert any(re.match(form, each.text) for each in said[1]), form


@pytest.mark.req("LG-02")
def test_every_statement_addresses_one_shard(said: tuple[PostgresEngine, list[Said]]) -> None:
    engine, _ = said
    tables = re.compile(rf'"{engine.schema}"\."(\w+)"')
    for each in _ours(said):
        assert tables.search(each.text), each.text
        if copied := COPIED.fullmatch(each.text):
            assert copied[1] == copied[2], each.text
        elif each.text.startswith("INSERT"):
            assert re.match(r'INSERT INTO \S+ \("shard"(, "\w+")*\) VALUES \(%s(, %s)*\)', each.text), each.text
        else:
            text = NAMES_SORTED.sub("", each.text)
            named = re.findall(r'"shard" = %s', text)
            used = re.findall(rf'(?:FROM|JOIN|UPDATE) "{engine.schema}"\."\w+"', text)
            assert len(named) == len(used) == 1, each.text
            assert " OR " not in each.text, each.text


ON_SQLITE = {
    r"(BEGIN|COMMIT|ROLLBACK|PRAGMA|VACUUM|CREATE|ANALYZE)": "touches no row",
    r"SELECT coalesce\(max\(rowid\), 0\) FROM entries": "how large the store is",
    r"(SELECT|INSERT INTO) .*\b(layout|sqlite_schema|sqlite_stat1)\b": "the tables themselves",
    r"\s*SELECT (count\(\*\)|name|tenant\.name) FROM (names|tenants)\b": "lists the tenants, or counts them",
}


@pytest.mark.req("LG-02")
def test_every_statement_on_sqlite_addresses_one_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a file holds what could be handed to any server."""
    heard: dict[str, None] = {}

    class Listening(sqlite3.Connection):
        """To the store; a replay has a file of its own besides."""

        def __init__(self, database: str, *args: Any, **more: Any) -> None:
            super().__init__(database, *args, **more)
            self._heard = heard if "store.db" in database else {}

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            self._heard[sql] = None
            return super().execute(sql, *parameters)

        def executemany(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            self._heard[sql] = None
            return super().executemany(sql, *parameters)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Listening))
    with muniment.open(tmp_path / "store.db") as mem:
        _use_the_engine(mem._ctx.engine)
        _use_the_memory(mem)
    ours = [_as_on_postgres(each) for each in heard if not any(re.match(form, each) for form in ON_SQLITE)]
    assert len(ours) > 300
    for text in ours:
        if text.startswith("INSERT"):
            assert re.match(r'INSERT INTO \S+ \("shard"(, "\w+")*\) VALUES \(%s(, %s)*\)', text), text
            continue
        rest = NAMES_SORTED.sub("", text)
        used = re.findall(r'(?:FROM|JOIN|UPDATE) "s"\."\w+"', rest)
        assert len(re.findall(r'"shard" = %s', rest)) == len(used) == 1, text
        assert " OR " not in text, text


def _as_on_postgres(statement: str) -> str:
    """A statement with the names and marks of the other dialect, so that one form is looked for."""
    text = re.sub(r"\[(\w+)\]", r'"\1"', statement).replace("?", "%s")
    if " names " in text:
        text = re.sub(r"\b(names|shard|number|name)\b", r'"\1"', text)
    text = re.sub(r'\b(FROM|JOIN|UPDATE|INTO) "', r'\1 "s"."', text)
    return re.sub(r'(?<![."])("\w+"\.")', r'"s".\1', text).replace('"s"."s"', '"s"')


def test_statements_call_no_functions(said: tuple[PostgresEngine, list[Said]]) -> None:
    """Plain SQL, which a sharded database can hand on: the statements of a tenant call only aggregates and unnest."""
    for each in _ours(said):
        called = set(re.findall(r"\b([a-z_]+)\(", each.text)) - {"count", "unnest", "asked", "conflict", "values"}
        assert not called, each.text
