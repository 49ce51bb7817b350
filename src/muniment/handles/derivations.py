"""The registry of what is derived from the ledger. A kind that is not declared here cannot be written.

A derivation says how entries become items of its kind (`project`, pure: `rebuild` runs it again over the whole
ledger), and what an item becomes when sources of it are forgotten (`without`): a body with nothing of theirs
left in it, or None to erase the item. A later capability adds its line to `DERIVATIONS` and is thereby
rebuilt, exported and forgotten like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muniment.learning.projection import (
    project_draft,
    project_event_log,
    project_fold,
    project_memory,
    project_plan,
    project_recall,
    project_rule_use,
    project_working_set,
)
from muniment.memory.documents.projection import document_without, project_document
from muniment.memory.facts.projection import fact_without, project_fact
from muniment.memory.insights.projection import (
    candidate_without,
    insight_without,
    procedure_without,
    project_candidate,
    project_insight,
    project_procedure,
)
from muniment.memory.states.projection import project_state, state_without
from muniment.research.projection import project_source_check, project_study
from muniment.rules.projection import project_report, project_rulebook, project_selection, project_test
from muniment.runs.projection import (
    erased,
    project_claim,
    project_conflict,
    project_failure,
    project_question,
    project_run,
    project_verification,
    run_without,
)
from muniment.store.items.versions import Change, Item, Rewritten
from muniment.store.ledger.records import EntryKind, LedgerEntry

if TYPE_CHECKING:
    from muniment.learning.kept import MemoryKind

__all__ = ["DERIVATIONS", "Derivation", "Lookup", "Project", "declare"]

Lookup = Callable[[str], Item | None]
Project = Callable[[LedgerEntry, Lookup], list[Change]]


@dataclass(frozen=True, slots=True)
class Derivation:
    kind: str
    without: Callable[[Item, frozenset[str]], dict[str, Any] | Rewritten | None]
    listens: frozenset[EntryKind] = frozenset()
    project: Project | None = None
    copies: bool = True
    """May hold what the items it came from said, so that one that was rewritten counts as lost too."""

    @property
    def is_projection(self) -> bool:
        return self.project is not None


def _unchanged(item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    return item.plain()


def declare(*derivations: Derivation) -> Mapping[str, Derivation]:
    return {derivation.kind: derivation for derivation in derivations}


_PATCHES: frozenset[EntryKind] = frozenset({"state_patch"})
_KEPT: frozenset[EntryKind] = frozenset({"state_patch", "tool_result"})
"""A learned record whose text changes is a turn, which a search finds; one whose figures change is not."""
_LEARNED: tuple[MemoryKind, ...] = ("reasoning", "rule", "seed", "tactic", "trace_capsule")

DERIVATIONS: Mapping[str, Derivation] = declare(
    Derivation("run", without=run_without, listens=frozenset({"system"}), project=project_run),
    Derivation("receipt", without=_unchanged),
    Derivation("build", without=erased),
    Derivation("snapshot", without=erased),
    Derivation("working_state", state_without, _PATCHES, project_state, copies=False),
    Derivation("fact", fact_without, _PATCHES, project_fact, copies=False),
    Derivation("procedure", procedure_without, _PATCHES, project_procedure, copies=False),
    Derivation("insight", insight_without, _PATCHES, project_insight, copies=False),
    Derivation("candidate", candidate_without, _PATCHES, project_candidate, copies=False),
    Derivation("claim", erased, _PATCHES, project_claim),
    Derivation("conflict", erased, _PATCHES, project_conflict),
    Derivation("failure", erased, _PATCHES, project_failure),
    Derivation("verification", erased, _PATCHES, project_verification),
    Derivation("document", document_without, _PATCHES, project_document, copies=False),
    Derivation("question", erased, _PATCHES, project_question),
    Derivation("study", erased, _PATCHES, project_study),
    Derivation("source_check", erased, _PATCHES, project_source_check),
    *(Derivation(kind, erased, _KEPT, project_memory(kind)) for kind in _LEARNED),
    Derivation("event_log", erased, _PATCHES, project_event_log),
    Derivation("fold", erased, _PATCHES, project_fold),
    Derivation("draft", erased, _PATCHES, project_draft),
    Derivation("plan", erased, _PATCHES, project_plan),
    Derivation("recall", erased, _PATCHES, project_recall),
    Derivation("rulebook", erased, _PATCHES, project_rulebook),
    Derivation("rule_report", erased, _PATCHES, project_report),
    Derivation("rule_test", erased, _PATCHES, project_test),
    Derivation("rule_selection", erased, _PATCHES, project_selection),
    Derivation("rule_use", erased, _PATCHES, project_rule_use),
    Derivation("working_set", erased, _PATCHES, project_working_set),
)
