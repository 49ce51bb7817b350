"""Reads from a replica with read-your-writes: a store sees again whatever it has written or seen before.

The primary's write-ahead log has positions, and a replica reports how far it has replayed them. Before a read goes to
the replica, the primary is asked for its position (for every read; with `lag_s`, at that interval), and the read is
answered there once the replica has caught up. If it does not within a moment, or is gone, the primary answers. Clocks
of servers are never compared. Nothing is written here.

While the primary is unreachable, recent forgets are unknown, so the replica is not read either.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
import psycopg_pool

from muniment.core.ports.engine import ReplicaState
from muniment.errors import InvalidInput, MunimentError, StorageBusy, StorageLost
from muniment.store.engines._postgres_opening import (
    Connection,
    NoAnswer,
    NoConnection,
    Target,
    connect,
    is_pooled,
    translate,
)

__all__ = ["Behind", "Pool", "Position", "Replica", "ReplicaSettings"]


_POSITION = """
SELECT pg_walfile_name(at), (at - '0/0'::pg_lsn)::bigint, (SELECT system_identifier FROM pg_control_system())
FROM (SELECT pg_current_wal_insert_lsn() AS at) AS primary_now
"""
"""The primary's position in the inserted, not the flushed log, because unflushed writes may be acknowledged too."""
_REPLAYED = """
SELECT pg_is_in_recovery(), system.system_identifier, checkpoint.timeline_id,
  (coalesce(pg_last_wal_replay_lsn(), '0/0') - '0/0'::pg_lsn)::bigint
FROM pg_control_system() AS system, pg_control_checkpoint() AS checkpoint
"""
_REST_S = 1.0
_REST_S_MAX = 30.0
"""Longest pause before asking a replica that is gone; pauses double from a short one up to it."""
_POLL_S = 0.001
_CATCH_UP_S = 5.0
_PAUSE_S = 0.05
_ANSWER_S = 2.0
"""Seconds a replica may take to report its position. One with stopped processes is silent without disconnecting."""
_NEVER = float("-inf")
Pool = psycopg_pool.ConnectionPool[Connection]


class Position(NamedTuple):
    """A place in the log. After a failover there is a new timeline, and places of the old one are behind it."""

    timeline: int
    lsn: int


class Behind(StorageBusy):
    """The replica cannot answer as the primary would, so the primary is asked instead."""


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """`?replica=` of a URL."""

    dsn: str
    lag_s: float = 0.0
    """Maximum age of an answer with regard to other stores' writes. This store's own writes are always visible."""
    wait_s: float = 0.1
    """Seconds a read waits for the replica to catch up."""


