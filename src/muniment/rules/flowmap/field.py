"""`logit_field_v1`: risk and pass rates learnt over all cells together, so that a thin cell borrows from its likes.

Two fields are fitted: how often a log of a bucket and stage goes wrong with a code, and how often a task of a bucket
passes by what it began with. A gain is a counterfactual: the same tasks, predicted with the intervention and without.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from muniment.core.canonical import digest_of
from muniment.core.policy import FlowMapPolicy
from muniment.core.stats import Bounds, normal_quantile
from muniment.errors import InvalidInput
from muniment.rules.flowmap.aggregate import cost_gap, gain_of, strata_of, told_hotspot, worst_first
from muniment.rules.flowmap.cells import BASES, Change, arm_keys, changes_of, code_cells, named, side_of, without
from muniment.rules.flowmap.gains import Gain, best_first, gain_fields
from muniment.rules.flowmap.logit import Data, Features, Field, Floats, data_of, fit_field
from muniment.rules.flowmap.recovered import recovered_gains
from muniment.rules.flowmap.rows import ALL_BUCKETS, ALL_CODES, ArmKey
from muniment.rules.flowmap.tally import FOLDS, FlowTally
from muniment.verify.results import parse_bucket_key

__all__ = ["FEATURE_SET", "FlowField", "fit_fields"]

FEATURE_SET = "stage·code·bucket axes with pairs; mode·tier·hints·rules·K by impact and clarity"


class FlowField(NamedTuple):
    """Both fields of one tally."""

    tally: FlowTally
    risk: Field
    passing: Field | None
    """None where no task was judged."""

    @property
    def model_ref(self) -> str:
        return digest_of([self.risk.model_ref, None if self.passing is None else self.passing.model_ref])

    def risk_of(self, bucket: str, stage: str, code: str = ALL_CODES) -> float:
        """How often a log of the bucket and stage goes wrong with the code, seen there or not."""
        return self.risk.predict(_risk_features(bucket, stage, code))[0]

    def hotspots(self, bucket_key: str) -> list[dict[str, Any]]:
        """The cells at which something went wrong, worst first, each with what the field makes of it."""
        return worst_first(
            [
                self._hotspot(bucket_key, cell.stage, cell.code, cell.n)
                | {"risky_n": cell.risky, "code_n": cell.code_n}
                for cell in code_cells(self.tally, bucket_key)
                if cell.risky
            ]
        )

    def _hotspot(self, bucket_key: str, stage: str, code: str, n: int) -> dict[str, Any]:
        chance, gradient = 0.0, np.zeros(len(self.risk.names))
        for bucket, logs in sorted(_logs(self.tally, stage).items()):
            if bucket_key in (ALL_BUCKETS, bucket):
                one, moves = self.risk.predict(_risk_features(bucket, stage, code))
                chance, gradient = chance + one * logs / n, gradient + moves * (logs / n)
        policy = self.tally.policy
        bounds = self.risk.chance_bounds(chance, gradient, _z(policy))
        return told_hotspot(stage, code, chance, n, bounds, policy)

    def interventions(self, bucket_key: str) -> tuple[list[dict[str, Any]], list[str]]:
        """What each intervention would bring, best first; and those that no task began without. What further attempts
        recovered is counted, not predicted.
        """
        gains, alone = recovered_gains(self.tally, bucket_key), []
        known = {each["intervention"] for each in gains}
        for change in changes_of(arm_keys(self.tally, bucket_key)):
            if named(change) in known:
                continue
            strata = strata_of(self.tally, bucket_key, change)
            seen = gain_of(strata, self.tally.policy.confidence)
            gain = None if seen is None else self._gain(bucket_key, change, seen)
            if gain is None:
                alone.append(named(change))
            else:
                cost = cost_gap(strata, self.tally.policy.confidence)
                gains.append(gain_fields(change, gain, cost, self.tally.policy, "between_tasks"))
        return best_first(gains), alone

    def _gain(self, bucket_key: str, change: Change, seen: Gain) -> Gain | None:
        """The runs that had it, as they are and as they would be without it."""
        if self.passing is None:
            return None
        size = len(self.passing.names)
        had, lacked, total = _Mean(0.0, np.zeros(size)), _Mean(0.0, np.zeros(size)), 0
        for key in arm_keys(self.tally, bucket_key):
            if side_of(key, change):
                n = sum(self.tally.arm(key).n)
                had = had.and_(n, self.passing.predict(_pass_features(key)))
                lacked = lacked.and_(n, self.passing.predict(_pass_features(without(key, change))))
                total += n
        had, lacked = had.over(total), lacked.over(total)
        bounds = _gap_bounds(self.passing, had, lacked, _z(self.tally.policy))
        return seen._replace(gain=had.chance - lacked.chance, bounds=bounds, base_pass=lacked.chance)


class _Mean(NamedTuple):
    """Predictions added up, with how the sum moves with the weights."""

    chance: float
    moves: Floats

    def and_(self, n: int, predicted: tuple[float, Floats]) -> _Mean:
        return _Mean(self.chance + n * predicted[0], self.moves + n * predicted[1])

    def over(self, n: int) -> _Mean:
        return _Mean(self.chance / n, self.moves / n)


def _gap_bounds(field: Field, one: _Mean, other: _Mean, z: float) -> Bounds:
    """Bounds on the difference of two means, from those of each and how they move together (MOVER): near 0 and 1, where
    a symmetric interval would promise too much, they are as lopsided as what they are made of.
    """
    mine, theirs = field.chance_bounds(one.chance, one.moves, z), field.chance_bounds(other.chance, other.moves, z)
    together = field.correlation(one.moves, other.moves)
    gap = one.chance - other.chance
    below = _apart(one.chance - mine.lower, theirs.upper - other.chance, together)
    above = _apart(mine.upper - one.chance, other.chance - theirs.lower, together)
    return Bounds(max(-1.0, gap - below), min(1.0, gap + above))


def _apart(one: float, other: float, together: float) -> float:
    return sqrt(max(0.0, one * one + other * other - 2 * together * one * other))


def fit_fields(tally: FlowTally) -> FlowField:
    """Fit both fields; a tally of nothing has none."""
    policy = tally.policy
    if not tally.n:
        raise InvalidInput("there are no logs to learn from", path="$.window", hint="take a wider window")
    risk = fit_field(_risk_data(tally), policy.ridges)
    passing = fit_field(_pass_data(tally), policy.ridges) if tally.tasks_n else None
    return FlowField(tally, risk, passing)


def _z(policy: FlowMapPolicy) -> float:
    return normal_quantile((1 + policy.confidence) / 2)


# -- risk -------------------------------------------------------------------------------------------------


def _logs(tally: FlowTally, stage: str) -> dict[str, int]:
    """How many logs of a stage each bucket has."""
    return {
        key.bucket: sum(counts[::2])
        for key, counts in tally.codes.items()
        if key.stage == stage and key.code == ALL_CODES
    }


def _risk_data(tally: FlowTally) -> Data:
    """Every code in every bucket and stage, those that it was never met in too: that says something as well."""
    whole = {key[:2]: counts for key, counts in tally.codes.items() if key.code == ALL_CODES}
    names = sorted({key.code for key in tally.codes})
    rows: list[Features] = []
    n: list[list[int]] = []
    y: list[list[int]] = []
    nothing = [0] * (2 * FOLDS)
    for (bucket, stage), counts in sorted(whole.items()):
        for code in names:
            met = tally.codes.get((bucket, stage, code), nothing)  # type: ignore[call-overload]
            rows.append(_risk_features(bucket, stage, code))
            n.append(counts[::2])
            y.append(met[1::2])
    return data_of(rows, n, y, tally.policy.features_max)


def _risk_features(bucket: str, stage: str, code: str) -> Features:
    axes = _axes(bucket)
    return (
        f"code={code}",
        f"stage={stage}",
        *axes,
        f"code={code}&stage={stage}",
        *(f"code={code}&{axis}" for axis in axes),
        f"stage={stage}&bucket={bucket}",
    )


def _axes(bucket: str) -> tuple[str, ...]:
    """A bucket by its parts, where it has them, and by its name."""
    try:
        impact, domain, clarity = parse_bucket_key(bucket)
    except InvalidInput:
        return (f"bucket={bucket}",)
    return f"impact={impact}", f"domain={domain}", f"clarity={clarity}", f"bucket={bucket}"


# -- passing ----------------------------------------------------------------------------------------------


def _pass_data(tally: FlowTally) -> Data:
    keys = sorted(tally.arms)
    arms = [tally.arm(key) for key in keys]
    n: list[tuple[int, ...]] = [arm.n for arm in arms]
    y: list[tuple[int, ...]] = [arm.passes for arm in arms]
    return data_of([_pass_features(key) for key in keys], n, y, tally.policy.features_max)


def _pass_features(key: ArmKey) -> Features:
    """Doing nothing has no features: what is thin is drawn towards no effect."""
    axes = _axes(key.bucket)
    done = [
        named(Change(field, getattr(key, field))) for field, bases in BASES.items() if getattr(key, field) not in bases
    ]
    by = [axis for axis in axes if axis.startswith(("impact=", "clarity=", "bucket="))]
    return (*axes, *done, *(f"{each}&{axis}" for each in done for axis in by))
