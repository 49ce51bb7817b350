"""Execution of a request's work: in a thread, with progress reports, stopped when the client cancels.

A cancellation takes effect at once: uncommitted work is never written (`core.limits`). Progress is the elapsed seconds,
sent each second to a client that asked for it, so that it keeps waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from anyio import CapacityLimiter, create_task_group, get_cancelled_exc_class, sleep, to_thread
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from muniment.core.limits import Cancellation, cancellable
from muniment.errors import MunimentError, Stopped

__all__ = ["Carry", "Ctx", "InThreads", "accompanied"]

PROGRESS_S = 1.0
"""Seconds between progress reports."""

Ctx = ServerRequestContext[Any, Any]
T = TypeVar("T")


class Carry(Protocol):
    """Runs the work of a request in a thread, when it is its turn."""

    async def __call__(self, ctx: Ctx, name: str, work: Callable[[], T]) -> T: ...


class InThreads:
    """A limited number of threads, in order of arrival: for a server of one caller."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._limiter: CapacityLimiter | None = None

    async def __call__(self, ctx: Ctx, name: str, work: Callable[[], T]) -> T:
        del name
        if self._limiter is None:  # belongs to the event loop
            self._limiter = CapacityLimiter(self._threads)
        limiter, cancellation = self._limiter, Cancellation()

        def carried() -> T:
            with cancellable(cancellation):
                cancellation.check()
                return work()

        def stop() -> None:
            if cancellation.stop(_is_cancelled):
                threading.Thread(target=cancellation.interrupt, daemon=True).start()

        return await accompanied(ctx, lambda: to_thread.run_sync(carried, limiter=limiter), stop)


async def accompanied(ctx: Ctx, work: Callable[[], Awaitable[T]], stop: Callable[[], None] | None = None) -> T:
    """Return the result of `work`. Meanwhile the client gets progress each second; if it cancels, `stop` is called, and
    the work, which ends at its next check, is awaited.
    """
    answered: list[T] = []
    failed: list[MunimentError | MCPError] = []

    async def tell() -> None:
        try:
            seconds = 0.0
            while True:
                await sleep(PROGRESS_S)
                seconds += PROGRESS_S
                await ctx.session.report_progress(seconds, None, f"at it for {seconds:g} s")
        except get_cancelled_exc_class():
            if stop is not None and not answered and not failed:
                stop()
            raise

    async with create_task_group() as group:
        group.start_soon(tell)
        try:
            answered.append(await work())
        except (MunimentError, MCPError) as error:  # raised directly, not in an exception group
            failed.append(error)
        group.cancel_scope.cancel()
    if failed:
        raise failed[0]
    return answered[0]


def _is_cancelled() -> MunimentError:
    return Stopped("the client cancelled it")
