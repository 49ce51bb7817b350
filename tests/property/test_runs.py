"""Random runs: a run taken up again is the run that went on, whatever it did and wherever it was snapshot (CS-12)."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from deployments import FreshStore, Stores, on
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.core.ports.engine import Engine
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.runs.records import RunLog
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import ACTS, Act, Teller, check_run, random_script, replayed

NOW = "2026-06-01T12:00:00Z"
POLICY = Policy.from_wire({"compaction": {"event_threshold": 5, "step_fallback": 3, "seen_max": 3, "manifests_max": 2}})
ROUNDS = max(1, int(os.environ.get("MUNIMENT_SOAK", "40")) // 40)
"""`make soak` tells many more stories."""
small = st.integers(0, 96)


def scripts(acts: tuple[str, ...]) -> st.SearchStrategy[list[Act]]:
    return st.lists(st.tuples(st.sampled_from(acts), small, small, small), max_size=40)


def memory_on(engine: Engine, policy: Policy = POLICY) -> Memory:
    return Memory(new_context(engine=engine, policy=policy, clock=TickingClock(), ids=CountingIds("a")))


def two_runs(mem: Memory) -> list[Run]:
    """Two runs in one session and a third in another."""
    return [
        mem.run(user_id="ana", session_id="s1", run_id="r1", objective="find out", done_definition={"claims": 3}),
        mem.run(user_id="ana", session_id="s1", run_id="r2", budgets={"tokens": 500}),
        mem.run(user_id="ana", session_id="s2", run_id="r3", objective="check", done_definition="done"),
    ]


def begun(mem: Memory, runs: list[Run]) -> list[Run]:
    return [run for run in runs if run.state() is not None]


def same_packets(mem: Memory, run: Run) -> None:
    """A packet composed after a break is the packet of the handle that went on, byte for byte."""
    asked = {"query": "What is the capital?", "max_tokens": 800, "now": NOW}
    went_on = run.compose("planner", **asked)  # type: ignore[arg-type]
    taken_up = mem.resume(run.run_id).run.compose("planner", **asked)  # type: ignore[arg-type]
    assert taken_up.packet_bytes == went_on.packet_bytes


@pytest.mark.soak
@pytest.mark.req("CS-01", "CS-02", "CS-05", "CS-06", "CS-07", "CS-11", "CS-12")
@settings(deadline=None, max_examples=25 * ROUNDS, suppress_health_check=list(HealthCheck))
@given(script=scripts((*ACTS, "forget")))
def test_a_run_taken_up_again_is_the_run_that_went_on(script: list[Act]) -> None:
    with memory_on(open_engine(":memory:")) as mem:
        runs = two_runs(mem)
        Teller(mem, runs).tell_all(script)
        for run in begun(mem, runs):
            check_run(mem, run)
        for run in begun(mem, runs)[:1]:
            same_packets(mem, run)
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()


@pytest.mark.soak
@pytest.mark.req("CS-12")
@settings(deadline=None, max_examples=30 * ROUNDS, suppress_health_check=list(HealthCheck))
@given(script=scripts(ACTS))
def test_what_happened_between_two_events_changes_nothing_of_a_snapshot(script: list[Act]) -> None:
    """Told with snapshots or without any, the log is the same but for what speaks of snapshots."""
    whole: list[list[RunLog]] = []
    for auto in (True, False):
        policy = POLICY.model_copy(update={"compaction": POLICY.compaction.model_copy(update={"auto": auto})})
        context = new_context(engine=open_engine(":memory:"), policy=policy, clock=TickingClock(), ids=StableIds())
        with Memory(context) as mem:
            runs = two_runs(mem)
            Teller(mem, runs).tell_all(act for act in script if auto or act[0] != "compact")
            whole.append([without_snapshots(replayed(mem, run)) for run in begun(mem, runs)])
    assert whole[0] == whole[1]


class StableIds(CountingIds):
    """Ids that count what is told, not what is minted: entries of snapshots take none of the others'."""

    def __init__(self) -> None:
        super().__init__()
        self._by_prefix: dict[str, int] = {}

    def new(self, prefix: str) -> str:
        if prefix == "evt":
            return super().new(prefix)
        self._by_prefix[prefix] = self._by_prefix.get(prefix, 0) + 1
        return f"{prefix}_{self._by_prefix[prefix]:04d}"


def without_snapshots(log: RunLog) -> object:
    """What does not depend on where the entries of snapshots stand in the chain, with entry ids left out."""
    return (
        log.objective,
        log.spent.steps,
        log.spent.counted_events,
        log.spent.tool_calls,
        log.spent.tokens,
        (log.step, log.phase, log.last_action, log.repeats, log.loops),
        [(claim.claim_id, claim.status, claim.statement, len(claim.evidence_refs)) for claim in log.claims],
        [(each.conflict_id, each.status) for each in log.conflicts],
        [(each.failure_id, each.count) for each in log.failures],
        [each.text for each in log.open_questions],
        log.next_actions,
    )


@pytest.mark.soak
@pytest.mark.req("CS-12", "LG-04")
@on("sqlite", "postgres")
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_on_every_engine_and_after_a_move(deployment: str, stores: Stores, seed: int) -> None:
    others = [name for name in ("sqlite", "postgres") if name != deployment]
    with ExitStack() as stack:

        def opened(name: str) -> Memory:
            return stack.enter_context(memory_on(open_engine(stack.enter_context(stores(name)).target)))

        mem = opened(deployment)
        runs = two_runs(mem)
        Teller(mem, runs).tell_all(random_script(seed, 140, (*ACTS, "forget")))
        told = [check_run(mem, run) for run in begun(mem, runs)]
        assert any(log.sequence > 2 for log in told), "the story has no snapshots: the test tests nothing"
        lines = list(mem.export())
        for other in others:
            moved = opened(other)
            moved.import_(lambda: lines)
            again = [moved.resume(log.run_id).run for log in told]
            assert [check_run(moved, run) for run in again] == told
            assert moved.store.rebuild().repaired == ()
            assert list(moved.export()) == lines


TELL = """
import sys, muniment
with muniment.open(sys.argv[1]) as mem:
    for state in mem.runs(user_id="ana"):
        print(mem.resume(state.run_id).log.to_bytes().decode())
"""


@pytest.mark.req("CS-12")
@on("sqlite")
def test_another_process_takes_up_the_same_runs(fresh_store: FreshStore) -> None:
    with fresh_store() as store, memory_on(open_engine(store.target), Policy()) as mem:
        runs = two_runs(mem)
        Teller(mem, runs).tell_all(random_script(7, 120))
        done = subprocess.run([sys.executable, "-c", TELL, store.target], capture_output=True, text=True, check=True)
        assert sorted(done.stdout.splitlines()) == sorted(run.log.read().to_bytes().decode() for run in runs)
