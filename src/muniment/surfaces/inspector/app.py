"""The inspector beside the API, as `create_app(beside={"/": inspector()})` takes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.errors import UnknownRoute, WrongMethod
from muniment.surfaces.http.app import Beside
from muniment.surfaces.http.gateway import problem_response
from muniment.surfaces.inspector.pages import DIST, HEADERS, BuiltFile, built_file, load_files, no_page

__all__ = ["inspector", "no_inspector"]


def inspector(dist: Path = DIST) -> Beside:
    """The page for whoever comes: it holds nothing, and the API asks for keys."""
    return _serving(load_files(dist))


def no_inspector() -> Beside:
    """What answers where the page would be: that there is none, and how to get it."""
    files = {"/": built_file("/", f"{no_page()}\n".encode(), "text/plain; charset=utf-8")}
    return _serving(files)


def _serving(files: Mapping[str, BuiltFile]) -> Beside:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await _answer(Request(scope), files.get(scope["path"]))(scope, receive, send)

    return Beside(app, asks_for_keys=False)


def _answer(request: Request, file: BuiltFile | None) -> Response:
    if file is None:
        return problem_response(UnknownRoute("nothing answers at that address"), "-")
    if request.method not in ("GET", "HEAD"):
        refused = WrongMethod(f"{request.method:.20} is not taken there", details={"allowed": ["GET", "HEAD"]})
        return problem_response(refused, "-")
    headers = {**HEADERS, "ETag": file.etag, "Cache-Control": file.cache}
    if file.etag in request.headers.get("if-none-match", "").split(", "):
        return Response(b"", 304, headers)
    return Response(file.body, 200, headers | {"Content-Type": file.media})
