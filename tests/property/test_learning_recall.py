"""Recalls, working sets and sizes hold their promises; engines and dumps agree on all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from learning_makers import FAIL, INTENT, KEY, PASS, Hand, do, episode, on, one_run, seed, store, tactic, teach, write

import muniment
from effort import one_in
from muniment.errors import InvalidInput, MunimentError
from muniment.handles.memory import Memory
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import fresh_schema, server_dsn


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def mem(clock: Hand) -> Iterator[Memory]:
    with store(clock=clock) as memory:
        yield memory


# -- recall -------------------------------------------------------------------------------------------

LONG = [
    "漢字" * 2500,
    "🙂" * 3500,
    "x" * 10_000,
    "One. Two. " * 500,
    "a b " * 2000,
    "e\u0301" * 2000,
    "\u202e abc" * 800,
]


@pytest.mark.soak
@pytest.mark.req("RC-09")
@pytest.mark.parametrize("total", [1, 7, 40, 256])
def test_the_budget_holds_for_any_text(total: int) -> None:
    with store(policy={"learn": {"injection": {"total_tokens_max": total}}}) as mem:
        bank = mem.bank(user_id="ana")
        for number, text in enumerate(LONG):
            assert not do(bank, write(episode(f"rm_{number}", summary=text))).aborted
            said = tactic(f"tac_{number}", injection={"content": f"Then {text}"})
            assert not do(bank, write(said, "ReuseBuffer")).aborted
        run = mem.run(user_id="ana", agent_id="solver")
        recalled = run.learning.recall("漢字 x One a", intent=INTENT, top_k=50)
        count = mem._ctx.counter.count
        assert len(recalled.hints) == 2 * len(LONG)
        assert count(recalled.text) == recalled.injection.tokens <= total
        told = {each["memory_id"] for each in recalled.injection.overflow}
        for hint in recalled.hints:
            limit = 160 if hint.source == "ReuseBuffer" else 120
            assert count(hint.summary or "") <= limit
            assert hint.model_extra["injected"] or hint.memory_id in told
            assert ("payload_ref" in hint.model_extra) == (hint.memory_id in told)


@pytest.mark.req("RC-08")
def test_what_is_over_is_not_recalled(mem: Memory, clock: Hand) -> None:
    bank = mem.bank(user_id="ana")
    do(
        bank,
        write(episode("rm_old", ttl="hours:1")),
        write(episode("rm_gone")),
        write(episode("rm_temp", status="temporary")),
    )
    do(bank, write(episode("rm_words", summary="zebra crossing")), write(seed("seed_1", intent_key=KEY), "ReuseBuffer"))
    do(bank, write(tactic("tac_if", predicates=['x_features.size == "large"']), "ReuseBuffer"))
    do(bank, on("RETIRE", "rm_gone"), write(episode("rm_words", summary="Work backwards, newly worded.")))

    def found(query: str = "work backwards", **said: Any) -> set[str]:
        run = mem.run(user_id="ana", agent_id="solver")
        return {hint.memory_id for hint in run.learning.recall(query, intent=INTENT, top_k=50, **said).hints}

    assert found() == {"rm_old", "rm_words"}
    assert found(features={"size": "large"}) == {"rm_old", "rm_words", "tac_if"}
    assert found(features={"size": "small"}) == found(features={"size": 3}) == {"rm_old", "rm_words"}
    clock.ahead_days = 1
    assert found() == {"rm_words"}
    run = mem.run(user_id="ana", agent_id="solver")
    zebra = run.learning.recall("zebra crossing")  # the older wording is found by nobody
    assert not any("zebra" in (hint.summary or "") for hint in zebra.hints)
    assert zebra.response.fallback_used
    clock.ahead_days = 100  # the TTL of the policy
    assert found() == set()


@pytest.mark.req("RC-08", "RC-13")
def test_what_never_helped_is_not_recalled() -> None:
    with store() as mem:
        bank = mem.bank(user_id="ana")
        do(bank, write(tactic("tac_bad", injection={"content": "Guess backwards."}), "ReuseBuffer"))
        do(bank, write(tactic("tac_kept"), "ReuseBuffer"), on("PIN", "tac_kept", store="ReuseBuffer"))
        recalled = None
        for number in range(20):
            run = mem.run(user_id="ana", agent_id="solver")
            run.observe("user", f"Reach {number}.")
            recalled = run.learning.recall("work backwards", intent=INTENT, sources=["ReuseBuffer"])
            run.finish(verifier_result=FAIL, intent=INTENT)
        assert recalled is not None
        assert [hint.memory_id for hint in recalled.hints] == ["tac_kept"]  # a pin is somebody's word
        assert ("tac_bad", "hopeless") in recalled.dropped
        assert bank.get("tac_bad").with_tally.passes == 0


@pytest.mark.req("RC-08")
def test_used_takes_what_was_recalled(mem: Memory) -> None:
    teach(mem)
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "Reach 24.")
    first = run.learning.recall("Reach", intent=INTENT)
    second = run.learning.recall("Reach", intent=INTENT)
    other = mem.run(user_id="ana", agent_id="solver").learning.recall("Reach", intent=INTENT)
    for recalled, ids in (
        (second, ["nobody"]), (second, [7]), (second, "rm_1"), (second, None), (first, []), (other, []), ("rec_no", []),
        (None, []),
    ):  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            run.learning.used(recalled, ids)
        assert caught.value.path
    run.learning.used(second, [second.hints[0].memory_id])
    run.finish(verifier_result=PASS, intent=INTENT)
    log = mem.bank(user_id="ana").event_logs(limit=1)[0]
    assert log.memory_recall.used_ids == (second.hints[0].memory_id,)
    assert set(log.memory_recall.retrieved_ids) == {hint.memory_id for hint in second.hints}


@pytest.mark.req("RC-09")
def test_a_packet_with_hints_is_the_same_after_all_changes(mem: Memory) -> None:
    teach(mem)
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "Reach 24.")
    run.learning.recall("Reach", intent=INTENT, state={"mode": "main"})
    builds = [run.compose(purpose, query="Reach", max_tokens=1024) for purpose in ("planner", "tool", "responder")]
    assert ["earlier run: " in build.text for build in builds] == [True, True, False]
    assert b"memory_hints" not in builds[2].packet_bytes
    bank = mem.bank(user_id="ana")
    for held in bank.records():
        do(bank, on("RETIRE", held.id, store=next(name for name in STORES if held.kind in STORES[name])))
    teach(mem)
    for build in builds:
        assert mem.replay(build.id).packet_bytes == build.packet_bytes


STORES = {"ReasoningBank": ("reasoning",), "ReuseBuffer": ("seed", "tactic"), "TraceCapsule": ("trace_capsule",)}


# -- working sets -------------------------------------------------------------------------------------


def test_working_sets_run_out_and_end_with_the_run(mem: Memory, clock: Hand) -> None:
    run = mem.run(user_id="ana", agent_id="solver")
    for number in range(12):
        run.learning.push_working_set(ttl="hours:1" if number % 2 else "days:2", facts=[f"fact {number}"])
    assert [record.facts for record in run.learning.working_set()[1]] == [(f"fact {number}",) for number in range(12)]
    clock.ahead_days = 1
    assert [record.facts for record in run.learning.working_set()[1]] == [
        (f"fact {number}",) for number in range(0, 12, 2)
    ]
    assert run.learning.pop_working_set().facts == ("fact 10",)
    assert run.learning.note(decisions=["go"]).facts == ("fact 8",)
    other = mem.run(user_id="ana", agent_id="solver")
    assert other.learning.working_set()[1] == ()
    run.finish()
    assert run.learning.working_set()[1] == ()
    assert run.learning.working_set()[0].current_ws_id is None
    with pytest.raises(MunimentError):
        run.learning.note(facts=["late"])


# -- sizes --------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RC-21")
@pytest.mark.parametrize(("most", "method"), one_in(4, list(product((1, 7, 24), ("lru", "score_decay", "hybrid")))))
def test_no_store_exceeds_its_size(most: int, method: str) -> None:
    sizes = dict.fromkeys(("reasoning_max", "tactics_max", "seeds_max", "capsules_max"), most)
    with store(policy={"learn": {"eviction": {"method": method} | sizes, "plan_actions_max": 200}}) as mem:
        bank = mem.bank(user_id="ana")
        do(bank, write(episode("rm_pinned")), on("PIN", "rm_pinned"))
        for number in range(most + 20):
            if number % 5 == 4:  # by plans, several at once
                do(bank, *(write(episode(f"rm_{number}_{each}")) for each in range(5)))
            else:
                one_run(mem, number, passed=number % 3 > 0, recalls=number % 2 == 0)
            for kind in ("reasoning", "tactic", "seed", "trace_capsule"):
                assert len(bank.records(kind=kind)) <= most, (kind, number)
            assert bank.get("rm_pinned").status == "pinned"


def test_a_full_bank_is_tidied_by_as_many_plans_as_it_takes() -> None:
    hand = Hand()
    with store(policy={"learn": {"plan_actions_max": 10}}, clock=hand) as mem:
        bank = mem.bank(user_id="ana")
        for number in range(4):
            do(bank, *(write(episode(f"rm_{number}_{each}", ttl="hours:1")) for each in range(9)))
        hand.ahead_days = 1
        assert len(bank.tidy()) == 36
        assert bank.records() == []
        assert bank.tidy() == ()


# -- engines agree ------------------------------------------------------------------------------------


def told(mem: Memory) -> tuple[list[bytes], list[Any]]:
    """A story, its bytes, and what its recalls answered."""
    answers: list[Any] = []
    teach(mem, recalls=True)
    teach(mem, recalls=True, level="tenant")
    bank = mem.bank(user_id="ana")
    do(bank, write(episode("rm_1")), write(episode("rm_2")), on("PIN", "rm_1"))
    merged = bank.plan([on("MERGE", "rm_1", "rm_2", payload=episode("rm_3"))])
    bank.apply(merged.plan_id)
    bank.undo(merged.plan_id)
    bank.tidy()
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "Reach 24.")
    run.learning.note(facts=["one"])
    run.learning.push_working_set(facts=["two"])
    for said in ({"intent": INTENT, "state": {"mode": "main"}}, {}):
        recalled = run.learning.recall("Reach 24 backwards", top_k=20, **said)
        answers.append((recalled.response.to_wire(), recalled.text, recalled.dropped))
    answers.append(run.compose("planner", query="Reach 24").packet_bytes)
    answers.append([term._asdict() for term in bank.select_seed()[1]])
    answers.append([bank.reasoning_bank().to_wire(), bank.reuse_buffer().to_wire(), run.learning.working_set()])
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()
    return list(mem.export()), answers


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RC-05", "RC-08")
def test_engines_and_dumps_agree(tmp_path: Path) -> None:
    dumps, answers = [], []
    with ExitStack() as stack:
        dsn = server_dsn()
        engines = [
            open_engine(":memory:"),
            open_engine(tmp_path / "store.db"),
            PostgresEngine(dsn, schema=stack.enter_context(fresh_schema(dsn))),
        ]
        for engine in engines:
            mem = stack.enter_context(store(engine))
            dump, answer = told(mem)
            dumps.append(_without_salts(dump))
            answers.append(answer)
        assert answers[0] == answers[1] == answers[2]
        assert dumps[0] == dumps[1] == dumps[2]
        (tmp_path / "dump").write_bytes(b"".join(mem.export()))
        for target in (":memory:", str(tmp_path / "other.db")):
            with muniment.open(target) as other:
                other.import_(tmp_path / "dump")
                assert b"".join(other.export()) == (tmp_path / "dump").read_bytes()
                assert other.verify().ok
                assert other.store.rebuild().repaired == ()
                for pick in ({"user_id": "ana"}, {}):
                    mine, theirs = mem.bank(**pick), other.bank(**pick)
                    assert mine.records(include_all=True) == theirs.records(include_all=True)
                    assert mine.plans() == theirs.plans()
                    assert mine.event_logs() == theirs.event_logs()
                    assert mine.drafts() == theirs.drafts()


def _without_salts(dump: list[bytes]) -> list[Any]:
    import json

    rows = [json.loads(line) for line in dump]
    for line in rows:
        for name in ("salt", "hash", "prev_hash", "head_hash", "digest"):
            line.get("row", line).pop(name, None)
    return rows
