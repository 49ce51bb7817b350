"""Near-duplicates become one, failures stand beside what passed, and what does not fit is not handed out."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core.policy import LearnPolicy
from muniment.learning.fold.transcripts import WORDING
from muniment.learning.hint_groups import put_together
from muniment.learning.hinting.tool_likeness import rarities, tool_likeness
from muniment.learning.hints import BELOW_FLOOR, Recallable, RecallQuestion, best_of, inject, weigh
from muniment.learning.stored_memory import StoredMemory

NOW = "2026-01-02T00:00:00Z"
POLICY = LearnPolicy()
ASKED = RecallQuestion(now=NOW, intent_key="intent|domain=air", tools=frozenset(("get_user", "book")))


def memory(id_: str, task: str, *tools: str, passed: bool = True, kind: str = "reasoning", **more: Any) -> StoredMemory:
    did = more.pop("did", f"Did: {', then '.join(tools)}")
    how = {} if passed else {"ending": f"failed after {tools[-1]} (no seats)"}
    record = {
        "summary": f"Asked: {task}. {'Passed' if passed else 'Failed'}. {did}.",
        "tags": ["pass" if passed else "fail", *(f"tool:{tool}" for tool in tools)],
        "intent_key": "intent|domain=air",
        "did": did,
        "wording": WORDING,
        **how,
        **more,
    }
    plain = {"id": id_, "kind": kind, "level": "user", "version": 1, "record": record, "status": "active"}
    return StoredMemory.model_validate(plain | {"created_at": NOW, "sources": (f"trc_{id_}",)})


def recalled(*memories: StoredMemory, most: int = 5, asked: RecallQuestion = ASKED) -> Any:
    found = [Recallable(each, "ReasoningBank", 0.5, 0.5) for each in memories]
    weighed, dropped = weigh(found, asked, POLICY)
    return inject(best_of(put_together(weighed).kept, most), POLICY.injection, lambda text: len(text.split())), dropped


def test_the_same_task_done_the_same_way_is_one_hint_that_says_how_often() -> None:
    same = [memory(f"m{place}", f"Book flight {place} to Oslo", "get_user", "book") for place in range(3)]
    injection, _ = recalled(*same, memory("m9", "Book flight 9 to Oslo", "get_user", "cancel", "book"))
    assert [hint.memory_id for hint in injection.hints] == ["m0", "m9"]
    told = '3 runs like "Book flight … to Oslo": passed 3 of 3. Did: get_user, then book.'
    assert injection.hints[0].summary == told
    assert injection.hints[0].model_extra["alike_ids"] == ["m1", "m2"]
    assert injection.hints[0].trace_ids == ("trc_m0", "trc_m1", "trc_m2")
    assert "alike_ids" not in injection.hints[1].model_extra


def test_another_task_another_doing_or_another_end_is_another_hint() -> None:
    injection, _ = recalled(
        memory("a", "Book a flight to Oslo", "get_user", "book"),
        memory("b", "Mend the rounding of an invoice", "get_user", "book"),
        memory("c", "Book a flight to Oslo", "book", "get_user", "pay"),
        memory("d", "Book a flight to Oslo", "get_user", "book", did="Did: get_user, then book (cabin=first class)"),
    )
    assert sorted(hint.memory_id for hint in injection.hints) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("kind", ["reasoning", "tactic", "rule"])
def test_the_same_words_come_once(kind: str) -> None:
    one, other = (memory(f"m{place}", "Book", "book", kind=kind) for place in range(2))
    found = [Recallable(each, "ReuseBuffer", 0.5) for each in (one, other)]
    asked = RecallQuestion(now=NOW, intent_key="intent|domain=air")
    if kind == "rule":
        found = [
            each._replace(memory=each.memory.model_copy(update={"record": each.memory.record | {"status": "active"}}))
            for each in found
        ]
    (left,) = put_together(weigh(found, asked, POLICY)[0]).kept
    assert left.ids == ("m0", "m1")


def test_passing_runs_come_first_and_the_failure_most_like_them_stands_beside() -> None:
    injection, _ = recalled(
        memory("fail_near", "Book a seat to Rome", "get_user", "book", passed=False),
        memory("fail_far", "Book a seat to Rome", "mend", passed=False),
        memory("pass", "Reserve a room", "get_user", "book"),
    )
    assert [hint.memory_id for hint in injection.hints] == ["pass"]
    assert injection.hints[0].summary.endswith("A run like it failed after book (no seats).")
    assert injection.hints[0].model_extra["beside_id"] == "fail_near"


def test_an_unlike_failure_is_not_told_beside() -> None:
    injection, _ = recalled(
        memory("fail_far", "Book a seat to Rome", "mend", passed=False), memory("pass", "Book", "get_user", "book")
    )
    assert "beside_id" not in injection.hints[0].model_extra
    assert "failed" not in injection.text


def test_an_error_that_the_passing_run_met_too_is_not_told_as_what_sets_them_apart() -> None:
    same = memory("pass", "Book", "get_user", "book", did="Did: get_user, then book (no seats)")
    injection, _ = recalled(memory("fail", "Book a seat to Rome", "get_user", "book", passed=False), same)
    assert "beside_id" not in injection.hints[0].model_extra


def test_where_nothing_passed_two_failures_are_told() -> None:
    names = ("Book a seat to Rome", "Mend the invoice", "Count the sheep on a hill")
    injection, _ = recalled(*(memory(f"f{place}", name, "book", passed=False) for place, name in enumerate(names)))
    assert [hint.memory_id for hint in injection.hints] == ["f0", "f1"]


def test_a_failure_scores_high_and_still_comes_after() -> None:
    near = Recallable(memory("near", "Book", "get_user", "book", passed=False), "ReasoningBank", 1.0)
    far = Recallable(memory("far", "Walk", "stroll"), "ReasoningBank", 0.1)
    assert [each.candidate.memory.id for each in weigh([near, far], ASKED, POLICY)[0]] == ["far", "near"]


def test_what_is_like_the_task_in_nothing_is_below_the_floor() -> None:
    other = memory("m", "Sail", "sail", intent_key="intent|family=ships")
    asked = RecallQuestion(now=NOW, tools=frozenset(("book",)))
    near, far = (Recallable(other, "ReasoningBank", 1.0, chance) for chance in (POLICY.fit_min, 0.2))
    assert weigh([near], asked, POLICY)[1] == []
    assert weigh([far], asked, POLICY)[1] == [("m", BELOW_FLOOR)]
    assert weigh([far], asked, POLICY.model_copy(update={"fit_min": 0.0}))[1] == []
    same_tools = RecallQuestion(now=NOW, tools=frozenset(("sail",)))
    assert weigh([far], same_tools, POLICY)[1] == []
    same_work = RecallQuestion(now=NOW, intent_key="intent|family=ships")
    assert weigh([far], same_work, POLICY)[1] == []


def test_what_was_asked_is_not_handed_out_without_what_was_done() -> None:
    long = memory("m", "word " * 200, "get_user", "book")
    injection, _ = recalled(long, memory("n", "Book", "get_user", "book"))
    assert injection.used_ids == ("n",)
    assert injection.overflow[0]["action"] == "left_out"


def test_the_order_is_that_of_the_scores_whatever_order_they_come_in() -> None:
    runs = [memory(f"m{place}", f"Task {'abcdefgh'[place] * 4}", "get_user", "book", f"t{place}") for place in range(8)]
    first = recalled(*runs)[0]
    assert recalled(*reversed(runs))[0] == first


def test_a_tool_that_acts_or_is_rare_says_more() -> None:
    rarity = rarities([{"get_user", "book"}, {"get_user", "cancel"}, {"get_user", "cancel"}])
    assert rarity["get_user"] < rarity["cancel"] < rarity["book"]
    asked = {"get_user", "book"}
    acts, looks = (tool_likeness(asked, theirs, rarity) for theirs in ({"book"}, {"get_user"}))
    assert 0 < looks < 0.5 < acts < 1
    assert tool_likeness(asked, asked, rarity) == 1
    assert tool_likeness(asked, set(), rarity) == tool_likeness(set(), asked, rarity) == 0
