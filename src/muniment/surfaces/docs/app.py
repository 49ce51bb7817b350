"""The pages as an application beside the API: for whoever comes, as the document itself is."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.errors import MunimentError, UnknownRoute, WrongMethod
from muniment.surfaces.docs.pages import page_at
from muniment.surfaces.http.gateway import problem_response
from muniment.surfaces.inspector.pages import HEADERS

__all__ = ["docs_app"]

QUERY_CHARS_MAX = 200

_POLICY = (
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_SENT = {**HEADERS, "Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}


class _Page(NamedTuple):
    body: bytes
    media: str
    etag: str


async def docs_app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers below `/docs`; there is no script, and nothing is asked of another host."""
    request = Request(scope)
    if request.url.path == "/docs/":  # links are relative to the page without the slash
        await Response(b"", 308, _SENT | {"Location": "../docs"})(scope, receive, send)
        return
    try:
        page = await run_in_threadpool(_asked, request)
        headers = _SENT | {"ETag": page.etag}
        if page.etag in request.headers.get("if-none-match", "").split(", "):
            response = Response(b"", 304, headers)
        else:
            response = Response(page.body, 200, headers, page.media)
    except MunimentError as error:
        response = problem_response(error, "-")
    await response(scope, receive, send)


def _asked(request: Request) -> _Page:
    if request.method not in ("GET", "HEAD"):
        raise WrongMethod(f"{request.method:.20} is not taken there", details={"allowed": ["GET", "HEAD"]})
    segments = tuple(request.url.path.strip("/").split("/")[1:])
    if segments == ("style.css",):
        return _style()
    query = request.query_params.get("q", "")[:QUERY_CHARS_MAX]
    page = page_at(segments, query) if segments or query else _start()
    if page is None:
        raise UnknownRoute("nothing answers at that address", hint="the pages begin at /docs")
    return _made(page.encode(), "text/html; charset=utf-8")


@cache
def _start() -> str:
    page = page_at((), "")
    assert page is not None
    return page


@cache
def _style() -> _Page:
    held = files("muniment.surfaces.docs").joinpath("data/style.css").read_bytes()
    return _made(held, "text/css; charset=utf-8")


def _made(body: bytes, media: str) -> _Page:
    return _Page(body, media, f'"{sha256(body).hexdigest()[:32]}"')
