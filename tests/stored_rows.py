"""Opens the SQLite file of a store so that tests can edit its rows as an attacker would, by readable statements.

    with stored_rows(path) as file:
        file.execute("UPDATE entries SET user_id = name('bob') WHERE user_id = name('ana') AND kind = word('message')")

`id`, `instant` and `word` give the stored form of a text (`muniment.store.engines.codec`); `name` gives the number of a
user, session, agent or run that the file already knows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from muniment.store.engines.codec import encode_id, encode_instant, encode_word

__all__ = ["stored_rows"]


@contextmanager
def stored_rows(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a store with one tenant; what was changed is committed at the end."""
    with closing(sqlite3.connect(path)) as file, file:
        numbers = dict(file.execute("SELECT name, number FROM names WHERE shard > 0"))
        file.create_function("id", 1, encode_id, deterministic=True)
        file.create_function("instant", 1, encode_instant, deterministic=True)
        file.create_function("word", 1, encode_word, deterministic=True)
        file.create_function("name", 1, numbers.__getitem__, deterministic=True)
        yield file
