"""A token counter with a cache for lines: a scope's turns are priced again for every packet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from muniment.core.ports.models import adds_lines, weighing

if TYPE_CHECKING:
    from muniment.core.ports.models import TokenCounter
    from muniment.store.context import Context

__all__ = ["LINES_MAX", "LINE_CHARS_MAX", "LineCounts", "line_counts_of"]

LINES_MAX = 8192
LINE_CHARS_MAX = 1000
"""A longer text is a page, or a turn seldom quoted whole, and is counted each time."""


class _Lines:
    """A cache of numbers by line. Thread-safe."""

    def __init__(self, read: Callable[[Sequence[str]], list[int]]) -> None:
        self._read = read
        self.known: dict[str, int] = {}

    def numbers(self, texts: Sequence[str]) -> list[int]:
        known = self.known
        fresh = [text for text in texts if text not in known]
        if not fresh:
            return [known[text] for text in texts]
        found = dict(zip(fresh, self._read(fresh), strict=True))
        if len(known) > LINES_MAX:
            self.clear()
        self.known.update((text, number) for text, number in found.items() if len(text) <= LINE_CHARS_MAX)
        return [known[text] if text in known else found[text] for text in texts]

    def clear(self) -> None:
        """Swap in a new table, so that readers of the old one are unaffected."""
        self.known = {}


class LineCounts:
    """A token counter that is faster with lines it has seen."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._scales = weighing(counter)
        self._counts = _Lines(counter.count_many if self._scales is None else self._count_by_weight)
        self._weights = _Lines(counter.count_many if self._scales is None else self._scales.weigh_many)

    @property
    def name(self) -> str:
        return self._counter.name

    @property
    def is_exact(self) -> bool:
        return self._counter.is_exact

    @property
    def adds_lines(self) -> bool:
        return adds_lines(self._counter)

    @property
    def weighs_lines(self) -> bool:
        return self._scales is not None

    def count(self, text: str) -> int:
        known = self._counts.known.get(text)
        return self.count_many([text])[0] if known is None else known

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return self._counts.numbers(texts)

    def weigh_many(self, texts: Sequence[str]) -> list[int]:
        return self._weights.numbers(texts)

    def tokens_of_weight(self, weight: int) -> int:
        return weight if self._scales is None else self._scales.tokens_of_weight(weight)

    def _count_by_weight(self, texts: Sequence[str]) -> list[int]:
        """Texts weighed for their own count need not be weighed again as page lines."""
        weights = self.weigh_many(texts)
        return [self.tokens_of_weight(weight) or min(1, len(text)) for text, weight in zip(texts, weights, strict=True)]

    def held(self) -> set[str]:
        """The cached lines."""
        return {*self._counts.known, *self._weights.known}

    def clear(self, tenant_id: str | None = None) -> None:
        """Clear after a forget in any tenant, since lines are cached by their text."""
        del tenant_id
        self._counts.clear()
        self._weights.clear()


def line_counts_of(ctx: Context) -> LineCounts:
    """The store's own counter, with a line cache."""
    return ctx.cache(LineCounts, lambda: LineCounts(ctx.counter))
