"""How many bytes of a store an event takes, its indexes and the search index included. Counted, so always the same."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg

import muniment
from muniment.testing.postgres import fresh_schema

COUNT, BATCH = 6000, 1000
PLACES = ("Berlin", "Lisbon", "Osaka", "Leeds", "Austin", "Turin", "Ghent")
TEXTS = (
    "I moved to {} in May and found a flat near the canal, two rooms, not cheap but quiet.",
    "Could you remind me what we decided in {} about the invoice from the printer last week?",
    "She is vegetarian, her brother is not; book a table in {} for six at seven, outside if dry.",
)
"""About 90 bytes each."""
ALL_TABLES = """
SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'
"""


def _write(target: str | Path, count: int) -> None:
    with muniment.open(target) as mem:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1")
        texts = (f"{n}: " + TEXTS[n % 3].format(PLACES[n % 7]) for n in range(count))
        events = [{"role": "user" if n % 2 else "assistant", "content": text} for n, text in enumerate(texts)]
        for start in range(0, count, BATCH):
            run.observe_many(events[start : start + BATCH])


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    _write(path, 1)
    before = os.path.getsize(path)
    _write(path, COUNT)
    assert (os.path.getsize(path) - before) / COUNT <= 450


def test_postgres(postgres_dsn: str) -> None:
    with fresh_schema(postgres_dsn) as schema, psycopg.connect(postgres_dsn, autocommit=True) as connection:

        def size() -> int:
            ((found,),) = connection.execute(ALL_TABLES, (schema,)).fetchall()
            return int(found)

        target = f"{postgres_dsn}&schema={schema}"
        _write(target, 1)
        before = size()
        _write(target, COUNT)
        assert (size() - before) / COUNT <= 900
