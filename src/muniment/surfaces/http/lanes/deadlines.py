"""Request deadlines, and detection of callers that disconnect.

A caller asks for less than the server's limit with `Prefer: wait=2` (RFC 7240): the seconds it is willing to wait.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from starlette.types import Receive

from muniment.errors import DeadlineExceeded, InvalidInput

__all__ = ["Departure", "late_after", "seconds_of"]

_WAIT = re.compile(r"wait\s{0,8}=\s{0,8}(?P<said>[^;,]{0,64})", re.IGNORECASE | re.ASCII)
_SECONDS = re.compile(r"(?:\d{1,6})(?:\.\d{1,3})?", re.ASCII)
_HINT = "such as `Prefer: wait=2`: seconds, more than 0 and up to 999999"


def seconds_of(prefer: list[str], most_s: float | None) -> float | None:
    """The request's time limit, from its `Prefer` headers and the maximum; None for no limit."""
    asked: list[float] = []
    for each in ",".join(prefer).split(","):
        name = each.partition("=")[0].partition(";")[0].strip().lower()
        if name != "wait":
            continue
        read = _WAIT.fullmatch(each.partition(";")[0].strip())
        said = (read["said"] if read else "").strip().strip('"')
        if not _SECONDS.fullmatch(said) or not float(said):
            raise InvalidInput(f"wait={said!r:.20} in Prefer is no time to wait", path="$.prefer", hint=_HINT)
        asked.append(float(said))
    if len(asked) > 1:
        raise InvalidInput("Prefer says twice how long to wait", path="$.prefer", hint=_HINT)
    given = asked if most_s is None else [*asked, most_s]
    return min(given, default=None)


def late_after(seconds: float | None) -> Callable[[], DeadlineExceeded]:
    """The error for a request with this time limit."""
    told = f"{seconds:g}" if seconds is not None else "-"
    return lambda: DeadlineExceeded(f"not done within {told} seconds", details={"seconds": seconds})


class Departure:
    """Detects that a request's caller has disconnected. It takes over the request's remaining messages, once its body
    was read.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._task: asyncio.Task[None] | None = None
        self._calls: list[Callable[[], None]] = []
        self.has_gone = False

    def tell(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call the function when the caller disconnects, at once if it already has; returns the function that cancels
        this.
        """
        self._calls.append(call)
        if self.has_gone:
            asyncio.get_running_loop().call_soon(call)
        elif self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())

        def end() -> None:
            self._calls.remove(call)

        return end

    async def _watch(self) -> None:
        bodies_left = 2  # the rest of an unread body, and its end
        message = await self._receive()
        while message["type"] == "http.request" and bodies_left:
            bodies_left -= not message.get("more_body", False)
            message = await self._receive()
        if message["type"] == "http.disconnect":
            self.has_gone = True
            for call in tuple(self._calls):
                call()

    async def close(self) -> None:
        """Stop watching: the request was answered."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait((task,))
