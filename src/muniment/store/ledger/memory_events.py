"""The names under which `state_patch` entries change memory. Only the run itself writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "ARTIFACT_KEPT",
    "CANDIDATE_DECIDED",
    "CANDIDATE_EVENTS",
    "CANDIDATE_PROPOSED",
    "CHECKPOINT_KEPT",
    "CITING",
    "DOCUMENT_ADDED",
    "DOCUMENT_EVENTS",
    "DOCUMENT_RETRACTED",
    "DRAFT_MADE",
    "FACT_DISPUTED",
    "FACT_EVENTS",
    "FACT_REINFORCED",
    "FACT_REMEMBERED",
    "FACT_RETRACTED",
    "FOLD_MADE",
    "INSIGHT_EVENTS",
    "INSIGHT_JUDGED",
    "INSIGHT_PROMOTED",
    "INSIGHT_SUPPOSED",
    "KEPT_EVENTS",
    "LESSONS_PROPOSED",
    "LESSONS_USED",
    "MEMORY_EVENTS",
    "MEMORY_KEPT",
    "MEMORY_RECALLED",
    "PLAN_ENDED",
    "PLAN_MADE",
    "PROCEDURE_EVENTS",
    "PROCEDURE_RETIRED",
    "PROCEDURE_USED",
    "PROCEDURE_WRITTEN",
    "RULEBOOK_CHANGED",
    "RULES_SELECTED",
    "RULE_REPORTED",
    "RULE_TESTED",
    "RUN_LOGGED",
    "SESSION_SUMMARIZED",
    "SOURCE_CHECKED",
    "STATE_PATCHED",
    "STUDY_CHANGED",
    "TURNS_CLAIMED",
    "TURNS_READ",
    "VALUES_PROLONGED",
    "VALUE_KEPT",
    "VALUE_REMOVED",
    "WORKING_SET_CHANGED",
    "WRITES_KEPT",
    "named_events",
]

STATE_PATCHED = "state_patched"
FACT_REMEMBERED = "fact_remembered"
FACT_REINFORCED = "fact_reinforced"
FACT_DISPUTED = "fact_disputed"
FACT_RETRACTED = "fact_retracted"
PROCEDURE_WRITTEN = "procedure_written"
PROCEDURE_RETIRED = "procedure_retired"
PROCEDURE_USED = "procedure_used"
INSIGHT_SUPPOSED = "insight_supposed"
INSIGHT_JUDGED = "insight_judged"
INSIGHT_PROMOTED = "insight_promoted"
CANDIDATE_PROPOSED = "candidate_proposed"
CANDIDATE_DECIDED = "candidate_decided"
DOCUMENT_ADDED = "document_added"
DOCUMENT_RETRACTED = "document_retracted"
ARTIFACT_KEPT = "artifact_kept"
STUDY_CHANGED = "study_changed"
SOURCE_CHECKED = "source_checked"
MEMORY_KEPT = "memory_kept"
RUN_LOGGED = "run_logged"
RULE_TESTED = "rule_tested"
RULE_REPORTED = "rule_reported"
RULES_SELECTED = "rules_selected"
RULEBOOK_CHANGED = "rulebook_changed"
FOLD_MADE = "fold_made"
PLAN_MADE = "plan_made"
PLAN_ENDED = "plan_ended"
DRAFT_MADE = "draft_made"
LESSONS_PROPOSED = "lessons_proposed"
LESSONS_USED = "lessons_used"
MEMORY_RECALLED = "memory_recalled"
WORKING_SET_CHANGED = "working_set_changed"
SESSION_SUMMARIZED = "session_summarized"
TURNS_CLAIMED = "turns_claimed"
TURNS_READ = "turns_read"
VALUE_KEPT = "value_kept"
VALUE_REMOVED = "value_removed"
VALUES_PROLONGED = "values_prolonged"
CHECKPOINT_KEPT = "checkpoint_kept"
WRITES_KEPT = "writes_kept"

FACT_EVENTS = frozenset({FACT_REMEMBERED, FACT_REINFORCED, FACT_DISPUTED, FACT_RETRACTED})
PROCEDURE_EVENTS = frozenset({PROCEDURE_WRITTEN, PROCEDURE_RETIRED, PROCEDURE_USED})
INSIGHT_EVENTS = frozenset({INSIGHT_SUPPOSED, INSIGHT_JUDGED, INSIGHT_PROMOTED})
CANDIDATE_EVENTS = frozenset({CANDIDATE_PROPOSED, CANDIDATE_DECIDED})
KEPT_EVENTS = frozenset({VALUE_KEPT, VALUE_REMOVED, VALUES_PROLONGED, CHECKPOINT_KEPT, WRITES_KEPT})
DOCUMENT_EVENTS = frozenset({DOCUMENT_ADDED, DOCUMENT_RETRACTED})

MEMORY_EVENTS: frozenset[str] = frozenset[str]().union(
    FACT_EVENTS,
    PROCEDURE_EVENTS,
    INSIGHT_EVENTS,
    CANDIDATE_EVENTS,
    DOCUMENT_EVENTS,
    KEPT_EVENTS,
    {
        STATE_PATCHED,
        ARTIFACT_KEPT,
        STUDY_CHANGED,
        SOURCE_CHECKED,
        MEMORY_KEPT,
        RUN_LOGGED,
        RULE_TESTED,
        RULE_REPORTED,
        RULES_SELECTED,
        RULEBOOK_CHANGED,
        FOLD_MADE,
        PLAN_MADE,
        PLAN_ENDED,
        DRAFT_MADE,
        LESSONS_PROPOSED,
        LESSONS_USED,
        MEMORY_RECALLED,
        WORKING_SET_CHANGED,
        SESSION_SUMMARIZED,
        TURNS_CLAIMED,
        TURNS_READ,
    },
)

CITING = {"decisions": "evidence_id", "tool_evidence": "ref"}
"""Lists of a patch whose elements name an event, and the field that names it."""


def named_events(patch: Any) -> tuple[str, ...]:
    """The events that decisions and tool evidence of a patch refer to, each once."""
    if not isinstance(patch, Mapping):
        return ()
    named: dict[str, None] = {}
    for field, key in CITING.items():
        elements = patch.get(field)
        for element in elements if isinstance(elements, list | tuple) else ():
            if isinstance(element, Mapping) and isinstance(element.get(key), str):
                named[element[key]] = None
    return tuple(named)
