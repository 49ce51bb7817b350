"""The unit of a gain is the task: further attempts are compared with the same task before them, never with tasks that
needed none.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from flow_makers import HARD, LADDER, NOW, row, task_rows, until_passed

from muniment.handles.memory import Memory
from muniment.rules.flow_map import FlowRow, FlowTally, FlowTask, Rung, Tried, begin_of, climbs_of, flow_snapshot
from products import for_each

SIGNATURE = {"domain_tag": "math", "task_family": "countdown"}


def gains_of(rows: list[FlowRow], estimator: Any = "aggregate_v1", **more: Any) -> dict[str, dict[str, Any]]:
    snapshot = flow_snapshot(FlowTally().add_all(rows), estimator, now=NOW, **more)
    return {each.intervention or "": each.to_wire() for each in snapshot.opportunity.interventions or ()}


def task_of(*results: bool | None, rungs: tuple[Rung, ...] = LADDER) -> FlowTask:
    (first, *_) = task_rows(0, results, rungs)
    assert first.task is not None
    return first.task


# -- one task ---------------------------------------------------------------------------------------------


def test_what_a_task_begins_with_is_its_first_rung() -> None:
    first = begin_of(task_of(False, True))
    assert (first.mode, first.tier, first.k, first.passed, first.cost) == ("main", None, 1, False, 100.0)
    probe = (Rung("kroll", "probe", 3),)
    several = begin_of(task_of(False, False, True, rungs=probe))
    assert (several.mode, several.k, several.passed, several.cost) == ("kroll", 3, True, 300.0)
    assert begin_of(task_of(None, rungs=probe)).passed is None


@for_each(
    ("results", "recovered"),
    [
        ([True], {}),
        ([False, True], {"2-4", "5+", "kroll", "probe"}),
        ([False, False, False, True], {"2-4", "5+", "kroll", "full"}),
        ([False] * 4 + [True], {"5+", "kroll", "full"}),
        ([False] * 6 + [True], {"synth", "full"}),
        ([False] * 7, set()),
        ([None, True], {"2-4", "5+", "kroll", "probe"}),
    ],
)
def test_a_task_is_recovered_by_the_rung_that_passes_it_first(results: list[bool | None], recovered: set[str]) -> None:
    found = list(climbs_of(task_of(*results)))
    assert {change.level for change, _ in found} == {"2-4", "5+", "kroll", "synth", "probe", "full"}  # open to it
    assert {change.level for change, climb in found if climb.recovered} == set(recovered)
    assert all(not climb.recovered for _, climb in found if climb.passed)


def test_a_task_that_nobody_could_judge_says_nothing() -> None:
    assert list(climbs_of(task_of(None, None))) == []


def test_a_plan_of_one_attempt_needs_no_words(mem: Memory) -> None:
    mem.runner(lambda task: "an answer", lambda output, task: True, user_id="ana").run("Go.", intent=SIGNATURE)
    (log,) = mem.bank(user_id="ana").event_logs()
    assert log.to_wire()["run"] == {"mode": "main"}


# -- many tasks -------------------------------------------------------------------------------------------


@pytest.mark.req("RC-23")
@pytest.mark.parametrize("estimator", ["aggregate_v1", "logit_field_v1"])
def test_attempts_that_pass_one_time_in_three_gain_what_they_gain(estimator: Any) -> None:
    """The tasks that had one attempt are those that passed at once: beside them any further attempt looks like harm."""
    made = random.Random(11)
    rows = [row for at in range(600) for row in task_rows(at, until_passed(made, 1 / 3))]
    found = gains_of(rows, estimator)
    four = found["K:2-4"]
    truth = (1 - (2 / 3) ** 4) - 1 / 3
    assert four["lower"] <= truth <= four["upper"]
    assert four["gain_pass"] == pytest.approx(truth, abs=0.06)
    assert four["base_pass"] == pytest.approx(1 / 3, abs=0.06)
    assert (four["design"], four["support_n"]) == ("within_task", 600)
    assert found["K:5+"]["gain_pass"] > four["gain_pass"]


def test_what_tasks_passed_before_it_cost_nothing_more_and_count() -> None:
    rows = [*task_rows(0, [True]), *task_rows(1, [False, True]), *task_rows(2, [False] * 6), *task_rows(3, [True])]
    four = gains_of(rows)["K:2-4"]
    assert (four["gain_pass"], four["base_pass"], four["reached_n"]) == (0.25, 0.5, 2)
    assert four["delta_cost"] == pytest.approx((100 + 300) / 4)


def test_gains_are_of_a_bucket_or_of_all() -> None:
    rows = [*task_rows(0, [False, True]), *task_rows(1, [False] * 6, bucket_key=HARD)]
    assert gains_of(rows)["K:2-4"]["gain_pass"] == 0.5
    assert gains_of(rows, bucket_key=HARD)["K:2-4"]["gain_pass"] == 0.0


@pytest.mark.req("RC-23")
def test_hints_given_because_something_failed_are_not_judged() -> None:
    """They stand on attempts that came after a failure: what they bring cannot be told from these logs."""
    rows = []
    for at in range(40):
        first, *later = task_rows(at, [False, at % 4 == 0])
        rows += [first, *(each._replace(hints=1) for each in later)]
    assert "hints" not in gains_of(rows)


def test_hints_given_from_the_start_are_judged_by_first_attempts() -> None:
    rows = [row for at in range(50) for row in task_rows(at, [at % 2 == 0, True], hints=1)]
    rows += [row for at in range(50, 100) for row in task_rows(at, [at % 10 == 0, True])]
    hints = gains_of(rows)["hints"]
    assert hints["gain_pass"] == pytest.approx(0.5 - 0.1)
    assert (hints["support_n"], hints["design"]) == (50, "between_tasks")


def test_what_a_later_attempt_had_is_a_risk_of_its_stage_all_the_same() -> None:
    rows = task_rows(0, [False, False, True])
    snapshot = flow_snapshot(FlowTally().add_all(rows), "aggregate_v1", now=NOW)
    spots = {each.stage: each.support_n for each in snapshot.risk.stage_hotspots or () if each.reason_code is None}
    assert spots == {"main→verify": 1, "kroll→verify": 2}


def test_an_odd_ladder_does_not_break_the_map() -> None:
    """Attempts that no rung planned, and a plan of nothing."""
    odd = FlowTask((), (Tried("main", None, False, 1.0), Tried("sot", "x", True, 2.0)))
    assert begin_of(odd).k == 1
    assert list(climbs_of(odd)) == []
    assert gains_of([row(0, task=odd), row(1)]) == {}


# -- through the runner -----------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("RC-23", "RC-20")
def test_the_runners_own_logs_tell_it(mem: Memory) -> None:
    """Attempts that pass by chance, one in three, under mode `auto`: more of them help, and nothing advises fewer."""
    made = random.Random(5)
    runner = mem.runner(lambda task: "an answer", lambda output, task: made.random() < 1 / 3, user_id="ana")
    for number in range(40):
        runner.run(f"Reach {number}.", intent=SIGNATURE, mode="auto")
    bank = mem.bank(user_id="ana")
    snapshot = bank.flow_map()
    found = {each.intervention: each.to_wire() for each in snapshot.opportunity.interventions or ()}
    assert found["K:2-4"]["support_n"] == 40
    assert found["K:2-4"]["lower"] > 0.2
    assert found["mode:kroll"]["design"] == "within_task"
    assert ", 40 tasks" in str(snapshot.notes)


def test_a_log_tells_the_plan_with_the_first_attempt_alone(mem: Memory) -> None:
    answers = iter([False, False, True])
    runner = mem.runner(lambda task: "an answer", lambda output, task: next(answers), user_id="ana")
    runner.run("Reach 7.", intent=SIGNATURE, mode="auto")
    logs = [each.to_wire() for each in mem.bank(user_id="ana").event_logs()]
    told = sorted((each["run"]["task"] for each in logs), key=lambda task: task["number"])
    assert len({task["task_id"] for task in told}) == 1
    assert [(each["mode"], each.get("tier"), each["k"]) for each in told[0]["rungs"]] == [
        ("main", None, 1), ("kroll", "probe", 2), ("kroll", "full", 3), ("synth", "full", 1),
    ]  # fmt: skip
    assert [each["passed"] for each in told[0]["attempts"]] == [False, False, True]
    assert all("attempts" not in task for task in told[1:])
