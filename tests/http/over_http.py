"""A pytest plugin: every store that a test opens is served, and what the test gets is a connection to it.

`pytest -p over_http tests/unit/…` runs the library's own tests through server and client; what they open with `await`
goes through `muniment.aio.connect`. Tests that look inside a store find the real one's context there.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections import Counter
from typing import Any

import pytest
from starlette.testclient import TestClient

import muniment
from effort import SOAK
from muniment import aio
from muniment.handles import memory as opening
from muniment.handles.memory import Memory
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings

URL = "http://localhost"
_CASES = 1
_open = opening.open


class Server:
    """A server over a store, in this process."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._folder = tempfile.TemporaryDirectory(prefix="muniment-over-http-")
        self.http = TestClient(create_app(memory, ServerSettings(research_dir=self._folder.name)), base_url=URL)

    def joined(self, remote: Any) -> Any:
        """A connection whose closing closes the server and its store, and which shows the store's inside."""
        close = remote.close

        def close_all() -> None:
            close()
            self._memory.close()
            self._folder.cleanup()

        remote._ctx, remote.close = self._memory._ctx, close_all
        return remote


def served(memory: Memory) -> Any:
    """A connection to a server over this store; closing it closes both."""
    server = Server(memory)
    return server.joined(muniment.connect(URL, http=server.http))


@functools.wraps(_open)
def open_served(*args: Any, **kwargs: Any) -> Any:
    return served(_open(*args, **kwargs))


@functools.wraps(_open)
async def open_served_async(*args: Any, **kwargs: Any) -> Any:
    server = Server(_open(*args, **kwargs))
    connected = await aio.connect(URL, http=server.http)
    server.joined(connected._sync)  # type: ignore[attr-defined]
    return connected


def pytest_configure() -> None:
    muniment.open = opening.open = open_served
    aio.open = open_served_async


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of those that were chosen; of one that has many cases the first, and all under a soak."""
    seen: Counter[str] = Counter()
    kept = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        seen[name] += 1
        if SOAK or seen[name] <= _CASES:
            kept.append(item)
    items[:] = kept


def pytest_collection_finish() -> None:
    for module in list(sys.modules.values()):
        if (getattr(module, "__file__", None) or "").endswith("tests/unit/conftest.py"):
            module.Memory = lambda context: served(Memory(context))  # type: ignore[attr-defined]
            module.ENGINES = ("memory",)  # type: ignore[attr-defined]
