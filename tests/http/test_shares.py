"""Whose turn it is, decided without threads and by a clock of the test's own: scripted jobs go through the account."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.errors import Overloaded, QueueFull
from muniment.surfaces.http.lanes.shares import Job, Lane, Limits, Shares


@dataclass
class Script:
    """A server of so many places, in which time passes as jobs end: one after the other, the next one to end first."""

    shares: Shares
    now_s: float = 0.0
    events: list[tuple[float, int, str, Job]] = field(default_factory=list)
    order: list[Job] = field(default_factory=list)
    costs: dict[Job, float] = field(default_factory=dict)

    def ask(self, tenant: str, cost_s: float, route: str = "r", caller: str = "k u", lane: Lane | None = None) -> Job:
        job = Job(tenant, caller, route)
        self.costs[job] = cost_s
        self.shares.enter(job, self.now_s, lane=lane)
        self.start()
        return job

    def start(self) -> None:
        while (job := self.shares.next(self.now_s)) is not None:
            self.order.append(job)
            self.events.append((self.now_s + self.costs[job], job.number, "end", job))
            if self.costs[job] > self.look_s and job.lane == "quick":
                self.events.append((self.now_s + self.look_s, job.number, "look", job))

    @property
    def look_s(self) -> float:
        """After which a server looks what a quick job has taken."""
        return 2 * self.shares.limits.quick_s

    @property
    def running(self) -> list[Job]:
        return [job for _, _, kind, job in self.events if kind == "end"]

    def step(self) -> bool:
        """Until a job has ended, or was seen to be long."""
        if not self.events:
            return False
        event = min(self.events, key=lambda each: each[:3])
        self.events.remove(event)
        self.now_s = max(self.now_s, event[0])
        if event[2] == "look":
            self.shares.move(event[3], self.look_s)
        else:
            self.shares.finish(event[3], self.costs[event[3]], self.now_s)
        self.start()
        return True

    def run(self) -> None:
        for _ in range(100_000):
            if not self.step():
                return
        raise AssertionError("it does not end")


def waits(script: Script, tenant: str) -> list[float]:
    return [(job.started_s or 0.0) - job.entered_s for job in script.order if job.tenant == tenant]


def test_who_has_had_little_goes_before_who_has_had_much() -> None:
    script = Script(Shares(Limits(quick=1)))
    for _ in range(20):
        script.ask("heavy", 0.04)
    script.step()
    late = script.ask("light", 0.01)
    script.step()
    assert script.order.index(late) == 2, "behind the one that ran, and the eighteen others wait"
    assert waits(script, "light") == [pytest.approx(0.04)]


def test_within_a_tenant_callers_take_turns_too() -> None:
    script = Script(Shares(Limits(quick=1)))
    for _ in range(6):
        script.ask("t", 0.01, caller="k noisy")
    quiet = script.ask("t", 0.01, caller="k quiet")
    script.run()
    assert script.order.index(quiet) == 1


def test_what_is_known_to_be_long_waits_for_a_place_of_its_own() -> None:
    script = Script(Shares())
    for _ in range(2):  # it takes two to know
        script.ask("heavy", 5.0)
        script.run()
    long = [script.ask("heavy", 5.0) for _ in range(3)]
    quick = script.ask("light", 0.01)
    assert [job.lane for job in long] == ["long"] * 3
    assert quick.started_s == script.now_s, "both places of the quick lane are free"
    assert sum(job.started_s is not None for job in long) == 1, "one at a time"
    other = script.ask("heavy", 0.01, route="another")
    assert other.lane == "quick"


def test_a_single_slow_request_moves_nobody_and_a_quick_one_moves_back() -> None:
    script = Script(Shares())
    for cost_s, lane in ((0.9, "quick"), (0.01, "quick"), (0.9, "quick"), (0.9, "quick"), (0.01, "long")):
        job = script.ask("t", cost_s)
        assert job.started_s is not None
        first = job.lane
        script.run()
        assert first == lane
    assert script.ask("t", 0.01).lane == "quick"


def test_a_user_nobody_knows_is_taken_for_one_of_its_tenants() -> None:
    script = Script(Shares())
    for caller in ("k a", "k b"):
        script.ask("t", 5.0, caller=caller)
        script.run()
    assert script.ask("t", 5.0, caller="k c").lane == "long"
    assert script.ask("other", 5.0, caller="k c").lane == "quick"


def test_long_requests_of_nobody_known_give_their_places_up() -> None:
    script = Script(Shares(Limits(quick=2, moved=2)))
    for number in range(2):
        script.ask("heavy", 30.0, route=f"r{number}")
    waiting = script.ask("light", 0.01)
    for _ in range(3):
        script.step()
    assert waits(script, "light") == [pytest.approx(script.look_s)], "no longer than it takes to see that they are long"
    assert waiting in script.order
    assert script.shares.counts(0.0)["long"].running == 2


def test_the_last_place_is_kept_for_who_has_had_least() -> None:
    """Two tenants ask for quick things as fast as they can; a third that asks now and then never waits."""
    script = Script(Shares(Limits(quick=2, lately_s=10)))
    for number in range(200):
        for tenant in ("north", "south"):
            while sum(job.tenant == tenant for job in script.shares._waiting["quick"]) < 4:
                script.ask(tenant, 0.04, route=f"r{number % 3}")
        if number % 5 == 0:
            script.ask("east", 0.01)
        script.step()
    assert len(waits(script, "east")) == 40
    assert max(waits(script, "east")) < 0.041, "one quick job"
    assert sum(wait > 0 for wait in waits(script, "east")) <= 1, "the first one is of nobody who asked lately"
    north, south = len(waits(script, "north")), len(waits(script, "south"))
    assert abs(north - south) <= 3, "the two share what is left"
    script.run()
    script.now_s += 10.1
    alone = [script.ask("north", 0.04) for _ in range(2)]
    assert [job.started_s for job in alone] == [script.now_s] * 2, "of nobody else, all places"


def test_who_has_had_little_need_not_wait_for_the_long_ones_of_others() -> None:
    script = Script(Shares())
    for tenant, cost_s in (("heavy", 3.0), ("heavy", 3.0), ("heavy", 3.0), ("light", 0.3), ("light", 0.3)):
        script.ask(tenant, cost_s)
        script.run()
    first, second = script.ask("heavy", 3.0), script.ask("heavy", 3.0)
    light, another = script.ask("light", 0.3), script.ask("light", 0.3)
    assert {job.lane for job in (first, second, light, another)} == {"long"}
    assert (first.started_s, second.started_s, light.started_s) == (script.now_s, None, script.now_s)
    assert another.started_s is None, "one beside them"
    assert [Shares.rank_of(job) for job in (light, first)] == [0, 2], "and they wait for it where they can"
    assert script.shares.rank == 0
    script.run()
    assert script.shares.rank == 2


def test_a_queue_is_bounded_for_each_tenant_and_for_all() -> None:
    shares = Shares(Limits(quick=1, waiting_per_tenant_max=3, waiting_max=5))
    script = Script(shares)
    for _ in range(4):
        script.ask("a", 0.04)
    with pytest.raises(QueueFull) as full:
        script.ask("a", 0.04)
    assert full.value.status == 429
    assert full.value.details["retry_after_s"] >= 1
    for _ in range(2):
        script.ask("b", 0.04)
    with pytest.raises(Overloaded) as all_full:
        script.ask("c", 0.04)
    assert (all_full.value.status, all_full.value.code) == (503, "overloaded")
    counts = shares.counts(0.0)["quick"]
    assert (counts.waiting, counts.running, counts.refused) == (5, 1, 2)
    script.run()
    assert shares.counts(0.0)["quick"].waiting == 0
    assert not shares._waiting_of, "nothing is held of who waits no more"


def test_who_leaves_the_queue_is_not_carried_out() -> None:
    script = Script(Shares(Limits(quick=1)))
    script.ask("a", 0.01)
    gone = script.ask("a", 0.01)
    assert script.shares.leave(gone)
    assert not script.shares.leave(gone)
    script.run()
    assert gone not in script.order
    assert script.shares.counts(0.0)["quick"].stopped == 1


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.surfaces.http.lanes.shares._HELD_MAX", 50)
    script = Script(Shares())
    for number in range(200):
        script.ask(f"t{number}", 0.01)
        script.run()
    shares = script.shares
    assert max(len(shares._accounts), len(shares._costs), len(shares._asked_s)) <= 50


JOBS = st.lists(
    st.tuples(
        st.sampled_from(("a", "b", "c", "d")),
        st.sampled_from((0.001, 0.01, 0.04, 0.3, 2.0)),
        st.sampled_from(("r", "s")),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=60,
)


@settings(deadline=None, max_examples=60)
@given(JOBS, st.integers(1, 3), st.integers(1, 2))
def test_nobody_starves_and_no_place_stays_empty(
    jobs: list[tuple[str, float, str, int]], quick: int, long: int
) -> None:
    """Whatever is asked: all of it is carried out, once; and whenever somebody waits in a lane, its places are taken,
    or the one that is free is kept for who has had least."""
    script = Script(Shares(Limits(quick=quick, long=long)))
    asked = []
    for tenant, cost_s, route, steps in jobs:
        asked.append(script.ask(tenant, cost_s, route))
        for _ in range(steps):
            script.step()
        counts = script.shares.counts(0.0)
        if counts["long"].waiting:
            assert counts["long"].running >= long, "and one more for who has had less than half"
        if counts["quick"].waiting:
            running = sum(job.lane == "quick" for job in script.running)
            waiting = {job.tenant for job in script.shares._waiting["quick"]}
            least = min(("a", "b", "c", "d"), key=lambda each: script.shares._had(each, script.now_s))
            assert running == quick or (running == quick - 1 and least not in waiting)
    script.run()
    assert sorted(job.number for job in script.order) == sorted(job.number for job in asked)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from((0.02, 0.05, 0.8, 3.0)), min_size=4, max_size=40), st.integers(0, 12))
def test_a_light_tenant_waits_for_one_quick_job_at_the_most(costs: list[float], steps: int) -> None:
    """Two tenants ask for all they can; what a third asks for waits no longer than until a quick one has ended, or has
    turned out to be long: never for a queue, nor for a long one."""
    script = Script(Shares(Limits(moved=64)))
    for at, cost_s in enumerate(costs):
        script.ask("north" if at % 2 else "south", cost_s, route=f"r{cost_s}")
    for _ in range(steps):
        script.step()
    job = script.ask("east", 0.005)
    script.run()
    assert (job.started_s or 0.0) - job.entered_s <= 2 * script.shares.limits.quick_s + 1e-9


def test_a_heavy_tenant_is_served_however_many_new_ones_come() -> None:
    """Tenants that never asked before go first, but not for ever: every eighth turn is for who has waited longest."""
    script = Script(Shares(Limits(quick=1)))
    for _ in range(30):
        script.ask("heavy", 0.04)
        script.run()
    last = script.ask("first", 0.04)
    waiting = script.ask("heavy", 0.04)
    for number in range(40):
        script.ask(f"new {number}", 0.04)
        script.ask(f"newer {number}", 0.04)
        script.step()
    assert last in script.order
    assert waiting in script.order
    assert script.order.index(waiting) - script.order.index(last) <= 8
