"""Edits of a store's SQLite file as somebody with a database browser could make them.

`stored_file` opens the file with SQL functions that give values as the engine stores them: `id`, `instant`, `word` and
`name`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from muniment.store.engines.codec import encode_id, encode_instant, encode_word
from muniment.store.engines.ddl import NAMES_TABLE, TENANTS_SHARD

__all__ = ["edit_rows", "stored_file"]


@contextmanager
def stored_file(path: Path | str) -> Iterator[sqlite3.Connection]:
    """A connection to the file of a store; what was done is committed if the block ends without an error."""
    with closing(sqlite3.connect(path)) as file, file:

        def number_of(name: str) -> int:
            """The number of a name in the only tenant of the store, which gets one if it has none."""
            (shard,) = file.execute(
                f"SELECT max(shard) FROM {NAMES_TABLE} WHERE shard <> ?", (TENANTS_SHARD,)
            ).fetchone()
            asked = f"SELECT number FROM {NAMES_TABLE} WHERE shard = ? AND name = ?"
            found = file.execute(asked, (shard, name)).fetchone()
            if found is None:
                new = (
                    f"INSERT INTO {NAMES_TABLE} (shard, number, name) SELECT ?1, max(number) + 1, ?2 FROM {NAMES_TABLE}"
                )
                file.execute(new, (shard, name))
                found = file.execute(asked, (shard, name)).fetchone()
            return int(found[0])

        for called, function in (
            ("id", encode_id),
            ("instant", encode_instant),
            ("word", encode_word),
            ("name", number_of),
        ):
            file.create_function(called, 1, function)
        yield file


def edit_rows(path: Path | str, statement: str, *values: Any) -> None:
    """Run a statement that has to change rows."""
    with stored_file(path) as file:
        assert file.execute(statement, values).rowcount > 0, statement
