"""What was redacted, sealed: the item that lies beside an event, and the record its owner is answered.

Each value is sealed by itself and bound to tenant, user, event and place, so that no seal opens anywhere else. Without
the key an item says which kinds of secret stood where, which the redacted event says as well.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_bytes, parse_json
from muniment.core.ports.sealing import BrokenSeal, SealKey
from muniment.core.record import Absent, Count, Items, JsonValue, Record
from muniment.core.scope import IdText
from muniment.errors import InvalidJson
from muniment.store.ledger.redaction_trace import RedactedValue

__all__ = ["SealOwner", "Unsealed", "UnsealedValue", "is_seal_body", "open_values", "seal_values"]

_DOMAIN = b"muniment.seal.v1"


class UnsealedValue(Record):
    """One value that was redacted, as it was."""

    place: str
    """Where it stood: `$.content`, `$.tool.args.api_key`."""
    kind: str
    """What it was taken for."""
    start: Absent[Count] = None
    """Where its replacement begins in that text, in characters; absent where the whole value was replaced."""
    end: Absent[Count] = None
    is_name: Absent[bool] = None
    """It stood in the name of the place, not in its value."""
    value: JsonValue


class Unsealed(Record):
    """What was redacted of an event, for whom it belongs to."""

    event_id: IdText
    values: Items[UnsealedValue]


class SealOwner(NamedTuple):
    """Whose a seal is, and of which event."""

    tenant_id: str
    user_id: str
    event_id: str

    def place(self, number: int, count: int, told: dict[str, Any]) -> list[bytes]:
        """What a value is bound to: all that can be told of where it stands."""
        where = {name: value for name, value in told.items() if name != "data"}
        return [_DOMAIN, *(name.encode() for name in self), canonical_bytes([number, count, where])]


def seal_values(key: SealKey, owner: SealOwner, values: Sequence[RedactedValue]) -> dict[str, Any]:
    """The body of the item that holds these values."""
    sealed = []
    for number, each in enumerate(values):
        told: dict[str, Any] = {"place": each.place, "kind": each.kind}
        if each.span is not None:
            told |= {"start": each.span[0], "end": each.span[1]}
        if each.is_name:
            told["is_name"] = True
        data = key.seal(canonical_bytes(each.value), owner.place(number, len(values), told))
        sealed.append(told | {"data": base64.b64encode(data).decode()})
    return {"event_id": owner.event_id, "key_id": key.id, "values": sealed}


def open_values(key: SealKey, owner: SealOwner, body: dict[str, Any]) -> Iterator[UnsealedValue]:
    """The values of an item's body; raises `BrokenSeal` where it is not what was sealed for this owner."""
    if not is_seal_body(body):
        raise BrokenSeal
    values = body["values"]
    for number, told in enumerate(values):
        try:
            sealed = base64.b64decode(told["data"], validate=True)
            plain = parse_json(key.open(sealed, owner.place(number, len(values), told)))
        except (binascii.Error, ValueError, InvalidJson):
            raise BrokenSeal from None
        yield UnsealedValue.from_wire(
            {name: value for name, value in told.items() if name != "data"} | {"value": plain}
        )


def is_seal_body(body: dict[str, Any]) -> bool:
    """Is this the body of a seal, as far as can be told without the key?"""
    values = body.get("values")
    return (
        body.keys() == {"event_id", "key_id", "values"}
        and isinstance(body["event_id"], str)
        and isinstance(body["key_id"], str)
        and isinstance(values, list)
        and bool(values)
        and all(map(_is_value, values))
    )


_TYPES = {"place": str, "kind": str, "data": str, "start": int, "end": int, "is_name": bool}
_NEEDED = {"place", "kind", "data"}


def _is_value(told: Any) -> bool:
    return (
        isinstance(told, dict)
        and _NEEDED <= told.keys() <= _TYPES.keys()
        and all(type(value) is _TYPES[name] for name, value in told.items())
    )
