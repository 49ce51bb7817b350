"""Reading turns by a model behind the calls that wrote them: one thread of a store, which starts with the first turn.

It asks about a session some seconds after its latest turn, so that turns which follow one another share a call. Other
processes may do the same: a batch is claimed before it is asked about. A session that another process is reading is
looked at again soon, since that one may have begun before the latest turn. What is not read when the store is closed
waits for the next process in which the user says something, for `extract_pending`, or for upkeep.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from muniment.core.limits import Cancellation, cancellable
from muniment.core.scope import Scope
from muniment.errors import Interrupted, MunimentError
from muniment.handles.upkeep.resting import Rest
from muniment.memory.extraction import EXTRACT_SESSION, ExtractionReport

__all__ = ["BackgroundExtraction"]

_LOOK_AGAIN_S = 1.0
"""How long turns are left to another process that reads their session."""
_LOGGER = logging.getLogger("muniment.extraction")
_SUMS = (
    "turns", "withheld", "unreadable", "calls", "tokens_in", "tokens_out", "proposed", "accepted", "promoted",
    "by_patterns",
)  # fmt: skip


class _Due(NamedTuple):
    """What a user said that waits to be read."""

    sessions: set[str]
    model: Any
    since: float
    """When the latest turn was written."""


class BackgroundExtraction:
    """Reads in a thread of its own what it is told of. Thread-safe."""

    def __init__(self, extract: Callable[..., ExtractionReport], wait_s: float) -> None:
        self._extract = extract
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._woken = threading.Condition(self._lock)
        self._due: dict[tuple[str, str], _Due] = {}
        self._known: set[tuple[str, str]] = set()
        """Users of whom all sessions were looked at: an earlier process may have left something."""
        self._is_stopped = False
        self._work = Cancellation(settles=False)
        self._rest = Rest()
        self._thread: threading.Thread | None = None
        self._total: ExtractionReport | None = None

    @property
    def report(self) -> ExtractionReport | None:
        """What it has read and spent so far; None before the first batch. `left` is of the sessions it read last."""
        with self._lock:
            return self._total

    def notice(self, scope: Scope, model: Any) -> None:
        """Turns of this session are written, for this model to read."""
        if scope.session_id == EXTRACT_SESSION:
            return
        owner = (scope.tenant_id, scope.user_id)
        with self._lock:
            if self._is_stopped:
                return
            sessions = self._due[owner].sessions if owner in self._due else set()
            self._due[owner] = _Due(sessions | {scope.session_id}, model, time.monotonic())
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._read_all, name="muniment-extraction", daemon=True)
                self._thread.start()
            self._woken.notify()

    def stop(self) -> None:
        """End as soon as the store allows. A call of the model that is under way is left to itself."""
        with self._lock:
            self._is_stopped = True
            self._woken.notify()
        self._work.stop(lambda: Interrupted("the store is being closed"))
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _read_all(self) -> None:
        while (taken := self._take()) is not None:
            owner, due = taken
            try:
                with cancellable(self._work):
                    self._read(owner, due)
            except Interrupted:
                return
            except MunimentError as error:
                self._rest.fail()
                self._give_back(owner, due)
                _LOGGER.warning("turns could not be read, and are tried again", extra={"said": error.to_dict()})
            except Exception:  # a defect of one user's turns must not end the reading of all others
                _LOGGER.exception("turns could not be read")
            else:
                self._rest.work()

    def _take(self) -> tuple[tuple[str, str], _Due] | None:
        """The user who has waited longest, once it is time; None when the store is closed."""
        with self._lock:
            while not self._is_stopped:
                waits = self._rest.seconds if self._rest.is_resting else self._wait_s
                owner = min(self._due, key=lambda each: self._due[each].since, default=None)
                if owner is None:
                    self._woken.wait()
                    continue
                left = self._due[owner].since + waits - time.monotonic()
                if left <= 0:
                    return owner, self._due.pop(owner)
                self._woken.wait(left)
        return None

    def _read(self, owner: tuple[str, str], due: _Due) -> None:
        tenant_id, user_id = owner
        sessions = due.sessions if owner in self._known else None
        report = self._extract(tenant_id=tenant_id, user_id=user_id, model=due.model, sessions=sessions)
        if report.left:
            self._give_back(owner, due, again_s=_LOOK_AGAIN_S)
        else:
            self._known.add(owner)
        if report.turns or report.calls:
            _LOGGER.info("turns were read", extra={"said": report.to_wire()})
        with self._lock:
            self._total = _sum(self._total, report)

    def _give_back(self, owner: tuple[str, str], due: _Due, again_s: float = 0.0) -> None:
        with self._lock:
            later = self._due.get(owner)
            sessions = due.sessions if later is None else due.sessions | later.sessions
            self._due[owner] = _Due(sessions, due.model if later is None else later.model, time.monotonic() + again_s)


def _sum(total: ExtractionReport | None, report: ExtractionReport) -> ExtractionReport:
    """What two reports come to: all that was done, and what is left as the newer one has it."""
    if total is None:
        return report
    sums = {name: getattr(total, name) + getattr(report, name) for name in _SUMS}
    rejected = dict(sorted((Counter(total.rejected) + Counter(report.rejected)).items()))
    is_estimated = total.is_estimated or report.is_estimated
    return report.model_copy(update=sums | {"rejected": rejected, "is_estimated": is_estimated})
