"""The proxy as an ASGI application: passes requests on and records model calls. The guard admits requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.errors import (
    DeadlineExceeded,
    Forbidden,
    ModelUnreachable,
    MunimentError,
    TooSlow,
    UnknownRoute,
)
from muniment.integrations.proxy.callers import Allowed, Defaults
from muniment.integrations.proxy.exchange import Relay, Relayed, read_then, until_gone
from muniment.integrations.proxy.remembering import LOGGER, Begun, Remembering
from muniment.integrations.proxy.routes import address_of, check_said_once, dialect_of, for_anthropic, passed_on
from muniment.integrations.proxy.tee import Answer
from muniment.integrations.proxy.upstream import Upstream
from muniment.surfaces.http._guard import Admitted, Guard, Mount, check_json, problem_response
from muniment.surfaces.http.logs import level_of, line_of
from muniment.surfaces.http.telemetry import NotObserved
from muniment.surfaces.operations.problems import problem_of

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.integrations.proxy.settings import ProxySettings
    from muniment.integrations.wrapping.dialects import Dialect

__all__ = ["Proxy"]

T = TypeVar("T")
_STATUSES = {ModelUnreachable: 502, DeadlineExceeded: 504}
"""Gateway statuses for upstream failures."""


class _Asked(NamedTuple):
    """A request as it came."""

    request: Request
    admitted: Admitted
    dialect: Dialect | None
    address: str


class Proxy:
    """One store in front of one or two upstreams, behind the servers' guard."""

    def __init__(self, mem: Memory, settings: ProxySettings, defaults: Defaults) -> None:
        self._settings = settings
        self._remembering = Remembering(mem, settings, defaults)
        self._pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="muniment-proxy")
        self._upstream: Upstream | None = None
        mount = Mount(self._answer)
        self._guard = Guard(
            lambda _scope: mount,
            mem._ctx.engine,
            settings,
            NotObserved(),
            refuse=_refuse,
            key_header="muniment-key",
            log=_log,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._guard(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._upstream = Upstream(self._settings)
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def close(self) -> None:
        if self._upstream is not None:
            await self._upstream.close()
        self._pool.shutdown()
        self._guard.close()

    # -- one request --------------------------------------------------------------------------------------

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, admitted = Request(scope, receive), Admitted.of(scope)
        asked = self._read(request, admitted)
        admitted.route = "passed" if asked.dialect is None else request.url.path.rpartition("/v1/")[2]
        relayed = await self._exchanged(asked, send)
        admitted.status, admitted.log = relayed.status, {"end": relayed.end}

    def _read(self, request: Request, admitted: Admitted) -> _Asked:
        raw = request.scope.get("raw_path") or request.url.path.encode()
        path, query = raw.decode("latin-1"), request.scope["query_string"].decode("latin-1")
        held = request.scope["headers"]
        check_said_once(held)
        settings = self._settings
        is_anthropic = bool(settings.anthropic_upstream) and (for_anthropic(path, held) or not settings.upstream)
        upstream = settings.anthropic_upstream if is_anthropic else settings.upstream
        if not path.startswith("/"):
            raise UnknownRoute(f"{path!r:.60} is no path", path="$")
        return _Asked(
            request, admitted, dialect_of(request.method, path), address_of(upstream.rstrip("/"), path, query)
        )

    async def _exchanged(self, asked: _Asked, send: Send) -> Relayed:
        """Carry out the request, and abandon it if the caller disconnects."""
        is_read = asyncio.Event()
        work = asyncio.create_task(self._carried_out(asked, send, is_read))
        gone = asyncio.create_task(until_gone(asked.request.receive, is_read))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            work.cancel()
            with suppress(asyncio.CancelledError):
                return await work
            return Relayed(TooSlow.status, "caller gone")
        finally:
            for each in (work, gone):
                each.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _carried_out(self, asked: _Asked, send: Send, is_read: asyncio.Event) -> Relayed:
        assert self._upstream is not None, "the application was not started"
        settings, headers = self._settings, Headers(scope=asked.request.scope)
        allowed = self._allowed(asked.admitted)
        is_asking = asked.dialect is not None
        begun = Begun(b"")
        content: bytes | AsyncIterator[bytes] = b""
        if asked.dialect is not None:
            if _has_body(headers):
                check_json(asked.request)
            body = await self._guard.read_body(asked.request, may_be_encoded=True)
            is_read.set()
            begun = await self._begun(asked.dialect, headers, allowed, body)
            content = begun.content
        elif _has_body(headers):
            parts = read_then(self._guard.stream_body(asked.request, settings.passed_bytes_max), is_read)
            content = _begun_with(await anext(parts, b""), parts)  # an oversized request is not even started
        else:
            is_read.set()
        sent = passed_on(asked.request.scope["headers"], is_read=is_asking)
        response = await self._upstream.ask(asked.request.method, asked.address, sent, content)
        ours = [(b"muniment-request", asked.admitted.request_id.encode()), *begun.told()]
        answer = None
        if asked.dialect is not None and begun.call is not None and response.status_code < 300:
            said = response.headers
            answer = Answer(
                asked.dialect, said.get("content-type", ""), said.get("content-encoding", ""), settings.answer_bytes_max
            )

        async def keep() -> None:
            if answer is None:
                return
            kept = self._in_thread(lambda: self._remembering.keep(begun, answer))
            await asyncio.wait((kept,))
            if (failure := kept.exception()) is not None:  # the answer is sent whether or not it could be recorded
                LOGGER.error("defect", exc_info=failure)

        asked.admitted.is_relayed = True
        return await Relay(self._upstream, send, settings.body_seconds_max).pass_on(response, ours, answer, keep)

    # -- memory's part, in threads --------------------------------------------------------------------------

    async def _begun(self, dialect: Dialect, headers: Headers, allowed: Allowed, body: bytes) -> Begun:
        given = {name: _in_utf8(value) for name, value in headers.items()}
        work = self._in_thread(lambda: self._remembering.begin(dialect, given, allowed, body))
        try:
            return await asyncio.wait_for(asyncio.shield(work), self._settings.memory_seconds_max)
        except TimeoutError:
            late = DeadlineExceeded("memory did not answer in time", hint="ask again, or raise memory_seconds_max")
            if self._settings.on_error == "closed":
                raise late from None
            return Begun(body, failure=late.code)

    def _allowed(self, admitted: Admitted) -> Allowed:
        caller = admitted.caller
        assert caller is not None, "the guard lets nobody in whom it has not asked for a key"
        if not caller.may("write"):
            raise Forbidden("the key may only read, and what passes here is recorded", path="$.headers.muniment-key")
        return Allowed(caller.tenant, caller.user)

    def _in_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, work)


async def _begun_with(first: bytes, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in parts:
        yield part


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _in_utf8(value: str) -> str:
    """Decode a header that its sender encoded as UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


def _log(request: Request, admitted: Admitted, code: str | None, seconds: float) -> None:
    LOGGER.log(level_of(admitted), "request", extra={"said": line_of(request, admitted, code, seconds)})


def _refuse(_request: Request, error: MunimentError, admitted: Admitted) -> Response:
    """The standard error response, with the fields that clients of model servers expect."""
    problem = problem_of(error, admitted.request_id, _STATUSES.get(type(error), error.status))
    problem["error"] = {"type": error.code, "code": error.code, "message": problem["detail"], "param": error.path}
    response = problem_response(error, admitted.request_id, problem)
    response.headers["muniment-error"], response.headers["muniment-request"] = error.code, admitted.request_id
    return response
