"""Chapter 3: runs that were judged, what was learnt from them, and the plans that change what was learnt."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from golden_store.store import GoldenStore
from muniment.rules.tree_searching import TreeProblem

__all__ = ["write_learning"]

INTENT = {"domain_tag": "shop", "task_family": "lookup", "required_tools": ["by_number"]}
STATE = {"mode": "main", "budget_tier": "hot", "tool_availability": ["by_name", "by_number"]}
BUCKET = "I2|shop|clarity_high"
PASSED = {"verifier_id": "shop-tests", "verdict": "PASS", "outcome": "OK", "score": 1.0}
FAILED = {
    "verifier_id": "shop-tests", "verdict": "FAIL", "outcome": "FAIL",
    "reason_codes": ["tool_failure"], "violated_constraints": ["TOOL:WRONG_TOOL"],
}  # fmt: skip


def write_learning(store: GoldenStore) -> None:
    store.go_to("2026-02-16T09:00:00+00:00")
    for order in range(3):
        _look_up(store, order, "by_name", found=False)
        _look_up(store, order + 100, "by_number", found=True)
    _recall(store)
    _levels(store)
    _plans(store)
    _rollouts(store)


def _look_up(store: GoldenStore, order: int, way: str, *, found: bool) -> None:
    """A judged run: what separates those that passed from those that failed becomes a tactic and a draft."""
    run = store.mem.run(
        user_id="ana", agent_id="clerk", session_id="shop", run_id=f"run-order-{order}", task_type="lookup"
    )
    run.observe("user", f"Find order {order}.")
    run.observe_tool(way, args={"order": order}, content="found" if found else "nothing", ok=found)
    run.observe("assistant", "Here it is." if found else "I cannot find it.")
    run.finish(
        verifier_result=PASSED if found else FAILED,
        intent=INTENT,
        state=STATE,
        bucket_key=BUCKET,
        features={"way": way},
    )


def _recall(store: GoldenStore) -> None:
    """What earlier runs taught is recalled and used; a working set grows and is folded while the run goes on."""
    run = store.mem.run(user_id="ana", agent_id="clerk", session_id="shop", run_id="run-recall", task_type="lookup")
    run.observe("user", "Find order 7.")
    recalled = run.learning.recall(
        "Find order 7.", intent=INTENT, state=STATE, bucket_key=BUCKET, features={"way": "by_number"}
    )
    run.learning.used(recalled, [hint.memory_id for hint in recalled.hints][:1])
    run.learning.recall("orders of last week")
    run.learning.note(facts=["order 7 is of May"], assumptions=["it was paid"], open_questions=["who paid?"])
    run.learning.push_working_set(ttl="hours:6", constraints=["do not call twice"], decisions=["by number first"])
    run.learning.note(facts=["the number is on the invoice"])
    run.learning.pop_working_set()
    run.learning.fold("phase_shift", intent=INTENT)
    run.learning.note(facts=[f"line {number} of the invoice names article {number * 37}" for number in range(220)])
    for purpose in ("planner", "tool", "responder"):
        store.compose(run, purpose, query="Find order 7.", max_tokens=800)
    run.observe_tool("by_number", content="found")
    run.learning.learn(
        PASSED, intent=INTENT, state=STATE, bucket_key=BUCKET, features={"way": "by_number"}, cost={"tokens_in": 90}
    )
    run.finish("OBJECTIVE_ACHIEVED")


def _levels(store: GoldenStore) -> None:
    """What is learnt for an agent or for the tenant takes a grant; one that ended is learnt from later."""
    for level in ("agent", "tenant"):
        run = store.mem.run(
            user_id="ana", agent_id="clerk", session_id="shop", run_id=f"run-for-{level}", task_type="lookup",
            grants=[level],
        )  # fmt: skip
        run.observe("user", "Find the order of Ana Berg.")
        run.observe_tool("by_number", content="found")
        run.finish(verifier_result=PASSED, intent=INTENT, level=level)
    run = store.mem.run(user_id="ana", agent_id="clerk", session_id="shop", run_id="run-unjudged", task_type="lookup")
    run.observe("user", "Find order 9.")
    run.finish("NO_EVIDENCE")
    store.mem.learning.learn(
        "run-unjudged", {"verifier_id": "late", "verdict": "PARTIAL", "outcome": "UNKNOWN"}, intent=INTENT
    )


def _plans(store: GoldenStore) -> None:
    """Learned memory changes by plans alone: pinned, written, merged, retired, pruned; tried, aborted, undone."""
    bank = store.mem.bank(user_id="ana")
    tactic = bank.records(kind="tactic")[0].id
    episodes = [record.id for record in bank.records(kind="reasoning")]
    pin = bank.plan([{"op": "PIN", "target_store": "ReuseBuffer", "target_ids": [tactic]}])
    bank.apply(pin.plan_id, dry_run=True)
    bank.apply(pin.plan_id)
    bank.undo(pin.plan_id)
    lesson = _episode("rm-lesson", "Orders of May are found by number.")
    merged = _episode("rm-merged", "Orders by name are not found.")
    written = bank.plan(
        {
            "plan_id": "plan-lesson",
            "actions": [
                {"op": "WRITE", "target_store": "ReasoningBank", "payload": lesson, "reason_keys": ["by_hand"]},
                {"op": "MERGE", "target_store": "ReasoningBank", "target_ids": episodes[:2], "payload": merged},
                {"op": "RETIRE", "target_store": "ReasoningBank", "target_ids": [episodes[3]]},
            ],
        }
    )
    bank.apply(written.plan_id)
    store.go_to("2026-02-18T09:00:00+00:00")  # what is new is protected for a day
    prune = bank.plan([{"op": "PRUNE", "target_store": "ReasoningBank", "target_ids": [episodes[3]]}])
    bank.apply(prune.plan_id)
    bank.apply(bank.plan([{"op": "PIN", "target_store": "ReasoningBank", "target_ids": ["rm-lesson"]}]).plan_id)
    aborted = bank.plan(
        [
            {"op": "RETIRE", "target_store": "ReasoningBank", "target_ids": [episodes[4]]},
            {"op": "PRUNE", "target_store": "ReasoningBank", "target_ids": ["rm-lesson"]},
        ]
    )
    bank.apply(aborted.plan_id)
    bank.plan([{"op": "RETIRE", "target_store": "ReuseBuffer", "target_ids": [tactic]}])
    bank.tidy()


def _episode(memory_id: str, summary: str) -> dict[str, Any]:
    """A record of the bank that nobody's fold has made."""
    return {
        "schema_version": "0.5.15", "memory_id": memory_id, "created_at": "2026-02-16T10:00:00Z", "kind": "episode",
        "status": "active", "summary": summary, "bucket_key": BUCKET,
    }  # fmt: skip


