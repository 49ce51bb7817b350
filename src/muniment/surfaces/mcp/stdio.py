"""MCP over standard input and output: one process, one scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from muniment.surfaces.mcp.callers import CallerScope, ToolCallers
from muniment.surfaces.mcp.server import make_server

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.surfaces.mcp.settings import McpSettings
    from muniment.surfaces.settings import Settings

__all__ = ["place_told", "serve_stdio"]


def place_told(store: Settings, settings: McpSettings) -> CallerScope:
    """The scope from the configuration."""
    return CallerScope(store.tenant, store.user, store.agent, settings.session, settings.run)


def serve_stdio(memory: Memory, place: CallerScope, settings: McpSettings) -> None:
    """Serve until the client closes its end. Writes that have begun are completed."""
    tool_callers = ToolCallers(memory, settings)
    tool_callers.take(place)  # report a wrong scope before the first request
    server = make_server(tool_callers, lambda _ctx: tool_callers.take(place))

    async def main() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(main)
