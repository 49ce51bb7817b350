"""One request carried out: the handle opened, the method called, its answer put into bytes. Runs in a worker thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_bytes
from muniment.core.listing import PAGE_MAX, PAGE_SIZE, Listing, Page
from muniment.core.ports.engine import EngineInfo
from muniment.errors import InvalidInput, MunimentError
from muniment.handles.memory import Memory
from muniment.surfaces.http.guards import Request, Versioned, guarded
from muniment.surfaces.http.handles import open_handle, place_study, sees, versioned_id
from muniment.surfaces.http.places import THE_STORE, tell_study
from muniment.surfaces.http.routing import MatchedRoute
from muniment.surfaces.operations.shapes import Listed
from muniment.surfaces.operations.works import Works

__all__ = [
    "LINES",
    "AdmittedRequest",
    "Answer",
    "carry_out",
    "match_version",
    "plain_result",
    "problem_line",
]

JSON, LINES = "application/json", "application/x-ndjson"
_CHUNK_BYTES = 1 << 16


class AdmittedRequest(NamedTuple):
    """A request, read and let in."""

    found: MatchedRoute
    own: Mapping[str, Any]
    """The arguments of the method."""
    run: Mapping[str, Any]
    """What the query says of the run."""
    wants_lines: bool
    request: Request | None
    """The idempotency key of the request, where it is to be guarded."""
    version: int | None
    """The version that If-Match names."""
    research_dir: Path
    is_told_places: bool = True
    """May the one who asks be told where the store and its files lie?"""


class Answer(NamedTuple):
    status: int
    media: str
    body: bytes | Iterator[bytes] | AsyncIterator[bytes]
    etag: str | None = None


def carry_out(
    memory: Memory, works: Works, asked: AdmittedRequest, progress: Callable[[int], None] | None = None
) -> Answer:
    """Call what was asked for and put its answer into bytes; a stream has begun when this answers."""
    operation, found = asked.found.route.operation, asked.found
    if operation.is_paged and not asked.wants_lines and (asked.own.get("limit") or 0) > PAGE_MAX:
        raise InvalidInput(
            f"limit is a whole number from 1 to {PAGE_MAX}", path="$.limit", hint=f"leave it out for {PAGE_SIZE}"
        )
    opened = _opened(memory, works, asked)
    etag = None if operation.takes_body else _etag(opened, found)  # before the answer: one that is too old fails safe
    result = _call(opened, asked, progress)
    return _answer(asked, result, _etag(opened, found) if operation.takes_body else etag)


def plain_result(memory: Memory, works: Works, asked: AdmittedRequest, progress: Callable[[int], None]) -> Any:
    """The answer as plain data, for work whose result is fetched later."""
    return _encoded(asked, _call(_opened(memory, works, asked), asked, progress))


class _Opened(NamedTuple):
    """The handle on which a request is carried out."""

    memory: Memory
    handle: Any
    versioned: Versioned | None
    """What the operation's ETag is of."""


def _opened(memory: Memory, works: Works, asked: AdmittedRequest) -> _Opened:
    found = asked.found
    operation = found.route.operation
    if operation.handle == "works":
        return _Opened(memory, works, None)
    versioned = None
    if operation.versioned is not None:
        versioned = Versioned(versioned_id(found), lambda item: sees(handle, found, item))
    if asked.request is not None or asked.version is not None:
        memory = Memory(guarded(memory._ctx, asked.request, versioned, asked.version))
    handle = open_handle(memory, found, asked.run)
    return _Opened(memory, handle, versioned)


def _etag(opened: _Opened, found: MatchedRoute) -> str | None:
    """The version of what the operation is about, as an ETag; None where it has none."""
    versioned = opened.versioned
    if versioned is None:
        return None
    return f'"{opened.memory._ctx.engine.read(found.names["tenant_id"], versioned.version)}"'


