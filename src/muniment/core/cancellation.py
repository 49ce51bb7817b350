"""Whether somebody still waits for what a thread does.

A server hands each request a `Cancellation` and stops it when its time is up or its caller has gone; whoever carries
the work out looks at it before each operation on the store, and between the parts of what takes long. Outside of a
server there is none, and nothing is ever stopped. It holds no clock: whoever stops it knows why.

Stopping and committing exclude each other. `settle` is asked for just before a commit: from then on the work can no
longer be stopped, so that nothing is written of work that was stopped, and no work whose writing stands is told to have
failed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from muniment.errors import MunimentError

__all__ = ["CURRENT", "Cancellation", "cancellable", "checkpoint"]


class Cancellation:
    """One piece of work that can be stopped. Thread-safe."""

    def __init__(self, *, settles: bool = True) -> None:
        """Work that `settles` is over with its first commit; other work, of many commits, can be stopped between them:
        then it can be begun again, and goes on where it was."""
        self._lock = threading.Lock()
        self._settles = settles
        self._is_settled = False
        self._error: Callable[[], MunimentError] | None = None
        self._interrupt: Callable[[], None] | None = None

    @property
    def is_stopped(self) -> bool:
        return self._error is not None

    # -- for whoever stops it

    def stop(self, error: Callable[[], MunimentError]) -> bool:
        """Have the next look at it raise what `error` makes; False where it is too late, or was stopped before."""
        with self._lock:
            if self._is_settled or self._error is not None:
                return False
            self._error = error
            return True

    def interrupt(self) -> None:
        """Break off the statement that runs, if one does. It may wait for a database server."""
        with self._lock:
            if self._interrupt is not None:
                self._interrupt()

    # -- for whoever works

    def check(self, *, can_wait: bool = False) -> None:
        """Raise where it was stopped. `can_wait` says that whoever asks holds nothing that others wait for, so that a
        server may keep it waiting here while others have their turn."""
        del can_wait
        if self._error is not None:
            raise self._error()

    def settle(self) -> None:
        """Raise where it was stopped; if not, it no longer can be."""
        with self._lock:
            if self._error is not None:
                raise self._error()
            self._is_settled = self._is_settled or self._settles

    def begin(self, interrupt: Callable[[], None]) -> None:
        """A statement is about to run that `interrupt` breaks off; raises where the work was stopped already."""
        with self._lock:
            if self._is_settled:
                return
            if self._error is not None:
                raise self._error()
            self._interrupt = interrupt

    def end(self) -> None:
        """The statement has run. What breaks it off is not called any more."""
        with self._lock:
            self._interrupt = None


CURRENT: ContextVar[Cancellation | None] = ContextVar("muniment_cancellation", default=None)
"""That of the work which is being carried out here; None outside of a server."""


@contextmanager
def cancellable(cancellation: Cancellation | None) -> Iterator[None]:
    """Carry out what is in the block as work that can be stopped; with None, as work that nobody stops."""
    before = CURRENT.set(cancellation)
    try:
        yield
    finally:
        CURRENT.reset(before)


def checkpoint() -> None:
    """A place between two parts of what takes long without asking the store. Raises where the work was stopped."""
    found = CURRENT.get()
    if found is not None:
        found.check()
