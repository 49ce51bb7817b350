"""Taking a run up again: what it is for is pinned (CS-05), its log is that of the ledger (CS-12); clocks, `aio`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment import aio
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.errors import ClockWentBack, Conflict, InvalidInput, MunimentError, NotFound
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.testing.stories import Teller, check_run, random_script, replayed
from products import for_each

Maker = Callable[..., Memory]
Counts = Callable[[Memory], dict[str, int]]


def begin(mem: Memory, **said: Any) -> Run:
    return mem.run(user_id="ana", session_id="s1", run_id="r1", **said)


# -- what a run is for --------------------------------------------------------------------------------


@pytest.mark.req("CS-05")
@pytest.mark.parametrize(
    "other",
    [
        {"objective": "something else"},
        {"objective": ""},
        {"done_definition": {"claims": 2}},
        {"done_definition": "one claim"},
        {"budgets": {"tokens": 2000}},
        {"budgets": {}},
    ],
)
def test_what_a_run_is_for_never_changes(mem: Memory, counts: Counts, other: dict[str, Any]) -> None:
    pinned = {"objective": "find out", "done_definition": {"claims": 1}, "budgets": {"tokens": 1000}}
    early = begin(mem, **(pinned | other))  # before the first write nobody knows yet
    run = begin(mem, **pinned)
    run.observe("user", "begin")
    run.log.compact()
    before = counts(mem)
    for call in (
        lambda: begin(mem, **(pinned | other)),
        lambda: early.observe("user", "by another handle"),
        lambda: early.log.step("PLAN_DONE"),
        lambda: early.log.claim("by another handle"),
    ):
        with pytest.raises(Conflict, match="started with another") as caught:
            call()
        assert caught.value.path == f"$.{next(iter(other))}"
        assert caught.value.hint
    assert counts(mem) == before
    begin(mem, **pinned).observe("user", "the same again is fine")
    begin(mem).observe("user", "so is nothing")
    log = mem.resume("r1").log
    assert (log.objective, log.done_definition, log.budgets) == tuple(pinned.values())
    run.log.question("so far?")
    snapshot = run.log.compact()
    assert snapshot is not None
    assert (snapshot.objective, snapshot.done_definition) == ("find out", {"claims": 1})


@pytest.mark.req("CS-05")
def test_a_run_that_was_told_nothing_is_told_nothing_later(mem: Memory) -> None:
    begin(mem).observe("user", "begin")
    with pytest.raises(Conflict):
        begin(mem, objective="now I know")


@for_each(
    "budgets",
    [[], "1000", {"tokens": "many"}, {"tokens": -1}, {"tokens": True}, {3: 4}, {"tokens": None},
     {"tokens": float("nan")}, {"tokens": float("inf")}, {"tokens": {"max": 1}}],
)  # fmt: skip
def test_budgets_of_the_wrong_kind_are_refused(mem: Memory, counts: Counts, budgets: Any) -> None:
    before = counts(mem)
    with pytest.raises(InvalidInput) as caught:
        begin(mem, budgets=budgets).observe("user", "begin")
    assert (caught.value.path or "").startswith("$.budgets")
    assert counts(mem) == before


def test_budgets_and_what_was_used(mem: Memory) -> None:
    run = begin(mem, budgets={"tokens": 100, "cost": 0.5})
    run.observe_tool("t", content="x")
    run.log.step("ACT_DONE", tokens=40)
    run.log.compact()
    run.log.step("OBSERVE_DONE", tokens=2)
    assert run.log.budgets()["limits"] == {"tokens": 100, "cost": 0.5}
    used = run.log.budgets()["used"]
    assert isinstance(used, dict)
    assert (used["tokens"], used["steps"], used["tool_calls"], used["counted_events"]) == (42, 1, 1, 2)


# -- runs that are not there --------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", ["r9", "", "evt_1", None, 3, ["r1"]])
def test_runs_that_do_not_exist(mem: Memory, counts: Counts, run_id: Any) -> None:
    begin(mem).observe("user", "begin")
    before = counts(mem)
    calls: list[Callable[[], Any]] = [
        lambda: mem.resume(run_id),
        lambda: mem.resume(run_id, repair=True),
        lambda: mem.log.run_state(run_id),
        lambda: mem.log.snapshot(run_id),
        lambda: mem.log.snapshots(run_id),
        lambda: mem.log.check_snapshot(run_id),
        lambda: mem.log.narrative(run_id),
    ]
    for call in calls:
        with pytest.raises((NotFound, InvalidInput)) as caught:
            call()
        assert caught.value.path == "$.run_id"
    with pytest.raises(NotFound):
        mem.resume("r1", tenant_id="acme")
    assert counts(mem) == before


@pytest.mark.parametrize("sequence", [0, -1, 2, True, "1", 1.5])
def test_snapshots_that_do_not_exist(mem: Memory, sequence: Any) -> None:
    run = begin(mem)
    run.observe("user", "begin")
    with pytest.raises(NotFound):
        mem.log.snapshot("r1")
    run.log.compact()
    for call in (mem.log.snapshot, mem.log.check_snapshot, mem.log.narrative):
        with pytest.raises((NotFound, InvalidInput)) as caught:
            call("r1", sequence)
        assert caught.value.path == "$.sequence"


def test_runs_are_listed_as_they_stand(any_mem: Memory) -> None:
    one = begin(any_mem, objective="one")
    one.observe("user", "begin")
    any_mem.run(user_id="bob", run_id="r2").observe("user", "begin")
    one.finish("NO_EVIDENCE")
    assert [(run.run_id, run.stop_reason) for run in any_mem.runs()] == [("r1", "NO_EVIDENCE"), ("r2", None)]
    assert [run.run_id for run in any_mem.runs(user_id="bob")] == ["r2"]
    assert any_mem.runs(tenant_id="acme") == []


# -- the log ------------------------------------------------------------------------------------------


@pytest.mark.req("CS-12")
def test_resuming_reads_the_snapshot_and_what_came_after(any_mem: Memory) -> None:
    run = begin(any_mem, objective="find out")
    for number in range(40):
        run.log.claim(f"claim {number}")
    run.log.compact()
    run.log.claim("after")
    run.observe("user", "after")
    resumed = any_mem.resume("r1")
    assert resumed.snapshot is not None
    assert (resumed.snapshot.sequence, resumed.tail, resumed.rejected) == (1, 3, ())  # its own entry is one of them
    assert resumed.log == replayed(any_mem, run)
    resumed.run.log.claim("by the resumed handle")
    assert len(run.log.claims()) == 42
    assert resumed.run.log.compact() == any_mem.log.snapshot("r1")


@pytest.mark.req("CS-12")
def test_a_run_without_a_snapshot_is_replayed(any_mem: Memory) -> None:
    run = begin(any_mem)
    run.log.claim("only this")
    resumed = any_mem.resume("r1")
    assert (resumed.snapshot, resumed.tail, resumed.rejected) == (None, 2, ())
    assert resumed.log == run.log.read()


@pytest.mark.req("CS-12")
def test_a_run_keeps_its_task_type_and_words_of_other_runs_stay_out(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1", run_id="r1", task_type="research", agent_id="scout")
    run.observe("user", "begin")
    mem.run(user_id="ana", session_id="s1", run_id="r2", agent_id="scout").log.claim("another run's")
    resumed = mem.resume("r1").run
    assert resumed.scope == run.scope
    assert resumed._task_type == "research"
    assert resumed.log.claims() == []


@pytest.mark.soak
@pytest.mark.req("CS-12", "X-05")
def test_the_packet_of_a_resumed_run_is_the_packet_of_the_run(any_mem: Memory) -> None:
    run = begin(any_mem, objective="find out")
    Teller(any_mem, [run]).tell_all(random_script(3, 60))
    asked: dict[str, Any] = {"query": "What is the capital?", "now": "2026-06-01T12:00:00Z", "max_tokens": 700}
    for purpose in ("planner", "responder"):
        went_on = run.compose(purpose, **asked)
        assert any_mem.resume("r1").run.compose(purpose, **asked).packet_bytes == went_on.packet_bytes


def test_an_observation_with_a_run_event_is_refused(mem: Memory, counts: Counts) -> None:
    """What the run says of itself nobody else can say."""
    run = begin(mem)
    run.observe("user", "begin")
    before = counts(mem)
    for kind, event in (
        ("state_patch", "claim_made"),
        ("state_patch", "claim_verified"),
        ("state_patch", "snapshot_taken"),
        ("state_patch", "question_closed"),
        ("system", "run_unlocked"),
        ("system", "run_locked"),
        ("system", "run_started"),
    ):
        said = {
            "kind": kind,
            "role": "system",
            "content": "",
            "metadata": {"event": event, "id": "c1", "statement": "x"},
        }
        with pytest.raises(InvalidInput):
            run.observe_many([said])
    assert counts(mem) == before


def test_steps_that_were_brought_from_elsewhere_are_folded(any_mem: Memory) -> None:
    """Events of a foreign step machine, with numbers of their own or none, and names we do not know."""
    run = begin(any_mem)
    steps = [
        {"event": "PLAN_DONE"}, {"event": "ACT_DONE", "step": 7}, {"event": "OBSERVE_DONE", "step": 3},
        {"event": "SOMETHING", "step": 900}, {"event": "PLAN_DONE"}, {"event": "ACT_DONE", "action": {"a": 1}},
    ]  # fmt: skip
    for step in steps:
        run.observe_many([{"role": "system", "content": "", "step": step}])
        run.log.compact()
    log = check_run(any_mem, run)
    assert (log.step, log.phase, log.spent.steps, log.spent.counted_events) == (8, "ACT", 3, 5)
    assert [run.log.step(event).step.step for event in ("OBSERVE_DONE", "PLAN_DONE")] == [8, 9]  # type: ignore[union-attr]
    assert check_run(any_mem, run).step == 9


# -- clocks -------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_clock_that_goes_back(make: Maker, counts: Counts, engine: str) -> None:
    clock = TickingClock()
    mem = make(engine, clock=clock)
    run = begin(mem, objective="find out")
    said = run.observe("user", "begin")
    one = run.log.compact()
    assert one is not None
    now = clock()
    clock.set(now - timedelta(milliseconds=500))
    clock._step = timedelta(0)
    run.log.claim("a little earlier", evidence=[said.id], status="verified")
    run.log.step("PLAN_DONE")
    two = run.log.compact()
    assert two is not None
    assert two.created_at >= one.created_at
    stamps = [entry.recorded_at for entry in run.ledger.entries()]
    assert stamps == sorted(stamps)
    clock.set(datetime(2025, 1, 1, tzinfo=UTC))
    before = counts(mem)
    for call in (
        lambda: run.log.claim("a year earlier"),
        lambda: run.log.step("ACT_DONE"),
        lambda: run.log.question("when?"),
    ):
        with pytest.raises(ClockWentBack) as caught:
            call()
        assert caught.value.hint
    assert counts(mem) == before
    assert mem.resume("r1").log == replayed(mem, run)
    clock.set(now + timedelta(seconds=5))
    run.log.step("ACT_DONE")
    run.log.compact()
    check_run(mem, run)
    assert mem.store.rebuild().repaired == ()


# -- another process ----------------------------------------------------------------------------------

RACE = """
import sys, muniment
from muniment.errors import MunimentError
path, name = sys.argv[1:]
with muniment.open(path) as mem:
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    for number in range(12):
        said = run.observe("user", f"{name} {number}")
        run.log.claim(f"{name} said {number}", evidence=[said.id], status="verified")
        run.log.step("ACT_DONE")
        print(run.log.compact().sequence)
