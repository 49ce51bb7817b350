"""When a run is compacted and what its snapshots may hold (CS-10). Units stand last in names."""

from typing import Annotated

from pydantic import Field

from muniment.core.record import Integer, Record

__all__ = ["CompactionPolicy"]

Positive = Annotated[Integer, Field(ge=1)]


class CompactionPolicy(Record):
    """The defaults are those of the contract; `drift` says whether they should move."""

    auto: bool = True
    """Compact when a step makes it due. Otherwise only `run.log.compact()` does."""
    event_threshold: Positive = 18
    """Counted events since the last snapshot that make one due."""
    step_fallback: Positive = 8
    """Steps since the last snapshot that make one due."""
    own_words_verify: bool = False
    """May what the agent itself said verify a claim?"""
    claim_chars_max: Positive = 2_000  # CS-03
    """The longest statement, description or reason: a snapshot holds pointers, not texts."""
    seen_max: Positive = 256
    """Chunks a snapshot lists as seen: the most recent ones."""
    manifests_max: Positive = 18
    """Context manifests a snapshot names: the latest ones."""
    next_actions_max: Annotated[Integer, Field(ge=1, le=3)] = 3
    """Next actions that a snapshot may name."""
    loop_actions: Annotated[Integer, Field(ge=2)] = 3
    """Identical actions in a row that make a loop."""
    stall_steps: Annotated[Integer, Field(ge=1)] = 3
    """Steps without new evidence and without progress on a claim that make a stall."""
    drift_steps_min: Positive = 30
    """With fewer steps in its window, `drift` does not advise."""
    loop_rate_max: float = Field(default=0.05, ge=0, le=1)
    """Loops an action; above it the thresholds are too high or the agent is stuck."""
    stall_rate_max: float = Field(default=0.05, ge=0, le=1)
    """Stalls a step."""
    forgotten_rate_max: float = Field(default=0.02, ge=0, le=1)
    """Forgotten constraints a step."""
    drift_p_max: float = Field(default=0.05, gt=0, lt=0.5)
    """The chance of being wrong at which `drift` still advises to move a threshold."""
