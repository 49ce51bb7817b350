"""Drift: what is one loop, one stall, one forgotten constraint; where it stands; when a threshold should move."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_entries import (
    POLICY,
    SEA,
    SMALL,
    A,
    B,
    Told,
    claim,
    conflict,
    entries,
    failure,
    finish,
    fold,
    message,
    patch,
    start,
    step,
    steps,
    streams,
    taken,
    tool,
    window,
)

from effort import examples
from muniment.core.policy import CompactionPolicy
from muniment.runs.compaction.drift import DriftMeter, sign_test
from muniment.runs.drift import DriftReport
from products import for_each


def report(told: Iterable[Told], policy: CompactionPolicy = POLICY) -> DriftReport:
    meter = DriftMeter(policy)
    for entry in entries(told):
        meter.see(entry)
    return meter.report()


def busy(count: int, first: int = 0) -> list[Told]:
    """Steps that each bring new evidence and act in a new way."""
    return [
        each
        for number in range(first, first + count)
        for each in (
            step("COMPILE_DONE", manifest=window(f"evt_{number}", id_=f"m{number}")),
            step("PLAN_DONE"),
            step("ACT_DONE", action={"n": number}, tokens=10),
            step("OBSERVE_DONE"),
        )
    ]


def of_another(told: Iterable[Told], run_id: str = "run_2") -> list[Told]:
    return [each | {"run_id": run_id} for each in told]


# -- what is counted ----------------------------------------------------------------------------------


@pytest.mark.req("CS-13")
def test_loops_an_action() -> None:
    found = report([*steps(3, action={"a": 1}), *steps(1, action={"b": 1})])
    assert (found.loops, found.actions, found.loop_rate) == (1, 4, 0.25)
    both = report([*steps(3, action={"a": 1}), *of_another(steps(3, action={"a": 1})), *steps(4, action={"a": 1})])
    assert (both.loops, both.runs, both.actions) == (2, 2, 10), "each run's actions are a row of their own"


@pytest.mark.req("CS-13")
@for_each(
    ("told", "stalls"),
    [
        ([*steps(4)], 1),
        ([*steps(9)], 1),
        ([*steps(3)], 0),
        ([*steps(3), finish()], 1),
        ([*steps(2), *busy(1), *steps(2), finish()], 0),
        ([*steps(4), *busy(1), *steps(4)], 2),
        ([*steps(2), claim("k1", A, status="candidate"), *steps(3)], 0),
        ([*steps(2), patch("claim_retracted", id="k9", reason="no"), *steps(3)], 0),
        ([*steps(2), conflict("c1"), *steps(3)], 0),
        ([conflict("c1"), *steps(2), conflict("c2"), *steps(3)], 1),
        ([*steps(2), tool("no such file"), message(), *steps(3)], 1),
        ([*busy(1), *[step("COMPILE_DONE", manifest=window("evt_0"))] * 5], 1),
        ([*busy(4), finish("NO_EVIDENCE")], 1),
        ([finish("NO_EVIDENCE")], 1),
        ([*steps(5), finish("NO_EVIDENCE")], 1),
        ([*busy(4), finish("BUDGET_EXCEEDED")], 0),
        ([message()] * 9, 0),
    ],
    ids=range(17),
)
def test_steps_that_bring_nothing_are_one_stall(told: list[Told], stalls: int) -> None:
    assert report(told).stalls == stalls


@pytest.mark.req("CS-13")
def test_forgotten_constraints() -> None:
    told = [
        failure("constraint_forgotten"),
        failure("constraint_violation"),
        failure("test_fail"),
        step(
            "COMPILE_DONE",
            manifest=window("evt_1", excluded={"state:constraints.budget": "over_budget", "evt_2": "old"}),
        ),
        step("COMPILE_DONE", manifest=window("evt_1", excluded={"state:constraints.budget": "purpose"})),
        step("COMPILE_DONE", manifest=window("evt_1", excluded={"working_state": "over_budget"})),
        step("COMPILE_DONE", manifest=window("evt_1", excluded={"state:slots.city": "over_budget"})),
        message("hi", event="failure_recorded", category="constraint_forgotten", fingerprint="f"),
    ]
    found = report(told)
    assert (found.constraints_forgotten, found.steps, found.forgotten_rate) == (4, 4, 1.0)


@pytest.mark.req("CS-13")
def test_coverage_and_cost() -> None:
    told = [*busy(4), claim("k1", A), claim("k2", B, SEA), claim("k3", status="candidate"), claim("k4", A)]
    found = report([*told, patch("claim_retracted", id="k4", reason="no")])
    assert (found.verified, found.candidates, found.verified_share) == (2, 1, 2 / 3)
    assert (found.chunks_cited, found.chunks_seen, found.cited_share) == (3, 7, 3 / 7)
    assert (found.tokens, found.tokens_per_verified_claim) == (40, 20.0)


def test_a_share_of_nothing_is_none() -> None:
    found = report([start(), message()])
    assert found.runs == 0
    assert found.loop_rate is found.stall_rate is found.forgotten_rate is found.verified_share is None
    assert found.cited_share is found.tokens_per_verified_claim is None
    assert found.advice == "not enough steps"


def test_forgotten_entries_are_passed_over() -> None:
    assert report([each | {"forgotten": True} for each in steps(9, action={"a": 1})]).steps == 0


# -- where incidents stand ----------------------------------------------------------------------------


@for_each(
    ("before", "halves"),
    [(0, (1, 0)), (1, (1, 0)), (2, (1, 0)), (3, (0, 1)), (4, (0, 1)), (5, (0, 1))],
    ids=str,
)
def test_an_incident_stands_where_it_began(before: int, halves: tuple[int, int]) -> None:
    """A loop of three actions, begun in one of six steps between two snapshots, whenever it is found."""
    told = busy(before) + steps(6 - before, action={"same": 1})
    told = [*told, taken(1, len(told)), *steps(3, action={"same": 1}), *busy(2, 90)]
    found = report(told, POLICY.model_copy(update={"stall_steps": 99}))
    assert (found.loops, found.snapshots) == (1, 1)
    assert (found.early, found.late) == halves


def test_what_no_snapshot_closed_has_no_half() -> None:
    found = report([*steps(3, action={"same": 1}), failure("constraint_forgotten")])
    assert (found.loops, found.constraints_forgotten, found.early, found.late) == (1, 1, 0, 0)


@for_each(("at", "halves"), [(0, (1, 0)), (1, (1, 0)), (2, (0, 0)), (3, (0, 1)), (5, (0, 1))])
def test_the_middle_of_an_odd_number_has_no_half(at: int, halves: tuple[int, int]) -> None:
    told = [step("PLAN_DONE") for _ in range(5)]
    told.insert(at, failure("constraint_forgotten"))
    found = report([*told, taken(1, len(told))], POLICY.model_copy(update={"stall_steps": 99}))
    assert (found.early, found.late) == halves


@given(st.integers(0, 30), st.integers(0, 30))
def test_the_sign_test_is_exact(late: int, early: int) -> None:
    both = late + early
    exact = Fraction(sum(comb(both, more) for more in range(late, both + 1)), 2**both)
    assert sign_test(late, early) == float(exact)


def test_the_sign_test_counts_all_ways() -> None:
    ways = list(product((0, 1), repeat=7))
    assert sign_test(5, 2) == sum(sum(way) >= 5 for way in ways) / len(ways)
    assert sign_test(0, 0) == 1
    assert 0 < sign_test(3000, 1000) < 1e-100


# -- what it advises ----------------------------------------------------------------------------------


def stretches(count: int, *, late: bool) -> list[Told]:
    """Stretches of six steps, each with a forgotten constraint in one half; then one without any."""
    told: list[Told] = []
    for number in range(count):
        six = busy(6, 10 * number)
        six.insert(20 if late else 3, failure("constraint_forgotten"))
        told += six
        told.append(taken(number + 1, len(told)))
    return told


@pytest.mark.req("CS-13")
def test_late_incidents_lower_the_thresholds() -> None:
    found = report(stretches(6, late=True))
    assert (found.early, found.late, found.p_late) == (0, 6, 1 / 64)
    assert (found.advice, found.event_threshold, found.step_fallback) == ("lower", 12, 6)
    assert any("over 2%" in reason for reason in found.reasons)
    assert any("6 began in the second half" in reason for reason in found.reasons)


@pytest.mark.req("CS-13")
def test_incidents_anywhere_else_do_not() -> None:
    early = report(stretches(6, late=False))
    assert (early.early, early.late, early.advice) == (6, 0, "keep")
    few = report([*stretches(4, late=True), *busy(12, 500)])
    assert (few.late, few.advice) == (4, "keep"), "four of four may be chance"
    assert (few.event_threshold, few.step_fallback) == (18, 8)
    rare = report([*stretches(6, late=True), *busy(400, 500)])
    assert (rare.late, rare.advice) == (6, "keep"), "no rate is over its limit"
    lowest = report(stretches(6, late=True), POLICY.model_copy(update={"event_threshold": 3}))
    assert (lowest.advice, lowest.event_threshold) == ("keep", 3)


@pytest.mark.req("CS-13")
def test_no_incident_raises_them_only_where_that_is_no_chance() -> None:
    few = [*busy(30), taken(1, 120)]
    assert report(few).advice == "keep"
    assert any("too few" in reason for reason in report(few).reasons)
    many = [*busy(150), taken(1, 600)]
    found = report(many)
    assert (found.advice, found.event_threshold, found.step_fallback) == ("raise", 24, 10)
    assert report(many[:-1]).advice == "keep", "no snapshot was ever taken"
    assert report(busy(29)).advice == "not enough steps"


@settings(max_examples=examples(50))
@given(streams())
def test_any_stream_has_a_report_that_agrees_with_the_fold(told: list[Told]) -> None:
    found = report(told, SMALL)
    assert DriftReport.from_wire(found.to_wire()) == found
    mine = [each for each in told if each.get("run_id") is None]
    log = fold(entries(mine), SMALL)
    alone = report(mine, SMALL)
    assert (alone.loops, alone.steps, alone.tokens) == (log.loops, log.spent.steps, log.spent.tokens)
    assert alone.verified == sum(each.status == "verified" for each in log.claims)
    assert alone.early + alone.late <= alone.loops + alone.stalls + alone.constraints_forgotten
    _same_whatever_comes_between(mine, alone)


def _same_whatever_comes_between(mine: list[Told], alone: DriftReport) -> None:
    talk: Any = message("hi") | {"run_id": "run_3"}
    mixed = [each for told in mine if told.get("kind") != "state_patch" for each in (told, talk)]
    plain = [told for told in mine if told.get("kind") != "state_patch"]
    assert report(mixed, SMALL) == report(plain, SMALL)
    assert alone.runs <= 1
