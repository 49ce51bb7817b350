"""What goes out before a transaction begins, and the rows that the transaction writes of it.

Object first, row second: a crash between leaves an object that no row names, which a sweep finds, and never a row that
names nothing. No two attempts write one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.cancellation import checkpoint
from muniment.core.ports.engine import Transaction
from muniment.core.ports.objects import ObjectRow
from muniment.core.ports.rows import by_ids, insert
from muniment.core.ports.schema import BLOBS, IDS, OBJECTS, BlobRow, EntryRow
from muniment.errors import StorageBusy

if TYPE_CHECKING:
    from muniment.store.context import Context

__all__ = ["Leaving", "given_up", "insert_blobs", "send_blobs", "send_rows"]


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
    held: dict[bytes, ObjectRow] = {}
    for each in leaving:
        checkpoint()
        row = ctx.outside.blob_row(tenant_id, each.entry_id, each.name, len(each.data))
        held[each.name] = ctx.outside.send_blob(tenant_id, row, each.salt, each.data)
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


def given_up() -> StorageBusy:
    """The error for a call that took so long that a sweep took its object for one left behind."""
    return StorageBusy(
        "what was sent outside was given up as left behind before it was written here",
        hint="call again: nothing was written",
    )


def insert_blobs(tx: Transaction, blobs: Sequence[BlobRow], held: Mapping[bytes, ObjectRow]) -> None:
    """Write the rows of these contents: without the bytes, where those were sent outside."""
    out = [held[blob.hash] for blob in blobs if blob.hash in held]
    if out and any(True for _ in by_ids(tx, OBJECTS, [row.held_at for row in out], column="held_at")):
        raise given_up()
    insert(tx, BLOBS, [blob._replace(data=None) if blob.hash in held else blob for blob in blobs])
    if out:
        insert(tx, OBJECTS, out)
