"""The application of a server: one guard, and behind it the API, the inspector and MCP on the same port."""

from __future__ import annotations

import asyncio
import re
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from muniment.core.canonical import canonical_bytes
from muniment.core.record import JsonObject
from muniment.errors import (
    InvalidInput,
    MunimentError,
    StaleState,
    WrongMethod,
)
from muniment.handles.memory import Memory
from muniment.handles.memory import open as open_memory
from muniment.handles.telling import spans_of
from muniment.handles.upkeep.watching import UpkeepWatch
from muniment.store.changes import whose
from muniment.surfaces.http import _otlp as otlp
from muniment.surfaces.http._calls import (
    LINES,
    AdmittedRequest,
    Answer,
    KeyedRequest,
    MatchedRoute,
    Router,
    body_arguments,
    carry_out,
    check_access,
    check_grants,
    hide_places,
    match_version,
    name_run,
    places_of,
    plain_result,
    query_arguments,
    routes_of,
    segments_of,
)
from muniment.surfaces.http._guard import HEADERS, Admitted, Caller, Guard, Mount, problem_response
from muniment.surfaces.http._metrics import Metrics, MetricsPage, workers_dir
from muniment.surfaces.http.compression import Compressed
from muniment.surfaces.http.lanes.admission import how_long, limits_of, who_asks
from muniment.surfaces.http.lanes.deadlines import Departure
from muniment.surfaces.http.lanes.running import Lanes
from muniment.surfaces.http.lanes.shares import Lane, LaneCounts
from muniment.surfaces.http.lanes.streams import parts_of
from muniment.surfaces.http.live import Live, Stream
from muniment.surfaces.http.logs import LOGGER
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.http.telemetry import Observer, otel_observer
from muniment.surfaces.operations.openapi import core_bytes, openapi_bytes
from muniment.surfaces.operations.problems import problem_of
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.works import Begin, Works
from muniment.surfaces.processes.replies import Replies
from muniment.surfaces.processes.restarting import asked_again, restartable

__all__ = ["Gateway", "Plain", "ServerStatus", "create_app"]

_WITHOUT_KEY = (b"/v1/health", b"/v1/ready")
"""Addresses of the API used by load balancers."""


def create_app(
    store: Memory | str | PathLike[str],
    settings: ServerSettings | None = None,
    *,
    beside: Mapping[str, Callable[[Guard], Mount]] | None = None,
    lifespans: Sequence[AbstractAsyncContextManager[object]] = (),
) -> Starlette:
    """Create the ASGI application over a store. A store opened here is closed here.

    `beside` maps paths such as `/mcp`, or `/` for the inspector, to functions that make an application for the guard in
    front of it; `lifespans` are entered at startup, for those that need it.
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
    """The server's background upkeep, if the settings name any."""
    if not settings.upkeep_kinds:
        return None
    return UpkeepWatch(
        memory._ctx, settings.upkeep_kinds, lease_s=settings.lease_seconds, every_s=settings.upkeep_seconds
    )


def _telemetry(settings: ServerSettings) -> Observer | None:
    return otel_observer("https" if settings.tls_cert else "http") if settings.otel == "on" else None


def _choose(mounts: Mapping[str, Mount], api: Mount, scope: Scope) -> Mount:
    """The application for the first part of the path: the API below /v1, or one next to it. The API refuses any other
    path.
    """
    path = scope["path"]
    first = f"/{path.split('/')[1]}" if path.startswith("/") else "/"
    if first == "/v1":
        return api._replace(asks_for_keys=scope.get("raw_path") not in _WITHOUT_KEY)
    return mounts.get(first) or mounts.get("/") or api


async def _defect(request: Request, error: Exception) -> Response:
    """The response to an unexpected error: it reveals nothing internal; the log has the details."""
    admitted = request.scope.get("state", {}).get("admitted")
    request_id = admitted.request_id if admitted else "-"
    LOGGER.error("defect", exc_info=error, extra={"said": {"request_id": request_id}})
    return problem_response(MunimentError("the server failed; the log says why"), request_id)


# -- the API ------------------------------------------------------------------------------------------


_KEY = re.compile(r"[\x21-\x7e]{1,256}")
EVENTS = "text/event-stream"


