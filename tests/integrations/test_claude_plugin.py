"""The packaged plugin, held to the documented format and to what `muniment install` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

import muniment
from muniment.surfaces.hosts.commands import plugin_folder
from muniment.surfaces.hosts.events import read_event
from muniment.surfaces.hosts.hosts import HOSTS, Setup

ROOT = plugin_folder()
PLUGIN = ROOT / "muniment"
KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
HANDLER = {"type", "command", "args", "timeout", "async", "statusMessage", "if", "shell"}


def read(*parts: str) -> Any:
    return json.loads(ROOT.joinpath(*parts).read_text("utf-8"))


def test_the_marketplace_names_the_plugin_that_lies_beside_it() -> None:
    market = read(".claude-plugin", "marketplace.json")
    assert KEBAB.fullmatch(market["name"])
    assert not market["name"].startswith(("claude", "anthropic")), "such names are taken"
    assert market["owner"]["name"]
    (entry,) = market["plugins"]
    assert entry["source"].startswith("./")
    manifest = json.loads((ROOT / entry["source"] / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["name"] == entry["name"]
    assert KEBAB.fullmatch(manifest["name"])
    assert manifest["version"] == muniment.__version__
    assert set(manifest) <= {"name", "displayName", "version", "description", "author", "license", "keywords"}
    assert sorted(path.name for path in (PLUGIN / ".claude-plugin").iterdir()) == ["plugin.json"]


def test_hooks_and_server_are_those_that_install_writes() -> None:
    hooks, server = HOSTS["claude-code"].edits(Setup("project", Path("/p"), Path("/h"), {}))
    written = read("muniment", "hooks", "hooks.json")
    assert written["hooks"] == {event: [entry] for event, entry in (hooks.hooks or {}).items()}
    own = read("muniment", ".mcp.json")["mcpServers"]["muniment"]
    assert {"type": "stdio", **own} == server.server
    for event, groups in written["hooks"].items():
        told = {"hook_event_name": event, "session_id": "s", "tool_name": "x"}
        assert read_event(told) is not None, f"{event} is listened to"
        for group in groups:
            assert set(group) <= {"matcher", "hooks"}
            assert all(set(handler) <= HANDLER and handler["type"] == "command" for handler in group["hooks"])


def test_skills_say_what_they_are_for() -> None:
    found = sorted(PLUGIN.glob("skills/*/SKILL.md"))
    assert [path.parent.name for path in found] == ["memory-search", "memory-why"]
    for path in found:
        _, head, body = path.read_text("utf-8").split("---\n", 2)
        about = yaml.safe_load(head)
        assert about["name"] == path.parent.name
        assert 20 < len(about["description"]) < 300
        assert "$ARGUMENTS" in body


def test_no_file_of_it_names_a_path_of_a_machine() -> None:
    for path in ROOT.rglob("*"):
        if path.is_file():
            assert not re.search(r"/(?:home|Users|tmp|work)/", path.read_text("utf-8")), path
