"""A connection to a server: operations requested by their rows, answers read back into records, problems raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from functools import cache
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
from pydantic import ConfigDict, TypeAdapter

from muniment.core.canonical import MAX_DEPTH, canonical_bytes, check_text, child_path, parse_json
from muniment.core.instants import format_instant, parse_instant
from muniment.core.listing import AROUND, PAGE_SIZE, Listing, Page, check_limit
from muniment.core.record import JsonValue, Record, ValidationError, issues_of
from muniment.core.requests import whole
from muniment.errors import (
    Closed,
    InvalidInput,
    InvalidJson,
    InvalidRecord,
    MunimentError,
    StorageFailure,
    StorageLost,
)
from muniment.packets.builds import Build
from muniment.surfaces.operations.problems import error_of
from muniment.surfaces.operations.shapes import Listed, wire_shape
from muniment.surfaces.operations.table import Operation
from muniment.surfaces.operations.works import Work

__all__ = ["Ask", "Connection", "plain"]

_LINES = "application/x-ndjson"
_PROBLEM = b'{"problem":'
_DOTS = {".": "%2E", "..": "%2E%2E"}
_PLAIN_BELOW = 1e21
"""Numbers from here on are written with an exponent, and would not be read back as integers."""
_FILE_BYTES_MAX = 64 << 20


class Ask(NamedTuple):
    """One request: its row, the address, the query and the body."""

    operation: Operation
    template: str
    names: Mapping[str, Any]
    arguments: Mapping[str, Any]
    context: Mapping[str, Any] = {}

    @property
    def path(self) -> str:
        path = self.template
        for name in self.operation.named_in(self.template):
            path = path.replace(f"{{{name}}}", _segment(name, self.names.get(name)))
        return path


class Connection:
    """A connection to a server. As thread-safe as its HTTP client."""

    def __init__(
        self, http: Any, key: str | None, before: Callable[[], None] | None = None, deadline_s: float | None = None
    ) -> None:
        """`before` is called before each request and may raise to refuse it. `deadline_s` is the server's time limit
        for each.
        """
        self._http = http
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        if deadline_s is not None:
            self._headers["Prefer"] = f"wait={deadline_s:.3f}".rstrip("0").rstrip(".")
        self._before = before
        self._is_closed = False

    def whoami(self) -> dict[str, Any]:
        """The server's description of the key."""
        told: dict[str, Any] = parse_json(self._request("GET", "/v1/key", headers=self._headers).content)
        return told

    def close(self) -> None:
        self._is_closed = True
        self._http.close()

    def _request(self, method: str, path: str, **parts: Any) -> Any:
        with self._reached():
            answer = self._http.request(method, path, **parts)
        if answer.is_error:
            raise _problem(answer)
        return answer

    @contextmanager
    def _streamed(self, method: str, path: str, **parts: Any) -> Iterator[Any]:
        with self._reached(), self._http.stream(method, path, **parts) as answer:
            if answer.is_error:
                answer.read()
                raise _problem(answer)
            yield answer

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Convert transport failures to the library's own errors: the outcome is unknown once something was sent."""
        if self._is_closed:
            raise Closed("the connection has been closed")
        if self._before is not None:
            self._before()
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol) as error:
            raise StorageFailure(
                f"the server cannot be reached: {error}", hint="check that it runs, and its address"
            ) from None
        except httpx2.TransportError as error:
            raise StorageLost(f"the connection to the server broke: {error}") from None

    # -- requests -------------------------------------------------------------------------------------

    def ask(self, ask: Ask) -> Any:
        """Send a request and return the library's type of answer."""
        operation = ask.operation
        if operation.is_paged:
            return self._listing(ask)
        if operation.media == _LINES:
            return self.lines(ask)
        answer = self._send(ask, {})
        if answer.status_code == 204:
            return None
        if operation.media != "application/json":
            return answer.content.decode()
        if operation.signature.returns is bytes:
            return answer.content
        told = parse_json(answer.content)
        return operation.shape.decode(told["items"] if operation.is_listed else told)

    def _listing(self, ask: Ask) -> Listing[Any]:
        """A list of the server's, requested page by page."""
        shape = ask.operation.shape
        assert isinstance(shape, Listed)
        inner = shape.inner
        asked = dict(ask.arguments)
        limit, begun = check_limit(asked.pop("limit", None)), asked.pop("cursor", None)

        def fetch(cursor: str | None, size: int) -> Page[Any]:
            part = ask._replace(arguments=asked | {"cursor": cursor, "limit": size})
            answered = parse_json(self._send(part, {}).content)
            items = [inner.decode(each) for each in answered["items"]]
            return Page(items, answered.get("next"), answered.get("count"))

        size = PAGE_SIZE if asked.get("around") is None or begun is not None else AROUND
        bound = AROUND if size == AROUND and limit is None else limit
        return Listing(fetch, limit=bound, cursor=begun, size=size)

    def lines(self, ask: Ask) -> Iterator[bytes]:
        """The lines of a long answer, as they arrive; it has begun when this returns."""
        opened = self._opened(ask)
        first = next(opened, None)
        return iter(()) if first is None else _joined(first, opened)

    def _opened(self, ask: Ask) -> Iterator[bytes]:
        with self._streamed(ask.operation.method, ask.path, **self._parts(ask, {"Accept": _LINES})) as answer:
            held = b""
            for part in answer.iter_bytes():
                *whole, held = (held + part).split(b"\n")
                for line in whole:
                    if line.startswith(_PROBLEM):
                        raise error_of(_unfolded(parse_json(line)["problem"]))
                    yield line + b"\n"
            if held:
                raise StorageLost("the answer broke off", hint="ask again")

    def _send(self, ask: Ask, headers: Mapping[str, str]) -> Any:
        return self._request(ask.operation.method, ask.path, **self._parts(ask, headers))

    def _parts(self, ask: Ask, headers: Mapping[str, str]) -> dict[str, Any]:
        whole = ask.operation.body
        if whole is not None:
            sent = plain(ask.arguments.get(whole), "$")
        else:
            for name in ask.arguments.keys() & _free_values(ask.operation):
                _check_json(ask.arguments[name], f"$.{name}")
            sent = {name: plain(value, f"$.{name}") for name, value in ask.arguments.items()}
            if not ask.operation.takes_body:
                _check_query(ask.operation, sent)
        parts: dict[str, Any] = {"headers": self._headers | dict(headers), "params": _query(ask.context)}
        if ask.operation.takes_body:
            parts["content"] = canonical_bytes(sent)
            parts["headers"]["Content-Type"] = "application/json"
        else:
            parts["params"] = [*parts["params"], *_query(sent)]
        return parts

    # -- long work ------------------------------------------------------------------------------------

    def upload(self, ask: Ask, lines: Iterable[bytes], progress: Any = None) -> Any:
        """Send a body as a stream; with `progress`, as long work that reports its progress."""
        headers = self._headers | {"Content-Type": _LINES}
        headers |= {} if progress is None else {"Prefer": "respond-async"}
        answer = self._request(ask.operation.method, ask.path, headers=headers, content=iter(lines))
        return self._awaited(ask, answer, progress)

    def work(self, ask: Ask, progress: Any) -> Any:
        """Request long work, and report its progress until it is done."""
        return self._awaited(ask, self._send(ask, {"Prefer": "respond-async"}), progress)

    def _awaited(self, ask: Ask, answer: Any, progress: Any) -> Any:
        told = parse_json(answer.content)
        if answer.status_code == 202:
            work = self._watched(answer.headers["location"], progress)
            if work.error is not None:
                raise error_of(_unfolded(work.error))
            told = work.result
        return ask.operation.shape.decode(told)

    def _watched(self, location: str, progress: Any) -> Work:
        """Follow the events of a work to its end."""
        done, work = 0, None
        with self._streamed("GET", f"{location}/events", headers=self._headers, timeout=None) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    work = Work.from_wire(parse_json(line.removeprefix("data: ")))
                    if progress is not None and work.progress > done:
                        progress(work.progress - done)
                        done = work.progress
        if work is None or not work.is_finished:
            raise StorageLost("the server went away while it worked", hint="start the work again: it goes on")
        return work