class Gateway:
    """An ASGI application over one store."""

    def __init__(self, memory: Memory, works: Works, settings: ServerSettings, status: ServerStatus) -> None:
        self._memory, self._works, self._settings = memory, works, settings
        self._status = status
        self._research_dir = Path(settings.research_dir)
        self._router = Router(routes_of(OPERATIONS))
        ctx = memory._ctx
        self._replies = Replies(ctx.engine, ctx.clock, ctx.ids)
        self.lanes = Lanes(limits_of(settings))
        self.guard: Guard
        """The guard in front, set by the application."""
        self.live = Live(
            ctx.engine,
            lambda given: self.guard.holder(given),
            streams_max=settings.streams_max,
            per_key_max=settings.streams_per_key_max,
        )

    def close(self) -> None:
        """Wait for work in progress."""
        self.live.close()
        self.lanes.close()
        self._status.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, departure = Request(scope, receive), Departure(receive)
        try:
            response = await self._respond(request, Admitted.of(scope), departure)
            await response(scope, receive, send)
        finally:
            await departure.close()

    def refuse(self, request: Request, error: MunimentError, admitted: Admitted) -> Response:
        """The answer to a request that was refused or failed, here or in front of this application."""
        is_condition = isinstance(error, StaleState) and "if-match" in request.headers
        problem = problem_of(error, admitted.request_id, 412 if is_condition else None)
        response = problem_response(
            error, admitted.request_id, hide_places(problem, self._hidden_from(admitted.caller))
        )
        return otlp.refused(request, response) if otlp.is_address(request.scope["path"]) else response

    # -- dispatch -------------------------------------------------------------------------------------

    async def _respond(self, request: Request, admitted: Admitted, departure: Departure) -> Response:
        """Find the requested operation and carry it out."""
        segments = segments_of(request.scope.get("raw_path") or request.scope["path"].encode())
        page = self._status.page(request.method, segments)
        if page is not None:
            admitted.route = "/" + "/".join(segments)
            plain = await self._status.answer(page)
            return Response(plain.body, plain.status, HEADERS, plain.media)
        signal = otlp.signal_of(request.method, segments)
        admitted.route = f"/v1/{signal}" if signal is not None else "-"
        self.live.refuse_closing()
        caller = admitted.caller
        assert caller is not None, "the guard lets nobody in whom it has not asked for a key"
        if segments == ("v1", "key") and request.method in ("GET", "HEAD"):
            return Response(canonical_bytes(caller.public_fields()), 200, HEADERS, "application/json")
        if signal is not None:
            return await self._take_traces(request, signal, caller, departure)
        found = self._router.find(request.method, segments)
        admitted.route = found.route.template
        check_access(caller, found)
        asked, spooled = await self._admit(request, found, caller)
        try:
            return await self._carry_out(request, asked, caller, departure)
        finally:
            if spooled is not None and not _is_async(request, asked):
                spooled.unlink(missing_ok=True)

    async def _take_traces(
        self, request: Request, signal: otlp.OtlpSignal, caller: Caller, departure: Departure
    ) -> Response:
        """Pass an exporter's data to the operation that ingests traces."""
        settings = self._settings
        address = otlp.address_of(request, caller)
        found = self._router.find("POST", address)
        check_access(caller, found)
        data = await otlp.read_body(request, self.guard, caller.body_bytes_max or settings.body_bytes_max)
        if signal == "metrics":
            return otlp.accepted(request, signal, None, HEADERS)
        own = otlp.arguments_of(data, signal, address, settings)
        asked = AdmittedRequest(
            found=found, own=own, run={}, wants_lines=False, request=None, version=None,
            research_dir=self._research_dir, is_told_places=caller.keeps_the_server,
        )  # fmt: skip
        answer = await self._carry_out(request, asked, caller, departure)
        return otlp.accepted(request, signal, bytes(answer.body), HEADERS)

    def _hidden_from(self, caller: Caller | None) -> tuple[tuple[str, str], ...]:
        """The paths of the store and its files that are hidden from this caller."""
        is_told = caller is not None and caller.keeps_the_server
        return () if is_told else places_of(self._memory.info.location, self._research_dir)

    # -- reading requests -----------------------------------------------------------------------------

    async def _admit(
        self, request: Request, found: MatchedRoute, caller: Caller
    ) -> tuple[AdmittedRequest, Path | None]:
        """Read and check a request's arguments; also returns the file its body was spooled to, if any."""
        operation = found.route.operation
        query = query_arguments(found.route, request.query_params.multi_items())
        own, spooled = query["own"], None
        if operation.takes == "lines":
            spooled = await self.guard.spool_lines(request)
            own = {str(operation.body): spooled}
        elif operation.takes_body:
            own = body_arguments(found.route, await self.guard.read_json(request))
        check_grants(caller, query["run"])
        check_grants(caller, own)
        keyed, own = self._keyed(request, found, own, query["run"])
        name_run(found, own, query["run"])
        asked = AdmittedRequest(
            found=found,
            own=own,
            run=query["run"],
            wants_lines=operation.is_paged and LINES in request.headers.get("accept", ""),
            request=keyed,
            version=match_version(request.headers.get("if-match"), found),
            research_dir=self._research_dir,
            is_told_places=caller.keeps_the_server,
        )
        return asked, spooled

    def _keyed(
        self, request: Request, found: MatchedRoute, own: dict[str, Any], run: dict[str, Any]
    ) -> tuple[KeyedRequest | None, dict[str, Any]]:
        """Apply an Idempotency-Key to the request."""
        key = request.headers.get("idempotency-key")
        operation = found.route.operation
        if key is None:
            return None, own
        if not _KEY.fullmatch(key):
            raise InvalidInput("an Idempotency-Key has 1 to 256 visible ASCII characters", path="$")
        if operation.repeats == "safe":
            raise InvalidInput(
                "an Idempotency-Key is not taken here", path="$", hint="asking again does no harm; ids may be given"
            )
        if operation.repeats == "ledger":
            return None, _with_keys(operation.call, own, key)
        said = canonical_bytes([operation.id, dict(found.names), own, run])
        return KeyedRequest(found.names["tenant_id"], found.names["user_id"], key, said), own

    # -- carrying out ---------------------------------------------------------------------------------

    async def _carry_out(
        self, request: Request, asked: AdmittedRequest, caller: Caller, departure: Departure
    ) -> Response:
        operation = asked.found.route.operation
        who, how = who_asks(asked, caller), how_long(request, asked, caller, self._settings)
        if operation.media == EVENTS:
            return await self._stream_events(request, asked.found, caller)
        if operation.is_watched and request.method == "GET" and EVENTS in request.headers.get("accept", ""):
            return await self._stream_changes(request, asked, caller)
        if _is_async(request, asked):
            begin = partial(self._begin, asked, self.guard.keep_spooled(request))
            return await self.lanes.run(who, begin, gone=departure.tell, **how)
        call: Callable[[], Answer] = partial(carry_out, self._memory, self._works, asked)
        if (spans := self._memory._ctx.spans) is not None:
            call = spans.carried(call)
        lane: Lane | None = "work" if operation.is_long else None
        respond = partial(_response, request)
        if asked.request is not None:
            answered = partial(self._replies.answer, asked.request, call, respond)
            return await self.lanes.run(who, answered, lane=lane, gone=departure.tell, **how)
        answer = await self.lanes.run(who, call, lane=lane, gone=departure.tell, **how)
        if isinstance(answer.body, Iterator):
            answer = answer._replace(body=parts_of(self.lanes, who.part(), answer.body, gone=departure.tell, **how))
        return respond(answer)

    def _begin(self, asked: AdmittedRequest, forget_spooled: Callable[[], None]) -> Response:
        """Start long work in the background."""
        found = asked.found
        spooled = asked.own.get(found.route.operation.body or "")

        def call(progress: Callable[[int], None]) -> Any:
            try:
                with self.lanes.beside():
                    return plain_result(self._memory, self._works, asked, progress)
            finally:
                if isinstance(spooled, Path):
                    spooled.unlink(missing_ok=True)
                forget_spooled()

        operation = found.route.operation
        outlives = operation.call == "import_"  # it clears kept answers itself, and its own holds no content
        work = self._works.start(operation.id, found.names, call, restartable(asked), outlives=outlives)
        where = "/v1" + "".join(f"/{kind}s/{quote(found.names[f'{kind}_id'], safe='')}" for kind in _scope_of(found))
        headers = HEADERS | {
            "Location": f"{where}/operations/{work.operation_id}",
            "Preference-Applied": "respond-async",
        }
        return Response(work.to_bytes(), 202, headers, "application/json")

    def begun_again(self, plain: JsonObject) -> Begin:
        """The rest of a work whose process ended, rebuilt from its request."""
        asked = asked_again(plain, self._research_dir)
        return partial(plain_result, self._memory, self._works, asked)

    async def _stream_events(self, request: Request, found: MatchedRoute, caller: Caller) -> Response:
        names = {name: found.names[name] for name in ("tenant_id", "user_id") if name in found.names}
        work_of = partial(self._works.get, found.names["operation_id"], **names)
        stream = Stream(caller, request.headers.get("authorization"))
        return await self.live.follow(self._works, work_of, stream, HEADERS)

    async def _stream_changes(self, request: Request, asked: AdmittedRequest, caller: Caller) -> Response:
        who = whose(asked.found.names["tenant_id"], asked.found.names["user_id"])
        position = request.headers.get("last-event-id") or asked.own.get("after")
        return await self.live.open(who, position, caller, request.headers.get("authorization"), HEADERS)


