"""Whatever is handed to the doors of learning memory: an answer, or an error of ours that names the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import muniment
from effort import examples
from muniment.errors import MunimentError
from muniment.handles.memory import Memory

INTENT = {"domain_tag": "math", "task_family": "countdown"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}

ODD_TEXT = st.sampled_from(
    [
        "",
        " ",
        "\x00",
        "\ud800",
        "a\nb",
        "x" * 300,
        "é" * 257,
        "bank:user:ana",
        "rm_1",
        "days:0",
        "$.x",
        "|",
        "%ZZ",
        "🙂" * 90,
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -1, 0]),
    st.floats(allow_nan=True, allow_infinity=True),
    ODD_TEXT,
    st.text(max_size=12),
    st.binary(max_size=4),
    st.just(object()),
)
KEYS = st.one_of(st.text(max_size=8), ODD_TEXT, st.integers(0, 3), st.none())
ODD = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3), st.sets(st.text(max_size=3), max_size=2)
    ),
    max_leaves=6,
)
RECORD_KEYS = st.sampled_from(
    [
        "schema_version", "memory_id", "kind", "created_at", "status", "summary", "ttl", "trace_ids", "tactic_id",
        "injection", "predicates", "state_id", "seed_summary", "lineage", "rule_id", "trace_id", "evidence", "learnt",
        "metrics", "reward", "tags", "pass_p_hat", "intent_key", "state_key", "bucket_key",
    ]
)  # fmt: skip
RECORD = {
    "schema_version": "0.5.15", "memory_id": "rm_1", "kind": "episode", "created_at": "2026-01-01T00:00:00Z",
    "status": "active", "summary": "Work backwards.",
}  # fmt: skip
TACTIC = {
    "schema_version": "0.5.15", "tactic_id": "tac_1", "created_at": "2026-01-01T00:00:00Z", "status": "active",
    "summary": "Go back.", "injection": {"content": "Go back."}, "intent_key": "intent|domain=math|family=countdown",
}  # fmt: skip
SEED = {
    "schema_version": "0.5.15", "state_id": "seed_1", "created_at": "2026-01-01T00:00:00Z", "seed_summary": "Start.",
}  # fmt: skip
PAYLOADS = st.one_of(
    ODD,
    st.builds(lambda base, more: {**base, **more}, st.sampled_from([RECORD, TACTIC, SEED]),
              st.dictionaries(RECORD_KEYS, ODD, max_size=2)),
)  # fmt: skip
OPS = st.one_of(st.sampled_from(["WRITE", "PIN", "MERGE", "RETIRE", "PRUNE"]), ODD_TEXT)
STORES = st.one_of(st.sampled_from(["ReasoningBank", "Rulebook", "ReuseBuffer", "TraceCapsule"]), ODD_TEXT)
TARGETS = st.one_of(
    st.lists(st.one_of(st.sampled_from(["rm_1", "tac_1", "seed_1", "rm_2"]), ODD_TEXT), max_size=3), ODD
)
ACTIONS = st.one_of(
    ODD,
    st.fixed_dictionaries(
        {"op": OPS, "target_store": STORES},
        optional={
            "payload": PAYLOADS,
            "target_ids": TARGETS,
            "payload_ref": ODD,
            "reason_keys": ODD,
            "safety": st.one_of(
                ODD, st.fixed_dictionaries({}, optional={"ttl_days": ODD, "max_bytes": ODD, "dry_run": ODD})
            ),
        },
    ),
)
PLANS = st.one_of(
    st.lists(ACTIONS, max_size=3),
    ODD,
    st.fixed_dictionaries(
        {"actions": st.lists(ACTIONS, max_size=2)}, optional={"plan_id": ODD, "created_at": ODD, "notes": ODD}
    ),
)
LEARNING = st.fixed_dictionaries(
    {},
    optional={
        "intent": st.one_of(
            ODD, st.dictionaries(st.sampled_from(["domain_tag", "task_family", "required_tools"]), ODD)
        ),
        "state": st.one_of(ODD, st.dictionaries(st.sampled_from(["mode", "tool_availability"]), ODD)),
        "bucket_key": ODD,
        "features": st.one_of(ODD, st.dictionaries(st.text(max_size=5), SCALARS, max_size=3)),
        "cost": st.one_of(ODD, st.dictionaries(st.sampled_from(["tokens_in", "tool_calls"]), SCALARS)),
        "cfg": ODD,
        "reuse": ODD,
        "level": ODD,
        "lessons": ODD,
    },
)
RESULTS = st.one_of(
    ODD,
    st.builds(lambda more: {**PASS, **more},
              st.dictionaries(st.sampled_from(["verdict", "outcome", "reason_codes", "violated_constraints", "notes",
                                               "failure_cluster_id", "score", "verifier_id"]), ODD, max_size=2)),
)  # fmt: skip
RECALLS = st.fixed_dictionaries(
    {},
    optional={
        "intent": ODD,
        "state": ODD,
        "bucket_key": ODD,
        "features": ODD,
        "sources": ODD,
        "top_k": ODD,
        "now": ODD,
    },
)

FAST = settings(
    max_examples=examples(40),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


def answered(call: Callable[[], Any]) -> Any:
    """What comes of a call: nothing but an answer, or an error of ours with words in it."""
    try:
        return call()
    except MunimentError as error:
        if not (error.code and error.message):
            raise
        return None


@pytest.fixture(scope="module")
def mem() -> Any:
    with muniment.open(":memory:") as memory:
        yield memory


def fresh(mem: Memory) -> Any:
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "Reach 24.")
    return run


@FAST
@given(given_plan=PLANS, payloads=st.one_of(st.none(), ODD, st.dictionaries(st.text(max_size=3), PAYLOADS, max_size=2)))
def test_plans(mem: Memory, given_plan: Any, payloads: Any) -> None:
    bank = mem.bank(user_id="ana")
    before, known = bank.records(include_all=True), {each.plan.plan_id for each in bank.plans()}
    plan = answered(lambda: bank.plan(given_plan, payloads=payloads))
    assert bank.records(include_all=True) == before
    if plan is not None:
        rehearsed = bank.apply(plan.plan_id, dry_run=True)
        assert bank.records(include_all=True) == before
        applied = bank.apply(plan.plan_id)
        if plan.plan_id not in known:  # else it answers what came of it then
            assert rehearsed.aborted == applied.aborted
        if applied.aborted:
            assert bank.records(include_all=True) == before
        assert bank.apply(plan.plan_id).records == applied.records
        made = [id_ for record in applied.records if record.status == "APPLIED" for id_ in record.produced_ids or ()]
        assert all(bank.get(id_) for id_ in made), "what was applied is there"
        answered(lambda: bank.undo(plan.plan_id))
    mem.run(user_id="ana", agent_id="solver").learning.recall("work back", intent=INTENT, state={"mode": "main"})
    bank.select_seed()


@FAST
@given(result=RESULTS, said=LEARNING)
def test_learning(mem: Memory, result: Any, said: dict[str, Any]) -> None:
    run = fresh(mem)
    before = [entry.id for entry in run.ledger.entries()]
    if answered(lambda: run.learning.learn(result, **said)) is None:
        assert [entry.id for entry in run.ledger.entries()] == before, "a refusal changes nothing"


@FAST
@given(query=st.one_of(st.text(max_size=20), ODD), said=RECALLS, used=ODD, request=ODD)
def test_recalls(mem: Memory, query: Any, said: dict[str, Any], used: Any, request: Any) -> None:
    run = fresh(mem)
    before = [entry.id for entry in run.ledger.entries()]
    recalled = answered(lambda: run.learning.recall(query, **said))
    if recalled is None:
        assert [entry.id for entry in run.ledger.entries()] == before
    else:
        answered(lambda: run.learning.used(recalled, used))
    if not hasattr(request, "request"):
        answered(lambda: run.learning.used(request, used))


@FAST
@given(id_=ODD, other=ODD, tags=ODD, store=ODD, kind=ODD)
def test_banks(mem: Memory, id_: Any, other: Any, tags: Any, store: Any, kind: Any) -> None:
    bank = mem.bank(user_id="ana")
    for call in (
        lambda: bank.get(id_),
        lambda: bank.apply(id_),
        lambda: bank.undo(id_),
        lambda: bank.records(store, kind=kind),
        lambda: bank.select_seed(bucket_key=other, tags=tags),
        lambda: bank.event_logs(limit=other),
        lambda: mem.bank(user_id=id_, agent_id=other),
        lambda: mem.bank(user_id="ana", tenant_id=id_).records(),
        lambda: mem.learning.learn(id_, other),
    ):
        answered(call)


@FAST
@given(
    parts=st.dictionaries(st.sampled_from(["facts", "decisions", "opinions", "constraints"]), ODD, max_size=2), ttl=ODD
)
def test_working_sets(mem: Memory, parts: dict[str, Any], ttl: Any) -> None:
    run = fresh(mem)
    answered(lambda: run.learning.note(**parts))
    answered(lambda: run.learning.push_working_set(ttl=ttl, **parts))
    answered(run.learning.pop_working_set)
    answered(lambda: run.learning.fold(ttl))
    assert run.learning.working_set()[0] is not None


@FAST
@given(policy=ODD, task=ODD, said=LEARNING, answer=ODD, verdict=RESULTS)
def test_runners(mem: Memory, policy: Any, task: Any, said: dict[str, Any], answer: Any, verdict: Any) -> None:
    asked = {key: value for key, value in said.items() if key in ("intent", "state", "bucket_key", "features")}
    answered(lambda: mem.runner(answer, verdict, policy, user_id="ana"))
    answered(lambda: mem.runner(lambda _: answer, lambda *_: verdict, policy, user_id=task))
    runner = mem.runner(lambda _: answer, lambda *_: verdict, user_id="ana")
    answered(lambda: runner.run("Reach 24.", **asked))
    answered(lambda: runner.run(task))


def test_it_holds_after_all(mem: Memory) -> None:
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()
