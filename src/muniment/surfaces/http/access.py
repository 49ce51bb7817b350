"""Whether a caller may do what it asks for at an address: the scope and the access of its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.errors import Forbidden
from muniment.surfaces.http._guard import Caller
from muniment.surfaces.http.routing import MatchedRoute

__all__ = ["check_access", "check_grants"]


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