def _scope_of(found: MatchedRoute) -> tuple[str, ...]:
    return tuple(kind for kind in ("tenant", "user") if f"{kind}_id" in found.names)


def _is_async(request: Request, asked: AdmittedRequest) -> bool:
    return asked.found.route.operation.is_long and "respond-async" in request.headers.get("prefer", "")


def _with_keys(call: str, own: dict[str, Any], key: str) -> dict[str, Any]:
    """The key in the ledger's own form: for many events, one key each."""
    if call != "observe_many":
        given = own.get("idempotency_key", key)
        if given != key:
            raise InvalidInput("the body names another idempotency key", path="$.idempotency_key")
        return own | {"idempotency_key": key}
    events = own.get("events")
    if not isinstance(events, list):
        return own
    keyed = [
        {"idempotency_key": f"{key}#{at}"} | each if isinstance(each, dict) else each for at, each in enumerate(events)
    ]
    return own | {"events": keyed}


def _response(request: Request, answer: Answer) -> Response:
    headers = dict(HEADERS) | ({} if answer.etag is None else {"ETag": answer.etag})
    if not isinstance(answer.body, bytes):
        return StreamingResponse(answer.body, answer.status, headers, answer.media)
    wanted = request.headers.get("if-none-match", "")
    if answer.etag is not None and request.method in ("GET", "HEAD") and answer.etag in wanted.split(", "):
        return Response(b"", 304, headers)
    if answer.status == 204:
        return Response(b"", 204, headers)
    return Response(answer.body, answer.status, headers, answer.media)


