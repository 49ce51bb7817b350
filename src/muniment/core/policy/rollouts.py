"""The numbers of rollouts, as one frozen record. Units stand last in names."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.record import Integer, Items, NonEmpty, Number, Record

__all__ = ["RolloutPolicy"]

Positive = Annotated[Integer, Field(ge=1)]
Share = Annotated[Number, Field(ge=0, le=1)]
Weight = Annotated[Number, Field(ge=0)]


class RolloutPolicy(Record):  # RC-20
    """How attempts at one task differ, and what is read of them. How many there are is the route policy's."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["rollout_policy.v1"] = "rollout_policy.v1"

    refines_max: Annotated[Integer, Field(ge=0, le=1)] = 1
    """How often a contrasting attempt may go over its own answer."""

    top_m: Positive = 3
    """Summaries that a synthesis reads."""
    diversity_weight: Share = 0.3
    """Of unlikeness to what is chosen already, against score."""
    summary_tokens_max: Annotated[Integer, Field(ge=256, le=512)] = 512
    """Of the summary of one attempt."""
    temperatures: Items[Weight] = (0.7, 0.3, 1.0, 0.5)
    """Of the attempts, in turn."""
    sot_profile: NonEmpty = "sot_mini_v1"
    """The name that a log gives to one call in which roles talk."""
    sot_turns_max: Annotated[Integer, Field(ge=2, le=3)] = 3
    """Turns of that talk."""
    output_bytes_max: Positive = 4 * 1024 * 1024
    """An answer over this is refused where it was made, before it is sent or stored."""
