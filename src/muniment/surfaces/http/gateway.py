"""The gateway: every request comes in here, is named, let in or refused, carried out in a worker thread, and logged."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from muniment.core.canonical import canonical_bytes
from muniment.core.record import JsonObject
from muniment.errors import (
    Closed,
    InvalidInput,
    MunimentError,
    Refused,
    StaleState,
    Unauthorized,
    WrongMethod,
)
from muniment.handles.memory import Memory
from muniment.store.changes import whose
from muniment.surfaces.http.access import OPEN, Caller, OriginChecks, check_access, check_grants
from muniment.surfaces.http.arguments import body_arguments, query_arguments
from muniment.surfaces.http.bodies import read_json, spool_lines
from muniment.surfaces.http.calls import (
    LINES,
    AdmittedRequest,
    Answer,
    carry_out,
    match_version,
    plain_result,
)
from muniment.surfaces.http.guards import Request
from muniment.surfaces.http.handles import name_run
from muniment.surfaces.http.lanes.admission import how_long, limits_of, who_asks
from muniment.surfaces.http.lanes.deadlines import Departure
from muniment.surfaces.http.lanes.running import Lanes
from muniment.surfaces.http.lanes.shares import Lane
from muniment.surfaces.http.lanes.streams import parts_of
from muniment.surfaces.http.live import Live, Stream
from muniment.surfaces.http.logs import log_request
from muniment.surfaces.http.otlp import receiving as otlp
from muniment.surfaces.http.places import hide_places, places_of
from muniment.surfaces.http.rates import set_rate_headers
from muniment.surfaces.http.routing import MatchedRoute, Router, routes_of, segments_of
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.http.status import ServerStatus
from muniment.surfaces.http.telemetry import Done, Observer
from muniment.surfaces.operations.problems import MEDIA_TYPE, problem_of
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.works import Begin, Works
from muniment.surfaces.processes.admission import Admission
from muniment.surfaces.processes.replies import Replies
from muniment.surfaces.processes.restarting import asked_again, restartable

__all__ = ["Gateway", "problem_response"]

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEY = re.compile(r"[\x21-\x7e]{1,256}")
EVENTS = "text/event-stream"
_COME_BACK_S = 5
"""Seconds after which another server, or this one again, may be there."""
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept, Accept-Encoding, Authorization",
}


@dataclass(slots=True)
class _RequestLog:
    """What the log line of a request says of its route and its caller. Each is filled in once it is known."""

    route: str = "-"
    key_id: str = "-"
    caller: Caller | None = None
    is_otlp: bool = False
    """Is it answered as OTLP has it?"""


def problem_response(
    error: MunimentError, request_id: str, status: int | None = None, *, hidden: Sequence[tuple[str, str]] = ()
) -> Response:
    """An error as it is sent. `hidden` are places that the one who asked is not told of."""
    problem = hide_places(problem_of(error, request_id, status), hidden)
    headers = dict(_HEADERS)
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = 'Bearer realm="muniment"'
    if isinstance(error, WrongMethod):
        headers["Allow"] = ", ".join(error.details["allowed"])
    wait_s = error.details.get("retry_after_s", _COME_BACK_S if isinstance(error, Closed) else None)
    if wait_s is not None:
        headers["Retry-After"] = str(wait_s)
    return Response(canonical_bytes(problem), problem["status"], headers, MEDIA_TYPE)


class Gateway:
    """An ASGI application over one store."""

    def __init__(
        self, memory: Memory, works: Works, settings: ServerSettings, observer: Observer, status: ServerStatus
    ) -> None:
        self._memory, self._works, self._settings, self._observer = memory, works, settings, observer
        self._status = status
        self._research_dir = Path(settings.research_dir)
        self._asks_for_keys = settings.asks_for_keys
        self.origins = OriginChecks(settings.host, settings.auth, asks_for_keys=settings.asks_for_keys)
        self._router = Router(routes_of(OPERATIONS))
        ctx = memory._ctx
        self._admission = Admission(ctx.engine, settings)
        self._replies = Replies(ctx.engine, ctx.clock, ctx.ids)
        self.lanes = Lanes(limits_of(settings))
        self._aside = ThreadPoolExecutor(1, "muniment-status")
        """For those who ask whether the server is ready: they do not wait behind requests."""
        self.live = Live(
            ctx.engine,
            self._admission.holder,
            streams_max=settings.streams_max,
            per_key_max=settings.streams_per_key_max,
        )

    def close(self) -> None:
        """Wait for what is under way."""
        self.live.close()
        self.lanes.close()
        self._aside.shutdown(wait=True)
        self._admission.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive)
        given = request.headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        started_s = time.perf_counter()
        log = _RequestLog()
        with self._observer.request(request.method, request.headers) as span:
            code: str | None = None
            departure = Departure(receive)
            try:
                response = await self._respond(request, log, departure)
            except MunimentError as error:
                code = error.code
                is_condition = isinstance(error, StaleState) and "if-match" in request.headers
                response = problem_response(
                    error, request_id, 412 if is_condition else None, hidden=self._hidden_from(log.caller)
                )
                if log.is_otlp:
                    response = otlp.refused(request, response)
            response.headers["X-Request-Id"] = request_id
            set_rate_headers(scope, response.headers)
            try:
                await response(scope, receive, send)
            finally:
                await departure.close()
            seconds = time.perf_counter() - started_s
            span.end(log.route, Done(response.status_code, seconds, code, response.media_type == EVENTS))
        log_request(
            request_id=request_id,
            method=request.method,
            route=log.route,
            status=response.status_code,
            code=code,
            key_id=log.key_id,
            seconds=seconds,
        )

    # -- letting in -----------------------------------------------------------------------------------

    async def _respond(self, request: HttpRequest, log: _RequestLog, departure: Departure) -> Response:
        """Let a request in and carry it out; notes in `log` what is known of it, for requests that are refused too."""
        self.origins.check(request)
        segments = segments_of(request.scope.get("raw_path") or request.scope["path"].encode())
        page = self._status.page(request.method, segments)
        if page is not None:
            log.route = "/" + "/".join(segments)
            plain = await self._status.answer(page, self._aside)
            return Response(plain.body, plain.status, _HEADERS, plain.media)
        signal = otlp.signal_of(request.method, segments)
        log.is_otlp = signal is not None
        log.route = f"/v1/{signal}" if signal is not None else log.route
        self.live.refuse_closing()
        caller = await self.caller_of(request)
        log.key_id, log.caller = caller.key_id, caller
        if segments == ("v1", "key") and request.method in ("GET", "HEAD"):
            return Response(canonical_bytes(caller.public_fields()), 200, _HEADERS, "application/json")
        if signal is not None:
            return await self._take_traces(request, signal, caller, departure)
        found = self._router.find(request.method, segments)
        log.route = found.route.template
        check_access(caller, found)
        asked, spooled = await self._admit(request, found, caller)
        try:
            return await self._carry_out(request, asked, caller, departure)
        finally:
            if spooled is not None and not _is_async(request, asked):
                spooled.unlink(missing_ok=True)

    async def _take_traces(
        self, request: HttpRequest, signal: otlp.OtlpSignal, caller: Caller, departure: Departure
    ) -> Response:
        """What an exporter sends by itself, as the operation that takes traces."""
        settings = self._settings
        address = otlp.address_of(request, caller)
        found = self._router.find("POST", address)
        check_access(caller, found)
        limit = caller.body_bytes_max or settings.body_bytes_max
        data = await otlp.read_body(request, limit, settings.body_seconds_max)
        if signal == "metrics":
            return otlp.accepted(request, signal, None, _HEADERS)
        own = otlp.arguments_of(data, signal, address, settings)
        asked = AdmittedRequest(
            found=found, own=own, run={}, wants_lines=False, request=None, version=None,
            research_dir=self._research_dir, is_told_places=caller.keeps_the_server,
        )  # fmt: skip
        answer = await self._carry_out(request, asked, caller, departure)
        return otlp.accepted(request, signal, bytes(answer.body), _HEADERS)

    def _hidden_from(self, caller: Caller | None) -> tuple[tuple[str, str], ...]:
        """Where the store and its files lie, for those who are not told."""
        is_told = caller is not None and caller.keeps_the_server
        return () if is_told else places_of(self._memory.info.location, self._research_dir)

    async def caller_of(self, request: HttpRequest) -> Caller:
        """Who asks, within how often they may."""
        if len(request.headers.getlist("authorization")) > 1:
            raise Refused("a request has one key", hint="send one Authorization header")
        if not self._asks_for_keys:
            self.origins.check_passed_on(request)
            return OPEN
        peer = f"peer:{request.client.host if request.client else '-'}"
        return await self._admission.caller(request, peer)

    # -- reading what is asked ------------------------------------------------------------------------

    async def _admit(
        self, request: HttpRequest, found: MatchedRoute, caller: Caller
    ) -> tuple[AdmittedRequest, Path | None]:
        """Read the arguments of a request and check them; answers the file its body was spooled to as well, if any."""
        operation, settings = found.route.operation, self._settings
        query = query_arguments(found.route, request.query_params.multi_items())
        own, spooled = query["own"], None
        seconds = settings.body_seconds_max
        if operation.takes == "lines":
            spooled = await spool_lines(request, settings.import_bytes_max, seconds)
            own = {str(operation.body): spooled}
        elif operation.takes_body:
            limit = caller.body_bytes_max or settings.body_bytes_max
            own = body_arguments(found.route, await read_json(request, limit, seconds))
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
        self, request: HttpRequest, found: MatchedRoute, own: dict[str, Any], run: dict[str, Any]
    ) -> tuple[Request | None, dict[str, Any]]:
        """What an Idempotency-Key makes of the request."""
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
        return Request(found.names["tenant_id"], found.names["user_id"], key, said), own

    # -- carrying out ---------------------------------------------------------------------------------

    async def _carry_out(
        self, request: HttpRequest, asked: AdmittedRequest, caller: Caller, departure: Departure
    ) -> Response:
        operation = asked.found.route.operation
        who, how = who_asks(asked, caller), how_long(request, asked, caller, self._settings)
        if operation.media == EVENTS:
            return await self._stream_events(request, asked.found, caller)
        if operation.is_watched and request.method == "GET" and EVENTS in request.headers.get("accept", ""):
            return await self._stream_changes(request, asked, caller)
        if _is_async(request, asked):
            return await self.lanes.run(who, partial(self._begin, asked), gone=departure.tell, **how)
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

    def _begin(self, asked: AdmittedRequest) -> Response:
        """Long work, beside the requests."""
        found = asked.found
        spooled = asked.own.get(found.route.operation.body or "")

        def call(progress: Callable[[int], None]) -> Any:
            try:
                with self.lanes.beside():
                    return plain_result(self._memory, self._works, asked, progress)
            finally:
                if isinstance(spooled, Path):
                    spooled.unlink(missing_ok=True)

        operation = found.route.operation
        outlives = operation.call == "import_"  # which clears kept answers itself, and answers no content
        work = self._works.start(operation.id, found.names, call, restartable(asked), outlives=outlives)
        where = "/v1" + "".join(f"/{kind}s/{quote(found.names[f'{kind}_id'], safe='')}" for kind in _scope_of(found))
        headers = _HEADERS | {
            "Location": f"{where}/operations/{work.operation_id}",
            "Preference-Applied": "respond-async",
        }
        return Response(work.to_bytes(), 202, headers, "application/json")

    def begun_again(self, plain: JsonObject) -> Begin:
        """What is done of a work whose process ended, made of what was asked."""
        asked = asked_again(plain, self._research_dir)
        return partial(plain_result, self._memory, self._works, asked)

    async def _stream_events(self, request: HttpRequest, found: MatchedRoute, caller: Caller) -> Response:
        names = {name: found.names[name] for name in ("tenant_id", "user_id") if name in found.names}
        work_of = partial(self._works.get, found.names["operation_id"], **names)
        stream = Stream(caller, request.headers.get("authorization"))
        return await self.live.follow(self._works, work_of, stream, _HEADERS)

    async def _stream_changes(self, request: HttpRequest, asked: AdmittedRequest, caller: Caller) -> Response:
        who = whose(asked.found.names["tenant_id"], asked.found.names["user_id"])
        position = request.headers.get("last-event-id") or asked.own.get("after")
        return await self.live.open(who, position, caller, request.headers.get("authorization"), _HEADERS)


def _scope_of(found: MatchedRoute) -> tuple[str, ...]:
    return tuple(kind for kind in ("tenant", "user") if f"{kind}_id" in found.names)


def _is_async(request: HttpRequest, asked: AdmittedRequest) -> bool:
    return asked.found.route.operation.is_long and "respond-async" in request.headers.get("prefer", "")


def _with_keys(call: str, own: dict[str, Any], key: str) -> dict[str, Any]:
    """The key as the ledger's own: for many events, one key each."""
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


def _response(request: HttpRequest, answer: Answer) -> Response:
    headers = dict(_HEADERS) | ({} if answer.etag is None else {"ETag": answer.etag})
    if not isinstance(answer.body, bytes):
        return StreamingResponse(answer.body, answer.status, headers, answer.media)
    wanted = request.headers.get("if-none-match", "")
    if answer.etag is not None and request.method in ("GET", "HEAD") and answer.etag in wanted.split(", "):
        return Response(b"", 304, headers)
    if answer.status == 204:
        return Response(b"", 204, headers)
    return Response(answer.body, answer.status, headers, answer.media)
