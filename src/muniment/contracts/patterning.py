"""Patterning (001): an offline recipe of data weights (RC-24). As many weights as probes: `contracts.semantics`."""

from typing import Literal

from muniment.core.record import Absent, Items, JsonObject, Number, OpenRecord, RulecraftRecord

__all__ = [
    "ChiEstimation",
    "PatterningObservable",
    "PatterningPlan",
    "PatterningProbe",
    "PatterningSolution",
    "PatterningValidation",
]


class PatterningProbe(OpenRecord):
    """A lever: a slice, generator or template whose share of the data can change."""

    probe_id: str
    description: Absent[str] = None
    slice_query: str | None = None
    max_weight: Number | None = None


class PatterningObservable(OpenRecord):
    """A behaviour that is measured in place of what is inside."""

    obs_id: str
    kind: Absent[Literal["pass_rate", "unknown_rate", "reason_code_rate", "avg_cost", "custom"]] = None
    bucket_key: str | None = None
    reason_code: str | None = None
    target_value: Number | None = None
    target_delta: Number | None = None


class ChiEstimation(OpenRecord):
    """How the response χ was estimated."""

    method: Literal["finite_diff", "grad_proxy"]
    epsilon: Number | None = None
    regularizer: Number | None = None
    condition_number: Number | None = None
    notes: str | None = None


class PatterningSolution(OpenRecord):
    """The weights, one for each probe, after clipping and renormalising."""

    weights: Items[Number]
    clipped: bool
    renormalized: bool


class PatterningValidation(OpenRecord):
    """How the plan was tried before it was applied."""

    canary_suite_id: str | None = None
    replay_window: JsonObject | None = None
    rollback_on_regress: bool
    results: JsonObject | None = None


class PatterningPlan(RulecraftRecord):
    """An intervention on the data mix, offline only."""

    patterning_id: str
    generated_at: str
    base_dataset: str
    probes: Items[PatterningProbe]
    observables: Items[PatterningObservable]
    chi_estimation: ChiEstimation
    solution: PatterningSolution
    validation: PatterningValidation
    applied: bool
    notes: str | None = None
