"""What can be shown of Citus without it: the script covers every table, and settings go in messages of their own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from muniment.core.ports.engine import Count, Insert
from muniment.core.ports.schema import TABLES
from muniment.errors import InvalidInput
from muniment.store.engines.opening import citus_script
from muniment.store.engines.postgres.engine import PostgresEngine

URL = "postgresql://owner@coordinator/agents"


def test_the_script_distributes_every_table_by_its_tenant() -> None:
    script = citus_script(f"{URL}?schema=agents", 48)
    calls = re.findall(
        r"^SELECT create_distributed_table\('agents\.(\w+)', 'tenant_id', (.*)\);$", script, re.MULTILINE
    )
    assert sorted(name for name, _ in calls) == sorted(spec.name for spec in TABLES)
    assert calls[0] == ("entries", "shard_count => 48")
    assert {rest for _, rest in calls[1:]} == {"colocate_with => 'agents.entries'"}
    assert "Not run by the tests" in script
    statements = [line for line in script.splitlines() if line and not line.startswith("--")]
    assert len(statements) == len(TABLES) + 2  # and nothing else, between BEGIN and COMMIT


def test_the_script_is_sql_that_the_server_can_read(postgres_dsn: str, postgres_schema: str) -> None:
    """With a function of that name in the place of Citus' own: each table is there, with that column."""
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema)
    engine.close()
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(
            f"""CREATE FUNCTION "{postgres_schema}".create_distributed_table(
                  given regclass, leader text, colocate_with text DEFAULT '', shard_count int DEFAULT 0
                ) RETURNS int LANGUAGE sql AS
                'SELECT attnum::int FROM pg_attribute WHERE attrelid = given AND attname = leader'"""
        )
        connection.execute(f'SET search_path = "{postgres_schema}"')
        script = citus_script(f"{URL}?schema={postgres_schema}", 8)
        for line in script.splitlines():
            if line.startswith("SELECT"):
                assert connection.execute(line.encode()).fetchone() == (1,), line  # the first column of each


@pytest.mark.parametrize("shards", [0, -1, 1025, True])
def test_shards_without_sense(shards: int) -> None:
    with pytest.raises(InvalidInput):
        citus_script(URL, shards)


def test_no_unique_key_spans_tenants(postgres_dsn: str, postgres_schema: str) -> None:
    """Citus wants the distribution column in every one of them, and foreign keys only between colocated tables."""
    PostgresEngine(postgres_dsn, schema=postgres_schema).close()
    with psycopg.connect(postgres_dsn) as connection:
        rows = connection.execute(
            """SELECT relname::text, pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
               WHERE relnamespace = to_regnamespace(%s) AND indisunique AND relname <> 'migrations'""",
            (postgres_schema,),
        ).fetchall()
        assert len(rows) >= len(TABLES)
        assert all(" (tenant_id" in definition for _, definition in rows)
        others = connection.execute(
            """SELECT count(*) FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
               WHERE relnamespace = to_regnamespace(%s) AND contype NOT IN ('p', 'u', 'n')""",
            (postgres_schema,),
        ).fetchone()
        triggers = connection.execute(
            """SELECT count(*) FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
               WHERE relnamespace = to_regnamespace(%s)""",
            (postgres_schema,),
        ).fetchone()
        assert (others, triggers) == ((0,), (0,))


def test_each_setting_is_a_message_of_its_own(
    postgres_dsn: str, kept_postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Citus hands on the whole message that a SET came with: BEGIN must not be in it."""
    engine = PostgresEngine(postgres_dsn, schema=kept_postgres_schema)
    engine._ready = replace(engine._ready, is_spread=True)
    messages: list[str] = []
    commits: list[str] = []
    inner = psycopg.ClientCursor.execute
    plain = psycopg.Cursor.execute

    def listen_to_commits(self: Any, query: Any, params: Any = None, **more: Any) -> Any:
        if b"COMMIT" in (text := query if isinstance(query, bytes) else str(query).encode()):
            commits.append(text.decode())
        return plain(self, query, params, **more)

    def listen(self: Any, query: Any, params: Any = None, **more: Any) -> Any:
        messages.append(str(query))
        return inner(self, query, params, **more)

    monkeypatch.setattr(psycopg.Cursor, "execute", listen_to_commits)
    monkeypatch.setattr(psycopg.ClientCursor, "execute", listen)
    engine.write("acme's", lambda transaction: transaction.do(Insert("links", [("a", "b")])))
    told = list(messages)
    assert commits == ["COMMIT"]
    assert engine.read("acme's", lambda reader: reader.do(Count("links"))) == 1
    assert engine.read("other", lambda reader: reader.do(Count("links"))) == 0
    assert told[0].startswith("BEGIN")
    assert told[1] == "SET LOCAL citus.propagate_set_commands = 'local'"
    assert told[2] == "SET LOCAL muniment.tenant = %s"
    assert all(each.startswith("SET LOCAL ") for each in told[1:])
    assert not any(";" in each for each in told)
    assert 'SET LOCAL ROLE "muniment_app"' in told
    assert len({engine.mark() for _ in range(3)}) == 3  # nothing that was loaded is taken for current
    engine.close()
