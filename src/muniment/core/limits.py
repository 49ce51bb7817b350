"""Limits on what a process keeps and does: bounded memos of pure functions, and work that can be stopped.

A memo remembers answers by the text that users gave. It belongs to no store, so a forget in any store empties them all.

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
"""What empties the memos of functions."""
TABLES: WeakValueDictionary[int, dict[Any, Any]] = WeakValueDictionary()
"""The tables that live, by nothing but what they are."""


class Memo(dict[K, V]):
    """A table of answers. Whoever fills it bounds it."""

    def __init__(self) -> None:
        super().__init__()
        TABLES[id(self)] = self


def remembered(size_max: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function that remembers its last answers."""

    def remember(function: Callable[P, T]) -> Callable[P, T]:
        found = lru_cache(maxsize=size_max)(function)
        REMEMBERED.append(found.cache_clear)
        return cast("Callable[P, T]", found)

    return remember


def drop_tenant(held: MutableMapping[Any, Any], tenant_id: str | None) -> None:
    """Take out of a table what lies under keys that begin with this tenant; everything, where none is named."""
    for key in [key for key in held if tenant_id in (None, key[0])]:
        del held[key]


# -- cancellation ---------------------------------------------------------------------------------------


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
