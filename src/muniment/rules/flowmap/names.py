"""Names told apart, no more than so many: which ones does not depend on the order in which they came.

Names are ranked: those known beforehand first, then by a hash. The lowest `most` ranks are kept. A name that is pushed
out has `most` lower ones before it and can never come back, and one that is kept at the end was never pushed out: so
counts of kept names are exact, in one pass, in any order, and two registers can be united.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterator

from muniment.core.canonical import digest

__all__ = ["Names"]

Rank = tuple[bool, bytes]


class Names:
    """At most `most` names."""

    __slots__ = ("_known", "_ranked", "_ranks", "most")

    def __init__(self, most: int, known: Collection[str] = ()) -> None:
        self.most = most
        self._known = frozenset(known)
        self._ranks: dict[str, Rank] = {}
        self._ranked: list[tuple[Rank, str]] = []

    def __contains__(self, name: str) -> bool:
        return name in self._ranks

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranks)

    def __len__(self) -> int:
        return len(self._ranks)

    def offer(self, name: str) -> str | None:
        """Keep a new name if its rank is low enough; answers the name that has to go, which may be this one."""
        rank = (name not in self._known, digest(name.encode("utf-8", "surrogatepass")))
        if len(self._ranks) >= self.most and (rank, name) > self._ranked[-1]:
            return name
        insort(self._ranked, (rank, name))
        self._ranks[name] = rank
        if len(self._ranks) <= self.most:
            return None
        _, gone = self._ranked.pop()
        del self._ranks[gone]
        return gone