class Replica:
    """One replica of a primary, or several behind one address, and their known states. Thread-safe."""

    def __init__(
        self,
        settings: ReplicaSettings,
        primary: Target,
        open_pool: Callable[[str, bool], Pool],
    ) -> None:
        """Store `open_pool`, which opens a connection pool to a server, given whether it is behind a pooler."""
        self._settings = settings
        self._primary = primary
        self._open_pool = open_pool
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._asked_by: Connection | None = None
        self._seen = Position(0, 0)
        self._system: int | None = None
        self._asked_s = _NEVER
        self._old_s = _NEVER
        """Positions asked of the primary before this moment are stale, whatever their age."""
        self._is_silent = False
        """The primary did not answer the last query; it is retried after a moment."""
        self._silent_until_s = _NEVER
        self._away_until_s = _NEVER
        self._rest_s = _REST_S
        self._state: ReplicaState = "follows"
        self.reads = {"replica": 0, "primary": 0}
        self._ask_primary_first()
        self._pool = open_pool(settings.dsn, self._look())

    @property
    def state(self) -> ReplicaState:
        return self._state

    # -- before a read

    def pool(self) -> Pool | None:
        """Return the replica's connections if it is worth asking; None where the primary is to be asked."""
        if time.monotonic() < self._away_until_s:
            return None
        is_known = self._ask_primary(max(time.monotonic() - self._settings.lag_s, self._old_s))
        return self._pool if is_known else None

    def check(self, connection: Connection) -> None:
        """Wait until the server of this connection has caught up; raises `Behind` where it does not."""
        deadline = time.monotonic() + (0.0 if self._state == "behind" else self._settings.wait_s)
        pause = _POLL_S
        while True:
            with connection.patient(_ANSWER_S):
                row = connection.execute(_REPLAYED).fetchone()
            assert row is not None
            is_replica, system, timeline, lsn = row
            if not is_replica or system != self._system:
                self._state = "promoted" if system == self._system else "stranger"
                raise Behind("the replica does not follow the primary")
            wanted = self._seen
            if timeline >= wanted.timeline and lsn >= wanted.lsn:
                self.note(Position(wanted.timeline, lsn))
                return
            if time.monotonic() >= deadline:
                self._state = "behind"
                raise Behind(f"the replica is {wanted.lsn - lsn} bytes behind")
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    # -- after a read, or a look

    def answered(self) -> None:
        self._rest_s = _REST_S
        self._state = "follows"

    def failed(self, error: MunimentError) -> None:
        """Note a read that failed here. A replica that is gone, or follows no server, is not asked for a while."""
        is_gone = isinstance(error, StorageLost | NoConnection)
        if is_gone or self._state in ("promoted", "stranger"):
            self._away_until_s = time.monotonic() + self._rest_s
            self._rest_s = min(2 * self._rest_s, _REST_S_MAX)
        if is_gone:
            self._state = "away"

    def passed(self) -> None:
        """Note that the primary has answered a read: nothing older may be returned from now on."""
        self.reads["primary"] += 1
        self.expire()

    def expire(self) -> None:
        self._old_s = time.monotonic()

    # -- after a write

    def written(self, connection: Connection) -> None:
        """Note a commit on this connection, and how far the replica must have replayed."""
        try:
            with connection.patient(self._primary.connect_timeout_s):
                self._note_row(connection.execute(_POSITION).fetchone())
            self._hear()
        except psycopg.Error:
            self._old_s = time.monotonic()  # committed, at a still unknown position

    def has_applied(self) -> bool | None:
        """Return whether the replica has all that was written here; None where it cannot be asked."""
        pool = self.pool()
        if pool is None:
            return None
        try:
            with pool.connection() as connection:
                self.check(connection)
        except Behind:
            return False
        except (psycopg.Error, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed):
            return None
        return True

    def catches_up(self) -> bool:
        """Return whether the replica has, or will have within seconds, all that was written here. An unreachable one is
        not waited for.
        """
        deadline = time.monotonic() + _CATCH_UP_S
        while (found := self.has_applied()) is False and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        return found is True

    def note(self, position: Position) -> None:
        with self._lock:
            self._seen = max(self._seen, position)

    def moved(self) -> None:
        """Use another server as the primary from now on."""
        with self._asking:
            self._hang_up()
            self._hear()
        self.expire()

    def close(self) -> None:
        self._pool.close()
        with self._asking:
            self._hang_up()

    # -- the primary's position

    def _note_row(self, row: tuple[Any, ...] | None) -> None:
        assert row is not None
        file, lsn, system = row
        self._system = system
        self.note(Position(int(file[:8], 16), lsn))

    def _ask_primary_first(self) -> None:
        try:
            with connect(self._primary) as connection:
                self._note_row(connection.execute(_POSITION).fetchone())
        except psycopg.errors.ObjectNotInPrerequisiteState:
            raise InvalidInput(
                "the URL names a replica, and another in replica=",
                path="$.target",
                hint="the URL is the primary's; a replica on its own is opened by its own URL, with read_only=True",
            ) from None
        except psycopg.Error as error:
            raise translate(error, "the primary") from error

    def _ask_primary(self, since_s: float) -> bool:
        """Make sure that the primary was asked after this moment; False where it does not answer."""
        if self._asked_s >= since_s:
            return True
        if time.monotonic() < self._silent_until_s:
            return False
        with self._asking:
            if self._asked_s >= since_s:
                return True  # somebody asked while this one waited
            began_s = time.monotonic()
            if began_s < self._silent_until_s:
                return False
            if self._is_silent:  # others do not wait for an answer that may not come
                self._silent_until_s = began_s + self._primary.connect_timeout_s + _REST_S
            for _ in range(2):  # a connection that died while idle is replaced
                is_fresh = self._asked_by is None
                try:
                    if self._asked_by is None:
                        self._asked_by = connect(self._primary)
                    with self._asked_by.patient(self._primary.connect_timeout_s):
                        self._note_row(self._asked_by.execute(_POSITION).fetchone())
                    self._asked_s = began_s
                    self._hear()
                    return True
                except NoAnswer:
                    self._hang_up()
                    break
                except (psycopg.Error, MunimentError):
                    self._hang_up()
                    if is_fresh:
                        break
            self._is_silent = True
            self._silent_until_s = time.monotonic() + _REST_S
            return False

    def _hear(self) -> None:
        self._is_silent = False
        self._silent_until_s = _NEVER

    def _hang_up(self) -> None:
        if self._asked_by is not None:
            with suppress(psycopg.Error):
                self._asked_by.close()
        self._asked_by = None

    # -- the replica itself

    def _look(self) -> bool:
        """Check the address when the store is opened, so that a wrong one fails at once; returns whether it is a
        pooler.
        """
        target = Target(self._settings.dsn, "", "", self._primary.connect_timeout_s, 0.0, True)
        try:
            with connect(target) as connection:
                row = connection.execute(_REPLAYED).fetchone()
                is_behind_a_pooler = is_pooled(connection)
                with suppress(Behind):
                    self.check(connection)
        except StorageLost as error:
            self.failed(error)
            return True  # unknown: nothing is kept ready there
        except psycopg.Error as error:
            raise translate(error, "the replica") from error
        assert row is not None
        if row[1] != self._system:
            raise InvalidInput(
                "the server named by replica= is no copy of the primary",
                path="$.target",
                hint="it is made by pg_basebackup from the primary, and follows it",
            )
        return is_behind_a_pooler
