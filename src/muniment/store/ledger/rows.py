"""Rows of `entries` as `LedgerEntry` records, in one place. What a row holds was validated when it was written, and is
checked here against its hash as it is read: what somebody changed in the file since is handed to nobody (TM-12).
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

from muniment.core.canonical import read_canonical
from muniment.core.ports.schema import EntryRow
from muniment.core.scope import Origin, Scope
from muniment.errors import InvalidJson, StoreDamaged
from muniment.store.ledger.chain import header_hash
from muniment.store.ledger.records import Body, Cited, LedgerEntry, StepEvent, ToolCall

__all__ = [
    "ContentRow",
    "EntryOwner",
    "EntryReceipt",
    "check_content",
    "check_header",
    "damaged_entry",
    "entry_of_row",
    "read_body",
]


class EntryOwner(NamedTuple):
    """An entry, and whose it is."""

    id: str
    user_id: str


class EntryReceipt(NamedTuple):
    """An entry, and the receipt that tells of its forgetting where it was forgotten."""

    id: str
    receipt_id: str | None


class ContentRow(Protocol):
    """What a row must have for its content to be checked."""

    @property
    def id(self) -> str: ...
    @property
    def content_hash(self) -> bytes: ...
    @property
    def salt(self) -> bytes | None: ...
    @property
    def body(self) -> str | None: ...
    @property
    def receipt_id(self) -> str | None: ...


def damaged_entry(entry_id: Any, why: str) -> StoreDamaged:
    """The error for an entry that is not as it was written."""
    return StoreDamaged(f"the event {entry_id!r:.80} is not as it was written: {why}", details={"id": str(entry_id)})


def check_content(row: ContentRow) -> None:
    """The content of an entry is what was sealed, or was forgotten by a receipt."""
    body, salt = row.body, row.salt
    if body is None:
        if row.receipt_id is None or salt is not None:
            raise damaged_entry(row.id, "the content is missing and no receipt says why")
        return
    if row.receipt_id is not None:
        raise damaged_entry(row.id, "a forgotten entry still holds content")
    if (
        type(body) is not str
        or type(salt) is not bytes
        or sha256(salt + body.encode("utf-8", "surrogatepass")).digest() != row.content_hash
    ):
        raise damaged_entry(row.id, "the content was altered")


def read_body(row: ContentRow) -> dict[str, Any] | None:
    """The body of an entry, checked; None where it was forgotten."""
    check_content(row)
    return None if row.body is None else read_canonical(row.body)


def check_header(tenant_id: str, row: EntryRow) -> None:
    """What a row says of whose its entry is, where it stands, when and by whom, is what was sealed."""
    try:
        is_sound = type(row.seq) is int and row.hash == header_hash(tenant_id, row)
    except (TypeError, InvalidJson):  # a value of another type than its column's
        is_sound = False
    if not is_sound:
        raise damaged_entry(row.id, "the header was altered")


_ENTRY_FIELDS = set(LedgerEntry.model_fields)
_SCOPE_FIELDS = set(Scope.model_fields)
_EMPTY_BODY: dict[str, Any] = dict.fromkeys(Body.model_fields)


def entry_of_row(
    tenant_id: str, row: EntryRow, *, scope: Scope | None = None, body: dict[str, Any] | None = None
) -> LedgerEntry:
    """The record of a stored row, which is checked; `scope` and `body` are of one that the caller has just sealed."""
    if body is None:
        check_header(tenant_id, row)
    plain = body if body is not None else read_body(row)
    return LedgerEntry.unchecked(
        {
            "id": row.id,
            "scope": scope or _scope(tenant_id, row),
            "seq": row.seq,
            "ts": row.ts,
            "recorded_at": row.recorded_at,
            "kind": row.kind,
            "role": row.role,
            "trust": row.trust,
            "flags": tuple(row.flags.split(",")) if row.flags else (),
            "content_hash": row.content_hash.hex(),
            "prev_hash": row.prev_hash.hex(),
            "hash": row.hash.hex(),
            "body": None if plain is None else _body(plain),
            "receipt_id": row.receipt_id,
        },
        _ENTRY_FIELDS,
    )


def _scope(tenant_id: str, row: EntryRow) -> Scope:
    return Scope.unchecked(
        {
            "tenant_id": tenant_id,
            "user_id": row.user_id,
            "agent_id": row.agent_id,
            "session_id": row.session_id,
            "run_id": row.run_id,
        },
        _SCOPE_FIELDS,
    )


def _body(plain: dict[str, Any]) -> Body:
    fields = _EMPTY_BODY | plain
    if "tags" in plain:
        fields["tags"] = tuple(plain["tags"])
    if "entities" in plain:
        fields["entities"] = tuple(plain["entities"])
    if "tool" in plain:
        fields["tool"] = ToolCall.from_wire(plain["tool"])
    if "step" in plain:
        fields["step"] = StepEvent.from_wire(plain["step"])
    if "cited" in plain:
        fields["cited"] = Cited.from_wire(plain["cited"])
    if "imported" in plain:
        fields["imported"] = Origin.from_wire(plain["imported"])
    return Body.unchecked(fields, _present(tuple(plain)))


@lru_cache(maxsize=256)
def _present(names: tuple[str, ...]) -> set[str]:
    """Bodies of one shape share the set of their names."""
    return set(names)
