"""A thorough scrub of the store's files, and the receipts that were waiting for it (LG-07).

A receipt stays pending, as its status shows, until the engine has removed everything it can. `forget` empties the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from muniment.core.ports.engine import Condition, Count, Reader, ScrubReport, Transaction
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ITEMS
from muniment.store.context import Context
from muniment.store.forget import SCRUB_DUE, note_scrubbed
from muniment.store.reports import ScrubbedFiles

__all__ = ["count_due", "due_receipts", "note_scrub", "scrub"]

_DUE: tuple[Condition, ...] = (("kind", "=", "receipt"), ("newest", "=", 1), ("status", "=", SCRUB_DUE))
"""Conditions served by an index of items, however many receipts were completed."""


def scrub(ctx: Context) -> ScrubbedFiles:
    """Rebuild the tables that hold content, of all tenants. Receipts issued meanwhile wait for the next scrub."""
    due = {tenant_id: ctx.engine.read(tenant_id, due_receipts) for tenant_id in ctx.engine.tenants()}
    report = ctx.engine.scrub((), thorough=True)
    completed = 0
    for tenant_id, versions in due.items() if not report.due else ():
        if versions:
            ctx.engine.write(tenant_id, lambda tx, versions=versions: note_scrub(ctx, tx, versions, report))  # type: ignore[misc]
            left = ctx.engine.read(tenant_id, due_receipts)
            completed += sum(id_ not in left for id_ in versions)
    return ScrubbedFiles(clean=report.clean, due=report.due, receipts=completed, note=report.note)


class _Version(NamedTuple):
    id: str
    version: int


def due_receipts(reader: Reader) -> dict[str, int]:
    """Return the ids of the receipts that wait for a scrub, each with its newest version number."""
    return dict(select(reader, ITEMS, _DUE, into=_Version))


def count_due(reader: Reader) -> int:
    """Count the receipts that wait for a scrub."""
    return reader.do(Count("items", _DUE))


def note_scrub(ctx: Context, tx: Transaction, versions: Mapping[str, int], report: ScrubReport) -> None:
    """Record in these receipts what a scrub has done to the files, and whether another is due.

    `versions` are those from before the scrub: a receipt that has another by now, or is no longer pending, is left
    alone.
    """
    for id_, version in versions.items():
        note_scrubbed(ctx, tx, id_, version, report)
