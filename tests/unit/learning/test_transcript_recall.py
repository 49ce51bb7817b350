"""Runs recalled by what they did, through the library: arguments, errors, files, scopes, forget."""

from __future__ import annotations

from typing import Any

import pytest

PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL"}
INTENT = {"domain_tag": "code"}
SHOP = {"domain_tag": "shop"}


def learn(mem: Any, asked: str, *calls: dict[str, Any], passed: bool = True, **more: Any) -> Any:
    scope = {"user_id": "ana", "agent_id": "coder"} | more.pop("scope", {})
    run = mem.run(**scope)
    run.observe("user", asked)
    for each in calls:
        run.observe_tool(each["tool"], content=each.get("says", "done"), args=each.get("args"), ok=each.get("ok", True))
    run.finish(verifier_result=PASS if passed else FAIL, intent=more.pop("intent", INTENT), **more)
    return run


def teach(mem: Any, **more: Any) -> list[Any]:
    return [
        learn(mem, "The totals are wrong.", {"tool": "edit", "args": {"path": "src/billing/round.py"}}, **more),
        learn(mem, "The page is slow.", {"tool": "tune", "args": {"setting": "cache_ttl"}}, **more),
        learn(mem, "The nightly job stops.",
              {"tool": "run_job", "ok": False, "says": "TimeoutError: queue took longer than 30 ms"},
              {"tool": "restart"}, **more),
        learn(mem, "Letters come twice.", {"tool": "dedupe", "args": {"channel": "webhook"}}, **more),
    ]  # fmt: skip


def ask(mem: Any, query: str, user_id: str = "ana", run: Any = None, **more: Any) -> Any:
    run = run or mem.run(user_id=user_id, agent_id="coder")
    return run.learning.recall(query, keep=False, **more)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("query", "task"),
    [
        ("round.py", "The totals are wrong"),
        ("src/billing/round.py gives odd sums", "The totals are wrong"),
        ("which cache_ttl is right", "The page is slow"),
        ("TimeoutError in the queue", "The nightly job stops"),
        ("webhook channel", "Letters come twice"),
    ],
)
def test_a_run_is_found_by_an_argument_an_error_or_a_file(mem: Any, query: str, task: str) -> None:
    teach(mem)
    found = ask(mem, query)
    assert found.hints, found.dropped
    assert task in found.hints[0].summary


def test_a_run_that_has_acted_is_helped_by_what_it_did(mem: Any) -> None:
    teach(mem)
    run = mem.run(user_id="ana", agent_id="coder")
    run.observe("user", "Help.")
    assert ask(mem, "Help.", run=run).hints == ()
    run.observe_tool("run_job", content="TimeoutError: queue took longer than 45 ms", ok=False)
    (first, *_rest) = ask(mem, "Help.", run=run).hints
    assert "The nightly job stops" in first.summary


def test_where_nothing_fits_nothing_comes_and_it_says_so(mem: Any) -> None:
    teach(mem)
    found = ask(mem, "Which soprano sang Aida in Verona?")
    assert (found.hints, found.text) == ((), "")
    assert found.response.model_extra["note"]
    assert "note" not in (ask(mem, "round.py").response.model_extra or {})
    assert ask(mem, "Which soprano sang Aida in Verona?", user_id="bob").response.model_extra["note"]


def test_the_same_work_is_recalled_whatever_its_words(mem: Any) -> None:
    teach(mem)
    assert ask(mem, "Which soprano sang Aida in Verona?", intent=INTENT).hints


def test_identical_runs_are_one_hint_and_none_repeats(mem: Any) -> None:
    for _ in range(4):
        learn(mem, "Ship the order.", {"tool": "ship", "args": {"way": "air"}}, intent=SHOP)
    learn(
        mem,
        "Ship the order.",
        {"tool": "ship", "ok": False, "args": {"way": "x7"}, "says": "Error: no such way"},
        intent=SHOP,
        passed=False,
    )
    found = ask(mem, "Ship the order.", intent=SHOP, sources=["ReasoningBank"])
    (hint,) = found.hints
    assert hint.summary == "Asked: Ship the order. Passed. Did: ship (way=air)."
    assert "no such way" not in hint.summary  # a failure takes no room where runs passed
    assert found.text.count("Ship the order") == 1


def test_no_words_of_a_run_come_through_a_shared_bank(mem: Any) -> None:
    run = mem.run(user_id="ana", agent_id="coder", grants=("agent",))
    run.observe("user", "Move Zerlina's parcel to Lausanne.")
    run.observe_tool("move_parcel", content="Error: unknown town Lausanne", args={"town": "Lausanne"}, ok=False)
    run.finish(verifier_result=PASS, intent=INTENT, level="agent")
    (kept,) = mem.bank(agent_id="coder").records(kind="reasoning")
    said = str(kept.record)
    assert "move_parcel" in said
    assert not any(word in said for word in ("Zerlina", "Lausanne", "town", "parcel to"))
    assert ask(mem, "Zerlina Lausanne town", user_id="bob").hints == ()
    assert ask(mem, "move_parcel", user_id="bob").hints


def test_another_users_runs_are_not_found(mem: Any) -> None:
    teach(mem)
    assert ask(mem, "src/billing/round.py", user_id="bob").hints == ()


def test_forgetting_a_run_takes_what_it_did_and_what_was_told_of_it(mem: Any) -> None:
    first = learn(mem, "Ship the order.", {"tool": "ship", "args": {"way": "zeppelin"}}, intent=SHOP)
    learn(mem, "Ship the order.", {"tool": "ship", "args": {"way": "zeppelin"}}, intent=SHOP)
    learn(mem, "Ship it.", {"tool": "ship", "ok": False, "says": "GaleError: 9"}, intent=SHOP, passed=False)
    reader = mem.run(user_id="ana", agent_id="coder")
    reader.observe("user", "Ship the order.")
    told = reader.learning.recall("Ship the order.", intent=SHOP, sources=["ReasoningBank"])
    assert "zeppelin" in told.text
    entry = next(entry for entry in first.ledger.entries() if entry.tool is not None)
    mem.forget(event=entry.id)
    after = ask(mem, "zeppelin", sources=["ReasoningBank"])
    assert len(after.hints) == 1
    assert first.run_id not in str([hint.to_wire() for hint in after.hints])


def test_the_same_question_has_the_same_answer_byte_for_byte(mem: Any) -> None:
    teach(mem)
    one, other = (ask(mem, "the cache_ttl of round.py", now="2027-01-01T00:00:00Z") for _ in range(2))
    assert one.text == other.text
    assert one.response.to_wire() | {"request_id": ""} == other.response.to_wire() | {"request_id": ""}


@pytest.mark.soak
def test_an_episode_is_small(mem: Any) -> None:
    calls = [{"tool": f"tool_{n}", "args": {"text": "long " * 500, "n": n}, "says": "x" * 5000} for n in range(60)]
    learn(mem, "Do much. " * 400, *calls)
    (kept,) = mem.bank(user_id="ana").records(kind="reasoning")
    assert len(str(kept.record).encode()) < 4_000
