"""The numbers of patterning, and what it measures, as frozen records. Units stand last in names."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.record import Integer, NonEmpty, Number, Record

__all__ = ["PatterningPolicy"]

Positive = Annotated[Integer, Field(ge=1)]
Share = Annotated[Number, Field(ge=0, le=1)]
OpenShare = Annotated[Number, Field(gt=0, lt=1)]
Weight = Annotated[Number, Field(ge=0)]


class PatterningPolicy(Record):  # RC-24
    """How a response is measured and turned round, and when a plan may be applied."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["patterning_policy.v1"] = "patterning_policy.v1"
    epsilon: OpenShare = 0.05
    """The share of the data that is moved to a probe, from all others in proportion, to see what follows."""
    difference: Literal["central", "one_sided"] = "central"
    """`central` also moves the share away, where the probe has it, and so cancels curvature: twice the evaluations."""
    repeats: Positive = 1
    """Each evaluation with so many seeds; without at least two nothing is known of the noise."""
    ridge_share: Weight = 1e-4
    """Of the square of the largest singular value: the least that is added. The measured noise comes on top."""
    condition_max: Annotated[Number, Field(ge=1)] = 100
    """A response whose singular values differ by more is ill-conditioned."""
    ill_conditioned: Literal["refuse", "plan"] = "refuse"
    """`refuse`: a typed error. `plan`: a plan that keeps the base weights, says why, and can never be applied."""
    weight_max: Annotated[Number, Field(gt=0, le=1)] = 1
    """Of a probe that names no `max_weight`."""
    step_max: Annotated[Number, Field(gt=0, le=1)] = 0.25
    """No weight moves by more in one plan: a response is local. A longer step is shortened as a whole."""
    regress_max: Weight = 0.01
    """An observable may get so much worse: a rate as it stands, a cost as a share of what it was."""
    judged_by: Literal["mean", "bound"] = "mean"
    """`bound`: also the worse end of the 95 % interval over the seeds must be within that."""
    rollback_on_regress: bool = True
    """A replay or canary that regresses rolls the plan back by itself; otherwise it has failed."""
    evaluation_timeout_s: Annotated[Number, Field(gt=0)] | None = None
    """Of one evaluation on an executor. None: as long as it takes."""
