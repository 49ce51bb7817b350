"""Periodic removal of expired values in a separate thread, as in LangGraph's own stores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from muniment.errors import MunimentError, StorageFailure

__all__ = ["Sweeper"]


class Sweeper:
    """A thread that sweeps until it is stopped."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, interval_minutes: float) -> Future[None]:
        """Start the thread; return a future that ends with it, and stops it if cancelled."""
        future: Future[None] = Future()
        future.add_done_callback(lambda ended: self._stop.set() if ended.cancelled() else None)
        if self._thread is None or not self._thread.is_alive():
            self._stop.clear()
            self._thread = threading.Thread(
                target=self._go_on, args=(interval_minutes * 60, future), daemon=True, name="ttl-sweeper"
            )
            self._thread.start()
        return future

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the thread; return whether it ended within the timeout in seconds."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return True
        self._stop.set()
        thread.join(timeout)
        return not thread.is_alive()

    def _go_on(self, seconds: float, future: Future[None]) -> None:
        while not self._stop.wait(seconds):
            try:
                self._sweep()
            except StorageFailure:
                continue  # busy or briefly gone: the next round handles the rest
            except MunimentError as error:
                if not future.cancelled():
                    future.set_exception(error)
                return
        if not future.cancelled():
            future.set_result(None)
