"""Which way to try: ways compared by their steps, drawn by the run, and told first; what speaks against it is not."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from muniment.core.policy import LearnPolicy
from muniment.learning.fold.transcripts import WORDING
from muniment.learning.hint_groups import AGAINST, OTHER_WAY, put_together
from muniment.learning.hinting.episode_words import episode_of, line_of_many, line_to_try
from muniment.learning.hinting.requests import task_form
from muniment.learning.hints import Recallable, RecallQuestion, best_of, inject, weigh
from muniment.learning.lessons.ways import WayRun, answers_in, has_fallen, rate_ways, speaks_against, steps_in
from muniment.learning.stored_memory import StoredMemory
from products import for_each

POLICY = LearnPolicy()
HALF = POLICY.lessons.half_life_runs
EASY, HARD = ("close the account of ", ""), ("close the account of ", " and its ", " disputes")
INTENT = "intent|domain=shop|family=lookup"


def rates(runs: list[WayRun], form: tuple[str, ...] = EASY, run_id: str | None = None) -> dict[str, float]:
    """What each way is expected to pass at, by the step that decides; runs oldest first."""
    return {did: each.drawn for did, each in rate_ways(runs[::-1], form, HALF, run_id, 0.3).items()}


def stream(seed: int, count: int, right: str) -> Iterator[WayRun]:
    """Two ways and a step beside them that does nothing; the verifier lies one time in ten."""
    random = Random(seed)
    for _ in range(count):
        way, side = random.choice(("fast", "slow")), random.choice(("count", "weigh"))
        passed = (random.random() < (0.8 if way == right else 0.2)) != (random.random() < 0.1)
        yield WayRun(f"Did: open, then {side}, then {way}, then send", EASY, passed)


def test_the_step_that_decides_is_told_from_the_one_beside_it() -> None:
    right = 0
    for seed in range(20):
        found = rates(list(stream(seed, 24, "fast")))
        best = sorted(found, key=lambda did: -found[did])[:2]
        right += all("fast" in did for did in best)
    assert right >= 17


def test_after_a_drift_the_other_way_is_expected_to_pass_within_twenty_runs() -> None:
    turned = 0
    for seed in range(20):
        found = rates([*stream(seed, 40, "fast"), *stream(seed + 100, 20, "slow")])
        turned += "slow" in max(found, key=lambda did: found[did])
    assert turned >= 15


def test_a_fall_of_all_runs_is_noticed_and_chance_is_not() -> None:
    assert has_fallen([False] * 6 + [True] * 2 + [True] * 20)
    assert not has_fallen([False] * 8 + [False, True] * 3), "too little before"
    assert not has_fallen([True] * 8 + [False] * 24), "a rise is none"
    random, fell = Random(5), 0
    for _ in range(400):
        fell += has_fallen([random.random() < 0.6 for _ in range(32)])
    assert fell / 400 < 0.15


def test_a_way_that_is_taken_on_hard_tasks_is_not_blamed_for_them() -> None:
    """The thorough way helps on every task, and runs take it on hard ones, so that it passes less often in all."""
    right = 0
    for seed in range(20):
        random, runs = Random(seed), []
        for _ in range(60):
            hard = random.random() < 0.5
            thorough = random.random() < (0.75 if hard else 0.25)
            rate = (0.5 if hard else 0.95) if thorough else (0.15 if hard else 0.6)
            did = f"Did: open, then {'thorough' if thorough else 'quick'}, then send"
            runs.append(WayRun(did, HARD if hard else EASY, random.random() < rate))
        passes = {name: [run.passed for run in runs if name in run.did] for name in ("thorough", "quick")}
        for form in (EASY, HARD):
            found = rates(runs, form)
            right += "thorough" in max(found, key=lambda did: found[did])
    assert sum(passes["thorough"]) / len(passes["thorough"]) < sum(passes["quick"]) / len(passes["quick"]) + 0.1
    assert right >= 34


def test_the_same_steps_in_another_order_are_another_way() -> None:
    runs = [WayRun(f"Did: {'seal, then pack' if n % 2 else 'pack, then seal'}, then send", EASY, not n % 2)
            for n in range(16)]  # fmt: skip
    found = rates(runs)
    assert found["Did: pack, then seal, then send"] > 0.6 > 0.4 > found["Did: seal, then pack, then send"]


def test_a_draw_is_the_run_s_for_ever_and_tries_ways_that_are_in_doubt() -> None:
    runs = [*stream(1, 10, "fast")]
    assert rates(runs, run_id="run_7") == rates(runs, run_id="run_7")
    tried = {max(found := rates(runs, run_id=f"run_{n}"), key=lambda did: found[did]) for n in range(60)}
    assert len(tried) > 1
    whole = rate_ways(runs, EASY, HALF, "run_7", 0.0)
    assert all(each.drawn == each.expected for each in whole.values()), "nothing is explored where the policy says so"
    assert all(each.drawn == each.expected for each in rate_ways(runs, EASY, HALF, None, 0.3).values()), "a look"


def test_ways_are_not_compared_where_every_run_does_something_else() -> None:
    assert not rate_ways([WayRun(f"Did: open, then s{n}", EASY, True) for n in range(20)], EASY, HALF, "r", 0.3)
    assert not rate_ways([WayRun("Did: open", EASY, True)] * 20, EASY, HALF, "r", 0.3), "there is one"
    assert not rate_ways([*stream(1, 5, "fast")], EASY, HALF, "r", 0.3), "too few"


def test_what_was_answered_is_no_step() -> None:
    did = "Did: open, then carry (grade=amber; an error) 2 times … edit (wrote `a = b`)"
    carried = ("carry", ("grade=amber",))
    assert steps_in(did) == (("open", ()), carried, carried, ("edit", ("wrote `a = b`",)))
    assert answers_in(did) == 2


@for_each(
    ("feature", "advice", "did", "against"),
    [
        ("tool:slow", "do", "Did: open, then fast", True),
        ("tool:slow", "do", "Did: open, then slow", False),
        ("tool:slow", "avoid", "Did: open, then slow", True),
        ("tool:slow", "avoid", "Did: open, then fast", False),
        ("tool:slow", "do", "Did: open … fast, then send", False),
        ("order:pack>seal", "do", "Did: seal, then pack", True),
        ("order:pack>seal", "do", "Did: pack, then seal", False),
        ("order:pack>seal", "do", "Did: pack … seal", False),
        ("first:open", "do", "Did: fast, then open", True),
        ("arg:carry.grade=amber", "do", "Did: carry (grade=slate; an error)", True),
        ("arg:carry.grade=amber", "do", "Did: carry (grade=amber)", False),
        ("arg:carry.grade=amber", "avoid", "Did: carry (grade=amber)", True),
        ("arg:carry.grade=amber", "do", "Did: carry", False),
        ("then:open.state=new>fast", "do", "Did: open, then slow", False),
        ("then:open.state=new>fast", "avoid", "Did: open, then fast", False),
        ("order:look>seal", "do", "Did: look, then weigh, then seal", True),
        ("order:pay>pay", "do", "Did: open, then pay 2 times", False),
        ("arg:carry.grade=amber", "do", "Did: open … close", False),
        ("check:made", "do", "Did: open, then slow", False),
        (None, "do", "Did: open", False),
    ],
)
def test_a_lesson_speaks_against_a_way_only_where_that_can_be_told(
    feature: Any, advice: str, did: str, against: bool
) -> None:
    assert speaks_against({"feature": feature, "advice": advice}, did) is against


# -- told ---------------------------------------------------------------------------------------------


def episode(number: int, did: str, passed: bool, asked: str = "Find order") -> StoredMemory:
    end = "Passed" if passed else "Failed"
    record = {
        "summary": f"Asked: {asked} {number}. {end}. Did: {did}.", "did": f"Did: {did}", "wording": WORDING,
        "intent_key": INTENT, "tags": ["pass" if passed else "fail"],
    }  # fmt: skip
    at = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
    plain = {"id": f"rm_{number:03}", "kind": "reasoning", "level": "user", "version": 1, "status": "active"}
    return StoredMemory.from_wire(plain | {"created_at": at, "record": record})


def lesson(id_: str, feature: str, status: str = "active") -> StoredMemory:
    text = f"Call {feature.partition(':')[2]}."
    record = {"summary": text, "learnt": {"feature": feature, "advice": "do"}, "intent_key": INTENT}
    plain = {"id": id_, "kind": "tactic", "level": "user", "version": 1, "status": status, "record": record}
    return StoredMemory.from_wire(plain | {"created_at": "2026-01-01T00:00:00Z"})


def world() -> list[StoredMemory]:
    """By name passed long ago and fails now; by number passes; by hand passes now and then."""
    made = [episode(n, "open, then by_name", True) for n in range(10)]
    made += [episode(n, f"open, then {('by_name', 'by_number', 'by_hand')[n % 3]}", n % 3 == 1 or n == 29)
             for n in range(12, 36)]  # fmt: skip
    return made


def told(
    memories: list[StoredMemory], run_id: str | None = None, query: str = "Find order 99.", room: int = 120
) -> tuple[list[str], dict[str, str]]:
    runs = [WayRun(found.way, found.task_key, each.record["tags"] == ["pass"])
            for each in memories if (found := episode_of(each)) is not None and found.way]  # fmt: skip
    found = rate_ways(runs[::-1], task_form(query).told, HALF, run_id, 0.3)
    candidates = [
        Recallable(each, "ReasoningBank" if each.kind == "reasoning" else "ReuseBuffer", 0.5) for each in memories
    ]
    asked = RecallQuestion("2026-02-01T00:00:00Z", intent_key=INTENT)
    grouped = put_together(weigh(candidates, asked, POLICY)[0], found, query)
    budget = POLICY.injection.model_copy(update={"hint_tokens_max": room})
    text = inject(best_of(grouped.kept, 5), budget, lambda line: len(line.split())).text
    return text.splitlines(), {each.memory_id: each.reason for each in grouped.dropped}


def test_the_way_to_try_comes_first_and_what_fails_now_is_told_by_its_newest_runs() -> None:
    lines, _ = told(world())
    assert lines[0].startswith('- Try open, then by_number: passed 8 of 8 in runs like "Find order …".')
    assert '- Last 8 runs like "Find order …": passed 0 of 8. Did: open, then by_name.' in lines
    plain, _ = told([episode(0, "open, then by_name", True)])
    assert plain == ["- Asked: Find order 0. Passed. Did: open, then by_name."]


def test_a_lesson_that_speaks_against_the_way_to_try_is_left_out_and_says_so_unless_it_is_signed() -> None:
    lines, dropped = told([*world(), lesson("t1", "tool:by_name"), lesson("t2", "tool:by_number")])
    assert dropped["t1"] == AGAINST
    assert "- Call by_number." in lines
    assert "- Call by_name." not in lines
    lines, dropped = told([*world(), lesson("t1", "tool:by_name", "pinned")])
    assert "t1" not in dropped
    assert "- Call by_name." in lines


def test_nobody_is_told_to_run_into_an_error() -> None:
    made = [*world(), *(episode(n, "open, then by_number (an error), then open", True) for n in range(40, 46))]
    lines, dropped = told(made)
    assert lines[0].startswith("- Try open, then by_number: ")
    assert OTHER_WAY not in dropped.values() or all(id_.startswith("rm_") for id_ in dropped)


@pytest.mark.parametrize(
    ("did", "count", "line"),
    [
        ("open, then fast", 3, 'Try open, then fast: passed 2 of 3 in runs like "Find order …".'),
        ("open, then fast", 1, 'Try open, then fast: passed 1 of 1 in a run like "Find order 0".'),
        ("open, then fast", 12, 'Try open, then fast: passed 4 of 8 lately in runs like "Find order …".'),
    ],
)
def test_the_words_of_a_way_to_try(did: str, count: int, line: str) -> None:
    assert line_to_try([episode(n, did, n % 2 == 0) for n in range(count)]) == line


def test_a_line_of_many_counts_the_newest() -> None:
    memories = [episode(n, "open", n < 20) for n in range(24)]
    assert line_of_many(memories) == 'Last 8 runs like "Find order …": passed 4 of 8, none of the last 4. Did: open.'
    looked = memories[0].model_copy(update={"record": memories[0].record | {"did": ""}})
    assert line_to_try([looked]) == ""


def test_what_a_task_asked_for_is_no_part_of_the_way_to_do_it() -> None:
    """The right colour is the one that was asked for: no other task's is told as the way to try."""
    made = [
        episode(n, f"get_door, then {('paint', 'spray')[n % 4 == 3]} (colour={colour}), then close", n % 4 != 3,
                f"Paint the door {colour} for client")
        for n in range(24)
        for colour in [("red", "blue", "green")[n % 3]]
    ]  # fmt: skip
    lines, _ = told(made, query="Paint the door yellow for client 99.")
    assert lines[0].startswith("- Try get_door, then paint, then close: ")
    assert not any(colour in lines[0].partition(" in runs like")[0] for colour in ("red", "blue", "green"))


