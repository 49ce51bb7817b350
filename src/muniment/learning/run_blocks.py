"""What a caller tells of how a run was carried out (RC-27), block by block as the run's EventLog will have it."""

from typing import Annotated

from pydantic import Field

from muniment.contracts.run_records import (
    ExperimentBlock,
    PolicySignals,
    RolloutSelectBlock,
    RolloutSummary,
    SynthInputs,
    TreeSearchBlock,
)
from muniment.core.record import Absent, Integer, Items, JsonObject, NonEmpty, Record
from muniment.core.vocabulary import RunMode

__all__ = ["RunBlocks"]


class RunBlocks(Record):
    """Blocks that the entries of a run do not tell. One that the run did not use is absent."""

    mode: RunMode = "main"
    attempt: Absent[Annotated[Integer, Field(ge=1)]] = None
    """Of several attempts at one task: 1 and how many had failed before this one."""
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
