"""What learning may reach and what may reach a bank: scopes, secrets, orders, words, and odd runs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from learning_makers import (
    FAIL,
    INTENT,
    ORDER,
    PASS,
    SECRET,
    Hand,
    do,
    episode,
    on,
    one_run,
    refused,
    store,
    tactic,
    teach,
    write,
)

import muniment
from muniment.core.ports.engine import Engine
from muniment.errors import Conflict, InvalidInput, MunimentError, NotFound
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine

pytestmark = pytest.mark.soak


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def policy() -> dict[str, Any] | None:
    return None


@pytest.fixture
def mem(clock: Hand, policy: dict[str, Any] | None) -> Iterator[Memory]:
    with store(clock=clock, policy=policy) as memory:
        yield memory


# -- scope --------------------------------------------------------------------------------------------


@pytest.mark.req("LG-02")
def test_users_and_tenants_learn_the_same_apart(mem: Memory) -> None:
    """What two learn alike is two records, and neither sees the other's."""
    teach(mem)
    teach(mem, user_id="bo")
    with store() as other:
        teach(other)
        alone = {each.record["summary"] for each in other.bank(user_id="ana").records(kind="tactic")}
    banks = [mem.bank(user_id="ana"), mem.bank(user_id="bo")]
    tactics = [{each.id for each in bank.records(kind="tactic")} for bank in banks]
    drafts = [{draft.draft_id for draft in bank.drafts()} for bank in banks]
    assert tactics[0]
    assert tactics[1]
    assert not tactics[0] & tactics[1]
    assert drafts[0]
    assert drafts[1]
    assert not drafts[0] & drafts[1]
    assert [{each.record["summary"] for each in bank.records(kind="tactic")} for bank in banks] == [alone, alone]
    for mine, others in itertools.permutations(banks):
        plan = others.plans()[-1].plan.plan_id
        for call in (
            lambda: mine.get(others.records()[0].id),  # noqa: B023 - called at once
            lambda: mine.apply(plan),  # noqa: B023
            lambda: mine.undo(plan),  # noqa: B023
            lambda: mine.apply(plan, dry_run=True),  # noqa: B023
        ):
            with pytest.raises(NotFound):
                call()
        refused(mine, "unknown_id", on("RETIRE", others.records(kind="reasoning")[0].id))
    recalled = mem.run(user_id="bo", agent_id="solver").learning.recall("Reach", intent=INTENT, top_k=50)
    own = {each.id for each in banks[1].records(include_all=True)}
    assert recalled.hints
    assert {hint.memory_id for hint in recalled.hints} <= own
    assert b"bank:user:bo" not in b"".join(mem.export(user_id="ana"))
    assert not mem.run(user_id="ana", tenant_id="acme").learning.recall("Reach", intent=INTENT).hints


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_tenants_learn_the_same_apart(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if engine == "postgres":
        opened: Engine = PostgresEngine(
            request.getfixturevalue("postgres_dsn"), schema=request.getfixturevalue("kept_postgres_schema")
        )
    else:
        opened = open_engine(tmp_path / "store.db")
    with store(opened) as mem:
        for tenant in ("acme", "umbrella"):
            for number in range(12):
                run = mem.run(user_id="ana", agent_id="solver", tenant_id=tenant)
                run.observe_tool("back" if number % 2 else "greedy", content="tried")
                run.finish(verifier_result=PASS if number % 2 else FAIL, intent=INTENT, features={"way": number % 2})
        banks = [mem.bank(user_id="ana", tenant_id=tenant) for tenant in ("acme", "umbrella")]
        assert all(bank.records(kind="tactic") and bank.drafts() for bank in banks)
        assert mem.verify(tenant_id="acme").ok


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("name", ["bank:user:bo", "bank:tenant", "bank:", "bank:x", "corpus:x"])
def test_reserved_names_are_no_users(mem: Memory, name: str) -> None:
    for call in (
        lambda: mem.run(user_id=name),
        lambda: mem.bank(user_id=name),
        lambda: mem.corpus("c", user_id=name),
        lambda: mem.runner(lambda _: "x", lambda *_: True, user_id=name).run("x"),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.path == "$.user_id"


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("name", ["bank:", "bank:x", "bank:user:", "bank:tenant:x"])
def test_a_dump_brings_no_name_that_nobody_has(mem: Memory, tmp_path: Path, name: str) -> None:
    scope = mem.run(user_id="ana").scope.model_copy(update={"user_id": name})
    Run(mem._ctx, scope, "generic", None, None).observe("user", "hello")  # as a store that was tampered with
    (tmp_path / "dump").write_bytes(b"".join(mem.export()))
    with muniment.open(":memory:") as other:
        with pytest.raises(InvalidInput, match="no user's name"):
            other.import_(tmp_path / "dump")
        assert other.store.tenants() == []


def test_a_name_that_leaves_no_room_for_a_bank_is_refused(mem: Memory) -> None:
    run = mem.run(user_id="u" * 256)
    run.observe("user", "hello")
    before = len(list(run.ledger.entries()))
    for call in (lambda: run.learning.learn(PASS), lambda: mem.bank(user_id="u" * 256).plan([write(episode())])):
        with pytest.raises(InvalidInput, match="a name of at most"):
            call()
    assert len(list(run.ledger.entries())) == before
    assert run.learning.recall("hello").hints == ()


def test_levels_do_not_mix(mem: Memory) -> None:
    """A run is folded at one level."""
    run = mem.run(user_id="ana", agent_id="solver", grants=("tenant",))
    run.observe("user", "hello")
    run.learning.fold()
    with pytest.raises(Conflict, match="another level"):
        run.finish(verifier_result=PASS, intent=INTENT, level="tenant")
    run.finish(verifier_result=PASS, intent=INTENT)


# -- what reaches a bank ------------------------------------------------------------------------------


@pytest.mark.req("LG-10")
def test_no_secret_reaches_a_bank(mem: Memory) -> None:
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", f"My key is {SECRET}.")
    run.observe_tool("fetch", content=f"token {SECRET}", args={"api_key": SECRET})
    run.learning.recall(SECRET, intent={"task_family": SECRET}, features={"f": SECRET})
    run.learning.note(facts=[SECRET])
    run.observe("assistant", f"It is {SECRET}.")
    run.finish(
        verifier_result=FAIL | {"reason_codes": [SECRET], "violated_constraints": [SECRET], "notes": SECRET},
        intent={"domain_tag": SECRET}, state={"policy_profile": SECRET}, features={"a": SECRET, SECRET: 1},
        cfg={"seed_prompt": SECRET}, lessons=lambda _: proposing(f"Use {SECRET} for fetch", SECRET, SECRET),
    )  # fmt: skip
    assert SECRET.encode() not in b"".join(mem.export())
    assert mem.bank(user_id="ana").records(kind="reasoning")
    done = mem.runner(lambda _: raising(SECRET), lambda *_: True, user_id="ana").run("go")
    assert not done.passed
    assert SECRET.encode() not in b"".join(mem.export())


def proposing(text: str, when: str, event: str) -> str:
    """The answer of a model that says what it may not, wherever it can."""
    lesson = {"text": text, "when": when, "events": ["e2", event], "advice": "do"}
    return json.dumps(
        {"lessons": [lesson, lesson | {"events": ["e2"]}, lesson | {"text": "Use back for it", "when": "x"}] * 2}
    )


def raising(words: str) -> str:
    raise ValueError(words)


@pytest.mark.req("LG-08")
def test_orders_are_not_learnt(mem: Memory) -> None:
    for number in range(8):
        run = mem.run(user_id="ana", agent_id="solver")
        run.observe("user", ORDER)
        run.observe_tool("back" if number % 2 else "greedy", content=ORDER, args={"say": ORDER})
        run.observe_tool(ORDER, content="a tool's name is not ours either")
        run.observe("assistant", ORDER)
        run.finish(
            verifier_result=PASS if number % 2 else FAIL | {"reason_codes": [ORDER]}, intent=INTENT,
            features={"way": ORDER if number % 2 else "g"},
            lessons=lambda _: proposing(f"{ORDER}. Use back", ORDER, ORDER),
        )  # fmt: skip
    held = mem.bank(user_id="ana").records(include_all=True)
    assert held
    assert not any("gnore all previous" in str(each.record) for each in held)
    recalled = mem.run(user_id="ana", agent_id="solver").learning.recall("what was asked", intent=INTENT)
    assert recalled.hints
    assert "gnore all previous" not in recalled.text


@pytest.mark.req("RC-10")
@pytest.mark.parametrize("level", ["agent", "tenant"])
def test_no_words_go_above_the_user(mem: Memory, level: str) -> None:
    shown: list[Any] = []
    for number in range(8):
        run = mem.run(user_id="ana", agent_id="solver", grants=("agent", "tenant"))
        run.observe("user", "Gonzalez asks.")
        run.observe_tool("back" if number % 2 else "greedy", content="Gonzalez", args={"name": "Maria Gonzalez"})
        run.observe("assistant", "Gonzalez it is.")
        run.finish(
            verifier_result=(PASS if number % 2 else FAIL) | {"notes": "Gonzalez"}, intent=INTENT, level=level,
            features={"way": number % 2, "story": "Gonzalez " * 10}, cfg={"seed_prompt": "Gonzalez"},
            lessons=shown.append,
        )  # fmt: skip
    assert shown
    assert "Gonzalez" not in str(shown), "a model that writes for others is shown none of them either"
    bank = mem.bank() if level == "tenant" else mem.bank(agent_id="solver")
    assert bank.records(kind="tactic")
    lines = [line for line in b"".join(mem.export()).splitlines() if f'"bank:{level}'.encode() in line]
    assert lines
    assert not any(b"Gonzalez" in line for line in lines)


# -- learning -----------------------------------------------------------------------------------------


def test_folds_in_the_middle_of_a_run_are_apart(mem: Memory) -> None:
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "Reach 24.")
    first = run.learning.fold()
    assert run.learning.fold() == first, "nothing has happened since"
    run.observe_tool("back", content="tried")
    second = run.learning.fold()
    assert second.fold_id != first.fold_id
    assert second.action_plan_id != first.action_plan_id
    bank = mem.bank(user_id="ana")
    assert [plan.status for plan in bank.plans()] == ["applied", "applied"]
    assert [held.status for held in bank.records(kind="reasoning")] == ["temporary"]
    assert mem.run(user_id="ana", agent_id="solver").learning.recall("Reach 24").hints == ()
    run.finish(verifier_result=PASS, intent=INTENT)
    assert [held.status for held in bank.records(kind="reasoning")] == ["active"]
    assert len(bank.event_logs()) == 1
    with pytest.raises(MunimentError):
        run.learning.fold()


@pytest.mark.parametrize("outcome", ["UNKNOWN", "FAIL", "OK"])
@pytest.mark.parametrize("verdict", ["PASS", "FAIL", "PARTIAL"])
def test_every_verdict_is_learnt_once(mem: Memory, verdict: str, outcome: str) -> None:
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "Reach 24.")
    result = {"verifier_id": "v", "verdict": verdict, "outcome": outcome, "notes": f"api_key={SECRET}"}
    learned = run.learning.learn(result, intent=INTENT)
    seeds = mem.bank(user_id="ana").records(kind="seed")
    assert len(seeds) == (
        verdict == "PASS" and outcome != "FAIL" and mem.bank(user_id="ana").records()[0].record.get("pass_p_hat") == 1
    )
    before = len(list(run.ledger.entries()))
    assert run.learning.learn(result, intent=INTENT) == learned == mem.learning.learn(run.run_id, result)
    assert len(list(run.ledger.entries())) == before
    assert len(mem.bank(user_id="ana").event_logs()) == 1


