"""The names under which `state_patch` entries change memory. Only the run itself writes them."""

from __future__ import annotations

__all__ = [
    "CANDIDATE_DECIDED",
    "CANDIDATE_PROPOSED",
    "DOCUMENT_ADDED",
    "DOCUMENT_RETRACTED",
    "FACT_DISPUTED",
    "FACT_REINFORCED",
    "FACT_REMEMBERED",
    "FACT_RETRACTED",
    "INSIGHT_JUDGED",
    "INSIGHT_PROMOTED",
    "INSIGHT_SUPPOSED",
    "MEMORY_EVENTS",
    "PROCEDURE_RETIRED",
    "PROCEDURE_USED",
    "PROCEDURE_WRITTEN",
    "STATE_PATCHED",
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

MEMORY_EVENTS = frozenset(
    {
        STATE_PATCHED,
        FACT_REMEMBERED,
        FACT_REINFORCED,
        FACT_DISPUTED,
        FACT_RETRACTED,
        PROCEDURE_WRITTEN,
        PROCEDURE_RETIRED,
        PROCEDURE_USED,
        INSIGHT_SUPPOSED,
        INSIGHT_JUDGED,
        INSIGHT_PROMOTED,
        CANDIDATE_PROPOSED,
        CANDIDATE_DECIDED,
        DOCUMENT_ADDED,
        DOCUMENT_RETRACTED,
    }
)
