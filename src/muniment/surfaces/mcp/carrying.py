"""How the work of a request is carried out: in a thread, told of while it lasts, stopped when nobody wants it any more.

A client that cancels is believed at once: what is not yet committed is never written (`core.limits`). Progress is
the seconds that have passed, told each second to a client that asked for it, so that it knows to go on waiting.
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
"""How often a client is told that the work goes on."""

Ctx = ServerRequestContext[Any, Any]
T = TypeVar("T")


class Carry(Protocol):
    """Carries the work of a request out in a thread, when it is its turn."""

    async def __call__(self, ctx: Ctx, name: str, work: Callable[[], T]) -> T: ...


class InThreads:
    """So many at the same time, in the order they came: for a server of one caller."""

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
    """What `work` answers. While it lasts, the client is told each second; where the client cancels, `stop` is called
    and the work, which ends at its next look, is waited for.
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
        except (MunimentError, MCPError) as error:  # told by itself, and not as one of a group
            failed.append(error)
        group.cancel_scope.cancel()
    if failed:
        raise failed[0]
    return answered[0]


def _is_cancelled() -> MunimentError:
    return Stopped("the client cancelled it")
