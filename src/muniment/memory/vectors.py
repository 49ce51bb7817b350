"""Vectors of turns: bound to the embedder that made them, never mixed with another's.

They are made after the write: `users.embedded` is the ledger position up to which a user's turns have vectors, indexed
or not. A turn without a vector is ranked by its words, with the mean nearness of the others. Search is exact, in single
precision; blocks hold half precision.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.canonical import canonical_bytes
from muniment.core.limits import checkpoint, drop_tenant
from muniment.core.ports.engine import Condition, Delete, Patch
from muniment.core.ports.rows import stream, texts
from muniment.core.ports.schema import USERS, UserRow, table
from muniment.errors import IntegrityFailure, InvalidInput
from muniment.memory.index import follow, read_turns
from muniment.memory.scoring import Dense
from muniment.memory.tool_results import speaker_told
from muniment.memory.turn_reading import entries_by_id
from muniment.store.blocks import BlockScope, append_block, drop_from_blocks, list_blocks, read_data
from muniment.store.watermark import lock_user, read_user

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.ports.models import Embedder
    from muniment.memory._index import StoredIndex
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = [
    "VectorBlock",
    "VectorCache",
    "decode_vectors",
    "dense_for",
    "embed_behind",
    "encode_vectors",
    "mean_of_windows",
    "passage_of",
    "reembed",
    "remove_vectors",
    "to_single",
    "users_unembedded",
    "vectors_of",
    "windows_of",
]

TEXT_CHARS_MAX = 8_192
"""Characters embedded of a turn: the start of a longer one."""
PIECE_ENTRIES = 256
"""Entries whose vectors are stored per transaction."""
HELD_BYTES_MAX = 256 * 1024 * 1024
"""Bytes of vectors cached for searches, for all users together; one user alone may exceed it."""
CHUNKS_MAX = 32

Halves = npt.NDArray[np.float16]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Key = tuple[str, str, str]
"""A tenant, a user, and the identity of an embedder."""


# -- embedding ----------------------------------------------------------------------------------------


def passage_of(speaker: str, text: str) -> str:
    """The embedded text of a turn. It includes the speaker, which helps more than a better model."""
    return f'{speaker} said: "{text[:TEXT_CHARS_MAX]}"'


def embed_behind(ctx: Context, embedder: Embedder, tenant_id: str, user_id: str, entries_max: int | None = None) -> int:
    """Store the vectors of the entries behind a user's watermark, a piece per transaction; return the number of turns.

    With `entries_max`, only if at most that many entries lack vectors: an embedder added to a long history is left to
    upkeep and to `reembed`.
    """
    done = 0
    while True:
        user = ctx.engine.read(tenant_id, partial(read_user, user_id=user_id))
        last = min(user.tail, user.embedded + PIECE_ENTRIES)
        if last <= user.embedded or (entries_max is not None and user.tail - user.embedded > entries_max):
            return done
        said = ctx.engine.read(tenant_id, partial(_read_piece, tenant_id, user, last))
        block = _embed_turns(embedder, said)
        if not ctx.engine.write(tenant_id, partial(_keep_piece, user, last, embedder.identity, block)):
            return done  # another process is doing it
        done += len(block)


def _read_piece(tenant_id: str, user: UserRow, last: int, reader: Reader) -> list[tuple[LedgerEntry, str]]:
    return list(read_turns(reader, tenant_id, user.user_id, user.embedded, last))


def _embed_turns(embedder: Embedder, said: Sequence[tuple[LedgerEntry, str]]) -> VectorBlock:
    """Embed each turn from its entry and text."""
    checkpoint()
    rows = embedder.embed_passages([passage_of(_speaker(entry), text) for entry, text in said])
    return VectorBlock(tuple(entry.id for entry, _ in said), rows.astype(np.float16))


def _speaker(entry: LedgerEntry) -> str:
    return speaker_told({} if entry.body is None else entry.body.to_wire(), entry.role)


def _keep_piece(user: UserRow, last: int, identity: str, block: VectorBlock, tx: Transaction) -> bool:
    now = lock_user(tx, user.user_id)
    if (now.embedded, now.generation) != (user.embedded, user.generation):
        return False
    _add_vectors(tx, user.user_id, identity, block)
    tx.do(Patch("users", (("user_id", "=", user.user_id),), {"embedded": last}))
    return True


def users_unembedded(reader: Reader) -> list[str]:
    """The users of a tenant with entries not yet embedded."""
    return [user.user_id for user in stream(reader, USERS) if user.embedded < user.tail]


# -- another embedder ---------------------------------------------------------------------------------


def reembed(ctx: Context, tenant_id: str, progress: Callable[[int], None] | None = None) -> int:
    """Embed each turn that lacks a vector of the current embedder, then drop those of others; return the number.

    It can be stopped and resumed at any time; completed work is kept.
    """
    embedder = ctx.embedder
    if embedder is None:
        raise InvalidInput("this store was opened without an embedder", path="$.embedder", hint="open(..., embedder=…)")
    users = ctx.engine.read(tenant_id, lambda reader: [user.user_id for user in stream(reader, USERS)])
    return sum(_reembed_user(ctx, embedder, tenant_id, user_id, progress) for user_id in sorted(users))


def _reembed_user(
    ctx: Context, embedder: Embedder, tenant_id: str, user_id: str, progress: Callable[[int], None] | None
) -> int:
    follow(ctx, tenant_id, user_id, embeds=False)
    done = 0
    with ctx.engine.snapshot(tenant_id) as view:
        indexed = read_user(view, user_id).indexed
        for said in _lacking(view, tenant_id, user_id, embedder.identity, indexed):
            block = _embed_turns(embedder, said)
            done += ctx.engine.write(tenant_id, partial(_keep_lacking, tenant_id, user_id, embedder.identity, block))
            if progress is not None:
                progress(len(said))
    ctx.engine.write(tenant_id, partial(_retire, user_id, embedder.identity, indexed))
    return done + embed_behind(ctx, embedder, tenant_id, user_id)


def _lacking(
    reader: Reader, tenant_id: str, user_id: str, identity: str, indexed: int
) -> Iterator[list[tuple[LedgerEntry, str]]]:
    """Batches of the indexed turns without a vector of this embedder."""
    have = {id_ for block in _read_stored(reader, user_id, identity) for id_ in block.ids}
    held: list[tuple[LedgerEntry, str]] = []
    for entry, text in read_turns(reader, tenant_id, user_id, 0, indexed):
        if entry.id not in have:
            held.append((entry, text))
        if len(held) >= PIECE_ENTRIES:
            yield held
            held = []
    if held:
        yield held


def _keep_lacking(tenant_id: str, user_id: str, identity: str, block: VectorBlock, tx: Transaction) -> int:
    """Store the vectors of those that are still turns and still lack one, as others may have forgotten or embedded them
    meanwhile. Returns the number.
    """
    lock_user(tx, user_id)
    have = {id_ for held in _read_stored(tx, user_id, identity) for id_ in held.ids}
    alive = {entry.id for entry in entries_by_id(tx, tenant_id, block.ids) if entry.body is not None}
    places = [place for place, id_ in enumerate(block.ids) if id_ in alive and id_ not in have]
    _add_vectors(tx, user_id, identity, VectorBlock(tuple(block.ids[place] for place in places), block.rows[places]))
    return len(places)


def _retire(user_id: str, identity: str, indexed: int, tx: Transaction) -> None:
    """Drop the vectors of every other embedder, once those of this one cover everything indexed."""
    user = lock_user(tx, user_id)
    for other in _identities(tx, user_id):
        if other != identity:
            tx.do(Delete("vectors", (("user_id", "=", user_id), ("embedder", "=", other))))
    moved = {"embedded": max(user.embedded, indexed), "generation": user.generation + 1}  # invalidates cached vectors
    tx.do(Patch("users", (("user_id", "=", user_id),), moved))


# -- in storage ---------------------------------------------------------------------------------------

_MAGIC = b"MVEC1\n"


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """Unit vectors, one row per id. Every value fits half precision, regardless of the array's precision."""

    ids: tuple[str, ...]
    rows: npt.NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.ids)


