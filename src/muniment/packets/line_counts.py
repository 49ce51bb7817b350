"""A token counter that remembers lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muniment.core.ports.tokens import adds_lines

if TYPE_CHECKING:
    from muniment.core.ports.tokens import TokenCounter
    from muniment.store.context import Context

__all__ = ["LINES_MAX", "LINE_CHARS_MAX", "LineCounts"]

LINES_MAX = 8192


LINE_CHARS_MAX = 1000
"""A longer text is a page, or a turn that is seldom quoted whole: counted each time."""


class LineCounts:
    """A token counter that remembers lines: the turns of a scope are priced again for every packet. Thread-safe."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    @property
    def name(self) -> str:
        return self._counter.name

    @property
    def is_exact(self) -> bool:
        return self._counter.is_exact

    @property
    def adds_lines(self) -> bool:
        return adds_lines(self._counter)

    def count(self, text: str) -> int:
        known = self._known.get(text)
        return self.count_many([text])[0] if known is None else known

    def count_many(self, texts: Sequence[str]) -> list[int]:
        known = self._known
        fresh = [text for text in texts if text not in known]
        if not fresh:
            return [known[text] for text in texts]
        counted = dict(zip(fresh, self._counter.count_many(fresh), strict=True))
        if len(known) > LINES_MAX:
            self.clear()
        self._known.update((text, count) for text, count in counted.items() if len(text) <= LINE_CHARS_MAX)
        return [known[text] if text in known else counted[text] for text in texts]

    def clear(self) -> None:
        """After a forget, and when there are too many: a new table, so that whoever reads the old one still can."""
        self._known = {}


def line_counts_of(ctx: Context) -> LineCounts:
    """The store's own counter, with a memory for lines."""
    return ctx.cache(LineCounts, lambda: LineCounts(ctx.counter))
