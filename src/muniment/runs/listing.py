"""Runs, and what a run has logged, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from muniment.core.listing import Listing, Placed, matches
from muniment.errors import InvalidInput
from muniment.runs.compaction.snapshots import snapshots_id
from muniment.runs.reading import get_run
from muniment.runs.records import CLAIM_STATUSES, OpenQuestion, RunClaim, RunConflict
from muniment.runs.resuming import load_snapshot
from muniment.runs.said_times import with_said_times
from muniment.store.items import latest
from muniment.store.ledger import RunState
from muniment.store.lists.seeking import each_made, find_listed, read_listed, read_versions, seek

if TYPE_CHECKING:
    from muniment.contracts.snapshot import CompactionSnapshot
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.store.context import Context
    from muniment.store.items import Item

__all__ = ["check_claim_status", "page_claims", "page_conflicts", "page_questions", "page_runs", "page_snapshots"]

T = TypeVar("T")


def page_runs(ctx: Context, tenant_id: str, user_id: str | None, asked: Listing) -> Iterator[Placed[RunState]]:
    """Runs of agents, of a user or of the tenant, as they stand."""

    def make(reader: Reader, items: Sequence[Item]) -> list[RunState | None]:
        states = (RunState.from_wire(item.plain()) for item in items)
        return [with_said_times(reader, state) if _is_asked_for(state, asked.q) else None for state in states]

    return seek(ctx, tenant_id, read_listed("run", user_id, make, asked), asked, find_listed(("run",), user_id, make))


def _is_asked_for(state: RunState, q: str | None) -> bool:
    scope = state.scope
    return matches(q, state.run_id, state.task_type, state.objective, scope.session_id, scope.agent_id)


def page_snapshots(ctx: Context, tenant_id: str, run_id: str, asked: Listing) -> Iterator[Placed[CompactionSnapshot]]:
    """The snapshots of a run that were not forgotten, by their numbers."""
    get_run(ctx, tenant_id, run_id)

    def make(reader: Reader, items: Sequence[Item]) -> list[CompactionSnapshot | None]:
        return [load_snapshot(reader, tenant_id, run_id, item.version) for item in items]

    return seek(ctx, tenant_id, read_versions(snapshots_id(run_id), make), asked)


def check_claim_status(status: str | None) -> None:
    if status is not None and status not in CLAIM_STATUSES:
        raise InvalidInput(
            f"{status!r:.40} is not a status of a claim", path="$.status", hint=f"one of {', '.join(CLAIM_STATUSES)}"
        )


def page_claims(ctx: Context, scope: Scope, status: str | None, asked: Listing) -> Iterator[Placed[RunClaim]]:
    check_claim_status(status)
    return _logged(ctx, scope, "claim", status, RunClaim.from_wire, asked)


def page_conflicts(ctx: Context, scope: Scope, asked: Listing) -> Iterator[Placed[RunConflict]]:
    return _logged(ctx, scope, "conflict", None, RunConflict.from_wire, asked)


def page_questions(ctx: Context, scope: Scope, asked: Listing) -> Iterator[Placed[OpenQuestion]]:
    return _logged(ctx, scope, "question", "open", OpenQuestion.from_wire, asked)


def _logged(
    ctx: Context, scope: Scope, kind: str, status: str | None, read: Callable[..., T], asked: Listing
) -> Iterator[Placed[T]]:
    """What a run has logged of a kind. Where the run is another user's, nothing is looked at."""
    run = ctx.engine.read(scope.tenant_id, lambda reader: latest(reader, scope.run_id))
    if run is None or run.user_id != scope.user_id:
        return iter(())

    def made(item: Item) -> T | None:
        return read(item.plain()) if item.user_id == scope.user_id else None

    make = each_made(made)
    reading = read_listed(kind, scope.run_id, make, asked, status)
    return seek(ctx, scope.tenant_id, reading, asked, find_listed((kind,), scope.run_id, make))
