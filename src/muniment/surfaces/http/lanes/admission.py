"""A request's owner and time limit, for the lanes. Only this module knows both requests and lanes."""

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
    """The tenant, and within it a key and a user; for requests without an owner, the key."""
    names, route = asked.found.names, asked.found.route
    tenant = names.get("tenant_id") or f"key {caller.key_id}"
    form = " lines" if asked.wants_lines else ""
    return Who(tenant, f"{caller.key_id} {names.get('user_id', '')}", f"{route.operation.id} {route.template}{form}")


def how_long(request: Request, asked: AdmittedRequest, caller: Caller, settings: ServerSettings) -> dict[str, Any]:
    """The time limit of a request. Operations declared as long have no limit unless their caller sets one; they consist
    of many commits, and can be restarted.
    """
    is_long = asked.found.route.operation.is_long
    most_s = None if is_long else caller.request_seconds_max or settings.request_seconds_max
    seconds = seconds_of(request.headers.getlist("prefer"), most_s)
    return {"seconds": seconds, "late": late_after(seconds), "settles": not is_long}
