"""Contents of a store that was opened with an object store later, moved out; and all of them back in.

Event by event, each in a transaction of its own: what was interrupted goes on where it stopped. An object is put
before its row says so, and is deleted after the row holds the bytes again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.cancellation import checkpoint
from muniment.core.canonical import salted_digest
from muniment.core.ports.engine import Condition, Patch, Reader, Transaction
from muniment.core.ports.objects import ObjectRow
from muniment.core.ports.rows import get, insert, select
from muniment.core.ports.schema import BLOBS, ENTRIES, OBJECTS, BlobRow
from muniment.errors import BlobCorrupt
from muniment.store.objects.clearing import MOVED, announce, clear_outside, give_back, retire, take_up
from muniment.store.objects.sweeping import outside_of
from muniment.store.objects.view import near
from muniment.store.reports import MovedContents

if TYPE_CHECKING:
    from muniment.store.context import Context

__all__ = ["move_back", "move_blob", "move_out"]

Progress = Callable[[int], None]
_PAGE = 100


class _Salt(NamedTuple):
    salt: bytes | None


class _Name(NamedTuple):
    hash: bytes


def move_out(ctx: Context, tenant_id: str, progress: Progress | None = None) -> MovedContents:
    """Put outside every content that lies in a row of its own."""
    outside_of(ctx)
    moved = size = 0
    after: tuple[bytes] | None = None
    while True:
        names = ctx.engine.read(tenant_id, lambda reader: _names(near(reader), after))  # noqa: B023
        for name in names:
            checkpoint()
            sent = move_blob(ctx, tenant_id, name)
            moved, size = moved + (sent > 0), size + sent
            if progress is not None and sent:
                progress(1)
        if len(names) < _PAGE:
            return MovedContents(tenant_id=tenant_id, moved=moved, size_bytes=size)
        after = (names[-1],)


def _names(reader: Reader, after: tuple[bytes] | None) -> list[bytes]:
    found = select(reader, BLOBS, (("data", ">=", b""),), into=_Name, order=("hash",), after=after, limit=_PAGE)
    return [row.hash for row in found]


def move_blob(ctx: Context, tenant_id: str, name: bytes) -> int:
    """Put one content outside; answers its size, 0 where there is nothing to move."""
    outside = outside_of(ctx)
    blob, salt = ctx.engine.read(tenant_id, lambda reader: _held(near(reader), name))
    if blob is None or blob.data is None:
        return 0
    if salt is None or salted_digest(salt, blob.data) != name:
        raise BlobCorrupt(
            f"the blob of event {blob.entry_id} is not what it was", details={"id": blob.entry_id, "blob": name.hex()}
        )
    planned = outside.blob_row(tenant_id, blob.entry_id, name, blob.size)
    announce(ctx, tenant_id, [planned])
    row = outside.send_blob(tenant_id, planned, salt, blob.data)

    def change(tx: Transaction) -> int:
        there, _ = _held(near(tx), name)
        if there is None or there.data is None or not take_up(tx, row.held_at):  # forgotten or moved meanwhile
            return 0
        tx.do(Patch("blobs", (("hash", "=", name),), {"data": None}))
        insert(tx, OBJECTS, [row])
        return there.size

    moved = ctx.engine.write(tenant_id, change)
    if not moved:
        give_back(ctx, tenant_id, [row])
    return moved


def _held(reader: Reader, name: bytes) -> tuple[BlobRow | None, bytes | None]:
    blob = get(reader, BLOBS, (name,))
    salts: Sequence[_Salt] = ()
    if blob is not None:
        salts = select(reader, ENTRIES, (("id", "=", blob.entry_id),), into=_Salt)
    return blob, salts[0].salt if salts else None


def move_back(ctx: Context, tenant_id: str, progress: Progress | None = None) -> MovedContents:
    """Bring every content back into its row; what lay outside is deleted there."""
    outside = outside_of(ctx)
    moved = size = 0
    after: tuple[bytes] | None = None
    while True:
        rows = ctx.engine.read(tenant_id, lambda reader: _outside_blobs(reader, after))  # noqa: B023
        for row in rows:
            checkpoint()
            blob, salt = ctx.engine.read(tenant_id, lambda reader: _held(near(reader), row.name))  # noqa: B023
            data = None if blob is None else outside.blob(tenant_id, row, salt)
            if blob is None or data is None or salt is None or salted_digest(salt, data) != row.name:
                raise BlobCorrupt(
                    f"the object that holds the content of event {row.subject} is missing or was altered",
                    hint="bring the object back from a copy of the bucket or folder, or forget the event",
                    details={"id": row.subject, "object": row.held_at},
                )
            moved += ctx.engine.write(tenant_id, _bring(ctx, row, data))
            size += len(data)
            if progress is not None:
                progress(1)
        if len(rows) < _PAGE:
            break
        after = (rows[-1].name,)
    left = clear_outside(ctx, tenant_id, (MOVED,)).get(MOVED)
    return MovedContents(tenant_id=tenant_id, moved=moved, size_bytes=size, left=0 if left is None else left.left)


def _outside_blobs(reader: Reader, after: tuple[bytes] | None) -> list[ObjectRow]:
    return select(reader, OBJECTS, (("use", "=", "blob"),), order=("name",), after=after, limit=_PAGE)


def _bring(ctx: Context, row: ObjectRow, data: bytes) -> Callable[[Transaction], int]:
    def change(tx: Transaction) -> int:
        if get(tx, OBJECTS, (row.name,)) != row:  # forgotten meanwhile
            return 0
        where: tuple[Condition, ...] = (("hash", "=", row.name),)
        tx.do(Patch("blobs", where, {"data": data}))
        retire(ctx, tx, row, MOVED)
        return 1

    return change
