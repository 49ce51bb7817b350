"""Everything derived from the ledger: the core's own kinds of item, and those of installed packages.

A package adds kinds through the entry point `muniment.projections`, as learning, rules and research do. They are
rebuilt, exported, verified and forgotten like the core's. A kind that no package declares cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from muniment.memory._fact_records import fact_terms, fact_without, project_fact
from muniment.memory.candidates import candidate_without, project_candidate
from muniment.memory.documents import document_without, project_document
from muniment.memory.extraction import EXTRACTION, extraction_without, project_extraction
from muniment.memory.index import RecallIndex
from muniment.memory.insights import insight_without, procedure_without, project_insight, project_procedure
from muniment.memory.kept.values import SessionPlaces
from muniment.memory.sessions import GIVEN_SUMMARY, SessionRows, project_given_summary
from muniment.memory.working_state import project_state, state_without
from muniment.packets._derived import build_fault, mark_faults, project_answer
from muniment.runs.fold import (
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
from muniment.runs.snapshots import snapshots_id
from muniment.store.context import Context
from muniment.store.derivation import (
    PATCHES,
    Derivation,
    Derived,
    declare,
    load_projections,
    of_patches,
)
from muniment.store.items import Item
from muniment.store.ledger import (
    ACTIONS_PLANNED,
    CANDIDATE_EVENTS,
    DOCUMENT_EVENTS,
    FACT_EVENTS,
    INSIGHT_EVENTS,
    OUTPUT_VERIFIED,
    PROCEDURE_EVENTS,
    RUN_EVENTS,
    SESSION_SUMMARIZED,
    STATE_PATCHED,
    TURNS_CLAIMED,
    TURNS_READ,
)
from muniment.store.proofs import receipt_fault

if TYPE_CHECKING:
    from muniment.core.policy import Policy
    from muniment.core.ports.engine import Engine
    from muniment.core.ports.models import Clock, Embedder, Ids, TokenCounter
    from muniment.store.dumps import Dump, Source

__all__ = ["check_dump", "derivations", "derived", "new_context"]


def _unchanged(item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    return item.plain()


_CORE = (
    Derivation("run", without=run_without, listens=frozenset({"system"}), project=project_run),
    Derivation("receipt", without=_unchanged, fault=receipt_fault),
    Derivation("build", without=erased, fault=build_fault),
    Derivation("answer", without=erased, listens=frozenset({"message"}), project=project_answer),
    Derivation("seal", without=erased),  # in dumps of version 0.1: kept unchanged, never read
    Derivation("snapshot", without=erased, id_of_run=snapshots_id),
    of_patches("working_state", state_without, project_state, STATE_PATCHED, copies=False),
    of_patches(
        "fact", fact_without, project_fact, *FACT_EVENTS, copies=False, without_of=fact_without, terms=fact_terms
    ),
    of_patches("procedure", procedure_without, project_procedure, *PROCEDURE_EVENTS, copies=False),
    of_patches("insight", insight_without, project_insight, *INSIGHT_EVENTS, copies=False),
    of_patches("candidate", candidate_without, project_candidate, *CANDIDATE_EVENTS, copies=False),
    of_patches(EXTRACTION, extraction_without, project_extraction, TURNS_CLAIMED, TURNS_READ, copies=False),
    of_patches(GIVEN_SUMMARY, erased, project_given_summary, SESSION_SUMMARIZED),
    of_patches("claim", erased, project_claim, *RUN_EVENTS),
    of_patches("conflict", erased, project_conflict, *RUN_EVENTS),
    Derivation("failure", without=erased, listens=PATCHES | {"tool_result"}, project=project_failure),
    of_patches("next_actions", erased, project_actions, ACTIONS_PLANNED),
    of_patches("verification", erased, project_verification, OUTPUT_VERIFIED),
    of_patches("document", document_without, project_document, *DOCUMENT_EVENTS, copies=False),
    of_patches("question", erased, project_question, *RUN_EVENTS),
)


@cache
def derivations() -> Mapping[str, Derivation]:
    """Every kind of item known to this installation."""
    return declare(*_CORE, *(each for package in load_projections() for each in package.kinds))


def derived(kinds: Mapping[str, Derivation] | None = None) -> Derived:
    """The derivations that a store is opened with."""
    return Derived(
        kinds=derivations() if kinds is None else kinds,
        index=RecallIndex(),
        sessions=SessionRows(SessionPlaces()),
        marks=mark_faults,
    )


def new_context(
    engine: Engine,
    policy: Policy | None,
    clock: Clock,
    ids: Ids,
    *,
    embedder: Embedder | None = None,
    counter: TokenCounter | None = None,
    kinds: Mapping[str, Derivation] | None = None,
) -> Context:
    """Create the context of a store whose ledger every room derives from."""
    loaded: Callable[[], Derived] = lambda: derived(kinds)  # noqa: E731
    return Context(engine, policy, clock, ids, derived=loaded, embedder=embedder, counter=counter)


def check_dump(source: Source) -> Dump:
    """Read a dump to its end; raises for the first fault in its form, its chains or its items."""
    from muniment.store import dumps

    checks = [package.check_dump() for package in load_projections() if package.check_dump is not None]
    return dumps.check_dump(source, derivations(), checks)
