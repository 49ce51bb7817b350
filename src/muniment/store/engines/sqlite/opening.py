"""Opening a SQLite file: what it is, whether it is ours, and making the tables of a new one.

Refuses before it writes: a file that is something else is never touched. Safe for many processes that open
the same new file at once. Holds no connection afterwards.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing

from muniment.errors import InvalidInput, NotADatabase, NotFound, StorageFailure
from muniment.store.engines.ddl import LAYOUT, LAYOUT_TABLE, check_layout, fingerprint, old_store, sqlite_tables
from muniment.store.engines.sqlite.connections import FileTarget, begin_immediate, connect, connect_memory, patiently
from muniment.store.engines.sqlite.failures import code_of, damaged_text, translate
from muniment.store.engines.sqlite.handles import entered, read_at
from muniment.store.engines.sqlite.log_damage import is_log_damaged

__all__ = ["APPLICATION_ID", "check_file", "prepare", "prepare_memory"]

APPLICATION_ID = 0x6D756E69  # "muni"
PAGE_BYTES = 2048
"""Of a new file. Each commit writes whole pages of several b-trees to the log, most of them for one small cell, so that
SQLite's own 4096 cost more; in pages of 1024, an entry of 280 bytes leaves a seventh empty. A file keeps what it has.
"""
_MAGIC = b"SQLite format 3\0"
_making = threading.Lock()
_empty: list[sqlite3.Connection] = []


def prepare(place: FileTarget) -> tuple[FileTarget, int]:
    """Check the file and make its tables if it is new; returns how to open it, and the number of its layout."""
    with entered(place.path, create=place.mode == "rwc"):
        try:
            return _prepare(place)
        except UnicodeDecodeError:  # Python cannot read what SQLite says of a damaged schema
            raise damaged_text(place.path) from None


def prepare_memory() -> tuple[sqlite3.Connection, int]:
    """An empty store in memory, copied from one that is made once in each process."""
    connection = connect_memory()
    with _making:
        if not _empty:
            made = connect_memory()
            made.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            made.execute("BEGIN")
            _make_tables(made)
            made.execute("COMMIT")
            _empty.append(made)
        _empty[0].backup(connection)
    return connection, LAYOUT


def _prepare(place: FileTarget) -> tuple[FileTarget, int]:
    check_file(place)
    if is_log_damaged(place):  # writing, and even closing a connection that may write, would overwrite the log
        place = place._replace(mode="ro", is_log_damaged=True)
    deadline = time.monotonic() + place.busy_timeout_s
    try:
        with closing(connect(place, timeout_s=min(1.0, place.busy_timeout_s))) as connection:
            number = _check_or_make(connection, place, deadline)
        return (place._replace(mode="rw") if place.mode == "rwc" else place), number
    except sqlite3.Error as error:
        if code_of(error) & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise translate(error, place.path) from error
        if not os.path.exists(place.path):
            raise translate(error, place.path) from error
    return _prepare_immutable(place._replace(mode="immutable"), deadline)


def _prepare_immutable(place: FileTarget, deadline: float) -> tuple[FileTarget, int]:
    """A folder that takes no new file: a write-ahead log cannot be opened there, but a closed store can be read."""
    log = place.path + "-wal"
    if os.path.exists(log) and os.path.getsize(log) > 0:
        raise StorageFailure(
            f"{place.path} has a write-ahead log that cannot be read from a folder without write access",
            hint="open it once where it can be written, or copy the file with its -wal elsewhere",
        )
    try:
        with closing(connect(place, timeout_s=min(1.0, place.busy_timeout_s))) as connection:
            return place, _check_or_make(connection, place, deadline)
    except sqlite3.Error as error:
        raise translate(error, place.path) from error


def check_file(place: FileTarget) -> None:
    path = place.path
    if os.path.isdir(path):
        raise NotADatabase(f"{path} is a folder", hint="name a file in it")
    if not os.path.exists(path):
        if place.mode != "rwc":
            raise NotFound(f"there is no store at {path}", hint="check the path; reading makes no new store")
        parent = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(parent):
            raise InvalidInput(f"there is no folder {parent}", hint="make the folder first", details={"path": path})
        return
    if not os.path.isfile(path):
        raise NotADatabase(f"{path} is no ordinary file")
    try:
        start = read_at(path, len(_MAGIC))
    except OSError as error:
        raise StorageFailure(f"{path} cannot be read: {error.strerror}") from error
    # SQLite itself would take a short file of anything for an empty database and overwrite it.
    if start and start != _MAGIC:
        raise NotADatabase(f"{path} is no SQLite database", hint="name another file")


def _check_or_make(connection: sqlite3.Connection, place: FileTarget, deadline: float) -> int:
    if _is_made(connection, place, deadline):
        return LAYOUT
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    mode = patiently(connection, "PRAGMA journal_mode = WAL", deadline, place.path).fetchone()[0]
    if mode != "wal":
        raise StorageFailure(
            f"{place.path} cannot have a write-ahead log (journal mode {mode})",
            hint="put the store on a local disk",
        )
    begin_immediate(connection, deadline, place.path)
    if not _is_made(connection, place, deadline):  # another process may have been first
        _make_tables(connection)
    connection.execute("COMMIT")
    return LAYOUT


def _is_made(connection: sqlite3.Connection, place: FileTarget, deadline: float) -> bool:
    """Whether the file has our tables already; refuses one of another program, layout or version."""
    asked = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    names = {name for (name,) in patiently(connection, asked, deadline, place.path)}
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if not names and application_id in (0, APPLICATION_ID):
        if place.mode != "rwc":
            raise NotADatabase(f"{place.path} is empty", hint="open it for writing to make a store of it")
        return False
    if application_id == APPLICATION_ID and LAYOUT_TABLE in names:
        check_layout(connection.execute(f"SELECT number, fingerprint FROM {LAYOUT_TABLE}").fetchall(), place.path)
        return True
    if application_id == APPLICATION_ID and "migrations" in names:
        raise old_store(place.path)
    raise NotADatabase(
        f"{place.path} is a SQLite database of another program",
        hint="name another file: muniment keeps its store in a file of its own",
        details={"tables": sorted(names)[:10]},
    )


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in sqlite_tables():
        connection.execute(statement)
    connection.execute(f"INSERT INTO {LAYOUT_TABLE} (number, fingerprint) VALUES (?, ?)", (LAYOUT, fingerprint()))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
