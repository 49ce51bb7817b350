"""Vectors of turns: written with them, bound to the embedder that made them, never mixed with another's.

A user's turns take part in dense search only when every one of them has a vector of the present embedder; until then
search is by words alone. `reembed` gets there after an embedder was changed or added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.ports.engine import Condition, Delete, Lock, Reader, Transaction
from muniment.core.ports.models import Embedder
from muniment.core.ports.rows import stream, texts
from muniment.core.ports.schema import ENTRIES, table
from muniment.memory.recall.index import StoredIndex
from muniment.memory.recall.score import Dense
from muniment.memory.recall.vectors import (
    VectorBlock,
    decode_vectors,
    drop_vectors,
    encode_vectors,
    merge_vectors,
    to_single,
)
from muniment.memory.results.tool_text import speaker_told
from muniment.store.blocks import BlockCache, BlockScope, append_block, drop_from_blocks, read_blocks
from muniment.store.ledger.rows import entry_of_row
from muniment.store.turns import is_turn, text_of

__all__ = [
    "VECTORS",
    "VectorCache",
    "add_vectors",
    "dense_for",
    "embed_turns",
    "lacking",
    "remove_vectors",
    "retire_vectors",
    "vectors_of",
]

WRITTEN_BYTES_MAX = 128 * 1024 * 1024
"""Vectors that were only written, and that nobody has asked for yet: 100,000 turns of 256 numbers."""
TEXT_CHARS_MAX = 2_000
"""Characters of a turn that are embedded: of a longer one, its start."""
BATCH = 256

Progress = Callable[[int], None]


class VectorCodec:
    """Vectors as blocks."""

    def size(self, block: VectorBlock) -> int:
        return len(block)

    def weight(self, block: VectorBlock) -> int:
        return block.nbytes

    def encode(self, block: VectorBlock) -> bytes:
        return encode_vectors(block)

    def decode(self, data: bytes) -> VectorBlock:
        return decode_vectors(data)

    def hold(self, block: VectorBlock) -> VectorBlock:
        return block if block.rows.dtype == np.float32 else VectorBlock(block.ids, to_single(block.rows))

    def merge(self, blocks: Sequence[VectorBlock]) -> VectorBlock:
        return merge_vectors(blocks)

    def drop(self, block: VectorBlock, lost: Set[str]) -> VectorBlock | None:
        return drop_vectors(block, lost)


VECTORS = VectorCodec()


class VectorCache(BlockCache[VectorBlock]):
    """Decoded vectors, kept likewise."""

    def __init__(self) -> None:
        super().__init__(VECTORS, written_max=WRITTEN_BYTES_MAX)


def vectors_of(user_id: str, identity: str) -> BlockScope:
    return BlockScope("vectors", (("user_id", user_id), ("embedder", identity)))


def embed_turns(embedder: Embedder, turns: Sequence[tuple[str, str]]) -> npt.NDArray[np.float16]:
    """Vectors of (speaker, text). Who speaks is part of what is embedded: it tells more than a better model does."""
    said = [f'{speaker} said: "{text[:TEXT_CHARS_MAX]}"' for speaker, text in turns]
    return embedder.embed(said).astype(np.float16)


def add_vectors(
    tx: Transaction,
    user_id: str,
    embedder: Embedder,
    ids: Sequence[str],
    rows: npt.NDArray[np.float16],
    kept: tuple[str, BlockCache[VectorBlock]] | None = None,
) -> None:
    """Keep the vectors of turns, in the transaction that writes them."""
    if ids:
        tx.do(Lock(("index", user_id)))
        block = VectorBlock(tuple(ids), rows)
        append_block(tx, vectors_of(user_id, embedder.identity), VECTORS, block, kept)


def remove_vectors(tx: Transaction, users: Sequence[str], lost: Set[str]) -> int:
    """Forgotten turns have no vectors, of whatever embedder."""
    changed = 0
    for user_id in users:
        for identity in _identities(tx, user_id):
            changed += drop_from_blocks(tx, vectors_of(user_id, identity), VECTORS, lost)
    return changed


def _identities(reader: Reader, user_id: str) -> list[str]:
    where: tuple[Condition, ...] = (("user_id", "=", user_id),)
    return sorted(set(texts(reader, table("vectors"), "embedder", where)))


def retire_vectors(tx: Transaction, user_id: str, identity: str) -> None:
    """Let go of the vectors of every other embedder."""
    for other in _identities(tx, user_id):
        if other != identity:
            tx.do(Delete("vectors", (("user_id", "=", user_id), ("embedder", "=", other))))


def dense_for(
    reader: Reader,
    tenant_id: str,
    user_id: str,
    index: StoredIndex,
    embedder: Embedder,
    cache: BlockCache[VectorBlock],
    query: str,
) -> Dense | None:
    """How near each turn is to the query in meaning; None where some turn has no vector of this embedder."""
    state, blocks = read_blocks(reader, tenant_id, vectors_of(user_id, embedder.identity), cache)
    if not query.strip() or sum(map(len, blocks)) < len(index) or not len(index):
        return None
    places = index.aligned(state, [block.ids for block in blocks])
    if places is None:
        return None
    asked = embedder.embed([query[:TEXT_CHARS_MAX]])[0]
    near = [_nearness(block.rows, asked) for block in blocks]
    exact: npt.NDArray[np.float64] = (near[0] if len(near) == 1 else np.concatenate(near))[places].astype(np.float64)
    turn = exact.round(6)  # the last bits depend on the machine
    return Dense(turn=turn, window=_window(turn, index))


def _nearness(rows: npt.NDArray[np.floating], asked: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The product of each row with what is asked, summed in an order that is the same wherever the row lies.

    Not by `@`: there it depends on the rows beside it, and on how many threads a BLAS library takes.
    """
    products: npt.NDArray[np.floating] = np.einsum("ij,j->i", rows, asked)
    return products


