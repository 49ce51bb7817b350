"""The names by which entries tell of a run. Only the run itself writes those of `system` and `state_patch` entries."""

__all__ = [
    "ACTIONS_PLANNED",
    "CLAIM_DEMOTED",
    "CLAIM_MADE",
    "CLAIM_RETRACTED",
    "CLAIM_VERIFIED",
    "CONFLICT_RECORDED",
    "CONFLICT_SETTLED",
    "COUNTED_EVENTS",
    "FAILURE_RECORDED",
    "OUTPUT_VERIFIED",
    "PHASES",
    "PINNED",
    "QUESTION_CLOSED",
    "QUESTION_OPENED",
    "RUN_EVENTS",
    "RUN_FINISHED",
    "RUN_LOCKED",
    "RUN_STARTED",
    "RUN_TURNS",
    "RUN_UNLOCKED",
    "SNAPSHOT_TAKEN",
]

PHASES = ("COMPILE", "PLAN", "ACT", "OBSERVE", "CHECKPOINT")
"""The step machine, in order. `<PHASE>_DONE` ends a phase; any other `<PHASE>_…` is verbose."""
COUNTED_EVENTS = frozenset({"PLAN_DONE", "ACT_DONE", "OBSERVE_DONE"})
"""The terminal events that compaction counts (CS-10)."""

PINNED = ("objective", "done_definition", "budgets")
"""What a run is for: said when it starts, and never changed (CS-05)."""

# `system` entries, written by the run itself
RUN_STARTED = "run_started"
RUN_FINISHED = "run_finished"
RUN_LOCKED = "run_locked"
RUN_UNLOCKED = "run_unlocked"
RUN_TURNS = frozenset({RUN_STARTED, RUN_FINISHED, RUN_LOCKED, RUN_UNLOCKED})

# `state_patch` entries, written by the run itself
CLAIM_MADE = "claim_made"
CLAIM_VERIFIED = "claim_verified"
CLAIM_RETRACTED = "claim_retracted"
CLAIM_DEMOTED = "claim_demoted"
CONFLICT_RECORDED = "conflict_recorded"
CONFLICT_SETTLED = "conflict_settled"
FAILURE_RECORDED = "failure_recorded"
QUESTION_OPENED = "question_opened"
QUESTION_CLOSED = "question_closed"
ACTIONS_PLANNED = "actions_planned"
SNAPSHOT_TAKEN = "snapshot_taken"
OUTPUT_VERIFIED = "output_verified"

RUN_EVENTS = frozenset(
    {
        CLAIM_MADE,
        CLAIM_VERIFIED,
        CLAIM_RETRACTED,
        CLAIM_DEMOTED,
        CONFLICT_RECORDED,
        CONFLICT_SETTLED,
        FAILURE_RECORDED,
        QUESTION_OPENED,
        QUESTION_CLOSED,
        ACTIONS_PLANNED,
        SNAPSHOT_TAKEN,
        OUTPUT_VERIFIED,
    }
)
