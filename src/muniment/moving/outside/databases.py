"""SQLite files of other systems: mem0's history, Qdrant's and Chroma's local storage, LangGraph's store.

Opened to be read alone. A table that is a view, or that a module makes up, is refused: reading it would run what
somebody else wrote.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from muniment.core.canonical import parse_json
from muniment.errors import InvalidInput, MunimentError, UnsafeFile
from muniment.moving.formats import mem0
from muniment.moving.formats.values import Placed
from muniment.moving.outside.pickles import read_point

__all__ = ["is_database", "read_mem0_database", "read_store_database"]

_MAGIC = b"SQLite format 3\x00"
_VALUE_BYTES_MAX = 64 * 1024 * 1024
_STEPS_MAX = 2_000_000_000
"""So many instructions of SQLite's machine are a loop."""


def is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, so that nothing is written. What its log holds is read from a copy."""
    log = path.with_name(path.name + "-wal")
    with TemporaryDirectory(prefix="muniment-") as scratch:
        source, how = path, "mode=ro&immutable=1"
        if log.exists() and log.stat().st_size:
            source, how = Path(scratch) / "copy.db", "mode=rw"
            shutil.copyfile(path, source)
            shutil.copyfile(log, source.with_name("copy.db-wal"))
        connection = sqlite3.connect(f"{source.absolute().as_uri()}?{how}", uri=True)
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES_MAX)
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA cell_size_check=ON")
            steps = iter(range(_STEPS_MAX // 1_000_000))
            connection.set_progress_handler(lambda: next(steps, None) is None, 1_000_000)
            yield connection
        except sqlite3.Error as error:
            raise InvalidInput(f"{path.name}: not a database that can be read: {error}", path="$") from None
        finally:
            connection.close()


def _tables(connection: sqlite3.Connection, path: Path) -> dict[str, set[str]]:
    """The columns of each plain table. A name that is taken by something else is refused when it is asked for."""
    found: dict[str, set[str]] = {}
    for name, kind, sql in connection.execute("SELECT name, type, sql FROM sqlite_master"):
        if kind == "view" or str(sql).upper().lstrip().startswith("CREATE VIRTUAL"):
            if name in _WANTED:
                raise UnsafeFile(f"{path.name}: {name!r} is not a plain table", path="$")
        elif kind == "table" and name in _WANTED:
            found[name] = {row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')}
    return found


_WANTED = ("points", "history", "messages", "embedding_metadata", "embeddings", "store")


def _rows(
    connection: sqlite3.Connection, table: str, columns: tuple[str, ...], there: set[str]
) -> Iterator[dict[str, Any]]:
    named = [column for column in columns if column in there]
    listed = ", ".join(f'"{column}"' for column in named)
    for row in connection.execute(f'SELECT {listed} FROM "{table}" ORDER BY rowid'):
        yield dict(zip(named, row, strict=True))


# -- mem0 ---------------------------------------------------------------------------------------------

_HISTORY = ("id", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at", "is_deleted", "role")


def read_mem0_database(path: Path, shown: str) -> Iterator[Placed]:
    """Points of a vector store, or rows of a history, whichever the file holds."""
    with _opened(path) as connection:
        tables = _tables(connection, path)
        if "points" in tables:
            yield from _points(connection, shown)
        elif "embedding_metadata" in tables:
            yield from _chroma(connection, shown)
        elif "history" in tables:
            for number, row in enumerate(_rows(connection, "history", _HISTORY, tables["history"]), 1):
                yield Placed(f"{shown}:history[{number}]", mem0.HISTORY, row)
            if "messages" in tables:
                count = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
                if count:
                    yield Placed(f"{shown}:messages", mem0.MESSAGE, {"count": count})
        else:
            raise InvalidInput(
                f"{shown}: neither a store nor a history of mem0's", path="$", hint="give its Qdrant folder, history.db"
            )


def _points(connection: sqlite3.Connection, shown: str) -> Iterator[Placed]:
    for number, (point,) in enumerate(connection.execute("SELECT point FROM points ORDER BY rowid"), 1):
        here = f"{shown}:points[{number}]"
        if not isinstance(point, bytes):
            raise UnsafeFile("a point of the collection is no bytes", path=here)
        held = read_point(point, path=here)
        yield Placed(here, mem0.POINT, {**held["payload"], "id": held["id"]})


def _chroma(connection: sqlite3.Connection, shown: str) -> Iterator[Placed]:
    """Chroma keeps what a point says as rows of names and values."""
    names = dict(connection.execute("SELECT id, embedding_id FROM embeddings"))
    said: dict[str, Any] = {}
    current: Any = None
    query = "SELECT id, key, string_value, int_value, float_value FROM embedding_metadata ORDER BY id"
    for own, key, *values in connection.execute(query):
        if own != current and said:
            yield Placed(f"{shown}:embeddings[{current}]", mem0.POINT, said)
            said = {}
        current = own
        said["id"] = names.get(own)
        said[str(key)] = next((value for value in values if value is not None), None)
    if said:
        yield Placed(f"{shown}:embeddings[{current}]", mem0.POINT, said)


# -- LangGraph ----------------------------------------------------------------------------------------

_ITEM = ("prefix", "key", "value", "created_at", "updated_at")


def read_store_database(path: Path, shown: str) -> Iterator[Placed]:
    """The items of a LangGraph store."""
    with _opened(path) as connection:
        tables = _tables(connection, path)
        if not {"prefix", "key", "value"} <= tables.get("store", set()):
            raise InvalidInput(f"{shown}: no store of LangGraph's", path="$", hint="give the file of its SqliteStore")
        for number, row in enumerate(_rows(connection, "store", _ITEM, tables["store"]), 1):
            here = f"{shown}:store[{number}]"
            try:
                value = parse_json(row["value"])
            except MunimentError as error:
                error.path = here
                raise
            yield Placed(here, None, {**row, "namespace": row["prefix"], "value": value})
