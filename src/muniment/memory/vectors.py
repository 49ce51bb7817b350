"""Vectors of turns: bound to the embedder that made them, never mixed with another's.

They are stored with the index (`memory.index`): `users.embedded` says how many of a user's entries they cover. Where
they lag behind the words, since an embedder was added or failed, search is by words alone until `embed_behind` or
`reembed` has caught up; the same where some turn has no vector of the present embedder. Turns behind the watermark are
embedded when a search needs them, and kept for the transaction that stores them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.limits import checkpoint, drop_tenant
from muniment.core.ports.engine import Condition, Delete, Patch
from muniment.core.ports.rows import chunked, stream, texts
from muniment.core.ports.schema import USERS, UserRow, table
from muniment.errors import InvalidInput
from muniment.memory._vector_blocks import (
    VectorBlock,
    decode_vectors,
    drop_vectors,
    encode_vectors,
    merge_vectors,
    to_single,
)
from muniment.memory.index import PIECE_ENTRIES, follow, read_turns
from muniment.memory.results.tool_text import speaker_told
from muniment.memory.scoring import Dense
from muniment.memory.turn_reading import entries_by_id
from muniment.store.blocks import BlockScope, append_block, drop_from_blocks, list_blocks, read_data
from muniment.store.turns import is_turn, text_of
from muniment.store.watermark import lock_user, read_user

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.ports.models import Embedder
    from muniment.memory._index import StoredIndex
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = [
    "EmbeddedTurns",
    "VectorCache",
    "add_vectors",
    "dense_for",
    "embed_behind",
    "embed_entries",
    "embed_turns",
    "mean_of_windows",
    "passage_of",
    "reembed",
    "remove_vectors",
    "users_unembedded",
    "vectors_of",
    "windows_of",
]

TEXT_CHARS_MAX = 8_192
"""Characters of a turn that are embedded: of a longer one, its start."""
BATCH = 256
HELD_BYTES_MAX = 256 * 1024 * 1024
"""Vectors that a process holds for its searches, of all users together; of one user alone there may be more."""
FRESH_MAX = 8_192
"""Vectors of turns behind the watermark that a process holds."""
CHUNKS_MAX = 32

Halves = npt.NDArray[np.float16]
Singles = npt.NDArray[np.float32]
Key = tuple[str, str, str]
"""A tenant, a user, and the identity of an embedder."""


# -- embedding ----------------------------------------------------------------------------------------


def embed_turns(embedder: Embedder, turns: Sequence[tuple[str, str]]) -> Halves:
    """Vectors of (speaker, text)."""
    return embedder.embed_passages([passage_of(*turn) for turn in turns]).astype(np.float16)


def passage_of(speaker: str, text: str) -> str:
    """What is embedded of a turn. Who speaks is part of it: that brings more than a better model does."""
    return f'{speaker} said: "{text[:TEXT_CHARS_MAX]}"'


class EmbeddedTurns:
    """Vectors of turns that may not be stored yet, by tenant, user, embedder and turn; the oldest are let go.
    Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[Key, str], Halves] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, ids: Sequence[str]) -> dict[str, Halves]:
        with self._lock:
            return {id_: self._held[key, id_] for id_ in ids if (key, id_) in self._held}

    def put(self, key: Key, ids: Sequence[str], rows: Halves) -> None:
        with self._lock:
            for id_, row in zip(ids, rows, strict=True):
                self._held[key, id_] = row
            while len(self._held) > FRESH_MAX:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            for held in [held for held in self._held if tenant_id in (None, held[0][0])]:
                del self._held[held]


def embed_entries(
    ctx: Context, embedder: Embedder, tenant_id: str, user_id: str, said: Sequence[tuple[LedgerEntry, str]]
) -> Halves:
    """One vector for each turn, from its entry and its text; what a search has embedded already is not asked again."""
    key, cache = (tenant_id, user_id, embedder.identity), ctx.cache(EmbeddedTurns)
    found = cache.get(key, [entry.id for entry, _ in said])
    for portion in chunked([each for each in said if each[0].id not in found], BATCH):
        checkpoint()
        ids = [entry.id for entry, _ in portion]
        rows = embed_turns(embedder, [(_speaker(entry), text) for entry, text in portion])
        cache.put(key, ids, rows)
        found |= dict(zip(ids, rows, strict=True))
    return np.stack([found[entry.id] for entry, _ in said]) if said else np.empty((0, embedder.dim), np.float16)


def _speaker(entry: LedgerEntry) -> str:
    return speaker_told({} if entry.body is None else entry.body.to_wire(), entry.role)


# -- in storage ---------------------------------------------------------------------------------------


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


def add_vectors(tx: Transaction, user_id: str, identity: str, ids: Sequence[str], rows: Halves) -> None:
    """Store the vectors of turns behind those that are there."""
    if ids:
        append_block(tx, vectors_of(user_id, identity), CODEC, VectorBlock(tuple(ids), rows))


