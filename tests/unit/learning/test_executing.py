"""A plan is carried out whole or not at all, leaves a record of each action, and gets around no safety rule (RC-11)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from plan_makers import KINDS, STORE, Shelf, act, day, payload, plan_of, told

from effort import examples
from muniment.contracts.learning import MemoryActionRecord
from muniment.core.policy import LearnPolicy
from muniment.errors import InvalidRecord
from muniment.learning._operations import check_plan, ids_touched, op_id
from muniment.learning.records import StoredMemory, Tally

pytestmark = pytest.mark.req("RC-11")

TWO = {"p": payload("seed", "a"), "q": payload("seed", "b")}


def writing(ref: str, **fields: Any) -> dict[str, Any]:
    return act("WRITE", "seed", ref=ref, **fields)


# -- records ------------------------------------------------------------------------------------------


def test_every_action_leaves_a_record_in_its_place() -> None:
    shelf = Shelf()
    plan = plan_of([writing("p", reason_keys=["new"]), act("PIN", "seed", "a"), writing("q")], fold_id="fold_1")
    done = shelf.apply(plan, TWO)
    assert told(done) == [("APPLIED", None)] * 3
    assert (done.aborted, done.would) == (False, False)
    assert [record.op_id for record in done.records] == [op_id("plan_1", index) for index in range(3)]
    assert done.records[0].to_wire() == {
        "schema_version": "0.5.15",
        "op_id": op_id("plan_1", 0),
        "created_at": day(0),
        "plan_id": "plan_1",
        "fold_id": "fold_1",
        "op": "WRITE",
        "status": "APPLIED",
        "target_store": "ReuseBuffer",
        "produced_ids": ["a"],
        "reason_keys": ["new"],
    }
    assert all(MemoryActionRecord.from_wire(record.to_wire()) == record for record in done.records)


def test_op_ids_are_the_same_everywhere() -> None:
    assert op_id("plan_1", 0) == "op_01ae2e69a11c2e58af295e0eb5b57f95"
    assert len({op_id(plan, index) for plan in ("p", "p1") for index in range(20)}) == 40


def test_changes_stand_in_order_with_every_version_between() -> None:
    done = Shelf().do(writing("p"), act("PIN", "seed", "a"), writing("q"), writing("p"), payloads=TWO)
    assert [(memory.id, memory.version) for memory in done.changes] == [("a", 1), ("a", 2), ("b", 1), ("a", 3)]
    assert done.changes[-1].status == "pinned"


def test_an_empty_plan_does_nothing() -> None:
    assert Shelf().do() == ((), (), False, False)


# -- all or nothing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_first_failure_aborts(place: int) -> None:
    shelf = Shelf()
    shelf.put("seed", "c", status="pinned")
    before = dict(shelf.memories)
    actions = [writing("p"), writing("q")]
    actions.insert(place, act("PRUNE", "seed", "c"))
    done = shelf.do(*actions, act("PIN", "seed", "nobody"), payloads=TWO)
    expected = [("SKIPPED", "plan_aborted")] * 4
    expected[place] = ("FAILED", "pinned")
    assert told(done) == expected
    assert done.records[place].error == "pinned: c is pinned"
    assert all(record.produced_ids is None for record in done.records)
    assert done.aborted
    assert done.changes == ()
    assert shelf.memories == before


def test_an_action_sees_what_those_before_it_did() -> None:
    shelf = Shelf()
    done = shelf.do(writing("p"), act("RETIRE", "seed", "a"), act("RETIRE", "seed", "a"), payloads=TWO)
    assert told(done) == [("APPLIED", None), ("APPLIED", None), ("SKIPPED", "already")]
    assert told(shelf.do(writing("p"), payloads=TWO)) == [("FAILED", "retired")]


def test_too_long_a_plan_is_refused_with_all_its_records() -> None:
    shelf = Shelf(LearnPolicy(plan_actions_max=2))
    assert told(shelf.do(writing("p"), writing("q"), payloads=TWO)) == [("APPLIED", None)] * 2
    done = shelf.do(writing("p"), writing("q"), writing("p"), payloads=TWO)
    assert told(done) == [("FAILED", "too_many_actions"), *[("SKIPPED", "plan_aborted")] * 2]
    assert done.changes == ()


# -- dry runs -----------------------------------------------------------------------------------------


def test_a_dry_run_tells_what_would_happen() -> None:
    shelf = Shelf()
    actions = [writing("p"), act("PIN", "seed", "a"), act("PIN", "seed", "a")]
    done = shelf.do(*actions, payloads=TWO, dry_run=True)
    assert told(done) == [("SKIPPED", "dry_run"), ("SKIPPED", "dry_run"), ("SKIPPED", "already")]
    assert [record.produced_ids for record in done.records] == [("a",), ("a",), None]
    assert (done.changes, done.would, done.aborted) == ((), True, False)
    assert not shelf.memories


def test_a_dry_run_fails_where_the_plan_would() -> None:
    done = Shelf().do(writing("p"), act("PIN", "seed", "b"), payloads=TWO, dry_run=True)
    assert told(done) == [("SKIPPED", "plan_aborted"), ("FAILED", "unknown_id")]
    assert (done.would, done.aborted) == (True, True)


def test_one_action_may_be_dry() -> None:
    shelf = Shelf()
    done = shelf.do(writing("p", safety={"dry_run": True}), writing("q", safety={"dry_run": False}), payloads=TWO)
    assert told(done) == [("SKIPPED", "dry_run"), ("APPLIED", None)]
    assert list(shelf.memories) == ["b"]
    assert not done.would
    leaning = shelf.do(writing("p", safety={"dry_run": True}), act("PIN", "seed", "a"), payloads=TWO)
    assert told(leaning)[1] == ("FAILED", "unknown_id")
    failing = shelf.do(act("PIN", "seed", "nobody", safety={"dry_run": True}), writing("p"), payloads=TWO)
    assert told(failing) == [("FAILED", "unknown_id"), ("SKIPPED", "plan_aborted")]


# -- what is no plan ----------------------------------------------------------------------------------


def test_what_is_no_plan_is_refused_with_every_issue() -> None:
    plain = {
        "schema_version": "0.5.15",
        "plan_id": "plan_1",
        "created_at": day(0),
        "actions": [
            {"op": "DELETE", "target_store": "ReuseBuffer"},
            {"op": "PIN", "target_store": "Attic"},
            {"op": "PIN", "target_store": "ReuseBuffer", "target_ids": "a", "safety": {"ttl_days": "soon"}},
        ],
    }
    with pytest.raises(InvalidRecord) as caught:
        check_plan(plain)
    assert {issue.path for issue in caught.value.issues} == {
        "$.actions[0].op",
        "$.actions[1].target_store",
        "$.actions[2].target_ids",
        "$.actions[2].safety.ttl_days",
    }


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"plan_id": ""}, ["$.plan_id"]),
        ({"plan_id": "x" * 257, "created_at": "soon"}, ["$.plan_id", "$.created_at"]),
        ({"actions": None}, ["$.actions"]),
    ],
)
def test_a_plan_has_an_id_and_a_time(fields: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(InvalidRecord) as caught:
        check_plan({"schema_version": "0.5.15", "plan_id": "p", "created_at": day(0), "actions": []} | fields)
    assert [issue.path for issue in caught.value.issues] == paths


def test_the_ids_a_plan_touches() -> None:
    plan = plan_of([writing("p"), act("PIN", "rule", "x", "a"), writing("nothing"), writing("odd"), writing("both")])
    payloads: dict[str, Any] = {
        "p": payload("seed", "a", lineage={"parent_state_id": "m", "parent_ids": ["n", 7]}),
        "odd": ["no", "object"],
        "both": payload("seed", "s") | payload("tactic", "t"),
    }
    assert ids_touched(plan, payloads) == ("a", "m", "n", "x")


# -- any plans over any state -------------------------------------------------------------------------

NAMES = [f"{kind[:2]}{number}" for kind in KINDS for number in range(4)]
STATUSES = ["active", "temporary", "pinned", "retired"]
SAFETIES = [{"dry_run": True}, {"ttl_days": 2}, {"ttl_days": 0}, {"max_bytes": 40}, {}]


def kind_of(name: str) -> str:
    return next(kind for kind in KINDS if kind.startswith(name[:2]))


class Drawing:
    """Actions on a shelf as it stands: most of them may be done, some are nonsense or attack a rule."""

    def __init__(self, data: st.DataObject, shelf: Shelf) -> None:
        self.data = data
        self.shelf = shelf
        self.payloads: dict[str, Any] = {}

    def one_of(self, choices: list[Any]) -> Any:
        return self.data.draw(st.sampled_from(choices))

    def chance(self, of: int) -> bool:
        return self.data.draw(st.integers(1, of)) == of

    def action(self) -> dict[str, Any]:
        op = self.one_of(["WRITE", "WRITE", "PIN", "MERGE", "RETIRE", "PRUNE"])
        made: dict[str, Any] = {"op": op}
        if op == "WRITE":
            name = self.one_of(NAMES)
            made |= {"target_store": STORE[kind_of(name)], "payload_ref": self.payload(name)}
        else:
            names = self.targets(op)
            made |= {"target_store": STORE[kind_of(names[0])], "target_ids": names}
        if op == "MERGE":
            free = [name for name in NAMES if name[:2] == names[0][:2] and name not in self.shelf.memories]
            made["payload_ref"] = self.payload(self.one_of(free or NAMES))
        if self.chance(12):
            made["target_store"] = self.one_of(sorted(set(STORE.values())))
        if self.chance(8):
            made["safety"] = self.one_of(SAFETIES)
        return made

    def targets(self, op: str) -> list[str]:
        wanted = {"PRUNE": ("retired",), "MERGE": ("active", "temporary", "pinned")}.get(op, tuple(STATUSES))
        there = [name for name, memory in self.shelf.memories.items() if memory.status in wanted]
        if not there or self.chance(10):
            return [self.one_of(NAMES)]
        first = self.one_of(there)
        alike = [name for name in there if name[:2] == first[:2] and name != first]
        return [first, self.one_of(alike)] if alike and (op == "MERGE" or self.chance(4)) else [first]

    def payload(self, name: str) -> str:
        kind, fields = kind_of(name), {"bucket_key": self.one_of(["b1", "b2", "b3"])}
        if kind in ("reasoning", "rule", "tactic") and self.chance(6):
            fields["status"] = self.one_of([word for word in STATUSES if (kind, word) != ("tactic", "temporary")])
        if kind == "seed" and self.chance(3):
            fields["lineage"] = {"parent_ids": [self.one_of(NAMES)]}
        if self.chance(6):
            fields["ttl"] = self.one_of(["days:1", "days:5", "hours:0", "session"])
        ref = f"p{len(self.payloads)}"
        self.payloads[ref] = payload(kind, name, **fields)
        return ref


def content(memory: StoredMemory | None) -> dict[str, Any] | None:
    """What an undo gives back: all but the number of the version and the reason of it."""
    if memory is None:
        return None
    return {name: value for name, value in memory.to_wire().items() if name not in ("version", "reason_keys")}


class Plans(RuleBasedStateMachine):
    """Plans of all sorts on one shelf, time passing, promotion and outcomes coming in between."""

    @initialize(starts=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(STATUSES), min_size=6, max_size=12))
    def begin(self, starts: dict[str, str]) -> None:
        self.shelf = Shelf()
        self.plans: list[Any] = []
        self.promoted: set[str] = set()
        self.highest: dict[str, int] = {}
        for name, status in starts.items():
            kind = kind_of(name)
            said = {"status": "retired"} if status == "retired" and kind == "rule" else {}
            usual = "temporary" if kind == "rule" else "active"
            kept = status if status in ("pinned", "retired") else usual
            self.shelf.put(kind, name, status=kept, record=said, protected_until=day(2), expires_at=day(6))

    @rule(days=st.sampled_from([0.5, 1, 4, 30]))
    def wait(self, days: float) -> None:
        self.shelf.day += days

    @rule(name=st.sampled_from([name for name in NAMES if kind_of(name) == "rule"]))
    def promote(self, name: str) -> None:
        """What only promotion does: not through a plan."""
        memory = self.shelf.memories.get(name)
        if memory is not None and memory.status == "temporary":
            self.promoted.add(name)
            update = {"status": "active", "version": memory.version + 1}
            self.shelf.keep([memory.model_copy(update=update | {"record": memory.record | {"status": "active"}})])

    @rule(name=st.sampled_from(NAMES), passed=st.booleans())
    def observe(self, name: str, passed: bool) -> None:
        """The outcome of a run that used it: counted beside the versions."""
        memory = self.shelf.memories.get(name)
        if memory is not None:
            tally = Tally(n=memory.with_tally.n + 1, passes=memory.with_tally.passes + passed)
            self.shelf.memories[name] = memory.model_copy(update={"with_tally": tally})

    @rule(data=st.data(), size=st.integers(1, 4), rehearse=st.booleans())
    def apply(self, data: st.DataObject, size: int, rehearse: bool) -> None:
        drawing = Drawing(data, self.shelf)
        actions, payloads = [drawing.action() for _ in range(size)], drawing.payloads
        shelf, before = self.shelf, dict(self.shelf.memories)
        plan = plan_of(actions, f"plan_{len(self.plans)}")
        if rehearse:
            told_before = shelf.apply(plan, payloads, dry_run=True)
            assert (told_before.changes, shelf.memories) == ((), before)
        done = shelf.apply(plan, payloads)
        self.plans.append(plan)
        assert len(done.records) == len(actions)
        failures = [record for record in done.records if record.status == "FAILED"]
        assert len(failures) == done.aborted
        if done.aborted:
            assert shelf.memories == before
            assert {record.error for record in done.records if record.status == "SKIPPED"} <= {"plan_aborted"}
        if rehearse:
            assert told_before.aborted == done.aborted
            for foretold, record in zip(told_before.records, done.records, strict=True):
                assert (foretold.op_id, foretold.produced_ids) == (record.op_id, record.produced_ids)
                assert foretold.error == record.error or (foretold.error, record.status) == ("dry_run", "APPLIED")
        self.check_changes(before, done.changes)
        after = dict(shelf.memories)
        assert shelf.apply(plan, payloads) == done  # twice is once
        assert shelf.memories == after

    def check_changes(self, before: dict[str, StoredMemory], changes: tuple[StoredMemory, ...]) -> None:
        state = dict(before)
        for memory in changes:
            was = state.get(memory.id)
            assert memory.version == (1 if was is None else was.version + 1)
            if memory.status == "pruned":
                assert was is not None
                first = before[memory.id]
                assert "pinned" not in (was.status, first.status)
                assert was.protected_until is None or was.protected_until <= self.shelf.now
                expired = first.expires_at is not None and first.expires_at < self.shelf.now
                assert first.status == "retired" or expired
            if memory.kind == "rule":
                assert memory.status != "active"
                assert memory.record.get("status") != "active"
                assert was is None or was.record.get("status") != "active"
            if was is not None and was.status == "pinned":
                assert memory.status == "pinned" or (memory.status == "retired" and memory.protected_until)
            assert StoredMemory.from_wire(memory.to_wire()) == memory
            state[memory.id] = memory

    @rule(which=st.integers(0, 3))
    def undo(self, which: int) -> None:
        done = [plan for plan in reversed(self.plans) if self.shelf.touched[plan.plan_id][1]]
        if which >= len(done):
            return
        shelf, plan = self.shelf, done[which]
        before, after = shelf.touched[plan.plan_id]
        standing = dict(shelf.memories)
        undone = shelf.undo(plan)
        changed = [name for name in after if standing[name].version != after[name].version]
        if undone.refused:
            assert set(undone.refused) <= set(changed)
            assert shelf.memories == standing
        elif undone.changes:
            assert not changed
            for name in after:
                self.check_restored(before[name], standing[name], shelf.memories[name])
        again = shelf.undo(plan)
        assert again.changes == ()
        assert not undone.changes or {record.error for record in again.records} == {"already"}

    @staticmethod
    def check_restored(before: StoredMemory | None, standing: StoredMemory, now: StoredMemory) -> None:
        assert now.version == standing.version + 1
        assert now.with_tally == standing.with_tally
        if before is None:
            assert now.status == "retired"
        else:
            observed = before.model_copy(update={"with_tally": standing.with_tally})
            assert content(now) == content(observed if "with_tally" in standing.model_fields_set else before)

    @invariant()
    def versions_only_grow_and_no_rule_is_active_but_by_promotion(self) -> None:
        for name, memory in self.shelf.memories.items():
            assert memory.version >= self.highest.get(name, 0)
            self.highest[name] = memory.version
            if memory.kind == "rule" and "active" in (memory.status, memory.record.get("status")):
                assert name in self.promoted

    @invariant()
    def no_lineage_goes_round(self) -> None:
        memories = self.shelf.memories
        for name in memories:
            seen, waiting = set(), list(memories[name].parents)
            while waiting:
                parent = waiting.pop()
                assert parent != name
                if parent not in seen:
                    seen.add(parent)
                    waiting.extend(memories[parent].parents if parent in memories else ())


TestPlans = Plans.TestCase
TestPlans.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)


def test_the_same_plan_gives_the_same_bytes() -> None:
    def run() -> list[bytes]:
        shelf = Shelf()
        done = shelf.do(writing("p"), writing("q"), act("MERGE", "seed", "a", "b", ref="r"), payloads=TWO | {
            "r": payload("seed", "c")})  # fmt: skip
        return [record.to_bytes() for record in itertools.chain(done.records, done.changes)]

    assert run() == run()