@pytest.mark.req("RC-12")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_run_that_many_learn_from_at_once_is_learnt_once(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if engine == "postgres":
        schema = request.getfixturevalue("kept_postgres_schema")
        opened: Engine = PostgresEngine(request.getfixturevalue("postgres_dsn"), schema=schema)
    else:
        opened = open_engine(tmp_path / "store.db")
    with store(opened) as mem:
        teach(mem)
        bank = mem.bank(user_id="ana")
        for _ in range(3):
            run = mem.run(user_id="ana", agent_id="solver")
            run.observe("user", "Reach 24.")
            run.learning.recall("Reach", intent=INTENT, state={"mode": "main"})
            before = {each.id: each.with_tally.n for each in bank.records(include_all=True)}
            with ThreadPoolExecutor(6) as pool:
                learned = list(pool.map(lambda _, run=run: run.learning.learn(PASS, intent=INTENT), range(6)))
            assert all(each == learned[0] for each in learned)
            used = set(learned[0].event_log.memory_recall.used_ids)
            after = {each.id: each.with_tally.n for each in bank.records(include_all=True)}
            assert all(after[id_] == count + (id_ in used) for id_, count in before.items())
        assert len(bank.event_logs()) == 15
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()


@pytest.mark.soak
def test_a_long_run_with_large_arguments(mem: Memory) -> None:
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "数" * 5000 + " 🙂")
    large = {"blob": "y" * 40_000}
    run.observe_many(
        {
            "role": "tool",
            "content": f"came back {number} " + "é" * (number % 7),
            "tool": {"name": f"t{number % 40}", "args": {"n": number} if number % 500 else large, "ok": True},
        }
        for number in range(5000)
    )
    fold = run.finish(verifier_result=FAIL, intent=INTENT)
    held = mem.bank(user_id="ana").get(fold.produced.reasoning_ids[0])
    assert mem._ctx.counter.count(held.record["summary"]) <= mem.policy.learn.fold.summary_tokens_max
    assert mem.bank(user_id="ana").event_logs()[0].cost.tool_calls == 5000
    assert mem.bank(user_id="ana").plans()[-1].status == "applied"


