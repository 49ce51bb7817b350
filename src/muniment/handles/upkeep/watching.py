"""Continuous upkeep: a process, or a server's thread, that checks again and again for pending work.

If nothing was committed since the last idle check, a check costs one query. An error of the store, a model or an object
store is reported, and the next check retries; neither these nor a defect in the callback ends the watch. Each check
runs in a separate thread, so that its waiter can be interrupted while it gives its leases back.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from muniment.core.limits import Cancellation, cancellable
from muniment.errors import Interrupted, MunimentError
from muniment.handles.upkeep.running import Upkeep

if TYPE_CHECKING:
    from muniment.handles.upkeep.records import UpkeepKind, UpkeepReport
    from muniment.store.context import Context

__all__ = ["UpkeepWatch"]

_LOGGER = logging.getLogger("muniment.upkeep")


class UpkeepWatch:
    """Continuous upkeep by one process, until it is stopped."""

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
        self._seen: str | None = None
        """The store's last commit mark when there was nothing to do."""
        self._thread: threading.Thread | None = None

    def reports(self) -> Iterator[UpkeepReport]:
        """Yield a report whenever something was done, until it is stopped or closed."""
        with ThreadPoolExecutor(1, "muniment-upkeep") as pool:
            try:
                while not self._stopped.is_set():
                    going = pool.submit(self._look)
                    error = going.exception()
                    if error is not None:
                        self._tell(error)
                    elif (report := going.result()) is not None and report.pieces:
                        yield report
                    self._stopped.wait(self._every_s)
            finally:
                self._end()  # the waiter may have been interrupted, as by Ctrl-C

    def _look(self) -> UpkeepReport | None:
        """The report; None if nothing was committed since there was nothing to do."""
        mark = self._engine.mark()
        if mark == self._seen and not self._upkeep.is_retry_due:
            return None
        self._seen = None
        with cancellable(self._work):
            report = self._upkeep.run()
        self._seen = mark if report.is_idle else None
        return report

    def _tell(self, error: BaseException) -> None:
        if self._stopped.is_set() and isinstance(error, MunimentError):
            return
        if isinstance(error, MunimentError):
            _LOGGER.warning("upkeep failed, and is tried again", extra={"said": error.to_dict()})
        else:
            _LOGGER.error("upkeep failed by a defect, and is tried again", exc_info=error)

    def start(self) -> None:
        """Watch in a background thread."""
        self._thread = threading.Thread(target=self._watch, name="muniment-upkeep", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        for report in self.reports():
            _LOGGER.info("upkeep", extra={"said": report.to_wire()})

    def stop(self) -> None:
        """Stop at the next transaction; written work stays, and others continue with the rest."""
        self._end()
        if self._thread is not None:
            self._thread.join()

    def _end(self) -> None:
        self._stopped.set()
        self._upkeep.stop()
        self._work.stop(lambda: Interrupted("the process that does upkeep is ending"))
