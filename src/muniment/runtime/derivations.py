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

from muniment.records.entry import EntryKind, LedgerEntry, RunState
from muniment.runtime.items import Change, Item

__all__ = ["DERIVATIONS", "RUN_FINISHED", "RUN_STARTED", "Derivation", "Lookup", "Project", "declare"]

RUN_STARTED = "run_started"
RUN_FINISHED = "run_finished"

Lookup = Callable[[str], Item | None]
Project = Callable[[LedgerEntry, Lookup], list[Change]]


@dataclass(frozen=True, slots=True)
class Derivation:
    kind: str
    without: Callable[[Item, frozenset[str]], dict[str, Any] | None]
    listens: frozenset[EntryKind] = frozenset()
    project: Project | None = None

    @property
    def is_projection(self) -> bool:
        return self.project is not None


def _project_run(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """A run begins and ends with a `system` entry that says so in its metadata."""
    event = entry.metadata.get("event")
    if event == RUN_STARTED:
        state = RunState(
            run_id=entry.scope.run_id,
            scope=entry.scope,
            started_at=entry.ts,
            **{key: entry.metadata[key] for key in ("task_type", "objective", "done_definition") if key in entry.metadata},  # type: ignore[arg-type]
        )
        status = "open"
    elif event == RUN_FINISHED:
        before = lookup(entry.scope.run_id)
        if before is None or before.body is None:
            return []
        ended = {"finished_at": entry.ts, "stop_reason": entry.metadata["stop_reason"]}
        state = RunState.from_wire(before.plain() | ended)
        status = "finished"
    else:
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
    return {key: value for key, value in item.plain().items() if key not in ("objective", "done_definition")}


def _unchanged(item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    return item.plain()


def declare(*derivations: Derivation) -> Mapping[str, Derivation]:
    return {derivation.kind: derivation for derivation in derivations}


DERIVATIONS: Mapping[str, Derivation] = declare(
    Derivation("run", without=_run_without, listens=frozenset({"system"}), project=_project_run),
    Derivation("receipt", without=_unchanged),
)
