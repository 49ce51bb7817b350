"""The tools that make clients of the document, and a server for the clients to ask. What is missing is said loudly."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import muniment
from muniment.surfaces.http.serve import make_server
from muniment.surfaces.http.settings import ServerSettings

__all__ = ["CLIENTS", "DOCUMENTS", "GENERATOR", "NODE_TOOLS", "need", "run", "served"]

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "clients"
DOCUMENTS = ROOT / "docs" / "reference"
GENERATOR = CLIENTS / ".generator" / "bin"
NODE_TOOLS = CLIENTS / "typescript" / "node_modules" / ".bin"


def need(*tools: Path) -> None:
    """Skip, and say so, where a tool could not be installed."""
    for tool in tools:
        if not tool.exists():
            pytest.skip(f"CLIENT TESTS SKIPPED: {tool.name} is not there (make tools)")
    if NODE_TOOLS in {tool.parent for tool in tools} and shutil.which("node") is None:
        pytest.skip("CLIENT TESTS SKIPPED: no Node.js on this machine")


def run(*command: object, cwd: Path | None = None, **environment: str) -> str:
    """What a command says; it fails with all of that."""
    told = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1", **environment}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False, env=os.environ | told
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    return done.stdout + done.stderr


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a real server over a new store."""
    with muniment.open(folder / "store.db") as memory:
        server = make_server(memory, ServerSettings(port=0, research_dir=str(folder / "research")))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
