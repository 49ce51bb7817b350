"""The numbers of the flow map, as one frozen record. Units stand last in names."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.record import Integer, Items, NonEmpty, Number, Record

__all__ = ["FlowEstimatorKind", "FlowMapPolicy"]

Positive = Annotated[Integer, Field(ge=1)]
OpenShare = Annotated[Number, Field(gt=0, lt=1)]
AboveZero = Annotated[Number, Field(gt=0)]

FlowEstimatorKind = Literal["aggregate_v1", "logit_field_v1"]


class FlowMapPolicy(Record):  # RC-23
    """How logs are made into a map. The four sizes bound its memory, whatever the number of logs."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["flow_policy.v1"] = "flow_policy.v1"

    estimator: FlowEstimatorKind = "aggregate_v1"
    """Counts alone, or a field learned from features of the runs."""
    buckets_max: Positive = 128
    """Buckets that are told apart."""
    stages_max: Positive = 12
    """Stages that are told apart."""
    codes_max: Positive = 48
    """Reason codes that are told apart; those of the contract come first."""
    levels_max: Positive = 8
    """Modes, and tiers."""

    confidence: OpenShare = 0.95
    """Of the bounds of a cell."""
    thin_n: Positive = 6
    """Fewer runs say little: such a cell is marked `thin`."""
    hotspots_max: Positive = 100
    """Cells that a map lists, worst first."""
    gain_min: OpenShare = 0.02
    """An intervention that gains less is not worth a suggestion."""
    cost_epsilon: AboveZero = 1.0
    """The least cost that a gain is divided by, in the unit of the logs (tokens, or calls)."""

    features_max: Positive = 256
    """Of the learned estimator: those with most runs behind them."""
    ridges: Annotated[Items[AboveZero], Field(min_length=1)] = (1.0, 3.0, 10.0, 30.0)
    """Strengths of shrinkage to choose from, by what was held out."""
