"""Opening a SQLite file: what it is, whether it is ours, and bringing its schema up to date.

Refuses before it writes: a file that is something else is never touched. Safe for many processes that open
the same new file at once. Holds no connection afterwards.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

from muniment.errors import InvalidInput, NotADatabase, NotFound, SchemaMismatch, StorageFailure
from muniment.store.engines.migrations import Applied, Migration, load, pending
from muniment.store.engines.sqlite.connections import FileTarget, begin_immediate, connect, connect_memory, patiently
from muniment.store.engines.sqlite.failures import code_of, damaged_text, translate
from muniment.store.engines.sqlite.handles import entered, read_start

__all__ = ["APPLICATION_ID", "check_file", "prepare", "prepare_memory"]

APPLICATION_ID = 0x6D756E69  # "muni"
PAGE_BYTES = 1024
"""Of a new file. Each commit writes whole pages of some twenty b-trees to the log, most of them for one small cell, so
that a run of five events writes four tenths of what it does with SQLite's own 4096. A file keeps what it was made with.
"""
_MAGIC = b"SQLite format 3\0"
_PACKAGE = "muniment.store.engines.sqlite"
_making = threading.Lock()
_empty: list[sqlite3.Connection] = []


def prepare(place: FileTarget) -> tuple[FileTarget, int]:
    """Check the file, make or migrate it where it may be written; answers how to open it, and its schema number."""
    with entered(place.path):
        try:
            return _prepare(place)
        except UnicodeDecodeError:  # Python cannot read what SQLite says of a damaged schema
            raise damaged_text(place.path) from None


def prepare_memory() -> tuple[sqlite3.Connection, int]:
    """An empty store in memory, copied from one that is made once in each process."""
    connection = connect_memory()
    known = load(_PACKAGE)
    with _making:
        if not _empty:
            made = connect_memory()
            made.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            made.execute("BEGIN")
            for migration in known:
                _apply(made, migration)
            made.execute("COMMIT")
            _empty.append(made)
        _empty[0].backup(connection)
    return connection, len(known)


def _prepare(place: FileTarget) -> tuple[FileTarget, int]:
    check_file(place)
    known = load(_PACKAGE)
    deadline = time.monotonic() + place.busy_timeout_s
    try:
        with closing(connect(place, timeout_s=min(1.0, place.busy_timeout_s))) as connection:
            number = _bring_up_to_date(connection, place, known, deadline)
        return (place._replace(mode="rw") if place.mode == "rwc" else place), number
    except sqlite3.Error as error:
        if code_of(error) & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise translate(error, place.path) from error
        if not os.path.exists(place.path):
            raise translate(error, place.path) from error
    return _prepare_immutable(place._replace(mode="immutable"), known, deadline)


def _prepare_immutable(place: FileTarget, known: tuple[Migration, ...], deadline: float) -> tuple[FileTarget, int]:
    """A folder that takes no new file: a write-ahead log cannot be opened there, but a closed store can be read."""
    log = place.path + "-wal"
    if os.path.exists(log) and os.path.getsize(log) > 0:
        raise StorageFailure(
            f"{place.path} has a write-ahead log that cannot be read from a folder without write access",
            hint="open it once where it can be written, or copy the file with its -wal elsewhere",
        )
    try:
        with closing(connect(place, timeout_s=min(1.0, place.busy_timeout_s))) as connection:
            return place, _bring_up_to_date(connection, place, known, deadline)
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
        start = read_start(path, len(_MAGIC))
    except OSError as error:
        raise StorageFailure(f"{path} cannot be read: {error.strerror}") from error
    # SQLite itself would take a short file of anything for an empty database and overwrite it.
    if start and start != _MAGIC:
        raise NotADatabase(f"{path} is no SQLite database", hint="name another file")


def _bring_up_to_date(
    connection: sqlite3.Connection, place: FileTarget, known: tuple[Migration, ...], deadline: float
) -> int:
    applied = _applied(connection, place, deadline)
    todo = pending(known, applied)
    if place.mode != "rwc":
        if todo:
            raise SchemaMismatch(
                f"{place.path} is older than this muniment", hint="open it once for writing, to migrate it"
            )
        return len(known)
    if todo:
        if not applied:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a file that is there it changes nothing
        mode = patiently(connection, "PRAGMA journal_mode = WAL", deadline, place.path).fetchone()[0]
        if mode != "wal":
            raise StorageFailure(
                f"{place.path} cannot have a write-ahead log (journal mode {mode})",
                hint="put the store on a local disk",
            )
        begin_immediate(connection, deadline, place.path)
        for migration in pending(known, _applied(connection, place, deadline)):  # another process may have been first
            _apply(connection, migration)
        connection.execute("COMMIT")
    return len(known)


def _applied(connection: sqlite3.Connection, place: FileTarget, deadline: float) -> list[Applied]:
    """The migrations the file has; refuses a file that belongs to something else."""
    asked = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    names = {name for (name,) in patiently(connection, asked, deadline, place.path)}
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if not names and application_id in (0, APPLICATION_ID):
        if place.mode != "rwc":
            raise NotADatabase(f"{place.path} is empty", hint="open it for writing to make a store of it")
        return []
    if application_id != APPLICATION_ID or "migrations" not in names:
        raise NotADatabase(
            f"{place.path} is a SQLite database of another program",
            hint="name another file: muniment keeps its store in a file of its own",
            details={"tables": sorted(names)[:10]},
        )
    return list(connection.execute("SELECT number, name, sha256 FROM migrations ORDER BY number"))


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    for statement in _statements(migration.sql):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO migrations (number, name, sha256, applied_at) VALUES (?, ?, ?, ?)",
        (migration.number, migration.name, migration.sha256, datetime.now(UTC).isoformat(timespec="seconds")),
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _statements(sql: str) -> Iterator[str]:
    """One by one, because `executescript` would end the transaction first."""
    lines: list[str] = []
    for line in sql.splitlines():
        lines.append(line)
        text = "\n".join(lines)
        if line.rstrip().endswith(";") and sqlite3.complete_statement(text):
            yield text
            lines.clear()
