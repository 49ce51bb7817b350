"""Every safety rule of plans on learned memory, attacked through the doors that anybody has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from learning_makers import SECRET, Hand, do, episode, on, one_run, refused, rule, seed, store, tactic, write

from muniment.core.outside.system import SystemIds, system_clock
from muniment.core.policy import Policy
from muniment.errors import Conflict, InvalidInput, InvalidRecord
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.learning._operations import ENDLESS
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def mem(clock: Hand) -> Iterator[Memory]:
    with store(clock=clock) as memory:
        yield memory


# -- plans that may not be ----------------------------------------------------------------------------


@pytest.mark.req("RC-06", "RC-11")
def test_what_is_pinned_or_protected_is_not_pruned(mem: Memory, clock: Hand) -> None:
    bank = mem.bank(user_id="ana")
    do(bank, write(episode("rm_1")), on("PIN", "rm_1"), write(episode("rm_2")), write(episode("rm_3", ttl="hours:1")))
    refused(bank, "pinned", on("PRUNE", "rm_1"))
    refused(bank, "protected", on("PRUNE", "rm_2"))
    clock.ahead_days = 400
    refused(bank, "pinned", on("PRUNE", "rm_1"))
    refused(bank, "protected", on("RETIRE", "rm_1"), on("PRUNE", "rm_1"))  # retired in the same plan
    do(bank, on("RETIRE", "rm_1"))
    assert bank.get("rm_1").protected_until == ENDLESS
    refused(bank, "protected", on("PRUNE", "rm_1"))
    do(bank, write(episode("rm_4", ttl="days:999")))
    clock.ahead_days = 410
    refused(bank, "not_retired", on("PRUNE", "rm_4"))
    refused(bank, "not_retired", on("RETIRE", "rm_4"), on("PRUNE", "rm_4"))
    assert not do(bank, on("PRUNE", "rm_3")).aborted  # ran out long ago
    assert bank.get("rm_3").record.keys() == {"id", "digest", "reason"}
    refused(bank, "pruned", on("PIN", "rm_3"))
    refused(bank, "pruned", write(episode("rm_3")))


@pytest.mark.req("RC-06")
def test_a_merge_lifts_no_shield(mem: Memory, clock: Hand) -> None:
    bank = mem.bank(user_id="ana")
    do(bank, write(episode("rm_1")), on("PIN", "rm_1"), write(episode("rm_2")))
    do(bank, on("MERGE", "rm_1", "rm_2", payload=episode("rm_3")))
    assert bank.get("rm_3").status == "pinned"
    clock.ahead_days = 400
    refused(bank, "protected", on("PRUNE", "rm_1"))
    refused(bank, "pinned", on("PRUNE", "rm_3"))
    undone = bank.undo(next(plan.plan.plan_id for plan in bank.plans() if plan.plan.actions[0].op == "MERGE"))
    assert {record.status for record in undone} == {"APPLIED"}
    assert bank.get("rm_1").status == "pinned"
    assert bank.get("rm_3").status == "retired"
    refused(bank, "pinned", on("PRUNE", "rm_1"))


@pytest.mark.req("RC-11", "RC-14")
def test_no_rule_becomes_active(mem: Memory) -> None:
    bank = mem.bank(user_id="ana")
    refused(bank, "activation", write(rule(status="active"), "Rulebook"))
    assert not do(bank, write(rule(), "Rulebook"), write(rule("rule_2"), "Rulebook")).aborted
    refused(bank, "activation", write(rule(status="active"), "Rulebook"))
    refused(bank, "activation", on("MERGE", "rule_1", "rule_2", store="Rulebook", payload=rule("rule_3", "active")))
    refused(bank, "wrong_kind", write(rule(status="active"), "ReasoningBank"))
    do(bank, on("PIN", "rule_1", store="Rulebook"))
    assert bank.get("rule_1").record["status"] == "temporary"
    last = do(bank, on("RETIRE", "rule_1", store="Rulebook")).records[0].plan_id
    bank.undo(last)
    assert {each.record["status"] for each in bank.records("Rulebook", include_all=True)} == {"temporary"}
    for number in range(3):  # nor does learning
        one_run(mem, number, passed=False)
    assert all(each.record["status"] != "active" for each in bank.records("Rulebook", include_all=True))
    assert bank.drafts()


@pytest.mark.soak
@pytest.mark.req("RC-11")
@pytest.mark.parametrize(
    ("action", "code"),
    [
        (on("RETIRE", "nobody"), "unknown_id"),
        (on("PIN"), "no_target"),
        (on("RETIRE", "rm_1", store="ReuseBuffer"), "wrong_kind"),
        (on("MERGE", "rm_1", payload=episode("rm_9")), "too_few"),
        (on("MERGE", "rm_1", "rm_1", payload=episode("rm_9")), "too_few"),
        (on("MERGE", "rm_1", "rm_2", payload=episode("rm_1")), "lineage_cycle"),
        (on("MERGE", "rm_1", "rm_2", payload=episode("rm_0")), "exists"),
        (on("MERGE", "rm_1", "rm_2"), "no_payload"),
        (on("MERGE", "rm_1", "rm_2", payload_ref="nowhere"), "unknown_payload"),
        (write(episode("rm_9", summary="x" * 20_000)), "too_large"),
        (write(episode("rm_9"), safety={"max_bytes": 10}), "too_large"),
        (write(episode("rm_9"), safety={"max_bytes": 0}), "invalid_max_bytes"),
        (write(episode("rm_9"), safety={"ttl_days": 0}), "invalid_ttl"),
        (write(episode("rm_9"), safety={"ttl_days": -3}), "invalid_ttl"),
        (write(episode("rm_9"), safety={"ttl_days": 10**9}), "invalid_ttl"),
        (write(episode("rm_9", ttl="session")), "invalid_ttl"),
        (write(episode("rm_9", ttl="days:0")), "invalid_ttl"),
        (write(episode("rm_9", ttl="days:99999999")), "invalid_ttl"),
        (write(episode("rm_9", ttl="fortnight")), "invalid_ttl"),
        (write(episode("rm_9", ttl="days:14 ")), "invalid_ttl"),
        (write(episode("rm_9", ttl="days:١٤")), "invalid_ttl"),
        (write(episode("rm_9", status="pinned")), "wrong_status"),
        (write(episode("rm_9", status="retired")), "wrong_status"),
        (write(episode("rm_9"), target_ids=["rm_1"]), "wrong_target"),
        (write(episode("rm_9") | {"tactic_id": "t"}), "mixed_kinds"),
        (write({"summary": "of nothing"}), "unknown_kind"),
        (write(seed("seed_9", "seed_9"), "ReuseBuffer"), "lineage_cycle"),
        (write(seed("seed_0", "seed_2"), "ReuseBuffer"), "lineage_cycle"),
        (write(tactic("tac_9", predicates=["tools =="]), "ReuseBuffer"), "invalid_predicate"),
        (write(tactic("tac_9", predicates=["nobody_knows > 3"]), "ReuseBuffer"), "invalid_predicate"),
        (write(tactic("tac_9", predicates=['impact_level > 3']), "ReuseBuffer"), "invalid_predicate"),
        (write(tactic("tac_9", predicates=["(" * 500 + "true" + ")" * 500]), "ReuseBuffer"), "invalid_predicate"),
        (write(tactic("tac_9", predicates=["1 == 1 && " * 400 + "true"]), "ReuseBuffer"), "invalid_predicate"),
    ],
)  # fmt: skip
def test_a_plan_that_may_not_be(mem: Memory, action: dict[str, Any], code: str) -> None:
    bank = mem.bank(user_id="ana")
    do(bank, write(episode("rm_0")), write(episode("rm_1")), write(episode("rm_2")))
    do(bank, write(seed("seed_0"), "ReuseBuffer"), write(seed("seed_1", "seed_0"), "ReuseBuffer"))
    do(bank, write(seed("seed_2", "seed_1"), "ReuseBuffer"))
    refused(bank, code, action)


@pytest.mark.req("RC-11")
@pytest.mark.parametrize(
    "given",
    [
        [{"op": "WRITE", "target_store": "Cellar", "payload": episode()}],
        [{"op": "BURN", "target_store": "ReasoningBank"}],
        [{"op": "PIN"}],
        {"actions": [], "plan_id": ""},
        {"actions": [], "plan_id": "x" * 300},
        {"actions": [], "plan_id": "a\x00b"},
        {"actions": [], "created_at": "yesterday"},
        "PIN rm_1",
        7,
        [write(episode(summary=f"the key is {SECRET}"))],
        {"actions": [], "notes": f"password={SECRET}"},
    ],
)
def test_a_plan_that_is_none_is_not_kept(mem: Memory, given: Any) -> None:
    bank = mem.bank(user_id="ana")
    do(bank, write(episode("rm_0")))
    before = b"".join(mem.export())
    with pytest.raises((InvalidInput, InvalidRecord)) as caught:
        bank.plan(given)
    assert caught.value.path or getattr(caught.value, "issues", ())
    assert b"".join(mem.export()) == before


@pytest.mark.req("RC-11")
def test_an_id_that_is_something_else_s_is_refused(mem: Memory) -> None:
    """Of another bank, of a plan, of an event: nothing is said to be applied that is not there."""
    run = one_run(mem, 1, passed=True)
    event = next(iter(run.ledger.entries())).id
    ana, bo = mem.bank(user_id="ana"), mem.bank(user_id="bo")
    do(ana, write(episode("rm_1")))
    refused(bo, "taken", write(episode("rm_1")))
    refused(mem.bank(), "taken", write(episode("rm_1")))
    refused(ana, "taken", write(episode(event)))
    refused(ana, "taken", write({"schema_version": "0.5.15", "trace_id": ana.event_logs()[0].trace_id,
                                 "created_at": "2026-01-01T00:00:00Z"}, "TraceCapsule"))  # fmt: skip
    plan = ana.plan({"plan_id": "mine", "actions": [write(episode("mine"))]})
    assert ana.apply(plan.plan_id).records[0].error.startswith("taken:")
    with pytest.raises(Conflict):
        bo.plan({"plan_id": "mine", "actions": []})
    with pytest.raises(Conflict):
        ana.plan({"plan_id": "mine", "actions": [on("PIN", "rm_1")]})


def test_too_many_actions(clock: Hand) -> None:
    with store(policy={"learn": {"plan_actions_max": 3}}, clock=clock) as mem:
        bank = mem.bank(user_id="ana")
        applied = do(bank, *(write(episode(f"rm_{number}")) for number in range(4)))
        assert applied.aborted
        assert applied.records[0].error.startswith("too_many_actions")
        assert bank.records(include_all=True) == []


@pytest.mark.req("RC-11")
def test_what_comes_twice_or_was_changed_since(mem: Memory) -> None:
    bank = mem.bank(user_id="ana")
    given = {"plan_id": "p", "created_at": "2026-01-01T00:00:00Z", "actions": [write(episode("rm_1"))]}
    made = bank.plan(given)
    assert bank.plan(given) == made  # the same plan again is the same plan
    first = bank.apply(made.plan_id)
    do(bank, write(episode("rm_1", summary="Another way.")))
    assert bank.apply(made.plan_id).records == first.records
    assert bank.get("rm_1").record["summary"] == "Another way."
    with pytest.raises(Conflict):
        bank.undo(made.plan_id)
    assert bank.get("rm_1").version == 2
    last = bank.plans()[-1].plan.plan_id
    undone = bank.undo(last)
    assert bank.undo(last) == undone
    assert bank.get("rm_1").version == 3
    again = bank.undo(undone[0].plan_id)  # an undo can be undone
    assert again
    assert bank.get("rm_1").record["summary"] == "Another way."
    assert mem.store.rebuild().repaired == ()


# -- many at once -------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("RC-11")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_plans_on_one_record_are_serialised(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with ExitStack() as stack:
        if engine == "postgres":
            schema, dsn = request.getfixturevalue("kept_postgres_schema"), request.getfixturevalue("postgres_dsn")
            opened = [PostgresEngine(dsn, schema=schema) for _ in range(2)]
        else:
            opened = [open_engine(tmp_path / "store.db") for _ in range(2)]  # two handles, as two processes have
        mems = [Memory(new_context(each, Policy(), system_clock, SystemIds())) for each in opened]
        for mem in mems[: len(set(map(id, opened)))]:
            stack.enter_context(mem)
        do(mems[0].bank(user_id="ana"), write(episode("rm_1")))
        plans = [
            mems[0]
            .bank(user_id="ana")
            .plan([write(episode("rm_1", summary=f"v{number}")), write(episode(f"rm_x{number}"))])
            for number in range(8)
        ]
        problems: list[BaseException] = []
        start = threading.Barrier(8)

        def work(number: int) -> None:
            start.wait()
            try:
                for plan in (plans[number], plans[(number + 1) % 8]):  # each plan by two
                    assert not mems[number % 2].bank(user_id="ana").apply(plan.plan_id).aborted
            except BaseException as error:  # noqa: BLE001 - whatever it is, the test has to see it
                problems.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert problems == []
        bank = mems[0].bank(user_id="ana")
        assert bank.get("rm_1").version == 9, "each plan once, none lost"
        touched = sorted(
            (found, left) for plan in bank.plans()[1:] for id_, found, left in plan.touched if id_ == "rm_1"
        )
        assert touched == [(number, number + 1) for number in range(1, 9)]
        assert mems[0].verify().ok
        assert mems[0].store.rebuild().repaired == ()