"""


@pytest.mark.soak
@pytest.mark.req("CS-01", "CS-12")
def test_two_processes_compact_one_run(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with muniment.open(path) as mem:
        run = begin(mem)
        run.observe("user", "begin")
        both = [
            subprocess.Popen([sys.executable, "-c", RACE, str(path), name], stdout=subprocess.PIPE, text=True)
            for name in ("one", "two")
        ]
        answers = [process.communicate(timeout=120)[0] for process in both]
        assert [process.returncode for process in both] == [0, 0]
        told = [int(line) for answer in answers for line in answer.split()]
        taken = [snapshot.sequence for snapshot in mem.log.snapshots("r1")]
        assert taken == list(range(1, len(taken) + 1))
        assert set(told) <= set(taken)
        assert (len(told), len(run.log.claims("verified"))) == (24, 24)
        check_run(mem, run)


# -- the async face -----------------------------------------------------------------------------------


async def story(mem: Any, run: Any) -> list[Any]:
    said = await run.observe("user", "It is Paris.")
    claim = await run.log.claim("Paris", evidence=[said.id])
    told = [
        await run.log.step("PLAN_DONE", tokens=3),
        claim,
        await run.log.verify_claim(claim.claim_id),
        await run.log.conflict("Which?", side_a=[said.id], side_b=[said.id]),
        await run.log.failure("a", "b", "c"),
        await run.log.question("How many?"),
        await run.log.plan_next(["look"]),
        await run.log.compact(),
        await run.log.close_question("How many?"),
        await run.log.settle_conflict((await run.log.conflicts())[0].conflict_id, resolution="a"),
        await run.log.retract_claim(claim.claim_id, reason="no"),
        await run.log.read(),
        await run.log.claims("retracted"),
        await run.log.failures(),
        await run.log.questions(),
        await run.log.budgets(),
        await mem.runs(),
        await mem.log.run_state("r1"),
        await mem.log.snapshot("r1"),
        await mem.log.check_snapshot("r1"),
        await mem.log.narrative("r1"),
    ]
    resumed = await mem.resume("r1")
    told += [resumed.log, resumed.snapshot, resumed.tail, resumed.rejected]
    await resumed.run.observe("user", "and it goes on")
    with pytest.raises(MunimentError):
        await resumed.run.log.unlock("not locked")
    return [*told, await run.log.read()]


class Sync:
    """The sync classes under `await`, to tell the same story twice."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if not callable(method):  # a further handle
            return Sync(method)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            answer = method(*args, **kwargs)
            if name != "resume":
                return answer
            from dataclasses import replace

            return replace(answer, run=Sync(answer.run))

        return awaited


