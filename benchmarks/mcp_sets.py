"""The sets of MCP's tools that are compared, and the tasks they are compared on.

`before` are the nine tools of 0.1 (data/mcp_before.json), `lean` and `full` what today's server lists in each profile.
Sixty short tasks (data/mcp_tasks.json) name what is wanted; which tool that is in a set, `ToolSet.names` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from mcp import Client

import muniment
from benchmarks.mcp_talk import ASKED, fill
from muniment.core.outside.token_counters import load_token_counter
from muniment.surfaces.mcp.callers import CallerScope, ToolCallers
from muniment.surfaces.mcp.server import make_server
from muniment.surfaces.mcp.settings import McpSettings

__all__ = ["NOW", "Sizes", "Task", "ToolSet", "Tools", "read_before", "read_tasks", "tool_sets"]

DATA = Path(__file__).parent / "data"
BEFORE = {
    "search": "search",
    "remember": "remember",
    "context": "compose",
    "record": "observe",
    "forget": "forget",
    "why": "explain",
}
NOW = {
    "search": "search_memory",
    "remember": "remember",
    "context": "get_context",
    "record": "record",
    "forget": "forget",
    "why": "why",
}
Tools = Sequence[Mapping[str, Any]]
Sizes = dict[str, dict[str, int]]
"""Of each answer to the talk: bytes and tokens of both forms."""


class Task(NamedTuple):
    """One short task, the half it belongs to (`open` or `held`), and what it wants."""

    part: str
    wants: str
    text: str


class ToolSet(NamedTuple):
    """Definitions as `tools/list` has them, and the right tool for each thing that a task can want."""

    tools: Tools
    names: Mapping[str, str]


def read_tasks() -> list[Task]:
    kept = json.loads((DATA / "mcp_tasks.json").read_text("utf-8"))["tasks"]
    return [Task(each["part"], each["is"], each["task"]) for each in kept]


def read_before() -> dict[str, Any]:
    """What 0.1 listed, and the sizes of its answers."""
    kept: dict[str, Any] = json.loads((DATA / "mcp_before.json").read_text("utf-8"))
    return kept


def tool_sets() -> tuple[dict[str, ToolSet], Sizes]:
    """The three sets, and how large the answers of today's are."""
    lean, sizes = anyio.run(ask_now, "lean")
    full, _ = anyio.run(ask_now, "full")
    found = {"before": ToolSet(read_before()["tools"], BEFORE), "lean": ToolSet(lean, NOW), "full": ToolSet(full, NOW)}
    return found, sizes


async def ask_now(profile: str) -> tuple[Tools, Sizes]:
    """Today's definitions, and the sizes of answers to the talk."""
    counter = load_token_counter()
    rows: Sizes = {}
    with muniment.open(":memory:") as memory:
        fill(memory.run(user_id="ana", agent_id="support", session_id="s0"))
        callers = ToolCallers(memory, McpSettings(profile=profile))
        server = make_server(callers, lambda _ctx: callers.take(CallerScope("default", "ana", "support")))
        async with Client(server) as client:
            listed = (await client.list_tools()).tools
            tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]

            async def ask(label: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
                answer = await client.call_tool(name, arguments)
                assert not answer.is_error, answer.content
                text = "".join(getattr(block, "text", "") for block in answer.content)
                plain = json.dumps(answer.structured_content, separators=(",", ":"), ensure_ascii=False)
                rows[label] = {
                    "text_bytes": len(text.encode()),
                    "structured_bytes": len(plain.encode()),
                    "text_tokens": counter.count(text),
                    "structured_tokens": counter.count(plain),
                }
                return dict(answer.structured_content or {})

            for number, query in enumerate(ASKED):
                await ask(f"search {number}", "search_memory", {"query": query})
            await ask("search 50", "search_memory", {"query": ASKED[0], "k": 50})
            said = await ask("record", "record", {"role": "user", "content": "I moved to Berlin in May."})
            given = {"key": "user.city", "value": "Berlin", "sources": [said["event_id"]]}
            kept = await ask("remember", "remember", given)
            context = await ask("context", "get_context", {"query": ASKED[0]})
            await ask("why build", "why", {"build_id": context["build_id"]})
            await ask("why text", "why", {"text": "Lisbon"})
            await ask("forget", "forget", {"fact_id": kept["fact"]["fact_id"]})
    return tools, rows
