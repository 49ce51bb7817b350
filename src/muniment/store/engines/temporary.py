"""Temporary databases, for what has to be sorted or looked up and may be larger than memory."""

from __future__ import annotations

import sqlite3

__all__ = ["temporary_database"]

_HELD_KIB = 4096
"""Memory of a temporary database before it spills to disk."""


def temporary_database(tables: str) -> sqlite3.Connection:
    """Make a database without a name: it takes little memory, spills to disk, and is gone when it is closed."""
    made = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    made.executescript(
        f"PRAGMA temp_store = FILE; PRAGMA journal_mode = OFF; PRAGMA cache_size = -{_HELD_KIB}; {tables} BEGIN;"
    )
    return made