def merge_vectors(blocks: Sequence[VectorBlock]) -> VectorBlock:
    if len(dims := {block.rows.shape[1] for block in blocks}) > 1:
        raise InvalidInput(
            f"vectors of {' and '.join(map(str, sorted(dims)))} numbers have one embedder's identity",
            path="$.embedder.identity",
            hint="give each embedder an identity of its own, then reembed",
        )
    return VectorBlock(
        tuple(id_ for block in blocks for id_ in block.ids), np.concatenate([block.rows for block in blocks])
    )


def drop_vectors(block: VectorBlock, lost: Set[str]) -> VectorBlock | None:
    kept = [number for number, id_ in enumerate(block.ids) if id_ not in lost]
    return VectorBlock(tuple(block.ids[number] for number in kept), block.rows[kept]) if kept else None


def encode_vectors(block: VectorBlock) -> bytes:
    head = canonical_bytes({"ids": block.ids, "dim": block.rows.shape[1]})
    return b"".join([_MAGIC, len(head).to_bytes(4, "little"), head, np.ascontiguousarray(block.rows, "<f2").tobytes()])


def decode_vectors(data: bytes) -> VectorBlock:
    if not data.startswith(_MAGIC):
        raise IntegrityFailure("not a block of vectors", hint="run `muniment rebuild`")
    start = len(_MAGIC) + 4
    end = start + int.from_bytes(data[len(_MAGIC) : start], "little")
    try:
        head = json.loads(data[start:end])  # our own bytes, as in a segment
    except ValueError:
        raise IntegrityFailure("a block of vectors is damaged", hint="run `muniment rebuild`") from None
    rows = to_single(np.frombuffer(data, "<f2", -1, end))
    return VectorBlock(tuple(head["ids"]), rows.reshape(len(head["ids"]), head["dim"]))


