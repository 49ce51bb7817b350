"""Whose turn it is: a pure account of who waits, who runs and how much each has had. It has no threads and no clock.

Three lanes. *quick* is for what takes little of the processor, *long* for what is known to take much, *work* for
operations that say so themselves. What a request will take is the less of what its like (tenant, caller, route) took
the last two times, or else of what that route took for the tenant: a single slow one, such as the first of a process,
moves nobody. What nobody knows begins as quick, and moves to the long lane while it runs once it has taken more than a
quick one may.

In a lane the tenant goes first that has had least of the processor lately (half of it is forgotten every few seconds),
and within the tenant the caller that has had least. Every few turns the one that has waited longest goes first, whoever
it is, so that nobody waits for ever. The last place of the quick lane is kept for who has had least, of those who asked
lately, so that they find it free; and who has had less than half of what those have had who run long requests has one
more beside them. While such a one runs, the others wait where they can.
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
"""Accounts and costs that are remembered."""
_RETRY_S_MAX = 60
_LATELY_MAX = 64
"""Tenants that are asked after when the last place is given away."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many run and wait; what is quick. Times are in seconds."""

    quick: int = 2
    long: int = 1
    work: int = 4
    moved: int = 2
    """Requests that were moved out of the quick lane while they ran: so many, beside those of the long lane."""
    waiting_max: int = 2000
    waiting_per_tenant_max: int = 200
    quick_s: float = 0.1
    """Processor time up to which a request is quick."""
    half_life_s: float = 5.0
    """In which half of what somebody had is forgotten."""
    lately_s: float = 10.0
    """For which the last place of the quick lane is kept for a tenant that asked."""
    oldest_every: int = 8
    """Turns of a lane, of which one is for whoever has waited longest."""


@dataclass(eq=False, slots=True)
class Job:
    """One request, or a part of a long answer."""

    tenant: str
    caller: str
    """Who asks within the tenant: a key and a user."""
    route: str
    lane: Lane = "quick"
    entered_s: float = 0.0
    started_s: float | None = None
    number: int = 0
    is_moved: bool = False
    is_first: bool = False
    """Did its tenant have least when it was started, of several who asked lately?"""

    def runs_for(self, now_s: float) -> float:
        """Seconds since it was started."""
        return 0.0 if self.started_s is None else now_s - self.started_s


class LaneCounts(NamedTuple):
    """A lane as it stands, and what it has done since the server began."""

    waiting: int
    oldest_s: float
    """How long the oldest that waits has waited; 0 where none does."""
    running: int
    started: int
    waited_s: float
    """All waits together."""
    used_s: float
    """Processor time."""
    refused: int
    stopped: int
    """Those that were taken out before they had begun."""


@dataclass(slots=True)
class _Totals:
    started: int = 0
    waited_s: float = 0.0
    used_s: float = 0.0
    refused: int = 0
    stopped: int = 0
    turns: int = 0


def _left(passed_s: float, half_life_s: float) -> float:
    """The share that is left after a time in which half is forgotten every so many seconds."""
    return math.pow(2.0, -passed_s / half_life_s)


@dataclass(slots=True)
class _Account:
    """What somebody has had lately."""

    used_s: float = 0.0
    at_s: float = 0.0
    running: list[Job] = field(default_factory=list)

    def had(self, now_s: float, half_life_s: float) -> float:
        """With what runs: it counts from its start, not from its end."""
        kept = self.used_s * _left(now_s - self.at_s, half_life_s)
        return kept + sum(each.runs_for(now_s) for each in self.running)

    def charge(self, seconds: float, now_s: float, half_life_s: float) -> None:
        self.used_s = self.used_s * _left(now_s - self.at_s, half_life_s) + seconds
        self.at_s = now_s


