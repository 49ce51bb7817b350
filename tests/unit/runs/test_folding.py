"""A run's entries into its log: steps, loops, what was seen; and when a snapshot is due."""

from __future__ import annotations

from typing import Any

import pytest
from run_entries import (
    DEPTH,
    DONE,
    OBJECTIVE,
    POLICY,
    RUN,
    SEA,
    SMALL,
    A,
    B,
    Told,
    answered,
    claim,
    conflict,
    entries,
    failure,
    fold,
    message,
    patch,
    question,
    start,
    step,
    steps,
    taken,
    tool,
    window,
)

from muniment.runs.compaction import due
from muniment.runs.fold import RunFold
from muniment.runs.records import RunLog
from products import for_each


def log_after(*told: Told, **policy: Any) -> RunLog:
    return fold(entries(told), POLICY.model_copy(update=policy))


# -- the run ------------------------------------------------------------------------------------------


@pytest.mark.req("CS-05")
def test_the_first_entry_pins_what_the_run_is_for() -> None:
    log = log_after(start(), message(), start("another aim", "else"))
    assert (log.objective, log.done_definition, log.budgets) == (OBJECTIVE, DONE, {"tokens": 1000})
    late = log_after(message(), start())
    assert (late.objective, late.done_definition, late.budgets) == ("", "", {})
    forgotten = log_after(start() | {"forgotten": True}, message())
    assert forgotten.objective == ""


def test_entries_of_others_and_forgotten_ones_only_move_on() -> None:
    log = log_after(start(), claim("k1", A) | {"run_id": "run_2"}, step("PLAN_DONE") | {"forgotten": True}, message())
    assert (log.seq, log.spent.events, log.spent.steps, log.claims) == (4, 2, 0, ())


def test_what_was_spent() -> None:
    log = log_after(
        start(), step("PLAN_DONE", tokens=10), step("ACT_PROGRESS", tokens=5), tool(ok=True), tool(ok=False)
    )
    assert log.spent.to_wire() == {"events": 5, "steps": 1, "counted_events": 1, "tool_calls": 2, "tokens": 15}
    assert [found.category for found in log.failures] == ["tool_failure"]


def test_records_stand_in_the_order_they_were_made() -> None:
    log = log_after(
        claim("k2", A), claim("k1", B), conflict("c2"), conflict("c1"), question("b"), question("a"), failure(), tool(),
        patch("claim_verified", id="k2", evidence_refs=[SEA]), answered("b"),
    )  # fmt: skip
    assert [each.claim_id for each in log.claims] == ["k2", "k1"]
    assert [each.conflict_id for each in log.conflicts] == ["c2", "c1"]
    assert [each.category for each in log.failures] == ["test_fail", "tool_failure"]
    assert [each.text for each in log.open_questions] == ["a"]


def test_the_latest_plan_counts() -> None:
    planned = patch("actions_planned", actions=["look", "ask", "write", "rest"])
    assert log_after(planned).next_actions == ("look", "ask", "write")
    assert log_after(planned, patch("actions_planned", actions=["rest"])).next_actions == ("rest",)
    assert log_after(planned, patch("actions_planned", actions=[])).next_actions == ()
    for actions in (["look", 7], ["look", " "], "look", None):
        assert log_after(planned, patch("actions_planned", actions=actions)).next_actions == ("look", "ask", "write")


# -- steps --------------------------------------------------------------------------------------------


@for_each(
    ("events", "numbers"),
    [
        (["COMPILE_DONE", "PLAN_DONE", "ACT_DONE", "OBSERVE_DONE", "CHECKPOINT_DONE"], [1, 1, 1, 1, 1]),
        (["PLAN_DONE", "ACT_DONE", "OBSERVE_DONE", "PLAN_DONE"], [1, 1, 1, 2]),
        (["PLAN_DONE", "PLAN_DONE"], [1, 2]),
        (["ACT_DONE", "COMPILE_DONE", "OBSERVE_DONE", "ACT_DONE"], [1, 2, 2, 3]),
        (["PLAN_DONE", "PLAN_STARTED", "COMPILE_STARTED", "THOUGHT", "FOO_DONE", "ACT_DONE"], [1, 1, 1, 1, 1, 1]),
        ([("PLAN_DONE", 1), ("PLAN_DONE", 1), ("ACT_DONE", 2), ("OBSERVE_DONE", 1), ("PLAN_DONE", 2)], [1, 1, 2, 2, 2]),
        ([("PLAN_DONE", 7), "ACT_DONE", "PLAN_DONE"], [7, 7, 8]),
        ([("PLAN_DONE", 0), ("ACT_DONE", 0), ("PLAN_DONE", 1)], [0, 0, 1]),
        ([("ACT_STARTED", 9), "PLAN_DONE"], [0, 1]),
    ],
    ids=str,
)  # fmt: skip
def test_which_step_a_phase_belongs_to(events: list[Any], numbers: list[int]) -> None:
    told = [step(event) if isinstance(event, str) else step(*event) for event in events]
    assert [log_after(*told[: count + 1]).step for count in range(len(told))] == numbers
    log = log_after(*told)
    assert (
        log.spent.steps == len(log.steps_since) == len(set(numbers) - ({0} if numbers[0] == 0 != numbers[1] else set()))
    )


