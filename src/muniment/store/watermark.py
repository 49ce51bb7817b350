"""Progress of users' indexes behind the ledger, and the users of this process that await indexing.

A user's entries are numbered 1 to `tail`; the stored index covers the first `indexed` of them, its vectors the first
`embedded`. Every position between 0 and `tail` is valid.
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING

from muniment.core.ports.rows import advance, get, stream
from muniment.core.ports.schema import USERS, UserRow

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction

__all__ = ["TAIL_MAX", "Tails", "count_tail", "lock_user", "read_user", "users_behind"]

TAIL_MAX = 255
"""Entries that a user's index may lag when an append returns."""
WAITING_MAX = 1_024
"""Users whose tails a process leaves until it closes. Beyond that, those waiting longest are indexed first."""

Owner = tuple[str, str]
"""A tenant and a user."""


def read_user(reader: Reader, user_id: str) -> UserRow:
    """Return how far a user's entries, index and vectors go; all zero for a user without entries."""
    return get(reader, USERS, (user_id,)) or UserRow(user_id, tail=0, indexed=0, embedded=0, generation=0)


def lock_user(tx: Transaction, user_id: str) -> UserRow:
    """Lock a user's row until the transaction ends; returns its current values."""
    (user,) = advance(tx, USERS, [UserRow(user_id, tail=0, indexed=0, embedded=0, generation=0)])
    return user


def users_behind(reader: Reader) -> list[UserRow]:
    """Return the users of a tenant whose index does not cover all of their entries."""
    return [user for user in stream(reader, USERS) if user.indexed < user.tail]


def count_tail(reader: Reader) -> int:
    """Count entries of a tenant that the stored indexes do not cover yet."""
    return sum(user.tail - user.indexed for user in users_behind(reader))


class Tails:
    """The users whose entries this process has appended and not indexed since. Thread-safe."""

    def __init__(self) -> None:
        self._lengths: dict[Owner, int] = {}
        self._lock = threading.Lock()

    def note(self, tenant_id: str, *users: UserRow) -> None:
        """Record the length of users' tails."""
        with self._lock:
            for user in users:
                self._lengths[tenant_id, user.user_id] = user.tail - user.indexed

    def take_due(self) -> list[Owner]:
        """Take those to index now: with too long a tail, or over the limit of waiting users."""
        with self._lock:
            due = [owner for owner, length in self._lengths.items() if length > TAIL_MAX]
            more = len(self._lengths) - len(due) - WAITING_MAX
            if more > 0:
                due += list(islice((owner for owner in self._lengths if owner not in due), more))
            return self._taken(due)

    def take_all(self) -> list[Owner]:
        """Take all of them."""
        with self._lock:
            return self._taken(list(self._lengths))

    def _taken(self, owners: list[Owner]) -> list[Owner]:
        for owner in owners:
            self._lengths.pop(owner, None)
        return owners
