"""Who asks, from where, and whether they may: origins, keys, their scopes, how often they ask."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request

from muniment.errors import Forbidden, RateLimited, Refused, Unauthorized
from muniment.surfaces.http.keys import Key, KeyRing
from muniment.surfaces.http.routing import MatchedRoute
from muniment.surfaces.http.settings import is_loopback
from muniment.surfaces.operations.table import Access

__all__ = [
    "OPEN",
    "Caller",
    "OriginChecks",
    "RateLimits",
    "authenticate",
    "caller_with",
    "check_access",
    "check_grants",
    "is_passed_on",
]

_PORT = re.compile(r":\d+$")
_HERE = ("127.0.0.1", "localhost")
"""What this machine is nearly always called."""
_PASSED_ON = frozenset({"forwarded", "x-real-ip", "via"})
"""What a proxy says of whom it asks for, beside all that begins with `x-forwarded`."""
_OWN_SITE = ("same-origin", "none")
"""What a browser says in `Sec-Fetch-Site` for a page's own requests, and for an address that a person typed."""
_RANKS: Mapping[Access, int] = {"read": 0, "write": 1, "admin": 2}
_HELD_MAX = 10_000


class Caller(NamedTuple):
    """Who asks."""

    key_id: str
    tenant: str
    user: str | None
    access: Access
    requests_per_minute: int | None = None
    body_bytes_max: int | None = None
    request_seconds_max: int | None = None

    def public_fields(self) -> dict[str, Any]:
        """What a caller is told of itself."""
        fields = {"key_id": self.key_id, "tenant": self.tenant, "user": self.user, "access": self.access}
        return {name: value for name, value in fields.items() if value is not None}

    def may(self, access: Access) -> bool:
        return _RANKS[self.access] >= _RANKS[access]

    @property
    def keeps_the_server(self) -> bool:
        """May whoever asks be told of the machine: where the store lies?"""
        return self.tenant == "*" and self.user is None and self.may("admin")


OPEN = Caller("-", "*", None, "admin")
"""Whoever can reach a server that asks for no key."""


def authenticate(keys: KeyRing, authorization: str | None) -> Caller:
    """The caller of a bearer token; every reason to refuse one looks the same."""
    return caller_with(keys.find, authorization)


def caller_with(find: Callable[[str], Key | None], authorization: str | None) -> Caller:
    """The caller of a bearer token, by what finds its key."""
    scheme, _, token = (authorization or "").partition(" ")
    key = find(token.strip() if scheme.lower() == "bearer" else "")
    if key is None:
        raise Unauthorized("a key that holds is needed here")
    limits = (key.requests_per_minute, key.body_bytes_max, key.request_seconds_max)
    return Caller(key.key_id, key.tenant, key.user, key.access, *limits)


class OriginChecks:
    """Refuses requests that a page of another site, or a proxy in front of this machine, sends to a server.

    `host` is where the server listens, and `auth` its setting of that name.
    """

    def __init__(self, host: str, auth: str, *, asks_for_keys: bool) -> None:
        self._is_for_this_machine = not asks_for_keys and is_loopback(host)
        self._is_open = auth == "off"

    def check(self, request: Request) -> None:
        """No page of another site may ask through somebody's browser, nor under a name of its own for this machine."""
        host, *others = request.headers.getlist("host") or [""]
        if others:
            raise Refused("a request names one host", hint="send one Host header")
        origins = {each.partition("://")[2] for each in request.headers.getlist("origin")}
        sites = request.headers.getlist("sec-fetch-site")
        if not origins <= {host} or any(each not in _OWN_SITE for each in sites):
            raise Forbidden("pages of other sites may not ask here", hint="call from a server, or from the same origin")
        name = host.rpartition(":")[0] if _PORT.search(host) else host
        if self._is_for_this_machine and name not in _HERE and not is_loopback(name):
            raise Forbidden("this server answers to its own machine by name alone", hint="ask 127.0.0.1 or localhost")

    def check_passed_on(self, request: Request) -> None:
        """Whoever reaches this machine through a proxy is not of it, whatever the proxy's own address."""
        if self._is_for_this_machine and not self._is_open and is_passed_on(request):
            raise Forbidden(
                "a proxy passed this on for somebody else, and no keys are asked for",
                hint="serve with `--auth on`, or with `--auth off` where the proxy itself knows whom to let in",
            )


def is_passed_on(request: Request) -> bool:
    """Does a proxy say that it asks for somebody else?"""
    return any(name in _PASSED_ON or name.startswith("x-forwarded") for name in request.headers)


def check_access(caller: Caller, found: MatchedRoute) -> None:
    """May this caller ask for this at this address? Says nothing of what is there (LG-02)."""
    operation, names = found.route.operation, found.names
    tenant = names.get("tenant_id")
    is_for_all = found.route.level == "store" and operation.call in ("info", "policy")
    if not is_for_all and caller.tenant not in ("*", tenant):
        raise Forbidden("this key is for another tenant", hint="use a key of that tenant")
    if not is_for_all and caller.user is not None and names.get("user_id") != caller.user:
        raise Forbidden("this key is for one user", hint="ask below /v1/tenants/…/users/ of that user")
    if not caller.may(operation.access):
        raise Forbidden(
            f"this takes {operation.access} access",
            hint="`muniment store keys create --access` makes a key that has it",
        )


def check_grants(caller: Caller, arguments: Mapping[str, Any]) -> None:
    """Levels above the user's, and repairs, are an administrator's to give (MP-08)."""
    if (arguments.get("grants") or arguments.get("repair")) and (caller.user is not None or not caller.may("admin")):
        raise Forbidden("grants and repairs take a key with admin access to the tenant", path="$.grants")


class RateLimits:
    """Buckets that fill up again over a minute, one for each name; the longest unused are dropped."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, per_minute: int) -> float:
        """Take one of `per_minute`, and answer what is left; raises where there is none."""
        now = self._clock_s()
        left, at = self._buckets.pop(name, (float(per_minute), now))
        left = min(float(per_minute), left + (now - at) * per_minute / 60)
        self._buckets[name] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > _HELD_MAX:
            self._buckets.popitem(last=False)
        if left < 1:
            wait_s = (1 - left) * 60 / per_minute if per_minute else 60.0
            raise RateLimited(
                f"more than {per_minute} requests in a minute", details={"retry_after_s": max(1, round(wait_s))}
            )
        return left - 1
