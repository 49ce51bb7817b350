"""Commits that a replica has confirmed (`durability="replicated"`): nothing is acknowledged that one server alone has.

`synchronous_commit = remote_apply` makes the server wait for its synchronous standbys. It does so only where it names
some, and a wait that is broken off ends in a success with a warning; both would promise what is not there. So the first
is refused when the store is opened and at each commit, and the second is an error here; also for whoever asked for less
on a server that waits all the same. Nothing else is known of replicas.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from types import TracebackType

import psycopg

from muniment.errors import InvalidInput, StorageFailure, StorageLost
from muniment.store.engines.postgres.failures import translate
from muniment.store.engines.postgres.patience import Connection

__all__ = ["commit_confirmed", "has_standbys"]

_CANCEL_WAIT_S = 5.0
_HINT = "name a standby in synchronous_standby_names of the primary, or ask for durability=full"
_COMMIT = "SET LOCAL client_min_messages = warning; COMMIT"
_COMMIT_CONFIRMED = f"""
DO $$ BEGIN
  IF current_setting('synchronous_standby_names') = '' THEN
    RAISE EXCEPTION 'no standby is waited for' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
END $$;
SELECT pg_logical_emit_message(true, 'muniment', '') WHERE pg_current_xact_id_if_assigned() IS NULL;
{_COMMIT}
"""
"""A server that took over may name no standbys. A transaction that wrote nothing waits too: it may answer with what
another wrote whose wait was broken off."""


def has_standbys(connection: Connection, location: str, *, required: bool) -> bool:
    """Does the server wait for a replica? Where it must, one that waits for nobody is refused."""
    row = connection.execute("SELECT current_setting('synchronous_standby_names')").fetchone()
    if row is not None and row[0]:
        return True
    if required:
        raise InvalidInput(
            f'durability="replicated" needs a server that waits for a replica, and {location} names none',
            path="$.durability",
            hint=_HINT,
        )
    return False


class _Patience:
    """Breaks off what a connection waits for, after so many seconds: no timeout of the server's holds in a commit."""

    def __init__(self, connection: Connection, wait_s: float) -> None:
        self._connection = connection
        self._is_over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(wait_s, self._break_off)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._timer.cancel()
        with self._lock:  # a cancel that is on its way has arrived before the connection is used for anything else
            self._is_over = True

    def _break_off(self) -> None:
        with self._lock:
            if not self._is_over:
                with suppress(psycopg.Error):  # where the server is not reached, the connection breaks by itself
                    self._connection.cancel_safe(timeout=_CANCEL_WAIT_S)


def commit_confirmed(connection: Connection, location: str, wait_s: float, *, required: bool) -> None:
    """Commit, and wait until the standbys say so; `StorageLost` where they did not in time.

    Where it is `required`, a server that has none to wait for commits nothing.
    """
    warnings: list[str] = []

    def listen(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(str(notice.message_primary))

    connection.add_notice_handler(listen)
    patience = _Patience(connection, wait_s)
    try:
        with patience:
            connection.execute(_COMMIT_CONFIRMED if required else _COMMIT, prepare=False)
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        raise StorageFailure(
            f"{location} waits for no replica any more; nothing was written", hint=_HINT, details={"location": location}
        ) from error
    except psycopg.Error as error:
        raise translate(error, location) from error
    finally:
        connection.remove_notice_handler(listen)
    if warnings:
        raise StorageLost(
            f"{location} has it, and no replica has confirmed it in {wait_s:g} s",
            hint="is the replica up? With an idempotency key the call can be repeated without harm",
            details={"location": location, "postgres": "; ".join(warnings)},
        )
