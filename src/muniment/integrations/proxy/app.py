"""The proxy as an ASGI application: who may ask, what passes, and what is remembered on the way."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.core.canonical import canonical_bytes
from muniment.errors import (
    DeadlineExceeded,
    Forbidden,
    ModelUnreachable,
    MunimentError,
    Overloaded,
    TooSlow,
    UnknownRoute,
)
from muniment.integrations.proxy.callers import Allowed, Defaults
from muniment.integrations.proxy.exchange import Relay, Relayed, read_then, until_gone
from muniment.integrations.proxy.remembering import LOGGER, Begun, Remembering
from muniment.integrations.proxy.routes import address_of, check_said_once, dialect_of, for_anthropic, passed_on
from muniment.integrations.proxy.tee import Answer
from muniment.integrations.proxy.upstream import Upstream
from muniment.surfaces.http.access import OriginChecks, caller_with
from muniment.surfaces.http.bodies import body_parts, check_json
from muniment.surfaces.operations.problems import MEDIA_TYPE, problem_of

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.integrations.proxy.settings import ProxySettings
    from muniment.integrations.wrapping.dialects import Dialect
    from muniment.surfaces.http.keys import KeyRing

__all__ = ["Proxy"]

T = TypeVar("T")
_STATUSES = {ModelUnreachable: 502, DeadlineExceeded: 504}
"""What a gateway says of the server behind it."""
_AGAIN_S = 1


class _Asked(NamedTuple):
    """A request as it came."""

    request: Request
    id: str
    dialect: Dialect | None
    address: str


class Proxy:
    """One store in front of one or two upstreams."""

    def __init__(self, mem: Memory, settings: ProxySettings, defaults: Defaults, keys: KeyRing | None = None) -> None:
        """`keys` are those that are asked for; None where whoever can reach the proxy may ask."""
        self._settings = settings
        self._keys = keys
        self._origins = OriginChecks(settings.host, settings.auth, asks_for_keys=keys is not None)
        self._remembering = Remembering(mem, settings, defaults)
        self._pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="muniment-proxy")
        self._upstream: Upstream | None = None
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answered(Request(scope, receive), send)

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

    # -- one request --------------------------------------------------------------------------------------

    async def _answered(self, request: Request, send: Send) -> None:
        now_s = asyncio.get_running_loop().time
        begun_s, request_id = now_s(), f"req_{secrets.token_hex(8)}"
        said: dict[str, Any] = {"request_id": request_id, "method": request.method, "route": "-"}
        self._count += 1
        try:
            self._origins.check(request)
            self._origins.check_passed_on(request)
            asked = self._read(request, request_id)
            said["route"] = "passed" if asked.dialect is None else asked.request.url.path.rpartition("/v1/")[2]
            if self._count > self._settings.requests_max:
                raise Overloaded("too many requests at once", details={"retry_after_s": _AGAIN_S})
            relayed = await self._exchanged(asked, send)
            said |= {"status": relayed.status, "end": relayed.end}
        except MunimentError as error:
            status = _STATUSES.get(type(error), error.status)
            said |= {"status": status, "code": error.code}
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.body_seconds_max):
                    await _problem(error, request_id, status)(request.scope, request.receive, send)
        finally:
            self._count -= 1
            said["ms"] = round((now_s() - begun_s) * 1000, 2)
            is_bad = said.get("status", 500) >= 500 or said.get("end", "whole") != "whole"
            LOGGER.log(logging.WARNING if is_bad else logging.INFO, "request", extra={"said": said})

    def _read(self, request: Request, request_id: str) -> _Asked:
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
            request, request_id, dialect_of(request.method, path), address_of(upstream.rstrip("/"), path, query)
        )

    async def _exchanged(self, asked: _Asked, send: Send) -> Relayed:
        """The request carried out, and given up where the caller has gone."""
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
        allowed = await self._allowed(headers)
        is_asking = asked.dialect is not None
        bytes_max = settings.body_bytes_max if is_asking else settings.passed_bytes_max
        parts = read_then(body_parts(asked.request, bytes_max, settings.body_seconds_max), is_read)
        begun = Begun(b"")
        content: bytes | AsyncIterator[bytes] = parts
        if asked.dialect is not None:
            if _has_body(headers):
                check_json(asked.request)
            body = b"".join([part async for part in parts])
            begun = await self._begun(asked.dialect, headers, allowed, body)
            content = begun.content
        elif _has_body(headers):
            content = _begun_with(await anext(parts, b""), parts)  # what is too large is not even begun to be passed on
        else:
            is_read.set()
            content = b""
        sent = passed_on(asked.request.scope["headers"], is_read=is_asking)
        response = await self._upstream.ask(asked.request.method, asked.address, sent, content)
        ours = [(b"muniment-request", asked.id.encode()), *begun.told()]
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
            if (failure := kept.exception()) is not None:  # the answer has its way, whatever becomes of its record
                LOGGER.error("defect", exc_info=failure)

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

    async def _allowed(self, headers: Headers) -> Allowed:
        keys = self._keys
        if keys is None:
            return Allowed()
        token = headers.get("muniment-key", "")
        caller = await self._in_thread(lambda: caller_with(keys.find, f"Bearer {token}"))
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
    """A header as its sender meant it, where it is UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


def _problem(error: MunimentError, request_id: str, status: int) -> Response:
    """An error in the one shape, with what the clients of model servers look for beside it."""
    problem = problem_of(error, request_id, status)
    problem["error"] = {"type": error.code, "code": error.code, "message": problem["detail"], "param": error.path}
    headers = {"muniment-error": error.code, "muniment-request": request_id}
    wait_s = error.details.get("retry_after_s")
    if wait_s is not None:
        headers["Retry-After"] = str(wait_s)
    return Response(canonical_bytes(problem), status, headers, MEDIA_TYPE)
