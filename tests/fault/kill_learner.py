"""Run by test_learning_kill.py in a process of its own: learns, plans, undoes, and dies at a transaction of its choice.

    python kill_learner.py FILE NUMBER inside|after

It kills itself (SIGKILL) at the NUMBERth transaction that writes: before it is committed, or as soon as it is. With
more than there are, it ends by itself with 7. `tell` may be told again from the beginning, wherever it was stopped.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import muniment
from muniment.errors import RunFinished
from muniment.handles.memory import Memory

INTENT = {"domain_tag": "math", "task_family": "countdown"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
ENDED = 7


def record(memory_id: str, **more: Any) -> dict[str, Any]:
    plain = {
        "schema_version": "0.5.15", "memory_id": memory_id, "kind": "episode", "created_at": "2026-01-01T00:00:00Z",
        "status": "active", "summary": f"What {memory_id} says.",
    }  # fmt: skip
    return plain | more


def write(payload: dict[str, Any]) -> dict[str, Any]:
    return {"op": "WRITE", "target_store": "ReasoningBank", "payload": payload}


def on(op: str, *ids: str) -> dict[str, Any]:
    return {"op": op, "target_store": "ReasoningBank", "target_ids": list(ids)}


PLANS = {
    "plan_a": [write(record("rm_1")), write(record("rm_2")), on("PIN", "rm_1")],
    "plan_b": [on("MERGE", "rm_1", "rm_2") | {"payload": record("rm_3")}],
    "plan_c": [write(record("rm_4")), on("PRUNE", "rm_3")],  # aborts: nothing of it is done
}


def tell(mem: Memory) -> None:
    for number in range(6):
        learn(mem, number)
    bank = mem.bank(user_id="ana")
    for plan_id, actions in PLANS.items():
        bank.plan({"plan_id": plan_id, "created_at": "2026-01-01T00:00:00Z", "actions": actions})
        bank.apply(plan_id)
    bank.undo("plan_b")
    bank.tidy()


def learn(mem: Memory, number: int) -> None:
    passed = number % 2 == 0
    run = mem.run(user_id="ana", agent_id="solver", session_id=f"s{number}", run_id=f"r{number}", task_type="countdown")
    try:
        run.observe("user", f"Reach {number}.", idempotency_key=f"asked {number}")
        run.observe_tool("back" if passed else "greedy", content="tried", idempotency_key=f"tried {number}")
        if number > 3 and not any(entry.metadata.get("event") == "memory_recalled" for entry in run.ledger.entries()):
            run.learning.recall("Reach", intent=INTENT, state={"mode": "main"})
        run.learning.note(facts=[f"the target is {number}"])
        run.finish(verifier_result=PASS if passed else FAIL, intent=INTENT, features={"way": "b" if passed else "g"})
    except RunFinished:
        pass


def dying(write: Callable[..., Any], at: int, moment: str) -> Callable[..., Any]:
    """The engine's `write`, which does not outlive its so-manieth call."""
    count = 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(tenant_id: str, work: Callable[[Any], Any]) -> Any:
        nonlocal count
        count += 1
        if count != at:
            return write(tenant_id, work)

        def last(tx: Any) -> Any:
            answer = work(tx)
            if moment == "inside":
                die()
            return answer

        answer = write(tenant_id, last)
        die()
        return answer

    return wrapped


if __name__ == "__main__":
    path, number, moment = sys.argv[1:]
    with muniment.open(path, policy={"learn": {"fold": {"support_min": 1, "confidence_min": 0.5}}}) as mem:
        engine = mem._ctx.engine
        engine.write = dying(engine.write, int(number), moment)  # type: ignore[method-assign]
        tell(mem)
    sys.exit(ENDED)
