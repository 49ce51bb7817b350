"""What the lanes are told of a request: whose it is, how long it may take. Only this module knows both sides."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from muniment.surfaces.http._calls import AdmittedRequest
from muniment.surfaces.http._guard import Caller
from muniment.surfaces.http.lanes.deadlines import late_after, seconds_of
from muniment.surfaces.http.lanes.running import Who
from muniment.surfaces.http.lanes.shares import Limits
from muniment.surfaces.http.settings import ServerSettings

__all__ = ["how_long", "limits_of", "who_asks"]


def limits_of(settings: ServerSettings) -> Limits:
    return Limits(
        quick=settings.threads,
        long=settings.long_threads,
        work=settings.works_max,
        waiting_max=settings.waiting_max,
        waiting_per_tenant_max=settings.waiting_per_tenant_max,
    )


def who_asks(asked: AdmittedRequest, caller: Caller) -> Who:
    """A tenant, and within it a key and a user; of what is nobody's, the key."""
    names, route = asked.found.names, asked.found.route
    tenant = names.get("tenant_id") or f"key {caller.key_id}"
    form = " lines" if asked.wants_lines else ""
    return Who(tenant, f"{caller.key_id} {names.get('user_id', '')}", f"{route.operation.id} {route.template}{form}")


def how_long(request: Request, asked: AdmittedRequest, caller: Caller, settings: ServerSettings) -> dict[str, Any]:
    """The time that a request has. Operations that say themselves that they are long have as much as they need, unless
    their caller asks for less; they are made of many commits, and can be begun again."""
    is_long = asked.found.route.operation.is_long
    most_s = None if is_long else caller.request_seconds_max or settings.request_seconds_max
    seconds = seconds_of(request.headers.getlist("prefer"), most_s)
    return {"seconds": seconds, "late": late_after(seconds), "settles": not is_long}
