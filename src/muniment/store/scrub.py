"""A thorough scrub of the store's files, and the receipts that were waiting for it (LG-07).

A receipt is due a scrub while its status says so: from its forget until the engine has left nothing behind that it
could take. Emptying rows is `forget`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muniment.core.ports.engine import Reader, ScrubReport, Transaction
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ITEMS
from muniment.store.context import Context
from muniment.store.forget import SCRUB_DUE, scrubbed
from muniment.store.items import latest, write_changes
from muniment.store.ledger.records import Receipt
from muniment.store.proving.proofs import prove
from muniment.store.reports import ScrubbedFiles

__all__ = ["due_receipts", "note_scrub", "scrub"]


def scrub(ctx: Context) -> ScrubbedFiles:
    """Rebuild what holds content, of all tenants. Receipts that were given meanwhile wait for the next one."""
    due = {tenant_id: ctx.engine.read(tenant_id, due_receipts) for tenant_id in ctx.engine.tenants()}
    report = ctx.engine.scrub((), thorough=True)
    settled = 0 if report.due else _settle(ctx, due, report)
    return ScrubbedFiles(clean=report.clean, due=report.due, receipts=settled, note=report.note)


class _Status(NamedTuple):
    id: str
    status: str


def due_receipts(reader: Reader) -> list[str]:
    """The ids of those whose newest version waits."""
    receipts = stream(reader, ITEMS, (("kind", "=", "receipt"),), into=_Status, order=("id", "version"))
    status = {receipt.id: receipt.status for receipt in receipts}
    return [id_ for id_, state in status.items() if state == SCRUB_DUE]


def _settle(ctx: Context, due: Mapping[str, list[str]], report: ScrubReport) -> int:
    for tenant_id, ids in ((each, waiting) for each, waiting in due.items() if waiting):
        ctx.engine.write(tenant_id, lambda tx, ids=ids: note_scrub(ctx, tx, ids, report))  # type: ignore[misc]
    return sum(map(len, due.values()))


def note_scrub(ctx: Context, tx: Transaction, receipt_ids: Iterable[str], report: ScrubReport) -> None:
    """Write into these receipts what a scrub has done, and whether another is due."""
    for id_ in receipt_ids:
        item = latest(tx, id_)
        if item is not None and item.kind == "receipt":
            _, change = scrubbed(Receipt.from_wire(item.plain()), report)
            prove(ctx, tx, write_changes(tx, [change]))
