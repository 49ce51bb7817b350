"""How runs that did alike fared lately: what an episode is worth now, by the runs beside it. Pure; it keeps nothing.

An episode tells of one run. What speaks for doing as it did is what came of all newer runs that did so, whether they
were told it or not; what was told and not heeded says nothing. So episodes of one kind of work are weighed by the
outcomes of their likes, each counting half after a half-life of runs. An episode whose likes fail while others pass is
stale: the world that it tells of is gone. It comes back by itself once runs that do so pass again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from muniment.learning.fold.doing_words import name_of, step_texts
from muniment.learning.lessons.lately import chance_of
from muniment.learning.lessons.uses import family_of
from muniment.learning.stored_memory import StoredMemory

__all__ = ["Fared", "fared_alike"]

_SHARPNESS = 4
"""The power of likeness that an outcome counts with: half alike counts for a sixteenth."""
_STALE = 0.15
"""The chance of doing better than the others below which an episode is stale."""
_SURE_MIN = 4.0
"""Faded runs of both sides, below which nothing is stale."""

_Doing = tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]
"""The steps of a run in pairs, one after the other: with what they were given, and by name alone."""


class Fared(NamedTuple):
    """Faded outcomes of runs of one kind of work."""

    passes: float
    n: float
    """Of those that did alike."""
    other_passes: float
    other_n: float
    """Of all others."""

    @property
    def is_stale(self) -> bool:
        return min(self.n, self.other_n) >= _SURE_MIN and chance_of(*self) < _STALE

    @property
    def words(self) -> str:
        mine, others = f"{self.passes:.0f} of {self.n:.0f}", f"{self.other_passes:.0f} of {self.other_n:.0f}"
        return f"runs that did so passed {mine} lately, others {others}"


def fared_alike(episodes: Sequence[tuple[StoredMemory, bool]], half_life_runs: float) -> dict[str, Fared]:
    """Of each episode, given with whether its run passed, how its likes fared; those that do not say what was done are
    left out.
    """
    families: defaultdict[tuple[str, str | None], list[tuple[StoredMemory, bool, _Doing]]] = defaultdict(list)
    for memory, passed in episodes:
        did = memory.record.get("did")
        if isinstance(did, str) and did:
            families[memory.level, family_of(memory)].append((memory, passed, _doing(did)))
    found: dict[str, Fared] = {}
    for mine in families.values():
        mine.sort(key=lambda each: (each[0].created_at, each[0].id), reverse=True)
        sums: defaultdict[_Doing, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for age, (_, passed, doing) in enumerate(mine):
            weight = 0.5 ** (age / half_life_runs)
            sums[doing][0] += weight * passed
            sums[doing][1] += weight
        whole = [sum(each[part] for each in sums.values()) for part in (0, 1)]
        known = {doing: _fared(doing, sums, whole) for doing in sums}
        found |= {memory.id: known[doing] for memory, _, doing in mine}
    return found


def _fared(doing: _Doing, sums: dict[_Doing, list[float]], whole: Sequence[float]) -> Fared:
    passes = n = 0.0
    for other, (other_passes, other_n) in sums.items():
        weight = _likeness(doing, other) ** _SHARPNESS
        passes += weight * other_passes
        n += weight * other_n
    return Fared(*(round(each, 1) for each in (passes, n, max(0.0, whole[0] - passes), max(0.0, whole[1] - n))))


def _doing(did: str) -> _Doing:
    steps = step_texts(did)
    return _pairs(steps), _pairs([name_of(step) for step in steps])


def _pairs(steps: Sequence[str]) -> frozenset[tuple[str, str]]:
    return frozenset(zip(("", *steps), (*steps, ""), strict=True))


def _likeness(one: _Doing, other: _Doing) -> float:
    """From 0 to 1: the pairs in common, with what was given and without."""
    return sum(len(a & b) / len(a | b) for a, b in zip(one, other, strict=True)) / len(one)
