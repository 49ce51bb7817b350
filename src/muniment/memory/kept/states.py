"""States of threads as the text of entries: each channel whole, as what changed since another, or where it stands.

A channel whose bytes are those of the checkpoint before is named by the entry that holds them. One that changed is told
by what is new in it, until that comes to as much as the whole would, or the way back to a whole one gets long.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from muniment.errors import StoreDamaged
from muniment.memory.kept.deltas import Delta, apply_delta, make_delta

__all__ = ["CHAIN_MAX", "Channel", "Typed", "channels_told", "pack", "pack_typed", "state_of", "typed_of", "unpack"]

Typed = tuple[str, bytes]
"""What a serializer makes of something: the name of its form, and the bytes."""

CHAIN_MAX = 64
"""Entries that have to be read for a channel at most."""
_SMALL = 256
"""What is shorter is not worth telling by another."""
_INFLATED_MAX = 1 << 31


class Channel(NamedTuple):
    """A channel of a checkpoint that is known: its bytes, and where they are told."""

    typed: Typed
    entry_id: str
    depth: int
    """How many others must be read first."""
    spent: int
    """What telling it by others has taken since it was last told whole."""


def pack(data: bytes) -> dict[str, Any]:
    """Bytes as they stand in JSON: pressed where that is shorter."""
    pressed = zlib.compress(data, 6) if len(data) >= 64 else data
    if len(pressed) < len(data):
        return {"z": base64.b64encode(pressed).decode("ascii"), "size": len(data)}
    return {"b": base64.b64encode(data).decode("ascii")}


def unpack(packed: Mapping[str, Any]) -> bytes:
    try:
        if "b" in packed:
            return base64.b64decode(packed["b"], validate=True)
        size = packed["size"]
        inflater = zlib.decompressobj()
        data = inflater.decompress(base64.b64decode(packed["z"], validate=True), min(size + 1, _INFLATED_MAX))
    except (binascii.Error, zlib.error, KeyError, TypeError) as error:
        raise StoreDamaged(f"what a checkpoint holds cannot be read: {type(error).__name__}") from None
    if len(data) != size:
        raise StoreDamaged("what a checkpoint holds is not as long as it says")
    return data


def pack_typed(typed: Typed) -> dict[str, Any]:
    return {"type": typed[0], **pack(typed[1])}


def typed_of(packed: Mapping[str, Any]) -> Typed:
    return str(packed["type"]), unpack(packed)


def channels_told(
    values: Mapping[str, Typed], before: Mapping[str, Channel], entry_id: str
) -> tuple[dict[str, Any], dict[str, Channel]]:
    """How the channels of a checkpoint are told after another, and what is then known of them."""
    told: dict[str, Any] = {}
    known: dict[str, Channel] = {}
    for name, typed in values.items():
        held = before.get(name)
        if held is not None and held.typed == typed:
            told[name] = {"at": held.entry_id}
            known[name] = held
            continue
        whole = pack_typed(typed)
        delta = None if held is None else _told_by(held, typed, whole)
        if delta is None or held is None:
            told[name], known[name] = whole, Channel(typed, entry_id, 0, 0)
        else:
            told[name] = delta
            known[name] = Channel(typed, entry_id, held.depth + 1, held.spent + _size(delta))
    return told, known


def _told_by(held: Channel, typed: Typed, whole: Mapping[str, Any]) -> dict[str, Any] | None:
    if held.depth >= CHAIN_MAX or len(typed[1]) < _SMALL or held.typed[0] != typed[0]:
        return None
    delta = make_delta(held.typed[1], typed[1])
    parts = [pack(part) if isinstance(part, bytes) else list(part) for part in delta]
    told = {"type": typed[0], "by": held.entry_id, "parts": parts, "size": len(typed[1])}
    is_shorter = _size(told) * 2 < _size(whole) and held.spent + _size(told) <= _size(whole)
    return {**told, "depth": held.depth + 1, "spent": held.spent + _size(told)} if is_shorter else None


def _size(told: Mapping[str, Any]) -> int:
    """About what it takes in an entry."""
    own = sum(len(told[key]) for key in ("b", "z") if key in told)
    parts = told.get("parts", ())
    return own + sum(12 if isinstance(part, list) else 8 + _size(part) for part in parts)


def state_of(said: Mapping[str, Any], entry_id: str, base: Channel | None) -> Channel:
    """A channel as an entry tells it; `base` is the same channel of the entry that it names, where it names one."""
    if "at" in said or "by" in said:
        if base is None:
            raise StoreDamaged("what a checkpoint builds on is missing", details={"id": entry_id})
        if "at" in said:
            return base
        delta: Delta = [unpack(part) if isinstance(part, dict) else (part[0], part[1]) for part in said["parts"]]
        data = apply_delta(base.typed[1], delta)
        if len(data) != said["size"]:
            raise StoreDamaged("what a checkpoint holds is not as long as it says", details={"id": entry_id})
        return Channel((said["type"], data), entry_id, said["depth"], said["spent"])
    return Channel(typed_of(said), entry_id, 0, 0)
