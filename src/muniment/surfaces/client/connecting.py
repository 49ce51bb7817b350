"""`muniment.connect` and `muniment.aio.connect`: a server's store, with the same API as one opened locally."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from muniment.core.outside.system import not_installed
from muniment.errors import InvalidInput

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory

__all__ = ["connect", "connect_async"]

TIMEOUT_S = 60.0
_DEADLINE_S_MIN, _DEADLINE_S_MAX = 0.001, 1_000_000
"""The bounds of the seconds in `Prefer: wait`."""


def connect(
    url: str,
    *,
    key: str | None = None,
    timeout_s: float = TIMEOUT_S,
    deadline_s: float | None = None,
    http: Any = None,
) -> Memory:
    """Connect to a server (`muniment serve`); the result has the same API as a store that `open` opens.

    `key` is an API key, if the server requires one; by default that of the variable MUNIMENT_KEY. `timeout_s` limits
    one answer, or a part of a long one. `deadline_s` limits the server's time for each request: it then stops, having
    written nothing, and `DeadlineExceeded` is raised. `http` is a client to use instead of a new one: an
    `httpx2.Client`, or a compatible object.
    """
    return _connected(url, key, timeout_s, deadline_s, http)


@functools.wraps(connect)
async def connect_async(
    url: str,
    *,
    key: str | None = None,
    timeout_s: float = TIMEOUT_S,
    deadline_s: float | None = None,
    http: Any = None,
) -> AsyncMemory:
    from muniment.aio import opened

    return await opened(lambda: _connected(url, key, timeout_s, deadline_s, http, _refuse_on_loop))


def _connected(
    url: str,
    key: str | None,
    timeout_s: float,
    deadline_s: float | None,
    http: Any,
    before: Callable[[], None] | None = None,
) -> Memory:
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise InvalidInput(f"a server is named by its URL, not {url!r:.60}", path="$.url", hint="https://…")
    if deadline_s is not None and not _DEADLINE_S_MIN <= deadline_s < _DEADLINE_S_MAX:
        raise InvalidInput("a deadline is a number of seconds", path="$.deadline_s", hint="from 0.001 to 999999")
    try:
        import httpx2
    except ImportError:
        raise not_installed("connecting takes an HTTP client", "client") from None
    from muniment.surfaces.client.connection import Connection
    from muniment.surfaces.client.remote import RemoteMemory

    with ExitStack() as unless_let_in:
        if http is None:
            limits = httpx2.Limits(max_connections=64, max_keepalive_connections=16)
            http = httpx2.Client(base_url=url, timeout=timeout_s, limits=limits)
            unless_let_in.callback(http.close)
        connection = Connection(http, key or os.environ.get("MUNIMENT_KEY"), before, deadline_s)
        memory = RemoteMemory(connection, url, connection.whoami())
        unless_let_in.pop_all()
    return memory


def _refuse_on_loop() -> None:
    """Refuse to run on the event loop: a connection for one calls from other threads, or it would block the loop."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidInput(
        "this would be fetched from the server while the event loop waits",
        hint="in a thread: await asyncio.to_thread(lambda: build.pool)",
    )