def remove_vectors(tx: Transaction, user_id: str, lost: Set[str]) -> int:
    """Take forgotten turns out of the vectors of every embedder; answers how many blocks were made anew."""
    return sum(
        drop_from_blocks(tx, vectors_of(user_id, identity), CODEC, lost) for identity in _identities(tx, user_id)
    )


def _identities(reader: Reader, user_id: str) -> list[str]:
    where: tuple[Condition, ...] = (("user_id", "=", user_id),)
    return sorted(set(texts(reader, table("vectors"), "embedder", where)))


def _read_stored(reader: Reader, user_id: str, identity: str) -> list[VectorBlock]:
    place = vectors_of(user_id, identity)
    return [decode_vectors(data) for data in read_data(reader, place, list_blocks(reader, place))]


def users_unembedded(reader: Reader) -> list[str]:
    """The users of a tenant whose words are in the index and whose vectors are not."""
    return [user.user_id for user in stream(reader, USERS) if user.embedded < user.indexed]


def embed_behind(
    ctx: Context, embedder: Embedder, tenant_id: str, user_id: str, entries_max: int | None = None
) -> None:
    """Store the vectors of entries that were indexed without them, a piece in each transaction.

    With `entries_max`, only where no more entries than that lack theirs: an embedder that was added to a long history
    is left to upkeep and to `reembed`.
    """
    while True:
        user = ctx.engine.read(tenant_id, partial(read_user, user_id=user_id))
        last = min(user.indexed, user.embedded + PIECE_ENTRIES)
        if last <= user.embedded or (entries_max is not None and user.indexed - user.embedded > entries_max):
            return
        said = ctx.engine.read(
            tenant_id,
            lambda reader, user=user, last=last: list(  # type: ignore[misc]
                read_turns(reader, tenant_id, user_id, user.embedded, last)
            ),
        )
        rows = embed_entries(ctx, embedder, tenant_id, user_id, said)
        block = VectorBlock(tuple(entry.id for entry, _ in said), rows)
        if not ctx.engine.write(tenant_id, partial(_keep_piece, user, last, embedder.identity, block)):
            return  # another process is at it


def _keep_piece(user: UserRow, last: int, identity: str, block: VectorBlock, tx: Transaction) -> bool:
    now = lock_user(tx, user.user_id)
    if (now.embedded, now.generation) != (user.embedded, user.generation):
        return False
    add_vectors(tx, user.user_id, identity, block.ids, block.rows)
    tx.do(Patch("users", (("user_id", "=", user.user_id),), {"embedded": last}))
    return True


