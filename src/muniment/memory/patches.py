"""Writing memory: every change is a `state_patch` entry, decided and written in one transaction.

The entry's metadata holds the result (`event`, the item's `id`, its parts) with every decision already made, so that
the projections that read it need no policy and no clock. Locks are taken in one order: session, the user's memory,
items, memory that users share, fact keys (`store.items`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, NamedTuple, TypeVar

from muniment.core.canonical import nests_within
from muniment.core.instants import format_instant, parse_instant
from muniment.core.ports.engine import Lock, Reader, Transaction
from muniment.core.ports.rows import get
from muniment.core.ports.schema import ENTRIES
from muniment.core.record import ValidationError, issues_of
from muniment.core.requests import ByRule, is_listing
from muniment.core.scope import Scope, Trust, lowest_trust, one_less
from muniment.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    InvalidRecord,
    NotFound,
    QuoteMismatch,
    TooLarge,
)
from muniment.memory._fact_records import QuoteRef
from muniment.store.admission import Admitted
from muniment.store.append import append_in
from muniment.store.context import Context
from muniment.store.items import Item, latest, lock_memory
from muniment.store.ledger import CITING, INSTRUCTION_LIKE, EntryDraft, imported_from, locate_quote
from muniment.store.reading import content_in
from muniment.store.secrets import redact_value
from muniment.store.tombstones import forgotten, load_entry

__all__ = [
    "GRANTS",
    "Decided",
    "Evidence",
    "MomentOrNone",
    "Texts",
    "Writer",
    "append_decided",
    "check_open",
    "cleaned",
    "draft_patch",
    "find_quote",
    "granted",
    "instant_of",
    "need_grant",
    "own_item",
    "read_evidence",
    "said_of",
    "text_of",
    "texts_of",
    "trust_of_evidence",
    "write_patches",
]

T = TypeVar("T")
GRANTS = ("agent", "tenant")
"""Levels above the user's; writing at each requires a grant (MP-08)."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The context of a write: the store, the run's scope, the run's opening, its grants."""

    ctx: Context
    scope: Scope
    opening: Admitted
    grants: frozenset[str]
    repairs: bool = False
    """May write to a locked run in order to repair it."""


class Decided(NamedTuple):
    """A transaction's pending write, after the newest item it builds on; nothing is written without drafts."""

    drafts: Sequence[EntryDraft]
    after: str = ""


class Evidence(NamedTuple):
    """A source found in the scope."""

    id: str
    trust: Trust
    ts: str
    is_suspect: bool
    """It was flagged as reading like instructions (LG-08)."""
    imported_from: str | None = None
    """The system it was imported from, if it was not observed here."""


def write_patches(
    writer: Writer, decide: Callable[[Transaction], Decided], answer: Callable[[Reader], T], beside: Iterable[str] = ()
) -> T:
    """Decide, write, and answer from the result, in one transaction under the session's lock.

    `beside` are owners of other memory that this builds on: documents that must not be forgotten meanwhile.
    """
    ctx, scope = writer.ctx, writer.scope

    def work(tx: Transaction) -> T:
        tx.do(Lock(("session", scope.user_id, scope.session_id)))
        lock_memory(tx, scope.user_id, *beside)
        append_decided(tx, writer, decide(tx))
        return answer(tx)

    return ctx.write(scope.tenant_id, work)


def append_decided(tx: Transaction, writer: Writer, decided: Decided) -> None:
    """Write a decision, in a transaction that holds the locks of `write_patches`."""
    if decided.drafts:
        drafts = [_redacted(writer.ctx, draft) for draft in decided.drafts]
        append_in(writer.ctx, tx, writer.scope, drafts, writer.opening, decided.after, repairs=writer.repairs)


LEVELS_MAX = 96
"""Maximum nesting depth; packets and builds nest memory further and must still fit."""


