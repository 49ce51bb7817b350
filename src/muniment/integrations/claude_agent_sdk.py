"""Memory for agents built with the Claude Agent SDK: hooks as callbacks, tools as an in-process server.

    options = ClaudeAgentOptions(**memory_options(mem, user_id="ana", directory="."))

The callbacks do what `muniment hook` does for Claude Code, in-process and on an open store: a prompt is recorded and
gets a packet, tool results and answers are recorded, and a compaction is preceded by a snapshot. A callback that fails
or takes too long adds nothing and blocks nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import MunimentError
from muniment.integrations.packages import missing
from muniment.surfaces.hosts.hooks import handle
from muniment.surfaces.hosts.repository import scoped_tenant

try:
    from claude_agent_sdk import HookMatcher, create_sdk_mcp_server, tool
except ModuleNotFoundError as error:
    raise missing("claude-agent-sdk", "claude-agent-sdk", error) from None

if TYPE_CHECKING:
    import os

    from claude_agent_sdk import HookCallback, HookContext, HookInput, HookJSONOutput
    from claude_agent_sdk.types import HookEvent, McpSdkServerConfig

    from muniment.handles.memory import Memory
    from muniment.handles.run import Run

__all__ = ["AGENT", "memory_hooks", "memory_options", "memory_server"]

AGENT = "claude-agent-sdk"
_LOGGER = logging.getLogger("muniment.hooks")
_EVENTS: tuple[HookEvent, ...] = (
    "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "PreCompact",
)  # fmt: skip


def memory_options(
    mem: Memory,
    *,
    user_id: str,
    directory: str | os.PathLike[str] | None = None,
    tenant_id: str = DEFAULT_TENANT,
    repository: str = "checkout",
    branches: str = "any",
    max_tokens: int = 1024,
    seconds: float = 10.0,
) -> dict[str, Any]:
    """Hooks and the server as arguments of `ClaudeAgentOptions`. With a directory, they use its repository's own
    memory.
    """
    tenant = tenant_id
    if directory is not None:
        tenant = scoped_tenant(tenant_id, directory, kind=repository, branches=branches)
    names: dict[str, Any] = {"user_id": user_id, "tenant_id": tenant}
    return {
        "hooks": memory_hooks(mem, **names, max_tokens=max_tokens, seconds=seconds),
        "mcp_servers": {"muniment": memory_server(mem, **names)},
        "allowed_tools": ["mcp__muniment__search_memory", "mcp__muniment__get_context"],
    }


def memory_hooks(
    mem: Memory,
    *,
    user_id: str,
    agent_id: str = AGENT,
    tenant_id: str = DEFAULT_TENANT,
    max_tokens: int = 1024,
    seconds: float = 10.0,
) -> dict[HookEvent, list[HookMatcher]]:
    """Callbacks for `ClaudeAgentOptions(hooks=…)`."""

    def work(event: Mapping[str, Any]) -> dict[str, Any]:
        return handle(mem, event, user_id=user_id, agent_id=agent_id, tenant_id=tenant_id, max_tokens=max_tokens)

    async def call(given: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:  # noqa: ARG001
        try:
            told = await asyncio.wait_for(asyncio.to_thread(work, cast("Mapping[str, Any]", given)), seconds)
        except (MunimentError, TimeoutError) as error:
            _LOGGER.warning("memory was left out of %s: %s", given.get("hook_event_name"), type(error).__name__)
            return {}
        return cast("HookJSONOutput", told)

    callback: HookCallback = call
    return {event: [HookMatcher(hooks=[callback], timeout=seconds + 5)] for event in _EVENTS}


def memory_server(
    mem: Memory, *, user_id: str, agent_id: str = AGENT, tenant_id: str = DEFAULT_TENANT
) -> McpSdkServerConfig:
    """An in-process server with two read-only tools: `search_memory` and `get_context`."""

    def run() -> Run:
        return mem.run(user_id=user_id, agent_id=agent_id, session_id=AGENT, tenant_id=tenant_id)

    @tool("search_memory", "Search what earlier sessions said and did.", {"query": str})
    async def search_memory(given: dict[str, Any]) -> dict[str, Any]:
        hits = await asyncio.to_thread(run().search, str(given["query"]))
        return _text("\n".join(f"[{hit.id}] {hit.ts}: {hit.text}" for hit in hits) or "Nothing was found.")

    @tool("get_context", "Give what memory has for a question, with its sources.", {"query": str})
    async def get_context(given: dict[str, Any]) -> dict[str, Any]:
        def compose() -> str:
            return run().compose("responder", query=str(given["query"])).text

        return _text(await asyncio.to_thread(compose))

    return create_sdk_mcp_server("muniment", tools=[search_memory, get_context])


def _text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}
