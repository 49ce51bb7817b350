"""Commits that a replica has confirmed (`durability="replicated"`): nothing is acknowledged that one server alone has.

`synchronous_commit = remote_apply` makes the server wait for its synchronous standbys. It does so only where it names
some, and a wait that is broken off ends in a success with a warning; both would promise what is not there. So the first
is refused when the store is opened and at each commit, and the second is an error here; also for whoever asked for less
on a server that waits all the same. Nothing else is known of replicas.
"""

from __future__ import annotations

import psycopg

from muniment.errors import InvalidInput, StorageFailure, StorageLost
from muniment.store.engines.postgres.failures import translate
from muniment.store.engines.postgres.patience import Connection

__all__ = ["check_standbys", "commit_confirmed"]

_HINT = "name a standby in synchronous_standby_names of the primary, or ask for durability=full"
_HEARD = "SET LOCAL client_min_messages = warning; "
_CONFIRMED = """
DO $$ BEGIN
  IF current_setting('synchronous_standby_names') = '' THEN
    RAISE EXCEPTION 'no standby is waited for' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
END $$;
SELECT pg_logical_emit_message(true, 'muniment', '') WHERE pg_current_xact_id_if_assigned() IS NULL;
"""
"""A server that took over may name no standbys. A transaction that wrote nothing waits too: it may answer with what
another wrote whose wait was broken off."""


def check_standbys(connection: Connection, location: str) -> None:
    """Refuse a server that waits for nobody."""
    row = connection.execute("SELECT current_setting('synchronous_standby_names')").fetchone()
    if row is None or not row[0]:
        raise InvalidInput(
            f'durability="replicated" needs a server that waits for a replica, and {location} names none',
            path="$.durability",
            hint=_HINT,
        )


def commit_confirmed(connection: Connection, location: str, wait_s: float, *, required: bool) -> None:
    """Commit, and wait until the standbys that the server names say so; `StorageLost` where they did not in time.

    Whom it names may change while a store is open, and is another's matter once a standby took over: so every commit
    is bounded. Where it is `required`, a server that has none to wait for commits nothing.
    """
    warnings: list[str] = []

    def listen(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(str(notice.message_primary))

    connection.add_notice_handler(listen)
    said = _HEARD + (_CONFIRMED if required else "") + "COMMIT"
    try:
        with connection.broken_off(wait_s):
            connection.execute(said.encode(), prepare=False)
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
