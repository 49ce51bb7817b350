"""A plan on its way: planned → replayed → canaried → applied, and rolled back from anywhere (RC-24).

No stage can be left out, and one that did not hold ends the way: `applied` is true after a replay and a canary that
both held, and at no other time. Where a plan stands is `validation.results.stage`, so it goes where the plan goes.

    planned ──replay──▶ replayed ──canary──▶ canaried ──apply──▶ applied
       └──────────────────┴──────────────────────┴───────────────────┴──▶ rolled_back

A replay or canary that regresses rolls back by itself; where the plan says `rollback_on_regress: false` it has failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from muniment.contracts.rules import PatterningPlan
from muniment.core.policy import PatterningPolicy
from muniment.core.stats import Comparison, MeanBounds, check_number, mean_bounds
from muniment.errors import InvalidInput, WrongStage
from muniment.rules.patterning.levers import Vector
from muniment.rules.patterning.observables import better_sign, read_values, target_of, units

__all__ = [
    "Stage",
    "Trial",
    "applied",
    "base_weights",
    "canaried",
    "check_stage",
    "judge_comparison",
    "judge_evaluations",
    "planned_weights",
    "replayed",
    "rolled_back",
    "stage_of",
    "weights_in_force",
]

Stage = Literal["planned", "refused", "replayed", "canaried", "applied", "rolled_back", "failed"]

_STAGES: tuple[Stage, ...] = ("planned", "refused", "replayed", "canaried", "applied", "rolled_back", "failed")
_NEXT = {
    "planned": "replay it next",
    "refused": "its response was ill-conditioned: measure again",
    "replayed": "the canary comes next",
    "canaried": "it may be applied",
    "applied": "it can be rolled back",
    "rolled_back": "it has ended: make another plan",
    "failed": "it has ended: make another plan",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """What a replay or a canary showed: whether it held, why not, and the numbers."""

    held: bool
    reasons: tuple[str, ...]
    changes: Mapping[str, Any]

    def to_wire(self) -> dict[str, Any]:
        return {"held": self.held, "reasons": list(self.reasons), "changes": dict(self.changes)}


# -- judging ------------------------------------------------------------------------------------------


def judge_evaluations(
    plan: PatterningPlan,
    before: Sequence[Mapping[str, float]],
    after: Sequence[Mapping[str, float]],
    policy: PatterningPolicy,
) -> Trial:
    """Evaluations with the base weights and with the plan's, pair by pair (the same seed, the same tasks).

    It holds where nothing got worse by more than `regress_max`, and what was asked to change moved that way.
    """
    if not before or len(before) != len(after):
        raise InvalidInput(
            f"{len(before)} evaluations before, {len(after)} after", path="$.after", hint="as many, and at least one"
        )
    old = [read_values(row, plan.observables, f"before, {at}") for at, row in enumerate(before)]
    new = [read_values(row, plan.observables, f"after, {at}") for at, row in enumerate(after)]
    base: Vector = np.mean(old, axis=0)
    scales = units(plan.observables, base)
    changes: dict[str, Any] = {}
    reasons: list[str] = []
    for at, observable in enumerate(plan.observables):
        change = mean_bounds([float(b[at] - a[at]) for a, b in zip(old, new, strict=True)])
        changes[observable.obs_id] = {"before": float(base[at]), "change": change.mean, **_bounds(change)}
        planned_base = _plan_base(plan, observable.obs_id, float(base[at]))
        sign = better_sign(observable, planned_base)
        gain = sign * change.mean / scales[at]
        ends = [end for end in (change.lower, change.upper) if end is not None]
        worst = min([gain, *(sign * end / scales[at] for end in ends)]) if policy.judged_by == "bound" else gain
        if worst < -float(policy.regress_max):
            reasons.append(f"{observable.obs_id} is worse by {-worst:.4g}")
        elif target_of(observable, planned_base) and gain <= 0:
            reasons.append(f"{observable.obs_id} was asked to change and did not")
    return Trial(not reasons, tuple(reasons), changes)


def _plan_base(plan: PatterningPlan, obs_id: str, otherwise: float) -> float:
    """What an observable was when the plan was made."""
    predicted = _results_of(plan).get("predicted")
    found = predicted.get(obs_id) if isinstance(predicted, Mapping) else None
    value = found.get("base") if isinstance(found, Mapping) else None
    return float(value) if isinstance(value, int | float) else otherwise


def _bounds(change: MeanBounds) -> dict[str, float | None]:
    return {"error": change.error, "lower": change.lower, "upper": change.upper}


def judge_comparison(comparison: Comparison) -> Trial:
    """A canary over real runs: the sequential test must have said that it is not harmful. Undecided does not hold."""
    decision = comparison.decision
    held = decision in ("not_harmful", "better")
    results = {"decision": decision, "effect": comparison.effect, "comparison": comparison.to_wire()}
    return Trial(held, () if held else (f"the comparison says {decision}",), results)


# -- the way ------------------------------------------------------------------------------------------


def stage_of(plan: PatterningPlan) -> Stage:
    """Where a plan stands; raises `InvalidInput` for one that says it is applied and has not come that way."""
    said = _results_of(plan).get("stage", "planned")
    if said not in _STAGES or (said == "applied") != plan.applied:
        raise InvalidInput(
            f"a plan that is {'' if plan.applied else 'not '}applied and at stage {said!r:.40}",
            path="$.validation.results.stage",
            hint="take it through replay and canary",
        )
    stage: Stage = said
    return stage


def check_stage(plan: PatterningPlan, wanted: Stage, step: str) -> None:
    """Raises `WrongStage` unless the plan stands there; `step` is what was to be done."""
    stage = stage_of(plan)
    if stage != wanted:
        raise WrongStage(
            f"{plan.patterning_id} is {stage}: it cannot be {step}", hint=_NEXT[stage], details={"stage": stage}
        )


def replayed(plan: PatterningPlan, trial: Trial) -> PatterningPlan:
    """The plan after its replay."""
    check_stage(plan, "planned", "replayed")
    return _tried(plan, "replay", trial, "replayed")


def canaried(plan: PatterningPlan, trial: Trial) -> PatterningPlan:
    """The plan after its canary, which comes after a replay that held."""
    check_stage(plan, "replayed", "tried in a canary")
    return _tried(plan, "canary", trial, "canaried")


def applied(plan: PatterningPlan) -> PatterningPlan:
    """The plan in force: the only place where `applied` becomes true."""
    check_stage(plan, "canaried", "applied")
    results = _results_of(plan)
    for name in ("replay", "canary"):
        trial = results.get(name)
        if not isinstance(trial, Mapping) or trial.get("held") is not True:
            raise WrongStage(f"the {name} of {plan.patterning_id} did not hold", hint="take it through both")
    return _at(plan, "applied", {}, is_applied=True)


def rolled_back(plan: PatterningPlan, reason: str) -> PatterningPlan:
    """The base weights again, from any stage but the ends."""
    if stage_of(plan) in ("refused", "rolled_back", "failed"):
        check_stage(plan, "applied", "rolled back")
    return _at(plan, "rolled_back", {"rollback": {"reasons": [reason]}})


def weights_in_force(plan: PatterningPlan) -> dict[str, float]:
    """The weights by probe: the plan's where it is applied, else those of the base."""
    return planned_weights(plan) if stage_of(plan) == "applied" else base_weights(plan)


