"""The registry of what is derived from the ledger. A kind that is not declared here cannot be written.

A derivation says how entries become items of its kind (`project`, pure: `rebuild` runs it again over the whole
ledger), and what an item becomes when sources of it are forgotten (`without`): a body with nothing of theirs
left in it, or None to erase the item. A later capability adds its line to `DERIVATIONS` and is thereby
rebuilt, exported and forgotten like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muniment.errors import InvalidRecord
from muniment.records.entry import EntryKind, LedgerEntry, RunState
from muniment.runtime.items import Change, Item, Rewritten
from muniment.runtime.project_facts import fact_without, project_fact
from muniment.runtime.project_insights import (
    candidate_without,
    insight_without,
    procedure_without,
    project_candidate,
    project_insight,
    project_procedure,
)
from muniment.runtime.project_states import project_state, state_without

__all__ = ["DERIVATIONS", "RUN_FINISHED", "RUN_STARTED", "Derivation", "Lookup", "Project", "declare"]

RUN_STARTED = "run_started"
RUN_FINISHED = "run_finished"
_SAID_AT_START = ("task_type", "objective", "done_definition")

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


def _project_run(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """A run begins and ends with a `system` entry that says so in its metadata."""
    event = entry.metadata.get("event")
    if event == RUN_STARTED:
        said = {key: entry.metadata[key] for key in _SAID_AT_START if key in entry.metadata}
        plain: dict[str, Any] = {"scope": entry.scope.to_wire(), "started_at": entry.ts} | said
        status = "open"
    elif event == RUN_FINISHED:
        before = lookup(entry.scope.run_id)
        if before is None:
            return []
        # A run that was forgotten goes on, and ends, without what it was for.
        started: dict[str, Any] = {"scope": entry.scope.to_wire(), "started_at": before.created_at}
        ended = {"finished_at": entry.ts, "stop_reason": entry.metadata.get("stop_reason") or ""}
        plain = (started if before.body is None else before.plain()) | ended
        status = "finished"
    else:
        return []
    try:
        state = RunState.from_wire(plain | {"run_id": entry.scope.run_id})
    except InvalidRecord:  # not written by a run of ours: it says nothing about one
        return []
    return [
        Change(
            id=entry.scope.run_id,
            kind="run",
            status=status,
            body=state.to_wire(),
            created_at=entry.recorded_at,
            trust=entry.trust,
            sources=(entry.id,),
            user_id=entry.scope.user_id,
            agent_id=entry.scope.agent_id,
            session_id=entry.scope.session_id,
            run_id=entry.scope.run_id,
        )
    ]


def _run_without(item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    """The run goes on; what it was for came from the lost entry and goes with it."""
    return {key: value for key, value in item.plain().items() if key not in _SAID_AT_START}


def _unchanged(item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    return item.plain()


def declare(*derivations: Derivation) -> Mapping[str, Derivation]:
    return {derivation.kind: derivation for derivation in derivations}


_PATCHES: frozenset[EntryKind] = frozenset({"state_patch"})

DERIVATIONS: Mapping[str, Derivation] = declare(
    Derivation("run", without=_run_without, listens=frozenset({"system"}), project=_project_run),
    Derivation("receipt", without=_unchanged),
    Derivation("build", without=lambda _item, _lost: None),
    Derivation("working_state", state_without, _PATCHES, project_state, copies=False),
    Derivation("fact", fact_without, _PATCHES, project_fact, copies=False),
    Derivation("procedure", procedure_without, _PATCHES, project_procedure, copies=False),
    Derivation("insight", insight_without, _PATCHES, project_insight, copies=False),
    Derivation("candidate", candidate_without, _PATCHES, project_candidate, copies=False),
)
