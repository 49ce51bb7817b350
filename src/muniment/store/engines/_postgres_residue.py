"""Bytes left behind in the files of a PostgreSQL store: rebuilding tables, and saying which were not.

An emptied row stays in its page as a dead version. `VACUUM` frees its place and moves its neighbours together, but
overwrites nothing: what was said can still be read in the page's hole (decision 0001 has figures). Only `VACUUM FULL`
leaves it behind, at the price of an exclusive lock and of writing the whole table again. So a forget rebuilds the
tables that are small, and leaves the larger to a thorough scrub at an hour of the operator's.
"""

from __future__ import annotations

import re

import psycopg

from muniment.core.ports.engine import ScrubReport
from muniment.core.ports.schema import TABLES
from muniment.store.engines._postgres_opening import Connection, translate

__all__ = ["scrub"]


_LOCK_WAIT = "5s"
_SIZE = "SELECT pg_table_size(%s::regclass)"
_COPIES = """SELECT (SELECT count(*) FROM pg_stat_replication),
               (SELECT count(*) FROM pg_replication_slots WHERE NOT active), current_setting('archive_mode')"""
_NUMBER = re.compile(r"\d+")


def scrub(
    connection: Connection, schema: str, location: str, *, bytes_max: int | None, is_pooled: bool = False
) -> ScrubReport:
    """Rebuild the tables that hold content, of at most so many bytes each; without a bound, all of them.

    Behind a pooler there is no session to be told how long to wait for a lock: what is locked is left for later.
    """
    tables = [each.name for each in TABLES if any(column.content for column in each.columns)]
    names = {each: f'"{schema}"."{each}"' for each in tables}
    notes: list[str] = []
    try:
        if not is_pooled:
            connection.execute(f"SET lock_timeout = '{_LOCK_WAIT}'")
            connection.execute("SET client_min_messages = warning")  # what it skips, the server says by warnings alone
        large = [] if bytes_max is None else [each for each in names if _size(connection, names[each]) > bytes_max]
        for each in large:
            connection.execute(f"VACUUM (SKIP_LOCKED) {names[each]}")
        for each in [name for name in names if name not in large]:
            notes += _rebuild(connection, each, names[each], skip_locked=is_pooled)
    except psycopg.Error as error:
        raise translate(error, location) from error
    if large:
        notes.append(f"too large to be rebuilt at every forget: {', '.join(large)}; scrub the store")
    due = bool(notes)
    notes += _checkpoint(connection)
    notes += _copies(connection)
    notes.append("the server's write-ahead log, replicas and backups are its operator's to expire")
    return ScrubReport(clean=False, vacuumed=not due, note="; ".join(notes), due=due)


def _copies(connection: Connection) -> list[str]:
    """Who else is known to have what was said. A copy of the disk, of which the server knows nothing, is not."""
    row = connection.execute(_COPIES).fetchone()
    assert row is not None
    streaming, slots, archive = row
    notes = []
    if streaming:
        notes.append(
            f"{_counted(streaming, 'replica streams', 'replicas stream')} from the server, as far as it has come"
        )
    if slots:
        notes.append(f"{_counted(slots, 'replication slot keeps', 'replication slots keep')} its log for nobody now")
    if archive != "off":
        notes.append("its log is archived: a restore to an earlier time brings back what was forgotten since")
    return notes


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _size(connection: Connection, name: str) -> int:
    row = connection.execute(_SIZE, (name,)).fetchone()
    assert row is not None
    return int(row[0])


def _rebuild(connection: Connection, table: str, name: str, *, skip_locked: bool) -> list[str]:
    """Write a table anew; answers what kept it from being whole."""
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
    """Have the pages that are new written out, and the files of the old ones removed; most roles may not."""
    try:
        connection.execute("CHECKPOINT")
    except psycopg.Error as error:
        return [f"no checkpoint: {error.diag.message_primary}"]
    return []
