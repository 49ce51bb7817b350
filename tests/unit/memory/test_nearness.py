"""How near a turn is to a query depends on its vector alone: not on the turns beside it, nor on where they lie."""

from __future__ import annotations

import numpy as np
import pytest

from muniment.memory.vectoring import _nearness
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
