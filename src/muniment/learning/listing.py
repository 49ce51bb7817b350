"""What a bank holds, a page at a time, in the order in which it was first kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from muniment.core.listing import Listing, Placed
from muniment.learning.banks import held_of
from muniment.learning.lessons.counting import with_counts
from muniment.learning.plans import plan_of
from muniment.store.lists.seeking import each_made, merged, read_listed, seek

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.learning.plans import PlanState
    from muniment.learning.stored_memory import StoredMemory
    from muniment.store.context import Context
    from muniment.store.items import Item

__all__ = ["LIVE", "page_bodies", "page_memories", "page_plans"]

LIVE = ("active", "pinned", "temporary")
"""What was neither retired nor pruned has one of these."""


def page_memories(
    ctx: Context, tenant_id: str, owner: str, kinds: Iterable[str], asked: Listing, *, include_all: bool
) -> Iterator[Placed[StoredMemory]]:
    """The learned records of some kinds, those that stand or all."""

    def make(reader: Reader, items: Sequence[Item]) -> Sequence[StoredMemory]:
        kept = [held_of(item).memory for item in items]
        return with_counts(reader, owner, kept, ctx.policy.learn.lessons.uses_max)

    statuses: tuple[str | None, ...] = (None,) if include_all else LIVE
    reads = [read_listed(kind, owner, make, asked, status) for kind in kinds for status in statuses]
    return seek(ctx, tenant_id, merged(*reads), asked)


def page_bodies(
    ctx: Context, tenant_id: str, owner: str, kind: str, asked: Listing
) -> Iterator[Placed[dict[str, Any]]]:
    """The bodies of the event logs, or of the drafts, of a bank."""
    return seek(ctx, tenant_id, read_listed(kind, owner, each_made(lambda item: item.plain()), asked), asked)


def page_plans(ctx: Context, tenant_id: str, owner: str, asked: Listing) -> Iterator[Placed[PlanState]]:
    return seek(ctx, tenant_id, read_listed("plan", owner, each_made(plan_of), asked), asked)