def test_what_the_task_does_not_say_stays_part_of_the_way() -> None:
    made = [episode(n, f"carry (grade={('amber', 'olive')[n % 2]})", n % 2 == 0) for n in range(16)]
    lines, _ = told(made)
    assert lines[0].startswith('- Try carry (grade=amber): passed 8 of 8 in runs like "Find order …".')
    assert '- 8 runs like "Find order …": passed 0 of 8. Did: carry (grade=olive).' in lines


def test_no_way_is_to_be_tried_that_never_passed_lately() -> None:
    made = [episode(n, "open, then by_name", n < 10) for n in range(20)]
    made += [episode(20 + n, "open, then by_hand", False) for n in range(8)]
    for number in range(20):
        lines, _ = told(made, run_id=f"r{number}")
        assert not any(line.startswith("- Try") and "passed 0 of" in line for line in lines)


def test_answers_and_abridged_runs_are_no_ways() -> None:
    assert episode_of(episode(1, "open … send", True)).way == ""  # type: ignore[union-attr]
    record = episode(1, "x", True).record | {
        "summary": 'Asked: Find order 1. Passed. Answered: "Queue billing".', "did": 'Answered: "Queue billing"'
    }  # fmt: skip
    answered = episode_of(episode(1, "x", True).model_copy(update={"record": record}))
    assert answered is not None
    assert answered.way == ""


