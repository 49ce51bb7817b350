"""Which request asks a model and how, where a request goes, and which headers go with it. Pure."""

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
"""Codings of answers that can be read while they pass."""
_PLACES: tuple[tuple[str, Dialect], ...] = (
    ("/chat/completions", CHAT),
    ("/responses", RESPONSES),
    ("/v1/messages", MESSAGES),  # a thread of the Assistants API has messages too, under another path
)
_HOPS = frozenset(
    (
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    )
)  # fmt: skip
"""What belongs to one connection, not to what passes over two."""

Headers = list[tuple[bytes, bytes]]


def dialect_of(method: str, path: str) -> Dialect | None:
    """The API by which this request asks a model; None where it does not."""
    if method != "POST":
        return None
    return next((dialect for end, dialect in _PLACES if path.endswith(end)), None)


def for_anthropic(path: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Is it Anthropic's API that is asked? Its clients name the version of it with every request."""
    is_named = any(name.lower() == b"anthropic-version" for name, _ in headers)
    return is_named or path.endswith("/v1/messages") or "/v1/messages/" in path


def checked_upstream(address: str, name: str) -> str:
    """An upstream's address, without a slash at its end; refused where it is none."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInput(f"{name} is no address of a server", path=f"$.{name}", hint="such as https://api.openai.com")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"{name} has a password in it", path=f"$.{name}", hint="the caller's own Authorization goes to the upstream"
        )
    return address.rstrip("/")


def address_of(upstream: str, path: str, query: str) -> str:
    """Where a request goes: the path it asked for behind the upstream's address, a `/v1` of both being one."""
    if upstream.endswith("/v1") and (path == "/v1" or path.startswith("/v1/")):
        path = path.removeprefix("/v1")
    return f"{upstream}{path}?{query}" if query else f"{upstream}{path}"


def passed_on(headers: Iterable[tuple[bytes, bytes]], *, is_read: bool) -> Headers:
    """What goes to the upstream: all but what belongs to the connection, and what was meant for us.

    Where the answer is read on its way (`is_read`), the length is that of what is sent, and the answer may come in no
    coding that cannot be read here.
    """
    kept = _end_to_end(headers)
    left_out = {b"host", b"content-length"} if is_read else {b"host"}
    kept = [(name, value) for name, value in kept if name not in left_out and not name.startswith(HEADER_PREFIX)]
    return [(name, _readable(value) if is_read and name == b"accept-encoding" else value) for name, value in kept]


def passed_back(headers: Iterable[tuple[bytes, bytes]], ours: Iterable[tuple[bytes, bytes]]) -> Headers:
    """What goes to the caller: what the upstream said, and what we say; nobody else says it in our name."""
    said = [(name, value) for name, value in _end_to_end(headers) if not name.lower().startswith(HEADER_PREFIX)]
    return [*said, *ours]


def check_said_once(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """A name for us that is said twice is refused: whichever were taken, another header would choose whose it is."""
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
    """Of the codings that the caller takes, those that can be read here."""
    said = [each.strip() for each in value.decode("latin-1").split(",")]
    kept = [each for each in said if each.partition(";")[0].strip().lower() in READABLE]
    return ", ".join(kept).encode("latin-1") or b"identity"
