"""What a verifier said of a run that ends is kept in the transaction that ends it: once, or with nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.errors import MunimentError, StorageFailure
from muniment.handles.memory import Memory
from muniment.handles.run import Run

PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
INTENT = {"domain_tag": "travel", "task_family": "booking"}


def _begun(mem: Memory) -> Run:
    run = mem.run(user_id="ana", agent_id="agent")
    run.observe("user", "Find a table.")
    run.observe_tool("look", content="12 tables", args={"row": 1})
    return run


def _kept(mem: Memory, run: Run) -> list[str]:
    """The verdicts of a run in its ledger, and that it ended."""
    events = (entry.metadata for entry in mem.ledger.entries(user_id="ana") if entry.scope.run_id == run.run_id)
    told = [each for each in events if each.get("event") in ("output_verified", "run_finished")]
    return [str(each["result"]["verdict"] if "result" in each else "end") for each in told]


def _writes(mem: Memory, monkeypatch: pytest.MonkeyPatch, spoils: Callable[[int], bool] = lambda _: False) -> list[int]:
    """Counts the transactions that write; those that are to be spoiled fail after their work, before their commit."""
    engine, seen = mem._ctx.engine, [0]
    write = engine.write

    def counted(tenant_id: str, work: Callable[[Any], Any]) -> Any:
        seen[0] += 1
        number = seen[0]

        def done(tx: Any) -> Any:
            answer = work(tx)
            if spoils(number):
                raise StorageFailure("the disk is full")
            return answer

        return write(tenant_id, done)

    monkeypatch.setattr(engine, "write", counted)
    return seen


def test_a_run_is_judged_learnt_from_and_ended_in_one_transaction(
    any_mem: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _begun(any_mem)
    seen = _writes(any_mem, monkeypatch)
    run.finish(verifier_result=PASS, intent=INTENT)
    assert seen == [1]
    assert _kept(any_mem, run) == ["PASS", "end"]
    verdicts = (each.metadata for each in any_mem.ledger.entries(user_id="ana") if "result" in each.metadata)
    assert [run.learning.learned().capsule.refs.verifier_ref] == [said["id"] for said in verdicts]
    assert any_mem.verify().ok


def test_a_transaction_that_fails_leaves_neither(any_mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _begun(any_mem)
    with monkeypatch.context() as patch:
        _writes(any_mem, patch, lambda number: number == 1)
        with pytest.raises(StorageFailure):
            run.finish(verifier_result=PASS, intent=INTENT)
    assert _kept(any_mem, run) == []
    assert run.learning.learned() is None
    run.finish(verifier_result=PASS, intent=INTENT)
    assert _kept(any_mem, run) == ["PASS", "end"]
    assert any_mem.verify().ok


def test_what_was_kept_before_is_not_kept_twice(mem: Memory) -> None:
    run = _begun(mem)
    run.learning.fold(verifier_result=PASS, intent=INTENT)
    assert _kept(mem, run) == ["PASS"]
    run.finish(verifier_result=PASS, intent=INTENT)
    assert _kept(mem, run) == ["PASS", "end"]


def test_another_verdict_of_a_run_that_was_learnt_is_kept_before_its_end(mem: Memory) -> None:
    run = _begun(mem)
    run.learning.learn(PASS, intent=INTENT)
    run.finish(verifier_result=FAIL, intent=INTENT)
    assert _kept(mem, run) == ["PASS", "FAIL", "end"]
    assert mem.verify().ok


def test_a_run_that_has_ended_is_learnt_from_and_keeps_no_more(mem: Memory) -> None:
    run = _begun(mem)
    run.finish()
    run.learning.learn(PASS, intent=INTENT)
    assert _kept(mem, run) == ["end"]
    assert run.learning.learned().capsule.refs.verifier_ref is None


def test_a_run_in_which_nothing_happened_is_judged_as_before(mem: Memory) -> None:
    run = mem.run(user_id="ana", agent_id="agent")
    run.finish(verifier_result=PASS, intent=INTENT)
    assert _kept(mem, run) == ["PASS", "end"]


@pytest.mark.parametrize("wrong", [{"verdict": "PASS"}, {"verifier_id": 7}, "PASS", 5])
def test_what_is_no_verdict_changes_nothing(mem: Memory, wrong: Any) -> None:
    run = _begun(mem)
    with pytest.raises(MunimentError):
        run.finish(verifier_result=wrong, intent=INTENT)
    assert _kept(mem, run) == []


@pytest.mark.parametrize("meanwhile", ["the same verdict", "another event", "the end"])
def test_what_happens_meanwhile_is_seen(mem: Memory, monkeypatch: pytest.MonkeyPatch, meanwhile: str) -> None:
    """Somebody writes to the run after it was read and before what was learnt is written."""
    run = _begun(mem)
    engine, write = mem._ctx.engine, mem._ctx.engine.write
    other = mem.run(user_id="ana", agent_id="agent", session_id=run.scope.session_id, run_id=run.run_id)

    def first(tenant_id: str, work: Callable[[Any], Any]) -> Any:
        monkeypatch.setattr(engine, "write", write)
        if meanwhile == "the same verdict":
            other.learning.fold(verifier_result=PASS, intent=INTENT)
        elif meanwhile == "another event":
            other.observe("assistant", "Booked it.")
        else:
            other.finish()
        return write(tenant_id, work)

    monkeypatch.setattr(engine, "write", first)
    if meanwhile == "the end":
        with pytest.raises(MunimentError):
            run.finish(verifier_result=PASS, intent=INTENT)
        assert _kept(mem, run) == ["end"]
        assert run.learning.learned().capsule.refs.verifier_ref is None
    else:
        run.finish(verifier_result=PASS, intent=INTENT)
        assert _kept(mem, run) == ["PASS", "end"]
    assert mem.verify().ok