def draft_patch(event: str, trust: Trust, said: Mapping[str, Any]) -> EntryDraft:
    """Draft the entry of one change. Its trust is that of the evidence, so that nothing derived from it has more."""
    if not nests_within(said, LEVELS_MAX):
        hint = "store it as a text, or flatter"
        raise InvalidInput(f"nested deeper than {LEVELS_MAX} levels", path="$", hint=hint)
    plain = {"kind": "state_patch", "role": "system", "content": "", "trust": trust}
    try:
        return EntryDraft.model_validate(plain | {"metadata": {"event": event} | dict(said)})
    except ValidationError as error:
        raise InvalidRecord("this cannot be remembered", issues_of(error)) from None


_IDS = frozenset(
    {
        "claim_ids", "depends_on", "digest", "ends", "event", "event_id", "evidence_id", "evidence_refs", "fact_id",
        "failure_cluster_id", "fingerprint", "from", "id", "ids", "procedure_id", "promoted_to", "ref", "session_id",
        "side_a_refs", "sandbox", "side_b_refs", "snapshot_id", "sources", "superseded_by", "traces",
    }
)  # fmt: skip
"""Parts of a patch that hold only ids. A run of digits in one may look like a card number and must be kept."""
_HOLDING_IDS = frozenset({"assertion", "insight", "patch", "procedure", "quote", "result"})


def _redacted(ctx: Context, draft: EntryDraft) -> EntryDraft:
    """Redact secrets from a draft (LG-10), except in its ids."""
    if not ctx.policy.ledger.redact_secrets or draft.metadata is None:
        return draft
    return draft.model_copy(update={"metadata": _but_ids(draft.metadata)})


def _but_ids(said: dict[str, Any]) -> dict[str, Any]:
    """Redact an object of a patch, nested objects with ids included."""
    kept: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, part in said.items():
        if name in _IDS:
            kept[name] = part
        elif name in _HOLDING_IDS and isinstance(part, dict):
            kept[name] = _but_ids(part)
        elif name in CITING and isinstance(part, list):
            kept[name] = [_but_ids(each) if isinstance(each, dict) else each for each in part]
        else:
            rest[name] = part
    found: Counter[str] = Counter()
    clean: dict[str, Any] = redact_value(rest, found)
    return clean | kept


def own_item(reader: Reader, scope: Scope, kind: str, item_id: Any, path: str) -> Item:
    """An item of this user, or an inherited one from above; all others do not exist (LG-02)."""
    item = latest(reader, text_of(item_id, path))
    seen = item is not None and (
        item.user_id == scope.user_id or (item.user_id is None and item.agent_id in (None, scope.agent_id))
    )
    if item is None or item.kind != kind or not seen:
        raise NotFound(f"no {kind} {item_id!r:.80} in this scope", path=path)
    item.plain()  # raises for a forgotten one
    return item


def granted(grants: Any) -> frozenset[str]:
    """Validate the levels granted to a run."""
    named = texts_of(grants, "$.grants")
    for index, level in enumerate(named):
        if level not in GRANTS:
            raise InvalidInput(
                f"{level!r:.40} is not a grant", path=f"$.grants[{index}]", hint=f"one of {', '.join(GRANTS)}"
            )
    return frozenset(named)


def need_grant(writer: Writer, level: str) -> None:
    if level != "user" and level not in writer.grants:
        raise Forbidden(
            f"writing at {level} level needs a grant",
            path="$.scope_level",
            hint=f"mem.run(..., grants=({level!r},)) where the caller may",
            details={"scope_level": level},
        )


# -- evidence -----------------------------------------------------------------------------------------


def read_evidence(reader: Reader, scope: Scope, ids: Sequence[str], path: str = "$.sources") -> list[Evidence]:
    """Read the sources, each of which must be this user's, not forgotten, and not a patch of memory."""
    found: list[Evidence] = []
    for index, id_ in enumerate(ids):
        here = f"{path}[{index}]"
        row = get(reader, ENTRIES, (id_,))
        if row is None or row.user_id != scope.user_id:
            raise NotFound(f"no event {id_!r:.80} in this scope", path=here)
        if row.receipt_id is not None:
            raise forgotten(load_entry(reader, scope.tenant_id, row), f"the event {id_} was forgotten", path=here)
        if row.kind == "state_patch":
            raise InvalidInput(
                f"the event {id_} is a change of memory, which is no evidence", path=here, hint="name what was said"
            )
        flags = row.flags.split(",")
        found.append(Evidence(id_, row.trust, row.ts, INSTRUCTION_LIKE in flags, imported_from(flags)))
    return found


