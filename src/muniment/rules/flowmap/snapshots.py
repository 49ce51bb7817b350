"""A tally as a FlowMapSnapshot (RC-23): the contract's record, with bounds and counts beside its own keys."""

from __future__ import annotations

from typing import Any, get_args

from muniment.contracts.rules import FlowMapSnapshot
from muniment.core.instants import check_window
from muniment.core.policy import FlowEstimatorKind
from muniment.core.record import RULECRAFT_VERSION
from muniment.errors import InvalidInput, NotFound
from muniment.rules.flowmap import aggregate
from muniment.rules.flowmap.recovered import unplanned_names
from muniment.rules.flowmap.rows import ALL_BUCKETS
from muniment.rules.flowmap.tally import FOLDS, FlowTally

__all__ = ["estimator_of", "flow_snapshot"]

_READ = (
    "a rate is of the logs of its stage, those of a code are the ones that went wrong with it and may overlap",
    "gains are of tasks: what was tried after a failure is compared within the task (within_task), what a task began "
    "with between tasks of a bucket (between_tasks), which is no experiment: harder tasks may have been given more",
)


def estimator_of(given: Any, default: FlowEstimatorKind) -> FlowEstimatorKind:
    kinds = get_args(FlowEstimatorKind)
    if given is None:
        return default
    if given not in kinds:
        raise InvalidInput(f"{given!r:.40} is no estimator", path="$.estimator", hint=f"one of {', '.join(kinds)}")
    found: FlowEstimatorKind = given
    return found


def flow_snapshot(
    tally: FlowTally,
    estimator: FlowEstimatorKind,
    *,
    now: str,
    bucket_key: str = ALL_BUCKETS,
    start_at: str | None = None,
    end_at: str | None = None,
) -> FlowMapSnapshot:
    """The map of a bucket, or of all, over the window that the tally was counted in."""
    check_window(start_at, end_at)
    if tally.first_at is None:
        raise NotFound("no judged run was logged in this window", path="$.window", hint="take a wider window")
    window = {"start_at": start_at or tally.first_at, "end_at": end_at or max(now, tally.last_at or now)}
    spots, (gains, alone), block = _estimated(tally, estimator, bucket_key)
    unplanned = unplanned_names(tally, bucket_key, {each["intervention"] for each in gains})
    notes = [
        f"{tally.n} logs, {tally.judged_n} judged, {tally.tasks_n} tasks",
        *_READ,
        *_limits(tally, len(spots), [each for each in alone if each not in unplanned], unplanned),
    ]
    return FlowMapSnapshot.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "generated_at": now,
            "window": window,
            "bucket_key": bucket_key,
            "estimator": block,
            "risk": {"stage_hotspots": spots[: tally.policy.hotspots_max]},
            "opportunity": {"interventions": gains},
            "notes": "; ".join(notes),
        }
    )


Estimated = tuple[list[dict[str, Any]], tuple[list[dict[str, Any]], list[str]], dict[str, Any]]


def _estimated(tally: FlowTally, estimator: FlowEstimatorKind, bucket_key: str) -> Estimated:
    if estimator == "aggregate_v1":
        spots = aggregate.hotspots(tally, bucket_key)
        gains = aggregate.interventions(tally, bucket_key)
        calibration = (
            "none: counted rates with Wilson's bounds, gains within tasks (Wilson) "
            "or within strata of tasks (Mantel–Haenszel, MOVER)"
        )
        return spots, gains, {"kind": estimator, "model_ref": None, "feature_set": None, "calibration": calibration}
    from muniment.rules.flowmap.field import FEATURE_SET, fit_fields
    from muniment.rules.flowmap.told import calibration_block

    field = fit_fields(tally)
    block = {"kind": estimator, "model_ref": f"sha256:{field.model_ref}", "feature_set": FEATURE_SET}
    return field.hotspots(bucket_key), field.interventions(bucket_key), block | calibration_block(field, FOLDS)


def _limits(tally: FlowTally, spots_n: int, alone: list[str], unplanned: list[str]) -> list[str]:
    """What the map does not show."""
    limits = []
    if tally.folded:
        limits.append(f"more than the policy tells apart of: {', '.join(tally.folded)}; the rest stands as (other)")
    if spots_n > tally.policy.hotspots_max:
        limits.append(f"{spots_n - tally.policy.hotspots_max} lesser hotspots are not listed")
    if unplanned:
        limits.append(
            f"no estimate of {', '.join(unplanned)}: tried because something had failed, "
            "and the logs do not say which tasks it was open to"
        )
    if alone:
        limits.append(f"nothing to compare with: {', '.join(alone)}")
    return limits
