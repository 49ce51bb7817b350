"""Which scopes were forgotten lately: for whoever holds what happened before that and was never written.

A hook's events wait on the disk of the machine it ran on, and a host keeps its own transcript of a session. A forget
cannot reach either everywhere, so both are asked about here before anything of them is written.
"""

from __future__ import annotations

from typing import NamedTuple

from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ITEMS
from muniment.store.context import Context
from muniment.store.items import HOLDS_BODY, Item

__all__ = ["ForgottenScope", "forgotten_since"]

_SCOPE = frozenset({"tenant_id", "user_id", "session_id"})


class ForgottenScope(NamedTuple):
    """All of a tenant, a user or a session, forgotten at a time."""

    at: str
    user_id: str | None
    session_id: str | None

    def has(self, user_id: str, session_id: str, at: str) -> bool:
        """Whether what happened then in this session was forgotten with it."""
        return at <= self.at and self.user_id in (None, user_id) and self.session_id in (None, session_id)


def forgotten_since(ctx: Context, tenant_id: str, since: str) -> list[ForgottenScope]:
    """The scopes of a tenant that were forgotten at this instant or later."""

    def work(reader: Reader) -> list[ForgottenScope]:
        where: tuple[Condition, ...] = (("kind", "=", "receipt"), ("created_at", ">=", since), HOLDS_BODY)
        found: dict[str, ForgottenScope] = {}
        for item in stream(reader, ITEMS, where, into=Item):
            asked = item.plain()["selector"]
            if asked.keys() <= _SCOPE:
                found[item.id] = ForgottenScope(item.created_at, asked.get("user_id"), asked.get("session_id"))
        return list(found.values())

    return ctx.engine.read(tenant_id, work)
