"""Making vectors behind the calls that wrote: one thread of a store, which starts with the first turn.

Other processes may do the same: a piece is stored by whoever is first. What has no vector when the store is closed
waits for the next process that reads or writes that user's memory, for `mem.store.index()`, or for upkeep.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from muniment.core.limits import Cancellation, cancellable
from muniment.errors import Interrupted, MunimentError
from muniment.handles.upkeep.resting import Rest
from muniment.store.context import FOLLOWED_MAX

if TYPE_CHECKING:
    from muniment.core.ports.models import Embedder
    from muniment.store.context import Context

__all__ = ["BackgroundEmbedding"]

WAIT_S = 0.2
"""After the last turn of a user, before its vector is made: turns that follow one another share a transaction."""
_LOGGER = logging.getLogger("muniment.embedding")


class BackgroundEmbedding:
    """Makes the vectors of the users that it is told of in a thread of its own. Thread-safe."""

    def __init__(self, ctx: Context, embedder: Embedder) -> None:
        self._ctx, self._embedder = ctx, embedder
        self._lock = threading.Lock()
        self._woken = threading.Condition(self._lock)
        self._due: dict[tuple[str, str], float] = {}
        """When each user was told of last."""
        self._is_stopped = False
        self._work = Cancellation(settles=False)
        self._rest = Rest()
        self._thread: threading.Thread | None = None

    def notice(self, tenant_id: str, user_id: str) -> None:
        """Entries of this user have no vectors yet."""
        with self._lock:
            if self._is_stopped:
                return
            self._due[tenant_id, user_id] = time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._embed_all, name="muniment-embedding", daemon=True)
                self._thread.start()
            self._woken.notify()

    def stop(self) -> None:
        """End as soon as the store allows. What is not stored by then stays due."""
        with self._lock:
            self._is_stopped = True
            self._woken.notify()
        self._work.stop(lambda: Interrupted("the store is being closed"))
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _embed_all(self) -> None:
        from muniment.memory.vectors import embed_behind

        while (owner := self._take()) is not None:
            try:
                with cancellable(self._work):
                    embed_behind(self._ctx, self._embedder, *owner, entries_max=FOLLOWED_MAX)
            except Interrupted:
                return
            except MunimentError as error:
                self._rest.fail()
                with self._lock:
                    self._due[owner] = time.monotonic()
                _LOGGER.warning("vectors could not be made, and are tried again", extra={"said": error.to_dict()})
            except Exception:  # a defect of a caller's embedder must not end the work on all other users
                self._rest.fail()
                _LOGGER.exception("vectors could not be made")
            else:
                self._rest.work()

    def _take(self) -> tuple[str, str] | None:
        """The user who has waited longest, once it is time; None when the store is closed."""
        with self._lock:
            while not self._is_stopped:
                owner = min(self._due, key=lambda each: self._due[each], default=None)
                if owner is None:
                    self._woken.wait()
                    continue
                waits = self._rest.seconds if self._rest.is_resting else WAIT_S
                if (left := self._due[owner] + waits - time.monotonic()) <= 0:
                    del self._due[owner]
                    return owner
                self._woken.wait(left)
        return None
