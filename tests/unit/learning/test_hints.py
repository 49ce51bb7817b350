"""Recalled records weighed, grouped by what was done, and cut to a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core.policy import LearnPolicy
from muniment.learning._hints import (
    BELOW_FLOOR,
    FAILED,
    OTHER_WAY,
    Recallable,
    RecallQuestion,
    best_of,
    group_hints,
    history_of,
    inject,
    quality_of,
    rarities,
    tool_likeness,
    weigh,
)
from muniment.learning.records import StoredMemory, Tally

NOW = "2026-01-02T00:00:00Z"
POLICY = LearnPolicy()


def memory(id_="rm_1", kind="reasoning", *, uses=(0, 0), **record):
    passes, n = uses
    return StoredMemory(
        id=id_,
        kind=kind,
        level="user",
        version=1,
        record={"summary": "words", **record},
        status="active",
        created_at=NOW,
        with_tally=Tally(n=n, passes=passes),
    )


def weighed(*candidates):
    return weigh(
        candidates, RecallQuestion(now=NOW, intent_key="intent|domain=d", state_key="state|mode=main"), POLICY
    )[0]


def test_what_an_episode_tells_of_counts_also_after_it_was_used():
    assert history_of(memory(tags=["fail"], pass_p_hat=1.0, uses=(1, 1))).passes == 1
    assert history_of(memory(tags=["fail"], pass_p_hat=1.0, uses=(1, 1))).n == 2
    assert history_of(memory(tags=["pass"])).passes == 1
    assert history_of(memory(pass_p_hat=0.0)).n == 1
    assert history_of(memory()).n == 0


@pytest.mark.req("RC-08")
def test_a_passing_run_is_worth_more_than_a_failing_one_and_proof_more_than_either():
    values = [
        quality_of(each, POLICY, NOW)[0]
        for each in (memory(tags=["fail"]), memory(), memory(tags=["pass"]), memory(tags=["pass"], uses=(9, 9)))
    ]
    assert values == sorted(set(values))


@pytest.mark.req("RC-08")
def test_episodes_leave_room_for_tactics():
    episodes = [Recallable(memory(f"rm_{number}", tags=["pass"]), "ReasoningBank", 1.0) for number in range(8)]
    tactics = [Recallable(memory(f"tac_{number}", "tactic"), "ReuseBuffer", 0.0) for number in range(3)]
    ordered = weighed(*episodes, *tactics)
    assert [each.candidate.source for each in ordered[:8]] == ["ReasoningBank"] * 8
    first = best_of(ordered, 5)
    assert [each.candidate.memory.id for each in first] == ["rm_0", "rm_1", "rm_2", "tac_0", "tac_1"]
    assert [each.score for each in first] == sorted((each.score for each in first), reverse=True)
    assert best_of(ordered, 1) == ordered[:1]
    assert best_of(weighed(*episodes), 5) == weighed(*episodes)[:5]


# -- grouping -----------------------------------------------------------------------------------------

BOOKING = RecallQuestion(now=NOW, intent_key="intent|domain=air|family=booking")


def run_of(
    name: str, *tools: str, passed: bool = True, given: dict[str, Any] | None = None, **more: Any
) -> StoredMemory:
    steps = [{"tool": tool} if isinstance(tool, str) else tool for tool in tools]
    record = {
        "request": "Book a seat",
        "outcome": "passed" if passed else "failed",
        "steps": steps,
        "tags": ["pass" if passed else "fail", *(f"tool:{each['tool']}" for each in steps)],
        "intent_key": "intent|domain=air|family=booking",
        **({"given": given} if given else {}),
        **more,
    }
    return StoredMemory.model_validate(
        {"id": name, "kind": "reasoning", "level": "user", "version": 1, "record": record, "status": "active",
         "created_at": f"2026-01-01T00:{name[1:]:0>2}:00Z" if name[1:].isdigit() else NOW, "sources": (f"trc_{name}",)}
    )  # fmt: skip


def grouped(*memories: StoredMemory, asked: RecallQuestion = BOOKING, run_id: str | None = None) -> Any:
    found = [Recallable(each, "ReasoningBank", 0.5, 0.5) for each in memories]
    return group_hints(weigh(found, asked, POLICY)[0], asked, POLICY.lessons, run_id)


def injected(*memories: StoredMemory, **more: Any) -> Any:
    return inject(best_of(grouped(*memories, **more).kept, 5), POLICY.injection, lambda text: len(text.split()))


@pytest.mark.req("RC-08")
def test_runs_of_one_work_that_did_the_same_are_one_hint_with_its_counts() -> None:
    injection = injected(*(run_of(f"m{place}", "get_user", "book", passed=place != 1) for place in range(3)))
    (hint,) = injection.hints
    assert hint.summary == '3 runs like "Book a seat": passed 2 of 3. Did: get_user, then book.'
    assert len(hint.model_extra["alike_ids"]) == 2
    assert set(hint.trace_ids) == {"trc_m0", "trc_m1", "trc_m2"}


def test_failures_are_left_out_where_a_run_passed_and_two_are_shown_where_none_did() -> None:
    kept, dropped = grouped(run_of("m1", "book"), run_of("m2", "pay", passed=False))
    assert [each.candidate.memory.id for each in kept] == ["m1"]
    assert [(each.memory_id, each.reason) for each in dropped] == [("m2", FAILED)]
    failures = [run_of(f"m{place}", f"tool_{place}", passed=False) for place in range(3)]
    assert len(grouped(*failures).kept) == 2


@pytest.mark.req("RC-08")
def test_the_way_that_passes_is_the_one_to_try_and_the_one_that_fails_is_named() -> None:
    good = [run_of(f"m{place}", "get_user", "book") for place in range(10, 16)]
    bad = [run_of(f"m{place}", "get_user", "wire", passed=False) for place in range(20, 26)]
    injection = injected(*good, *bad)
    lines = injection.text.splitlines()
    assert lines[0] == '- Try get_user, then book: passed 6 of 6 lately in runs like "Book a seat".'
    assert lines[1].startswith('- 6 runs like "Book a seat": passed 0 of 6. Did: get_user, then wire.')


def test_what_happened_lately_outweighs_what_happened_long_ago() -> None:
    old = [run_of(f"m{place}", "book") for place in range(10, 25)]
    old += [run_of(f"m{place}", "wire", passed=False) for place in range(25, 30)]
    new = [run_of(f"m{place}", "wire") for place in range(45, 59)]
    new += [run_of(f"m{place}", "book", passed=False) for place in range(30, 45)]
    assert injected(*old, *new).text.startswith("- Try wire:")


def test_a_way_is_chosen_by_the_runs_in_the_same_circumstances() -> None:
    small = [
        run_of(f"m{p}", "book" if p % 2 else "wire", passed=bool(p % 2), given={"size": "s"}) for p in range(10, 22)
    ]
    large = [
        run_of(f"m{p}", "wire" if p % 2 else "book", passed=bool(p % 2), given={"size": "l"}) for p in range(30, 42)
    ]
    for size, way in (("s", "book"), ("l", "wire")):
        asked = RecallQuestion(now=NOW, intent_key=BOOKING.intent_key, given={"size": size})
        assert injected(*small, *large, asked=asked).text.startswith(f"- Try {way}: passed 6 of 6")


def test_half_a_way_is_never_tried_and_ways_of_unnamed_work_are_not_compared() -> None:
    cut = [run_of(f"m{place}", "book", cut=True) for place in range(10, 20)]
    plain = [run_of(f"m{place}", "wire", passed=False) for place in range(20, 24)]
    assert not injected(*cut, *plain).text.startswith("- Try")
    unnamed = RecallQuestion(now=NOW, intent_key="intent|domain=air")
    good = [run_of(f"m{place}", "book" if place % 2 else "wire", passed=bool(place % 2)) for place in range(10, 30)]
    assert not injected(*good, asked=unnamed).text.startswith("- Try")


def test_the_same_run_draws_the_same_way_and_others_may_draw_another() -> None:
    runs = [run_of(f"m{place}", f"tool_{place % 3}", passed=place % 2 == 0) for place in range(10, 22)]
    assert injected(*runs, run_id="r1").text == injected(*runs, run_id="r1").text
    assert len({injected(*runs, run_id=f"r{number}").text for number in range(60)}) > 1
    dropped = grouped(*runs, run_id="r1").dropped
    assert {each.reason for each in dropped if not each.reason.startswith("merged")} <= {OTHER_WAY}


@pytest.mark.req("RC-09")
def test_a_way_is_shown_whole_or_not_at_all() -> None:
    long = [
        run_of(f"m{place}", *(f"step_{'x' * 40}_{part}" for part in range(6)), request="word " * 300)
        for place in (1, 2)
    ]
    injection = injected(*long)
    assert injection.overflow[0]["action"] == "compacted"
    assert "word" not in injection.text
    assert "step_" in injection.text


def test_what_is_like_the_task_in_nothing_is_below_the_floor() -> None:
    other = run_of("m1", "sail", intent_key="intent|family=ships")
    asked = RecallQuestion(now=NOW, tools=frozenset(("book",)))
    near, far = (Recallable(other, "ReasoningBank", 1.0, chance) for chance in (POLICY.fit_min, 0.2))
    assert weigh([near], asked, POLICY)[1] == []
    assert weigh([far], asked, POLICY)[1] == [("m1", BELOW_FLOOR)]
    assert weigh([far], asked, POLICY.model_copy(update={"fit_min": 0.0}))[1] == []
    assert weigh([far], RecallQuestion(now=NOW, tools=frozenset(("sail",))), POLICY)[1] == []
    assert weigh([far], RecallQuestion(now=NOW, intent_key="intent|family=ships"), POLICY)[1] == []


def test_a_tool_that_acts_or_is_rare_weighs_more() -> None:
    rarity = rarities([{"get_user", "book"}, {"get_user", "cancel"}, {"get_user", "cancel"}])
    assert rarity["get_user"] < rarity["cancel"] < rarity["book"]
    asked = {"get_user", "book"}
    acts, looks = (tool_likeness(asked, theirs, rarity) for theirs in ({"book"}, {"get_user"}))
    assert 0 < looks < 0.5 < acts < 1
    assert tool_likeness(asked, asked, rarity) == 1
    assert tool_likeness(asked, set(), rarity) == tool_likeness(set(), asked, rarity) == 0
