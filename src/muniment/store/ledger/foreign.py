"""Rows that come from outside, in a dump: what is wrong with them, before any of it is let in.

The hash chain says that a row was not altered since it was sealed. It does not say who sealed it, so form is
checked here as strictly as the door checks a draft.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from muniment.core.canonical import canonical_text, parse_json
from muniment.core.instants import format_instant, parse_instant
from muniment.core.ports.schema import EntryRow, ItemRow
from muniment.core.scope import TRUST_ORDER, IdText
from muniment.errors import InvalidInput, MunimentError
from muniment.store.ledger.records import LedgerEntry

__all__ = ["entry_fault", "is_id", "is_instant", "item_fault"]

_ID = TypeAdapter(IdText)
_HASH_BYTES = 32
_SCOPE = ("user_id", "agent_id", "session_id", "run_id")
_PLAIN = ("seq", "ts", "recorded_at", "kind", "role", "trust")


def is_id(value: Any) -> bool:
    """A name or id as a caller could have brought it."""
    try:
        _ID.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def is_instant(value: Any) -> bool:
    """A time stamp in the one form in which we write them."""
    try:
        return isinstance(value, str) and format_instant(parse_instant(value)) == value
    except InvalidInput:
        return False


def entry_fault(tenant_id: str, row: EntryRow) -> str | None:
    """What keeps this row from being an entry; None where it is one."""
    scope = {name: getattr(row, name) for name in _SCOPE}
    if not all(is_id(value) for value in (row.id, *scope.values())):
        return "an id is not well-formed"
    if not (is_instant(row.ts) and is_instant(row.recorded_at)):
        return "a time is not well-formed"
    if any(len(value) != _HASH_BYTES for value in (row.content_hash, row.prev_hash, row.hash)):
        return "a hash has the wrong length"
    if row.receipt_id is not None and not is_id(row.receipt_id):
        return "the receipt's id is not well-formed"
    flags = row.flags.split(",") if row.flags else []
    if sorted(set(flags)) != flags:
        return "the flags are not in order"
    try:
        plain = None if row.body is None else _object(row.body)
        LedgerEntry.from_wire(
            {name: getattr(row, name) for name in _PLAIN}
            | {"id": row.id, "flags": flags, "body": plain, "receipt_id": row.receipt_id}
            | dict.fromkeys(("content_hash", "prev_hash", "hash"), "")
            | {"scope": {"tenant_id": tenant_id} | scope}
        )
    except MunimentError as error:
        return str(error)
    if plain is not None and ("content" in plain) == ("blob" in plain):
        return "the content is neither here nor in a blob"
    return None


def item_fault(row: ItemRow) -> str | None:
    """What keeps this row from being a version of an item; None where it is one."""
    if not all(is_id(value) for value in (row.id, row.kind, row.status)):
        return "an id, kind or status is not well-formed"
    named = (row.user_id, row.agent_id, row.session_id, row.run_id, row.name, row.receipt_id)
    if not all(value is None or is_id(value) for value in named):
        return "an id is not well-formed"
    if row.trust not in TRUST_ORDER or not is_instant(row.created_at) or row.version < 1:
        return "its trust, time or version is not well-formed"
    if row.body is None:
        return None if row.receipt_id is not None else "the content is missing and no receipt says why"
    if row.receipt_id is not None:
        return "a forgotten item still holds content"
    try:
        _object(row.body)
    except MunimentError as error:
        return str(error)
    return None


def _object(body: Any) -> dict[str, Any]:
    plain = parse_json(body)
    if not isinstance(plain, dict) or canonical_text(plain) != body:
        raise InvalidInput("the body is not a canonical object")
    return plain
