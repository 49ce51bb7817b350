"""The guide of MCP names nothing that is not there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner

from muniment.surfaces.cli.main import cli
from muniment.surfaces.mcp.tools import BEFORE, TOOLS

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "guides" / "mcp.md").read_text("utf-8")


def test_every_way_to_start_it_in_the_guide_is_one() -> None:
    flags = set(re.findall(r"--[a-z][a-z-]+", CliRunner().invoke(cli, ["mcp", "--help"]).stdout))
    lines = re.findall(r"muniment mcp ([^\n`]*)", GUIDE)
    lines += [" ".join(json.loads(each)) for each in re.findall(r'"args": ?(\["mcp"[^\]]*\])', GUIDE)]
    assert len(lines) >= 5
    for line in lines:
        assert set(re.findall(r"--[a-z][a-z-]+", line)) <= flags, line
    (table,) = re.findall(r"\| to \| set \|\n(.*?)\n\n", GUIDE, re.DOTALL)
    assert set(re.findall(r"--[a-z][a-z-]+", table)) == flags - {
        "--db",
        "--tenant",
        "--user",
        "--agent",
        "--task-type",
    } - {
        "--json",
        "--help",
    }


def test_the_guide_names_every_tool() -> None:
    (sentence,) = re.findall(r"The agent gets six tools: (.*?)\.", GUIDE, re.DOTALL)
    assert re.findall(r"`(\w+)`", sentence) == [tool.name for tool in TOOLS.values() if tool.shown]
    (rest,) = re.findall(r"## Two profiles\n(.*?)\n## ", GUIDE, re.DOTALL)
    assert all(f"`{tool.name}`" in rest for tool in TOOLS.values() if not tool.shown)
    renamed = dict(re.findall(r"^\| `(\w+)` \| `(\w+)`", rest, re.MULTILINE))
    assert renamed == BEFORE