def trust_of_evidence(evidence: Sequence[Evidence], *, is_supposed: bool = False) -> Trust:
    """The lowest trust of the sources. Suppositions and items without sources have only the agent's trust. Imported
    sources count a step less than local ones, so that the user's words here take precedence.
    """
    trusts = [each.trust if each.imported_from is None else one_less(each.trust) for each in evidence]  # MV-03
    if any(each.is_suspect for each in evidence):
        trusts.append("tool")  # an outsider's words, regardless of who relayed them (LG-08)
    return lowest_trust(trusts if trusts and not is_supposed else [*trusts, "assistant"])


def find_quote(reader: Reader, scope: Scope, quote: str | None, evidence: Iterable[Evidence]) -> QuoteRef | None:
    """Find the verbatim quote among the sources."""
    if quote is None:
        return None
    for each in evidence:
        whole = content_in(reader, scope.tenant_id, each.id, scope.user_id).encode()
        span = locate_quote(whole, quote)
        if span is not None:
            return QuoteRef(event_id=each.id, start=span.start, end=span.end)
    raise QuoteMismatch("the quote does not stand in any of the sources", path="$.quote")


def cleaned(ctx: Context, value: Any, key: str | None = None) -> Any:
    """Redact a value as on admission (LG-10); its key's last part may name a secret."""
    if not ctx.policy.ledger.redact_secrets:
        return value
    found: Counter[str] = Counter()
    if key is None:
        return redact_value(value, found)
    return next(iter(redact_value({key.rpartition(".")[2] or key: value}, found).values()))


# -- caller input ----------------------------------------------------------------------------------------


def text_of(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput("wanted a non-empty string", path=path)
    return value


def said_of(writer: Writer, value: Any, path: str) -> str:
    """Validate a line of text: redacted (LG-10), no longer than a snapshot allows (CS-03)."""
    said: str = cleaned(writer.ctx, text_of(value, path))
    limit = writer.ctx.policy.compaction.claim_chars_max
    if not said.strip():
        raise InvalidInput("wanted a non-empty string", path=path)
    if len(said) > limit:
        raise TooLarge(
            f"{len(said)} characters are over the limit of {limit}",
            path=path,
            hint="say it shortly and point to the evidence",
        )
    return said


def texts_of(values: Any, path: str) -> tuple[str, ...]:
    """Validate a list of ids or texts, and deduplicate it."""
    if not is_listing(values):
        raise InvalidInput("wanted a list of strings", path=path, hint="wrap a single one in a list")
    return tuple(dict.fromkeys(text_of(value, f"{path}[{index}]") for index, value in enumerate(values)))


def instant_of(value: Any, path: str) -> str | None:
    """Normalise a caller's point in time; None if absent."""
    if value is None:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    if not isinstance(value, str | datetime):
        raise InvalidInput("wanted a point in time", path=path, hint="write ISO 8601, such as 2026-05-01T12:00:00Z")
    return format_instant(parse_instant(value, path=path))


Texts = Annotated[tuple[str, ...], ByRule(texts_of)]
"""Request field: ids or texts, deduplicated."""
MomentOrNone = Annotated[str | None, ByRule(instant_of)]
"""Request field: a normalised point in time, or None."""


def check_open(item: Item, statuses: tuple[str, ...], doing: str) -> None:
    """Refuse the operation unless the item has one of these statuses."""
    if item.status not in statuses:
        raise Conflict(
            f"the {item.kind} {item.id} is {item.status} and cannot be {doing}",
            details={"id": item.id, "status": item.status},
        )
