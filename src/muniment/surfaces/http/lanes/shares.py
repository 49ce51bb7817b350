"""The scheduling decision: a pure account of waiting and running requests, and of each owner's usage. It has no threads
and no clock.

There are three lanes. *quick* is for requests that need little processor time, *long* for those known to need much,
*work* for operations that declare it. The expected time of a request is the lesser of the last two times of its kind
(tenant, caller, route), or else of that route for the tenant: a single slow one, such as the first of a process,
changes nothing. An unknown request begins as quick, and moves to the long lane while it runs once it has used more than
a quick one may.

Within a lane the tenant with the least recent processor time goes first (half of it is forgotten every few seconds),
and within the tenant the caller with the least. Every few turns the one that has waited longest goes first, so that
none starves. The last place of the quick lane is reserved for the least-served of the recently active tenants, so that
they find it free. A tenant with less than half the usage of those that run long requests gets one extra place in that
lane. While such a request runs, the others pause where they can.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from muniment.errors import Overloaded, QueueFull

__all__ = ["LANES", "Job", "Lane", "LaneCounts", "Limits", "Shares"]

Lane = Literal["quick", "long", "work"]
LANES: tuple[Lane, ...] = ("quick", "long", "work")

_HELD_MAX = 10_000
"""The accounts and costs that are remembered."""
_RETRY_S_MAX = 60
_LATELY_MAX = 64
"""The recent tenants compared when the last place is given away."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on running and waiting requests, and on quick ones. Times are in seconds."""

    quick: int = 2
    long: int = 1
    work: int = 4
    moved: int = 2
    """The number of requests that may be moved out of the quick lane while running, in addition to those of the long
    lane.
    """
    waiting_max: int = 2000
    waiting_per_tenant_max: int = 200
    quick_s: float = 0.1
    """Processor time up to which a request is quick."""
    half_life_s: float = 5.0
    """The time in which half of an owner's usage is forgotten."""
    lately_s: float = 10.0
    """The time for which the last place of the quick lane is reserved for a recently active tenant."""
    oldest_every: int = 8
    """One turn of a lane in this many goes to the request that has waited longest."""


@dataclass(eq=False, slots=True)
class Job:
    """One request, or a part of a long answer."""

    tenant: str
    caller: str
    """The caller within the tenant: a key and a user."""
    route: str
    lane: Lane = "quick"
    entered_s: float = 0.0
    started_s: float | None = None
    number: int = 0
    is_moved: bool = False
    is_first: bool = False
    """True if its tenant had the least usage when it started, of several recently active ones."""

    def runs_for(self, now_s: float) -> float:
        """Seconds since it was started."""
        return 0.0 if self.started_s is None else now_s - self.started_s


class LaneCounts(NamedTuple):
    """A lane's state, and its totals since the server began."""

    waiting: int
    oldest_s: float
    """The wait of the oldest waiting request; 0 if there is none."""
    running: int
    started: int
    waited_s: float
    """The sum of all waits."""
    used_s: float
    """The processor time used."""
    refused: int
    stopped: int
    """Requests removed before they began."""


@dataclass(slots=True)
class _Totals:
    started: int = 0
    waited_s: float = 0.0
    used_s: float = 0.0
    refused: int = 0
    stopped: int = 0
    turns: int = 0


def _left(passed_s: float, half_life_s: float) -> float:
    """The share that remains after a time, for a given half-life."""
    return math.pow(2.0, -passed_s / half_life_s)


@dataclass(slots=True)
class _Account:
    """The recent usage of one owner."""

    used_s: float = 0.0
    at_s: float = 0.0
    running: list[Job] = field(default_factory=list)

    def had(self, now_s: float, half_life_s: float) -> float:
        """The usage including running requests, which count from their start."""
        kept = self.used_s * _left(now_s - self.at_s, half_life_s)
        return kept + sum(each.runs_for(now_s) for each in self.running)

    def charge(self, seconds: float, now_s: float, half_life_s: float) -> None:
        self.used_s = self.used_s * _left(now_s - self.at_s, half_life_s) + seconds
        self.at_s = now_s


