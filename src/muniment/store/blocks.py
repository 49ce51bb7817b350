"""Blocks of an index in storage: appended, merged as they grow, read through a cache, made anew by a forget.

A place (a table and the values that lead its key) holds blocks over consecutive numbers. Levels never rise from left to
right and no level has `FANOUT` blocks, so a place of n turns has about FANOUT · log(n) blocks and a turn is
rewritten log(n) times. A block never changes under its digest, so what was decoded once is kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence, Set
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from muniment.core.canonical import digest
from muniment.core.ports.engine import Condition, Delete, Find, Reader, Row, Select, Transaction
from muniment.core.ports.rows import chunked, insert, remove, select
from muniment.core.ports.schema import table
from muniment.errors import StoreDamaged

__all__ = [
    "BlockCache",
    "BlockScope",
    "Codec",
    "Listed",
    "append_block",
    "append_blocks",
    "drop_from_blocks",
    "list_blocks",
    "load_blocks",
    "read_blocks",
    "read_data",
    "read_state",
    "state_of",
]

FANOUT = 8
CACHE_BYTES_MAX = 256 * 1024 * 1024
WRITTEN_BYTES_MAX = 16 * 1024 * 1024
"""Blocks that were only written, and that nobody has asked for yet: a long import is not a reader."""

B = TypeVar("B")


class Codec(Protocol[B]):
    """What a kind of block can do. All pure."""

    def size(self, block: B) -> int: ...

    def weight(self, block: B) -> int:
        """The bytes it takes in memory, about."""
        ...

    def encode(self, block: B) -> bytes: ...

    def decode(self, data: bytes) -> B: ...

    def hold(self, block: B) -> B:
        """A block that was just made, as decoding what it was encoded to would give it."""
        ...

    def merge(self, blocks: Sequence[B]) -> B: ...

    def drop(self, block: B, lost: Set[str]) -> B | None: ...


class BlockScope(NamedTuple):
    """Where blocks of one kind and scope lie."""

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


Key = tuple[str, BlockScope, bytes]
"""A tenant, where a block lies, and its digest."""


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


class _BlockDigest(NamedTuple):
    digest: bytes


class _BlockData(NamedTuple):
    data: bytes


def list_blocks(reader: Reader, place: BlockScope) -> list[Listed]:
    """The blocks of a place, in order."""
    rows = select(reader, table(place.table), place.where, into=_BlockRow, order=place.order)
    return list(map(Listed._make, rows))


def read_data(reader: Reader, place: BlockScope, listed: Sequence[Listed]) -> list[bytes]:
    """The encoded blocks, each of which is what its digest says: a block that was altered points anywhere."""
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
    """What an encoded block is known by."""
    return digest(data)[:16]


def _is_intact(data: bytes, name: bytes) -> bool:
    return type(data) is bytes and _digest(data) == name


def _level(count: int) -> int:
    level = 0
    while count >= FANOUT:
        count //= FANOUT
        level += 1
    return level


def append_block(
    tx: Transaction, place: BlockScope, codec: Codec[B], block: B, kept: tuple[str, BlockCache[B]] | None = None
) -> None:
    """Add a block at the end; where that makes `FANOUT` of a level, or follows smaller ones, merge them with it.

    `kept` is a tenant and the cache that its searches look into: what was just written is often asked for next.
    """
    listed = list_blocks(tx, place)
    count = codec.size(block)
    taken, level = _to_merge(listed, count)
    older = listed[len(listed) - taken :]
    if older:
        parts = _taken(tx, place, codec, older, kept)
        block = codec.merge([*parts, block])
        firsts = tuple(entry.first for entry in older)
        tx.do(Delete(place.table, (*place.where, ("first", "in", firsts))))
    data = codec.encode(block)
    name = _digest(data)
    insert(tx, table(place.table), [place.row(*_placed(listed, older, count, level), name, data)])
    if kept is not None:
        tenant_id, cache = kept
        cache.offer((tenant_id, place, name), codec.hold(block))


def append_blocks(tx: Transaction, name: str, column: str, codec: Codec[B], blocks: Mapping[str, B]) -> None:
    """`append_block` for many places of one table, by the value of the one column that leads its key: what it asks and
    writes it asks and writes for all of them at once."""
    spec, by = table(name), (column, "first")
    listed: dict[str, list[Listed]] = {}
    for some in chunked(list(blocks)):
        where: tuple[Condition, ...] = ((column, "in", some),)
        for owner, *block_row in tx.do(Select(name, where, order=by, columns=(column, *_BlockRow._fields))):
            listed.setdefault(str(owner), []).append(Listed._make(block_row))
    plans = {owner: _to_merge(listed.get(owner, ()), codec.size(block)) for owner, block in blocks.items()}
    older = {owner: listed[owner][-taken:] for owner, (taken, _) in plans.items() if taken}
    keys = [(owner, entry.first) for owner, entries in older.items() for entry in entries]
    data = _data_of(tx, name, column, keys)
    rows: list[Row] = []
    for owner, block in blocks.items():
        place = BlockScope(name, ((column, owner),))
        before, merged, count = listed.get(owner, []), older.get(owner, []), codec.size(block)
        for entry in merged:
            if not _is_intact(data[owner, entry.first], entry.digest):
                raise _damaged(place, entry.first)
        if merged:
            block = codec.merge([*(codec.decode(data.pop((owner, entry.first))) for entry in merged), block])
        made = codec.encode(block)
        rows.append(place.row(*_placed(before, merged, count, plans[owner][1]), _digest(made), made))
    if keys:
        remove(tx, spec, by, keys)
    insert(tx, spec, rows)


def _data_of(reader: Reader, name: str, column: str, keys: Sequence[tuple[str, int]]) -> dict[Any, bytes]:
    """The encoded blocks with these keys, as they are."""
    found: dict[Any, bytes] = {}
    for some in chunked(keys):
        rows = reader.do(Find(name, (column, "first"), some, (column, "first", "data")))
        found |= {(owner, first): data for owner, first, data in rows}  # type: ignore[misc]
    return found


def _placed(listed: Sequence[Listed], older: Sequence[Listed], count: int, level: int) -> tuple[int, int, int]:
    """Where a block of so many turns begins that goes with the older ones behind those that are listed; how many turns
    it then has, and its level."""
    if older:
        count += sum(entry.turns for entry in older)
        return older[0].first, count, max(level, _level(count))
    return (listed[-1].first + listed[-1].turns if listed else 0), count, max(level, _level(count))


def _to_merge(listed: Sequence[Listed], count: int) -> tuple[int, int]:
    """How many of the last blocks go into one of so many turns that is put behind them, and the level it has then."""
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


def _taken(
    tx: Transaction,
    place: BlockScope,
    codec: Codec[B],
    older: Sequence[Listed],
    kept: tuple[str, BlockCache[B]] | None,
) -> list[B]:
    """Blocks that are to be merged: nobody asks for them again."""
    if kept is None:
        return [codec.decode(data) for data in read_data(tx, place, older)]
    tenant_id, cache = kept
    parts = load_blocks(tx, tenant_id, place, older, cache)
    cache.drop([(tenant_id, place, entry.digest) for entry in older])
    return parts


def drop_from_blocks(tx: Transaction, place: BlockScope, codec: Codec[B], lost: Set[str]) -> int:
    """Make anew, without these subjects, every block that holds one; answers how many blocks changed."""
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


class _RecentBlocks(Generic[B]):
    """Blocks up to a weight, the least recently used ones let go."""

    def __init__(self, bytes_max: int) -> None:
        self._max = bytes_max
        self.weight = 0
        """Of all that is on it."""
        self._blocks: OrderedDict[Key, tuple[B, int]] = OrderedDict()

    def put(self, key: Key, block: B, weight: int) -> None:
        self.take(key)
        self._blocks[key] = (block, weight)
        self.weight += weight
        while self.weight > self._max and len(self._blocks) > 1:
            self.take(next(iter(self._blocks)))

    def get(self, key: Key) -> B | None:
        found = self._blocks.get(key)
        if found is None:
            return None
        self._blocks.move_to_end(key)
        return found[0]

    def take(self, key: Key) -> tuple[B, int] | None:
        found = self._blocks.pop(key, None)
        if found is not None:
            self.weight -= found[1]
        return found


class BlockCache(Generic[B]):
    """Decoded blocks by their digest: those that were asked for, and fewer of those just written. Thread-safe."""

    def __init__(self, codec: Codec[B], bytes_max: int = CACHE_BYTES_MAX, written_max: int = WRITTEN_BYTES_MAX) -> None:
        self.codec = codec
        self._max, self._written_max = bytes_max, written_max
        self._lock = threading.Lock()
        self.clear()

    def get(self, key: Key) -> B | None:
        with self._lock:
            found = self._written.take(key)
            if found is None:
                return self._asked.get(key)
            self._asked.put(key, *found)
            return found[0]

    def put(self, key: Key, block: B) -> None:
        weight = self.codec.weight(block)
        with self._lock:
            self._asked.put(key, block, weight)

    def offer(self, key: Key, block: B) -> None:
        """Keep a block that nobody has asked for yet, for a while."""
        weight = self.codec.weight(block)
        with self._lock:
            self._written.put(key, block, weight)

    def drop(self, keys: Sequence[Key]) -> None:
        with self._lock:
            for key in keys:
                self._asked.take(key)
                self._written.take(key)

    @property
    def held(self) -> tuple[int, int]:
        """The weight of what was asked for, and of what was only written."""
        return self._asked.weight, self._written.weight

    def clear(self) -> None:
        """After a forget: nothing that was decoded stays in memory."""
        with self._lock:
            self._asked: _RecentBlocks[B] = _RecentBlocks(self._max)
            self._written: _RecentBlocks[B] = _RecentBlocks(self._written_max)


def read_blocks(
    reader: Reader, tenant_id: str, place: BlockScope, cache: BlockCache[B]
) -> tuple[tuple[bytes, ...], list[B]]:
    """The blocks of a place in order, and their digests, which together say which state of the index this is."""
    listed = list_blocks(reader, place)
    return state_of(listed), load_blocks(reader, tenant_id, place, listed, cache)


def state_of(listed: Sequence[Listed]) -> tuple[bytes, ...]:
    """Which state of the index these blocks are: equal states hold equal blocks."""
    return tuple([entry.digest for entry in listed])


def read_state(reader: Reader, place: BlockScope) -> tuple[bytes, ...]:
    """`state_of` the blocks of a place, of which nothing else is asked."""
    rows = select(reader, table(place.table), place.where, into=_BlockDigest, order=place.order)
    return tuple([row.digest for row in rows])


def load_blocks(
    reader: Reader, tenant_id: str, place: BlockScope, listed: Sequence[Listed], cache: BlockCache[B]
) -> list[B]:
    """The listed blocks, in order; only those that the cache does not hold are read."""
    blocks: dict[int, B] = {}
    missing: list[Listed] = []
    for entry in listed:
        block = cache.get((tenant_id, place, entry.digest))
        if block is None:
            missing.append(entry)
        else:
            blocks[entry.first] = block
    if missing:
        for entry, data in zip(missing, read_data(reader, place, missing), strict=True):
            block = cache.codec.decode(data)
            cache.put((tenant_id, place, entry.digest), block)
            blocks[entry.first] = block
    return [blocks[entry.first] for entry in listed]
