"""What a server tells of its store: how large it is and what is due. Taken in a thread of its own, now and then.

A look goes through the tenants, so that it costs more the more of them there are. The next one is put off by so many
times what the last one took that looking takes a tenth of one core at most; whoever asks meanwhile is told the last.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import SEGMENTS, VECTORS
from muniment.errors import MunimentError
from muniment.store.context import Context
from muniment.store.scrub import count_due
from muniment.surfaces.http.logs import LOGGER

__all__ = ["Look", "StoreLooks", "look_at"]

EVERY_S = 15.0
REST = 9
_WAIT_S = 2.0
"""How long whoever asks for the first time waits for the first look."""
_SILENT_S = 10.0
"""A store that has not said who its tenants are for so long does not answer."""


class Look(NamedTuple):
    """The store at one moment."""

    at_s: float
    up: bool
    size_bytes: int = 0
    entries: int = 0
    tenants: int = 0
    scrubs_due: int = 0
    lag_turns: int = 0


class _Turns(NamedTuple):
    count: int  # type: ignore[assignment] # the column's name


def look_at(ctx: Context, tenants: Sequence[str], now_s: float) -> Look:
    """Ask the store, which answered already who its tenants are."""
    sizes = ctx.engine.sizes()
    embedder = ctx.embedder
    due = lag = 0
    for tenant_id in tenants:
        due += ctx.engine.read(tenant_id, count_due)
        if embedder is not None:
            lag += ctx.engine.read(tenant_id, partial(_lag, embedder=embedder.identity))
    return Look(now_s, True, sizes.size_bytes, sizes.entries, len(tenants), due, lag)


def _lag(reader: Reader, embedder: str) -> int:
    """Turns of the stored index that lack a vector of this embedder."""
    turns = sum(row.count for row in stream(reader, SEGMENTS, into=_Turns))
    return max(
        0, turns - sum(row.count for row in stream(reader, VECTORS, (("embedder", "=", embedder),), into=_Turns))
    )


class StoreLooks:
    """The last look, taken again in the background when somebody asks and it is old. Thread-safe."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._last: Look | None = None
        self._due_s = self._began_s = 0.0
        self._has_answered = False
        self._lock = threading.Lock()
        self._looking: threading.Thread | None = None

    def latest(self) -> Look | None:
        """What was last seen; None where the first look takes long."""
        with self._lock:
            looking = self._looking
            if looking is None and time.monotonic() >= self._due_s:
                self._began_s, self._has_answered = time.monotonic(), False
                looking = self._looking = threading.Thread(target=self._look, name="muniment-metrics", daemon=True)
                looking.start()
        if looking is not None and self._last is None:
            looking.join(_WAIT_S)
        with self._lock:
            is_silent = self._looking is not None and not self._has_answered
            if is_silent and time.monotonic() - self._began_s > _SILENT_S:
                return (self._last or Look(time.time(), False))._replace(up=False)
            return self._last

    def close(self) -> None:
        """Wait for a look that is under way."""
        with self._lock:
            looking = self._looking
        if looking is not None:
            looking.join()

    def _look(self) -> None:
        started_s = time.monotonic()
        try:
            tenants = self._ctx.engine.tenants()
            self._has_answered = True
            seen = look_at(self._ctx, tenants, time.time())
        except MunimentError as error:
            LOGGER.warning("the store cannot be looked at", extra={"said": error.to_dict()})
            seen = Look(time.time(), False)
        with self._lock:
            self._last = seen
            self._due_s = started_s + max(EVERY_S, REST * (time.monotonic() - started_s))
            self._looking = None
