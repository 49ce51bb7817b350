"""Drift: one loop, one stall, one forgotten constraint, and their rates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
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
    tool,
    window,
)

from effort import examples
from muniment.core.policy import CompactionPolicy
from muniment.runs.drift import DriftMeter, DriftReport
from products import for_each


def report(told: Iterable[Told], policy: CompactionPolicy = POLICY) -> DriftReport:
    meter = DriftMeter(policy)
    for entry in entries(told):
        meter.count(entry)
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
def test_cost() -> None:
    told = [*busy(4), claim("k1", A), claim("k2", B, SEA), claim("k3", status="candidate"), claim("k4", A)]
    found = report([*told, patch("claim_retracted", id="k4", reason="no")])
    assert (found.verified, found.tokens, found.tokens_per_verified_claim) == (2, 40, 20.0)


def test_a_rate_of_nothing_is_none() -> None:
    found = report([start(), message()])
    assert found.runs == 0
    assert found.loop_rate is found.stall_rate is found.forgotten_rate is found.tokens_per_verified_claim is None


def test_forgotten_entries_are_passed_over() -> None:
    assert report([each | {"forgotten": True} for each in steps(9, action={"a": 1})]).steps == 0


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
    _same_whatever_comes_between(mine, alone)


def _same_whatever_comes_between(mine: list[Told], alone: DriftReport) -> None:
    talk: Any = message("hi") | {"run_id": "run_3"}
    mixed = [each for told in mine if told.get("kind") != "state_patch" for each in (told, talk)]
    plain = [told for told in mine if told.get("kind") != "state_patch"]
    assert report(mixed, SMALL) == report(plain, SMALL)
    assert alone.runs <= 1
