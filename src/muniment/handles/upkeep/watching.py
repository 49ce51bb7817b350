"""Upkeep that goes on: a process, or a thread of a server, that looks again and again whether something waits.

Where nothing was committed since it last found nothing, a look costs one question. An error of the store, of a model
or of an object store is told, and the next look tries again; it never ends because of one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from muniment.core.cancellation import Cancellation, cancellable
from muniment.errors import Interrupted, MunimentError
from muniment.handles.upkeep.running import Upkeep

if TYPE_CHECKING:
    from muniment.handles.upkeep.records import UpkeepKind, UpkeepReport
    from muniment.store.context import Context

__all__ = ["UpkeepWatch"]

_LOGGER = logging.getLogger("muniment.upkeep")


class UpkeepWatch:
    """One process at the upkeep of a store, until it is stopped."""

    def __init__(
        self,
        ctx: Context,
        kinds: tuple[UpkeepKind, ...],
        *,
        lease_s: float,
        every_s: float,
        tenant_id: str | None = None,
    ) -> None:
        self._engine = ctx.engine
        self._upkeep = Upkeep(ctx, kinds, tenant_id=tenant_id, lease_s=lease_s)
        self._every_s = every_s
        self._stopped = threading.Event()
        self._work = Cancellation(settles=False)
        self._thread: threading.Thread | None = None

    def reports(self) -> Iterator[UpkeepReport]:
        """What was done, each time that something was, until it is stopped."""
        seen: str | None = None
        while not self._stopped.is_set():
            try:
                mark = self._engine.mark()
                if mark != seen:
                    with cancellable(self._work):
                        report = self._upkeep.run()
                    seen = mark if report.is_idle else None
                    if report.pieces:
                        yield report
            except MunimentError as error:
                if not self._stopped.is_set():
                    _LOGGER.warning("upkeep failed, and is tried again", extra={"said": error.to_dict()})
            self._stopped.wait(self._every_s)

    def start(self) -> None:
        """Watch in a thread of its own."""
        self._thread = threading.Thread(target=self._watch, name="muniment-upkeep", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        for report in self.reports():
            _LOGGER.info("upkeep", extra={"said": report.to_wire()})

    def stop(self) -> None:
        """End what is being done at its next transaction; what was written stays, and others go on with the rest."""
        self._stopped.set()
        self._upkeep.stop()
        self._work.stop(lambda: Interrupted("the process that does upkeep is ending"))
        if self._thread is not None:
            self._thread.join()
