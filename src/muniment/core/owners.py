"""Whose something is: the names under which corpora and banks stand where an entry names its user, and no user has.

`corpus:<corpus_id>` is shared by the tenant, `corpus:<corpus_id>:<user_id>` is the user's own; a corpus id has no
colon, so that the two cannot be taken for each other. Banks are `bank:user:<user_id>`, `bank:agent:<agent_id>` and
`bank:tenant`.
"""

from __future__ import annotations

from muniment.core.canonical import short_id
from muniment.core.scope import ID_MAX_BYTES, ID_MAX_CHARS, Scope
from muniment.core.vocabulary import ScopeLevel
from muniment.errors import InvalidInput

__all__ = [
    "BANK_PREFIX",
    "CORPUS_PREFIX",
    "RESERVED_PREFIXES",
    "bank_holder",
    "bank_level",
    "bank_names",
    "bank_owner",
    "bank_scope",
    "corpus_holder",
    "corpus_of",
    "holder_of",
    "is_bank",
    "is_bank_name",
    "is_corpus",
    "is_nobody_s",
    "is_reserved",
    "is_visible",
    "lock_rank",
    "owner_of",
    "owners_seen",
    "user_bank",
]

CORPUS_PREFIX = "corpus:"


def owner_of(corpus_id: str, user_id: str | None = None) -> str:
    return f"{CORPUS_PREFIX}{corpus_id}" if user_id is None else f"{CORPUS_PREFIX}{corpus_id}:{user_id}"


def is_corpus(owner: str) -> bool:
    return owner.startswith(CORPUS_PREFIX)


def corpus_of(owner: str, user_id: str | None) -> str | None:
    """The corpus an owner stands for; None where it is none, or one that this user may not see.

    Without a user, whoever asks may see the whole tenant.
    """
    if not is_corpus(owner):
        return None
    corpus_id, private, holder = owner.removeprefix(CORPUS_PREFIX).partition(":")
    return corpus_id if not private or user_id in (None, holder) else None


def corpus_holder(owner: str) -> str | None:
    """The user whose own the corpus is; None where the tenant shares it, or it is none."""
    _, private, holder = owner.removeprefix(CORPUS_PREFIX).partition(":") if is_corpus(owner) else ("", "", "")
    return holder if private else None


def is_visible(owner: str, user_id: str) -> bool:
    """May this user see what stands under that name? Their own, the tenant's documents, and their own documents."""
    return owner == user_id or corpus_of(owner, user_id) is not None


BANK_PREFIX = "bank:"
_USER = f"{BANK_PREFIX}user:"
AGENT = "bank"
"""Who writes into a bank: the learning itself."""


def user_bank(user_id: str) -> str:
    """The name of a user's bank."""
    return f"{_USER}{user_id}"


def bank_owner(scope: Scope, level: ScopeLevel) -> str:
    """The bank of this level that a run's scope may write to."""
    match level:
        case "user":
            return user_bank(scope.user_id)
        case "agent":
            return f"{BANK_PREFIX}agent:{scope.agent_id}"
        case "tenant":
            return f"{BANK_PREFIX}tenant"


def owners_seen(scope: Scope) -> tuple[str, ...]:
    """The banks that a run recalls from: its user's, its agent's, the tenant's."""
    return bank_owner(scope, "user"), bank_owner(scope, "agent"), bank_owner(scope, "tenant")


def is_bank(owner: str) -> bool:
    return owner.startswith(BANK_PREFIX)


def is_bank_name(owner: str) -> bool:
    """Whether a bank could have this name."""
    kind, _, name = owner.removeprefix(BANK_PREFIX).partition(":")
    return owner == f"{BANK_PREFIX}tenant" or (kind in ("user", "agent") and bool(name))


def bank_level(owner: str) -> ScopeLevel:
    return "user" if owner.startswith(_USER) else "tenant" if owner == f"{BANK_PREFIX}tenant" else "agent"


def bank_holder(owner: str) -> str | None:
    """The user whose own the bank is; None where it is shared, or is none."""
    return owner.removeprefix(_USER) if owner.startswith(_USER) else None


def bank_names(owner: str) -> dict[str, str]:
    """Who a bank is for, as `Memory.bank` takes it; nobody where it is the tenant's."""
    kind, _, name = owner.removeprefix(BANK_PREFIX).partition(":")
    return {f"{kind}_id": name} if name else {}


def bank_scope(tenant_id: str, owner: str) -> Scope:
    """Where the entries of a bank stand: one session, whose run never ends."""
    if len(owner) > ID_MAX_CHARS or len(owner.encode()) > ID_MAX_BYTES:
        most = ID_MAX_CHARS - len(_USER)
        raise InvalidInput(f"a bank is for a name of at most {most} characters", path="$.user_id", hint="a shorter id")
    run_id = short_id("run", [tenant_id, owner])
    return Scope(tenant_id=tenant_id, user_id=owner, agent_id=AGENT, session_id="bank", run_id=run_id)


RESERVED_PREFIXES = (BANK_PREFIX, CORPUS_PREFIX)


def is_reserved(owner: str) -> bool:
    return owner.startswith(RESERVED_PREFIXES)


def lock_rank(owner: str) -> tuple[bool, str]:
    """The place of an owner in the order in which sessions are locked by whoever locks several: users come first, as a
    run is locked before the banks that it is learnt into.
    """
    return is_reserved(owner), owner


def is_nobody_s(owner: str) -> bool:
    """A reserved name that no corpus and no bank has."""
    return is_reserved(owner) and not (is_corpus(owner) or is_bank_name(owner))


def holder_of(owner: str) -> str | None:
    """The user whose own it is: what goes with them when they are forgotten, and is in their export."""
    return corpus_holder(owner) or bank_holder(owner)
