"""Validation of forget requests: one selector, in one tenant. Erases nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import InvalidInput

if TYPE_CHECKING:
    from muniment.store.forget import Selector

__all__ = ["selector_of"]

_TOGETHER = (
    {"event"}, {"fact"}, {"session"}, {"user_id"}, {"tenant"},
    {"session", "user_id"}, {"event", "user_id"}, {"fact", "user_id"},
)  # fmt: skip
"""Selectors that may be combined."""


def selector_of(
    *,
    event: str | None,
    fact: str | None,
    session: str | None,
    user_id: str | None,
    tenant: str | None,
    tenant_id: str,
) -> tuple[str, Selector]:
    """Return the tenant and the selector within it."""
    from muniment.store.forget import Selector

    named = {"event": event, "fact": fact, "session": session, "user_id": user_id, "tenant": tenant}
    for name, value in named.items():
        if value is not None and (not isinstance(value, str) or not value):
            raise InvalidInput(f"{name} should be a non-empty string", path=f"$.{name}")
    if {name for name, value in named.items() if value is not None} not in _TOGETHER:
        raise InvalidInput(
            "say what to forget: one of event, fact, session, user_id, tenant",
            path="$",
            hint="user_id may go with event, fact or session to narrow it",
        )
    if tenant is not None and tenant_id not in (DEFAULT_TENANT, tenant):
        raise InvalidInput("tenant and tenant_id name two tenants", path="$.tenant", hint="give tenant alone")
    item = None if fact is None else ("fact", fact)
    return tenant if tenant is not None else tenant_id, Selector(
        event=event, item=item, session_id=session, user_id=user_id
    )
