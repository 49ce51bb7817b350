"""What long work has done so far and how fast, on stderr. Never says what the work is about."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["rates"]

_LINE_S, _REDRAWN_S = 10.0, 0.5


@contextmanager
def rates(*, quiet: bool = False) -> Iterator[Callable[[str, int], None]]:
    """What long work has done and how fast, on stderr, as `tell(what, count)` says it: on a terminal in one line that
    is drawn again, elsewhere a line every ten seconds and one at the end of each part. Nothing with --json."""
    is_terminal = sys.stderr.isatty()
    meter = _Meter(is_terminal, _REDRAWN_S if is_terminal else _LINE_S)
    try:
        yield (lambda _what, _count: None) if quiet else meter.tell
    finally:
        if not quiet:
            meter.end()


class _Meter:
    def __init__(self, is_terminal: bool, every_s: float) -> None:
        self._is_terminal, self._every_s = is_terminal, every_s
        self._what, self._count, self._begun, self._shown = "", 0, 0.0, 0.0

    def tell(self, what: str, count: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self.end()
            self._what, self._count, self._begun, self._shown = what, 0, now, now
        self._count += count
        if now - self._shown >= self._every_s:
            self._shown = now
            self._show(end="" if self._is_terminal else "\n")

    def end(self) -> None:
        if self._what:
            self._show(end="\n")
        self._what = ""

    def _show(self, end: str) -> None:
        spent = time.monotonic() - self._begun
        rate = f" ({self._count / spent:,.0f}/s)" if spent > 0 else ""
        start = "\r\x1b[2K" if self._is_terminal else ""
        print(f"{start}{self._what}: {self._count:,} events{rate}", end=end, file=sys.stderr, flush=True)
