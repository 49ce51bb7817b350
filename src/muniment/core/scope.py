"""Addresses, ownership, trust, origin, and pointers of memory.

The address of an entry is tenant > user > session > run, plus the agent. Corpora and banks own entries under reserved
names: `corpus:<corpus_id>` is shared by the tenant, `corpus:<corpus_id>:<user_id>` is the user's own (a corpus id has
no colon, so the two cannot be confused); banks are `bank:user:<user_id>`, `bank:agent:<agent_id>` and `bank:tenant`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError, ValidationError

from muniment.core.canonical import digest, short_id
from muniment.core.record import Absent, Count, NonEmpty, Record, Timestamp, issues_of
from muniment.errors import InvalidInput, InvalidRecord

# -- closed vocabularies --------------------------------------------------------------------------------


Verdict = Literal["PASS", "FAIL", "PARTIAL"]
Outcome = Literal["OK", "FAIL", "UNKNOWN"]
JudgeKind = Literal["external_process", "in_process", "command"]
"""Judge of a sandboxed run: a process that the code under test never enters; the process that the code runs in, with
its tests; or a command that shares a sandbox with the code. The code can forge the last two.
"""
RuleType = Literal["StrategyRule", "GuardrailRule"]
InjectionMode = Literal["prepend", "inline", "system_guard"]
Level = Literal["low", "med", "high"]
ScopeLevel = Literal["user", "agent", "tenant"]
MemoryOp = Literal["WRITE", "PIN", "MERGE", "PRUNE", "RETIRE"]
Network = Literal["off", "allowlist", "on"]
SandboxTool = Literal["execute_bash", "str_replace_editor", "submit"]
Trust = Literal["user", "assistant", "tool", "external"]
TRUST_ORDER: tuple[Trust, ...] = ("user", "assistant", "tool", "external")
"""From most to least trusted (LG-08)."""
FOREIGN: frozenset[Trust] = frozenset(("tool", "external"))
"""Levels that neither the user nor the assistant vouches for."""
RunMode = Literal["main", "sot", "matts", "kroll", "synth", "tree"]


# -- scopes ---------------------------------------------------------------------------------------------


DEFAULT_TENANT = "default"
ID_MAX_CHARS = 256
ID_MAX_BYTES = 768
"""Three names and a number must fit into one index entry of a PostgreSQL server, which holds 2704 bytes."""


def _fits(name: str) -> str:
    if not name.isascii() and len(name.encode()) > ID_MAX_BYTES:
        raise PydanticCustomError(
            "string_too_long", f"Input should be a string of at most {ID_MAX_BYTES} bytes of UTF-8"
        )
    return name


IdText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=ID_MAX_CHARS, pattern=r"^[^\x00-\x1f\x7f]+$"),
    AfterValidator(_fits),
]
"""A name or id: 1 to 256 characters, without control characters, at most 768 bytes of UTF-8."""


class Scope(Record):  # LG-02
    """The full address of an entry. Reads see one tenant and one user; nothing crosses either."""

    tenant_id: IdText = Field(default=DEFAULT_TENANT)
    user_id: IdText
    agent_id: IdText
    session_id: IdText
    run_id: IdText


class UserScope(Record):
    """The address of a user, across agents, sessions and runs."""

    tenant_id: IdText
    user_id: IdText


def scope_of(names: dict[str, Any]) -> Scope:
    """Return the validated scope of these five names; a validator is needed only for names beyond plain ASCII."""
    if all(map(_is_plain, names.values())):
        return Scope.unchecked(names)
    return Scope.model_validate(names)


def scope_given(names: dict[str, Any]) -> Scope:
    """Return the scope of five caller-supplied names; raises `InvalidRecord` where one of them is not an id."""
    try:
        return scope_of(names)
    except ValidationError as error:
        raise InvalidRecord("not a valid scope", issues_of(error, names)) from None


def _is_plain(name: Any) -> bool:
    """Return whether a name is printable ASCII of valid length, which `IdText` always accepts."""
    return type(name) is str and name.isascii() and name.isprintable() and 1 <= len(name) <= ID_MAX_CHARS


# -- trust ----------------------------------------------------------------------------------------------


TRUST_RANK = {level: rank for rank, level in enumerate(TRUST_ORDER)}


def lowest_trust(levels: Iterable[Trust]) -> Trust:
    """Return the most trust an item derived from sources of these levels may claim; with no source, the lowest."""
    return max(levels, key=TRUST_RANK.__getitem__, default=TRUST_ORDER[-1])


def one_less(level: Trust) -> Trust:
    """Return the level below this one; the lowest stays."""
    return TRUST_ORDER[min(TRUST_RANK[level] + 1, len(TRUST_ORDER) - 1)]


# -- owners ---------------------------------------------------------------------------------------------


CORPUS_PREFIX = "corpus:"


def owner_of(corpus_id: str, user_id: str | None = None) -> str:
    return f"{CORPUS_PREFIX}{corpus_id}" if user_id is None else f"{CORPUS_PREFIX}{corpus_id}:{user_id}"


def is_corpus(owner: str) -> bool:
    return owner.startswith(CORPUS_PREFIX)


def corpus_of(owner: str, user_id: str | None) -> str | None:
    """Return the corpus an owner name means; None where it is not one, or not visible to this user.

    Without a user, the whole tenant is visible.
    """
    if not is_corpus(owner):
        return None
    corpus_id, private, holder = owner.removeprefix(CORPUS_PREFIX).partition(":")
    return corpus_id if not private or user_id in (None, holder) else None


def corpus_holder(owner: str) -> str | None:
    """Return the user who owns the corpus; None if it is shared, or not one."""
    _, private, holder = owner.removeprefix(CORPUS_PREFIX).partition(":") if is_corpus(owner) else ("", "", "")
    return holder if private else None


def is_visible(owner: str, user_id: str) -> bool:
    """Return whether this user may see that owner's entries: their own, the tenant's documents, and their own
    documents.
    """
    return owner == user_id or corpus_of(owner, user_id) is not None


BANK_PREFIX = "bank:"
_USER = f"{BANK_PREFIX}user:"
AGENT = "bank"
"""The agent that writes into banks: learning itself."""


def user_bank(user_id: str) -> str:
    """Return the name of a user's bank."""
    return f"{_USER}{user_id}"


