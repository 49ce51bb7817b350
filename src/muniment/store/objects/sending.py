"""What goes out before a transaction begins, and the rows that the transaction writes of it.

Announced first, then the object, then its row: until a transaction takes it up it is due, so what a crash leaves, or a
call that turns out to be a repeat, is deleted by the next forget at the latest. No row ever names nothing, and no two
attempts write one key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from muniment.core.cancellation import checkpoint
from muniment.core.ports.engine import KeyTaken, Transaction
from muniment.core.ports.objects import ObjectRow
from muniment.core.ports.rows import by_ids, insert
from muniment.core.ports.schema import BLOBS, IDS, OBJECTS, BlobRow, EntryRow
from muniment.errors import MunimentError, StorageBusy
from muniment.store.objects.clearing import announce, give_back, take_up

if TYPE_CHECKING:
    from muniment.store.context import Context

__all__ = ["GivenUp", "Leaving", "insert_blobs", "resending", "send_blobs", "send_rows", "write_sent"]

R = TypeVar("R")

_SENDS_MAX = 3


class GivenUp(StorageBusy):
    """What was sent outside was deleted as left behind before it was written here: by a forget, or by a sweep."""

    def __init__(self) -> None:
        super().__init__(
            "what was sent outside was given up as left behind before it was written here",
            hint="call again: nothing was written",
        )


class Leaving(NamedTuple):
    """The content of an event that is too large for its row."""

    entry_id: str
    name: bytes
    salt: bytes
    data: bytes


def send_blobs(ctx: Context, tenant_id: str, leaving: Iterable[Leaving]) -> dict[bytes, ObjectRow]:
    """Put these outside where the store has an object store; answers their rows by name, none where it has not."""
    if ctx.outside is None:
        return {}
    sent = [(each, ctx.outside.blob_row(tenant_id, each.entry_id, each.name, len(each.data))) for each in leaving]
    announce(ctx, tenant_id, [row for _, row in sent])
    held: dict[bytes, ObjectRow] = {}
    try:
        for each, row in sent:
            checkpoint()
            held[each.name] = ctx.outside.send_blob(tenant_id, row, each.salt, each.data)
    except (MunimentError, KeyTaken):
        give_back(ctx, tenant_id, [row for _, row in sent])
        raise
    return held


def send_rows(
    ctx: Context, tenant_id: str, entries: Iterable[EntryRow], blobs: Sequence[BlobRow]
) -> dict[bytes, ObjectRow]:
    """`send_blobs` of rows that come with their entries, unless these are here already."""
    if ctx.outside is None or not blobs:
        return {}
    ids = [blob.entry_id for blob in blobs]
    here = ctx.engine.read(tenant_id, lambda reader: {row.id for row in by_ids(reader, IDS, ids)})
    salts = {row.id: row.salt for row in entries}
    leaving = [
        Leaving(blob.entry_id, blob.hash, salts[blob.entry_id] or b"", blob.data)
        for blob in blobs
        if blob.entry_id not in here and blob.data is not None
    ]
    return send_blobs(ctx, tenant_id, leaving)


def resending(attempt: Callable[[], R]) -> R:
    """Try again where what was sent outside was deleted meanwhile, as whoever forgets does with what is not written."""
    for _ in range(_SENDS_MAX - 1):
        with suppress(GivenUp):
            return attempt()
    return attempt()


def write_sent(ctx: Context, tenant_id: str, sent: Collection[ObjectRow], work: Callable[[Transaction], R]) -> R:
    """A transaction that takes up what was sent for it. What it does not, as a repeat does not, goes again."""
    try:
        answer = ctx.engine.write(tenant_id, work)
    except (MunimentError, KeyTaken):
        give_back(ctx, tenant_id, sent)
        raise
    give_back(ctx, tenant_id, sent)
    return answer


def insert_blobs(tx: Transaction, blobs: Sequence[BlobRow], held: Mapping[bytes, ObjectRow]) -> None:
    """Write the rows of these contents: without the bytes, where those were sent outside."""
    out = [held[blob.hash] for blob in blobs if blob.hash in held]
    for row in out:
        if not take_up(tx, row.held_at):
            raise GivenUp
    insert(tx, BLOBS, [blob._replace(data=None) if blob.hash in held else blob for blob in blobs])
    if out:
        insert(tx, OBJECTS, out)
