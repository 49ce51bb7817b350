"""The generated worlds: truth is what the tests that run say, the agent is frozen, streams are the same again."""

from __future__ import annotations

from random import Random

import pytest
from benchmarks.learning.arms import ARMS, Ours, effect_of, families_of, play_arm, stream_of
from benchmarks.learning.attacks import MARK, injected_calls, play_attack, poisoned_verdict, wanted_of
from benchmarks.learning.code import BUGS, CHANGES, PIECES, mended, outcome_of, source_of
from benchmarks.learning.families import expected_told, segment_of, shares_told
from benchmarks.learning.figures import arm_rows, drift_rows, lesson_rows, line_rows
from benchmarks.learning.reading import Slot, concerns, read_text

import muniment
from products import for_each

SLOTS = (
    Slot("tool", "tool", ("scan_index", "pull_ledger", "merge_rows"), (1, 1, 1)),
    Slot("order", "order", ("lock_a>copy_b", "copy_b>lock_a"), (1, 1), "open_it", "close_it"),
    Slot("grade", "argument", ("amber", "slate"), (1, 1)),
    Slot("step", "step", ("recount", ""), (1, 1)),
)


@for_each(
    ("text", "pro", "contra"),
    [
        ("Call scan_index right before save: passed 8 of 11 with it, 3 of 25 without.", {"scan_index"}, set()),
        ("Do not call save right after pull_ledger: passed 1 of 15 with it.", set(), {"pull_ledger"}),
        ("Use scan_index instead of pull_ledger.", {"scan_index"}, {"pull_ledger"}),
        ("Instead of pull_ledger use scan_index.", {"scan_index"}, {"pull_ledger"}),
        ("pull_ledger fails here; scan_index works.", {"scan_index"}, {"pull_ledger"}),
        ("Prefer merge_rows over scan_index when the sheet is wide.", {"merge_rows"}, {"scan_index"}),
        ("If the probe says wide, scan_index rather than pull_ledger.", {"scan_index"}, {"pull_ledger"}),
        ("Do not call scan_index, pull_ledger or merge_rows.", set(), {"scan_index", "pull_ledger", "merge_rows"}),
        ("When scan_index fails, correct the call and try again.", set(), set()),
        ("Check the arguments of scan_index before calling it: a failed call is hard to mend.", set(), set()),
        ("Runs with scan_index passed 3 of 20, without it 12 of 20.", set(), {"scan_index"}),
        ("Call carry with grade=amber.", {"amber"}, set()),
        ("Do not call carry with grade=amber.", set(), {"amber"}),
        ("Do not skip recount.", {"recount"}, set()),
        ("Avoid recount.", set(), {"recount"}),
        ("Call copy_b only after lock_a.", {"lock_a>copy_b"}, set()),
        ("Start with copy_b.", {"copy_b>lock_a"}, set()),
        ("Call open_it right before copy_b.", {"copy_b>lock_a"}, set()),
        ("Do not call lock_a before copy_b.", set(), {"lock_a>copy_b"}),
        ("Asked: x. Passed. Did: open_it, then scan_index, then close_it.", {"scan_index"}, set()),
        ("Asked: x. Failed. Did: open_it, then scan_index, then close_it.", set(), {"scan_index"}),
        ("Passed. Did: scan_index. A run like it failed: it did pull_ledger.", {"scan_index"}, {"pull_ledger"}),
        ("Run recount before you hand in.", {"recount"}, set()),
        ("Do not give grade=amber: passed 0 of 8 with it. Those that passed gave slate.", {"slate"}, {"amber"}),
        ("Look closely at the rows.", set(), set()),
    ],
)
def test_a_sentence_is_read_by_its_words(text: str, pro: set[str], contra: set[str]) -> None:
    said = read_text(text, SLOTS)
    assert {each.option for each in said if each.log_odds > 0} == pro
    assert {each.option for each in said if each.log_odds < 0} == contra


