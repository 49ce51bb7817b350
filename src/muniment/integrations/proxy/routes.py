"""Routing: which requests ask a model, their upstream address, and their headers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from urllib.parse import urlsplit

from muniment.errors import InvalidInput
from muniment.integrations.wrapping.dialects import CHAT, MESSAGES, RESPONSES, Dialect

__all__ = [
    "HEADER_PREFIX",
    "READABLE",
    "address_of",
    "check_said_once",
    "checked_upstream",
    "dialect_of",
    "for_anthropic",
    "passed_back",
    "passed_on",
]

HEADER_PREFIX = b"muniment-"
READABLE = ("gzip", "deflate", "identity")
"""Content codings of answers that can be read as they pass."""
_PLACES: tuple[tuple[str, Dialect], ...] = (
    ("/chat/completions", CHAT),
    ("/responses", RESPONSES),
    ("/v1/messages", MESSAGES),  # the Assistants API's threads have messages too, under another path
)
_HOPS = frozenset(
    (
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    )
)  # fmt: skip
"""Headers of a single connection, which are not forwarded."""

Headers = list[tuple[bytes, bytes]]


def dialect_of(method: str, path: str) -> Dialect | None:
    """The API by which this request asks a model; None if it does not."""
    if method != "POST":
        return None
    return next((dialect for end, dialect in _PLACES if path.endswith(end)), None)


def for_anthropic(path: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """True for Anthropic's API, whose clients send its version with every request."""
    is_named = any(name.lower() == b"anthropic-version" for name, _ in headers)
    return is_named or path.endswith("/v1/messages") or "/v1/messages/" in path


def checked_upstream(address: str, name: str) -> str:
    """Check an upstream's address and strip its final slash."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInput(f"{name} is no address of a server", path=f"$.{name}", hint="such as https://api.openai.com")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"{name} has a password in it", path=f"$.{name}", hint="the caller's own Authorization goes to the upstream"
        )
    return address.rstrip("/")


def address_of(upstream: str, path: str, query: str) -> str:
    """The upstream address of a request: the path appended to the upstream's, with a duplicate `/v1` merged."""
    if upstream.endswith("/v1") and (path == "/v1" or path.startswith("/v1/")):
        path = path.removeprefix("/v1")
    return f"{upstream}{path}?{query}" if query else f"{upstream}{path}"


def passed_on(headers: Iterable[tuple[bytes, bytes]], *, is_read: bool) -> Headers:
    """Headers for the upstream: all except those of the connection and our own.

    If the answer will be read (`is_read`), the length is that of the body sent, and only codings we can read are
    accepted.
    """
    kept = _end_to_end(headers)
    left_out = {b"host", b"content-length"} if is_read else {b"host"}
    kept = [(name, value) for name, value in kept if name not in left_out and not name.startswith(HEADER_PREFIX)]
    return [(name, _readable(value) if is_read and name == b"accept-encoding" else value) for name, value in kept]


def passed_back(headers: Iterable[tuple[bytes, bytes]], ours: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers for the caller: the upstream's, and ours, which the upstream cannot set."""
    said = [(name, value) for name, value in _end_to_end(headers) if not name.lower().startswith(HEADER_PREFIX)]
    return [*said, *ours]


def check_said_once(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse duplicates of our headers: picking either one would let another header choose the user."""
    counted = Counter(name.lower() for name, _ in headers if name.lower().startswith(HEADER_PREFIX))
    twice = next((name.decode("latin-1") for name, count in counted.items() if count > 1), None)
    if twice is not None:
        raise InvalidInput(f"{twice} is said more than once", path=f"$.headers.{twice}", hint="send it once")


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    held = list(headers)
    named = b",".join(value for name, value in held if name.lower() == b"connection")
    hops = _HOPS | {each.strip().lower() for each in named.split(b",")}
    return [(name, value) for name, value in held if name.lower() not in hops]


def _readable(value: bytes) -> bytes:
    """Codings accepted by the caller that can be read here."""
    said = [each.strip() for each in value.decode("latin-1").split(",")]
    kept = [each for each in said if each.partition(";")[0].strip().lower() in READABLE]
    return ", ".join(kept).encode("latin-1") or b"identity"
