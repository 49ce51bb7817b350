"""What patterning measures, as frozen records."""

from typing import Annotated

from pydantic import Field

from muniment.contracts.rules import PatterningObservable, PatterningProbe
from muniment.core.record import Absent, Integer, Items, NonEmpty, Number, Record

__all__ = ["GivenResponse", "PatterningEvaluation", "PatterningMeasurements"]


Weight = Annotated[Number, Field(ge=0)]


class PatterningEvaluation(Record):
    """What was observed when `step` of the data was moved to a probe (away from it: negative); 0 is the base."""

    probe_id: NonEmpty | None = None
    step: Annotated[Number, Field(gt=-1, lt=1)] = 0
    seed: Integer = 0
    values: dict[str, Number]


class GivenResponse(Record):
    """A response that was not measured here, such as one from gradients: a row an observable, a column a probe."""

    chi: Items[Items[Number]]
    base: dict[str, Number]
    errors: Absent[Items[Items[Number]]] = None
    """The standard error of each."""


class PatterningMeasurements(Record):
    """All that a plan is made from, as one document."""

    base_dataset: NonEmpty
    probes: Items[PatterningProbe]
    observables: Items[PatterningObservable]
    base_weights: dict[str, Weight]
    evaluations: Items[PatterningEvaluation] = ()
    response: Absent[GivenResponse] = None
    """In place of evaluations."""
