"""MCP over standard input and output: one process, one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from muniment.surfaces.mcp.seats import Place, Seats
from muniment.surfaces.mcp.server import make_server

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.surfaces.mcp.settings import McpSettings
    from muniment.surfaces.settings import Settings

__all__ = ["place_told", "serve_stdio"]


def place_told(store: Settings, settings: McpSettings) -> Place:
    """The place that the configuration names."""
    return Place(store.tenant, store.user, store.agent, settings.session, settings.run)


def serve_stdio(memory: Memory, place: Place, settings: McpSettings) -> None:
    """Serve until the client closes its end. What a request has begun to write is written."""
    seats = Seats(memory, settings)
    seats.take(place)  # what is wrong with the place is said before anyone asks
    server = make_server(seats, lambda _ctx: seats.take(place))

    async def main() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(main)
