"""Builds, and the answers that were given with them, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from muniment.core.listing import ListQuery, Placed, matches
from muniment.errors import NotFound
from muniment.packets.projection import answer_name
from muniment.store.items import Item, latest
from muniment.store.ledger import LedgerEntry
from muniment.store.lists.seeking import find_listed, read_listed, read_named, seek
from muniment.store.proofs import check_proof
from muniment.store.reading import entry_in

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.store.context import Context

__all__ = ["page_answers", "page_builds"]


def page_builds(ctx: Context, tenant_id: str, user_id: str | None, asked: ListQuery) -> Iterator[Placed[Item]]:
    """The builds of a user, or of the tenant, that are still there."""

    def made(item: Item) -> Item | None:
        return item if asked.q is None or matches(asked.q, item.id, item.plain()["request"]["query"]) else None

    def make(reader: Reader, items: Sequence[Item]) -> list[Item | None]:
        for item in items:
            check_proof(ctx, reader, item)
        return [made(item) for item in items]

    reading = read_listed("build", user_id, make, asked)
    return seek(ctx, tenant_id, reading, asked, find_listed(("build",), user_id, make))


def page_answers(ctx: Context, tenant_id: str, build_id: str, asked: ListQuery) -> Iterator[Placed[LedgerEntry]]:
    """The answers that were observed with a build."""
    build = ctx.engine.read(tenant_id, lambda reader: latest(reader, build_id))
    if build is None or build.kind != "build":
        raise NotFound(f"no build {build_id!r:.80} in this store", path="$.build_id")

    def make(reader: Reader, items: Sequence[Item]) -> list[LedgerEntry | None]:
        return [entry_in(reader, tenant_id, item.plain()["event_id"]) for item in items]

    return seek(
        ctx, tenant_id, read_named("answer", (("user_id", "=", build.user_id),), answer_name(build_id), make), asked
    )
