"""Plans and payloads to try the executor with, and a shelf that keeps what it answers, as a runtime would."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from muniment.contracts.learning import MemoryActionPlan
from muniment.core.instants import format_instant
from muniment.core.policy import LearnPolicy
from muniment.learning._operations import Applied, Given, Undone, check_plan, execute, undo_plan
from muniment.learning.records import StoredMemory

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
STORE = {
    "reasoning": "ReasoningBank",
    "rule": "Rulebook",
    "seed": "ReuseBuffer",
    "tactic": "ReuseBuffer",
    "trace_capsule": "TraceCapsule",
}
KINDS = tuple(STORE)


def day(number: float) -> str:
    return format_instant(START + timedelta(days=number))


def payload(kind: str, name: str, /, **fields: Any) -> dict[str, Any]:
    """A record of a kind with as little in it as its contract lets."""
    made: dict[str, Any] = {"schema_version": "0.5.15", "created_at": day(0)}
    if kind == "reasoning":
        made |= {"memory_id": name, "kind": "episode", "status": "active", "summary": "It was done so."}
    elif kind == "rule":
        del made["created_at"]
        made |= {"rule_id": name, "version": "1", "type": "StrategyRule", "status": "temporary", "body": "Do it so."}
        made |= {"applicability": {}, "evidence": {}, "metrics": {}}
        made |= {"tests": {"regression_tests": [], "counterexample_tests": []}}
    elif kind == "seed":
        made |= {"state_id": name, "seed_summary": "Start here."}
    elif kind == "tactic":
        made |= {"tactic_id": name, "status": "active", "summary": "Try that.", "injection": {"content": "Try that."}}
    else:
        made |= {"trace_id": name}
    return made | fields


def act(op: str, kind: str, *targets: str, ref: str | None = None, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"op": op, "target_store": STORE[kind]}
    if targets:
        made["target_ids"] = list(targets)
    if ref is not None:
        made["payload_ref"] = ref
    return made | fields


def plan_of(actions: Iterable[dict[str, Any]], plan_id: str = "plan_1", **fields: Any) -> MemoryActionPlan:
    plain = {"schema_version": "0.5.15", "plan_id": plan_id, "created_at": day(0), "actions": list(actions)}
    return check_plan(plain | fields)


class Shelf:
    """Memories by id, every version of them, and the plans that were applied."""

    def __init__(self, policy: LearnPolicy | None = None) -> None:
        self.policy = policy or LearnPolicy()
        self.memories: dict[str, StoredMemory] = {}
        self.versions: dict[tuple[str, int], StoredMemory] = {}
        self.applied: dict[str, Applied] = {}
        self.touched: dict[str, tuple[dict[str, StoredMemory | None], dict[str, StoredMemory]]] = {}
        self.day = 0.0
        self.number = 0

    @property
    def now(self) -> str:
        return day(self.day)

    def keep(self, changes: Iterable[StoredMemory]) -> None:
        for memory in changes:
            self.memories[memory.id] = memory
            self.versions[memory.id, memory.version] = memory

    def put(self, kind: str, name: str, **around: Any) -> StoredMemory:
        """A record as if it had come here in some other way, with these fields around it."""
        record = around.pop("record", {})
        plain = {"id": name, "kind": kind, "level": "user", "version": 1, "status": "active", "created_at": self.now}
        if kind == "rule":
            plain["status"] = "temporary"
        memory = StoredMemory.model_validate(plain | {"record": payload(kind, name) | record} | around)
        self.keep([memory])
        return memory

    def apply(self, plan: MemoryActionPlan, payloads: dict[str, Any] | None = None, **given: Any) -> Applied:
        """Once: a plan that was applied before answers what it answered then."""
        if plan.plan_id in self.applied:
            return self.applied[plan.plan_id]
        found = Given(
            plan, payloads or {}, dict(self.memories), given.pop("level", "user"), self.now, self.policy, **given
        )
        done = execute(found)
        if not done.would:
            after = {memory.id: memory for memory in done.changes}
            self.touched[plan.plan_id] = ({name: self.memories.get(name) for name in after}, after)
            self.applied[plan.plan_id] = done
            self.keep(done.changes)
        return done

    def do(self, *actions: dict[str, Any], payloads: dict[str, Any] | None = None, **given: Any) -> Applied:
        self.number += 1
        return self.apply(plan_of(actions, f"done_{self.number}"), payloads, **given)

    def write(self, kind: str, name: str, **fields: Any) -> Applied:
        return self.do(act("WRITE", kind, ref="p"), payloads={"p": payload(kind, name, **fields)})

    def undo(self, plan: MemoryActionPlan) -> Undone:
        before, after = self.touched[plan.plan_id]
        undone = undo_plan(plan, before, after, current=self.memories, now=self.now)
        first = {memory.id: self.memories.get(memory.id) for memory in undone.changes}
        if undone.changes:
            self.touched[undone.plan.plan_id] = (first, {memory.id: memory for memory in undone.changes})
        self.keep(undone.changes)
        return undone


def told(done: Applied | Undone) -> list[tuple[str, str | None]]:
    """Status and error code of each record."""
    return [(record.status, record.error and record.error.partition(":")[0]) for record in done.records]