def planned_weights(plan: PatterningPlan) -> dict[str, float]:
    """The plan's own weights, by probe."""
    weights = plan.solution.weights
    if len(weights) != len(plan.probes):
        raise InvalidInput(f"{len(weights)} weights for {len(plan.probes)} probes", path="$.solution.weights")
    return {probe.probe_id: float(weight) for probe, weight in zip(plan.probes, weights, strict=True)}


def base_weights(plan: PatterningPlan) -> dict[str, float]:
    """The weights that the plan started from, by probe."""
    base = _results_of(plan).get("base_weights")
    ids = [probe.probe_id for probe in plan.probes]
    if not isinstance(base, Mapping) or set(base) != set(ids):
        raise InvalidInput("the plan does not say what its base was", path="$.validation.results.base_weights")
    return {name: check_number(f"the base weight of {name}", base[name]) for name in ids}


def _results_of(plan: PatterningPlan) -> Mapping[str, Any]:
    return plan.validation.results or {}


def _tried(plan: PatterningPlan, name: str, trial: Trial, stage: Stage) -> PatterningPlan:
    if trial.held:
        return _at(plan, stage, {name: trial.to_wire()})
    if plan.validation.rollback_on_regress:
        return _at(plan, "rolled_back", {name: trial.to_wire(), "rollback": {"reasons": list(trial.reasons)}})
    return _at(plan, "failed", {name: trial.to_wire()})


def _at(plan: PatterningPlan, stage: Stage, results: Mapping[str, Any], *, is_applied: bool = False) -> PatterningPlan:
    wire = plan.to_wire()
    wire["validation"]["results"] = {**_results_of(plan), **results, "stage": stage}
    return PatterningPlan.from_wire({**wire, "applied": is_applied})
