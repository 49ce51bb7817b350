"""The official TypeScript SDK talks to the server, over stdio and over HTTP. It is not part of this project:

MUNIMENT_MCP_NODE names a folder in which `npm install @modelcontextprotocol/sdk` was run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_room import make_store
from test_mcp_http import listening

from muniment.surfaces.http.settings import ServerSettings

CLIENT = Path(__file__).parent / "mcp_client.mjs"


@pytest.fixture
def node() -> list[str]:
    folder = os.environ.get("MUNIMENT_MCP_NODE", "")
    found = shutil.which("node")
    if found is None or not (Path(folder) / "node_modules" / "@modelcontextprotocol" / "sdk").is_dir() or not folder:
        pytest.skip("optional: no TypeScript SDK (@modelcontextprotocol/sdk) in the folder of MUNIMENT_MCP_NODE")
    return [found, str(CLIENT), folder]


def check(command: list[str], **more: Any) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **more)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["tools"] == ["search_memory", "remember", "get_context", "record", "forget", "why"]
    assert "City: Berlin [1]" in told["told"]
    assert (told["sources"], told["completed"], told["packet"]) == (1, 1, "application/json")
    assert told["hits"] >= 1
    assert told["refused"] == [True, "$.query"]
    assert told["prompts"] == ["answer", "keep", "catch_up"]


def test_over_stdio(node: list[str], tmp_path: Path) -> None:
    check([*node, "stdio", sys.executable, "-m", "muniment", "mcp", "--user", "ana"], cwd=tmp_path)


def test_over_http(node: list[str]) -> None:
    with make_store() as memory, listening(memory, ServerSettings()) as url:
        check([*node, "http", url])
