"""Leases in the store: which process works on which piece, and the check that it still does.

A lease is a row of `leases` that its process keeps incrementing. It holds no time, since the clocks of two machines
differ: a process that sees a lease unchanged for long enough by its own clock takes it over, and exactly one process
wins. Pieces taken together share one token, which is never reused. A writing transaction checks the token first
(`check_fence`), under a lock that a takeover also acquires: so a process that was paused and resumes after another has
taken over writes nothing.

Leases of a server's long-running works are rows of `SERVER`; those of upkeep are rows of the tenant that owns the
piece, so that the transaction that writes for that tenant can read them, and of `UPKEEP` where a piece covers the whole
store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.ports.engine import Delete, Lock, Patch
from muniment.core.ports.rows import by_ids, insert, select
from muniment.core.ports.schema import LEASES, LeaseRow
from muniment.errors import StorageBusy

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader, Transaction

__all__ = [
    "LeaseLost",
    "StillLeases",
    "Taken",
    "check_fence",
    "count_on",
    "give_back",
    "open_leases",
    "take_free",
    "take_over",
]


class LeaseLost(StorageBusy):
    """Another process has taken over this piece of work."""


class Taken(NamedTuple):
    """Pieces of work held by one process until it gives them back or stops renewing them."""

    place: str
    """The tenant whose rows hold the leases."""
    token: str
    """Unique to this lease."""
    ids: tuple[str, ...]
    left_by: str | None = None
    """The token of the previous holder, where that process ended or stopped before finishing."""


class _Owner(NamedTuple):
    id: str
    owner: str


def open_leases(reader: Reader) -> list[LeaseRow]:
    """Return the leases of all work in progress."""
    return select(reader, LEASES, (("is_open", "=", 1),))


def take_free(tx: Transaction, place: str, ids: Sequence[str], token: str) -> Taken:
    """Take those of the pieces that are free."""
    tx.do(Lock(("leases",)))
    held = {row.id for row in by_ids(tx, LEASES, ids, into=_Owner)}
    free = tuple(dict.fromkeys(id_ for id_ in ids if id_ not in held))
    if free:
        insert(tx, LEASES, [LeaseRow(id_, place, token, beats=0, is_open=1) for id_ in free])
    return Taken(place, token, free)


def take_over(tx: Transaction, lease: LeaseRow, token: str, beats: int = 0) -> bool:
    """Take over a lease that is unchanged since it was seen; False if it moved or another process was first.

    Waits for any transaction of its holder that has already checked its fence.
    """
    tx.do(Lock(("lease", lease.owner)))
    as_seen: tuple[Condition, ...] = (
        ("id", "=", lease.id),
        ("owner", "=", lease.owner),
        ("beats", "=", lease.beats),
        ("is_open", "=", 1),
    )
    return tx.do(Patch("leases", as_seen, {"owner": token, "beats": beats})) == 1


def count_on(tx: Transaction, ids: Sequence[str], tokens: Sequence[str], beats: int) -> int:
    """Renew these leases; returns how many of them are still held. No index covers the counter."""
    mine: tuple[Condition, ...] = (("id", "in", tuple(ids)), ("owner", "in", tuple(tokens)))
    return tx.do(Patch("leases", mine, {"beats": beats}))


def check_fence(tx: Transaction, taken: Taken) -> None:
    """Raise if another process has taken one of the pieces. None can be taken until the transaction ends."""
    tx.do(Lock(("lease", taken.token)))
    mine = [row.id for row in by_ids(tx, LEASES, taken.ids, into=_Owner) if row.owner == taken.token]
    if len(mine) != len(taken.ids):
        raise lost(taken)


def give_back(tx: Transaction, taken: Taken) -> int:
    """Give back the pieces still held; returns how many there were."""
    tx.do(Lock(("lease", taken.token)))
    return tx.do(Delete("leases", (("id", "in", taken.ids), ("owner", "=", taken.token))))


def lost(taken: Taken) -> LeaseLost:
    return LeaseLost(
        "another process has taken up this piece of work, since this one stood still for too long",
        hint="nothing of it was written here; the other one does it",
        details={"pieces": len(taken.ids)},
    )


class StillLeases:
    """The leases of other processes, and how long each has been unchanged by the local clock."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._seen: dict[tuple[str, str], tuple[LeaseRow, float]] = {}

    def look(self, place: str, leases: Iterable[LeaseRow], now: float) -> list[LeaseRow]:
        """Return leases unchanged for their whole period. Each is reported once, then its period starts over."""
        before = {key: seen for key, seen in self._seen.items() if key[0] == place}
        for key in before:
            del self._seen[key]
        still = []
        for lease in leases:
            seen, since = before.get((place, lease.id), (lease, now))
            since = since if seen == lease else now
            if now - since >= self._lease_s:
                still.append(lease)
            else:
                self._seen[place, lease.id] = (lease, since)
        return still