def test_an_episode_that_a_person_pinned_is_told_beside_the_way_to_try() -> None:
    made = world()
    signed = made[27].model_copy(update={"status": "pinned", "id": "rm_pinned"})
    own = signed.record | {
        "summary": "Asked: Find order 500. Passed. Did: open, then by_letter.",
        "did": "Did: open, then by_letter",
    }
    lines, dropped = told([*made, signed.model_copy(update={"record": own | {"tags": ["pass"]}})])
    assert lines[0].startswith("- Try open, then by_number")
    assert dropped.get("rm_pinned") != OTHER_WAY


def test_what_has_faded_to_nothing_is_left_out() -> None:
    runs = [WayRun(("Did: a", "Did: b")[n > 200], EASY, n % 2 == 0) for n in range(250)]
    assert rate_ways(runs, EASY, 0.2, None, 0.3)


@pytest.mark.parametrize(
    ("did", "line"),
    [
        ("open, then weave (grade=amber; an error), then sweep (grade=amber)",
         "Try open, then sweep (grade=amber): passed 2 of 2 in runs like \"Find order …\"."
         " They called weave (grade=amber) before it, in vain."),
        ("weave (an error), then fold (not found), then sweep",
         "Try sweep: passed 2 of 2 in runs like \"Find order …\". They called weave and fold before it, in vain."),
        ("run_tests (path=tests; KeyError), then edit (change=convert), then run_tests (path=tests)",
         "Try run_tests (path=tests; answered KeyError), then edit (change=convert), then run_tests (path=tests): "
         "passed 2 of 2 in runs like \"Find order …\"."),
        ("sweep, then send (an error)",
         "Try sweep, then send (answered an error): passed 2 of 2 in runs like \"Find order …\"."),
    ],
)  # fmt: skip
def test_nobody_is_told_to_make_a_call_that_fails_before_another_holds(did: str, line: str) -> None:
    """A model copies the first call that it is shown. A check that fails is no such call: it tells what to do."""
    assert line_to_try([episode(n, did, True) for n in (1, 2)]) == line
