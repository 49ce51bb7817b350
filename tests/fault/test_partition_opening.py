"""Stores that are opened and loaded while `muniment store partition` works, and just as it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import muniment
from muniment.store.engines.postgres import layouts
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.postgres.layouts import Layout, check_layout, is_under_way, read_shapes
from muniment.store.engines.postgres.opening import connect
from muniment.store.engines.postgres.partitioning import convert
from muniment.store.engines.postgres.views import COPY_ROWS_MIN
from partition_room import converted, fill, layout, target, url_of

pytestmark = pytest.mark.req("TM-18")
REPLACED_MIN = 40
THREE, TWO = Layout(3), Layout(2)


@pytest.fixture
def engine(postgres_dsn: str, postgres_schema: str) -> Iterator[PostgresEngine]:
    made = PostgresEngine(postgres_dsn, schema=postgres_schema)
    fill(made)
    yield made
    made.close()


@pytest.mark.soak
def test_a_conversion_that_ends_between_two_looks_at_the_catalog(
    engine: PostgresEngine, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the tables are seen done, and then nothing is under way any more: that is no half partitioned store."""
    steps = convert(target(postgres_dsn, engine.schema), THREE)
    for step in steps:
        if step.done == "replaced":
            break

    def when_it_has_ended(connection: Any, schema: str) -> bool:
        for _ in steps:
            pass
        return is_under_way(connection, schema)

    monkeypatch.setattr(layouts, "is_under_way", when_it_has_ended)
    with connect(target(postgres_dsn, engine.schema)) as connection:
        check_layout(connection, engine.schema, "here", None)
        check_layout(connection, engine.schema, "here", 3)
    assert layout(postgres_dsn, engine.schema) == THREE


def test_partitions_that_are_dropped_while_the_catalog_is_read(engine: PostgresEngine, postgres_dsn: str) -> None:
    """The catalog is told as it was when the question began, and what a partition holds as it is now: nothing."""
    converted(postgres_dsn, engine.schema, THREE)
    with psycopg.connect(postgres_dsn) as looking:
        looking.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        looking.execute("SELECT count(*) FROM pg_class")
        with psycopg.connect(postgres_dsn, autocommit=True) as other:
            other.execute(f'DROP TABLE "{engine.schema}".links')
        assert read_shapes(looking, engine.schema)["links"] == ("odd", "links")


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.req("BL-02")
def test_a_bulk_load_while_tables_are_replaced(postgres_dsn: str, postgres_schema: str) -> None:
    """By COPY, which goes by a table made like the one that is replaced; stores are opened all the while."""
    url = url_of(postgres_dsn, postgres_schema)
    count = 2 * COPY_ROWS_MIN + 200
    events = [
        {
            "user_id": f"u{number % 7}",
            "session_id": f"s{number % 7}",
            "role": "user",
            "content": f"Turn {number}: the ferry leaves at {number % 24}.",
            "ts": f"2026-03-{1 + number * 27 // count:02d}T10:00:00Z",
        }
        for number in range(count)
    ]
    over = threading.Event()
    failures: list[BaseException] = []
    replaced: list[str] = []
    loads: list[str] = []

    def convert_again_and_again() -> None:
        try:
            for wanted in (THREE, TWO) * 20:
                for step in convert(target(postgres_dsn, postgres_schema), wanted, batch_rows=500):
                    if step.done == "replaced":
                        replaced.append(step.table)
                    if over.is_set():  # whoever stops in between has lost nothing
                        return
        except BaseException as error:
            failures.append(error)
            raise

    def open_again_and_again() -> None:
        try:
            while not over.is_set():
                with muniment.open(url) as mem:
                    mem.store.tenants()
                over.wait(0.2)
        except BaseException as error:
            failures.append(error)
            raise

    muniment.open(url).close()
    threads = [threading.Thread(target=each) for each in (convert_again_and_again, open_again_and_again)]
    for thread in threads:
        thread.start()
    try:
        with muniment.open(url) as mem:
            while len(replaced) < REPLACED_MIN:
                loads.append(f"t{len(loads)}")
                assert mem.store.load(events, tenant_id=loads[-1]).written == count
    finally:
        over.set()
        for thread in threads:
            thread.join(120)
    assert not failures
    with muniment.open(url) as mem:
        assert mem.verify().ok
        for tenant in loads:
            entries = (mem.ledger.entries(user_id=f"u{user}", kind="message", tenant_id=tenant) for user in range(7))
            said = sorted(str(entry.content) for of_user in entries for entry in of_user)
            assert said == sorted(str(each["content"]) for each in events)
