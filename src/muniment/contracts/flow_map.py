"""The flow map (001): where runs go wrong and what an intervention would bring (RC-23)."""

from muniment.core.record import Absent, Integer, Items, Number, OpenRecord, RulecraftRecord

__all__ = [
    "FlowEstimator",
    "FlowMapSnapshot",
    "FlowOpportunity",
    "FlowRisk",
    "FlowWindow",
    "Intervention",
    "StageHotspot",
]


class FlowWindow(OpenRecord):
    """Over which time. The block may be missing, its ends not."""

    start_at: str
    end_at: str


class FlowEstimator(OpenRecord):
    """What estimated it; `kind` is an open string (`aggregate_v1`, `nn_field_v1`, …)."""

    kind: Absent[str] = None
    model_ref: str | None = None
    feature_set: str | None = None
    calibration: str | None = None


class StageHotspot(OpenRecord):
    """A stage and reason at which runs fail."""

    stage: Absent[str] = None
    reason_code: str | None = None
    risk_rate: Absent[Number] = None
    support_n: Absent[Integer] = None


class FlowRisk(OpenRecord):
    """Hotspots, worst first."""

    stage_hotspots: Absent[Items[StageHotspot]] = None


class Intervention(OpenRecord):
    """What an intervention gains, costs, and how many runs say so."""

    intervention: Absent[str] = None
    gain_pass: Absent[Number] = None
    delta_cost: Absent[Number] = None
    efficiency: Absent[Number] = None
    support_n: Absent[Integer] = None


class FlowOpportunity(OpenRecord):
    """Interventions worth a try."""

    interventions: Absent[Items[Intervention]] = None


class FlowMapSnapshot(RulecraftRecord):
    """The map of one bucket over one window."""

    generated_at: str
    window: Absent[FlowWindow] = None
    bucket_key: str
    estimator: Absent[FlowEstimator] = None
    risk: FlowRisk
    opportunity: FlowOpportunity
    notes: str | None = None