def test_the_async_face_tells_the_same_story() -> None:
    async def asynchronous() -> list[Any]:
        async with await aio.open(":memory:", clock=TickingClock(), ids=CountingIds()) as mem:
            run = await mem.run(user_id="ana", session_id="s1", run_id="r1", objective="o")
            told = await story(mem, run)
            assert [each.sequence async for each in mem.log.snapshots("r1")] == [1]
            assert isinstance((await mem.resume("r1")).run, aio.AsyncRun)
            return told

    async def synchronous() -> list[Any]:
        with muniment.open(":memory:", clock=TickingClock(), ids=CountingIds()) as mem:
            return await story(Sync(mem), Sync(begin(mem, objective="o")))

    assert asyncio.run(asynchronous()) == asyncio.run(synchronous())


# -- many ---------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_a_long_run(make: Maker) -> None:
    """A further snapshot checks what changed since the last one."""
    mem = make("sqlite")
    run = begin(mem)
    said = run.observe("user", "begin")
    many = 400
    for number in range(many):
        run.log.claim(f"claim {number}", evidence=[said.id], status="verified")
    run.log.compact()
    run.log.claim("one more", evidence=[said.id], status="verified")
    assert _checked(run).startswith(f"1 claims and 0 conflicts are what their entries say; {many} are as")
    run.log.retract_claim(run.log.claims()[7].claim_id, reason="no")
    assert _checked(run).startswith("1 claims and 0 conflicts")
    check_run(mem, run)
    assert len(mem.resume("r1").log.claims) == many + 1


def _checked(run: Run) -> str:
    """What the next snapshot compared with the ledger."""
    snapshot = run.log.compact()
    assert snapshot is not None
    return next(check.message for check in snapshot.validation.checks if check.name == "claims_in_ledger")


@pytest.mark.slow
@pytest.mark.skipif(
    "MUNIMENT_RUN_CLAIMS" not in os.environ, reason="optional: MUNIMENT_RUN_CLAIMS says how many claims"
)
def test_a_very_long_run(make: Maker) -> None:
    many = int(os.environ["MUNIMENT_RUN_CLAIMS"])
    mem = make("sqlite")
    run = begin(mem)
    said = run.observe("user", "begin")
    for number in range(many):
        run.log.claim(f"claim {number}", evidence=[said.id], status="verified")
        if number % (many // 10) == 0:
            run.log.compact()
    run.log.compact()
    resumed = mem.resume("r1")
    assert (resumed.tail, len(resumed.log.claims)) == (1, many)
    assert resumed.log == replayed(mem, run)
