"""HTTP clients: bounded requests to pages that others name, and OpenAI-compatible servers of chat models.

A request has one overall deadline and a limit on the bytes of its response.
"""

from __future__ import annotations

import io
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from threading import Thread
from typing import Any, NamedTuple, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from muniment.errors import InvalidInput, ModelMalformed, ModelRefused, ModelUnreachable, MunimentError

# -- addresses ------------------------------------------------------------------------------------------


_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return whether an address is public: neither loopback, private, link-local, multicast nor reserved.

    An IPv6 address that wraps an IPv4 one (mapped, 6to4, NAT64) is judged by the latter.
    """
    where = ip_address(address.partition("%")[0])
    if isinstance(where, IPv6Address):
        inner = where.ipv4_mapped or where.sixtofour or (_low(where) if where in _NAT64 else None)
        if inner is not None:
            return is_public(str(inner))
        if where.is_site_local or where.teredo is not None:
            return False
    return where.is_global and not where.is_multicast and not where.is_reserved


def _low(where: IPv6Address) -> IPv4Address:
    return IPv4Address(int(where) & 0xFFFF_FFFF)


# -- requests -------------------------------------------------------------------------------------------


T = TypeVar("T")

_PART_BYTES = 1 << 16


class BodyTooLarge(HTTPException):
    """A response over its size limit."""


class Address(NamedTuple):
    """An address a socket connects to."""

    family: int
    place: tuple[Any, ...]

    @property
    def ip(self) -> str:
        return str(self.place[0])


def read_body(answer: HTTPResponse, bytes_max: int, deadline_s: float) -> bytes:
    """Read the whole body, however slowly it arrives, up to the limit and the deadline (of `time.monotonic`)."""
    parts: list[bytes] = []
    size = 0
    while part := answer.read1(_PART_BYTES):
        parts.append(part)
        size += len(part)
        if size > bytes_max:
            raise BodyTooLarge(f"the answer is over {bytes_max} bytes")
        if time.monotonic() > deadline_s:
            raise TimeoutError("the answer came too slowly")
    if answer.length:
        raise IncompleteRead(b"".join(parts), answer.length)
    return b"".join(parts)


def look_up(host: str, port: int) -> list[Address]:
    """Return the addresses of a host from the system's resolver."""
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [Address(family, place) for family, _, _, _, place in found]


def in_time(call: Callable[[], T], deadline_s: float) -> T:
    """Return the result of a call without a timeout of its own: if it is late, its thread is abandoned."""
    made: Future[T] = Future()

    def run() -> None:
        try:
            made.set_result(call())
        except OSError as error:
            made.set_exception(error)

    Thread(target=run, daemon=True).start()
    return made.result(timeout=_left(deadline_s))


@contextmanager
def get(
    url: str, addresses: Sequence[Address], headers: Mapping[str, str], deadline_s: float, tls: ssl.SSLContext | None
) -> Iterator[HTTPResponse]:
    """Request a URL made by `fetchable_url` from the first reachable address, over TLS where `tls` is given."""
    with ask("GET", url, addresses, headers, deadline_s, tls) as answer:
        yield answer


@contextmanager
def ask(
    method: str,
    url: str,
    addresses: Sequence[Address],
    headers: Mapping[str, str],
    deadline_s: float,
    tls: ssl.SSLContext | None,
    body: bytes | None = None,
) -> Iterator[HTTPResponse]:
    """Like `get` with any method, and an optional body."""
    target = urlsplit(url)
    host = target.hostname or ""
    with closing(_connect(addresses, deadline_s)) as plain:
        plain.settimeout(_left(deadline_s))
        secure = plain if tls is None else tls.wrap_socket(plain, server_hostname=host)
        with closing(secure):
            connection = HTTPConnection(host, addresses[0].place[1])  # with a port, no other is looked for in the host
            connection.sock = _TimedSocket(secure, deadline_s)
            path = f"{target.path}?{target.query}" if target.query else target.path
            connection.request(method, path, body, {"Host": target.netloc, "Connection": "close", **headers})
            with connection.getresponse() as answer:
                yield answer


def _left(deadline_s: float) -> float:
    left = deadline_s - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time is up")
    return left


