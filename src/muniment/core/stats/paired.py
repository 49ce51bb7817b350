"""How far two ways of doing the same tasks differ, and between which bounds: a bootstrap over pairs.

The tasks are drawn again with a generator that is written out here, so that the same differences give the same bounds
on every machine and with every version of every package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from muniment.core.stats.bounds import Bounds
from muniment.core.stats.counts import check_number, check_open_rate
from muniment.errors import InvalidInput

__all__ = ["PAIRS_MIN", "ROUNDS", "paired_bounds"]

ROUNDS = 2_000
"""How often the tasks are drawn again."""
PAIRS_MIN = 10
"""Fewer pairs say nothing surely: three that agree by chance have bounds of no width."""
_AT_ONCE = 1 << 20
"""Draws that are held in memory."""
_STEP, _MIX_A, _MIX_B = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def paired_bounds(differences: Sequence[float], *, confidence: float = 0.95, seed: int = 0) -> Bounds:
    """Bounds on the mean of these differences, one for each task that both ways did (percentile bootstrap).

    They are what these pairs say: of fewer than `PAIRS_MIN` nothing should be concluded, however close they lie.
    """
    if not differences:
        raise InvalidInput("no pair was given", hint="the difference of each task that both did")
    values = np.array([check_number("differences", each) for each in differences], np.float64)
    tail = (1 - check_open_rate("confidence", confidence)) / 2
    means = np.sort(np.concatenate([values[drawn].mean(axis=1) for drawn in _draws(len(values), seed)]))
    low, high = int(tail * ROUNDS), min(ROUNDS - 1, int((1 - tail) * ROUNDS))
    return Bounds(float(means[low]), float(means[high]))


def _draws(size: int, seed: int) -> Iterator[npt.NDArray[np.uint64]]:
    """`ROUNDS` times so many places of a row of that size, by SplitMix64; a few rounds at a time."""
    rounds = max(1, _AT_ONCE // size)
    for first in range(0, ROUNDS, rounds):
        yield _mixed(seed, first * size, min(rounds, ROUNDS - first) * size).reshape(-1, size) % np.uint64(size)


def _mixed(seed: int, start: int, count: int) -> npt.NDArray[np.uint64]:
    places = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        state = np.uint64(seed) + places * _STEP
        state = (state ^ (state >> np.uint64(30))) * _MIX_A
        state = (state ^ (state >> np.uint64(27))) * _MIX_B
    return state ^ (state >> np.uint64(31))
