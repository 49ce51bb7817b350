"""What the tests of the MCP surface share: a store with two users, a server at one place, the official client."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

import muniment
from muniment.handles.memory import Memory
from muniment.surfaces.mcp.callers import CallerScope, ToolCallers
from muniment.surfaces.mcp.server import make_server
from muniment.surfaces.mcp.settings import McpSettings

__all__ = ["CANARY", "Guarded", "at", "failure", "make_store", "protocol_failure", "said", "served", "structured"]

CANARY = "zanzibar-heron-4711"
"""Stands in everything that another scope holds."""


class Guarded:
    """What another user and another tenant hold, by id: nothing of it may come out."""

    def __init__(self, memory: Memory) -> None:
        self.ids: dict[str, dict[str, str]] = {}
        for tenant, user in (("default", "bo"), ("other", "ana"), ("other", "bo")):
            run = memory.run(user_id=user, tenant_id=tenant, agent_id="agent", session_id="s1", objective="talk")
            event = run.observe("user", f"My secret word is {CANARY}.")
            fact = run.remember("user.secret", CANARY, sources=[event.id])
            build = run.compose("responder", query=f"What is {CANARY}?")
            claim = run.log.claim(f"The word is {CANARY}", evidence=[event.id], status="verified")
            run.log.compact()
            self.ids[f"{tenant}/{user}"] = {
                "event": event.id,
                "fact": fact.fact_id,
                "build": build.id,
                "claim": claim.claim_id,
                "run": run.run_id,
                "state": json.dumps(
                    [entry.to_wire() for entry in memory.ledger.entries(user_id=user, tenant_id=tenant)], sort_keys=True
                ),
            }

    def check_unchanged(self, memory: Memory) -> None:
        for name, known in self.ids.items():
            tenant, _, user = name.partition("/")
            entries = [entry.to_wire() for entry in memory.ledger.entries(user_id=user, tenant_id=tenant)]
            assert json.dumps(entries, sort_keys=True) == known["state"], name


def make_store(target: str = ":memory:") -> Memory:
    return muniment.open(target)


def served(memory: Memory, place: CallerScope | None = None, **settings: str) -> Server[Any]:
    """A server that serves Ana, or whoever sits at the place."""
    tool_callers = ToolCallers(memory, McpSettings(**settings))
    chosen = place or CallerScope("default", "ana", "support")
    return make_server(tool_callers, lambda _ctx: tool_callers.take(chosen))


def at(server: Server[Any], talk: Callable[[Client], Awaitable[None]], mode: str = "auto") -> None:
    """Talk to the server with the official client."""

    async def main() -> None:
        async with Client(server, mode=mode) as client:
            await client.list_tools()  # from here on the client checks what is answered against the output schemas
            await talk(client)

    anyio.run(main)


def said(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, said(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def failure(result: CallToolResult) -> dict[str, Any]:
    """The one error shape of a tool that failed."""
    assert result.is_error, said(result)
    assert result.structured_content is None
    shape: dict[str, Any] = json.loads(said(result))
    assert {"code", "message", "hint"} <= shape.keys() <= {"code", "message", "path", "hint", "details"}
    return shape


async def protocol_failure(asked: Awaitable[Any]) -> dict[str, Any]:
    """The one error shape as the data of a protocol error."""
    with pytest.raises(MCPError) as caught:
        await asked
    told = caught.value.error
    shape: dict[str, Any] = told.data
    assert told.code in (-32602, -32603)
    assert told.message == shape["message"]
    return shape