def _joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _problem(answer: Any) -> MunimentError:
    try:
        told = parse_json(answer.content)
    except InvalidJson:
        told = None
    if not isinstance(told, dict) or "code" not in told:
        return StorageFailure(
            f"what answers there is no muniment: HTTP {answer.status_code}", hint="check the address, and any proxy"
        )
    return error_of(told)


def _unfolded(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the library's own shape of an error to a problem."""
    return dict(shape) | {"detail": shape.get("message")}


def _segment(name: str, value: Any) -> str:
    """Encode a name as a path segment."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} should be a non-empty string", path=f"$.{name}")
    check_text(value, f"$.{name}")
    return _DOTS.get(value) or quote(value, safe="")


def _query(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    each_of = (
        (name, each) for name, value in given.items() for each in (value if isinstance(value, list) else [value])
    )
    return [
        (name, str(each).lower() if isinstance(each, bool) else str(each)) for name, each in each_of if each is not None
    ]


def _check_query(operation: Operation, sent: Mapping[str, Any]) -> None:
    """Check query arguments, all of which become text: raises if one has the wrong type."""
    wanted = {each.name: wire_shape(each.hint).schema({}) for each in operation.signature.parameters}
    for name, value in sent.items():
        types = str(wanted.get(name, {}))
        is_right = isinstance(value, str) or (
            isinstance(value, int) and ("'boolean'" if isinstance(value, bool) else "'integer'") in types
        )
        if value is not None and not is_right and not (isinstance(value, list) and "'array'" in types):
            raise InvalidInput(f"{name} should be text, not {type(value).__name__}", path=f"$.{name}")
        if isinstance(value, str):
            check_text(value, f"$.{name}")


def _free_values(operation: Operation) -> set[str]:
    """The arguments that accept any JSON value: they are passed on unconverted, so that the library can refuse them."""
    return {each.name for each in operation.signature.parameters if each.hint is JsonValue}


@cache
def _json_values() -> TypeAdapter[Any]:
    return TypeAdapter(JsonValue, config=ConfigDict(strict=True, allow_inf_nan=False))


def _check_json(value: Any, path: str) -> None:
    try:
        _json_values().validate_python(value)
    except ValidationError as error:
        raise InvalidRecord("this cannot be sent", issues_of(error, value)).within(path) from None


def plain(value: Any, path: str, room: int = MAX_DEPTH) -> Any:
    """Convert arguments to JSON: records by their wire form, builds and recalls by their ids, times as text."""
    if not room:
        raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels", path=path)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not isfinite(value):
            _check_json(value, path)
        return whole(value) if abs(value) < _PLAIN_BELOW else value  # as in canonical JSON
    if isinstance(value, Record):
        return value.to_wire()
    if isinstance(value, Build):
        return value.id
    if isinstance(value, datetime):
        instant = format_instant(parse_instant(value, path=path))
        return instant if value.tzinfo is None else value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: plain(each, child_path(path, str(name)), room - 1) for name, each in value.items()}
    if isinstance(value, PathLike):
        from muniment.memory.corpus import read_text_file

        return read_text_file(Path(fspath(value)), _FILE_BYTES_MAX, "the client")
    if hasattr(value, "request") and hasattr(value.request, "request_id"):
        return value.request.request_id  # a recall
    if isinstance(value, set | frozenset):
        return sorted(value) if all(isinstance(each, str) for each in value) else list(value)
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray):
        return [plain(each, child_path(path, at), room - 1) for at, each in enumerate(value)]
    raise InvalidInput(f"a value of type {type(value).__name__} cannot be sent", path=path)