def reembed(ctx: Context, tenant_id: str, progress: Callable[[int], None] | None = None) -> int:
    """Give each turn that lacks one a vector of the present embedder, then let go of the others'; answers how many.

    It can be stopped and run again at any time: what is done stays done. Until all turns of a user are there, search is
    by words alone.
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
            rows = embed_entries(ctx, embedder, tenant_id, user_id, said)
            block = VectorBlock(tuple(entry.id for entry, _ in said), rows)
            done += ctx.engine.write(tenant_id, partial(_keep_lacking, tenant_id, user_id, embedder.identity, block))
            if progress is not None:
                progress(len(said))
    ctx.engine.write(tenant_id, partial(_retire, user_id, embedder.identity, indexed))
    embed_behind(ctx, embedder, tenant_id, user_id)
    return done


def _lacking(
    reader: Reader, tenant_id: str, user_id: str, identity: str, indexed: int
) -> Iterator[list[tuple[LedgerEntry, str]]]:
    """Batches of the indexed turns that have no vector of this embedder."""
    have = {id_ for block in _read_stored(reader, user_id, identity) for id_ in block.ids}
    held: list[tuple[LedgerEntry, str]] = []
    for entry, text in read_turns(reader, tenant_id, user_id, 0, indexed):
        if entry.id not in have:
            held.append((entry, text))
        if len(held) >= BATCH:
            yield held
            held = []
    if held:
        yield held


def _keep_lacking(tenant_id: str, user_id: str, identity: str, block: VectorBlock, tx: Transaction) -> int:
    """Store the vectors of those that still are turns and still lack one: others may have forgotten or embedded them
    meanwhile. Answers how many."""
    lock_user(tx, user_id)
    have = {id_ for held in _read_stored(tx, user_id, identity) for id_ in held.ids}
    alive = {entry.id for entry in entries_by_id(tx, tenant_id, block.ids) if entry.body is not None}
    places = [place for place, id_ in enumerate(block.ids) if id_ in alive and id_ not in have]
    add_vectors(tx, user_id, identity, [block.ids[place] for place in places], block.rows[places])
    return len(places)


def _retire(user_id: str, identity: str, indexed: int, tx: Transaction) -> None:
    """Let go of the vectors of every other embedder: those of this one cover all that was indexed."""
    user = lock_user(tx, user_id)
    for other in _identities(tx, user_id):
        if other != identity:
            tx.do(Delete("vectors", (("user_id", "=", user_id), ("embedder", "=", other))))
    if user.embedded < indexed:
        tx.do(Patch("users", (("user_id", "=", user_id),), {"embedded": indexed}))


# -- searching ----------------------------------------------------------------------------------------


class _HeldVectors(NamedTuple):
    """The vectors of the first turns of an index, in the order in which these were written."""

    generation: int
    turns: int
    chunks: tuple[Singles, ...]

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self.chunks)

    def extended(self, rows: Singles) -> _HeldVectors:
        chunks = (*self.chunks, rows)
        if len(chunks) > CHUNKS_MAX:
            chunks = (chunks[0], np.concatenate(chunks[1:]))
        if len(chunks) == 2 and len(chunks[1]) * CHUNKS_MAX > len(chunks[0]):
            chunks = (np.concatenate(chunks),)
        return _HeldVectors(self.generation, self.turns + len(rows), chunks)


class VectorCache:
    """Vectors by tenant, user and embedder; those that were asked for least recently are let go. Thread-safe."""

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
    """How near each turn is to the query in meaning; None where some turn has no vector of this embedder."""
    if not query.strip() or not len(index):
        return None
    held = _vectors_for(ctx, reader, tenant_id, user_id, index, embedder)
    if held is None:
        return None
    asked = embedder.embed_queries([query[:TEXT_CHARS_MAX]])[0]
    near = [_nearness(chunk, asked) for chunk in held.chunks]
    exact: npt.NDArray[np.float64] = (near[0] if len(near) == 1 else np.concatenate(near))[index.written_order].astype(
        np.float64
    )
    turn = exact.round(6)  # the last bits depend on the machine
    return Dense(turn=turn, window=mean_of_windows(turn, index.kept("windows", lambda: windows_of(index.session))))


def _vectors_for(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, index: StoredIndex, embedder: Embedder
) -> _HeldVectors | None:
    """The vectors of all turns of an index: those that are held, with what was written since behind them."""
    user = read_user(reader, user_id)
    if user.embedded < user.indexed:
        return None
    cache, key = ctx.cache(VectorCache), (tenant_id, user_id, embedder.identity)
    held = cache.get(key)
    if held is None or held.generation != user.generation or held.turns > index.written:
        held = _HeldVectors(user.generation, 0, ())
    ids = index.written_ids(held.turns)
    if not ids:
        return held
    stored: dict[str, npt.NDArray[np.floating]] = {}
    if len(ids) > BATCH or not held.turns:
        place = vectors_of(user_id, embedder.identity)
        covered = sum(listed.turns for listed in list_blocks(reader, place))
        if index.written - covered > user.tail - user.embedded:
            return None
        for block in _read_stored(reader, user_id, embedder.identity):
            stored |= zip(block.ids, block.rows, strict=True)
    rows = _rows_of(ctx, reader, tenant_id, user, ids, stored, embedder)
    if rows is None:
        return None
    held = held.extended(rows)
    cache.put(key, held)
    return held


def _rows_of(
    ctx: Context,
    reader: Reader,
    tenant_id: str,
    user: UserRow,
    ids: Sequence[str],
    stored: dict[str, npt.NDArray[np.floating]],
    embedder: Embedder,
) -> Singles | None:
    """One row for each turn, stored or embedded here; None where more lack theirs than lie behind the watermark."""
    missing = [id_ for id_ in ids if id_ not in stored]
    if stored and len(missing) > user.tail - user.embedded:
        return None
    entries = [entry for portion in chunked(missing) for entry in entries_by_id(reader, tenant_id, portion)]
    said = [(entry, text_of(reader, entry)) for entry in entries if is_turn(entry)]
    made = to_single(embed_entries(ctx, embedder, tenant_id, user.user_id, said))
    found = stored | dict(zip([entry.id for entry, _ in said], made, strict=True))
    if any(id_ not in found for id_ in ids):
        return None
    return np.stack([found[id_] for id_ in ids])


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


def windows_of(session: npt.NDArray[np.integer]) -> _Windows:
    """Which turns of these sessions stand in one window."""
    one = np.equal(session[1:], session[:-1]).astype(np.float64)
    two = np.equal(session[2:], session[:-2]).astype(np.float64)
    sizes = np.ones(len(session))
    sizes[1:] += one
    sizes[:-1] += one
    sizes[:-2] += two
    return _Windows(one, two, sizes)


def mean_of_windows(turn: npt.NDArray[np.float64], windows: _Windows) -> npt.NDArray[np.float64]:
    """The mean nearness of a turn, the one before it and the two behind it, as far as they are of its session."""
    one, two, sizes = windows
    total = np.zeros(len(turn))
    total[1:] = turn[:-1] * one
    total += turn
    total[:-1] += turn[1:] * one
    total[:-2] += turn[2:] * two
    total /= sizes
    return total
