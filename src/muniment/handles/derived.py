"""All that is derived from the ledger, put together from the rooms that own it. What is not here cannot be written.

A later capability adds its line to `DERIVATIONS` and is thereby rebuilt, exported and forgotten like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from muniment.core.owners.corpora import owner_of
from muniment.learning.projection import (
    project_draft,
    project_event_log,
    project_fold,
    project_memory,
    project_plan,
    project_recall,
    project_working_set,
    trace_id_of,
)
from muniment.memory.documents.projection import document_without, project_document
from muniment.memory.facts.insight_projection import (
    candidate_without,
    insight_without,
    procedure_without,
    project_candidate,
    project_insight,
    project_procedure,
)
from muniment.memory.facts.projection import fact_without, project_fact
from muniment.memory.facts.state_projection import project_state, state_without
from muniment.memory.turn_index import RecallIndex
from muniment.research.projection import project_source_check, project_study
from muniment.rules.projection import (
    project_report,
    project_rule,
    project_rule_use,
    project_rulebook,
    project_selection,
    project_test,
)
from muniment.runs.compaction.snapshots import snapshots_id
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
from muniment.store.context import Context
from muniment.store.derivation import Derivation, Derived, declare
from muniment.store.items import Item

if TYPE_CHECKING:
    from muniment.core.policy.policy import Policy
    from muniment.core.ports.embedding import Embedder
    from muniment.core.ports.engine import Engine
    from muniment.core.ports.outside import Clock, Ids
    from muniment.core.ports.tokens import TokenCounter
    from muniment.learning.kept import MemoryKind
    from muniment.store.dumps import Dump, Source
    from muniment.store.ledger.records import EntryKind

__all__ = ["DERIVATIONS", "check_dump", "derived", "new_context"]


def _unchanged(item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    return item.plain()


def _study_owners(item: Item) -> tuple[str, ...]:
    """Whose the documents are that were supplied to a research run."""
    return (owner_of(item.plain()["manifest"]["corpus_id"], item.user_id),)


def _erase_study_files(versions: Sequence[Item], held: ExitStack) -> int:
    from muniment.research.files import erase_files

    return erase_files(versions, held)


_PATCHES: frozenset[EntryKind] = frozenset({"state_patch"})
_KEPT: frozenset[EntryKind] = frozenset({"state_patch", "tool_result"})
"""A learned record whose text changes is a turn, which a search finds; one whose figures change is not."""
_LEARNED: tuple[MemoryKind, ...] = ("reasoning", "seed", "tactic", "trace_capsule")

DERIVATIONS: Mapping[str, Derivation] = declare(
    Derivation("run", without=run_without, listens=frozenset({"system"}), project=project_run),
    Derivation("receipt", without=_unchanged),
    Derivation("build", without=erased),
    Derivation("snapshot", without=erased, id_of_run=snapshots_id),
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
    Derivation("study", erased, _PATCHES, project_study, owners=_study_owners, erase_files=_erase_study_files),
    Derivation("source_check", erased, _PATCHES, project_source_check),
    *(Derivation(kind, erased, _KEPT, project_memory(kind)) for kind in _LEARNED),
    Derivation("rule", erased, _KEPT, project_rule),
    Derivation("event_log", erased, _PATCHES, project_event_log, id_of_run=trace_id_of),
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


def derived(kinds: Mapping[str, Derivation] = DERIVATIONS) -> Derived:
    """What a store is opened with."""
    return Derived(kinds=kinds, index=RecallIndex())


def new_context(
    engine: Engine,
    policy: Policy | None,
    clock: Clock,
    ids: Ids,
    *,
    embedder: Embedder | None = None,
    counter: TokenCounter | None = None,
    kinds: Mapping[str, Derivation] = DERIVATIONS,
) -> Context:
    """The context of a store whose ledger is derived from by every room."""
    loaded: Callable[[], Derived] = lambda: derived(kinds)  # noqa: E731
    return Context(engine, policy, clock, ids, derived=loaded, embedder=embedder, counter=counter)


def check_dump(source: Source) -> Dump:
    """Read a dump to its end; raises for the first thing wrong, in its form, its chains or what its rules claim."""
    from muniment.rules.foreign import ForeignRules
    from muniment.store import dumps

    return dumps.check_dump(source, ForeignRules())
