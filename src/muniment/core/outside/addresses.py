"""Which network addresses are out in the open. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

__all__ = ["is_public"]

_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """May anybody reach it: neither loopback, private, link-local, multicast nor reserved, in whatever wrapping?

    An IPv6 address that stands for an IPv4 one (mapped, 6to4, NAT64) is what that one is.
    """
    where = ip_address(address.partition("%")[0])
    if isinstance(where, IPv6Address):
        inner = where.ipv4_mapped or where.sixtofour or (_low(where) if where in _NAT64 else None)
        if inner is not None:
            return is_public(str(inner))
        if where.is_site_local or where.teredo is not None:
            return False
    return where.is_global and not where.is_multicast and not where.is_reserved


def _low(where: IPv6Address) -> IPv4Address:
    return IPv4Address(int(where) & 0xFFFF_FFFF)
