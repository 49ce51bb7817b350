"""How near a turn is to a query depends on its vector alone: not on the turns beside it, nor on where they lie."""

from __future__ import annotations

import numpy as np
import pytest

from muniment.memory.vectors import VectorBlock, _nearness, decode_vectors, encode_vectors, to_single
from products import for_each


@for_each("dim", [3, 64, 100, 256, 384, 1536])
@pytest.mark.req("X-05")
def test_a_row_has_the_same_product_in_every_block(dim: int) -> None:
    draw = np.random.default_rng(dim)
    rows = draw.standard_normal((97, dim)).astype(np.float16).astype(np.float32)
    asked = draw.standard_normal(dim).astype(np.float32)
    whole = _nearness(rows, asked)
    for size in (1, 2, 3, 5, 16, 40):
        parts = [_nearness(rows[at : at + size].copy(), asked) for at in range(0, len(rows), size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()
    shifted = np.empty(rows.size + 1, np.float32)[1:].reshape(rows.shape)
    shifted[...] = rows
    assert _nearness(shifted, asked).tobytes() == whole.tobytes()


@pytest.mark.parametrize("odd", [0.0, np.inf, -np.inf, np.nan])
def test_single_precision_is_that_of_a_cast(odd: float) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    halves = np.append(halves[np.isfinite(halves)], np.float16(odd))
    assert to_single(halves).tobytes() == halves.astype(np.float32).tobytes()
    block = VectorBlock(("a", "b"), halves[:4].reshape(2, 2))
    assert decode_vectors(encode_vectors(block)).rows.dtype == np.float32