@for_each(
    ("row", "loops"),
    [("aa", 0), ("aaa", 1), ("aaaaaaa", 1), ("aabaaa", 1), ("aaabaaa", 2), ("abababab", 0), ("aa-a", 0)],
)
def test_equal_actions_in_a_row_are_one_loop(row: str, loops: int) -> None:
    told = [step("ACT_DONE") if act == "-" else step("ACT_DONE", action={"tool": act}) for act in row]
    assert log_after(*told).loops == loops
    spoken = [step("ACT_DONE", content="" if act == "-" else f"do {act}") for act in row]
    assert log_after(*spoken).loops == loops


def test_actions_that_say_nothing_are_no_loop() -> None:
    assert log_after(*[step("ACT_DONE", content=" ")] * 9).loops == 0
    assert log_after(*[step("ACT_DONE", action={})] * 9).loops == 0
    shuffled = [step("ACT_DONE", action={"a": 1, "b": 2}), step("ACT_DONE", action={"b": 2, "a": 1})]
    assert log_after(*shuffled, loop_actions=2).loops == 1
    between = [step("ACT_DONE", action={"a": 1}), step("OBSERVE_DONE"), message(), step("PLAN_DONE")] * 3
    assert log_after(*between).loops == 1


# -- what was seen ------------------------------------------------------------------------------------


@pytest.mark.req("CS-04")
def test_cited_chunks_stay_and_others_go_with_time() -> None:
    told = [step("COMPILE_DONE", manifest=window(f"evt_{number}", id_=f"m{number}")) for number in range(6)]
    log = fold(entries([*told[:3], claim("k1", A), conflict("c1", SEA, DEPTH), *told[3:]]), SMALL)
    assert log.coverage.chunk_ids_cited == ("evt_a", "chk_1", "chk_2")
    assert log.coverage.chunk_ids_seen == ("evt_a", "chk_1", "chk_2", "evt_3", "evt_4", "evt_5")
    assert log.coverage.source_ids_seen == ("ledger", "maps")
    assert log.manifest_ids == ("m4", "m5")


def test_what_is_seen_again_is_seen_last_and_what_is_cited_stands_once() -> None:
    told = [
        step("COMPILE_DONE", manifest=window("evt_1", "evt_2", "evt_b")),
        step("COMPILE_DONE", manifest=window("evt_1")),
        claim("k1", B),
        step("COMPILE_DONE", manifest=window("evt_b", "evt_3", id_="m2")),
        patch("claim_retracted", id="k1", reason="no", evidence_refs=[SEA]),
        step("COMPILE_DONE", manifest=window(id_="m1")),
    ]
    log = fold(entries(told), SMALL)
    assert log.coverage.chunk_ids_seen == ("evt_b", "chk_1", "evt_2", "evt_1", "evt_3")
    assert log.manifest_ids == ("m2", "m1")


def test_a_stricter_policy_holds_for_what_a_snapshot_brought() -> None:
    log = log_after(step("COMPILE_DONE", manifest=window(*(f"evt_{number}" for number in range(9)))))
    assert fold([], SMALL, log).coverage.chunk_ids_seen == ("evt_6", "evt_7", "evt_8")


# -- when a snapshot is due ---------------------------------------------------------------------------


@pytest.mark.req("CS-10")
def test_eighteen_counted_events_make_a_snapshot_due() -> None:
    told = steps(6)
    assert due(log_after(*told[:-1]), POLICY) is None
    assert due(log_after(*told), POLICY) == "18 counted events"


@pytest.mark.req("CS-10")
def test_eight_steps_make_one_due_where_few_events_are_told() -> None:
    told = [step("COMPILE_DONE") for _ in range(8)]
    assert due(log_after(*told[:-1]), POLICY) is None
    assert due(log_after(*told), POLICY) == "8 steps"
    assert due(log_after(step("PLAN_DONE")), POLICY.model_copy(update={"event_threshold": 1})) == "1 counted event"


@pytest.mark.req("CS-10")
def test_verbose_events_make_no_difference() -> None:
    """The contract's own check of the trigger: the cadence depends on terminal events and steps alone."""
    verbose = [
        step("PLAN_STARTED"),
        step("ACT_PROGRESS", 9),
        step("OBSERVE_NOTE"),
        step("THOUGHT"),
        message(),
        tool(ok=True),
    ]
    plain, noisy = RunFold(RUN, POLICY), RunFold(RUN, POLICY)
    noise = 0
    for number, told in enumerate(steps(8)):
        plain.apply(entries([told], first=number + 1)[0])
        for each in (told, *verbose):
            noise += 1
            noisy.apply(entries([each], first=noise)[0])
        assert due(plain.log(), POLICY) == due(noisy.log(), POLICY)
        assert plain.steps == noisy.steps
    assert len(plain.log().counted_since) == len(noisy.log().counted_since) == 24


@pytest.mark.req("CS-10")
def test_a_snapshot_starts_the_count_anew_from_where_it_ends() -> None:
    told = [*steps(2), taken(1, 4)]
    log = log_after(*told)
    assert (log.sequence, log.counted_since, log.steps_since) == (1, (5, 6), ())
    assert (log.spent.counted_events, log.spent.steps) == (6, 2), "what was spent is of the whole run"
    for wrong in (
        taken(0, 4),
        taken(1, 7),
        taken(1, -1),
        taken(True, 4),
        patch("snapshot_taken", sequence="1", upto=4),
    ):
        assert log_after(*told[:-1], wrong).counted_since == (1, 2, 3, 4, 5, 6)
