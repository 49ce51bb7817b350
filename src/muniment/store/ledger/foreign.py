"""Rows that come from outside, in a dump: what is wrong with them, before any of it is let in.

The hash chain says that a row was not altered since it was sealed. It does not say who sealed it, so form is
checked here as strictly as the door checks a draft.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from muniment.core.canonical import canonical_text, parse_json
from muniment.core.instants import format_instant, parse_instant
from muniment.core.ports.engine import Row
from muniment.core.scope import IdText
from muniment.core.vocabulary import TRUST_ORDER
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


def entry_fault(tenant_id: str, row: Row) -> str | None:
    """What keeps this row from being an entry; None where it is one."""
    if not all(is_id(value) for value in row[:5]):
        return "an id is not well-formed"
    if not (is_instant(row[6]) and is_instant(row[7])):
        return "a time is not well-formed"
    if any(len(cast("bytes", value)) != _HASH_BYTES for value in row[12:15]):
        return "a hash has the wrong length"
    if row[17] is not None and not is_id(row[17]):
        return "the receipt's id is not well-formed"
    flags = cast("str", row[11]).split(",") if row[11] else []
    if sorted(set(flags)) != flags:
        return "the flags are not in order"
    try:
        plain = None if row[16] is None else _object(row[16])
        LedgerEntry.from_wire(
            dict(zip(_PLAIN, row[5:11], strict=True))
            | {"id": row[0], "flags": flags, "body": plain, "receipt_id": row[17]}
            | dict.fromkeys(("content_hash", "prev_hash", "hash"), "")
            | {"scope": {"tenant_id": tenant_id} | dict(zip(_SCOPE, row[1:5], strict=True))}
        )
    except MunimentError as error:
        return str(error)
    if plain is not None and ("content" in plain) == ("blob" in plain):
        return "the content is neither here nor in a blob"
    return None


def item_fault(row: Row) -> str | None:
    """What keeps this row from being a version of an item; None where it is one."""
    id_, version, kind, *scope, status, name, created_at, trust, body, receipt_id = row
    if not all(is_id(value) for value in (id_, kind, status)):
        return "an id, kind or status is not well-formed"
    if not all(value is None or is_id(value) for value in (*scope, name, receipt_id)):
        return "an id is not well-formed"
    if trust not in TRUST_ORDER or not is_instant(created_at) or cast("int", version) < 1:
        return "its trust, time or version is not well-formed"
    if body is None:
        return None if receipt_id is not None else "the content is missing and no receipt says why"
    if receipt_id is not None:
        return "a forgotten item still holds content"
    try:
        _object(body)
    except MunimentError as error:
        return str(error)
    return None


def _object(body: Any) -> dict[str, Any]:
    plain = parse_json(body)
    if not isinstance(plain, dict) or canonical_text(plain) != body:
        raise InvalidInput("the body is not a canonical object")
    return plain
