"""Suggestions for the router's thresholds: with their numbers, only where the bounds ask for it, and never applied."""

from __future__ import annotations

import random
from typing import Any

import pytest
from flow_makers import NOW, rows_of, task_rows, until_passed

from muniment.core.policy import FlowMapPolicy, RoutePolicy
from muniment.rules.flow_map import FlowRow, FlowTally, Suggestion, flow_snapshot, suggest_thresholds

POLICY = FlowMapPolicy()


def suggested(rows: list[FlowRow], thresholds: Any = None) -> dict[str, Suggestion]:
    snapshot = flow_snapshot(FlowTally(POLICY).add_all(rows), "aggregate_v1", now=NOW)
    given = RoutePolicy().model_dump() if thresholds is None else thresholds
    before = dict(given)
    found = suggest_thresholds(snapshot, given, POLICY)
    assert given == before
    return {each.threshold: each for each in found}


@pytest.mark.req("RC-23")
def test_scaling_that_recovers_most_failures_pays_until_few_are_left() -> None:
    """It recovers 80 % of what fails: with a least gain of 0.02 it pays up to a pass rate of 1 - 0.02 / 0.8."""
    rows = rows_of(2_500, 2_500) + rows_of(4_500, 500, 10_000, tier="probe")
    found = suggested(rows)["easy_rate"]
    assert (found.current, found.suggested) == (0.85, pytest.approx(1 - 0.02 / 0.8))
    assert found.lower <= found.suggested <= found.upper
    assert found.support_n == 5_000
    assert "tier:probe recovers 80% of what fails" in found.text


@pytest.mark.soak
def test_scaling_that_surely_gains_nothing_is_not_worth_it_anywhere() -> None:
    rows = rows_of(5_000, 5_000) + rows_of(4_000, 6_000, 20_000, tier="probe")
    assert suggested(rows)["easy_rate"].suggested == 0.5


@pytest.mark.soak
def test_attempts_that_surely_gain_nothing() -> None:
    """Half of the tasks pass at once, and the others never do."""
    rows = [row for at in range(1_000) for row in task_rows(at, [at % 2 == 0] if at % 2 == 0 else [False] * 6)]
    found = suggested(rows)
    assert (found["k_probe"].suggested, found["k_full_max"].suggested) == (1, 4)
    assert "at most" in found["k_probe"].text


def test_attempts_that_recover_much_are_not_advised_against() -> None:
    """Every attempt passes with one in three: the tasks that had several look worse than those that had one."""
    made = random.Random(3)
    rows = [row for at in range(400) for row in task_rows(at, until_passed(made, 1 / 3))]
    assert not {"k_probe", "k_full_max"} & suggested(rows).keys()


def test_where_the_bounds_leave_room_nothing_is_suggested() -> None:
    few = rows_of(5, 5) + rows_of(6, 4, 100, tier="probe", mode="kroll") + rows_of(7, 3, 200, mode="kroll")
    few += [row for at in range(6) for row in task_rows(at + 1, [False] * 6)]
    assert suggested(few) == {}


def test_what_an_untried_tier_is_taken_for() -> None:
    found = suggested(rows_of(900, 100))
    assert found["prior_rate"].suggested == 0.9
    assert found["prior_rate"].lower < 0.9 < found["prior_rate"].upper
    assert set(found) == {"prior_rate"}


def test_only_thresholds_that_were_given_are_spoken_of() -> None:
    rows = rows_of(900, 100)
    assert suggested(rows, {}) == {}
    assert suggested(rows, {"prior_rate": "high", "easy_rate": None, "k_probe": True}) == {}
    assert suggested([*rows_of(5, 0)]) == {}
