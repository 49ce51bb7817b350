"""The application: a store behind its gateway, and room beside it for the inspector and MCP on the same port."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from os import PathLike
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.handles.memory import open as open_memory
from muniment.handles.telling import spans_of
from muniment.handles.upkeep.watching import UpkeepWatch
from muniment.surfaces.docs.app import docs_app
from muniment.surfaces.http.compression import Compressed
from muniment.surfaces.http.gateway import Gateway, problem_response
from muniment.surfaces.http.logs import LOGGER
from muniment.surfaces.http.metrics.asking import MetricsPage
from muniment.surfaces.http.metrics.counting import Metrics
from muniment.surfaces.http.metrics.workers import workers_dir
from muniment.surfaces.http.rates import set_rate_headers
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.http.status import ServerStatus
from muniment.surfaces.http.telemetry import Observer, otel_observer
from muniment.surfaces.operations.openapi import core_bytes, openapi_bytes
from muniment.surfaces.operations.works import Works

__all__ = ["Beside", "create_app"]


class Beside(NamedTuple):
    """An application beside the API."""

    app: ASGIApp
    asks_for_keys: bool = True
    """Whether its requests need a key where the server asks for keys; `scope["state"]["caller"]` is who asks."""


def create_app(
    store: Memory | str | PathLike[str],
    settings: ServerSettings | None = None,
    *,
    beside: Mapping[str, Beside] | None = None,
    lifespans: Sequence[AbstractAsyncContextManager[object]] = (),
) -> Starlette:
    """The ASGI application over a store. One that is opened here is closed here.

    `beside` are applications by the path they answer at, such as `/mcp`, or `/` for the inspector; `lifespans` are
    entered when the server starts, for those of them that need it.
    """
    settings = settings or ServerSettings()
    memory = store if isinstance(store, Memory) else open_memory(store)
    if settings.otel == "on":
        memory._ctx.spans = spans_of(on=True)
    works = Works(
        memory._ctx.engine,
        memory._ctx.clock,
        memory._ctx.ids,
        settings.works_max,
        lease_s=settings.lease_seconds,
    )
    upkeep = _upkeep(memory, settings)
    status = ServerStatus(memory, openapi_bytes, core_bytes, settings.ready_wait_seconds_max)
    metrics = Metrics(memory, works, _telemetry(settings), workers_dir())
    gateway = Gateway(memory, works, settings, metrics, status)
    status.queue = metrics.queue = gateway.lanes.snapshot
    metrics.streams = lambda: gateway.live.open_streams
    page = MetricsPage(metrics, settings.metrics, gateway)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as entered:
            for each in lifespans:
                await entered.enter_async_context(each)
            works.take_up(gateway.begun_again)
            metrics.start()
            if upkeep is not None:
                upkeep.start()
            yield
            status.is_closing = True
            gateway.live.end()
        if upkeep is not None:
            await to_thread(upkeep.stop)
        works.close()
        gateway.close()
        page.close()
        metrics.close()
        if memory is not store:
            memory.close()

    app = Starlette(middleware=[Middleware(Compressed)], exception_handlers={Exception: _defect}, lifespan=lifespan)
    app.state.live, app.state.lanes = gateway.live, gateway.lanes
    app.router.redirect_slashes = False
    watched = {path: each._replace(app=metrics.watched(each.app, path)) for path, each in (beside or {}).items()}
    app.router.default = _dispatched(gateway, watched | {"/metrics": Beside(page, asks_for_keys=False)})
    return app


def _upkeep(memory: Memory, settings: ServerSettings) -> UpkeepWatch | None:
    """What is done beside requests, where the settings name something."""
    if not settings.upkeep_kinds:
        return None
    return UpkeepWatch(
        memory._ctx, settings.upkeep_kinds, lease_s=settings.lease_seconds, every_s=settings.upkeep_seconds
    )


def _telemetry(settings: ServerSettings) -> Observer | None:
    return otel_observer("https" if settings.tls_cert else "http") if settings.otel == "on" else None


def _dispatched(gateway: Gateway, beside: Mapping[str, Beside]) -> ASGIApp:
    """The application that answers, by the first part of the path: the API below /v1, or one beside it. The gateway
    refuses what belongs to none.
    """
    standing = {"/docs": Beside(docs_app, asks_for_keys=False), **beside}
    others = {f"/{path.strip('/')}": _let_in(each, gateway) for path, each in standing.items()}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if scope["type"] != "http":
            return
        first = f"/{path.split('/')[1]}" if path.startswith("/") else "/"
        chosen = gateway if first == "/v1" else others.get(first) or others.get("/") or gateway
        await chosen(scope, receive, send)

    return app


async def _defect(request: Request, error: Exception) -> Response:
    """What nobody foresaw: told without a word of what was inside, and logged with all of it."""
    request_id = request.scope.get("state", {}).get("request_id", "-")
    LOGGER.error("defect", exc_info=error, extra={"said": {"request_id": request_id}})
    return problem_response(MunimentError("the server failed; the log says why"), request_id)


def _let_in(other: Beside, gateway: Gateway) -> ASGIApp:
    """Another application behind the keys of this one."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and other.asks_for_keys:
            try:
                scope.setdefault("state", {})["caller"] = await gateway.caller_of(Request(scope))
            except MunimentError as error:
                refused = problem_response(error, "-")
                set_rate_headers(scope, refused.headers)
                await refused(scope, receive, send)
                return
        await other.app(scope, receive, send)

    return app
