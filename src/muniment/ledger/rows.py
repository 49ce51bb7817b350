"""Rows of `entries` as `LedgerEntry` records, in one place."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from muniment.ports.engine import Row
from muniment.records.base import Record
from muniment.records.entry import Body, LedgerEntry
from muniment.records.scope import Scope
from muniment.text.canonical import parse_json

__all__ = ["entry_of_row"]


_ENTRY_FIELDS = set(LedgerEntry.model_fields)
R = TypeVar("R", bound=Record)


def trusted(cls: type[R], fields: dict[str, Any], present: set[str]) -> R:
    """A record of values that were validated when written: what `model_construct` does, at a tenth of the cost."""
    record = cls.__new__(cls)
    put = object.__setattr__
    put(record, "__dict__", fields)
    put(record, "__pydantic_fields_set__", present.copy())
    put(record, "__pydantic_extra__", None)
    put(record, "__pydantic_private__", None)
    return record


def entry_of_row(
    tenant_id: str, row: Row, *, scope: Scope | None = None, body: dict[str, Any] | None = None
) -> LedgerEntry:
    """The record of a stored row; `scope` and `body` spare building what the caller has at hand."""
    values = cast("tuple[Any, ...]", row)
    text = values[16]
    plain = body if body is not None else (None if text is None else parse_json(text))
    fields = {
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
    }
    return trusted(LedgerEntry, fields, _ENTRY_FIELDS)


def _scope(tenant_id: str, values: tuple[Any, ...]) -> Scope:
    user_id, agent_id, session_id, run_id = values[1:5]
    return Scope.model_construct(
        tenant_id=tenant_id, user_id=user_id, agent_id=agent_id, session_id=session_id, run_id=run_id
    )


_EMPTY_BODY: dict[str, Any] = dict.fromkeys(Body.model_fields)
_CONTENT_ONLY = {"content"}


def _body(plain: dict[str, Any]) -> Body:
    if len(plain) == 1 and "content" in plain:
        return trusted(Body, _EMPTY_BODY | plain, _CONTENT_ONLY)
    return Body.from_wire(plain)
