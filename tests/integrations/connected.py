"""A store behind a server in this process, for what must work over a connection too."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

import muniment
from muniment.handles.memory import Memory


def over_http(served: Memory, path: Path, stack: ExitStack) -> Memory:
    """The same store behind a server in this process."""
    testclient = pytest.importorskip("starlette.testclient", reason="the server extra is not installed")
    pytest.importorskip("httpx2", reason="the client extra is not installed")
    from muniment.surfaces.http.app import create_app
    from muniment.surfaces.http.settings import ServerSettings

    app = create_app(served, ServerSettings(keys=str(path / "keys.json"), research_dir=str(path / "research")))
    client = stack.enter_context(testclient.TestClient(app, base_url="http://localhost"))
    return stack.enter_context(muniment.connect("http://localhost", http=client))