def _answer(task: Any) -> dict[str, Any]:
    """An agent that counts on; it says what it used, since a clock would not repeat itself."""
    task.run.observe_tool("calc", args={"n": task.attempt}, content=str(task.attempt * 8))
    usage = {"tokens_in": 60, "tokens_out": 40, "latency_ms": 25}
    return {
        "text": f"Because 8 divides 24.\nAnswer: {task.attempt * 8}",
        "usage": usage,
        "features": {"n": task.attempt},
    }


def _rollouts(store: GoldenStore) -> None:
    """Several attempts at one task, in every mode; on one thread, so that they come in one order."""
    store.go_to("2026-02-20T09:00:00+00:00")
    intent = {"domain_tag": "math", "task_family": "multiples"}
    tree = TreeProblem(
        root=1,
        expand=lambda state: [state * 2, state + 3] if state < 40 else [],
        verify=lambda state: state == 14,
        score=lambda state: 1 / (1 + abs(14 - state)),
    )
    settings = {"reuse": True, "tree": {"checkpoint_s": 1e9, "checkpoint_answers": 1_000}}
    with ThreadPoolExecutor(1) as executor:
        runner = store.mem.runner(
            _answer,
            lambda output, _task: output.text.endswith("24") or output.text == "14",
            settings,
            executor=executor,
            user_id="jisoo",
            agent_id="solver",
            session_id="puzzles",
        )
        runner.run("Which multiple of 8 is 24?", intent=intent, run_id="run-main")
        runner.run("Which multiple of 8 is 24?", "kroll", k=2, intent=intent, run_id="run-kroll", seed="one")
        runner.run("Which multiple of 8 is 32?", "matts", k=2, intent=intent, run_id="run-matts", seed="two")
        runner.run("Which multiple of 8 is 40?", "synth", intent=intent, run_id="run-synth", caps={"attempts_max": 3})
        runner.run("Which multiple of 8 is 48?", "sot", intent=intent, run_id="run-sot")
        runner.run("Reach 14 from 1.", "tree", intent=intent, run_id="run-tree", tree=tree)
        routed = store.mem.runner(_answer, lambda _output, _task: True, executor=executor, router=True, user_id="jisoo")
        routed.run("Which multiple of 8 is 0?", bucket_key="I2|math|clarity_high", run_id="run-routed")
