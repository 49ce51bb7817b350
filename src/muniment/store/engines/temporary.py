"""Temporary databases, for data to sort or look up that may be larger than memory."""

from __future__ import annotations

import sqlite3

__all__ = ["temporary_database"]

_HELD_KIB = 4096
"""Memory of a temporary database before it spills to disk."""


def temporary_database(tables: str) -> sqlite3.Connection:
    """Make an unnamed database that takes little memory, spills to disk, and is gone when it is closed."""
    made = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    made.executescript(
        f"PRAGMA temp_store = FILE; PRAGMA journal_mode = OFF; PRAGMA cache_size = -{_HELD_KIB}; {tables} BEGIN;"
    )
    return made
