"""Which thread is inside which call, and what a finished or failed transaction still answers: nothing.

`Turns` refuses a call inside the work of another on the same thread: engines would disagree about what the
inner one sees, and one of them would wait for itself. `View` is the part every engine's transaction shares.
Never touches storage.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from types import TracebackType
from typing import Any, ClassVar, TypeVar, cast

from muniment.core.limits import CURRENT, Cancellation
from muniment.core.ports.engine import KeyTaken, Op, Row, Select
from muniment.errors import InvalidInput, MunimentError, StorageFailure, StoreDamaged

__all__ = ["Turns", "View"]

R = TypeVar("R")
_ROWS_BETWEEN = 256
"""Rows of a stream after which it is looked whether somebody still waits for them."""


class Turns(threading.local):
    """`with turns:` around the work of a call; one at a time for each thread."""

    busy = False

    def __enter__(self) -> None:
        if self.busy:
            raise StorageFailure(
                "a store call inside the work of another store call",
                hint="use the transaction handed to the work, or call after it has ended",
            )
        self.busy = True

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.busy = False


class View(ABC):
    """One tenant seen through one transaction. Subclasses fill `ops` and `_rows`.

    After an operation has failed nothing more is done, and the whole is rolled back even where the work
    swallows the error: so it is on a server, so it is everywhere. Before each operation it is looked whether somebody
    still waits for what is done (`core.limits`).
    """

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]]
    can_wait: ClassVar[bool] = False
    """Does it hold nothing while it is open that others wait for?"""

    def __init__(self) -> None:
        self.failure: MunimentError | KeyTaken | None = None
        self._ended = False
        self._streams: list[Iterator[Row]] = []

    def do(self, op: Op[R]) -> R:
        if self._ended or self.failure is not None:
            self._refuse()
        run = self.ops.get(type(op))
        cancellation = CURRENT.get()
        try:
            if run is None:
                raise InvalidInput(f"{type(op).__name__} cannot be done here", hint="a reader only reads")
            if cancellation is None:
                return cast("R", run(self, op))
            return cast("R", self._cancellable(cancellation, lambda: run(self, op)))
        except (MunimentError, KeyTaken) as error:
            self.failure = error
            raise

    def _cancellable(self, cancellation: Cancellation, run: Callable[[], R]) -> R:
        cancellation.check(can_wait=self.can_wait)
        cancellation.begin(self._interrupt)
        try:
            return run()
        except StorageFailure:
            cancellation.check()  # broken off: told as what it is
            raise
        finally:
            cancellation.end()

    def _interrupt(self) -> None:  # noqa: B027
        """Break off the statement that runs in another thread, where the engine has such."""

    def settle(self) -> None:
        """The last moment before a commit: what was stopped by now is rolled back, what was not is written."""
        cancellation = CURRENT.get()
        if cancellation is not None:
            cancellation.settle()

    def stream(self, select: Select) -> Iterator[Row]:
        """Rows one by one. Do not change the table while its stream is open."""
        if self._ended or self.failure is not None:
            self._refuse()
        rows = self._watched(self._rows(select))
        self._streams.append(rows)
        return rows

    def _watched(self, rows: Iterator[Row]) -> Iterator[Row]:
        try:
            while (cancellation := CURRENT.get()) is not None:
                some = self._cancellable(cancellation, lambda: list(islice(rows, _ROWS_BETWEEN)))
                yield from some
                if len(some) < _ROWS_BETWEEN:
                    return
            yield from rows
        except (MunimentError, KeyTaken) as error:
            self.failure = error
            raise

    def end(self) -> None:
        """Nothing is answered from now on; open streams are closed with the transaction."""
        self._ended = True
        for rows in self._streams:
            close = getattr(rows, "close", None)
            if close is not None:
                close()
        self._streams.clear()

    @abstractmethod
    def _rows(self, select: Select) -> Iterator[Row]: ...

    def _refuse(self) -> None:
        if isinstance(self.failure, StoreDamaged):
            raise self.failure  # whoever goes on to look for more damage is told of this one again
        if self.failure is not None:
            raise StorageFailure("an operation of this transaction has failed; nothing more can be done in it")
        raise StorageFailure("this transaction has ended", hint="keep no transaction beyond its work")
