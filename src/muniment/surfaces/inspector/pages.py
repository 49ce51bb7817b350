"""The built page as files: read once, served under a policy that allows only its own script and no framing.

The files hold no data. The page requests it from the API, with the reader's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from muniment.errors import MissingDependency

__all__ = ["DIST", "HEADERS", "BuiltFile", "built_file", "is_built", "load_files", "no_page", "not_built"]

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
"""The headers of every file."""

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
    """Files named by their content never change; the page that names them may."""


_CLONE = Path(__file__).parents[4] / "inspector" / "package.json"
"""The page's source, if this package is in a clone."""


def not_built() -> str:
    """How to get a missing page: a release has it built, a clone has its source."""
    if _CLONE.is_file():
        return "`make inspector` builds it, with Node.js 20 or newer; the wheel of a release has it"
    return "this installation was made without it: install the wheel of a release, or one that `make wheel` built"


def no_page() -> str:
    """One line in place of the page: this is muniment, and how to get its page."""
    return f"muniment serves here without its page: {not_built()}"


def is_built(dist: Path = DIST) -> bool:
    return (dist / "index.html").is_file()


def built_file(address: str, body: bytes, media: str) -> BuiltFile:
    """The file served at an address."""
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    return BuiltFile(body, media, etag, "no-cache" if address == "/" else _FOREVER)


def load_files(dist: Path = DIST) -> dict[str, BuiltFile]:
    """Every file of the page by its address; the page itself is `/`."""
    if not is_built(dist):
        raise MissingDependency("the inspector is not built", hint=not_built())
    found = {}
    for path in sorted(dist.rglob("*")):
        if path.suffix in _MEDIA and path.is_file():
            address = "/" + path.relative_to(dist).as_posix()
            is_page = address == "/index.html"
            place = "/" if is_page else address
            found[place] = built_file(place, path.read_bytes(), _MEDIA[path.suffix])
    return found
