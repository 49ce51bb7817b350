"""The guard: the one ASGI layer in front of every listener. The API, the inspector, MCP, OTLP, streams and the proxy
are reached only through it.

In this order it checks the origin of a request (host, origin, forwarded headers), its key, the key's rate, and the
number of open requests; then it passes the request to the application at that path. Applications read bodies through
it: each body is bounded in bytes and in time, and all bodies held at the same time are bounded together. Every refusal
has one shape and the request's id, and is logged and counted like any answer. Across several processes, keys and rates
are shared through the store; the event loop never waits for it.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from math import ceil, floor
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.core.canonical import canonical_bytes, parse_json
from muniment.core.outside.system import system_clock
from muniment.core.ports.engine import Engine
from muniment.errors import (
    Closed,
    Forbidden,
    MunimentError,
    Overloaded,
    RateLimited,
    Refused,
    TooLarge,
    TooSlow,
    Unauthorized,
    UnsupportedMedia,
    WrongMethod,
)
from muniment.surfaces.http._keys import FRESH_S, Key, StoredKeys, open_keys
from muniment.surfaces.http.logs import log_request
from muniment.surfaces.http.settings import is_loopback
from muniment.surfaces.http.telemetry import Done, Observer
from muniment.surfaces.operations.problems import MEDIA_TYPE, problem_of
from muniment.surfaces.operations.table import Access
from muniment.surfaces.processes.rates import RateLimits, SharedRates

__all__ = [
    "HEADERS",
    "OPEN",
    "Admitted",
    "Caller",
    "Guard",
    "GuardSettings",
    "Mount",
    "check_json",
    "is_passed_on",
    "problem_response",
]

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept, Accept-Encoding, Authorization",
}
"""The headers of every answer except files."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PORT = re.compile(r":\d+$")
_LOCAL_NAMES = ("127.0.0.1", "localhost")
_FORWARDED = frozenset({"forwarded", "x-real-ip", "via"})
"""Headers with which a proxy names the original caller, in addition to all that begin with `x-forwarded`."""
_OWN_SITE = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` for a page's own requests, and for an address typed by a person."""
_RANKS: Mapping[Access, int] = {"read": 0, "write": 1, "admin": 2}
_COME_BACK_S = 5
"""Seconds after which another server, or this one again, may be available."""
_WINDOW_S = 60
BYTES_A_SECOND_MIN = 16 << 10
"""The least rate of a body after its first seconds: trickling bytes cannot hold a connection open."""


class Caller(NamedTuple):
    """The key of a request, and its limits."""

    key_id: str
    tenant: str
    user: str | None
    access: Access
    requests_per_minute: int | None = None
    body_bytes_max: int | None = None
    request_seconds_max: int | None = None

    def public_fields(self) -> dict[str, Any]:
        fields = {"key_id": self.key_id, "tenant": self.tenant, "user": self.user, "access": self.access}
        return {name: value for name, value in fields.items() if value is not None}

    def may(self, access: Access) -> bool:
        return _RANKS[self.access] >= _RANKS[access]

    @property
    def keeps_the_server(self) -> bool:
        """True if the caller may see where the store and its files are on the machine."""
        return self.tenant == "*" and self.user is None and self.may("admin")


OPEN = Caller("-", "*", None, "admin")
"""The caller of a server without keys: anyone who can reach it."""


class GuardSettings(Protocol):
    """The settings shared by servers and proxies."""

    @property
    def host(self) -> str: ...
    @property
    def auth(self) -> str: ...
    @property
    def keys(self) -> str: ...
    @property
    def asks_for_keys(self) -> bool: ...
    @property
    def workers(self) -> int: ...
    @property
    def requests_max(self) -> int: ...
    @property
    def requests_per_minute(self) -> int: ...
    @property
    def guesses_per_minute(self) -> int: ...
    @property
    def body_bytes_max(self) -> int: ...
    @property
    def body_seconds_max(self) -> int: ...
    @property
    def bodies_bytes_max(self) -> int: ...
    @property
    def import_bytes_max(self) -> int: ...


class Mount(NamedTuple):
    """An application behind the guard."""

    app: ASGIApp
    asks_for_keys: bool = True
    route: str = "-"
    """The route of its requests in logs and metrics, unless it names one itself."""


class _Allowance(NamedTuple):
    """The remainder of a limit: `RateLimit` and `RateLimit-Policy`, as in the IETF draft."""

    limit: Literal["key", "address"]
    quota: int
    left: int
    again_s: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Policy": f'"{self.limit}";q={self.quota};w={_WINDOW_S}',
            "RateLimit": f'"{self.limit}";r={self.left};t={self.again_s}',
        }


@dataclass(slots=True)
class Admitted:
    """A request that passed the guard: its caller, and its entries for the log line and the answer."""

    request_id: str
    caller: Caller | None = None
    """None until the key is checked, and if the application needs none."""
    route: str = "-"
    log: dict[str, Any] = field(default_factory=dict)
    """Further fields of the log line."""
    is_relayed: bool = False
    """True if the answer is another server's, which gets no headers of ours."""
    allowance: _Allowance | None = None
    status: int = 0
    is_stream: bool = False
    held_bytes: int = 0
    spooled_bytes: int = 0

    @classmethod
    def of(cls, scope: Scope) -> Admitted:
        """The request of a scope that passed the guard."""
        found = scope["state"]["admitted"]
        assert isinstance(found, cls)
        return found


Refuse = Callable[[Request, MunimentError, Admitted], Response]


class Guard:
    """An ASGI application in front of others. Each is reached by a path that `choose` reads, always through the
    guard.
    """

    def __init__(
        self,
        choose: Callable[[Scope], Mount],
        engine: Engine,
        settings: GuardSettings,
        observer: Observer,
        *,
        refuse: Refuse | None = None,
        key_header: str = "authorization",
        log: Callable[..., None] = log_request,
    ) -> None:
        """`refuse` turns an error into an answer, `log` writes the line of a finished request."""
        self._choose, self._settings, self._observer = choose, settings, observer
        self._refuse, self._key_header, self._log = refuse or _refuse, key_header, log
        self._is_for_this_machine = is_loopback(settings.host) and settings.auth != "off"
        self._keys = open_keys(settings.keys, engine, system_clock) if settings.asks_for_keys else None
        is_shared = engine.is_walled_by_the_server or settings.workers > 1
        self._shared = SharedRates(engine, time.monotonic, _wall_ms) if is_shared else None
        self._rates, self._guesses = RateLimits(time.monotonic), RateLimits(time.monotonic)
        self._guesses_per_minute = -(-settings.guesses_per_minute // settings.workers)
        self._held = _ByteBudget(max(settings.bodies_bytes_max, settings.body_bytes_max))
        self._spooled = _ByteBudget(settings.import_bytes_max)
        self._open = 0
        self._thread = ThreadPoolExecutor(2, "muniment-guard")
        self._under_way: dict[str, asyncio.Future[None]] = {}

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        given = request.headers.get("x-request-id", "")
        admitted = Admitted(given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(12)}")
        scope.setdefault("state", {})["admitted"] = admitted
        started_s, code = time.perf_counter(), None
        sending = partial(_send, admitted, send)
        self._open += 1
        try:
            with self._observer.request(request.method, request.headers) as span:
                try:
                    await self._pass_on(request, admitted, sending)
                except MunimentError as error:
                    code = error.code
                    if admitted.status:  # the answer has begun: it can only be aborted
                        raise
                    await self._refuse(request, error, admitted)(scope, receive, sending)
                seconds = time.perf_counter() - started_s
                span.end(admitted.route, Done(admitted.status, seconds, code, admitted.is_stream))
        finally:
            self._open -= 1
            key_id = admitted.caller.key_id if admitted.caller else "-"
            self._held.give(key_id, admitted.held_bytes)
            self._spooled.give(key_id, admitted.spooled_bytes)
        self._log(request, admitted, code, seconds)

    async def _pass_on(self, request: Request, admitted: Admitted, send: Send) -> None:
        mount = self._choose(request.scope)
        admitted.route = mount.route
        self.check_origin(request, is_page=not mount.asks_for_keys)
        if mount.asks_for_keys:
            await self.authenticate(request)
        if self._open > self._settings.requests_max:
            raise Overloaded("too many requests are open", details={"retry_after_s": 1})
        await mount.app(request.scope, request.receive, send)

    # -- origin ---------------------------------------------------------------------------------------

    def check_origin(self, request: Request, *, is_page: bool = False) -> None:
        """Refuse requests sent through a browser by a page of another site, or under another host name for this
        machine. A page itself may be opened by a link from elsewhere.
        """
        host, *others = request.headers.getlist("host") or [""]
        if others:
            raise Refused("a request names one host", hint="send one Host header")
        origins = {each.partition("://")[2] for each in request.headers.getlist("origin")}
        sites = request.headers.getlist("sec-fetch-site")
        is_link = is_page and request.headers.get("sec-fetch-mode") == "navigate"
        if not origins <= {host} or not (is_link or all(each in _OWN_SITE for each in sites)):
            raise Forbidden("pages of other sites may not ask here", hint="call from a server, or from the same origin")
        name = host.rpartition(":")[0] if _PORT.search(host) else host
        is_open_here = self._keys is None and is_loopback(self._settings.host)
        if is_open_here and name not in _LOCAL_NAMES and not is_loopback(name):
            raise Forbidden("this server answers to its own machine by name alone", hint="ask 127.0.0.1 or localhost")

    # -- authentication -------------------------------------------------------------------------------

    async def authenticate(self, request: Request) -> Caller:
        """Find the caller by the request's key, and count the request against the key's rate."""
        admitted = Admitted.of(request.scope)
        given = request.headers.getlist(self._key_header)
        if len(given) > 1:
            raise Refused("a request has one key", hint=f"send one {self._key_header.title()} header")
        if self._keys is None:
            if self._is_for_this_machine and is_passed_on(request):
                raise Forbidden(
                    "a proxy passed this on for somebody else, and no keys are asked for",
                    hint="serve with `--auth on`, or with `--auth off` where the proxy itself knows whom to let in",
                )
            admitted.caller = OPEN
            return OPEN
        if isinstance(self._keys, StoredKeys) and self._keys.age_s >= FRESH_S:
            await self._once("keys", self._keys.refresh)
        caller = self._caller_of(self._keys.find, given[0] if given else None)
        if caller is None:
            peer = f"peer:{request.client.host if request.client else '-'}"
            left = self._counted(admitted, "address", self._guesses_per_minute, partial(self._guesses.take, peer))
            self._note(admitted, "address", self._guesses_per_minute, left)
            raise Unauthorized("a valid key is needed here")
        admitted.caller = caller
        self._look_ahead()
        per_minute = caller.requests_per_minute or self._settings.requests_per_minute
        if self._shared is not None:
            while not self._counted(admitted, "key", per_minute, partial(self._shared.take, caller.key_id)):
                await self._once(f"rate {caller.key_id}", partial(self._shared.fetch, caller.key_id, per_minute))
            self._note(admitted, "key", per_minute, self._shared.left(caller.key_id))
        else:
            left = self._counted(admitted, "key", per_minute, partial(self._rates.take, caller.key_id))
            self._note(admitted, "key", per_minute, left)
        return caller

    def holder(self, given: str | None) -> Caller | None:
        """The caller of a key while it is valid, for streams. Keys in the store were read within the last second."""
        if self._keys is None:
            return OPEN
        self._look_ahead()
        find = self._keys.held if isinstance(self._keys, StoredKeys) else self._keys.find
        return self._caller_of(find, given)

    def _caller_of(self, find: Callable[[str], Key | None], given: str | None) -> Caller | None:
        token = given or ""
        if self._key_header == "authorization":
            scheme, _, token = token.partition(" ")
            token = token.strip() if scheme.lower() == "bearer" else ""
        key = find(token)
        if key is None:
            return None
        limits = (key.requests_per_minute, key.body_bytes_max, key.request_seconds_max)
        return Caller(key.key_id, key.tenant, key.user, key.access, *limits)

    def _counted(self, admitted: Admitted, limit: Any, quota: int, take: Callable[[int], Any]) -> Any:
        try:
            return take(quota)
        except RateLimited as refused:
            wait_s = int(refused.details.get("retry_after_s", _WINDOW_S))
            admitted.allowance = _Allowance(limit, quota, 0, wait_s)
            raise

    def _note(self, admitted: Admitted, limit: Literal["key", "address"], quota: int, left: float) -> None:
        again_s = ceil((quota - left) * _WINDOW_S / quota) if quota else _WINDOW_S
        admitted.allowance = _Allowance(limit, quota, floor(left), again_s)

    def _look_ahead(self) -> None:
        """Refresh the keys before they are due, so that requests seldom wait for it."""
        if isinstance(self._keys, StoredKeys) and self._keys.age_s >= FRESH_S / 2:
            self._begin("keys", self._keys.refresh)

    async def _once(self, what: str, call: Callable[[], None]) -> None:
        """Run the call in a thread; requests that need the same meanwhile wait for it."""
        await asyncio.shield(self._begin(what, call))

    def _begin(self, what: str, call: Callable[[], None]) -> asyncio.Future[None]:
        begun = self._under_way.get(what)
        if begun is None:
            begun = asyncio.get_running_loop().run_in_executor(self._thread, call)
            self._under_way[what] = begun
            begun.add_done_callback(partial(self._ended, what))
        return begun

    def _ended(self, what: str, done: asyncio.Future[None]) -> None:
        self._under_way.pop(what, None)
        if not done.cancelled():
            done.exception()  # waiting requests raise it; without any, the next one tries again

    # -- bodies ---------------------------------------------------------------------------------------

    async def read_json(self, request: Request) -> Any:
        """Read the body's JSON; an empty object if there is no body."""
        body = await self.read_body(request)
        if not body:
            return {}
        check_json(request)
        return parse_json(body)

    async def read_body(self, request: Request, *, may_be_encoded: bool = False) -> bytes:
        """Read the raw body. It counts among the held bodies until the request is over."""
        if not may_be_encoded:
            _check_plain(request)
        admitted = Admitted.of(request.scope)
        key_id = admitted.caller.key_id if admitted.caller else "-"
        parts: list[bytes] = []
        async for part in self.stream_body(request, self._limit_of(admitted.caller)):
            self._held.take(key_id, len(part))
            admitted.held_bytes += len(part)
            parts.append(part)
        return b"".join(parts)

    async def spool_lines(self, request: Request) -> Path:
        """Write the body to a temporary file, for work that reads it twice; `drop_spooled` removes it.

        The key's body limit applies; without one, a read-only key may send no more than any other body.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/x-ndjson", "application/jsonl", "application/octet-stream"):
            raise UnsupportedMedia("a dump is sent as `Content-Type: application/x-ndjson`")
        _check_plain(request)
        admitted = Admitted.of(request.scope)
        caller = admitted.caller or OPEN
        limit = self._limit_of(caller)
        if caller.body_bytes_max is None and caller.may("write"):
            limit = self._settings.import_bytes_max
        handle, name = tempfile.mkstemp(prefix="muniment-import-")
        path = Path(name)
        with ExitStack() as unless_whole:
            unless_whole.callback(path.unlink, missing_ok=True)
            with os.fdopen(handle, "wb") as file:
                async for part in self.stream_body(request, limit):
                    self._spooled.take(caller.key_id, len(part))
                    admitted.spooled_bytes += len(part)
                    await asyncio.to_thread(file.write, part)
            unless_whole.pop_all()
        return path

    def keep_spooled(self, request: Request) -> Callable[[], None]:
        """Let a spooled body outlive its request, for background work; returns the function that releases it."""
        admitted = Admitted.of(request.scope)
        size, admitted.spooled_bytes = admitted.spooled_bytes, 0
        key_id = admitted.caller.key_id if admitted.caller else "-"
        loop = asyncio.get_running_loop()

        def give_back() -> None:
            loop.call_soon_threadsafe(self._spooled.give, key_id, size)

        return give_back

    async def stream_body(self, request: Request, bytes_max: int) -> AsyncIterator[bytes]:
        """Yield the parts of a body as they arrive: within a time of each other, and at no less than the least rate."""
        length = request.headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length) > bytes_max:
            raise _too_large(bytes_max)
        size, more = 0, True
        seconds_max = self._settings.body_seconds_max
        now_s = asyncio.get_running_loop().time
        begun_s = now_s()
        while more:
            left_s = begun_s + seconds_max + size / BYTES_A_SECOND_MIN - now_s()
            try:
                async with asyncio.timeout(min(left_s, seconds_max)):
                    message = await request.receive()
            except TimeoutError:
                raise TooSlow(f"too little came in {seconds_max:g} seconds") from None
            if message["type"] == "http.disconnect":
                raise TooSlow("the caller went away")
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            if size > bytes_max:
                raise _too_large(bytes_max)
            if part:
                yield part

    def _limit_of(self, caller: Caller | None) -> int:
        return (caller.body_bytes_max if caller else None) or self._settings.body_bytes_max


async def _send(admitted: Admitted, send: Send, message: Message) -> None:
    """Send a part of an answer; its start carries the request's id and the rest of the rate."""
    if message["type"] == "http.response.start":
        admitted.status = message["status"]
        told = {"X-Request-Id": admitted.request_id} | (admitted.allowance.headers() if admitted.allowance else {})
        own = [(name.lower().encode(), value.encode()) for name, value in told.items()]
        message["headers"] = [*message.get("headers", ()), *(() if admitted.is_relayed else own)]
        kind = next((value for name, value in message["headers"] if name.lower() == b"content-type"), b"")
        admitted.is_stream = kind.startswith(b"text/event-stream")
    await send(message)


def is_passed_on(request: Request) -> bool:
    """True if a proxy forwarded the request for another caller."""
    return any(name in _FORWARDED or name.startswith("x-forwarded") for name in request.headers)


def check_json(request: Request) -> None:
    """Refuse a body not declared as JSON: a form, or a page of another site, can send any other type without asking."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedMedia(
            f"a body of type {kind or 'unknown'!r:.60} is not taken here", hint="send `Content-Type: application/json`"
        )


def _check_plain(request: Request) -> None:
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("an encoded body is not taken")


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(
        f"a body over the limit of {bytes_max} bytes", hint="send less at once", details={"bytes_max": bytes_max}
    )


def problem_response(error: MunimentError, request_id: str, problem: dict[str, Any] | None = None) -> Response:
    """An error as a response; `problem` if its description was changed."""
    problem = problem_of(error, request_id) if problem is None else problem
    headers = dict(HEADERS)
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = 'Bearer realm="muniment"'
    if isinstance(error, WrongMethod):
        headers["Allow"] = ", ".join(error.details["allowed"])
    wait_s = error.details.get("retry_after_s", _COME_BACK_S if isinstance(error, Closed) else None)
    if wait_s is not None:
        headers["Retry-After"] = str(wait_s)
    return Response(canonical_bytes(problem), problem["status"], headers, MEDIA_TYPE)


def _refuse(_request: Request, error: MunimentError, admitted: Admitted) -> Response:
    return problem_response(error, admitted.request_id)


class _ByteBudget:
    """A limit on the bytes held at the same time: over all requests, and half of it for one key."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self._held = bytes_max, 0
        self._by_key: Counter[str] = Counter()

    def take(self, key_id: str, size: int) -> None:
        own_max = self._bytes_max if key_id == OPEN.key_id else -(-self._bytes_max // 2)
        if self._held + size > self._bytes_max or self._by_key[key_id] + size > own_max:
            raise Overloaded(
                "too much is being sent at once",
                hint="send fewer large bodies at the same time, or come back later",
                details={"retry_after_s": 1},
            )
        self._held += size
        self._by_key[key_id] += size

    def give(self, key_id: str, size: int) -> None:
        if size:
            self._held -= size
            self._by_key[key_id] -= size
            if not self._by_key[key_id]:
                del self._by_key[key_id]


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
