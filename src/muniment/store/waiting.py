"""Events that coding-agent hooks hold and have not written yet: a forget removes them, and none is written later.

A hook's events wait on the disk of the machine it ran on, and a host keeps its own transcript of a session. A forget
cannot reach either everywhere, so code that writes from them first checks what was forgotten since.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.outside.pending import PendingScope, Spools, hold_spools, is_outside
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ITEMS
from muniment.errors import InvalidInput
from muniment.store.items import HOLDS_BODY, Item
from muniment.store.ledger import LEFT_WAITING, WAITING

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.forget import Selector

__all__ = ["ForgottenScope", "Waiting", "forgotten_since", "hold_waiting", "note_unseen", "several_users"]


def hold_waiting(ctx: Context, tenant_id: str, selector: Selector, held: ExitStack) -> Waiting:
    """Hold the events waiting for a selector; no hook writes them until `held` ends."""
    info = ctx.engine.info
    place = info.location if info.name == "sqlite" else ctx.address
    return Waiting(held.enter_context(hold_spools(place)), tenant_id, selector)


def note_unseen(address: str) -> str:
    """Return the receipt's sentence about hooks that may run on other machines."""
    if not is_outside(address):
        return ""
    return "; events that hooks on other machines put down before it are not written, and go when a hook runs there"


def several_users(session_id: str) -> InvalidInput:
    return InvalidInput(f"several users have a session {session_id!r}", path="$.user_id", hint="give user_id as well")


class Waiting:
    """Events waiting for a selector, held through all attempts of the forgetting transaction."""

    def __init__(self, spools: Spools, tenant_id: str, selector: Selector) -> None:
        self._spools = spools
        self._selector = selector
        users = None if selector.user_id is None else {selector.user_id}
        self._scope = PendingScope(tenant_id, users, selector.session_id)
        self._removed = 0

    def is_some(self) -> bool:
        """Return whether any event waits in a scope that the store knows nothing of."""
        if not self._is_scope:
            return False
        users = self._spools.users(self._scope)
        if self._selector.session_id is not None and len(users) > 1:
            raise several_users(self._selector.session_id)
        return bool(users)

    @property
    def _is_scope(self) -> bool:
        """Return whether it is all of a session, a user or a tenant. Hooks never hold supplied or derived content."""
        one = self._selector
        return one.event is None and one.item is None and not one.document and not one.values

    def erase(self, texts: Sequence[str], owners: Collection[str]) -> dict[str, int]:
        """Remove the events; returns how many were removed, and how many may be left. `texts` is the selected event's
        text, `owners` are the users whose memory is erased.
        """
        scope = self._scope
        if self._selector.event is not None:
            scope = scope._replace(users=owners, texts=texts)
        elif not self._is_scope:
            return {}
        elif self._selector.user_id is None and self._selector.session_id is not None and owners:
            scope = scope._replace(users=owners)
        removed, left = self._spools.remove(scope)
        self._removed += removed
        return {WAITING: self._removed, LEFT_WAITING: left}


# -- forgotten scopes ---------------------------------------------------------------------------------


_SCOPE = frozenset({"tenant_id", "user_id", "session_id"})


class ForgottenScope(NamedTuple):
    """All of a tenant, a user or a session, forgotten at a time."""

    at: str
    user_id: str | None
    session_id: str | None

    def has(self, user_id: str, session_id: str, at: str) -> bool:
        """Return whether an event of this time and session was forgotten with the scope."""
        return at <= self.at and self.user_id in (None, user_id) and self.session_id in (None, session_id)


def forgotten_since(ctx: Context, tenant_id: str, since: str) -> list[ForgottenScope]:
    """Return the scopes of a tenant that were forgotten at this instant or later."""

    def work(reader: Reader) -> list[ForgottenScope]:
        where: tuple[Condition, ...] = (("kind", "=", "receipt"), ("created_at", ">=", since), HOLDS_BODY)
        found: dict[str, ForgottenScope] = {}
        for item in stream(reader, ITEMS, where, into=Item):
            asked = item.plain()["selector"]
            if asked.keys() <= _SCOPE:
                found[item.id] = ForgottenScope(item.created_at, asked.get("user_id"), asked.get("session_id"))
        return list(found.values())

    return ctx.engine.read(tenant_id, work)
