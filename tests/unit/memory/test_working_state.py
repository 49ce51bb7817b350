"""The working state (MP-04): merged by rule, under an optimistic lock, one for each run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from muniment.errors import InvalidRecord, MunimentError, NotFound, RunFinished, StaleState
from muniment.handles.memory import Memory
from products import for_each

Counts = Callable[[Memory], dict[str, int]]


@pytest.mark.req("MP-04")
def test_a_state_starts_at_zero_and_each_patch_adds_one(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1")
    assert run.working_state().to_wire() == {"state_version": 0}
    assert any_mem.store.tenants() == []  # reading writes nothing
    first = run.patch(goal="book dinner", slots={"city": "Berlin", "people": 2}, expected_version=0)
    assert first.to_wire() == {"goal": "book dinner", "slots": {"city": "Berlin", "people": 2}, "state_version": 1}
    second = run.patch(slots={"people": None, "when": "8pm"}, plan=[{"step": "call", "status": "todo"}])
    assert second.slots == {"city": "Berlin", "when": "8pm"}
    assert second.goal == "book dinner"
    assert second.state_version == 2
    third = run.patch(plan=[], memory_hints=["short"], expected_version=2)
    assert third.plan == ()
    assert third.to_wire()["memory_hints"] == ["short"]
    assert run.patch(memory_hints=None).to_wire().keys() == {"goal", "slots", "plan", "state_version"}
    assert run.working_state() == any_mem.run(user_id="ana", session_id="s1", run_id=run.run_id).working_state()


@pytest.mark.req("MP-04")
def test_a_stale_patch_is_refused_with_the_current_version(any_mem: Memory, counts: Counts) -> None:
    run = any_mem.run(user_id="ana")
    run.patch(goal="a")
    before = counts(any_mem)
    for stale in (0, 2, -1):
        with pytest.raises(StaleState) as caught:
            run.patch(goal="b", expected_version=stale)
        assert caught.value.current_version == 1
        assert caught.value.details["current_version"] == 1
    assert counts(any_mem) == before
    assert run.working_state().goal == "a"


@pytest.mark.req("MP-04")
def test_of_many_that_expect_the_same_version_one_wins(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1")
    run.patch(slots={"start": True})
    won: list[int] = []
    lost: list[int] = []

    def attempt(number: int) -> None:
        other = any_mem.run(user_id="ana", session_id="s1", run_id=run.run_id)
        try:
            other.patch(slots={str(number): number}, expected_version=1)
            won.append(number)
        except StaleState as error:
            lost.append(error.current_version)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert lost == [2] * 7
    assert run.working_state().slots == {"start": True, str(won[0]): won[0]}


def test_each_run_has_its_own_state(mem: Memory) -> None:
    one, two = mem.run(user_id="ana", session_id="s1"), mem.run(user_id="ana", session_id="s1")
    one.patch(goal="one")
    assert two.working_state().state_version == 0
    assert two.patch(goal="two").state_version == 1
    assert one.working_state().goal == "one"


def test_decisions_and_tool_evidence_name_events_of_this_user(mem: Memory, counts: Counts) -> None:
    run, other = mem.run(user_id="ana"), mem.run(user_id="bob")
    said = run.observe("user", "the blue one")
    theirs = other.observe("user", "secret")
    state = run.patch(decisions=[{"statement": "blue", "evidence_id": said.id}])
    assert state.decisions is not None
    before = counts(mem)
    for bad in ("evt_none", theirs.id):
        with pytest.raises(NotFound):
            run.patch(decisions=[{"statement": "x", "evidence_id": bad}])
        with pytest.raises(NotFound):
            run.patch(tool_evidence=[{"ref": bad, "summary": "x"}])
    assert counts(mem) == before


@for_each(
    "patch",
    [
        {},
        {"goal": 3},
        {"plan": [{"step": "x", "status": "maybe"}]},
        {"plan": "x"},
        {"slots": ["x"]},
        {"slots": {"x": float("nan")}},
        {"slots": {"x": object()}},
        {"constraints": "none"},
        {"risks": [{"mitigation": "x"}]},
        {"tool_evidence": [{"ref": "x"}]},
        {"state_version": 4},
        {"goal": "x", "expected_version": "1"},
        {"goal": "x", "expected_version": True},
        {"extra": {1, 2}},
    ],
)
def test_bad_patches_are_typed_errors_and_write_nothing(mem: Memory, counts: Counts, patch: dict[str, Any]) -> None:
    run = mem.run(user_id="ana")
    run.patch(goal="a")
    before = counts(mem)
    with pytest.raises(MunimentError):
        run.patch(**patch)
    assert counts(mem) == before


def test_a_finished_run_takes_no_patch(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    run.patch(goal="a")
    run.finish()
    with pytest.raises(RunFinished):
        run.patch(goal="b")
    assert run.working_state().goal == "a"


def test_nobody_else_may_write_the_memory_s_own_events(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    forged = {"event": "state_patched", "patch": {"goal": "mine"}}
    with pytest.raises(MunimentError):
        run.observe_many([{"kind": "state_patch", "role": "system", "content": "", "metadata": forged}])
    run.observe_many([{"kind": "state_patch", "role": "system", "content": "", "metadata": {"event": "their own"}}])
    assert run.working_state().state_version == 0


def test_secrets_do_not_reach_the_state(mem: Memory) -> None:
    state = mem.run(user_id="ana").patch(slots={"password": "hunter2", "note": "sk-" + "a1B2" * 12})
    assert "hunter2" not in str(state.to_wire())
    assert "a1B2a1B2" not in str(state.to_wire())


def test_a_wrong_type_is_reported_where_it_stands(mem: Memory) -> None:
    with pytest.raises(InvalidRecord) as caught:
        mem.run(user_id="ana").patch(plan=[{"step": 1, "status": "todo"}])
    assert caught.value.path == "$.plan[0].step"
