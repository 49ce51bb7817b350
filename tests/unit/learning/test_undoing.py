"""An undo gives back what a plan found, whole or not at all, once (RC-11)."""

from __future__ import annotations

import pytest
from plan_makers import KINDS, Shelf, act, day, payload, plan_of, told

from muniment.contracts.learning import MemoryActionPlan
from muniment.learning._operations import undo_plan
from muniment.learning.records import Tally
from products import for_each

pytestmark = pytest.mark.req("RC-11", "RC-06")

DONE = [("APPLIED", None)]


@for_each("kind", KINDS)
def test_each_record_goes_back_to_the_version_before(kind: str) -> None:
    shelf = Shelf()
    shelf.write(kind, "old", bucket_key="b1")
    first = shelf.memories["old"]
    actions = [act("WRITE", kind, ref="p"), act("PIN", kind, "old"), act("WRITE", kind, ref="q")]
    plan = plan_of(actions, "second")
    shelf.apply(plan, {"p": payload(kind, "old", bucket_key="b2"), "q": payload(kind, "new")})
    undone = shelf.undo(plan)
    assert told(undone) == DONE * 2
    assert [(record.op, record.target_ids) for record in undone.records] == [("RETIRE", ("new",)), ("WRITE", ("old",))]
    old, new = shelf.memories["old"], shelf.memories["new"]
    reasons = ("undone", "second")
    assert old == first.model_copy(update={"version": 4, "reason_keys": reasons})
    assert (new.status, new.version, new.reason_keys) == ("retired", 2, reasons)
    assert [shelf.versions["old", number].version for number in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_a_merge_is_taken_apart_again() -> None:
    shelf = Shelf()
    shelf.put("tactic", "a", status="pinned")
    shelf.put("tactic", "b")
    plan = plan_of([act("MERGE", "tactic", "a", "b", ref="p")])
    shelf.apply(plan, {"p": payload("tactic", "c")})
    assert told(shelf.undo(plan)) == DONE * 3
    assert (shelf.memories["a"].status, shelf.memories["a"].merged_into) == ("pinned", None)
    assert shelf.memories["a"].protected_until is None
    assert shelf.memories["b"].status == "active"
    assert shelf.memories["c"].status == "retired"
    assert "merged_into" not in shelf.memories["b"].to_wire()


def test_what_was_pruned_comes_back_retired() -> None:
    shelf = Shelf()
    was = shelf.put("seed", "a", status="retired")
    plan = plan_of([act("PRUNE", "seed", "a")])
    shelf.apply(plan)
    shelf.undo(plan)
    assert shelf.memories["a"].status == "retired"
    assert shelf.memories["a"].record == was.record


def test_a_pin_that_came_with_the_plan_goes_with_it() -> None:
    shelf = Shelf()
    plan = plan_of([act("WRITE", "seed", ref="p"), act("PIN", "seed", "a")])
    shelf.apply(plan, {"p": payload("seed", "a")})
    shelf.undo(plan)
    shelf.day = 2
    assert told(shelf.do(act("PRUNE", "seed", "a"))) == DONE


def test_an_undo_is_refused_whole_where_somebody_changed_a_record() -> None:
    shelf = Shelf()
    for name in "abc":
        shelf.put("seed", name)
    plan = plan_of([act("PIN", "seed", "a", "b", "c")], "pins")
    shelf.apply(plan)
    shelf.write("seed", "b")
    del shelf.memories["c"]  # forgotten
    before = dict(shelf.memories)
    undone = shelf.undo(plan)
    assert undone.refused == ("b", "c")
    assert told(undone) == [("SKIPPED", "plan_aborted"), ("FAILED", "changed"), ("FAILED", "changed")]
    assert undone.records[1].error == "changed: b is at version 3, the plan left it at 2"
    assert undone.changes == ()
    assert shelf.memories == before


def test_undoing_twice_is_undoing_once() -> None:
    shelf = Shelf()
    plan = plan_of([act("WRITE", "seed", ref="p")])
    shelf.apply(plan, {"p": payload("seed", "a")})
    first = shelf.undo(plan)
    standing = dict(shelf.memories)
    second = shelf.undo(plan)
    assert told(second) == [("SKIPPED", "already")]
    assert second.refused == second.changes == ()
    assert shelf.memories == standing
    assert [record.op_id for record in first.records] == [record.op_id for record in second.records]


def test_what_was_learnt_meanwhile_stays() -> None:
    shelf = Shelf()
    shelf.put("tactic", "a", with_tally=Tally(n=1))
    plan = plan_of([act("PIN", "tactic", "a")])
    shelf.apply(plan)
    seen = {"with_tally": Tally(n=5, passes=4), "streak": 1, "last_used_at": day(3)}
    shelf.memories["a"] = shelf.memories["a"].model_copy(update=seen)
    shelf.undo(plan)
    memory = shelf.memories["a"]
    assert memory.status == "active"
    assert (memory.with_tally, memory.streak, memory.last_used_at) == (Tally(n=5, passes=4), 1, day(3))


def test_an_undo_is_a_plan_and_can_be_undone() -> None:
    shelf = Shelf()
    shelf.put("reasoning", "a")
    plan = plan_of([act("PIN", "reasoning", "a"), act("WRITE", "reasoning", ref="p")], fold_id="fold_1")
    shelf.apply(plan, {"p": payload("reasoning", "b")})
    undone = shelf.undo(plan)
    assert MemoryActionPlan.from_wire(undone.plan.to_wire()) == undone.plan
    assert undone.plan.fold_id == "fold_1"
    assert undone.plan.actions[0].payload_ref == "a@1"
    assert len(undone.records) == len(undone.plan.actions)
    shelf.undo(undone.plan)
    assert (shelf.memories["a"].status, shelf.memories["b"].status) == ("pinned", "active")
    assert shelf.undo(plan).refused == ("a", "b")


def test_a_plan_that_changed_nothing_has_nothing_to_undo() -> None:
    shelf = Shelf()
    plan = plan_of([act("PIN", "seed", "nobody")])
    shelf.apply(plan)
    undone = shelf.undo(plan)
    assert (undone.records, undone.changes, undone.refused) == ((), (), ())


@pytest.mark.req("RC-14")
def test_no_undo_makes_a_rule_active() -> None:
    shelf = Shelf()
    before = shelf.put("rule", "a", status="active", record={"status": "active"})
    after = before.model_copy(update={"version": 2, "status": "retired"})
    shelf.keep([after])
    undone = undo_plan(plan_of([]), {"a": before}, {"a": after}, current=shelf.memories, now=day(0))
    assert told(undone) == [("FAILED", "active_rule")]
    assert undone.changes == ()
