"""When turns were said: to the second, as an index keeps it; exactly where that leaves open which of two is newer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muniment.memory.recall.index import ScopeIndex

__all__ = ["Exact", "Moments"]

Exact = Callable[[Sequence[int]], Sequence[str]]
"""From ordinals to texts that sort by the exact moment."""


class Moments:
    """Turns of one session stand in the order they were said; of several, only their time stamps tell it."""

    def __init__(self, index: ScopeIndex, exact: Exact | None) -> None:
        self._index = index
        self._exact = exact
        self._known: dict[int, str] = {}

    def of(self, turns: Sequence[int]) -> list[tuple[int, int]]:
        """For each turn its second, and its place within the second where turns of other sessions share it."""
        seconds: list[int] = self._index.ts[turns].tolist()
        sessions: dict[int, set[int]] = {}
        for second, session in zip(seconds, self._index.session[turns].tolist(), strict=True):
            sessions.setdefault(second, set()).add(session)
        tied = [turn for turn, second in zip(turns, seconds, strict=True) if len(sessions[second]) > 1]
        if not tied or self._exact is None:
            return [(second, 0) for second in seconds]
        fresh = [turn for turn in tied if turn not in self._known]
        if fresh:
            self._known.update(zip(fresh, self._exact(fresh), strict=True))
        order = {moment: place for place, moment in enumerate(sorted({self._known[turn] for turn in tied}))}
        places = {turn: order[self._known[turn]] for turn in tied}
        return [(second, places.get(turn, 0)) for turn, second in zip(turns, seconds, strict=True)]
