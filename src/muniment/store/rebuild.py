"""Projections computed again from the ledger, and stored items put right where they differ."""

from __future__ import annotations

from typing import Any, cast

from muniment.core.ports.engine import Delete, Insert, Put, Reader, Row, Select, Transaction
from muniment.store.context import Context
from muniment.store.items import Change, Item, item_of
from muniment.store.ledger.rows import entry_of_row
from muniment.store.reports import RebuildReport

__all__ = ["rebuild"]


def rebuild(ctx: Context, tenant_id: str) -> RebuildReport:
    """Replay every projection over the tenant's ledger; repair items that are not what the ledger says.

    Items that a forget has touched are left as they are: their source is gone on purpose.
    """

    def work(tx: Transaction) -> RebuildReport:
        wanted, links = _replay(ctx, tx, tenant_id)
        stored: dict[str, list[Item]] = {}
        kinds = tuple(sorted(kind for kind, derivation in ctx.derivations.items() if derivation.is_projection))
        for row in tx.stream(Select("items", where=(("kind", "in", kinds),), order=("id", "version"))):
            item = Item._make(cast("Any", row))
            stored.setdefault(item.id, []).append(item)
        touched = {id_ for id_, versions in stored.items() if any(version.receipt_id for version in versions)}
        differing = sorted(
            id_ for id_ in (wanted.keys() | stored.keys()) - touched if wanted.get(id_, []) != stored.get(id_, [])
        )
        for id_ in differing:
            tx.do(Delete("items", (("id", "=", id_),)))
            tx.do(Delete("links", (("item_id", "=", id_),)))
            if id_ in wanted:
                tx.do(Insert("items", wanted[id_]))
                tx.do(Put("ids", [(id_, wanted[id_][0].kind)]))
        missing: list[Row] = [link for id_ in wanted.keys() - touched for link in links[id_]]
        if missing:
            tx.do(Put("links", missing))
        users = sorted({cast("str", row[0]) for row in tx.stream(Select("sessions", columns=("user_id",)))})
        turns = sum(ctx.derived.index.rebuild(tx, tenant_id, user_id) for user_id in users)
        return RebuildReport(items=len(wanted), repaired=tuple(differing), turns=turns)

    return ctx.engine.write(tenant_id, work)


def _replay(ctx: Context, reader: Reader, tenant_id: str) -> tuple[dict[str, list[Item]], dict[str, list[Row]]]:
    """All versions of all projected items, in the order in which the ledger was written."""
    wanted: dict[str, list[Item]] = {}
    links: dict[str, list[Row]] = {}

    def lookup(item_id: str) -> Item | None:
        return wanted[item_id][-1] if item_id in wanted else None

    def add(change: Change) -> None:
        versions = wanted.setdefault(change.id, [])
        versions.append(item_of(change, len(versions) + 1))
        links.setdefault(change.id, []).extend((source, change.id) for source in change.sources)

    order = ("recorded_at", "user_id", "session_id", "seq")
    for row in reader.stream(Select("entries", where=(("receipt_id", "=", None),), order=order)):
        entry = entry_of_row(tenant_id, row)
        for project in ctx.listeners(entry):
            for change in project(entry, lookup):
                add(change)
    return wanted, links
