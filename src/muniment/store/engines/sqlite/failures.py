"""What went wrong in SQLite, said in the words of `errors`: the one place that knows SQLite's codes."""

from __future__ import annotations

import sqlite3

from muniment.errors import (
    Closed,
    MunimentError,
    NotADatabase,
    StorageBusy,
    StorageFailure,
    StorageFull,
    StorageReadOnly,
    StoreDamaged,
    TooLarge,
)

__all__ = ["code_of", "damaged_text", "is_broken_text", "is_busy", "is_taken_key", "translate"]

_TAKEN = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_ROWID}
)

_LACKING = ("no such column", "no such table", "has no column named")


def code_of(error: sqlite3.Error) -> int:
    """The extended result code; 0 where Python raised without asking SQLite."""
    return getattr(error, "sqlite_errorcode", 0) or 0


def is_busy(error: sqlite3.Error) -> bool:
    return code_of(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_taken_key(error: sqlite3.Error) -> bool:
    return code_of(error) in _TAKEN


def is_broken_text(error: sqlite3.Error) -> bool:
    return "Could not decode to UTF-8" in str(error)


def _lacks_name(error: sqlite3.Error) -> bool:
    """Is a table or a column not there that every store has? Then what the file says of its tables is damaged."""
    return code_of(error) == sqlite3.SQLITE_ERROR and any(words in str(error) for words in _LACKING)


def damaged_text(location: str) -> StoreDamaged:
    """The error for a text that is no UTF-8."""
    return StoreDamaged(f"a text in {location} is damaged", details={"location": location})


def translate(error: sqlite3.Error, location: str, *, is_open: bool = False) -> MunimentError:
    """`is_open` of a store that was opened: where its file is malformed, it is a damaged store and nothing else."""
    code = code_of(error)
    details = {"location": location, "sqlite": f"{getattr(error, 'sqlite_errorname', '')} {error}".strip()}
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:  # the write-ahead index could not grow
        return StorageFull(f"no space left for {location}", details=details)
    if _lacks_name(error):
        code = sqlite3.SQLITE_CORRUPT
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageBusy(f"another writer holds {location}", hint="try again", details=details)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StorageReadOnly(
                f"{location} cannot be written",
                hint="check the permissions of the file and its folder, and whether the disk is mounted read-only",
                details=details,
            )
        case sqlite3.SQLITE_FULL:
            return StorageFull(f"no space left for {location}", hint="free space, then try again", details=details)
        case sqlite3.SQLITE_CORRUPT if is_open:
            return StoreDamaged(f"the file {location} is damaged", details=details)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return NotADatabase(
                f"{location} is no SQLite database, or a damaged one", hint="restore a backup", details=details
            )
        case sqlite3.SQLITE_TOOBIG:
            return TooLarge("a value is larger than SQLite can hold", details=details)
        case _:
            if "closed database" in str(error):
                return Closed("the store has been closed")
            if is_broken_text(error):
                return damaged_text(location)
            return StorageFailure(f"SQLite failed on {location}: {error}", details=details)
