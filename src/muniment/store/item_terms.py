"""Terms by which items are found, of the kinds that declare some: hashed words of an item, while it may be shown.

They are made of the newest version of an item alone, so that they can be made again from it.
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
    """Take in versions of items that were just written: what an item says never changes, whether it shows may."""
    for item in written:
        derivation = ctx.derivations.get(item.kind)
        if derivation is None or derivation.terms is None:
            continue
        if item.version == 1:
            insert(tx, ITEM_TERMS, _rows(ctx, item))
        elif not derivation.terms(item):
            tx.do(Delete("item_terms", (("item_id", "=", item.id),)))


def remake_terms(ctx: Context, tx: Transaction, ids: Sequence[str]) -> None:
    """Make the terms of some items again from their newest versions."""
    kinds = _kinds(ctx)
    for chunk in chunked(ids):
        tx.do(Delete("item_terms", (("item_id", "in", chunk),)))
        where: Where = (("id", "in", chunk), ("kind", "in", kinds), ("newest", "=", 1))
        for item in stream_items(tx, where):
            insert(tx, ITEM_TERMS, _rows(ctx, item))


def rebuild_terms(ctx: Context, tx: Transaction) -> None:
    """Make the terms of all items of a tenant again."""
    tx.do(Delete("item_terms", (("term", ">=", 0),)))
    for item in _sources(ctx, tx):
        insert(tx, ITEM_TERMS, _rows(ctx, item))


def term_faults(ctx: Context, reader: Reader) -> Iterator[tuple[str, str]]:
    """Items whose terms are not those of their newest versions, and what is wrong."""
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
    """The items of an owner that have these terms, `most` of them at most: those first that have many, and rare ones.

    Of a term that many items have, only the newest of these are looked at.
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
"""What a term is worth that one item has; those that more items have share it."""


def _kinds(ctx: Context) -> tuple[str, ...]:
    return tuple(sorted(kind for kind, derivation in ctx.derivations.items() if derivation.terms is not None))


def _sources(ctx: Context, reader: Reader) -> Iterator[Item]:
    """The newest versions that may have terms, in the order of the key, so that nothing has to be sorted."""
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
