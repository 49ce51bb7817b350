"""How much a test tries: a sample of it in every run, the whole under `make soak` (MUNIMENT_SOAK)."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["SOAK", "examples", "in_turn", "one_in"]

SOAK = "MUNIMENT_SOAK" in os.environ

T = TypeVar("T")


def examples(count: int) -> int:
    """For `max_examples`: half of them in every run, the same ones each time; twenty times as many under a soak."""
    return 20 * count if SOAK else -(-count // 2)


def one_in(step: int, cases: Sequence[T], start: int = 0) -> list[T]:
    """Each step-th of the cases from `start` on, and the last; all of them under a soak."""
    return list(cases) if SOAK else [*cases[start % step : -1 : step], cases[-1]]


def in_turn(name: str, cases: Sequence[T]) -> T:
    """One of the cases, by the name of the test: the same in every run, each for about as many tests."""
    return cases[zlib.crc32(name.encode(errors="replace")) % len(cases)]
