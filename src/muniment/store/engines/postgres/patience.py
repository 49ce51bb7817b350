"""Connections that can lose patience: a server that stands still answers nothing, and its connections do not break.

The machine of a server whose processes are stopped goes on confirming what it is sent, so no keepalive notices it.
Where a question is answered at once or not at all, or another server can be asked, the wait is bounded here. A
connection that was given up is closed, since its answer may still come. A commit is not given up: the server is asked
to break its wait off, and then says what became of it. Other statements of a write are bounded by the server alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

__all__ = ["Connection", "NoAnswer"]

_CANCEL_WAIT_S = 5.0


class NoAnswer(psycopg.OperationalError):
    """The server said nothing for so long that its connection was given up."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """As psycopg's, and waits for ever as that does, but where it is told for how long."""

    patience_s: float | None = None
    break_off_s: float | None = None

    @contextmanager
    def patient(self, seconds: float | None) -> Iterator[None]:
        """Each question of this block is answered within these seconds, or raises `NoAnswer`."""
        before, self.patience_s = self.patience_s, seconds
        try:
            yield
        finally:
            self.patience_s = before

    @contextmanager
    def broken_off(self, seconds: float) -> Iterator[None]:
        """What takes longer than these seconds the server is asked to break off; its answer to that is waited for.

        No timeout of the server's holds while a commit waits for its standbys.
        """
        self.break_off_s = seconds
        try:
            yield
        finally:
            self.break_off_s = None

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        if self.break_off_s is not None:
            gen = _nudged(gen, self.break_off_s, self._break_off)
        if self.patience_s is None:
            return super().wait(gen, *args, **kwargs)
        try:
            return super().wait(_bounded(gen, self.patience_s), *args, **kwargs)
        except NoAnswer:
            self.close()
            raise

    def _break_off(self) -> None:
        with suppress(psycopg.Error):  # where the server is not reached, the connection breaks by itself
            self.cancel_safe(timeout=_CANCEL_WAIT_S)


def _bounded(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """What takes longer has no answer."""

    def give_up() -> None:
        gen.close()
        raise NoAnswer(f"the server did not answer for {seconds:g} s")

    return _nudged(gen, seconds, give_up)


def _nudged(gen: Generator[Any, Any, Any], seconds: float, nudge: Callable[[], None]) -> Generator[Any, Any, Any]:
    """psycopg asks several times a second whether the socket is ready, and goes on where it is not: that is counted.
    After so many seconds something is done about it, once, and it is waited for.
    """
    deadline = time.monotonic() + seconds
    ready: Any = None
    while True:
        try:
            wanted = gen.send(ready)
        except StopIteration as done:
            return done.value
        ready = yield wanted
        if not ready and time.monotonic() > deadline:
            deadline = float("inf")
            nudge()