def _connect(addresses: Sequence[Address], deadline_s: float) -> socket.socket:
    """Connect, giving each address a share of the remaining time, so that a silent one does not use all of it."""
    problem: OSError = OSError("the host has no address")
    for index, address in enumerate(addresses):
        opened = socket.socket(address.family, socket.SOCK_STREAM)
        try:
            opened.settimeout(_left(deadline_s) / (len(addresses) - index))
            opened.connect(address.place)
        except OSError as error:
            opened.close()
            problem = error
            continue
        return opened
    raise problem


class _TimedSocket:
    """The part of a socket that `HTTPConnection` uses, with a deadline; the opener of the real socket closes it."""

    def __init__(self, real: socket.socket, deadline_s: float) -> None:
        self._real = real
        self._deadline_s = deadline_s

    def sendall(self, data: bytes) -> None:
        self._real.settimeout(_left(self._deadline_s))
        self._real.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedStream(self._real, self._deadline_s))

    def close(self) -> None:
        """Do nothing: the response is still to be read."""


class _TimedStream(io.RawIOBase):
    def __init__(self, real: socket.socket, deadline_s: float) -> None:
        self._real = real
        self._deadline_s = deadline_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._real.settimeout(_left(self._deadline_s))
        return self._real.recv_into(buffer)


# -- OpenAI-compatible servers --------------------------------------------------------------------------


_ANSWER_BYTES_MAX = 64 * 1024 * 1024
_RETRY_AFTER_S_MAX = 10.0
_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class Failures(NamedTuple):
    """Error messages and types for one kind of client."""

    client: str
    """Name of the client, such as "an embedder"."""
    server: str
    """Name of the server, such as "the embedding server"."""
    unreachable: type[MunimentError]
    refused: type[MunimentError]
    malformed: type[MunimentError]
    way_out: str
    """Advice for when it cannot be reached."""
    address_hint: str


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_options: Any) -> None:
        return None


class OpenAiServer:
    """Posts JSON to one path below a base address."""

    def __init__(
        self,
        base_url: str,
        path: str,
        failures: Failures,
        *,
        api_key: str | None,
        timeout_s: float,
        attempts_max: int,
        sleep: Callable[[float], None],
    ) -> None:
        self.url = f"{_checked_url(base_url, failures)}{path}"
        self._failures = failures
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._attempts_max = max(1, attempts_max)
        self._sleep = sleep
        self._opener: OpenerDirector = build_opener(_NoRedirects)

    def post(self, body: bytes, *, attempts_max: int | None = None) -> bytes:
        """Return the server's response; `attempts_max` overrides the default."""
        attempts = self._attempts_max if attempts_max is None else max(1, attempts_max)
        asked_s: float | None = None
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        reason = ""
        for attempt in range(attempts):
            wait_s = 0.25 * 2**attempt
            try:
                request = Request(self.url, data=body, headers=headers, method="POST")
                with self._opener.open(request, timeout=self._timeout_s) as answer:
                    return self._read(answer, time.monotonic() + self._timeout_s)
            except HTTPError as error:
                with error:
                    if error.code not in _RETRY_STATUS:
                        raise self._refusal(error) from error
                    reason = f"HTTP status {error.code}"
                    asked_s = _retry_after(error)
                    wait_s = wait_s if asked_s is None else asked_s
            except URLError as error:
                reason = str(error.reason)
            except (OSError, HTTPException) as error:
                reason = str(error) or type(error).__name__
            if attempt + 1 < attempts:
                self._sleep(wait_s)
        waits = {} if asked_s is None else {"retry_after_s": asked_s}
        raise self._failures.unreachable(
            f"{self._failures.server} did not answer in {attempts} attempt{'s' if attempts > 1 else ''}: {reason}",
            hint=self._failures.way_out,
            details={"url": self.url, "attempts": attempts, **waits},
        )

    def _read(self, answer: HTTPResponse, deadline_s: float) -> bytes:
        try:
            return read_body(answer, _ANSWER_BYTES_MAX, deadline_s)
        except BodyTooLarge as error:
            said = f"{self._failures.server}'s answer is over {_ANSWER_BYTES_MAX} bytes"
            raise self._failures.malformed(said) from error

    def _refusal(self, error: HTTPError) -> MunimentError:
        """Return the error for a refusal, with part of the server's text: it may repeat the input, never the key."""
        try:
            said = error.read(2_000).decode("utf-8", "replace")
        except (OSError, HTTPException):
            said = ""
        hint = "check the API key" if error.code in (401, 403) else "check the model's name and the address"
        return self._failures.refused(
            f"{self._failures.server} refused with HTTP status {error.code}",
            hint=hint,
            details={"http_status": error.code, "answer": said[:500]},
        )


