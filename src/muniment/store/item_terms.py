"""Search terms of items, for kinds that declare some: hashed words of an item, while it may be shown.

They are derived from the newest version of an item alone, so they can be rebuilt from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from muniment.core.ports.engine import Count, Delete, Reader, Transaction
from muniment.core.ports.rows import Where, chunked, find, insert, select
from muniment.core.ports.schema import ITEM_TERMS, ItemTermRow
from muniment.errors import StoreDamaged
from muniment.store.context import Context
from muniment.store.items import Item, stream_items

__all__ = ["follow_terms", "newest_with_terms", "rebuild_terms", "remake_terms", "term_faults"]


def follow_terms(ctx: Context, tx: Transaction, written: Iterable[Item]) -> None:
    """Index versions of items just written: an item's text never changes, but whether it may be shown can."""
    for item in written:
        derivation = ctx.derivations.get(item.kind)
        if derivation is None or derivation.terms is None:
            continue
        if item.version == 1:
            insert(tx, ITEM_TERMS, _rows(ctx, item))
        elif not derivation.terms(item):
            tx.do(Delete("item_terms", (("item_id", "=", item.id),)))


def remake_terms(ctx: Context, tx: Transaction, ids: Sequence[str]) -> None:
    """Rebuild the terms of some items from their newest versions."""
    kinds = _kinds(ctx)
    for chunk in chunked(ids):
        tx.do(Delete("item_terms", (("item_id", "in", chunk),)))
        where: Where = (("id", "in", chunk), ("kind", "in", kinds), ("newest", "=", 1))
        for item in stream_items(tx, where):
            insert(tx, ITEM_TERMS, _rows(ctx, item))


def rebuild_terms(ctx: Context, tx: Transaction) -> None:
    """Rebuild the terms of all items of a tenant."""
    tx.do(Delete("item_terms", (("term", ">=", 0),)))
    for item in _sources(ctx, tx):
        insert(tx, ITEM_TERMS, _rows(ctx, item))


def term_faults(ctx: Context, reader: Reader) -> Iterator[tuple[str, str]]:
    """Yield items whose terms do not match their newest versions, and the fault."""
    known = 0
    for item in _sources(ctx, reader):
        wanted = _rows(ctx, item)
        held = sum(1 for _ in find(reader, ITEM_TERMS, ITEM_TERMS.key, wanted, into=ItemTermRow))
        known += held
        if held < len(wanted):
            yield item.id, "it lacks terms by which it is found"
    if reader.do(Count("item_terms")) != known:
        yield "item_terms", "there are terms of items that have none"


class TermHit(NamedTuple):
    """An item that has a term."""

    item_id: str
    placed_at: str


def newest_with_terms(reader: Reader, owner: str, terms: Iterable[int], most: int) -> list[str]:
    """Return at most `most` items of an owner that have these terms, those with many and rare terms first.

    For a common term only its newest items are considered.
    """
    hits: dict[str, tuple[int, str]] = {}
    for term in terms:
        where: Where = (("owner", "=", owner), ("term", "=", term))
        order = ("placed_at", "item_id")
        held = select(reader, ITEM_TERMS, where, into=TermHit, order=order, descending=True, limit=most)
        for hit in held:
            worth, _ = hits.get(hit.item_id, (0, ""))
            hits[hit.item_id] = worth + _WHOLE // len(held), hit.placed_at
    ranked = sorted(hits, key=lambda id_: (*hits[id_], id_), reverse=True)
    return ranked[:most]


_WHOLE = 1_000_000
"""The weight of a term that one item has; several items share it."""


def _kinds(ctx: Context) -> tuple[str, ...]:
    return tuple(sorted(kind for kind, derivation in ctx.derivations.items() if derivation.terms is not None))


def _sources(ctx: Context, reader: Reader) -> Iterator[Item]:
    """Return the newest versions that may have terms, in key order, so that nothing has to be sorted."""
    kinds = frozenset(_kinds(ctx))
    return (item for item in stream_items(reader, ()) if item.newest and item.kind in kinds and item.body is not None)


def _rows(ctx: Context, item: Item) -> list[ItemTermRow]:
    derive = ctx.derivations[item.kind].terms
    assert derive is not None
    try:
        terms = derive(item)
    except StoreDamaged:  # verify reports the item itself
        return []
    return [ItemTermRow(item.owner or "", term, item.placed_at, item.id) for term in sorted(terms)]
