"""Which hosts an allowlist lets through. Pure.

An entry is `host`, `host:port` or `*.domain:port`; without a port it means 443. A name that resolves to an address
inside (loopback, private, link-local) is refused, so that whoever owns an allowed name cannot point it at the
host's own network; an entry that is itself such an address, or `localhost`, says so openly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from muniment.core.outside.http import is_public
from muniment.errors import InvalidInput

__all__ = ["Entry", "allows", "may_reach", "parse_entries", "parse_target"]

_DEFAULT_PORT = 443
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?")


class Entry(NamedTuple):
    host: str
    port: int


def parse_entries(allowlist: Iterable[str]) -> tuple[Entry, ...]:
    """The entries of a policy; raises `InvalidInput` for one that cannot be read."""
    return tuple(_entry(text, index) for index, text in enumerate(allowlist))


def _entry(text: str, index: int) -> Entry:
    try:
        host, port = parse_target(text, default_port=_DEFAULT_PORT)
    except ValueError:
        raise InvalidInput(f"{text!r} is not host, host:port or *.domain:port", path=f"$.allowlist[{index}]") from None
    return Entry(host, port)


def parse_target(text: str, default_port: int | None = None) -> tuple[str, int]:
    """`host:port` or `[address]:port` in lower case without a final dot; raises ValueError."""
    if text.startswith("["):
        host, end, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
        if ip_address(host).version != 6 or not end or (rest and not rest.startswith(":")):
            raise ValueError(text)
    else:
        host, _, port = text.partition(":")
        host = host.lower().removesuffix(".")
        if not _NAME.fullmatch(host):
            raise ValueError(text)
    if not port and default_port is not None:
        return host, default_port
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(text)
    return host, int(port)


def allows(entries: Sequence[Entry], host: str, port: int) -> bool:
    """Is this host and port on the list? A star stands for one label or more, never for none."""
    return any(entry.port == port and _covers(entry.host, host) for entry in entries)


def _covers(pattern: str, host: str) -> bool:
    return host.endswith(pattern[1:]) and not host.startswith("*") if pattern.startswith("*.") else host == pattern


def may_reach(host: str, address: str) -> bool:
    """May a name that is on the list be reached at this address?"""
    return host == "localhost" or host == address or is_public(address)
