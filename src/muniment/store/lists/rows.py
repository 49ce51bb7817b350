"""Where each item stands in the list it is shown in: rows of `listings`, written with the versions that they name.

So a page costs what it shows, however many versions, items and forgotten things its scope holds. All of it is made
again from the items by a rebuild, and held against them by a verification.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from muniment.core.owners import BANK_PREFIX, is_reserved
from muniment.core.ports.engine import Condition, Delete, Reader, Transaction
from muniment.core.ports.rows import first, get, put, stream
from muniment.core.ports.schema import ITEMS, LISTINGS, ItemRow, ListingRow

__all__ = ["LISTED", "listing_faults", "listing_of", "owner_of_list", "put_listing", "relist", "relist_all"]

Where = tuple[Condition, ...]

LISTED = frozenset(
    ("run", "build", "fact", "candidate", "claim", "conflict", "question", "verification", "document", "reasoning",
     "tactic", "seed", "trace_capsule", "rule", "event_log", "draft", "plan", "lesson_report")
)  # fmt: skip
"""Kinds that are shown in lists."""
_OF_RUN = frozenset(("claim", "conflict", "question", "verification"))


class _Listed(NamedTuple):
    """What a row of `listings` is made of."""

    id: str
    version: int
    kind: str
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    status: str
    created_at: str
    receipt_id: str | None


def owner_of_list(kind: str, user_id: str | None, agent_id: str | None, run_id: str | None) -> str:
    """Whose list an item stands in. What is no user's is an agent's or the tenant's, and goes by the bank's names."""
    if kind in _OF_RUN:
        return run_id or ""
    if user_id is not None:
        return user_id
    return f"{BANK_PREFIX}tenant" if agent_id is None else f"{BANK_PREFIX}agent:{agent_id}"


def listing_of(item: ItemRow | _Listed, placed_at: str) -> ListingRow | None:
    """The row of an item whose newest version this is; None where it is in no list."""
    if item.kind not in LISTED or item.receipt_id is not None:
        return None
    if item.kind == "run" and is_reserved(item.user_id or ""):
        return None  # corpora and banks are no agents
    owner = owner_of_list(item.kind, item.user_id, item.agent_id, item.run_id)
    return ListingRow(item.id, item.version, item.kind, owner, item.status, placed_at)


def put_listing(tx: Transaction, item: ItemRow) -> None:
    """An item has this version now."""
    if item.kind not in LISTED:
        return
    placed_at = item.created_at
    if item.version > 1:
        held = get(tx, LISTINGS, (item.id,))
        placed_at = _placed_at(tx, item) if held is None else held.placed_at
    row = listing_of(item, placed_at)
    if row is not None:
        put(tx, LISTINGS, [row])


def _placed_at(reader: Reader, item: ItemRow) -> str:
    begun = first(reader, ITEMS, (("id", "=", item.id),), into=_Listed, order=("id", "version"))
    return item.created_at if begun is None else begun.created_at


def relist(tx: Transaction, item_id: str) -> None:
    """Make the row of an item again from its versions."""
    where: Where = (("id", "=", item_id),)
    newest = first(tx, ITEMS, where, order=("id", "version"), descending=True)
    if newest is None or newest.kind not in LISTED:
        return
    row = listing_of(newest, _placed_at(tx, newest))
    if row is None:
        tx.do(Delete("listings", where))
    else:
        put(tx, LISTINGS, [row])


def _made_again(reader: Reader) -> Iterator[ListingRow]:
    """Every row as the items give it, by id."""
    begun: _Listed | None = None
    last: _Listed | None = None
    for item in stream(reader, ITEMS, (("kind", "in", tuple(sorted(LISTED))),), into=_Listed, order=("id", "version")):
        if begun is None or last is None or item.id != begun.id:
            row = None if begun is None or last is None else listing_of(last, begun.created_at)
            if row is not None:
                yield row
            begun = item
        last = item
    row = None if begun is None or last is None else listing_of(last, begun.created_at)
    if row is not None:
        yield row


def relist_all(tx: Transaction) -> None:
    """Put right every row that is not as the items give it."""
    held = {row.id: row for row in stream(tx, LISTINGS)}
    wanted = {row.id: row for row in _made_again(tx)}
    for id_ in held.keys() - wanted.keys():
        tx.do(Delete("listings", (("id", "=", id_),)))
    changed = [row for id_, row in wanted.items() if held.get(id_) != row]
    if changed:
        put(tx, LISTINGS, changed)


def listing_faults(reader: Reader) -> Iterator[tuple[str, str]]:
    """The ids of items that do not stand in their list where the items say, and why."""
    held, wanted = iter(stream(reader, LISTINGS)), _made_again(reader)
    here, there = next(held, None), next(wanted, None)
    while here is not None or there is not None:
        if there is None or (here is not None and here.id < there.id):
            assert here is not None
            yield here.id, "it stands in a list, and is not there"
            here = next(held, None)
        elif here is None or there.id < here.id:
            yield there.id, "it is missing in its list"
            there = next(wanted, None)
        else:
            if here != there:
                yield here.id, "it does not stand in its list where it should"
            here, there = next(held, None), next(wanted, None)
