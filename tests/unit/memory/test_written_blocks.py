"""Blocks of the index that are kept as they are written: the very blocks that reading them back would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muniment
from muniment.handles.memory import Memory
from muniment.memory.indexing import SEGMENTS, SegmentCache, segments_of
from muniment.memory.outside.embed_hashed import HashEmbedder
from muniment.memory.recall.segments import Segment
from muniment.memory.recall.vectors import VectorBlock, decode_vectors, encode_vectors, to_single
from muniment.memory.vectoring import VECTORS, VectorCache, vectors_of
from muniment.store.blocks import BlockCache, list_blocks, read_blocks

SIZES = (1, 1, 3, 40, 1, 1, 1, 1, 1, 1, 1, 9, 70, 2)
"""Batches that are merged at once, later, and never."""


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and bool(np.array_equal(one, other))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def _parts(block: Any) -> tuple[Any, ...]:
    return tuple(getattr(block, name) for name in block.__slots__)


@pytest.fixture
def filled(tmp_path: Path) -> Memory:
    mem = muniment.open(tmp_path / "a.db", embedder=HashEmbedder())
    for number, size in enumerate(SIZES):
        run = mem.run(user_id="ana", session_id=f"s{number % 3}")
        run.observe_many(
            [{"role": "user", "content": f"tea number {number} and cup {at} of {size}"} for at in range(size)]
        )
    return mem


def test_what_is_kept_is_what_was_stored(filled: Memory) -> None:
    ctx = filled._ctx
    places = (
        (segments_of("ana"), ctx.cache(SegmentCache), SEGMENTS),
        (vectors_of("ana", HashEmbedder().identity), ctx.cache(VectorCache), VECTORS),
    )
    for place, cache, codec in places:
        state, stored = filled._ctx.engine.read(
            "default", lambda reader, place=place, codec=codec: read_blocks(reader, "default", place, BlockCache(codec))
        )
        kept = [cache.get(("default", place, digest)) for digest in state]
        assert all(block is not None for block in kept)
        assert all(_equal(_parts(one), _parts(other)) for one, other in zip(kept, stored, strict=True))
        weight = sum(map(codec.weight, stored))
        assert cache.held == (weight, 0), "what was merged is let go"
        assert weight > sum(len(codec.encode(block)) for block in stored), "the ids alone take more than in storage"
    filled.close()


def test_a_search_finds_the_same_as_in_a_process_that_wrote_nothing(filled: Memory, tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db", embedder=HashEmbedder()) as other:
        for query in ("tea number 12", "cup 3 of 40", "which cup of tea?"):
            here, there = (
                mem.run(user_id="ana").search(query, k=50, now="2026-06-01T00:00:00Z") for mem in (filled, other)
            )
            assert here == there
    filled.close()


@pytest.mark.req("LG-07")
def test_a_forget_leaves_no_block_in_memory(filled: Memory) -> None:
    run = filled.run(user_id="ana", session_id="s0")
    said = run.observe("user", "a word that is to go: zanzibar")
    filled.forget(event=said.id)
    assert filled._ctx.cache(SegmentCache).held == filled._ctx.cache(VectorCache).held == (0, 0)
    assert said.id not in {hit.id for hit in run.search("zanzibar")}
    filled.close()


def test_a_long_import_fills_no_more_than_its_share(tmp_path: Path) -> None:
    def written(user_id: str) -> Segment | None:
        listed = mem._ctx.engine.read("default", lambda reader: list_blocks(reader, segments_of(user_id)))
        return mem._ctx.cache(SegmentCache).get(("default", segments_of(user_id), listed[0].digest))

    with muniment.open(tmp_path / "b.db") as mem:
        mem._ctx._caches[SegmentCache] = BlockCache(SEGMENTS, written_max=60_000)
        for number in range(30):
            mem.run(user_id=f"u{number}").observe_many(
                [{"role": "user", "content": f"line {at} of user {number}"} for at in range(20)]
            )
        asked, kept = mem._ctx.cache(SegmentCache).held
        assert asked == 0
        assert 30_000 < kept <= 60_000
        assert written("u0") is None
        assert written("u29") is not None
        assert mem._ctx.cache(SegmentCache).held[0] > 0
        assert mem.run(user_id="u29").search("line 7 of user 29")


@pytest.mark.parametrize("odd", [0.0, np.inf, -np.inf, np.nan])
def test_single_precision_is_that_of_a_cast(odd: float) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    halves = np.append(halves[np.isfinite(halves)], np.float16(odd))
    assert to_single(halves).tobytes() == halves.astype(np.float32).tobytes()
    block = VectorBlock(("a", "b"), halves[:4].reshape(2, 2))
    assert decode_vectors(encode_vectors(block)).rows.dtype == np.float32
