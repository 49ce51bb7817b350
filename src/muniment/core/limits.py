"""Limits on what a process keeps and does: bounded memos of pure functions, and work that can be stopped.

A memo is keyed by users' text. It belongs to no store, so a forget in any store empties them all.

A server hands each request a `Cancellation` and stops it when its time is up or its caller has gone. The work checks it
before each operation on the store and between the parts of a long computation. Outside a server there is none. Stopping
and committing exclude each other: `settle` is called just before a commit, and from then on the work cannot be stopped,
so nothing is written by stopped work and no committed work is reported as failed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar, cast
from weakref import WeakValueDictionary

from muniment.errors import MunimentError

# -- memos ----------------------------------------------------------------------------------------------


P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

REMEMBERED: list[Callable[[], None]] = []
"""Functions that empty the memos."""
TABLES: WeakValueDictionary[int, dict[Any, Any]] = WeakValueDictionary()
"""The live tables, keyed by identity."""


class Memo(dict[K, V]):
    """A table of cached results. Its users bound its size."""

    def __init__(self) -> None:
        super().__init__()
        TABLES[id(self)] = self


def remembered(size_max: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache a function's most recent results."""

    def remember(function: Callable[P, T]) -> Callable[P, T]:
        found = lru_cache(maxsize=size_max)(function)
        REMEMBERED.append(found.cache_clear)
        return cast("Callable[P, T]", found)

    return remember


def drop_tenant(held: MutableMapping[Any, Any], tenant_id: str | None) -> None:
    """Remove a table's keys that begin with this tenant; all keys if none is named."""
    for key in [key for key in held if tenant_id in (None, key[0])]:
        del held[key]


# -- cancellation ---------------------------------------------------------------------------------------


class Cancellation:
    """One piece of work that can be stopped. Thread-safe."""

    def __init__(self, *, settles: bool = True) -> None:
        """With `settles`, the first commit ends the work; otherwise work of many commits can be stopped between them,
        and resumed later.
        """
        self._lock = threading.Lock()
        self._settles = settles
        self._is_settled = False
        self._error: Callable[[], MunimentError] | None = None
        self._interrupt: Callable[[], None] | None = None

    @property
    def is_stopped(self) -> bool:
        return self._error is not None

    # -- for the stopping side

    def stop(self, error: Callable[[], MunimentError]) -> bool:
        """Make the next check raise the error from `error`; False if it is too late, or was already stopped."""
        with self._lock:
            if self._is_settled or self._error is not None:
                return False
            self._error = error
            return True

    def interrupt(self) -> None:
        """Interrupt the running statement, if any. May wait for a database server."""
        with self._lock:
            if self._interrupt is not None:
                self._interrupt()

    # -- for the work

    def check(self, *, can_wait: bool = False) -> None:
        """Raise if the work was stopped. `can_wait` declares that the caller holds nothing that others wait for, so
        that a server may suspend it here while others run.
        """
        del can_wait
        if self._error is not None:
            raise self._error()

    def settle(self) -> None:
        """Raise if the work was stopped; otherwise it can no longer be."""
        with self._lock:
            if self._error is not None:
                raise self._error()
            self._is_settled = self._is_settled or self._settles

    def begin(self, interrupt: Callable[[], None]) -> None:
        """Announce a statement that `interrupt` can cancel; raises if the work was already stopped."""
        with self._lock:
            if self._is_settled:
                return
            if self._error is not None:
                raise self._error()
            self._interrupt = interrupt

    def end(self) -> None:
        """End the statement; its interrupter is no longer called."""
        with self._lock:
            self._interrupt = None


CURRENT: ContextVar[Cancellation | None] = ContextVar("muniment_cancellation", default=None)
"""The cancellation of the current work; None outside a server."""


@contextmanager
def cancellable(cancellation: Cancellation | None) -> Iterator[None]:
    """Run the block as work that can be stopped; with None, as work that cannot."""
    before = CURRENT.set(cancellation)
    try:
        yield
    finally:
        CURRENT.reset(before)


def checkpoint() -> None:
    """Check for cancellation between parts of a long computation. Raises if the work was stopped."""
    found = CURRENT.get()
    if found is not None:
        found.check()
