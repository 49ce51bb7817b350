"""Leases in the store: which process is at which piece of work, and the check that it still is.

A lease is a row of `leases` that its process counts on. It has no time in it, since clocks of two machines differ:
whoever sees one stand still for long enough by its own clock takes it over, and one process wins that. What is taken at
once has one token, which nobody has again. A transaction that writes checks the token first (`check_fence`), under a
lock that a takeover takes as well: so who was held up, and comes back when another has its work, writes nothing.

Leases of long works of a server are rows of `SERVER`; those of upkeep are rows of the tenant whose the piece is, so
that the transaction that writes for that tenant can read them, and of `UPKEEP` where a piece is the whole store's.
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
    """Another process has taken up what this one was at."""


class Taken(NamedTuple):
    """Pieces of work that are one process', until it gives them back or stands still for too long."""

    place: str
    """The tenant whose rows say so."""
    token: str
    """Of this taking alone."""
    ids: tuple[str, ...]
    left_by: str | None = None
    """The taking of another process, which began with it and ended or stopped before it was done."""


class _Owner(NamedTuple):
    id: str
    owner: str


def open_leases(reader: Reader) -> list[LeaseRow]:
    """Of all that is being done."""
    return select(reader, LEASES, (("is_open", "=", 1),))


def take_free(tx: Transaction, place: str, ids: Sequence[str], token: str) -> Taken:
    """Take those of the pieces that nobody has."""
    tx.do(Lock(("leases",)))
    held = {row.id for row in by_ids(tx, LEASES, ids, into=_Owner)}
    free = tuple(dict.fromkeys(id_ for id_ in ids if id_ not in held))
    if free:
        insert(tx, LEASES, [LeaseRow(id_, place, token, beats=0, is_open=1) for id_ in free])
    return Taken(place, token, free)


def take_over(tx: Transaction, lease: LeaseRow, token: str, beats: int = 0) -> bool:
    """Take a lease that stands as it was seen; False where it moved, or another was first.

    Waits for a transaction of its holder that has checked its fence already.
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
    """Say that a process is at these; answers how many of them are still its own. No index has the count."""
    mine: tuple[Condition, ...] = (("id", "in", tuple(ids)), ("owner", "in", tuple(tokens)))
    return tx.do(Patch("leases", mine, {"beats": beats}))


def check_fence(tx: Transaction, taken: Taken) -> None:
    """Refuse to go on where one of the pieces is another's by now. Nobody takes them until the transaction ends."""
    tx.do(Lock(("lease", taken.token)))
    mine = [row.id for row in by_ids(tx, LEASES, taken.ids, into=_Owner) if row.owner == taken.token]
    if len(mine) != len(taken.ids):
        raise lost(taken)


def give_back(tx: Transaction, taken: Taken) -> int:
    """What is left of it; answers how many those were."""
    tx.do(Lock(("lease", taken.token)))
    return tx.do(Delete("leases", (("id", "in", taken.ids), ("owner", "=", taken.token))))


def lost(taken: Taken) -> LeaseLost:
    return LeaseLost(
        "another process has taken up this piece of work, since this one stood still for too long",
        hint="nothing of it was written here; the other one does it",
        details={"pieces": len(taken.ids)},
    )


class StillLeases:
    """The leases of others, and since when each has stood as it does, by the clock of who looks."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._seen: dict[tuple[str, str], tuple[LeaseRow, float]] = {}

    def look(self, place: str, leases: Iterable[LeaseRow], now: float) -> list[LeaseRow]:
        """Those that have stood still for their time. Each is told once, then it begins anew."""
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