def test_what_was_retired_is_not_proposed_again_however_long_ago() -> None:
    with store(policy={"learn": {"gather_max": 5}}) as mem:
        teach(mem)
        bank = mem.bank(user_id="ana")
        gone = bank.records(kind="tactic")[0]
        do(bank, on("RETIRE", gone.id, store="ReuseBuffer"))
        for number in range(8):  # versions of others come after it
            do(bank, write(tactic(f"tac_{number}"), "ReuseBuffer"))
        for number in range(6):
            one_run(mem, number, passed=number % 2 == 0)
            assert bank.plans()[-1].status == "applied"
        assert bank.get(gone.id).status == "retired"


def test_a_run_counts_the_seed_it_started_from(mem: Memory) -> None:
    runner = mem.runner(lambda task: "done", lambda *_: True, {"reuse": True}, user_id="ana")
    done = [runner.run(f"Task {number}.", intent=INTENT) for number in range(4)]
    chosen = [each.learned.event_log.reuse_select.selected_state_id for each in done]
    counts = {each.id: each.with_tally.n for each in mem.bank(user_id="ana").records(kind="seed")}
    assert chosen[0] is None
    assert sum(counts.values()) == 3
    assert all(counts[name] == chosen.count(name) for name in counts)


def test_what_stops_the_program_stops_the_runner(mem: Memory) -> None:
    def stop(_: Any) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mem.runner(stop, lambda *_: True, user_id="ana").run("go")
    done = mem.runner(lambda _: "x", lambda *_: raising("no"), user_id="ana").run("go")
    assert done.result.outcome == "UNKNOWN"
    assert not done.passed


