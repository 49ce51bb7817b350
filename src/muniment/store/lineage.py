"""Lineage: which events and items an item was made from, and what was made from them.

A link is a row of `links`, found from either end. A build is made from a hundred turns of its user, and a row for each,
in every order they are asked for, costs more than composing it: they stand together in one row of `lineages`. Who asks
what was made from a turn reads the rows of the turn's user, which only a forget does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from muniment.core.ports.engine import Get, Put, Reader, Row, Select, Transaction

__all__ = ["derived_from", "links_of", "put_lineage", "put_links"]

_ASKED = 500
_BETWEEN = "\n"
"""No id holds a control character."""


def put_links(tx: Transaction, item_id: str, sources: Iterable[str]) -> None:
    links: list[Row] = [(source, item_id) for source in sources]
    if links:
        tx.do(Put("links", links))


def put_lineage(tx: Transaction, item_id: str, user_id: str, turns: Sequence[str]) -> None:
    """The turns of this user that the item was made from: all of them, once."""
    if turns:
        tx.do(Put("lineages", [(item_id, user_id, _BETWEEN.join(turns))]))


def links_of(reader: Reader, item_id: str) -> list[Row]:
    """What the item was made from, as rows of `links` in their order, wherever it is written."""
    links = reader.do(Select("links", where=(("item_id", "=", item_id),)))
    lineage = reader.do(Get("lineages", (item_id,)))
    if lineage is None:
        return links
    turns = cast("str", lineage[2]).split(_BETWEEN)
    return sorted({*links, *((turn, item_id) for turn in turns)}, key=lambda row: cast("tuple[str, str]", row))


def derived_from(reader: Reader, ids: Sequence[str], users: Iterable[str]) -> set[str]:
    """The items that were made from one of these; `users` are those whose turns are among them."""
    found: set[str] = set()
    for at in range(0, len(ids), _ASKED):
        asked = Select("links", where=(("source_id", "in", tuple(ids[at : at + _ASKED])),), columns=("item_id",))
        found.update(cast("str", row[0]) for row in reader.do(asked))
    wanted = frozenset(ids)
    for user_id in users:
        for item_id, _, turns in reader.stream(Select("lineages", where=(("user_id", "=", user_id),))):
            if not wanted.isdisjoint(cast("str", turns).split(_BETWEEN)):
                found.add(cast("str", item_id))
    return found
