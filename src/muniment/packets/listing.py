"""Lists of a user's builds and snapshots, newest first, in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.ports.engine import Condition
from muniment.store.items import Item, select_items
from muniment.store.proofs import check_proofs

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.store.context import Context

__all__ = ["Readable", "list_readables"]

KINDS = ("build", "snapshot")
_ORDER = ("created_at", "id", "version")


class Readable(NamedTuple):
    """A build, or a snapshot of a run by its number."""

    kind: str
    id: str
    sequence: int
    run_id: str
    created_at: str
    request: dict[str, Any] | None
    """What a build was composed for."""

    @property
    def place(self) -> tuple[str, str, int]:
        """Where an entry stands in the list."""
        return self.created_at, self.id, self.sequence


def list_readables(
    ctx: Context, tenant_id: str, user_id: str, after: tuple[str, str, int] | None, limit: int
) -> list[Readable]:
    """At most `limit` of them, after a place in the list; what was forgotten is passed over."""
    where: tuple[Condition, ...] = (("kind", "in", KINDS), ("user_id", "=", user_id), ("receipt_id", "=", None))

    def newest(reader: Reader) -> list[Item]:
        return select_items(reader, where, order=_ORDER, after=after, descending=True, limit=limit)

    found = ctx.engine.read(tenant_id, newest)
    check_proofs(ctx, tenant_id, found)
    return [_readable(item) for item in found]


def _readable(item: Item) -> Readable:
    request = item.plain().get("request") if item.kind == "build" else None
    return Readable(item.kind, item.id, item.version, item.run_id or "", item.created_at, request)