class _Windows(NamedTuple):
    """Which turns stand in one window; arrays of 1.0 and 0.0."""

    one: npt.NDArray[np.float64]
    """Whether the next turn is of the same session."""
    two: npt.NDArray[np.float64]
    """Whether the turn after the next is of the same session."""
    sizes: npt.NDArray[np.float64]
    """Of the window of each turn."""


def _windows(session: npt.NDArray[np.integer]) -> _Windows:
    one = np.equal(session[1:], session[:-1]).astype(np.float64)
    two = np.equal(session[2:], session[:-2]).astype(np.float64)
    sizes = np.ones(len(session))
    sizes[1:] += one
    sizes[:-1] += one
    sizes[:-2] += two
    return _Windows(one, two, sizes)


def _window(turn: npt.NDArray[np.float64], index: StoredIndex) -> npt.NDArray[np.float64]:
    """The mean nearness of a turn, the one before it and the two behind it, as far as they are of its session."""
    one, two, sizes = index.kept("windows", lambda: _windows(index.session))
    total = np.zeros(len(turn))
    total[1:] = turn[:-1] * one
    total += turn
    total[:-1] += turn[1:] * one
    total[:-2] += turn[2:] * two
    total /= sizes
    return total


def lacking(reader: Reader, tenant_id: str, user_id: str, identity: str) -> Iterator[list[tuple[str, str, str]]]:
    """Batches of (id, speaker, text) of the turns that have no vector of this embedder yet."""
    _, blocks = read_blocks(reader, tenant_id, vectors_of(user_id, identity), BlockCache(VECTORS))
    have = {id_ for block in blocks for id_ in block.ids}
    held: list[tuple[str, str, str]] = []
    order = ("user_id", "session_id", "seq")
    for row in stream(reader, ENTRIES, (("user_id", "=", user_id),), order=order):
        entry = entry_of_row(tenant_id, row)
        if is_turn(entry) and entry.id not in have:
            body = {} if entry.body is None else entry.body.to_wire()
            held.append((entry.id, speaker_told(body, entry.role), text_of(reader, entry)))
        if len(held) >= BATCH:
            yield held
            held = []
    if held:
        yield held
