"""A thorough scrub of the store's files, and the receipts that were waiting for it (LG-07).

A receipt is due a scrub while its status says so: from its forget until the engine has left nothing behind that it
could take. Emptying rows is `forget`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from muniment.core.ports.engine import Reader, ScrubReport, Transaction
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ITEMS
from muniment.store.context import Context
from muniment.store.forget import SCRUB_DUE, note_scrubbed
from muniment.store.reports import ScrubbedFiles

__all__ = ["due_receipts", "note_scrub", "scrub"]


def scrub(ctx: Context) -> ScrubbedFiles:
    """Rebuild what holds content, of all tenants. Receipts that were given meanwhile wait for the next one."""
    due = {tenant_id: ctx.engine.read(tenant_id, due_receipts) for tenant_id in ctx.engine.tenants()}
    report = ctx.engine.scrub((), thorough=True)
    settled = _settle(ctx, due, report)
    return ScrubbedFiles(clean=report.clean, due=report.due, receipts=settled, note=report.note)


class _Status(NamedTuple):
    id: str
    version: int
    status: str


def due_receipts(reader: Reader) -> dict[str, int]:
    """The ids of those whose newest version waits, each with the number of that version."""
    receipts = stream(reader, ITEMS, (("kind", "=", "receipt"),), into=_Status, order=("id", "version"))
    newest = {receipt.id: receipt for receipt in receipts}
    return {id_: receipt.version for id_, receipt in newest.items() if receipt.status == SCRUB_DUE}


def _settle(ctx: Context, due: Mapping[str, Mapping[str, int]], report: ScrubReport) -> int:
    """Write the receipts that waited; answers how many of them wait no longer."""
    settled = 0
    for tenant_id, waiting in due.items() if not report.due else ():
        if waiting:
            ctx.engine.write(tenant_id, lambda tx, waiting=waiting: note_scrub(ctx, tx, waiting, report))  # type: ignore[misc]
            left = ctx.engine.read(tenant_id, due_receipts)
            settled += sum(id_ not in left for id_ in waiting)
    return settled


def note_scrub(ctx: Context, tx: Transaction, versions: Mapping[str, int], report: ScrubReport) -> None:
    """Write into these receipts what a scrub has done to the files, and whether another is due.

    `versions` are those that they had before the scrub: one that has another by now, or waits no longer, is left alone.
    """
    for id_, version in versions.items():
        note_scrubbed(ctx, tx, id_, version, report)
