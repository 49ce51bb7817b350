"""The built page as files: read once, served under a policy that runs no script but its own and shows it to no frame.

There is no data in them. What the page shows it asks of the API, with the reader's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from muniment.errors import MissingDependency

__all__ = ["DIST", "HEADERS", "BuiltFile", "is_built", "load_files", "not_built"]

DIST = Path(__file__).parent / "dist"

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""On every file."""

_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
_FOREVER = "public, max-age=31536000, immutable"


class BuiltFile(NamedTuple):
    body: bytes
    media: str
    etag: str
    cache: str
    """Files that are named by their content never change; the page that names them may."""


_CLONE = Path(__file__).parents[4] / "inspector" / "package.json"
"""The source of the page, where this package lies in a clone."""


def not_built() -> str:
    """What to do where the page is missing: a release has it built, a clone has its source."""
    if _CLONE.is_file():
        return "make inspector builds it, with Node.js 20 or newer"
    return "this installation was made without it: install the wheel of a release, or one that `make wheel` built"


def is_built(dist: Path = DIST) -> bool:
    return (dist / "index.html").is_file()


def load_files(dist: Path = DIST) -> dict[str, BuiltFile]:
    """Every file of the page by its address; the page itself is `/`."""
    if not is_built(dist):
        raise MissingDependency("the inspector is not built", hint=not_built())
    found = {}
    for path in sorted(dist.rglob("*")):
        if path.suffix in _MEDIA and path.is_file():
            address = "/" + path.relative_to(dist).as_posix()
            is_page = address == "/index.html"
            body = path.read_bytes()
            etag = f'"{sha256(body).hexdigest()[:32]}"'
            file = BuiltFile(body, _MEDIA[path.suffix], etag, "no-cache" if is_page else _FOREVER)
            found["/" if is_page else address] = file
    return found
