"""Work behind the calls that wrote: vectors, and reading by a model, each in a thread that starts with the first turn.

Work is due for each user and waits a moment after the latest turn, so that turns which follow one another share a
transaction or a call. Other processes may do the same work: a piece is stored, or a batch claimed, by whoever is first.
What is not done when the store is closed waits for the next process that writes that user's memory, or for upkeep.
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
"""From the last turn of a user to its vector."""
_LOOK_AGAIN_S = 1.0
"""How long turns are left to another process that reads their session."""
_SUMS = (
    "turns", "withheld", "unreadable", "calls", "tokens_in", "tokens_out", "proposed", "accepted", "promoted",
    "by_patterns",
)  # fmt: skip

Owner = tuple[str, str]
"""A tenant and a user."""
W = TypeVar("W")
"""What is due for one user."""


class _Due(NamedTuple, Generic[W]):
    work: W
    since: float
    """When its wait began."""


class _Background(ABC, Generic[W]):
    """Does what is due in a thread of its own, for the user who has waited longest. Thread-safe."""

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
        """Do the work of a user; answers what of it is to be looked at again soon."""

    def _join(self, _earlier: W, later: W) -> W:
        """Put together what was due for a user and what is due since."""
        return later

    def stop(self) -> None:
        """End as soon as the store allows. A call of a model that is under way is left to itself."""
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
                # A defect in one user's work ends this thread, and Python prints it; all others go on in another one.
                self._thread = None
                if self._due and not self._is_stopped:
                    self._start()

    def _attempt(self, owner: Owner, work: W) -> bool:
        """Do the work of a user, or put it back; False where the store is being closed."""
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
        """The user who has waited longest, once it is time; None when the store is closed."""
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


# -- vectors ------------------------------------------------------------------------------------------


class BackgroundEmbedding(_Background[None]):
    """Makes the vectors of users whose entries have none yet."""

    def __init__(self, ctx: Context, embedder: Embedder) -> None:
        super().__init__("embedding", EMBED_WAIT_S)
        self._ctx, self._embedder = ctx, embedder

    def notice(self, tenant_id: str, user_id: str) -> None:
        """Entries of this user have no vectors yet."""
        self._add((tenant_id, user_id), None)

    def _do(self, owner: Owner, _work: None) -> None:
        from muniment.memory.vectors import embed_behind

        embed_behind(self._ctx, self._embedder, *owner, entries_max=FOLLOWED_MAX)


# -- reading by a model -------------------------------------------------------------------------------


class _Unread(NamedTuple):
    sessions: frozenset[str]
    model: Any


class BackgroundExtraction(_Background[_Unread]):
    """Has a model read the turns of sessions. A session that another process is reading is looked at again soon, since
    that one may have begun before the latest turn."""

    def __init__(self, extract: Callable[..., ExtractionReport], wait_s: float) -> None:
        super().__init__("extraction", wait_s)
        self._extract = extract
        self._known: set[Owner] = set()
        """Users of whom all sessions were looked at: an earlier process may have left something."""
        self._total: ExtractionReport | None = None

    @property
    def report(self) -> ExtractionReport | None:
        """What it has read and spent so far; None before the first batch. `left` is of the sessions it read last."""
        with self._woken:
            return self._total

    def notice(self, scope: Scope, model: Any) -> None:
        """Turns of this session are written, for this model to read."""
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
    """What two reports come to: all that was done, and what is left as the newer one has it."""
    if total is None:
        return report
    sums = {name: getattr(total, name) + getattr(report, name) for name in _SUMS}
    rejected = dict(sorted((Counter(total.rejected) + Counter(report.rejected)).items()))
    is_estimated = total.is_estimated or report.is_estimated
    return report.model_copy(update=sums | {"rejected": rejected, "is_estimated": is_estimated})
