"""The best turns of a scope, however large it is and however many score alike."""

from __future__ import annotations

import numpy as np

from muniment.memory.ranking import top
from muniment.memory.scoring import Scores
from products import for_each


@for_each("digits", [9, 1, 0], ids=["hardly any alike", "many alike", "nearly all alike"])
@for_each("size", [0, 1, 10, 319, 321, 5_000])
@for_each("k", [1, 10, 100])
def test_the_best_stand_by_score_and_then_by_ordinal(digits: int, size: int, k: int) -> None:
    drawn = np.random.default_rng(size + k)
    total = drawn.random(size).round(digits)
    for eligible in (None, drawn.random(size) < 0.6, np.zeros(size, bool)):
        may = range(size) if eligible is None else np.flatnonzero(eligible).tolist()
        best = sorted(may, key=lambda ordinal: (-total[ordinal], ordinal))[:k]
        assert top(Scores(total, {}, eligible), k).tolist() == best