# -- health, readiness and the description ------------------------------------------------------------


class Plain(NamedTuple):
    status: int
    media: str
    body: bytes


STORE_SECONDS_MAX = 5.0
"""A store that takes longer to list its tenants counts as not answering."""


class ServerStatus:
    """Alive: the process answers. Ready: the store answers too, requests get through, and it is not shutting down."""

    def __init__(
        self,
        memory: Memory,
        describe: Callable[[], bytes],
        describe_core: Callable[[], bytes],
        wait_seconds_max: float = 10,
    ) -> None:
        self._memory = memory
        self._wait_seconds_max = wait_seconds_max
        self.queue: Callable[[], Mapping[Lane, LaneCounts]] = dict
        """The lanes of requests; set by the gateway."""
        self._pages: dict[tuple[str, ...], Plain | Callable[[], Plain]] = {
            ("v1", "health"): Plain(200, "application/json", b'{"status":"ok"}'),
            ("v1", "ready"): self._ready,
            ("v1", "openapi.json"): lambda: Plain(200, "application/json", describe()),
            ("v1", "openapi-core.json"): lambda: Plain(200, "application/json", describe_core()),
        }
        self.is_closing = False
        self._thread = ThreadPoolExecutor(1, "muniment-status")
        """A separate thread for readiness checks, so that they wait behind nothing else."""
        self._documents: dict[Callable[[], Plain], asyncio.Future[Plain]] = {}

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    def page(self, method: str, segments: tuple[str, ...]) -> Plain | Callable[[], Plain] | None:
        """The handler of that address, or the answer if no work is needed; None for other addresses."""
        page = self._pages.get(segments)
        if page is not None and method not in ("GET", "HEAD"):
            raise WrongMethod(f"{method:.20} is not taken there", details={"allowed": ["GET", "HEAD"]})
        return page

    async def answer(self, page: Plain | Callable[[], Plain]) -> Plain:
        """The page's answer. An unresponsive store is not waited for. A document is made once, in a separate thread."""
        if isinstance(page, Plain):
            return page
        if page != self._ready:
            made = self._documents.get(page)
            if made is None:
                made = self._documents[page] = asyncio.ensure_future(asyncio.to_thread(page))
            return await asyncio.shield(made)
        asked = asyncio.get_running_loop().run_in_executor(self._thread, page)
        try:
            async with asyncio.timeout(STORE_SECONDS_MAX):
                return await asked
        except TimeoutError:
            return _not_ready("store_silent")

    def _ready(self) -> Plain:
        if self.is_closing:
            return _not_ready("closing")
        if any(lane.oldest_s > self._wait_seconds_max for lane in self.queue().values()):
            return _not_ready("requests_wait")
        try:
            self._memory.store.tenants()
        except MunimentError as error:
            return _not_ready(error.code)
        return Plain(200, "application/json", b'{"status":"ready"}')


def _not_ready(reason: str) -> Plain:
    return Plain(503, "application/json", canonical_bytes({"status": "not ready", "reason": reason}))