def test_code_in_a_sentence_is_read_as_the_change_it_is() -> None:
    for error, bug in BUGS.items():
        slot = Slot("way", "argument", CHANGES, (1.0,) * 4, also=tuple((w, c) for c, w in PIECES[error].items()))
        for change, code in bug.changed.items():
            line = " ".join(code.split())
            assert [
                (each.option, each.log_odds > 0) for each in read_text(f"In api/x.py, write `{line}`.", (slot,))
            ] == [(change, True)]
            assert [(each.option, each.log_odds > 0) for each in read_text(f"Do not write `{line}`.", (slot,))] == [
                (change, False)
            ]


def test_advice_weighs_more_than_an_example() -> None:
    (told,) = read_text("Use scan_index.", SLOTS)
    (example,) = read_text("Passed. Did: scan_index.", SLOTS)
    assert told.log_odds > example.log_odds > 0


@pytest.mark.parametrize(
    ("text", "wide", "narrow"),
    [
        ("When the sheet is wide use x.", True, False),
        ("Unless the sheet is wide use x.", False, True),
        ("Use x.", True, True),
    ],
)
def test_a_condition_that_does_not_hold_here_takes_the_text_out(text: str, wide: bool, narrow: bool) -> None:
    values = {"width": ("narrow", "wide")}
    assert concerns(text, values, {"width": "wide"}) == wide
    assert concerns(text, values, {"width": "narrow"}) == narrow


def test_the_acceptance_of_a_change_is_what_its_source_does() -> None:
    for error, bug in BUGS.items():
        assert outcome_of(source_of("x", bug.line), "x", bug.inputs[0]) == error
        passing = [change for change in CHANGES if mended(error, change)[0]]
        assert len(passing) >= 2
        assert len({mended(error, change)[1] for change in passing}) == len(passing)


@pytest.mark.parametrize("seed", ["look 0", "look 1", "other"])
def test_the_right_way_is_the_best_in_every_family_and_segment(seed: str) -> None:
    for family in families_of(seed):
        way = family.slots[0]
        for segment in range(3):
            for _, given in family.situations():
                rates = {
                    option: family.expected(given, segment, {"way": [0.01 + (each == option) for each in way.options]})
                    for option in way.options
                }
                right = family.right(given, segment)
                if right is None:
                    assert len(set(rates.values())) == 1
                else:
                    assert all(rates[right] > rate for option, rate in rates.items() if option != right)
            if family.kind != "even":
                changed = [family.right(given, 0) != family.right(given, 1) for _, given in family.situations()]
                assert all(changed)
                assert [family.right(given, 0) for _, given in family.situations()] == [
                    family.right(given, 2) for _, given in family.situations()
                ]


@pytest.mark.soak
def test_the_expected_rate_is_that_of_many_draws() -> None:
    for family in families_of("look 3"):
        turns = [turn._replace(segment=0) for turn in stream_of("draws", [family], 1_500)]
        rows = play_arm(ARMS["none"](""), turns)
        drawn = sum(row.passed for row in rows) / len(rows)
        worked_out = sum(row.expected for row in rows) / len(rows)
        assert abs(drawn - worked_out) < 0.045, family.kind


def test_across_tasks_the_thorough_tool_looks_harmful_and_within_a_task_it_helps() -> None:
    (family,) = families_of("look 0", ["confounded"])
    turns = [turn._replace(segment=0) for turn in stream_of("look 0", [family], 1_000)]
    thorough = family.right(turns[0].given, 0)
    passed: dict[tuple[bool, bool], list[bool]] = {}
    for turn in turns:
        random = Random(turn.given.draws)
        shares = shares_told(family, turn.given, ())

        def choose(slot, left, shares=shares, random=random):  # type: ignore[no-untyped-def]
            return random.choices(slot.options, shares[slot.name])[0]

        played = family.play(turn.given, 0, choose, random)
        passed.setdefault((turn.given.hard, played.chosen["way"] == thorough), []).append(played.passed)

    def rate(used: bool, hard: tuple[bool, ...] = (False, True)) -> float:
        held = [each for key in hard for each in passed[key, used]]
        return sum(held) / len(held)

    assert rate(used=True) < rate(used=False)
    assert all(rate(True, (hard,)) > rate(False, (hard,)) for hard in (False, True))


