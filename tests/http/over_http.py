"""A pytest plugin: every store that a test opens is served, and what the test gets is a connection to it.

`pytest -p over_http tests/unit/…` runs the library's own tests through server and client. Tests that look inside a
store find the real one's context there.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from starlette.testclient import TestClient

import muniment
from muniment.runtime import memory as opening
from muniment.runtime.memory import Memory
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings

_open = opening.open


def served(memory: Memory) -> Any:
    """A connection to a server over this store; closing it closes both."""
    folder = tempfile.TemporaryDirectory(prefix="muniment-over-http-")
    app = create_app(memory, ServerSettings(research_dir=folder.name))
    remote = muniment.connect("http://localhost", http=TestClient(app, base_url="http://localhost"))
    remote._ctx = memory._ctx
    close = remote.close

    def close_all() -> None:
        close()
        memory.close()
        folder.cleanup()

    remote.close = close_all  # type: ignore[method-assign]
    return remote


def open_served(*args: Any, **kwargs: Any) -> Any:
    return served(_open(*args, **kwargs))


def pytest_configure() -> None:
    muniment.open = opening.open = open_served


def pytest_collection_finish() -> None:
    for module in list(sys.modules.values()):
        if (getattr(module, "__file__", None) or "").endswith("tests/unit/conftest.py"):
            module.Memory = lambda context: served(Memory(context))  # type: ignore[attr-defined]