def _call(opened: _Opened, asked: AdmittedRequest, progress: Callable[[int], None] | None) -> Any:
    memory, handle, found = opened.memory, opened.handle, asked.found
    operation, names = found.route.operation, found.names
    if isinstance(getattr(type(handle), operation.call, None), property):
        held = getattr(handle, operation.call)
        is_hidden = isinstance(held, EngineInfo) and not asked.is_told_places
        return held._replace(location=THE_STORE) if is_hidden else held
    taken = operation.takes_names
    arguments = dict(asked.own) | {name: names[name] for name in names if name in taken}
    if progress is not None and "progress" in taken:
        arguments["progress"] = progress
    if operation.makes_folder:
        place_study(memory, found, arguments, asked.research_dir)
    return operation.target(handle, **arguments)


# -- answers ------------------------------------------------------------------------------------------


def _answer(asked: AdmittedRequest, result: Any, etag: str | None) -> Answer:
    operation = asked.found.route.operation
    returns = operation.signature.returns
    if operation.media == LINES:
        return Answer(operation.status, LINES, _started(iter(result)))
    if operation.media != JSON:
        return _hashed(Answer(operation.status, f"{operation.media}; charset=utf-8", str(result).encode(), etag))
    if returns is type(None):
        return Answer(204, JSON, b"")
    if isinstance(result, bytes):
        return _hashed(Answer(operation.status, JSON, result, etag))
    if operation.is_listed:
        return _list(asked, result)
    body = canonical_bytes(_encoded(asked, result))
    answer = Answer(operation.status, JSON, body, etag)
    return answer if operation.takes_body else _hashed(answer)


def _encoded(asked: AdmittedRequest, result: Any) -> Any:
    plain = asked.found.route.operation.shape.encode(result)
    return plain if asked.is_told_places else tell_study(result, plain, asked.research_dir)


def _list(asked: AdmittedRequest, result: Iterable[Any]) -> Answer:
    operation, found = asked.found.route.operation, asked.found
    inner = _listed(found).inner
    if asked.wants_lines:
        lines = (canonical_bytes(inner.encode(each)) + b"\n" for each in result)
        return Answer(operation.status, LINES, _started(lines))
    page = result.page() if isinstance(result, Listing) else Page(list(result), None)
    answer = _page(operation.status, page._replace(items=[inner.encode(each) for each in page.items]))
    return answer if operation.takes_body else _hashed(answer)


def _listed(found: MatchedRoute) -> Listed:
    shape = found.route.operation.shape
    assert isinstance(shape, Listed)
    return shape


def _page(status: int, page: Page[Any]) -> Answer:
    told = {"items": page.items, "next": page.next, "count": page.total}
    return Answer(status, JSON, canonical_bytes({name: each for name, each in told.items() if each is not None}))


def _hashed(answer: Answer) -> Answer:
    """The answer with an ETag of its bytes, where it has none of a version."""
    if answer.etag is not None or not isinstance(answer.body, bytes):
        return answer
    return answer._replace(etag=f'"{sha256(answer.body).hexdigest()[:32]}"')


def _started(lines: Iterator[bytes]) -> Iterator[bytes]:
    """A stream whose first line is there, so that what is wrong from the start is told as an error."""
    first = next(lines, b"")
    return _chunked(chain((first,), lines))


def _chunked(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Lines in chunks. An error midway is the last line: `{"problem": …}`."""
    held: list[bytes] = []
    size = 0
    try:
        for line in lines:
            held.append(line)
            size += len(line)
            if size >= _CHUNK_BYTES:
                yield b"".join(held)
                held, size = [], 0
    except MunimentError as error:
        held.append(problem_line(error))
    if held:
        yield b"".join(held)


def problem_line(error: MunimentError) -> bytes:
    return canonical_bytes({"problem": error.to_dict() | {"status": error.status}}) + b"\n"


def match_version(header: str | None, found: MatchedRoute) -> int | None:
    """The version that If-Match names; None where it names none, or any."""
    if header is None:
        return None
    operation = found.route.operation
    if operation.versioned is None or not operation.takes_body:
        raise InvalidInput("If-Match is not taken here", path="$", hint="it goes with a change of what has a version")
    if header.strip() == "*":
        return None
    named = header.strip().removeprefix('"').removesuffix('"')
    if header.strip() != f'"{named}"' or not named.isascii() or not named.isdigit() or len(named) > 15:
        raise InvalidInput("If-Match should be the ETag that was answered", path="$", hint='such as "3"')
    return int(named)
