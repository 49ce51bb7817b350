"""Objects that no row needs: left by a call that ended between its object and its transaction.

They were announced as due (`store.objects.sending`), and a forget deletes them. This is for stores that forget nothing,
and for what no row names: what earlier versions left, or what came after it was deleted. A row says of an object that
it is due before it is deleted. So whoever put it and is only slow is told to call again, and a deletion that fails is
made up for by the next forget. Nothing that a row needs is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any

from muniment.core.cancellation import checkpoint
from muniment.core.instants import parse_instant
from muniment.core.ports.engine import Condition, Delete, KeyTaken, Reader, Transaction
from muniment.core.ports.objects import Listed, ObjectRow
from muniment.core.ports.rows import ASKED_MAX, by_ids
from muniment.core.ports.schema import OBJECTS
from muniment.errors import Conflict, InvalidInput
from muniment.store.objects.clearing import MOVED, clear_unneeded
from muniment.store.reports import SweepReport

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.objects.outside import Outside

__all__ = ["outside_of", "sweep_objects"]

GRACE_HOURS = 24
_UNKNOWN_HOURS_MIN = 24
"""What lies under the name of a tenant that nobody knows may be its first write."""


def outside_of(ctx: Context) -> Outside:
    """The object store; an error where the store was opened without one."""
    if ctx.outside is None:
        raise Conflict(
            "the store was opened without an object store",
            path="$.objects",
            hint="name it: MUNIMENT_OBJECTS, objects in muniment.toml, or open(..., objects=…)",
        )
    return ctx.outside


def sweep_objects(ctx: Context, grace_hours: Any = GRACE_HOURS) -> SweepReport:
    """Delete the objects of this store that no row names and that are older than the grace."""
    if isinstance(grace_hours, bool) or not isinstance(grace_hours, int | float) or not 0 <= grace_hours <= 87_600:
        raise InvalidInput("grace_hours should be a number of hours, 0 or more", path="$.grace_hours")
    outside = outside_of(ctx)
    tenants = {outside.tenant_folder(tenant): tenant for tenant in ctx.engine.tenants()}
    counts = dict.fromkeys(("seen", "young", "deleted", "left"), 0)
    for folder, some in groupby(outside.store.listed(f"{outside.folder}/"), key=_folder_of):
        tenant_id = tenants.get(folder)
        hours = grace_hours if tenant_id is not None else max(grace_hours, _UNKNOWN_HOURS_MIN)
        for page in _pages(some):
            checkpoint()
            counts["seen"] += len(page)
            old = [each for each in page if each.age_s >= hours * 3600]
            counts["young"] += len(page) - len(old)
            for left in _swept(ctx, outside, tenant_id, [each.key for each in old]):
                counts["left" if left else "deleted"] += 1
    for tenant_id in tenants.values():
        ctx.engine.write(tenant_id, lambda tx: _drop_claims(ctx, tx, grace_hours))
    return SweepReport(**counts)


def _folder_of(each: Listed) -> str:
    return "/".join(each.key.split("/")[:2])


def _pages(some: Iterator[Listed]) -> Iterator[list[Listed]]:
    page: list[Listed] = []
    for each in some:
        page.append(each)
        if len(page) == ASKED_MAX:
            yield page
            page = []
    if page:
        yield page


def _swept(ctx: Context, outside: Outside, tenant_id: str | None, keys: Sequence[str]) -> Iterator[bool]:
    """Delete those of these keys that no row needs; of each, whether something of it is left."""
    if tenant_id is None:
        yield from (outside.store.remove(key).left > 0 for key in keys)
        return
    for key in ctx.engine.read(tenant_id, lambda reader: _unnamed(reader, keys)):
        row = ObjectRow(b"", "due", MOVED, key, None, 0)
        with suppress(KeyTaken):  # whoever put it has written its row just now
            yield from map(bool, clear_unneeded(ctx, outside, tenant_id, [row]))


def _unnamed(reader: Reader, keys: Sequence[str]) -> list[str]:
    """Those that stand in no row, or were only announced."""
    rows = by_ids(reader, OBJECTS, keys, column="held_at")
    named = {row.held_at for row in rows if row.subject != MOVED}
    return [key for key in keys if key not in named]


def _seconds(ctx: Context) -> float:
    return parse_instant(ctx.now()).timestamp()


def _drop_claims(ctx: Context, tx: Transaction, grace_hours: float) -> None:
    """What earlier versions left of a sweep, where its time is over too: whoever was slow has long been told."""
    old = int(_seconds(ctx) - max(grace_hours, _UNKNOWN_HOURS_MIN) * 3600)
    where: tuple[Condition, ...] = (("use", "=", "swept"), ("size", "<", old))
    tx.do(Delete("objects", where))
