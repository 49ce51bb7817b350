"""Rows of `entries` as `LedgerEntry` records, in one place. What a row holds was validated when it was written."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from muniment.core.canonical import read_canonical
from muniment.core.ports.schema import EntryRow
from muniment.core.scope import Scope
from muniment.store.ledger.records import Body, Cited, LedgerEntry, StepEvent, ToolCall

__all__ = ["EntryOwner", "EntryReceipt", "entry_of_row"]


class EntryOwner(NamedTuple):
    """An entry, and whose it is."""

    id: str
    user_id: str


class EntryReceipt(NamedTuple):
    """An entry, and the receipt that tells of its forgetting where it was forgotten."""

    id: str
    receipt_id: str | None


_ENTRY_FIELDS = set(LedgerEntry.model_fields)
_SCOPE_FIELDS = set(Scope.model_fields)
_EMPTY_BODY: dict[str, Any] = dict.fromkeys(Body.model_fields)


def entry_of_row(
    tenant_id: str, row: EntryRow, *, scope: Scope | None = None, body: dict[str, Any] | None = None
) -> LedgerEntry:
    """The record of a stored row; `scope` and `body` spare building what the caller has at hand."""
    plain = body if body is not None else (None if row.body is None else read_canonical(row.body))
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
    return Body.unchecked(fields, _present(tuple(plain)))


@lru_cache(maxsize=256)
def _present(names: tuple[str, ...]) -> set[str]:
    """Bodies of one shape share the set of their names."""
    return set(names)
