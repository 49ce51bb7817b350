"""Runs as they stand: listed, taken up again, with their snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar

from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ITEMS
from muniment.core.requests import Expect, FromOne, Request, checked
from muniment.errors import RunFinished
from muniment.runs.compacting import check_snapshot
from muniment.runs.compaction.snapshots import snapshots_id
from muniment.runs.resuming import Loaded, Rejected, load_log, load_snapshot, run_item
from muniment.store.append import locked
from muniment.store.items import Item, latest
from muniment.store.ledger import RunState

if TYPE_CHECKING:
    from muniment.contracts.snapshot import CompactionSnapshot, SnapshotValidation
    from muniment.runs.records import RunLog
    from muniment.store.context import Context

__all__ = ["Resumed", "check", "get_run", "get_snapshot", "list_snapshots", "resume"]


RunT = TypeVar("RunT")


@dataclass(frozen=True, slots=True)
class Resumed(Generic[RunT]):
    """A run taken up again."""

    run: RunT
    _loaded: Loaded

    @property
    def log(self) -> RunLog:
        """The run as its entries tell it, up to now."""
        return self._loaded.log

    @property
    def snapshot(self) -> CompactionSnapshot | None:
        """The snapshot it was read from; None where the whole ledger was folded."""
        return self._loaded.snapshot

    @property
    def tail(self) -> int:
        """How many entries came after that snapshot."""
        return self._loaded.tail

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Later snapshots that do not hold, and why."""
        return self._loaded.rejected


class RunQuery(Request):
    """Which run is asked for, and which snapshot of it; the latest, where no sequence is given."""

    sequence: Annotated[FromOne | None, Expect("a snapshot's sequence is a whole number from 1")] = None
    run_id: Annotated[str, Expect("a run is named by its id")]


def resume(
    ctx: Context, tenant_id: str, run_id: str, handle: Callable[[RunState], RunT], *, repairs: bool
) -> Resumed[RunT]:
    """The run's handle under its own scope, and its log; refuses one that has ended, or is locked."""
    item = _run(ctx, tenant_id, run_id)
    if item.status == "finished":
        raise RunFinished(f"the run {run_id} has ended", path="$.run_id", hint="start a new run in the same session")
    if item.status == "locked" and not repairs:
        raise locked(item)
    state = RunState.from_wire(item.plain())
    return Resumed(handle(state), _load(ctx, state).unless_damaged(repairs=repairs))


def _load(ctx: Context, state: RunState) -> Loaded:
    policy = ctx.policy.compaction
    return ctx.engine.read(state.scope.tenant_id, lambda reader: load_log(reader, state.scope, policy))


def _run(ctx: Context, tenant_id: str, run_id: Any) -> Item:
    named = checked(RunQuery, run_id=run_id).run_id
    return ctx.engine.read(tenant_id, lambda reader: run_item(reader, named))


def get_run(ctx: Context, tenant_id: str, run_id: str) -> RunState:
    return RunState.from_wire(_run(ctx, tenant_id, run_id).plain())


def get_snapshot(ctx: Context, tenant_id: str, run_id: str, sequence: int | None) -> CompactionSnapshot:
    asked = checked(RunQuery, run_id=run_id, sequence=sequence)
    _run(ctx, tenant_id, run_id)
    return ctx.engine.read(tenant_id, lambda reader: load_snapshot(reader, tenant_id, run_id, asked.sequence))


def list_snapshots(ctx: Context, tenant_id: str, run_id: str) -> Iterator[CompactionSnapshot]:
    """Oldest first; those that were forgotten are passed over."""
    _run(ctx, tenant_id, run_id)
    newest = ctx.engine.read(tenant_id, lambda reader: latest(reader, snapshots_id(run_id)))
    return _each(ctx, tenant_id, run_id, newest.version if newest else 0)


class _Version(NamedTuple):
    version: int


def _each(ctx: Context, tenant_id: str, run_id: str, count: int) -> Iterator[CompactionSnapshot]:
    where: tuple[Condition, ...] = (("id", "=", snapshots_id(run_id)), ("receipt_id", "=", None))
    held = ctx.engine.read(
        tenant_id, lambda reader: select(reader, ITEMS, where, into=_Version, order=("id", "version"))
    )
    for each in held:
        if each.version <= count:
            yield get_snapshot(ctx, tenant_id, run_id, each.version)


def check(ctx: Context, tenant_id: str, run_id: str, sequence: int | None) -> SnapshotValidation:
    get_snapshot(ctx, tenant_id, run_id, sequence)
    state = get_run(ctx, tenant_id, run_id)
    return check_snapshot(ctx, state.scope, sequence)
