"""The turns of a chain put together at the head of what was found, each told from which one it was followed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from muniment.memory.recall.chains.chain import Read, find_chain
from muniment.memory.recall.index import ScopeIndex
from muniment.memory.recall.rank import Ranked

__all__ = ["put_chain_first"]


def put_chain_first(
    query: str,
    index: ScopeIndex,
    ranked: list[Ranked],
    k: int,
    read: Read,
    id_of: Callable[[int], str],
    among: npt.NDArray[np.bool_] | None = None,
) -> list[Ranked]:
    """What was found, and where the question asks along a chain of statements its turns first: the one that the chain
    ends in, then those that lead there. What no chain answers comes back as it was given.

    A place keeps what it is worth: a turn that is put there takes its score and its chance.
    """
    steps = find_chain(query, index, read, among) if ranked else []
    if not steps:
        return ranked
    reasons = {steps[0].ordinal: f"starts a chain: {steps[0].end}"}
    for before, step in pairwise(steps):
        reasons[step.ordinal] = f"followed from [{id_of(before.ordinal)}]: {before.end}"
    held = {hit.ordinal: hit for hit in ranked}
    order = list(dict.fromkeys([*reversed(reasons), *held]))[:k]
    placed = []
    for place, ordinal in enumerate(order):
        at = ranked[min(place, len(ranked) - 1)]
        hit = held.get(ordinal) or Ranked(ordinal, 0.0, {}, 0.0, ())
        parts, shift = hit.parts, at.score - hit.score
        if shift:
            parts = {**parts, "chain": shift}
        told = (*hit.reasons, reasons[ordinal]) if ordinal in reasons else hit.reasons
        placed.append(Ranked(ordinal, at.score, parts, at.chance, told))
    return placed
