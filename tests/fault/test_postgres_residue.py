"""What a forget leaves in the pages of a PostgreSQL server: little work each time, nothing after a thorough scrub."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import muniment
from muniment.core.ports.engine import NOT_SCRUBBED, Insert, Patch, Select
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines._postgres_residue import scrub
from muniment.store.engines.postgres import PostgresEngine
from muniment.store.forget import SCRUB_DUE
from muniment.store.items import latest
from muniment.testing.engine_contract import row_with

pytestmark = pytest.mark.req("LG-07")


@pytest.fixture
def admin(postgres_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def engine(postgres_dsn: str, postgres_schema: str) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema)
    yield engine
    engine.close()


_FILES = """SELECT pg_relation_filepath(each)
            FROM pg_class AS tables, LATERAL (VALUES (oid), (reltoastrelid)) AS two (each)
            WHERE relnamespace = %s::regnamespace AND relkind = 'r' AND each <> 0"""


def files(admin: psycopg.Connection[Any], schema: str) -> list[str]:
    return [path for (path,) in admin.execute(_FILES, (schema,))]


def page_bytes(admin: psycopg.Connection[Any], schema: str) -> bytes:
    """Of every table, and of where its long values lie, as the server's files hold them."""
    admin.execute("CHECKPOINT")
    read = "SELECT pg_read_binary_file(%s)"
    return b"".join(admin.execute(read, (path,)).fetchone()[0] for path in files(admin, schema))  # type: ignore[index]


def fill(engine: PostgresEngine) -> list[str]:
    """Sixty words of many that stand in rows; all of them are emptied, their neighbours stay."""
    chance = random.Random(7)
    words = [f"secret-{number}-" + chance.randbytes(12).hex() for number in range(600)]
    rows = [row_with("entries", number, body=word, salt=b"s") for number, word in enumerate(words)]
    engine.write("t1", lambda tx: tx.do(Insert("entries", rows)))
    gone = tuple(range(0, 600, 10))
    engine.write("t1", lambda tx: tx.do(Patch("entries", (("seq", "in", gone),), {"body": None, "salt": None})))
    return [words[number] for number in gone]


def left(words: list[str], content: bytes) -> int:
    return sum(word.encode() in content for word in words)


def test_only_a_thorough_scrub_writes_tables_anew(
    engine: PostgresEngine, admin: psycopg.Connection[Any], postgres_schema: str
) -> None:
    gone = fill(engine)
    before = files(admin, postgres_schema)
    assert engine.scrub([word.encode() for word in gone]) == NOT_SCRUBBED
    assert files(admin, postgres_schema) == before
    assert left(gone, page_bytes(admin, postgres_schema)), "an emptied row stays in its page: else there were no need"

    report = engine.scrub([], thorough=True)
    assert (report.due, report.vacuumed, report.clean) == (False, True, True), report.note
    assert files(admin, postgres_schema) != before
    assert left(gone, page_bytes(admin, postgres_schema)) == 0
    kept = engine.read("t1", lambda reader: reader.do(Select("entries", columns=("body",))))
    assert sum(body is not None for (body,) in kept) == 540


def test_rows_that_an_older_transaction_may_read_are_told(
    engine: PostgresEngine, admin: psycopg.Connection[Any], postgres_schema: str
) -> None:
    with psycopg.connect(admin.info.dsn) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        gone = fill(engine)
        report = engine.scrub([], thorough=True)
        assert report.due
        assert "entries was rebuilt with 60 rows that an older transaction may still read" in report.note
        assert left(gone, page_bytes(admin, postgres_schema))
    assert not engine.scrub([], thorough=True).due
    assert left(gone, page_bytes(admin, postgres_schema)) == 0


@pytest.mark.parametrize("told", ["notice", "error"])
def test_who_may_not_rebuild_says_so_whatever_the_role_is_told(
    engine: PostgresEngine, admin: psycopg.Connection[Any], postgres_schema: str, told: str
) -> None:
    role = f"{postgres_schema}_stranger"
    fill(engine)
    before = files(admin, postgres_schema)
    admin.execute(f'CREATE ROLE "{role}" LOGIN')
    try:
        admin.execute(f'GRANT USAGE ON SCHEMA "{postgres_schema}" TO "{role}"')
        options = f"-c client_min_messages={told}"
        with psycopg.connect(admin.info.dsn, autocommit=True, options=options) as connection:
            connection.execute(f'SET ROLE "{role}"')
            report = scrub(connection, postgres_schema, "here")
        assert (report.due, report.vacuumed, report.clean) == (True, False, False)
        assert 'permission denied to vacuum "entries"' in report.note
        assert files(admin, postgres_schema) == before
    finally:
        admin.execute(f'DROP OWNED BY "{role}"')
        admin.execute(f'DROP ROLE "{role}"')


def test_receipts_wait_for_the_scrub(
    postgres_dsn: str, engine: PostgresEngine, admin: psycopg.Connection[Any], postgres_schema: str
) -> None:
    url = f"{postgres_dsn}{'&' if '?' in postgres_dsn else '?'}schema={postgres_schema}"
    with muniment.open(url) as opened:
        mem = Memory(new_context(engine=engine, policy=opened.policy, clock=opened._ctx.clock, ids=opened._ctx.ids))
        receipts = []
        for tenant in ("acme", "globex"):
            said = mem.run(tenant_id=tenant, user_id="ana", session_id="s1").observe("user", "the word is xyzzyplugh")
            receipts.append(mem.forget(event=said.id, tenant_id=tenant))
        assert {receipt.status for receipt in receipts} == {"pending"}
        assert [_status(mem, receipt) for receipt in receipts] == [SCRUB_DUE] * 2

        done = mem.store.scrub()
        assert (done.due, done.receipts) == (False, 2)
        assert [_status(mem, receipt) for receipt in receipts] == ["issued"] * 2
        assert b"xyzzyplugh" not in page_bytes(admin, postgres_schema)
        assert mem.store.scrub().receipts == 0
        assert mem.verify().ok


def _status(mem: Memory, receipt: Any) -> str:
    item = mem._ctx.engine.read(receipt.tenant_id, lambda reader: latest(reader, receipt.receipt_id))
    assert item is not None
    assert item.plain()["scrubbed"] == (item.status != SCRUB_DUE)
    return item.status
