"""The application of a server: one guard, and behind it the API, the inspector and MCP on the same port."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from os import PathLike

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.handles.memory import open as open_memory
from muniment.handles.telling import spans_of
from muniment.handles.upkeep.watching import UpkeepWatch
from muniment.surfaces.http._guard import Guard, Mount, problem_response
from muniment.surfaces.http.compression import Compressed
from muniment.surfaces.http.gateway import Gateway
from muniment.surfaces.http.logs import LOGGER
from muniment.surfaces.http.metrics.asking import MetricsPage
from muniment.surfaces.http.metrics.counting import Metrics
from muniment.surfaces.http.metrics.workers import workers_dir
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.http.status import ServerStatus
from muniment.surfaces.http.telemetry import Observer, otel_observer
from muniment.surfaces.operations.openapi import core_bytes, openapi_bytes
from muniment.surfaces.operations.works import Works

__all__ = ["create_app"]

_WITHOUT_KEY = (b"/v1/health", b"/v1/ready")
"""Addresses of the API that a load balancer asks."""


def create_app(
    store: Memory | str | PathLike[str],
    settings: ServerSettings | None = None,
    *,
    beside: Mapping[str, Callable[[Guard], Mount]] | None = None,
    lifespans: Sequence[AbstractAsyncContextManager[object]] = (),
) -> Starlette:
    """The ASGI application over a store. One that is opened here is closed here.

    `beside` makes applications by the path they answer at, such as `/mcp`, or `/` for the inspector, each for the guard
    in front of it; `lifespans` are entered when the server starts, for those of them that need it.
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
    gateway = Gateway(memory, works, settings, status)
    mounts: dict[str, Mount] = {}
    choose = partial(_choose, mounts, Mount(gateway))
    guard = gateway.guard = Guard(choose, memory._ctx.engine, settings, metrics, refuse=gateway.refuse)
    status.queue = metrics.queue = gateway.lanes.snapshot
    metrics.streams = lambda: gateway.live.open_streams
    page = MetricsPage(metrics, settings.metrics, guard)
    mounts["/metrics"] = Mount(page, asks_for_keys=False, route="/metrics")
    for path, make in (beside or {}).items():
        mounts[path] = make(guard)._replace(route=path)

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
        guard.close()
        page.close()
        metrics.close()
        if memory is not store:
            memory.close()

    app = Starlette(middleware=[Middleware(Compressed)], exception_handlers={Exception: _defect}, lifespan=lifespan)
    app.state.live, app.state.lanes = gateway.live, gateway.lanes
    app.router.redirect_slashes = False
    app.router.default = guard
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


def _choose(mounts: Mapping[str, Mount], api: Mount, scope: Scope) -> Mount:
    """The application that answers, by the first part of the path: the API below /v1, or one beside it. The API refuses
    what belongs to none.
    """
    path = scope["path"]
    first = f"/{path.split('/')[1]}" if path.startswith("/") else "/"
    if first == "/v1":
        return api._replace(asks_for_keys=scope.get("raw_path") not in _WITHOUT_KEY)
    return mounts.get(first) or mounts.get("/") or api


async def _defect(request: Request, error: Exception) -> Response:
    """What nobody foresaw: told without a word of what was inside, and logged with all of it."""
    admitted = request.scope.get("state", {}).get("admitted")
    request_id = admitted.request_id if admitted else "-"
    LOGGER.error("defect", exc_info=error, extra={"said": {"request_id": request_id}})
    return problem_response(MunimentError("the server failed; the log says why"), request_id)