def _checked_url(base_url: str, failures: Failures) -> str:
    try:
        parts = urlsplit(base_url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise InvalidInput(f"{failures.client} over HTTP needs an http or https address", hint=failures.address_hint)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            f"the address of {failures.client} carries no password, query or fragment: give the key apart"
        )
    return base_url.rstrip("/")


def _retry_after(error: HTTPError) -> float | None:
    """Return the seconds that the server asks for, within reason; dates are not read."""
    asked = (error.headers.get("Retry-After") or "").strip()
    return min(float(asked), _RETRY_AFTER_S_MAX) if asked.isascii() and asked.isdigit() else None


# -- chat models ----------------------------------------------------------------------------------------


MODEL_FAILURES = Failures(
    client="a model",
    server="the model's server",
    unreachable=ModelUnreachable,
    refused=ModelRefused,
    malformed=ModelMalformed,
    way_out="check the address, or go without: patterns need no server",
    address_hint="such as http://localhost:8080/v1",
)


class ChatAnswer(NamedTuple):
    """A model's answer, and its token usage where the server counts."""

    text: str
    is_cut: bool = False
    """True if the answer was cut off at its length limit."""
    tokens_in: int | None = None
    tokens_out: int | None = None

    @property
    def usage(self) -> dict[str, int]:
        """Return the tokens that its server counted."""
        counts = {"tokens_in": self.tokens_in, "tokens_out": self.tokens_out}
        return {name: count for name, count in counts.items() if count is not None}


class ChatModel:
    """One model of one server, at temperature 0."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 300.0,
        attempts_max: int = 3,
        tokens_max: int = 256,
        sleep: Callable[[float], None] = time.sleep,
        way_out: str = "check the address, or go without a model",
    ) -> None:
        if not model:
            raise InvalidInput(
                "a model over HTTP needs a name", path="$.model", hint="such as http://localhost:8080/v1#qwen"
            )
        self._server = OpenAiServer(
            base_url,
            "/chat/completions",
            MODEL_FAILURES._replace(way_out=way_out),
            api_key=api_key,
            timeout_s=timeout_s,
            attempts_max=attempts_max,
            sleep=sleep,
        )
        self.name = model
        self._tokens_max = tokens_max

    def __call__(self, messages: Sequence[dict[str, Any]]) -> str:
        """Return the model's answer; `ModelMalformed` where the server returns something else."""
        return self.ask(messages).text

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        form: tuple[str, Mapping[str, Any]] | None = None,
        tokens_max: int | None = None,
        attempts_max: int | None = None,
    ) -> ChatAnswer:
        """Return the answer and its usage; `form` is a name and the JSON Schema that the answer should follow."""
        asked: dict[str, Any] = {
            "model": self.name,
            "temperature": 0,
            "seed": 0,
            "max_tokens": self._tokens_max if tokens_max is None else min(tokens_max, self._tokens_max),
            "messages": list(messages),
        }
        if form is not None:
            schema = {"name": form[0], "strict": True, "schema": form[1]}
            asked["response_format"] = {"type": "json_schema", "json_schema": schema}
        return _read(self._server.post(json.dumps(asked).encode(), attempts_max=attempts_max))


def _read(body: bytes) -> ChatAnswer:
    try:
        whole = json.loads(body)
        choice = whole["choices"][0]
        said, is_cut, usage = choice["message"]["content"], choice.get("finish_reason") == "length", whole.get("usage")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as cause:
        raise ModelMalformed("the model's answer is not one of a chat") from cause
    counts = usage if isinstance(usage, Mapping) else {}
    answer = ChatAnswer("", is_cut, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))
    if not isinstance(said, str):
        raise ModelMalformed("the model's answer holds no text", details=answer.usage)
    return answer._replace(text=said)


def _count(given: Any) -> int | None:
    return given if type(given) is int and given >= 0 else None
