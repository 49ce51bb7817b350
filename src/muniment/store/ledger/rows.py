"""Rows of `entries` as `LedgerEntry` records, in one place. What a row holds was validated when it was written."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, cast

from muniment.core.canonical import read_canonical
from muniment.core.ports.engine import Row
from muniment.core.scope import Scope
from muniment.store.ledger.records import Body, LedgerEntry, StepEvent, ToolCall

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
    tenant_id: str, row: Row, *, scope: Scope | None = None, body: dict[str, Any] | None = None
) -> LedgerEntry:
    """The record of a stored row; `scope` and `body` spare building what the caller has at hand."""
    values = cast("tuple[Any, ...]", row)
    text = values[16]
    plain = body if body is not None else (None if text is None else read_canonical(text))
    return LedgerEntry.unchecked(
        {
            "id": values[0],
            "scope": scope or _scope(tenant_id, values),
            "seq": values[5],
            "ts": values[6],
            "recorded_at": values[7],
            "kind": values[8],
            "role": values[9],
            "trust": values[10],
            "flags": tuple(values[11].split(",")) if values[11] else (),
            "content_hash": values[12].hex(),
            "prev_hash": values[13].hex(),
            "hash": values[14].hex(),
            "body": None if plain is None else _body(plain),
            "receipt_id": values[17],
        },
        _ENTRY_FIELDS,
    )


def _scope(tenant_id: str, values: tuple[Any, ...]) -> Scope:
    return Scope.unchecked(
        {
            "tenant_id": tenant_id,
            "user_id": values[1],
            "agent_id": values[2],
            "session_id": values[3],
            "run_id": values[4],
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
    return Body.unchecked(fields, _present(tuple(plain)))


@lru_cache(maxsize=256)
def _present(names: tuple[str, ...]) -> set[str]:
    """Bodies of one shape share the set of their names."""
    return set(names)
