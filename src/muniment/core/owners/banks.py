"""Whose learned memory is: the name under which a bank stands where an entry names its user (LG-02).

`bank:user:<user_id>`, `bank:agent:<agent_id>` and `bank:tenant`. No user has a name with this prefix.
"""

from __future__ import annotations

from muniment.core.hashing import short_id
from muniment.core.scope import ID_MAX_BYTES, ID_MAX_CHARS, Scope
from muniment.core.vocabulary import ScopeLevel
from muniment.errors import InvalidInput

__all__ = [
    "PREFIX",
    "bank_holder",
    "bank_owner",
    "bank_scope",
    "holder_of",
    "is_bank",
    "is_bank_name",
    "level_of",
    "owners_seen",
]

PREFIX = "bank:"
_USER = f"{PREFIX}user:"
AGENT = "bank"
"""Who writes into a bank: the learning itself."""


def bank_owner(scope: Scope, level: ScopeLevel) -> str:
    """The bank of this level that a run's scope may write to."""
    match level:
        case "user":
            return f"{_USER}{scope.user_id}"
        case "agent":
            return f"{PREFIX}agent:{scope.agent_id}"
        case "tenant":
            return f"{PREFIX}tenant"


def owners_seen(scope: Scope) -> tuple[str, ...]:
    """The banks that a run recalls from: its user's, its agent's, the tenant's."""
    return bank_owner(scope, "user"), bank_owner(scope, "agent"), bank_owner(scope, "tenant")


def is_bank(owner: str) -> bool:
    return owner.startswith(PREFIX)


def is_bank_name(owner: str) -> bool:
    """Whether a bank could have this name."""
    kind, _, name = owner.removeprefix(PREFIX).partition(":")
    return owner == f"{PREFIX}tenant" or (kind in ("user", "agent") and bool(name))


def level_of(owner: str) -> ScopeLevel:
    return "user" if owner.startswith(_USER) else "tenant" if owner == f"{PREFIX}tenant" else "agent"


def bank_holder(owner: str) -> str | None:
    """The user whose own the bank is; None where it is shared, or is none."""
    return owner.removeprefix(_USER) if owner.startswith(_USER) else None


def holder_of(owner: str) -> dict[str, str]:
    """Who a bank is for, as `Memory.bank` takes it; nobody where it is the tenant's."""
    kind, _, name = owner.removeprefix(PREFIX).partition(":")
    return {f"{kind}_id": name} if name else {}


def bank_scope(tenant_id: str, owner: str) -> Scope:
    """Where the entries of a bank stand: one session, whose run never ends."""
    if len(owner) > ID_MAX_CHARS or len(owner.encode()) > ID_MAX_BYTES:
        most = ID_MAX_CHARS - len(_USER)
        raise InvalidInput(f"a bank is for a name of at most {most} characters", path="$.user_id", hint="a shorter id")
    run_id = short_id("run", [tenant_id, owner])
    return Scope(tenant_id=tenant_id, user_id=owner, agent_id=AGENT, session_id="bank", run_id=run_id)
