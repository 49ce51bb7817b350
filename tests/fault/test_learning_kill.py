"""kill -9 at every transaction of learning, planning, applying, undoing: before its commit, and right after.

The store then verifies and a rebuild finds nothing to repair; told again from the beginning, the story comes to the
same end as one that was never stopped.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from kill_learner import ENDED, PLANS, tell

import muniment
from deployments import FreshStore, on
from muniment.handles.memory import Memory
from warm_commands import run_script

LEARNER = Path(__file__).parent / "kill_learner.py"
POLICY = {"learn": {"fold": {"support_min": 1, "confidence_min": 0.5}}}
STRIDE = 1 if "MUNIMENT_SOAK" in os.environ else 16
"""Every transaction with `make soak`; else every sixteenth, the two moments in turn."""


def end_of(mem: Memory) -> dict[str, Any]:
    """What the story comes to, times apart."""
    bank = mem.bank(user_id="ana")
    records = bank.records(include_all=True)
    return {
        "records": sorted(
            (each.id, each.kind, each.status, each.record.get("summary"), each.parents) for each in records
        ),
        "tallies": sorted((each.id, each.with_tally.n, each.with_tally.passes) for each in records),
        "plans": sorted((each.plan.plan_id, each.status) for each in bank.plans() if each.plan.notes != "tidy"),
        "logs": sorted((log.trace_id, log.verifier.verdict) for log in bank.event_logs()),
        "drafts": sorted(draft.draft_id for draft in bank.drafts()),
        "runs": sorted(run.run_id for run in mem.runs(user_id="ana") if run.finished_at is not None),
    }


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    with muniment.open(":memory:", policy=POLICY) as mem:
        tell(mem)
        return end_of(mem)


def die_at(warm_place: str | None, target: str, number: int, moment: str) -> bool:
    """Whether there was such a transaction to die at."""
    ended = run_script(warm_place, LEARNER, target, str(number), moment)
    assert ended in (-signal.SIGKILL, ENDED)
    return ended != ENDED


def check_and_tell_again(target: str, whole: dict[str, Any]) -> None:
    with muniment.open(target, policy=POLICY) as mem:
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()
        for plan in mem.bank(user_id="ana").plans():  # of each plan all was done, or nothing
            if plan.plan.plan_id in PLANS and plan.status == "applied":
                assert all(mem.bank(user_id="ana").get(id_).version >= left for id_, _, left in plan.touched)
        tell(mem)
        assert end_of(mem) == whole
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RC-11", "LG-06")
@on("sqlite")
def test_a_learner_is_killed_at_each_transaction(
    fresh_store: FreshStore, whole: dict[str, Any], warm_place: str | None
) -> None:
    number, died = 1, 0
    while True:
        with fresh_store() as store:
            if not die_at(warm_place, store.target, number, ("inside", "after")[number // STRIDE % 2]):
                break
            check_and_tell_again(store.target, whole)
        died += 1
        number += STRIDE
    assert died > 40 // STRIDE, "the story has more transactions than that"


@pytest.mark.soak
@pytest.mark.slow
@on("sqlite")
def test_it_is_killed_again_and_again(fresh_store: FreshStore, whole: dict[str, Any], warm_place: str | None) -> None:
    """One store, and a process that gets a little further each time."""
    with fresh_store() as store:
        for number in (3, 11, 9, 14, 8, 20)[:: 1 if STRIDE == 1 else 2]:
            die_at(warm_place, store.target, number, "inside")
            with muniment.open(store.target, policy=POLICY) as mem:
                assert mem.verify().ok
        check_and_tell_again(store.target, whole)
