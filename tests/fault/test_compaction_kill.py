"""Crashes around a snapshot: at every boundary of every transaction, and by kill -9 (CS-08, CS-12).

Whatever was acknowledged is there, no snapshot is half there, and a run taken up again is what its ledger says.
MUNIMENT_KILL_ROUNDS sets the number of rounds (default 20, of which a fifth is told here).
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import muniment
from deployments import FreshStore, on
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.core.ports.engine import Engine, Insert, Patch, Put
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import Teller, check_run, random_script, replayed
from warm_commands import start_script

RUNNER = Path(__file__).parent / "kill_runner.py"
ROUNDS = max(4, int(os.environ.get("MUNIMENT_KILL_ROUNDS", "20")) // 5)
POLICY = Policy.from_wire({"compaction": {"event_threshold": 3, "step_fallback": 2}})


class Crash(Exception):
    """The process is gone, as far as the caller can tell."""


class Fragile:
    """An engine that breaks at one moment, of all those at which the store is or is about to be changed."""

    def __init__(self, inner: Engine, breaks_at: int) -> None:
        self.inner, self.breaks_at, self.moment = inner, breaks_at, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def tick(self) -> None:
        self.moment += 1
        if self.moment == self.breaks_at:
            raise Crash

    def write(self, tenant_id: str, work: Callable[[Any], Any]) -> Any:
        self.tick()  # before the transaction
        answer = self.inner.write(tenant_id, lambda tx: self._inside(tx, work))
        self.tick()  # after it: it is kept, though nobody was told
        return answer

    def _inside(self, tx: Any, work: Callable[[Any], Any]) -> Any:
        answer = work(_Ticking(tx, self))
        self.tick()  # before it is committed
        return answer


class _Ticking:
    """A transaction that may break before each of its changes."""

    def __init__(self, tx: Any, fragile: Fragile) -> None:
        self.tx, self.fragile = tx, fragile

    def do(self, op: Any) -> Any:
        if isinstance(op, Insert | Put | Patch):
            self.fragile.tick()
        return self.tx.do(op)

    def stream(self, select: Any) -> Any:
        return self.tx.stream(select)


def memory_on(engine: Engine) -> Memory:
    return Memory(new_context(engine=engine, policy=POLICY, clock=clock, ids=ids))


clock, ids = TickingClock(), CountingIds("f")
CALLS: list[tuple[str, Callable[[Run], Any]]] = [
    ("observe", lambda run: run.observe("user", "more words")),
    ("claim", lambda run: run.log.claim("a new claim", evidence=[next(iter(_events(run)))], status="verified")),
    ("retract", lambda run: run.log.retract_claim(run.log.claims("verified")[0].claim_id, reason="no")),
    ("step that compacts", lambda run: [run.log.step(event) for event in ("PLAN_DONE", "ACT_DONE", "OBSERVE_DONE")]),
    ("compact", lambda run: [run.log.question("so?"), run.log.compact()]),
]


def _events(run: Run) -> Iterator[str]:
    return (entry.id for entry in run.ledger.entries() if entry.role == "user" and entry.body)


def begin(mem: Memory, run_id: str) -> Run:
    run = mem.run(user_id="ana", session_id="s1", run_id=run_id, objective="go on")
    run.observe("user", "The capital of France is Paris.")
    Teller(mem, [run]).tell_all(random_script(5, 25))
    for number in range(10):
        run.log.claim(f"claim {number}", evidence=[next(iter(_events(run)))], status="verified")
    return run


@pytest.mark.soak
@pytest.mark.req("CS-08", "CS-12", "LG-06")
@on("memory", "postgres")
@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_a_crash_at_every_boundary(
    deployment: str, fresh_store: FreshStore, name: str, call: Callable[[Run], Any]
) -> None:
    del name
    step = 1 if deployment == "memory" else 5
    with fresh_store() as store:
        crashes, breaks_at = 0, 1
        steady = open_engine(store.target)
        run = begin(memory_on(steady), "r1")
        before = len(list(run.ledger.entries()))
        while True:
            fragile = Fragile(steady, breaks_at)
            mem = memory_on(fragile)
            handle = mem.resume("r1").run
            acknowledged = handle.log.read()
            sequences = [snapshot.sequence for snapshot in memory_on(steady).log.snapshots("r1")]
            fragile.moment = 0
            try:
                call(handle)
            except Crash:
                crashes += 1
            else:
                break
            after = memory_on(steady)
            resumed = after.resume("r1")
            log = resumed.log
            assert resumed.rejected == ()
            assert log == replayed(after, resumed.run)
            assert after.verify().ok
            assert {claim.claim_id for claim in acknowledged.claims} <= {claim.claim_id for claim in log.claims}
            assert [each.sequence for each in after.log.snapshots("r1")][: len(sequences)] == sequences
            assert len(list(run.ledger.entries())) >= before
            breaks_at += step
        assert crashes >= (6 if step == 1 else 2), "it broke too seldom: the test tests nothing"
        check_run(memory_on(steady), run)
        assert memory_on(steady).store.rebuild().repaired == ()
        steady.close()


# -- kill -9 ------------------------------------------------------------------------------------------


def killed(place: str | None, arguments: list[str], acks: Path, lines: int, delay_s: float) -> None:
    """Start the runner, wait until it has acknowledged so many calls, and a moment more, and kill it."""
    process = start_script(place, RUNNER, *arguments)
    try:
        deadline = time.monotonic() + 240
        while process.poll() is None and not (acks.exists() and acks.read_bytes().count(b"\n") > lines):
            assert time.monotonic() < deadline, "the runner did not start"
            time.sleep(0.002)
        time.sleep(delay_s)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    assert process.returncode == -signal.SIGKILL, f"the runner ended by itself: {process.returncode}"


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("CS-08", "CS-12")
@on("sqlite")
def test_a_runner_is_killed(fresh_store: FreshStore, tmp_path: Path, warm_place: str | None) -> None:
    with fresh_store() as store:
        run_and_kill(warm_place, store.target, tmp_path)


def run_and_kill(place: str | None, path: str, tmp_path: Path) -> None:
    chance, told = random.Random(20260501), 0
    for number in range(ROUNDS):
        acks = tmp_path / f"acks{number}"
        killed(place, [path, str(acks), str(number)], acks, chance.randrange(1, 16), chance.uniform(0, 0.03))
        lines = [json.loads(line) for line in acks.read_bytes().split(b"\n")[:-1]]
        last = lines[-1]
        with muniment.open(path) as mem:
            assert mem.verify().ok
            resumed = mem.resume("r1")
            assert resumed.rejected == ()
            assert resumed.log == replayed(mem, resumed.run)
            assert resumed.log.objective == "go on"
            if last:
                told += 1
                assert len(resumed.log.claims) >= last["claims"]
                assert resumed.log.spent.counted_events >= last["steps"]
                assert resumed.log.sequence >= (last["snapshot"] or 0)
            taken = [snapshot.sequence for snapshot in mem.log.snapshots("r1")]
            assert taken == list(range(1, len(taken) + 1))
            if taken:
                assert mem.log.check_snapshot("r1").status == "PASS"
    assert told > ROUNDS // 2, "most rounds were killed before they did anything: the test tests nothing"
    with muniment.open(path) as mem:
        check_run(mem, mem.resume("r1").run)
        assert mem.store.rebuild().repaired == ()
