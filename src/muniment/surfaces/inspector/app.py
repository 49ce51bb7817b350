"""The inspector next to the API, as passed to `create_app(beside={"/": inspector})`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.errors import UnknownRoute, WrongMethod
from muniment.surfaces.http._guard import Guard, Mount
from muniment.surfaces.inspector.pages import DIST, HEADERS, BuiltFile, built_file, load_files, no_page

__all__ = ["inspector", "no_inspector"]


def inspector(_guard: Guard, dist: Path = DIST) -> Mount:
    """The page, served without a key: it holds no data, and the API asks for keys."""
    return _serving(load_files(dist))


def no_inspector(_guard: Guard) -> Mount:
    """The response if the page is not built, with how to get it."""
    files = {"/": built_file("/", f"{no_page()}\n".encode(), "text/plain; charset=utf-8")}
    return _serving(files)


def _serving(files: Mapping[str, BuiltFile]) -> Mount:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await _answer(Request(scope), files.get(scope["path"]))(scope, receive, send)

    return Mount(app, asks_for_keys=False)


def _answer(request: Request, file: BuiltFile | None) -> Response:
    if file is None:
        raise UnknownRoute("nothing answers at that address")
    if request.method not in ("GET", "HEAD"):
        raise WrongMethod(f"{request.method:.20} is not taken there", details={"allowed": ["GET", "HEAD"]})
    headers = {**HEADERS, "ETag": file.etag, "Cache-Control": file.cache}
    if file.etag in request.headers.get("if-none-match", "").split(", "):
        return Response(b"", 304, headers)
    return Response(file.body, 200, headers | {"Content-Type": file.media})
