"""An engine for one piece of shared work: each writing transaction first checks that this process still holds it.

The worker receives a context over this engine and knows nothing of leases: its write succeeds, or another process has
taken over and nothing is written. Reads are unaffected, except for a piece already known to be lost.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from muniment.store.background.leases import check_fence, lost

if TYPE_CHECKING:
    from muniment.core.ports.engine import Engine, Reader, Transaction
    from muniment.store.background.leases import Taken
    from muniment.store.context import Context

__all__ = ["FencedEngine", "fenced"]

R = TypeVar("R")


class FencedEngine:
    """An engine whose writes for one tenant require a lease; everything else passes through."""

    def __init__(self, engine: Engine, taken: Taken, is_lost: Callable[[str], bool]) -> None:
        self.inner = engine
        self._taken = taken
        self._is_lost = is_lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, tenant_id: str, work: Callable[[Transaction], R]) -> R:
        if tenant_id != self._taken.place:
            return self.inner.write(tenant_id, work)

        def behind_the_fence(tx: Transaction) -> R:
            check_fence(tx, self._taken)
            return work(tx)

        return self.inner.write(tenant_id, behind_the_fence)

    def read(self, tenant_id: str, work: Callable[[Reader], R]) -> R:
        """Refuse to read once the lease is known to be lost: nobody needs the result, or a model call based on it."""
        if self._is_lost(self._taken.token):
            raise lost(self._taken)
        return self.inner.read(tenant_id, work)


def fenced(ctx: Context, taken: Taken, is_lost: Callable[[str], bool]) -> Context:
    """Return a context over the same store and caches for the holder of these pieces."""
    held = copy.copy(ctx)
    held.engine = cast("Engine", FencedEngine(ctx.engine, taken, is_lost))
    return held
