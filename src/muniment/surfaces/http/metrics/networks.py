"""Networks that a setting names."""

from __future__ import annotations

import ipaddress

from muniment.errors import InvalidInput

__all__ = ["Network", "networks_of"]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_LOOPBACK = ("127.0.0.0/8", "::1/128")
_EVERYWHERE = ("0.0.0.0/0", "::/0")
_WORDS = {"loopback": _LOOPBACK, "open": _EVERYWHERE, "key": (), "off": ()}


def networks_of(setting: str) -> tuple[Network, ...]:
    """The networks that a setting names: `loopback`, `open`, addresses with the length of their prefix; or `key`."""
    named: list[str] = []
    for part in filter(None, (part.strip() for part in setting.split(","))):
        named += _WORDS.get(part, (part,))
    try:
        return tuple(ipaddress.ip_network(each) for each in named)
    except ValueError:
        raise InvalidInput(
            f"metrics names networks, not {setting!r:.100}",
            path="$.metrics",
            hint="loopback, open, key, off, or networks such as 10.1.0.0/16, with commas between them",
        ) from None
