"""Projections computed again from the ledger, and stored items put right where they differ."""

from __future__ import annotations

from typing import Any, NamedTuple

from muniment.core.ports.engine import Condition, Delete, Patch, Reader, Transaction
from muniment.core.ports.rows import insert, put, stream, stream_texts
from muniment.core.ports.schema import ENTRIES, ITEMS, LINKS, SESSIONS, LinkRow
from muniment.core.scope import lock_rank
from muniment.store.context import Context
from muniment.store.items import (
    LINKED,
    WRITTEN,
    Change,
    Item,
    checked_item,
    get_version,
    item_of,
    latest,
    put_lineage,
    relist,
    row_digest,
    seal_lineages,
    stream_items,
)
from muniment.store.ledger.rows import entry_of_row
from muniment.store.proving.proofs import prove
from muniment.store.reports import RebuildReport

__all__ = ["rebuild"]


def rebuild(ctx: Context, tenant_id: str) -> RebuildReport:
    """Replay every projection over the tenant's ledger; repair items that are not what the ledger says.

    Items that a forget has touched are left as they are: their source is gone on purpose.
    """

    def work(tx: Transaction) -> RebuildReport:
        wanted, links, turns_of = _replay(ctx, tx, tenant_id)
        stored: dict[str, list[Item]] = {}
        kinds = tuple(sorted(kind for kind, derivation in ctx.derivations.items() if derivation.is_projection))
        for item in stream_items(tx, (("kind", "in", kinds),)):
            stored.setdefault(item.id, []).append(item)
        touched = {id_ for id_, versions in stored.items() if any(version.receipt_id for version in versions)}
        differing = sorted(
            id_
            for id_ in (wanted.keys() | stored.keys()) - touched
            if _written(wanted.get(id_, [])) != _written([_sealed(item) for item in stored.get(id_, [])])
        )
        for id_ in differing:
            tx.do(Delete("items", (("id", "=", id_),)))
            tx.do(Delete("links", (("item_id", "=", id_),)))
            tx.do(Delete("lineages", (("item_id", "=", id_),)))
            if id_ in wanted:
                insert(tx, ITEMS, wanted[id_])
        missing = [link for id_ in wanted.keys() - touched for link in links[id_]]
        if missing:
            put(tx, LINKS, missing)
        for id_ in turns_of.keys() - touched:
            put_lineage(tx, id_, wanted[id_][0].user_id or "", tuple(turns_of[id_]))
        _seal_items(ctx, tx)
        relist(tx)
        users = sorted(set(stream_texts(tx, SESSIONS, "user_id")), key=lock_rank)
        for user_id in users:
            ctx.derived.extracts.rebuild(tx, user_id)
        turns = sum(ctx.derived.index.rebuild(tx, tenant_id, user_id) for user_id in users)
        return RebuildReport(items=len(wanted), repaired=tuple(differing), turns=turns)

    return ctx.engine.write(tenant_id, work)


def _written(versions: list[Item]) -> list[tuple[Any, ...]]:
    return [version[: len(WRITTEN)] for version in versions]


def _sealed(item: Item) -> Item:
    """A stored item with the digest that it lacks where it was written before there were any."""
    is_of_before = item.checked == 0 and item.digest in (None, row_digest(item))
    return checked_item(item) if is_of_before else item


class _Unsealed(NamedTuple):
    id: str
    version: int


def _seal_items(ctx: Context, tx: Transaction) -> None:
    """Give items of before the digest, builds and receipts the proof, that they are held against from now on."""
    where: tuple[Condition, ...] = (("checked", "=", 0), ("receipt_id", "=", None))
    for id_, version in list(stream(tx, ITEMS, where, into=_Unsealed)):
        item = get_version(tx, id_, version)
        if item is not None and (item.digest is None or item.digest == row_digest(item)):
            made = checked_item(item)
            this: tuple[Condition, ...] = (("id", "=", id_), ("version", "=", version))
            tx.do(Patch("items", this, {"digest": made.digest, "checked": made.checked}))
            prove(ctx, tx, [made])
    unsealed: tuple[Condition, ...] = (("checked", "<", LINKED), ("receipt_id", ">=", ""))
    ids = sorted({row.id for row in stream(tx, ITEMS, unsealed, into=_Unsealed)})
    seal_lineages(tx, [id_ for id_ in ids if _is_to_be_sealed(latest(tx, id_))])


def _is_to_be_sealed(newest: Item | None) -> bool:
    """Was it forgotten, before links were sealed? What holds a seal keeps it: links may have been altered since."""
    return newest is not None and newest.body is None and newest.receipt_id is not None and newest.checked < LINKED


class _Replayed(NamedTuple):
    """All versions of all projected items, in the order in which the ledger was written; what they were made from."""

    versions: dict[str, list[Item]]
    links: dict[str, list[LinkRow]]
    turns: dict[str, dict[str, None]]
    """Sources that stand in one row."""


def _replay(ctx: Context, reader: Reader, tenant_id: str) -> _Replayed:
    wanted, links, turns = made = _Replayed({}, {}, {})

    def lookup(item_id: str) -> Item | None:
        return wanted[item_id][-1] if item_id in wanted else None

    def add(change: Change) -> None:
        versions = wanted.setdefault(change.id, [])
        versions.append(item_of(change, len(versions) + 1))
        links.setdefault(change.id, []).extend(LinkRow(source, change.id) for source in change.sources)
        if change.turns:
            turns.setdefault(change.id, {}).update(dict.fromkeys(change.turns))

    order = ("recorded_at", "user_id", "session_id", "seq")
    for row in stream(reader, ENTRIES, (("receipt_id", "=", None),), order=order):
        entry = entry_of_row(tenant_id, row)
        for project in ctx.listeners(entry):
            for change in project(entry, lookup):
                add(change)
    return made