def bank_owner(scope: Scope, level: ScopeLevel) -> str:
    """Return the bank of this level that a run's scope may write to."""
    match level:
        case "user":
            return user_bank(scope.user_id)
        case "agent":
            return f"{BANK_PREFIX}agent:{scope.agent_id}"
        case "tenant":
            return f"{BANK_PREFIX}tenant"


def owners_seen(scope: Scope) -> tuple[str, ...]:
    """Return the banks that a run recalls from: its user's, its agent's, the tenant's."""
    return bank_owner(scope, "user"), bank_owner(scope, "agent"), bank_owner(scope, "tenant")


def is_bank(owner: str) -> bool:
    return owner.startswith(BANK_PREFIX)


def is_bank_name(owner: str) -> bool:
    """Return whether a bank could have this name."""
    kind, _, name = owner.removeprefix(BANK_PREFIX).partition(":")
    return owner == f"{BANK_PREFIX}tenant" or (kind in ("user", "agent") and bool(name))


def bank_level(owner: str) -> ScopeLevel:
    return "user" if owner.startswith(_USER) else "tenant" if owner == f"{BANK_PREFIX}tenant" else "agent"


def bank_holder(owner: str) -> str | None:
    """Return the user who owns the bank; None where it is shared, or not one."""
    return owner.removeprefix(_USER) if owner.startswith(_USER) else None


def bank_names(owner: str) -> dict[str, str]:
    """Return a bank's owner as arguments of `Memory.bank`; empty for the tenant's."""
    kind, _, name = owner.removeprefix(BANK_PREFIX).partition(":")
    return {f"{kind}_id": name} if name else {}


def bank_scope(tenant_id: str, owner: str) -> Scope:
    """Return the scope of a bank's entries: one session, whose run never ends."""
    if len(owner) > ID_MAX_CHARS or len(owner.encode()) > ID_MAX_BYTES:
        most = ID_MAX_CHARS - len(_USER)
        raise InvalidInput(f"a bank is for a name of at most {most} characters", path="$.user_id", hint="a shorter id")
    run_id = short_id("run", [tenant_id, owner])
    return Scope(tenant_id=tenant_id, user_id=owner, agent_id=AGENT, session_id="bank", run_id=run_id)


