"""MCP over streamable HTTP, on the API's port. The key limits a caller's scope; headers from the client's own
configuration select within it. A model sets neither.

    Authorization: Bearer mun_…
    Muniment-Tenant, Muniment-User, Muniment-Agent, Muniment-Session      (percent-encoded where they are not ASCII)

Every request is independent: there is no protocol session to hijack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast
from urllib.parse import unquote

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.errors import Forbidden, InvalidInput, WrongMethod
from muniment.surfaces.http._calls import check_grants
from muniment.surfaces.http._guard import OPEN, Admitted, Caller, Guard, Mount
from muniment.surfaces.http.lanes.deadlines import Departure, late_after, seconds_of
from muniment.surfaces.http.lanes.running import Lanes, Who
from muniment.surfaces.mcp.callers import CallerScope, ToolCaller, ToolCallers
from muniment.surfaces.mcp.carrying import Carry, Ctx, InThreads
from muniment.surfaces.mcp.server import make_server

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.surfaces.http.settings import ServerSettings
    from muniment.surfaces.mcp.settings import McpSettings
    from muniment.surfaces.settings import Settings

T = TypeVar("T")

__all__ = ["PATH", "Mounted", "mcp_app", "place_asked"]

PATH = "/mcp"
HEADERS = {name: f"muniment-{name}" for name in ("tenant", "user", "agent", "session")}
_DEPARTURE = "muniment_mcp_departure"


class Mounted(NamedTuple):
    """MCP as passed to `create_app(beside={PATH: …}, lifespans=[…])`."""

    mount: Callable[[Guard], Mount]
    lifespan: AbstractAsyncContextManager[None]


def mcp_app(memory: Memory, store: Settings, server: ServerSettings, settings: McpSettings) -> Mounted:
    """MCP over a store, for a server with these settings."""
    tool_callers = ToolCallers(memory, settings)

    def tool_caller_of(ctx: Ctx) -> ToolCaller:
        request = cast("Request", ctx.request)
        caller = _caller(request)
        if settings.level != "user":
            check_grants(caller, {"grants": [settings.level]})
        place = place_asked(caller, request.headers, store, settings)
        return tool_callers.take(place, reads_only=not caller.may("write"))

    manager = StreamableHTTPSessionManager(
        app=make_server(tool_callers, tool_caller_of, _in_lanes(store, server, settings)),
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard does this
        max_request_body_size=server.body_bytes_max,
    )
    return Mounted(lambda guard: Mount(_bounded(StreamableHTTPASGIApp(manager), guard)), manager.run())


def _in_lanes(store: Settings, server: ServerSettings, settings: McpSettings) -> Carry:
    """Schedule requests with those of the API: in the same lanes, under their own tenant, key and user, and with the
    same deadline. Work stops when the caller disconnects.
    """
    alone = InThreads(server.threads)

    async def carry(ctx: Ctx, name: str, work: Callable[[], T]) -> T:
        request = cast("Request", ctx.request)
        lanes: Lanes | None = getattr(request.app.state, "lanes", None) if "app" in request.scope else None
        if lanes is None:  # under an application that is not ours
            return await alone(ctx, name, work)
        caller = _caller(request)
        place = place_asked(caller, request.headers, store, settings)
        seconds = seconds_of(
            request.headers.getlist("prefer"), caller.request_seconds_max or server.request_seconds_max
        )
        departure: Departure | None = request.scope.get("state", {}).get(_DEPARTURE)
        who = Who(place.tenant, f"{caller.key_id} {place.user}", f"mcp {name}")
        return await lanes.run(
            who,
            work,
            seconds=seconds,
            late=late_after(seconds),
            gone=None if departure is None else departure.tell,
        )

    return carry


def _bounded(app: ASGIApp, guard: Guard) -> ASGIApp:
    """Give the application whole bodies that arrived in time. It sends nothing unasked, so there is nothing to GET."""

    async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            raise WrongMethod(f"{request.method:.20} is not taken there", details={"allowed": ["POST"]})
        body = await guard.read_body(request)
        left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return left.pop() if left else await receive()

        departure = Departure(receive)
        scope.setdefault("state", {})[_DEPARTURE] = departure
        try:
            await app(scope, replay, send)
        finally:
            await departure.close()

    return bounded


def _caller(request: Request) -> Caller:
    return Admitted.of(request.scope).caller or OPEN


def place_asked(caller: Caller, headers: Mapping[str, str], store: Settings, settings: McpSettings) -> CallerScope:
    """A caller's scope: from its headers, within the limits of its key; else from the key or the settings."""
    told = {name: unquote(headers.get(header, "")) for name, header in HEADERS.items()}
    tenant = told["tenant"] or (store.tenant if caller.tenant == "*" else caller.tenant)
    own = store.user if tenant == store.tenant else ""
    user = told["user"] or (own if caller.user is None else caller.user)
    if tenant == "*":
        raise InvalidInput(
            "a tool_caller is in one tenant", path="$.tenant", hint=f"name it in the header {HEADERS['tenant']}"
        )
    if caller.tenant not in ("*", tenant):
        raise Forbidden("this key is for another tenant", hint="use a key of that tenant")
    if caller.user not in (None, user):
        raise Forbidden("this key is for one user", hint=f"leave the header {HEADERS['user']} out")
    if not user:
        raise InvalidInput(
            "no user is named",
            path="$.user",
            hint=f"use a key of one user, or have the client send the header {HEADERS['user']}",
        )
    return CallerScope(tenant, user, told["agent"] or store.agent, told["session"] or settings.session)
