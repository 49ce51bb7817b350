"""Blocks of an index in storage: appended, merged as they grow, rewritten by a forget.

A place (a table and the leading values of its key) holds blocks over consecutive numbers. Levels never rise from left
to right and no level has `FANOUT` blocks, so a place of n turns has about FANOUT · log(n) blocks and a turn is
rewritten log(n) times. A block never changes under its digest.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple, Protocol, TypeVar

from muniment.core.canonical import digest
from muniment.core.ports.engine import Condition, Delete, Reader, Row, Transaction
from muniment.core.ports.rows import insert, select
from muniment.core.ports.schema import table
from muniment.errors import StoreDamaged

__all__ = ["BlockScope", "Codec", "Listed", "append_block", "drop_from_blocks", "list_blocks", "read_data"]

FANOUT = 8

B = TypeVar("B")


class Codec(Protocol[B]):
    """Operations on one kind of block. All pure."""

    def size(self, block: B) -> int: ...

    def encode(self, block: B) -> bytes: ...

    def decode(self, data: bytes) -> B: ...

    def merge(self, blocks: Sequence[B]) -> B: ...

    def drop(self, block: B, lost: Set[str]) -> B | None: ...


class BlockScope(NamedTuple):
    """A table, and the leading key values of the blocks of one kind and owner."""

    table: str
    prefix: tuple[tuple[str, str], ...]

    @property
    def where(self) -> tuple[Condition, ...]:
        return tuple((column, "=", value) for column, value in self.prefix)

    @property
    def order(self) -> tuple[str, ...]:
        return (*(column for column, _ in self.prefix), "first")

    def row(self, first: int, count: int, level: int, name: bytes, data: bytes) -> Row:
        return (*(value for _, value in self.prefix), first, count, level, name, data)


class Listed(NamedTuple):
    """A block without its content."""

    first: int
    turns: int
    level: int
    digest: bytes


class _BlockRow(NamedTuple):
    first: int
    count: int  # type: ignore[assignment] # the column's name
    level: int
    digest: bytes


class _BlockData(NamedTuple):
    data: bytes


def list_blocks(reader: Reader, place: BlockScope) -> list[Listed]:
    """The blocks of a place, in order."""
    rows = select(reader, table(place.table), place.where, into=_BlockRow, order=place.order)
    return list(map(Listed._make, rows))


def read_data(reader: Reader, place: BlockScope, listed: Sequence[Listed]) -> list[bytes]:
    """Read the encoded blocks, checking each against its digest: an altered block could point anywhere."""
    where: tuple[Condition, ...] = (*place.where, ("first", "in", tuple(entry.first for entry in listed)))
    found = [row.data for row in select(reader, table(place.table), where, into=_BlockData, order=place.order)]
    for entry, data in zip(listed, found, strict=True):
        if not _is_intact(data, entry.digest):
            raise _damaged(place, entry.first)
    return found


def _damaged(place: BlockScope, at: int) -> StoreDamaged:
    return StoreDamaged(
        f"a block of {place.table}, from turn {at} on, is not as it was written",
        details={"table": place.table, "first": at} | dict(place.prefix),
    )


def _digest(data: bytes) -> bytes:
    """Return the digest that identifies an encoded block."""
    return digest(data)[:16]


def _is_intact(data: bytes, name: bytes) -> bool:
    return type(data) is bytes and _digest(data) == name


def _level(count: int) -> int:
    level = 0
    while count >= FANOUT:
        count //= FANOUT
        level += 1
    return level


def append_block(tx: Transaction, place: BlockScope, codec: Codec[B], block: B) -> None:
    """Add a block at the end; where that fills a level to `FANOUT`, or follows smaller blocks, merge them with it."""
    listed = list_blocks(tx, place)
    count = codec.size(block)
    taken, level = _to_merge(listed, count)
    older = listed[len(listed) - taken :]
    begin = listed[-1].first + listed[-1].turns if listed else 0
    if older:
        parts = [codec.decode(data) for data in read_data(tx, place, older)]
        block = codec.merge([*parts, block])
        tx.do(Delete(place.table, (*place.where, ("first", "in", tuple(entry.first for entry in older)))))
        begin, count = older[0].first, count + sum(entry.turns for entry in older)
    data = codec.encode(block)
    insert(tx, table(place.table), [place.row(begin, count, max(level, _level(count)), _digest(data), data)])


def _to_merge(listed: Sequence[Listed], count: int) -> tuple[int, int]:
    """Return how many of the last blocks to merge with a new one of this many turns, and the resulting level."""
    taken, level = 0, _level(count)
    while True:
        run = 0
        while run < len(listed) - taken and listed[-1 - taken - run].level < level:
            run += 1
        same = run
        while same < len(listed) - taken and listed[-1 - taken - same].level == level:
            same += 1
        if same - run < FANOUT - 1:
            return taken + run, level
        taken, level = taken + same, level + 1


def drop_from_blocks(tx: Transaction, place: BlockScope, codec: Codec[B], lost: Set[str]) -> int:
    """Rewrite, without these subjects, every block that holds one; returns how many blocks changed."""
    changed = 0
    for entry in list_blocks(tx, place):
        (data,) = read_data(tx, place, [entry])
        left = codec.drop(codec.decode(data), lost)
        if left is not None and codec.size(left) == entry.turns:
            continue
        changed += 1
        tx.do(Delete(place.table, (*place.where, ("first", "=", entry.first))))
        if left is not None:
            anew = codec.encode(left)
            row = place.row(entry.first, codec.size(left), entry.level, _digest(anew), anew)
            insert(tx, table(place.table), [row])
    return changed