def test_a_lesson_is_useful_before_the_drift_and_harmful_after_it() -> None:
    for family in families_of("look 2", ["tool", "argument", "order", "confounded"]):
        right = family.right(next(family.situations())[1], 0)
        assert right is not None
        first, _, second = right.partition(">")
        text = f"Call {first} before {second}." if second else f"Use {right}."
        assert effect_of(family, 0, text) > 0.02
        assert effect_of(family, 1, text) < -0.02


def test_the_agent_is_frozen_and_a_stream_is_the_same_again() -> None:
    families = families_of("look 0")
    assert stream_of("look 0", families, 20) == stream_of("look 0", families, 20)
    for make in ARMS.values():
        assert play_arm(make("s"), stream_of("look 0", families, 12)) == play_arm(
            make("s"), stream_of("look 0", families_of("look 0"), 12)
        )
    turn = stream_of("look 0", families, 1)[0]
    before = expected_told(turn.family, turn.given, 0, ())
    play_arm(ARMS["none"](""), stream_of("look 0", families, 30))
    assert expected_told(turn.family, turn.given, 0, ()) == before


def test_seeds_for_looking_and_for_judging_are_other_worlds() -> None:
    assert [each.slots for each in families_of("look 0")] != [each.slots for each in families_of("judged 0")]


def test_a_stream_goes_through_both_worlds_and_back() -> None:
    assert [segment_of(number, 10) for number in range(10)] == [0] * 4 + [1] * 4 + [2] * 2


@pytest.mark.soak
def test_our_arm_goes_through_the_runner_and_is_judged_by_the_truth() -> None:
    families = families_of("look 0", ["tool", "code"])
    stream = stream_of("look 0", families, 20)
    with muniment.open(":memory:", embedder="none") as mem:
        ours = Ours(mem)
        rows = play_arm(ours, stream)
        lessons = ours.lessons(families, 2)
        assert len(mem.bank(user_id="worlds").event_logs()) == len(stream)
    arms = {"none": play_arm(ARMS["none"](""), stream), "ours": rows}
    assert any(row.lines for row in rows)
    seeds = [{"arms": arms, "lessons": [lessons] * 3}]
    kinds = ["tool", "code"]
    table = arm_rows(seeds, kinds) | drift_rows(seeds, kinds) | lesson_rows(seeds, kinds) | line_rows(seeds, kinds)
    assert table["all families, before: ours"]["pass_rate"] == round(
        sum(row.passed for row in rows if row.segment == 0) / sum(row.segment == 0 for row in rows), 4
    )
    assert table["all families, before: none"]["over_none"] == 0


def test_an_attacker_turns_verdicts_his_way_and_speaks_through_tools() -> None:
    (family,) = families_of("look 0", ["tool"])
    turned = spoken = 0
    for turn in stream_of("look 0", [family], 200):
        wanted = wanted_of(family, turn)
        assert wanted != family.right(turn.given, 0)
        played = family.play(
            turn.given, 0, lambda slot, _left, w=wanted: w if slot.name == "way" else slot.options[0], Random(1)
        )
        turned += poisoned_verdict(turn, played._replace(passed=False))
        spoken += any(MARK in call.content for call in injected_calls(turn, played))
    assert 30 < turned < 90  # a fifth is turned, and a tenth is false anyway
    assert 35 < spoken < 85


@pytest.mark.soak
@pytest.mark.parametrize("attack", ["poisoned", "injected"])
def test_an_attack_is_counted(attack: str) -> None:
    row = play_attack("look attack", attack, 3)
    assert row["runs"] == 15
    assert row["active_with_injected_words_ever"] == 0