class Shares:
    """The accounts of all lanes. Not thread-safe: callers serialize access."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._waiting: dict[Lane, list[Job]] = {lane: [] for lane in LANES}
        self._running: dict[Lane, int] = dict.fromkeys(LANES, 0)
        self._moved = 0
        self._firsts = 0
        self._long_of: list[str] = []
        """The tenants of running requests in the long lane."""
        self._accounts: OrderedDict[tuple[str, str], _Account] = OrderedDict()
        self._asked_s: OrderedDict[str, float] = OrderedDict()
        """The time of each tenant's last request, in that order."""
        self._costs: OrderedDict[tuple[str, str, str], tuple[float, float]] = OrderedDict()
        """The last two costs of each kind of request."""
        self._waiting_of: dict[str, int] = {}
        self._totals = {lane: _Totals() for lane in LANES}
        self._number = 0

    # -- entering and leaving -------------------------------------------------------------------------

    def expected_s(self, job: Job) -> float:
        """The expected time of a job, from recent ones of its kind."""
        own = self._costs.get((job.tenant, job.caller, job.route))
        return min(self._costs.get((job.tenant, "", job.route), (0.0,)) if own is None else own)

    def enter(self, job: Job, now_s: float, *, lane: Lane | None = None) -> None:
        """Queue a job in the named lane, or in the one for its expected time."""
        limits = self.limits
        job.lane = lane or ("long" if self.expected_s(job) > limits.quick_s else "quick")
        waiting = sum(map(len, self._waiting.values()))
        if self._waiting_of.get(job.tenant, 0) >= limits.waiting_per_tenant_max:
            self._refuse(job, QueueFull, f"{limits.waiting_per_tenant_max} requests of this tenant wait already")
        if waiting >= limits.waiting_max:
            self._refuse(job, Overloaded, f"{limits.waiting_max} requests wait already")
        self._number += 1
        job.number, job.entered_s = self._number, now_s
        self._asked_s[job.tenant] = now_s
        self._asked_s.move_to_end(job.tenant)
        if len(self._asked_s) > _HELD_MAX:
            self._asked_s.popitem(last=False)
        self._waiting[job.lane].append(job)
        self._waiting_of[job.tenant] = self._waiting_of.get(job.tenant, 0) + 1

    def _refuse(self, job: Job, error: type[QueueFull], message: str) -> None:
        self._totals[job.lane].refused += 1
        usual_s = max(self.expected_s(job), self.limits.quick_s / 10)
        wait_s = usual_s * max(1, self._waiting_of.get(job.tenant, 0))
        raise error(message, details={"retry_after_s": max(1, min(_RETRY_S_MAX, round(wait_s)))})

    def leave(self, job: Job) -> bool:
        """Remove a waiting job; False if it is not waiting."""
        if job not in self._waiting[job.lane]:
            return False
        self._take_out(job)
        self._totals[job.lane].stopped += 1
        return True

    def _take_out(self, job: Job) -> None:
        self._waiting[job.lane].remove(job)
        left = self._waiting_of[job.tenant] - 1
        if left:
            self._waiting_of[job.tenant] = left
        else:
            del self._waiting_of[job.tenant]

    # -- turns ----------------------------------------------------------------------------------------

    def next(self, now_s: float) -> Job | None:
        """Start the next job and return it; None if no job may run."""
        for lane in LANES:
            job = self._choose(lane, now_s) if self._running[lane] < self._places(lane) else None
            if job is not None:
                self._take_out(job)
                self._start(job, now_s)
                return job
        return None

    def _choose(self, lane: Lane, now_s: float) -> Job | None:
        waiting = self._waiting[lane]
        is_last = lane != "work" and self._running[lane] + 1 >= self._places(lane) > 1
        allowed = [each for each in waiting if self._may_have_last(each, now_s)] if is_last else waiting
        if not allowed:
            return None
        if self._totals[lane].turns % self.limits.oldest_every == self.limits.oldest_every - 1:
            return min(allowed, key=lambda each: each.number)
        tenant = self._least(((each.tenant, "") for each in allowed), now_s)[0]
        of_tenant = [each for each in allowed if each.tenant == tenant]
        caller = self._least(((tenant, each.caller) for each in of_tenant), now_s)[1]
        return min((each for each in of_tenant if each.caller == caller), key=lambda each: each.number)

    def _places(self, lane: Lane) -> int:
        """The places of a lane, including the reserved one of the long lane."""
        return getattr(self.limits, lane) + (lane == "long")  # type: ignore[no-any-return]

    def _may_have_last(self, job: Job, now_s: float) -> bool:
        """True if the job may have a lane's last place: the least-served tenant in the quick lane; in the long lane,
        one with less than half the usage of those running there.
        """
        if job.lane == "quick":
            return self._is_least(job, now_s)
        twice_s = 2 * self._had(job.tenant, now_s)
        return all(tenant != job.tenant and twice_s < self._had(tenant, now_s) for tenant in self._long_of)

    def _is_least(self, job: Job, now_s: float) -> bool:
        """True if its tenant has the least usage of the recently active ones, waiting or not."""
        had_s = self._had(job.tenant, now_s)
        return all(self._had(tenant, now_s) >= had_s for tenant in self._others(job, now_s))

    def _others(self, job: Job, now_s: float) -> list[str]:
        """The other recently active tenants, at most the last few."""
        since_s = now_s - self.limits.lately_s
        newest = islice(reversed(self._asked_s.items()), _LATELY_MAX)
        return [tenant for tenant, asked_s in newest if asked_s >= since_s and tenant != job.tenant]

    def _had(self, tenant: str, now_s: float) -> float:
        account = self._accounts.get((tenant, ""))
        return 0.0 if account is None else account.had(now_s, self.limits.half_life_s)

    def _least(self, names: Iterable[tuple[str, str]], now_s: float) -> tuple[str, str]:
        """The owner with the least usage; among equals, the one that runs least, and then the first to come."""

        def had(name: tuple[str, str]) -> tuple[float, int]:
            account = self._account(name)
            return account.had(now_s, self.limits.half_life_s), len(account.running)

        return min(dict.fromkeys(names), key=had)

    def _start(self, job: Job, now_s: float) -> None:
        job.is_first = bool(self._others(job, now_s)) and self._is_least(job, now_s)
        self._firsts += job.is_first
        job.started_s = now_s
        self._running[job.lane] += 1
        if job.lane == "long":
            self._long_of.append(job.tenant)
        totals = self._totals[job.lane]
        totals.started += 1
        totals.turns += 1
        totals.waited_s += max(0.0, now_s - job.entered_s)
        for account in self._accounts_of(job):
            account.running.append(job)

    def move(self, job: Job, used_s: float) -> bool:
        """Move a quick job that has used too much to the long lane while it runs on; False if too many have moved."""
        if job.lane != "quick" or job.started_s is None or self._moved >= self.limits.moved:
            return False
        self._learn(job, used_s)
        self._running["quick"] -= 1
        self._moved += 1
        job.lane, job.is_moved = "long", True
        self._long_of.append(job.tenant)
        return True

    def finish(self, job: Job, used_s: float, now_s: float) -> None:
        """Account for a finished job and its processor time."""
        self._totals[job.lane].used_s += used_s
        self._firsts -= job.is_first
        if job.lane == "long":
            self._long_of.remove(job.tenant)
        if job.is_moved:
            self._moved -= 1
        else:
            self._running[job.lane] -= 1
        for account in self._accounts_of(job):
            account.running.remove(job)
            account.charge(used_s, now_s, self.limits.half_life_s)
        if job.lane != "work":
            self._learn(job, used_s)

    def _learn(self, job: Job, used_s: float) -> None:
        """Remember the cost of a job, replacing the estimate from when it was moved."""
        for caller in (job.caller, ""):
            name = (job.tenant, caller, job.route)
            last, before = self._costs.pop(name, (0.0, 0.0))
            self._costs[name] = (used_s, before if job.is_moved else last)
        while len(self._costs) > _HELD_MAX:
            self._costs.popitem(last=False)

    # -- accounts -------------------------------------------------------------------------------------

    def _accounts_of(self, job: Job) -> Iterator[_Account]:
        yield self._account((job.tenant, ""))
        yield self._account((job.tenant, job.caller))

    def _account(self, name: tuple[str, str]) -> _Account:
        found = self._accounts.get(name)
        if found is None:
            found = self._accounts[name] = _Account()
            if len(self._accounts) > _HELD_MAX:
                idle = (each for each, held in self._accounts.items() if not held.running and each != name)
                del self._accounts[next(idle)]
        else:
            self._accounts.move_to_end(name)
        return found

    @property
    def rank(self) -> int:
        """The highest priority among the running jobs: see `rank_of`."""
        return 0 if self._firsts else 1 if self._running["quick"] else 2

    @staticmethod
    def rank_of(job: Job) -> int:
        """0 for the least-served, 1 for quick, 2 for the rest: a running job pauses for those of a lower rank."""
        return 0 if job.is_first else 1 if job.lane == "quick" else 2

    def counts(self, now_s: float) -> dict[Lane, LaneCounts]:
        """The state of each lane."""
        counted: dict[Lane, LaneCounts] = {}
        for lane in LANES:
            totals = self._totals[lane]
            running = self._running[lane] + (self._moved if lane == "long" else 0)
            since_s = min((job.entered_s for job in self._waiting[lane]), default=now_s)
            counted[lane] = LaneCounts(
                len(self._waiting[lane]), max(0.0, now_s - since_s), running, totals.started, totals.waited_s,
                totals.used_s, totals.refused, totals.stopped,
            )  # fmt: skip
        return counted
