"""What a caller tells of how a run was carried out (RC-27), block by block as the run's EventLog will have it."""

from typing import Annotated

from pydantic import Field

from muniment.contracts.runs import (
    ExperimentBlock,
    PolicySignals,
    RolloutSelectBlock,
    RolloutSummary,
    SynthInputs,
    TreeSearchBlock,
)
from muniment.core.record import Absent, Integer, Items, JsonObject, NonEmpty, Number, Record
from muniment.core.scope import RunMode

__all__ = ["PlannedRung", "RunBlocks", "TaskBlock", "TriedAttempt"]


class PlannedRung(Record):
    """Up to `k` attempts of one mode and tier, made as long as none before has passed."""

    mode: RunMode
    tier: Absent[NonEmpty] = None
    k: Annotated[Integer, Field(ge=1)]


class TriedAttempt(Record):
    """One attempt at a task: how it was made, what came of it, what it took."""

    mode: RunMode
    tier: Absent[NonEmpty] = None
    passed: Absent[bool] = None
    """Absent where a verifier was asked and could not tell."""
    cost: Annotated[Number, Field(ge=0)] = 0


class TaskBlock(Record):
    """The task that a run was an attempt at. What was planned and what was made stand with the first attempt."""

    task_id: NonEmpty
    """The trace of its first attempt."""
    number: Annotated[Integer, Field(ge=0)]
    """Which attempt this is, from 0."""
    rungs: Items[PlannedRung] = ()
    """What would be tried one after another if nothing passed: known before the first attempt was made."""
    attempts: Items[TriedAttempt] = ()
    """All that were made, in their order."""


class RunBlocks(Record):
    """Blocks that the entries of a run do not tell. One that the run did not use is absent."""

    mode: RunMode = "main"
    attempt: Absent[Annotated[Integer, Field(ge=1)]] = None
    """Of several attempts at one task: 1 and how many had failed before this one."""
    task: Absent[TaskBlock] = None
    """Where more than one attempt was planned or made."""
    flow_tags: Items[NonEmpty] = ()
    """Beside those that are read off the run itself."""
    rollout_summary: Absent[RolloutSummary] = None
    sot_signals: Absent[JsonObject] = None
    sot_profile: Absent[str] = None
    sot_max_turns: Absent[Integer] = None
    synth_inputs: Absent[SynthInputs] = None
    rollout_select: Absent[RolloutSelectBlock] = None
    experiment: Absent[ExperimentBlock] = None
    tree_search: Absent[TreeSearchBlock] = None
    policy_signals: Absent[PolicySignals] = None
