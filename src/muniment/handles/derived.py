"""All that is derived from the ledger, put together from the rooms that own it. What is not here cannot be written.

A later capability adds its line to `DERIVATIONS` and is thereby rebuilt, exported and forgotten like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from muniment.core.owners import owner_of
from muniment.learning.lessons.uses import project_lesson_use
from muniment.learning.projection import (
    project_draft,
    project_event_log,
    project_fold,
    project_lesson_report,
    project_memory,
    project_plan,
    project_recall,
    project_working_set,
    trace_id_of,
)
from muniment.memory.documents.projection import document_without, project_document
from muniment.memory.episodes.given_summary import GIVEN_SUMMARY, project_given_summary
from muniment.memory.extract_writing import SessionExtracts
from muniment.memory.extraction.projection import EXTRACTION, extraction_without, project_extraction
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
from muniment.memory.indexing import RecallIndex
from muniment.memory.kept.rows import SessionPlaces
from muniment.memory.lists.episode_rows import SessionEpisodes, SessionFolds
from muniment.packets.build_checking import build_fault
from muniment.packets.mark_checking import mark_faults
from muniment.packets.projection import project_answer
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
    project_actions,
    project_claim,
    project_conflict,
    project_failure,
    project_question,
    project_run,
    project_verification,
    run_without,
)
from muniment.store.context import Context
from muniment.store.derivation import Derivation, Derived, Project, Without, declare
from muniment.store.items import Item
from muniment.store.ledger.memory_events import (
    CANDIDATE_EVENTS,
    DOCUMENT_EVENTS,
    DRAFT_MADE,
    FACT_EVENTS,
    FOLD_MADE,
    INSIGHT_EVENTS,
    LESSONS_PROPOSED,
    LESSONS_USED,
    MEMORY_KEPT,
    MEMORY_RECALLED,
    PLAN_ENDED,
    PLAN_MADE,
    PROCEDURE_EVENTS,
    RULE_REPORTED,
    RULE_TESTED,
    RULEBOOK_CHANGED,
    RULES_SELECTED,
    RUN_LOGGED,
    SESSION_SUMMARIZED,
    SOURCE_CHECKED,
    STATE_PATCHED,
    STUDY_CHANGED,
    TURNS_CLAIMED,
    TURNS_READ,
    WORKING_SET_CHANGED,
)
from muniment.store.ledger.run_events import ACTIONS_PLANNED, OUTPUT_VERIFIED, RUN_EVENTS
from muniment.store.proving.receipts import receipt_fault

if TYPE_CHECKING:
    from muniment.core.policy.policy import Policy
    from muniment.core.ports.embedding import Embedder
    from muniment.core.ports.engine import Engine
    from muniment.core.ports.outside import Clock, Ids
    from muniment.core.ports.tokens import TokenCounter
    from muniment.learning.stored_memory import MemoryKind
    from muniment.store.dumps import Dump, Source
    from muniment.store.ledger.records import EntryKind

__all__ = ["DERIVATIONS", "check_dump", "derived", "new_context"]


def _unchanged(item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    return item.plain()


def _study_owners(item: Item) -> tuple[str, ...]:
    """Whose the documents are that were supplied to a research run."""
    return (owner_of(item.plain()["manifest"]["corpus_id"], item.user_id),)


def _erase_study_files(versions: Sequence[Item], held: ExitStack) -> int:
    from muniment.research.study_files import erase_files

    return erase_files(versions, held)


_PATCHES: frozenset[EntryKind] = frozenset({"state_patch"})
_KEPT: frozenset[EntryKind] = frozenset({"state_patch", "tool_result"})
"""A learned record whose text changes is a turn, which a search finds; one whose figures change is not."""
_LEARNED: tuple[MemoryKind, ...] = ("reasoning", "seed", "tactic", "trace_capsule")


def _patched(
    kind: str, without: Without, project: Project, *events: str, listens: frozenset[EntryKind] = _PATCHES, **more: Any
) -> Derivation:
    """A kind that is made from the entries by which a run or a bank tells of these events."""
    return Derivation(kind, without, listens, frozenset(events), project, **more)


DERIVATIONS: Mapping[str, Derivation] = declare(
    Derivation("run", without=run_without, listens=frozenset({"system"}), project=project_run),
    Derivation("receipt", without=_unchanged, fault=receipt_fault),
    Derivation("build", without=erased, cites=True, fault=build_fault),
    Derivation("answer", without=erased, listens=frozenset({"message"}), project=project_answer, cites=True),
    Derivation("seal", without=erased, cites=True),  # of dumps of version 0.1: kept as they are, read by nothing
    Derivation("snapshot", without=erased, id_of_run=snapshots_id),
    _patched("working_state", state_without, project_state, STATE_PATCHED, copies=False, cites=True),
    _patched("fact", fact_without, project_fact, *FACT_EVENTS, copies=False, cites=True),
    _patched("procedure", procedure_without, project_procedure, *PROCEDURE_EVENTS, copies=False, cites=True),
    _patched("insight", insight_without, project_insight, *INSIGHT_EVENTS, copies=False, cites=True),
    _patched("candidate", candidate_without, project_candidate, *CANDIDATE_EVENTS, copies=False, cites=True),
    _patched(EXTRACTION, extraction_without, project_extraction, TURNS_CLAIMED, TURNS_READ, copies=False),
    _patched(GIVEN_SUMMARY, erased, project_given_summary, SESSION_SUMMARIZED, cites=True),
    _patched("claim", erased, project_claim, *RUN_EVENTS, cites=True),
    _patched("conflict", erased, project_conflict, *RUN_EVENTS, cites=True),
    Derivation("failure", without=erased, listens=_KEPT, project=project_failure, cites=True),
    _patched("next_actions", erased, project_actions, ACTIONS_PLANNED, cites=True),
    _patched("verification", erased, project_verification, OUTPUT_VERIFIED, cites=True),
    _patched("document", document_without, project_document, *DOCUMENT_EVENTS, copies=False),
    _patched("question", erased, project_question, *RUN_EVENTS, cites=True),
    _patched("study", erased, project_study, STUDY_CHANGED, owners=_study_owners, erase_files=_erase_study_files),
    _patched("source_check", erased, project_source_check, SOURCE_CHECKED),
    *(_patched(kind, erased, project_memory(kind), MEMORY_KEPT, listens=_KEPT) for kind in _LEARNED),
    _patched("rule", erased, project_rule, MEMORY_KEPT, listens=_KEPT),
    _patched("event_log", erased, project_event_log, RUN_LOGGED, id_of_run=trace_id_of),
    _patched("fold", erased, project_fold, FOLD_MADE),
    _patched("draft", erased, project_draft, DRAFT_MADE),
    _patched("lesson_report", erased, project_lesson_report, LESSONS_PROPOSED),
    _patched("plan", erased, project_plan, PLAN_MADE, PLAN_ENDED),
    _patched("recall", erased, project_recall, MEMORY_RECALLED),
    _patched("rulebook", erased, project_rulebook, RULEBOOK_CHANGED),
    _patched("rule_report", erased, project_report, RULE_REPORTED),
    _patched("rule_test", erased, project_test, RULE_TESTED),
    _patched("rule_selection", erased, project_selection, RULES_SELECTED),
    _patched("rule_use", erased, project_rule_use, RUN_LOGGED),
    _patched("lesson_use", erased, project_lesson_use, RUN_LOGGED, LESSONS_USED),
    _patched("working_set", erased, project_working_set, WORKING_SET_CHANGED),
)


def derived(kinds: Mapping[str, Derivation] = DERIVATIONS) -> Derived:
    """What a store is opened with."""
    folds = SessionFolds(SessionEpisodes(), SessionExtracts(), corpora=(SessionPlaces(),))
    return Derived(kinds=kinds, index=RecallIndex(), extracts=folds, marks=mark_faults)


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
    from muniment.rules.foreign_rules import ForeignRules
    from muniment.store import dumps
    from muniment.store.dump_replay import DumpReplay

    return dumps.check_dump(source, DumpReplay(DERIVATIONS, ForeignRules()))
