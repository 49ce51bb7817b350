"""Behind PgBouncer in transaction mode: a session holds nothing of ours, and what it held before binds nobody."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import muniment
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import pooled


@pytest.fixture
def target(pooled_dsn: str, postgres_schema: str) -> str:
    return f"{pooled_dsn}?schema={postgres_schema}"


@pytest.fixture
def mem(target: str) -> Iterator[muniment.Memory]:
    with muniment.open(target) as opened:
        yield opened


def test_a_pooler_is_noticed_and_a_server_is_not_taken_for_one(
    postgres_dsn: str, pooled_dsn: str, postgres_schema: str
) -> None:
    for dsn, is_pooled in ((postgres_dsn, False), (pooled_dsn, True)):
        engine = PostgresEngine(dsn, schema=postgres_schema)
        assert engine._ready.is_pooled is is_pooled
        engine.close()


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_nothing_is_left_in_a_session(pooled_dsn: str, postgres_schema: str, durability: str) -> None:
    """Role, tenant and limits end with their transaction: the next client of the session has its own."""
    with muniment.open(f"{pooled_dsn}?schema={postgres_schema}", durability=durability) as mem:  # type: ignore[arg-type]
        run = mem.run(user_id="ana", tenant_id="acme")
        run.observe("user", "I moved to Berlin in May.")
        run.search("Berlin")
    asked = (
        "SELECT current_user = session_user, current_setting('muniment.tenant', true), current_setting('lock_timeout')"
    )
    with psycopg.connect(pooled_dsn, autocommit=True) as connection:
        for _ in range(4):  # either of the two
            assert connection.execute(asked).fetchone() in ((True, "", "0"), (True, None, "0"))
            kept = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
            assert kept == (0,)


def test_row_security_binds_every_transaction(pooled_dsn: str, postgres_schema: str) -> None:
    engine = PostgresEngine(pooled_dsn, schema=postgres_schema)
    asked = "SELECT current_user, (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user)"
    for _ in range(4):
        with engine.snapshot("acme") as reader:
            ((role, unbound),) = reader._run("", asked, ())  # type: ignore[attr-defined]
            assert (role, unbound) == ("muniment_app", False)
    engine.close()


def test_clients_side_by_side_get_their_own_answers(target: str) -> None:
    """Statements that a session would have kept ready for one client are not run for another."""

    def work(user: str) -> list[str]:
        with muniment.open(target) as mem:
            run = mem.run(user_id=user, tenant_id=f"t-{user}", session_id="s")
            for number in range(12):
                run.observe("user", f"{user} said {number}")
            found = [mem.ledger.entries(user_id=user, tenant_id=f"t-{user}") for _ in range(3)]
            return [entry.content or "" for entry in found[-1] if entry.kind == "message"]

    users = ["ana", "ben", "cleo", "dan"]
    with ThreadPoolExecutor(4) as pool:
        for user, said in zip(users, pool.map(work, users), strict=True):
            assert said == [f"{user} said {number}" for number in range(12)]


def test_sessions_that_were_ended_while_idle_are_not_noticed(
    mem: muniment.Memory, postgres_dsn: str, pooled_dsn: str
) -> None:
    """As endpoints do that let idle connections go: the pooler's to the server, here."""
    run = mem.run(user_id="ana")
    run.observe("user", "I moved to Berlin in May.")
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE application_name = 'muniment' AND pid <> pg_backend_pid()"""
        )
    assert run.observe("user", "I like it here.").id
    assert len(run.search("Berlin")) >= 1


def test_a_pooler_that_went_away_and_came_back(postgres_dsn: str, postgres_schema: str) -> None:
    from muniment.errors import StorageLost

    with pooled(postgres_dsn) as dsn:
        engine = PostgresEngine(dsn, schema=postgres_schema, busy_timeout_s=2, connect_timeout_s=1)
        engine.read("acme", lambda reader: None)
    with pytest.raises(StorageLost):
        engine.read("acme", lambda reader: None)
    engine.close()


def test_a_store_behind_a_pooler_forgets_verifies_and_replays(mem: muniment.Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", "I moved to Berlin in May. I am allergic to nuts.")
    run.extract()
    build = run.compose("responder", query="What is Ana allergic to?")
    assert mem.replay(build.id).packet_bytes == build.packet_bytes
    assert mem.verify().ok
    receipt = mem.forget(event=said.id)
    assert receipt.counts["entries"] >= 1
    assert "Berlin" not in str([entry.content for entry in mem.ledger.entries(user_id="ana")])
    assert mem.verify().ok
