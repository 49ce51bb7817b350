"""Objects that no row needs: left by a call that ended between its object and its transaction.

They were announced as due (`store.objects.sending`), and a forget deletes them. This is for stores that forget nothing,
and for what earlier versions left, which no row names. A key is claimed by a row before its object is deleted. Whoever
put the object and is only slow meets that row, and is told to call again: no row ever names what a sweep has taken.
Nothing that a row needs is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any

from muniment.core.cancellation import checkpoint
from muniment.core.instants import parse_instant
from muniment.core.ports.engine import Condition, Delete, KeyTaken, Reader, Transaction
from muniment.core.ports.objects import Listed, ObjectRow
from muniment.core.ports.rows import ASKED_MAX, by_ids, insert
from muniment.core.ports.schema import OBJECTS
from muniment.errors import Conflict, InvalidInput
from muniment.store.objects.clearing import MOVED, take_up
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
            for key in _claimed(ctx, tenant_id, [each.key for each in old]):
                counts["left" if outside.store.remove(key).left else "deleted"] += 1
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


def _claimed(ctx: Context, tenant_id: str | None, keys: Sequence[str]) -> list[str]:
    """Those of these keys that no row needs, claimed so that none will."""
    if tenant_id is None:
        return list(keys)
    orphans = ctx.engine.read(tenant_id, lambda reader: _unnamed(reader, keys))
    taken: list[str] = []
    for key in orphans:
        row = ObjectRow(sha256(key.encode()).digest(), "swept", "", key, None, int(_seconds(ctx)))
        try:
            ctx.engine.write(tenant_id, lambda tx, row=row: _claim(tx, row))  # type: ignore[misc]
        except KeyTaken:  # whoever put it has written its row just now
            continue
        taken.append(key)
    return taken


def _claim(tx: Transaction, row: ObjectRow) -> None:
    take_up(tx, row.held_at)
    insert(tx, OBJECTS, [row])


def _unnamed(reader: Reader, keys: Sequence[str]) -> list[str]:
    """Those that stand in no row, or were only announced. One that was claimed and is there again came late: it waits
    until its claim ends."""
    rows = by_ids(reader, OBJECTS, keys, column="held_at")
    named = {row.held_at for row in rows if (row.use, row.subject) != ("due", MOVED)}
    return [key for key in keys if key not in named]


def _seconds(ctx: Context) -> float:
    return parse_instant(ctx.now()).timestamp()


def _drop_claims(ctx: Context, tx: Transaction, grace_hours: float) -> None:
    """Claims whose time is over too: whoever was slow has long been told."""
    old = int(_seconds(ctx) - max(grace_hours, _UNKNOWN_HOURS_MIN) * 3600)
    where: tuple[Condition, ...] = (("use", "=", "swept"), ("size", "<", old))
    tx.do(Delete("objects", where))