RESERVED_PREFIXES = (BANK_PREFIX, CORPUS_PREFIX)


def is_reserved(owner: str) -> bool:
    return owner.startswith(RESERVED_PREFIXES)


def lock_rank(owner: str) -> tuple[bool, str]:
    """Return an owner's place in the order in which several sessions are locked: users come first, as a run is locked
    before the banks that learn from it.
    """
    return is_reserved(owner), owner


def is_nobody_s(owner: str) -> bool:
    """Return whether a reserved name belongs to no corpus and no bank."""
    return is_reserved(owner) and not (is_corpus(owner) or is_bank_name(owner))


def holder_of(owner: str) -> str | None:
    """Return the user who owns this name: its data are forgotten and exported with the user."""
    return corpus_holder(owner) or bank_holder(owner)


# -- origins --------------------------------------------------------------------------------------------


SystemName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,39}$")]
"""The name of a memory system, as used in flags and pages."""
_IMPORTED_FROM = "imported from "


def imported_note(system: str) -> str:
    """Return the prefix of the notes of a fact that rests only on imports from a system."""
    return f"{_IMPORTED_FROM}{system}"


def origin_note(notes: str | None) -> str | None:
    """Return the part of a fact's notes that names its import source."""
    return notes.partition(";")[0] if notes is not None and notes.startswith(_IMPORTED_FROM) else None


class Origin(Record):  # MV-02
    """Where something comes from that was not observed here: which system held it, and what that said of it."""

    system: SystemName
    kind: Literal["message", "memory"]
    """A message in a conversation there; or a memory worded or noted by that system."""
    id: Absent[NonEmpty] = None
    """The id it had there."""
    version: Absent[NonEmpty] = None
    """The version of that system, or of its file."""
    model: Absent[NonEmpty] = None
    """The model that worded it, if known."""
    created_at: Absent[Timestamp] = None
    updated_at: Absent[Timestamp] = None
    valid_from: Absent[Timestamp] = None
    """Start of validity according to that system."""
    valid_to: Absent[Timestamp] = None
    """End of validity according to that system."""
    replaces: Absent[IdText] = None
    """The event that holds the previous version."""


# -- pointers -------------------------------------------------------------------------------------------


class Span(Record):
    """A half-open span in UTF-8 bytes of its text."""

    start: Count
    end: Count

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end < self.start:
            raise ValueError("a span must not end before it starts")
        return self


def _always_named(schema: JsonDict) -> None:
    """Require the namespace, which distinguishes pointers in a union."""
    wanted = schema["required"]
    assert isinstance(wanted, list)
    schema["required"] = ["namespace", *wanted]


class _Pointer(Record):
    model_config = ConfigDict(json_schema_extra=_always_named)

    span: Span | None = None
    """None means the whole."""
    quote: str | None = None
    """The text required at the span, or anywhere in the whole if no span is given."""


class EventSpan(_Pointer):
    """A place in an event."""

    namespace: Literal["event"] = "event"
    event_id: IdText


class ChunkSpan(_Pointer):
    """A place in a chunk of a corpus."""

    namespace: Literal["chunk"] = "chunk"
    corpus_id: IdText
    chunk_id: IdText


class UrlCitation(_Pointer):
    """A source of a research run."""

    namespace: Literal["url"] = "url"
    cid: IdText
    url: IdText


Pointer = Annotated[EventSpan | ChunkSpan | UrlCitation, Field(discriminator="namespace")]


def quote_hash(quote: str) -> str:
    return digest(quote.encode()).hex()


def derive_evidence_id(corpus_id: str, chunk_id: str, span: Span, quote_digest: str | None = None) -> str:
    """Return an evidence id namespaced by its corpus, so that two corpora never share one (002 §D)."""
    parts: list[str | int] = [corpus_id, chunk_id, span.start, span.end]
    return short_id("ev", parts if quote_digest is None else [*parts, quote_digest])


LEDGER_CORPUS = "ledger"
"""The corpus id of the ledger itself; its chunks are events."""
