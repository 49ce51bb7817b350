"""Residual bytes in the files of a PostgreSQL store: rebuilding tables, and reporting those that were not.

An emptied row stays in its page as a dead version. `VACUUM` frees its place and moves its neighbours together, but
overwrites nothing: the old text can still be read in the page's hole (decision 0001 has figures). Only `VACUUM FULL`
leaves it behind, at the price of an exclusive lock and of rewriting the whole table. So a forget leaves its receipt
pending, and a scrub in the background rebuilds the tables.
"""

from __future__ import annotations

import re
import time

import psycopg

from muniment.core.ports.engine import ScrubReport
from muniment.core.ports.schema import TABLES
from muniment.store.engines._postgres_opening import Connection, translate

__all__ = ["scrub"]


_LOCK_WAIT = "5s"
_REPLAY_WAIT_S = 2.0
_COPIES = """SELECT (SELECT count(*) FROM pg_replication_slots WHERE NOT active), current_setting('archive_mode')"""
_BEHIND = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn IS NULL OR replay_lsn < %s"
_NUMBER = re.compile(r"\d+")


def scrub(connection: Connection, schema: str, location: str, *, is_pooled: bool = False) -> ScrubReport:
    """Rebuild the tables that hold content, and wait for the servers that copy them.

    The report is clean once every table is rebuilt, streaming replicas have replayed that, and nothing else is known to
    keep the log. Behind a pooler no lock timeout can be set for a session, so locked tables are left for later.
    """
    tables = [each.name for each in TABLES if any(column.content for column in each.columns)]
    notes: list[str] = []
    try:
        if not is_pooled:
            connection.execute(f"SET lock_timeout = '{_LOCK_WAIT}'")
            connection.execute(
                "SET client_min_messages = warning"
            )  # the server reports skipped tables as warnings only
        for each in tables:
            notes += _rebuild(connection, each, f'"{schema}"."{each}"', skip_locked=is_pooled)
        unchecked = _checkpoint(connection)
        behind, copies = _behind(connection), _copies(connection)
    except psycopg.Error as error:
        raise translate(error, location) from error
    is_rebuilt = not notes
    notes = [*(notes or ["rebuilt the tables"]), *unchecked, *behind, *copies]
    notes.append("the server's write-ahead log and backups are its operator's to expire")
    is_clean = is_rebuilt and not behind and not copies
    return ScrubReport(clean=is_clean, vacuumed=is_rebuilt, note="; ".join(notes), due=not is_rebuilt or bool(behind))


def _behind(connection: Connection) -> list[str]:
    """Return streaming replicas that have not replayed the rebuilding after a moment."""
    (position,) = connection.execute("SELECT pg_current_wal_lsn()").fetchone() or (None,)
    deadline = time.monotonic() + _REPLAY_WAIT_S
    while True:
        (count,) = connection.execute(_BEHIND, (position,)).fetchone() or (0,)
        if not count or time.monotonic() >= deadline:
            break
        time.sleep(0.05)
    return [f"{_counted(count, 'replica has', 'replicas have')} not applied it yet"] if count else []


def _copies(connection: Connection) -> list[str]:
    """List what else is known to keep the server's log. Disk copies, which the server does not know of, are not
    included.
    """
    row = connection.execute(_COPIES).fetchone()
    assert row is not None
    slots, archive = row
    notes = []
    if slots:
        notes.append(f"{_counted(slots, 'replication slot keeps', 'replication slots keep')} its log for nobody now")
    if archive != "off":
        notes.append("its log is archived: a restore to an earlier time brings back what was forgotten since")
    return notes


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _rebuild(connection: Connection, table: str, name: str, *, skip_locked: bool) -> list[str]:
    """Rewrite a table; returns what prevented it from completing."""
    refused: list[str] = []
    held: list[int] = []

    def listen(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            refused.append(str(notice.message_primary))
        elif number := _NUMBER.search(notice.message_detail or ""):
            held.append(int(number[0]))  # of dead rows it had to take along: the detail begins so in any language

    connection.add_notice_handler(listen)
    try:
        connection.execute(f"VACUUM (FULL, VERBOSE{', SKIP_LOCKED' if skip_locked else ''}) {name}")
    except psycopg.errors.LockNotAvailable:
        return [f"{table} was in use and not rebuilt"]
    finally:
        connection.remove_notice_handler(listen)
    if any(held):
        return [*refused, f"{table} was rebuilt with {sum(held)} rows that an older transaction may still read"]
    return refused


def _checkpoint(connection: Connection) -> list[str]:
    """Write out new pages and remove the files of old ones; most roles lack the right."""
    try:
        connection.execute("CHECKPOINT")
    except psycopg.Error as error:
        return [f"no checkpoint: {error.diag.message_primary}"]
    return []