_SIGN_AND_DIGITS = np.uint32(0x8FFFE000).view(np.int32)
_EXPONENTS_APART = np.float32(2.0**112)
"""The difference of the exponent biases: 127 for single, 15 for half precision."""
_HALF_END = 65536.0


def to_single(halves: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Convert half to single precision by bit operations: the same values as a cast, six times faster."""
    bits = halves.view(np.int16).astype(np.int32)  # the sign fills the upper half
    bits <<= 13
    bits &= _SIGN_AND_DIGITS
    singles = bits.view(np.float32)
    singles *= _EXPONENTS_APART
    if singles.max(initial=0) >= _HALF_END or singles.min(initial=0) <= -_HALF_END:  # not finite
        return halves.astype(np.float32)
    return singles


class VectorCodec:
    """Vectors as blocks."""

    def size(self, block: VectorBlock) -> int:
        return len(block)

    def encode(self, block: VectorBlock) -> bytes:
        return encode_vectors(block)

    def decode(self, data: bytes) -> VectorBlock:
        return decode_vectors(data)

    def merge(self, blocks: Sequence[VectorBlock]) -> VectorBlock:
        return merge_vectors(blocks)

    def drop(self, block: VectorBlock, lost: Set[str]) -> VectorBlock | None:
        return drop_vectors(block, lost)


CODEC = VectorCodec()


def vectors_of(user_id: str, identity: str) -> BlockScope:
    return BlockScope("vectors", (("user_id", user_id), ("embedder", identity)))


def _add_vectors(tx: Transaction, user_id: str, identity: str, block: VectorBlock) -> None:
    """Append the vectors of turns."""
    if block.ids:
        append_block(tx, vectors_of(user_id, identity), CODEC, block)


def remove_vectors(tx: Transaction, user_id: str, lost: Set[str]) -> int:
    """Remove forgotten turns from the vectors of every embedder; return the number of blocks rewritten."""
    return sum(
        drop_from_blocks(tx, vectors_of(user_id, identity), CODEC, lost) for identity in _identities(tx, user_id)
    )


def _identities(reader: Reader, user_id: str) -> list[str]:
    where: tuple[Condition, ...] = (("user_id", "=", user_id),)
    return sorted(set(texts(reader, table("vectors"), "embedder", where)))


def _read_stored(reader: Reader, user_id: str, identity: str) -> list[VectorBlock]:
    place = vectors_of(user_id, identity)
    return [decode_vectors(data) for data in read_data(reader, place, list_blocks(reader, place))]


# -- searching ----------------------------------------------------------------------------------------


class _HeldVectors(NamedTuple):
    """A user's cached vectors."""

    generation: int
    embedded: int
    """The user's watermark when they were read; there was nothing new after it."""
    blocks: frozenset[bytes]
    """The digests of the blocks that were fully read."""
    numbers: dict[str, int]
    """The write-order number of each turn of the index."""
    known: npt.NDArray[np.bool_]
    """Mask of turns with a vector, by number."""
    chunks: tuple[tuple[Ints, Singles], ...]
    """Turn numbers, and the row of each."""

    @property
    def nbytes(self) -> int:
        return sum(rows.nbytes for _, rows in self.chunks)

    def with_rows(self, numbers: Ints, rows: Singles) -> _HeldVectors:
        chunks = (*self.chunks, (numbers, rows))
        if len(chunks) > CHUNKS_MAX:
            chunks = (chunks[0], _joined(chunks[1:]))
        if len(chunks) == 2 and len(chunks[1][0]) * CHUNKS_MAX > len(chunks[0][0]):
            chunks = (_joined(chunks),)
        known = self.known.copy()
        known[numbers] = True
        return self._replace(chunks=chunks, known=known)


def _joined(chunks: Sequence[tuple[Ints, Singles]]) -> tuple[Ints, Singles]:
    return np.concatenate([numbers for numbers, _ in chunks]), np.concatenate([rows for _, rows in chunks])


class VectorCache:
    """Vectors by tenant, user and embedder, evicted least recently used first. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[Key, _HeldVectors] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> _HeldVectors | None:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: Key, held: _HeldVectors) -> None:
        with self._lock:
            self._held[key] = held
            self._held.move_to_end(key)
            total = sum(each.nbytes for each in self._held.values())
            while len(self._held) > 1 and total > HELD_BYTES_MAX:
                total -= self._held.popitem(last=False)[1].nbytes

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)


def dense_for(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, index: StoredIndex, embedder: Embedder, query: str
) -> Dense | None:
    """The nearness of each turn to the query in meaning; None if no turn has a vector of this embedder."""
    if not query.strip() or not len(index):
        return None
    held = _vectors_for(ctx, reader, tenant_id, user_id, index, embedder)
    if not held.chunks:
        return None
    asked = embedder.embed_queries([query[:TEXT_CHARS_MAX]])[0]
    near = np.zeros(index.written)
    for numbers, rows in held.chunks:
        near[numbers] = _nearness(rows, asked)
    turn = near.round(6)[index.written_order]  # the last bits depend on the machine
    known = None if held.known.all() else held.known[index.written_order]
    if known is not None:
        if not known.any():
            return None
        turn[~known] = float(turn[known].mean())
    window = mean_of_windows(turn, index.kept("windows", lambda: windows_of(index.session)))
    return Dense(turn, window, known)


def _vectors_for(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, index: StoredIndex, embedder: Embedder
) -> _HeldVectors:
    """The existing vectors of an index's turns. Cached ones are not read again: only blocks added since, and the new
    rows of merged blocks.
    """
    user = read_user(reader, user_id)
    ctx.note_vectors(tenant_id, user)
    cache, key = ctx.cache(VectorCache), (tenant_id, user_id, embedder.identity)
    held = cache.get(key)
    if held is None or held.generation != user.generation or len(held.known) > index.written:
        held = _HeldVectors(user.generation, 0, frozenset(), {}, np.zeros(0, bool), ())
    start = len(held.known)
    if index.written > start:
        numbers = held.numbers | {id_: start + at for at, id_ in enumerate(index.written_ids(start))}
        known = np.concatenate((held.known, np.zeros(index.written - start, bool)))
        held = held._replace(numbers=numbers, known=known)
    elif held.embedded == user.embedded:
        return held
    if held.embedded < user.embedded:
        held = _read_fresh(reader, vectors_of(user_id, embedder.identity), embedder.dim, held)
        held = held._replace(embedded=user.embedded)
    cache.put(key, held)
    return held


def _read_fresh(reader: Reader, place: BlockScope, dim: int, held: _HeldVectors) -> _HeldVectors:
    """The cached vectors plus those of unknown blocks."""
    listed = list_blocks(reader, place)
    fresh = [entry for entry in listed if entry.digest not in held.blocks]
    whole = {entry.digest for entry in listed} & held.blocks
    for entry, data in zip(fresh, read_data(reader, place, fresh), strict=True):
        block = decode_vectors(data)
        if block.rows.shape[1] != dim:
            continue
        numbers = [held.numbers.get(id_, -1) for id_ in block.ids]
        rows = [row for row, number in enumerate(numbers) if number >= 0 and not held.known[number]]
        if -1 not in numbers:
            whole.add(entry.digest)
        if rows:
            held = held.with_rows(np.array(numbers)[rows], block.rows[rows])
    return held._replace(blocks=frozenset(whole))


def _nearness(rows: npt.NDArray[np.floating], asked: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The product of each row with the query, summed in an order independent of the row's position.

    Not by `@`: its result depends on neighbouring rows and on the number of BLAS threads.
    """
    products: npt.NDArray[np.floating] = np.einsum("ij,j->i", rows, asked)
    return products


class _Windows(NamedTuple):
    """The turns that share a window; arrays of 1.0 and 0.0."""

    one: npt.NDArray[np.float64]
    """1.0 if the next turn is in the same session."""
    two: npt.NDArray[np.float64]
    """1.0 if the turn after the next is in the same session."""
    sizes: npt.NDArray[np.float64]
    """The window size of each turn."""


def windows_of(session: npt.NDArray[np.integer]) -> _Windows:
    """The windows of these sessions' turns."""
    one = np.equal(session[1:], session[:-1]).astype(np.float64)
    two = np.equal(session[2:], session[:-2]).astype(np.float64)
    sizes = np.ones(len(session))
    sizes[1:] += one
    sizes[:-1] += one
    sizes[:-2] += two
    return _Windows(one, two, sizes)


def mean_of_windows(turn: npt.NDArray[np.float64], windows: _Windows) -> npt.NDArray[np.float64]:
    """The mean nearness of a turn, the one before it and the two after it, within its session."""
    one, two, sizes = windows
    total = np.zeros(len(turn))
    total[1:] = turn[:-1] * one
    total += turn
    total[:-1] += turn[1:] * one
    total[:-2] += turn[2:] * two
    total /= sizes
    return total
