"""What went wrong in PostgreSQL, said in the words of `errors`: the one place that knows SQLSTATE codes."""

from __future__ import annotations

import psycopg

from muniment.errors import (
    MunimentError,
    SchemaMismatch,
    StorageBusy,
    StorageFailure,
    StorageFull,
    StorageLost,
    StorageReadOnly,
    TooLarge,
)
from muniment.store.engines.postgres.patience import NoAnswer

__all__ = ["LostRace", "NoConnection", "translate"]


class LostRace(StorageBusy):
    """A deadlock or serialization failure: rolled back by the server, worth another try."""


class NoConnection(StorageBusy):
    """No connection was free, and none was made, while there was time: nothing was asked of the server."""


_BY_CODE: dict[str, tuple[type[MunimentError], str, str | None]] = {
    "40001": (LostRace, "another transaction came in between", "try again"),
    "40P01": (LostRace, "two transactions waited for each other", "take locks in one order everywhere"),
    "55P03": (StorageBusy, "another transaction held a lock past the deadline", "try again"),
    "57014": (
        StorageBusy,
        "the server cancelled a statement that took too long",
        "try again; does its statement_timeout leave time enough?",
    ),
    "25P03": (
        StorageLost,
        "the server ended a transaction that stood still",
        "try again; its idle_in_transaction_session_timeout is shorter than what is done between two statements",
    ),
    "25P04": (StorageLost, "the server ended a transaction that took too long", "its transaction_timeout is too short"),
    "53300": (StorageBusy, "the server takes no more connections", "lower the pool size or raise max_connections"),
    "53200": (StorageBusy, "the server has no room for so many locks", "raise max_locks_per_transaction"),
    "25006": (StorageReadOnly, "the server refuses writes", "is it a standby, or set read-only?"),
    "53100": (StorageFull, "the server's disk is full", "free space, then try again"),
    "54000": (TooLarge, "a value is larger than PostgreSQL can hold", None),
    "22P05": (StorageFailure, "the server cannot store a character", "the database must be UTF8"),
    "42501": (StorageFailure, "the server's role lacks a privilege", "grant it the role of the store's tables"),
    "42P01": (SchemaMismatch, "a table of the store is missing", "was its schema dropped?"),
    "3F000": (SchemaMismatch, "the schema of the store is missing", "was it dropped?"),
    "28P01": (StorageFailure, "the server refused the password", "check the URL"),
    "28000": (StorageFailure, "the server refused the role", "check the URL and pg_hba.conf"),
    "3D000": (StorageFailure, "there is no such database", "create it first"),
}
_BY_WORDS = {
    "too many clients": "53300",
    "remaining connection slots are reserved": "53300",
    "too many connections for": "53300",
    "no more connections allowed": "53300",  # PgBouncer's
    "password authentication failed": "28P01",
}
"""A refused connection has a code too, but libpq tells its words alone; in another language it is `StorageLost`."""


def translate(error: psycopg.Error, location: str) -> MunimentError:
    if isinstance(error, NoAnswer):
        return StorageLost(
            f"{location} said nothing: {error}",
            hint="does the server stand still, or has the pooler before it no connection left?",
            details={"location": location},
        )
    code = error.sqlstate or next((code for words, code in _BY_WORDS.items() if words in str(error)), "")
    details = {"location": location, "sqlstate": code, "postgres": str(error).strip()}
    if code in _BY_CODE:
        kind, message, hint = _BY_CODE[code]
        return kind(f"{message} ({location})", hint=hint, details=details)
    lost = code[:2] in ("08", "57") or (not code and isinstance(error, psycopg.OperationalError))
    if lost or (isinstance(error, psycopg.InterfaceError) and "closed" in str(error)):
        return StorageLost(f"the connection to {location} broke", hint="is the server up?", details=details)
    if code[:2] == "53":
        return StorageBusy(f"the server is short of resources ({location})", details=details)
    return StorageFailure(f"PostgreSQL failed on {location}: {error}", details=details)