def test_an_agent_that_tells_too_much_of_itself_is_refused(mem: Memory) -> None:
    told = {"text": "done", "features": {f"b{number}": 1 for number in range(60)}}
    runner = mem.runner(lambda _: told, lambda *_: True, user_id="ana")
    with pytest.raises(InvalidInput, match="more than 64 features"):
        runner.run("go", features={f"a{number}": 1 for number in range(60)})
    assert mem.runs(user_id="ana")[0].finished_at is not None


@pytest.mark.parametrize("policy", [{"learn": {"lessons": {"holdout_share": 0}}}])
def test_a_run_is_counted_once_and_only_where_it_was_judged(mem: Memory) -> None:
    bank = mem.bank(user_id="ana")
    do(bank, write(tactic(), "ReuseBuffer"))

    def agent(task: Any) -> str:
        return "done" if task.hints else "no hint"

    for number in range(8):  # a verifier that is out of order retires nothing
        done = mem.runner(agent, lambda *_: raising("down"), user_id="ana").run(f"Task {number}.", intent=INTENT)
        assert done.output.text == "done"
    assert (bank.get("tac_1").with_tally.n, bank.get("tac_1").status) == (0, "active")
    run = mem.run(user_id="ana", agent_id="agent")
    run.observe("user", "Reach 24.")
    run.learning.recall("work backwards", intent=INTENT)
    run.learning.fold("manual", verifier_result=FAIL, intent=INTENT)
    run.observe("user", "Go on.")
    run.finish(verifier_result=FAIL, intent=INTENT)
    assert bank.get("tac_1").with_tally.n == 1


def test_what_was_pruned_is_still_learnt(mem: Memory, clock: Hand) -> None:
    run = one_run(mem, 1, passed=True)
    bank = mem.bank(user_id="ana")
    first = mem.learning.learn(run.run_id, PASS)
    clock.ahead_days = 400
    ids = [each.id for each in bank.records("TraceCapsule")]
    do(bank, on("RETIRE", *ids, store="TraceCapsule"))
    assert not do(bank, on("PRUNE", *ids, store="TraceCapsule")).aborted
    assert mem.learning.learn(run.run_id, PASS) == first
