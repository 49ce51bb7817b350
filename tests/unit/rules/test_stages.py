"""A plan on its way: replay, canary, applied, rolled back; nothing is skipped, nothing is applied by accident."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.rules import PatterningPlan
from muniment.core.policy import PatterningPolicy
from muniment.core.stats import Comparison
from muniment.errors import InvalidInput, MunimentError, WrongStage
from muniment.rules.patterning import (
    Trial,
    applied,
    base_weights,
    canaried,
    judge_comparison,
    judge_evaluations,
    planned_weights,
    replayed,
    rolled_back,
    stage_of,
    weights_in_force,
)
from products import for_each

POLICY = PatterningPolicy()
HELD = Trial(True, (), {})
WORSE = Trial(False, ("x is worse by 0.1",), {})


def a_plan(**changes: Any) -> PatterningPlan:
    return PatterningPlan.from_wire(
        {
            "schema_version": "0.5.15",
            "patterning_id": "pat_1",
            "generated_at": "2026-01-01T00:00:00Z",
            "base_dataset": "d",
            "probes": [{"probe_id": "a"}, {"probe_id": "b"}],
            "observables": [
                {"obs_id": "x", "kind": "pass_rate", "target_delta": 0.02},
                {"obs_id": "y", "kind": "unknown_rate"},
                {"obs_id": "z", "kind": "avg_cost"},
            ],
            "chi_estimation": {"method": "finite_diff"},
            "solution": {"weights": [0.6, 0.4], "clipped": False, "renormalized": True},
            "validation": {
                "rollback_on_regress": True,
                "results": {"stage": "planned", "base_weights": {"a": 0.5, "b": 0.5}},
            },
            "applied": False,
        }
        | changes
    )


@pytest.mark.req("RC-24")
def test_replay_then_canary_then_applied() -> None:
    plan = a_plan()
    assert weights_in_force(plan) == base_weights(plan) == {"a": 0.5, "b": 0.5}
    tried = canaried(replayed(plan, HELD), HELD)
    assert not tried.applied
    done = applied(tried)
    assert done.applied
    assert stage_of(done) == "applied"
    assert weights_in_force(done) == planned_weights(done) == {"a": 0.6, "b": 0.4}
    assert done.validation.results is not None
    assert done.validation.results["replay"] == HELD.to_wire()
    back = rolled_back(done, "users complain")
    assert not back.applied
    assert weights_in_force(back) == {"a": 0.5, "b": 0.5}


@pytest.mark.req("RC-24")
def test_what_regresses_is_rolled_back_and_goes_no_further() -> None:
    for plan in (replayed(a_plan(), WORSE), canaried(replayed(a_plan(), HELD), WORSE)):
        assert stage_of(plan) == "rolled_back"
        assert not plan.applied
        assert plan.validation.results is not None
        assert plan.validation.results["rollback"] == {"reasons": ["x is worse by 0.1"]}
        for step in (applied, lambda each: replayed(each, HELD), lambda each: canaried(each, HELD)):
            with pytest.raises(WrongStage):
                step(plan)
    kept = a_plan(validation={"rollback_on_regress": False, "results": {"base_weights": {"a": 1, "b": 0}}})
    assert stage_of(replayed(kept, WORSE)) == "failed"


@pytest.mark.req("RC-24")
def test_a_plan_cannot_say_that_it_is_applied() -> None:
    with pytest.raises(InvalidInput):
        weights_in_force(a_plan(applied=True))
    forged = {"stage": "canaried", "base_weights": {"a": 0.5, "b": 0.5}, "replay": {"held": True}}
    with pytest.raises(WrongStage, match="canary"):
        applied(a_plan(validation={"rollback_on_regress": True, "results": forged}))
    with pytest.raises(InvalidInput):
        stage_of(a_plan(validation={"rollback_on_regress": True, "results": {"stage": "ready"}}))


_STEPS: dict[str, Callable[[PatterningPlan], PatterningPlan]] = {
    "replay": lambda plan: replayed(plan, HELD),
    "bad replay": lambda plan: replayed(plan, WORSE),
    "canary": lambda plan: canaried(plan, HELD),
    "bad canary": lambda plan: canaried(plan, WORSE),
    "apply": applied,
    "roll back": lambda plan: rolled_back(plan, "why not"),
}


@pytest.mark.req("RC-24")
@given(st.lists(st.sampled_from(sorted(_STEPS)), max_size=12))
def test_no_walk_leads_to_applied_but_the_one(walk: list[str]) -> None:
    plan, done = a_plan(), []
    for name in walk:
        try:
            plan = _STEPS[name](plan)
        except MunimentError:
            continue
        done.append(name)
        assert plan.applied == (done == ["replay", "canary", "apply"])


# -- judging ------------------------------------------------------------------------------------------


def seen(x: float = 0.5, y: float = 0.1, z: float = 100.0) -> dict[str, float]:
    return {"x": x, "y": y, "z": z}


@pytest.mark.req("RC-24")
@for_each(
    ("after", "reason"),
    [
        (seen(x=0.52), None),
        (seen(x=0.52, y=0.105, z=100.9), None),
        (seen(x=0.5), "x was asked to change and did not"),
        (seen(x=0.48), "x is worse by 0.02"),
        (seen(x=0.52, y=0.12), "y is worse by 0.02"),
        (seen(x=0.52, y=0.0, z=90), None),
        (seen(x=0.52, z=103), "z is worse by 0.03"),
    ],
)
def test_judging_evaluations(after: dict[str, float], reason: str | None) -> None:
    trial = judge_evaluations(a_plan(), [seen()], [after], POLICY)
    assert trial.reasons == (() if reason is None else (reason,))
    assert trial.held is (reason is None)


def test_the_bound_asks_for_more_than_the_mean() -> None:
    before, after = [seen(), seen()], [seen(x=0.5), seen(x=0.56)]
    assert judge_evaluations(a_plan(), before, after, POLICY).held
    strict = PatterningPolicy(judged_by="bound")
    assert not judge_evaluations(a_plan(), before, after, strict).held
    with pytest.raises(InvalidInput):
        judge_evaluations(a_plan(), before, after[:1], POLICY)
    with pytest.raises(InvalidInput):
        judge_evaluations(a_plan(), [], [], POLICY)


def test_a_canary_of_real_runs_must_have_spoken() -> None:
    undecided = Comparison()
    assert not judge_comparison(undecided).held
    better = undecided
    for _ in range(200):
        better = better.add("candidate", True).add("baseline", False)
    assert judge_comparison(better).held
    worse = undecided
    for _ in range(200):
        worse = worse.add("candidate", False).add("baseline", True)
    assert judge_comparison(worse).reasons == ("the comparison says harmful",)
