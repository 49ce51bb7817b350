"""Engines with injected failures: at the n-th write of a call, or after its n-th commit.

Writes are counted, reads are not: caching differs between engines, writes do not. So the same fault strikes every
engine at the same place, and they must agree on the result.
"""

from __future__ import annotations

import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

from muniment.core.ports.engine import (
    Delete,
    Engine,
    EngineInfo,
    Insert,
    Op,
    Patch,
    Put,
    Reader,
    Row,
    ScrubReport,
    Select,
    StoreSizes,
    Transaction,
)
from muniment.testing.simulator.model import BrokenPromise

__all__ = ["Child", "Fault", "FaultKind", "FaultyEngine", "Killed", "Strike", "in_child"]

R = TypeVar("R")
FaultKind = Literal["kill", "kill_after", "lost", "lost_after", "full"]
_CHANGES = (Insert, Put, Patch, Delete)


class Fault(NamedTuple):
    """A failure during a call, with the number of its write or, for those after a commit, of the commit."""

    kind: FaultKind
    at: int


class Killed(BaseException):
    """The process is gone, as far as a store within it can be. The product must never catch this."""


Strike = Callable[[Fault, Any], None]


class FaultyEngine:
    """An engine that passes calls through until a fault is armed."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self._fault: Fault | None = None
        self._strike: Strike | None = None
        self._writes = 0
        self._commits = 0

    def arm(self, fault: Fault, strike: Strike) -> None:
        self._fault, self._strike = fault, strike
        self._writes = self._commits = 0

    def disarm(self) -> None:
        self._fault = self._strike = None

    def count_write(self, transaction: Any) -> None:
        """Count an upcoming change."""
        self._writes += 1
        if self._is_due(self._writes, is_after=False):
            self._hit(transaction)

    def _count_commit(self) -> None:
        self._commits += 1
        if self._is_due(self._commits, is_after=True):
            self._hit(None)

    def _is_due(self, count: int, *, is_after: bool) -> bool:
        fault = self._fault
        if fault is None:
            return False
        return fault.kind.endswith("_after") == is_after and count == fault.at

    def _hit(self, transaction: Any) -> None:
        if self._fault is not None and self._strike is not None:
            self._strike(self._fault, transaction)

    # -- the port

    @property
    def info(self) -> EngineInfo:
        return self.inner.info

    @property
    def is_shared_between_processes(self) -> bool:
        return self.inner.is_shared_between_processes

    @property
    def is_walled_by_the_server(self) -> bool:
        return self.inner.is_walled_by_the_server

    def write(self, tenant_id: str, work: Callable[[Transaction], R]) -> R:
        if self._fault is None:
            return self.inner.write(tenant_id, work)
        answer = self.inner.write(tenant_id, lambda tx: work(_FaultyTransaction(tx, self)))
        self._count_commit()
        return answer

    def read(self, tenant_id: str, work: Callable[[Reader], R]) -> R:
        return self.inner.read(tenant_id, work)

    def snapshot(self, tenant_id: str) -> AbstractContextManager[Reader]:
        return self.inner.snapshot(tenant_id)

    def mark(self) -> str:
        return self.inner.mark()

    def tenants(self, after: str | None = None, limit: int | None = None) -> list[str]:
        return self.inner.tenants(after, limit)

    def unlisted_tenants(self) -> list[str]:
        return self.inner.unlisted_tenants()

    def is_copied(self) -> bool:
        return self.inner.is_copied()

    def sizes(self) -> StoreSizes:
        return self.inner.sizes()

    def scrub(self, needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        return self.inner.scrub(needles, thorough=thorough)

    def close(self) -> None:
        self.inner.close()


class _FaultyTransaction:
    def __init__(self, inner: Transaction, engine: FaultyEngine) -> None:
        self.inner = inner
        self._engine = engine

    def do(self, op: Op[R]) -> R:
        if isinstance(op, _CHANGES):
            self._engine.count_write(self.inner)
        return self.inner.do(op)

    def stream(self, select: Select) -> Iterator[Row]:
        return self.inner.stream(select)


class Child(Generic[R]):
    """Work in a forked process that ends without cleanup."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about forks in a process with threads, which the child does not use
            self._pid = os.fork()
        if self._pid == 0:
            told = b""
            try:
                told = pickle.dumps(("done", work()))
            finally:
                with open(writing, "wb", closefd=False) as pipe:
                    pipe.write(told or pickle.dumps(("failed", traceback.format_exc())))
                os._exit(0)
        os.close(writing)

    def answer(self) -> R | None:
        """Return the result of the work; None if the process was killed before it finished."""
        with open(self._reading, "rb") as pipe:
            told = pipe.read()
        ended = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        if ended == -signal.SIGKILL:
            return None
        how, value = pickle.loads(told)
        if how == "failed":
            raise BrokenPromise(f"an error that is not one of the tree:\n{value}")
        return cast("R", value)


def in_child(work: Callable[[], R]) -> R | None:
    """Do the work in a separate process, and wait for it; None if it was killed before it finished."""
    return Child(work).answer()
