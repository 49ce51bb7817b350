"""The numbers of guided tree search, as one frozen record (RC-22). Units stand last in names."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.policy.learning import PuctPolicy
from muniment.core.record import Integer, NonEmpty, Number, Record

__all__ = ["TreeAlgo", "TreePolicy", "TreePuctPolicy"]

Positive = Annotated[Integer, Field(ge=1)]
Whole = Annotated[Integer, Field(ge=0)]
Weight = Annotated[Number, Field(ge=0)]
Seconds = Annotated[Number, Field(gt=0)]

TreeAlgo = Literal["puct_guided_tree_v1", "beam_guided_tree_v1"]


class TreePuctPolicy(PuctPolicy):
    """Q is the best (`max_reward`) or the mean value below a state, P its prior among its siblings."""

    c: Weight = 0.1
    """Smaller than among seeds: a state has a value before it is chosen, and not only after it was tried."""


class TreePolicy(Record):
    """How a space of states is searched, and how far."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["tree_policy.v1"] = "tree_policy.v1"
    algo: TreeAlgo = "puct_guided_tree_v1"
    """Best first by PUCT, or a beam."""
    puct: TreePuctPolicy = TreePuctPolicy.model_construct()
    beam_width: Positive = 2
    """States that a beam keeps at each depth."""

    nodes_max: Positive = 1_000
    """States that are expanded."""
    depth_max: Positive = 64
    """How deep the search goes."""
    frontier_max: Positive = 10_000
    """States that wait; over this the least promising go, and the search says so."""
    children_max: Positive = 256
    """Of one state; a function may offer more, even without end."""
    calls_max: Positive = 50_000
    """Of expand, score and verify together."""
    cost_max: Weight | None = None
    """In the problem's own unit."""
    failures_max: Positive = 32
    """Calls that raised, hung or answered nonsense, before the search gives up."""
    state_bytes_max: Positive = 16 * 1024
    """Of one state as canonical JSON."""

    call_timeout_s: Seconds = 60
    """Of one call of expand, score or verify."""
    time_max_s: Seconds | None = None
    """Of the whole search, by the clock, each time it is taken up."""
    checkpoint_answers: Positive = 256
    """Answers that may have to be asked for again after a crash, at most: then they are saved."""
    checkpoint_s: Seconds = 5
    """Seconds whose answers may have to be asked for again after a crash, at most: then they are saved."""