class Shares:
    """Not thread-safe: whoever holds it takes turns."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._waiting: dict[Lane, list[Job]] = {lane: [] for lane in LANES}
        self._running: dict[Lane, int] = dict.fromkeys(LANES, 0)
        self._moved = 0
        self._firsts = 0
        self._long_of: list[str] = []
        """The tenants of what runs in the long lane."""
        self._accounts: OrderedDict[tuple[str, str], _Account] = OrderedDict()
        self._asked_s: OrderedDict[str, float] = OrderedDict()
        """When each tenant asked last, in that order."""
        self._costs: OrderedDict[tuple[str, str, str], tuple[float, float]] = OrderedDict()
        """What a request took the last time, and the time before."""
        self._waiting_of: dict[str, int] = {}
        self._totals = {lane: _Totals() for lane in LANES}
        self._number = 0

    # -- coming and going -----------------------------------------------------------------------------

    def expected_s(self, job: Job) -> float:
        """What it will take, by what its like took lately."""
        own = self._costs.get((job.tenant, job.caller, job.route))
        return min(self._costs.get((job.tenant, "", job.route), (0.0,)) if own is None else own)

    def enter(self, job: Job, now_s: float, *, lane: Lane | None = None) -> None:
        """Let a job wait for its turn, in the lane that is named or in the one for what it will take."""
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
        """Take out a job that waits; False where it does not."""
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
        """The job whose turn it is, which runs from now on; None where nobody waits that may run."""
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
        """With the one of the long lane that is kept."""
        return getattr(self.limits, lane) + (lane == "long")  # type: ignore[no-any-return]

    def _may_have_last(self, job: Job, now_s: float) -> bool:
        """The last place of the quick lane is for who has had least; the one beside the long lane for who has had less
        than half of what those have had who run there."""
        if job.lane == "quick":
            return self._is_least(job, now_s)
        twice_s = 2 * self._had(job.tenant, now_s)
        return all(tenant != job.tenant and twice_s < self._had(tenant, now_s) for tenant in self._long_of)

    def _is_least(self, job: Job, now_s: float) -> bool:
        """Has its tenant had least, of those who asked lately: waiting or not?"""
        had_s = self._had(job.tenant, now_s)
        return all(self._had(tenant, now_s) >= had_s for tenant in self._others(job, now_s))

    def _others(self, job: Job, now_s: float) -> list[str]:
        """The other tenants that asked lately; of many, the last."""
        since_s = now_s - self.limits.lately_s
        newest = islice(reversed(self._asked_s.items()), _LATELY_MAX)
        return [tenant for tenant, asked_s in newest if asked_s >= since_s and tenant != job.tenant]

    def _had(self, tenant: str, now_s: float) -> float:
        account = self._accounts.get((tenant, ""))
        return 0.0 if account is None else account.had(now_s, self.limits.half_life_s)

    def _least(self, names: Iterable[tuple[str, str]], now_s: float) -> tuple[str, str]:
        """Who has had least; of those who have had the same, who runs least, and then who came first."""

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
        """A quick job that has taken more than a quick one may gives its place up and runs on; False where it may not,
        for too many have."""
        if job.lane != "quick" or job.started_s is None or self._moved >= self.limits.moved:
            return False
        self._learn(job, used_s)
        self._running["quick"] -= 1
        self._moved += 1
        job.lane, job.is_moved = "long", True
        self._long_of.append(job.tenant)
        return True

    def finish(self, job: Job, used_s: float, now_s: float) -> None:
        """A job has run, for so much of the processor."""
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
        """Remember what it took, in the place of what was said of it when it was moved."""
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
        """Of what runs, the rank that goes before all others: see `rank_of`."""
        return 0 if self._firsts else 1 if self._running["quick"] else 2

    @staticmethod
    def rank_of(job: Job) -> int:
        """0 for who has had least, 1 for the quick, 2 for the rest: who runs waits for those of a lower one."""
        return 0 if job.is_first else 1 if job.lane == "quick" else 2

    def counts(self, now_s: float) -> dict[Lane, LaneCounts]:
        """Each lane as it stands."""
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
