"""A SQLite store as a file: copied while it is in use, and put back in its place.

A copy is what the store was at one moment, of whatever schema: it is neither migrated nor read. It appears under its
name only when it is complete. Knows nothing of what rows mean.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from muniment.errors import InvalidInput, NotADatabase, StorageBusy
from muniment.store.engines.ddl import LAYOUT_TABLE
from muniment.store.engines.sqlite.connections import FileTarget, connect
from muniment.store.engines.sqlite.failures import is_busy, translate
from muniment.store.engines.sqlite.handles import entered
from muniment.store.engines.sqlite.log_damage import is_log_damaged, refuse_damaged_log
from muniment.store.engines.sqlite.opening import APPLICATION_ID, check_file

__all__ = ["copy_file", "replace_file", "schema_number"]

_WAIT_S = 30.0
_BESIDE = ("-wal", "-shm")
_NUMBER = f"SELECT max(number) FROM {LAYOUT_TABLE}"


def schema_number(path: str) -> int:
    """The number of the store's layout; refuses what is no store of muniment's."""
    place = FileTarget(path, "ro", "normal", _WAIT_S)
    with entered(path):
        check_file(place)
        if is_log_damaged(place):
            refuse_damaged_log(path)
        with closing(_connected(place)) as connection:
            return _number(connection, path)


def _connected(place: FileTarget) -> sqlite3.Connection:
    try:
        return connect(place, timeout_s=place.busy_timeout_s)
    except sqlite3.Error as error:
        raise translate(error, place.path) from error


def _number(connection: sqlite3.Connection, path: str) -> int:
    try:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID:
            raise NotADatabase(f"{path} is no store of muniment's", hint="name another file")
        (number,) = connection.execute(_NUMBER).fetchone()
        return int(number)
    except sqlite3.Error as error:
        raise translate(error, path) from error


def copy_file(source: str, target: str) -> int:
    """Copy a store, while others read and write it, into a new file; answers the schema number of the copy."""
    if os.path.exists(target):
        raise InvalidInput(f"there is a file {target} already", path="$.file", hint="name a new file for the copy")
    schema_number(source)
    part = f"{target}.part"
    try:
        number = _copied(source, part)
        for ending in _BESIDE:
            _remove(part + ending)
        _sync(part)
        os.rename(part, target)
        return number
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {error.strerror or error}", path="$.file") from None
    finally:
        _remove(part)


def _copied(source: str, part: str) -> int:
    """All pages at one moment: page by page, a store that others write to would be begun with again and again."""
    _remove(part)
    try:
        with (
            entered(source),
            entered(part, create=True),
            closing(_connected(FileTarget(source, "ro", "normal", _WAIT_S))) as live,
            closing(sqlite3.connect(part, isolation_level=None)) as copy,
        ):
            live.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, whole; a store that is opened has its log again
            return _number(copy, part)
    except sqlite3.Error as error:
        raise translate(error, source) from error


def replace_file(copy: str, target: str) -> str | None:
    """Put a copy in the place of a store that nobody has open; answers where the store that stood there is kept."""
    schema_number(copy)
    kept = None
    if os.path.exists(target):
        _close_log(target)
        kept = _free_name(f"{target}.replaced")
        os.rename(target, kept)
    for ending in _BESIDE:
        _remove(target + ending)
    copy_file(copy, target)
    return kept


def _close_log(path: str) -> None:
    """Bring what the log holds into the file. SQLite does so only where no other connection is open."""
    try:
        with entered(path), closing(connect(FileTarget(path, "rw", "full", 1.0), timeout_s=1.0)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.Error as error:
        if not is_busy(error):
            raise translate(error, path) from error
        mode = "wal"
    if mode != "delete":
        raise StorageBusy(f"{path} is in use", hint="stop the server, and whatever else has it open")


def _free_name(name: str) -> str:
    number = 1
    while os.path.exists(f"{name}-{number}"):
        number += 1
    return f"{name}-{number}"


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)
