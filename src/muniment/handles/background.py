"""Background work that follows writes: embedding, and extraction by a model, each in a thread started by the first
turn.

Work is due per user and waits a moment after the latest turn, so that consecutive turns share a transaction or a call.
Other processes may do the same work; the first to store a piece or claim a batch wins. Work unfinished when the store
closes is left to the next process that writes that user's memory, or to upkeep.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from muniment.core.limits import Cancellation, cancellable
from muniment.errors import Interrupted, MunimentError
from muniment.handles.upkeep.resting import Rest
from muniment.store.context import FOLLOWED_MAX

if TYPE_CHECKING:
    from muniment.core.ports.models import Embedder
    from muniment.core.scope import Scope
    from muniment.memory.extraction import ExtractionReport
    from muniment.store.context import Context

__all__ = ["BackgroundEmbedding", "BackgroundExtraction"]

EMBED_WAIT_S = 0.2
"""Seconds from a user's last turn to its embedding."""
_LOOK_AGAIN_S = 1.0
"""Seconds to leave turns to another process that is reading their session."""
_SUMS = (
    "turns", "withheld", "unreadable", "calls", "tokens_in", "tokens_out", "proposed", "accepted", "promoted",
    "by_patterns",
)  # fmt: skip

Owner = tuple[str, str]
"""A tenant and a user."""
W = TypeVar("W")
"""The work due for one user."""


class _Due(NamedTuple, Generic[W]):
    work: W
    since: float
    """When the wait began."""


class _Background(ABC, Generic[W]):
    """Process due work in a dedicated thread, longest-waiting user first. Thread-safe."""

    def __init__(self, name: str, wait_s: float) -> None:
        self._name, self._wait_s = name, wait_s
        self._logger = logging.getLogger(f"muniment.{name}")
        self._woken = threading.Condition()
        self._due: dict[Owner, _Due[W]] = {}
        self._is_stopped = False
        self._cancellation = Cancellation(settles=False)
        self._rest = Rest()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def _do(self, owner: Owner, work: W) -> W | None:
        """Do a user's work; return the part to look at again soon."""

    def _join(self, _earlier: W, later: W) -> W:
        """Merge a user's pending work with newer work."""
        return later

    def stop(self) -> None:
        """Stop as soon as the store allows. A model call in progress is abandoned."""
        with self._woken:
            self._is_stopped = True
            self._woken.notify()
            thread = self._thread
        self._cancellation.stop(lambda: Interrupted("the store is being closed"))
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _add(self, owner: Owner, work: W) -> None:
        with self._woken:
            if self._is_stopped:
                return
            held = self._due.get(owner)
            self._due[owner] = _Due(work if held is None else self._join(held.work, work), time.monotonic())
            if self._thread is None or not self._thread.is_alive():
                self._start()
            self._woken.notify()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"muniment-{self._name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while (taken := self._take()) is not None and self._attempt(*taken):
                pass
        finally:
            with self._woken:
                # A defect in one user's work ends this thread, and Python prints it; the other users continue in a new
                # thread.
                self._thread = None
                if self._due and not self._is_stopped:
                    self._start()

    def _attempt(self, owner: Owner, work: W) -> bool:
        """Do a user's work, or requeue it; False if the store is closing."""
        try:
            with cancellable(self._cancellation):
                left = self._do(owner, work)
        except Interrupted:
            return False
        except MunimentError as error:
            self._rest.fail()
            self._put_back(owner, work)
            self._logger.warning("failed, and is tried again", extra={"said": error.to_dict()})
        else:
            self._rest.work()
            if left is not None:
                self._put_back(owner, left, _LOOK_AGAIN_S)
        return True

    def _put_back(self, owner: Owner, work: W, again_s: float = 0.0) -> None:
        with self._woken:
            later = self._due.get(owner)
            joined = work if later is None else self._join(work, later.work)
            self._due[owner] = _Due(joined, time.monotonic() + again_s)

    def _take(self) -> tuple[Owner, W] | None:
        """Return the longest-waiting user once due; None when the store is closed."""
        with self._woken:
            while not self._is_stopped:
                owner = min(self._due, key=lambda each: self._due[each].since, default=None)
                if owner is None:
                    self._woken.wait()
                    continue
                waits = self._rest.seconds if self._rest.is_resting else self._wait_s
                if (left := self._due[owner].since + waits - time.monotonic()) <= 0:
                    return owner, self._due.pop(owner).work
                self._woken.wait(left)
        return None


# -- embedding ----------------------------------------------------------------------------------------


class BackgroundEmbedding(_Background[None]):
    """Embeds the entries of users that have no vectors yet."""

    def __init__(self, ctx: Context, embedder: Embedder) -> None:
        super().__init__("embedding", EMBED_WAIT_S)
        self._ctx, self._embedder = ctx, embedder

    def notice(self, tenant_id: str, user_id: str) -> None:
        """Note that this user has entries without vectors."""
        self._add((tenant_id, user_id), None)

    def _do(self, owner: Owner, _work: None) -> None:
        from muniment.memory.vectors import embed_behind

        embed_behind(self._ctx, self._embedder, *owner, entries_max=FOLLOWED_MAX)


# -- extraction by a model ----------------------------------------------------------------------------


class _Unread(NamedTuple):
    sessions: frozenset[str]
    model: Any


class BackgroundExtraction(_Background[_Unread]):
    """Extracts facts from sessions with a model. A session that another process is reading is checked again soon, since
    that process may have started before the latest turn.
    """

    def __init__(self, extract: Callable[..., ExtractionReport], wait_s: float) -> None:
        super().__init__("extraction", wait_s)
        self._extract = extract
        self._known: set[Owner] = set()
        """Users whose sessions were all checked once: an earlier process may have left some unread."""
        self._total: ExtractionReport | None = None

    @property
    def report(self) -> ExtractionReport | None:
        """The totals read and spent so far; None before the first batch. `left` counts the sessions read last."""
        with self._woken:
            return self._total

    def notice(self, scope: Scope, model: Any) -> None:
        """Note that turns of this session are written and ready for this model."""
        from muniment.memory.extraction import EXTRACT_SESSION

        if scope.session_id != EXTRACT_SESSION:
            self._add((scope.tenant_id, scope.user_id), _Unread(frozenset((scope.session_id,)), model))

    def _do(self, owner: Owner, work: _Unread) -> _Unread | None:
        tenant_id, user_id = owner
        sessions = work.sessions if owner in self._known else None
        report = self._extract(tenant_id=tenant_id, user_id=user_id, model=work.model, sessions=sessions)
        if not report.left:
            self._known.add(owner)
        if report.turns or report.calls:
            self._logger.info("turns were read", extra={"said": report.to_wire()})
        with self._woken:
            self._total = _sum(self._total, report)
        return work if report.left else None

    def _join(self, _earlier: _Unread, later: _Unread) -> _Unread:
        return _Unread(_earlier.sessions | later.sessions, later.model)


def _sum(total: ExtractionReport | None, report: ExtractionReport) -> ExtractionReport:
    """Add two reports; `left` comes from the newer one."""
    if total is None:
        return report
    sums = {name: getattr(total, name) + getattr(report, name) for name in _SUMS}
    rejected = dict(sorted((Counter(total.rejected) + Counter(report.rejected)).items()))
    is_estimated = total.is_estimated or report.is_estimated
    return report.model_copy(update=sums | {"rejected": rejected, "is_estimated": is_estimated})
