"""The form of an archive: the bodies of entries of one session in one object, compressed, under its hash.

    {"muniment": "archive.v1", "salt": …, "entries": {"0": ["evt_…", "{…}"], "1": …}}   as zlib

The salt makes the hash one that nobody can guess. A body keeps its number when others are taken out. Each is held
against its entry's own hash by whoever reads the entry; here the object is held against its name.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_bytes, parse_json
from muniment.core.ports.objects import ARCHIVED, BrokenSeal, ObjectRow
from muniment.errors import InvalidJson
from muniment.store.objects.outside import Outside

__all__ = ["MARK", "ArchivedEntries", "Marker", "archive_row", "marker_of", "read_archive"]

MARK = ARCHIVED
FORMAT = "archive.v1"
ARCHIVE_BYTES_MAX = 512 * 1024 * 1024
"""What one archive may come to when it is unpacked."""


ArchivedEntries = Mapping[str, tuple[str, str]]
"""By its number, the id of an entry and its body."""


class Marker(NamedTuple):
    """Where the body of an entry lies."""

    name: bytes
    number: int

    def __str__(self) -> str:
        return f"{MARK}{self.name.hex()}:{self.number}"


def marker_of(body: str) -> Marker | None:
    """What stands in the place of a body; None where that is no such thing."""
    name, _, number = body[len(MARK) :].partition(":")
    try:
        return Marker(bytes.fromhex(name), int(number)) if body.startswith(MARK) else None
    except ValueError:
        return None


def read_archive(outside: Outside, tenant_id: str, row: ObjectRow) -> ArchivedEntries | None:
    """What an archive holds; None where it is missing, or is not what was written."""
    known = outside.fetched.get(row.held_at)
    if known is not None:
        return known  # type: ignore[no-any-return]
    data = outside.store.get(row.held_at)
    if data is None or sha256(data).hexdigest() != row.held_at.rpartition("/")[2]:
        return None
    if row.sealed_by is not None:
        key_id, _, salt = row.sealed_by.partition(":")
        try:
            data = outside.key_named(key_id).open(data, bytes.fromhex(salt), (tenant_id.encode(), row.name))
        except (BrokenSeal, ValueError):
            return None
    held = _unpacked(data)
    if held is not None:
        outside.fetched.keep(row.held_at, held, row.size)
    return held


def _unpacked(data: bytes) -> ArchivedEntries | None:
    unpacking = zlib.decompressobj()
    try:
        plain = parse_json(unpacking.decompress(data, ARCHIVE_BYTES_MAX), max_bytes=ARCHIVE_BYTES_MAX)
    except (zlib.error, InvalidJson):
        return None
    held = plain.get("entries") if isinstance(plain, dict) and plain.get("muniment") == FORMAT else None
    if not isinstance(held, dict) or not all(map(_is_entry, held.values())):
        return None
    return {number: (id_, body) for number, (id_, body) in held.items()}


def _is_entry(held: Any) -> bool:
    return isinstance(held, list) and len(held) == 2 and all(isinstance(each, str) for each in held)


def archive_row(
    outside: Outside, tenant_id: str, name: bytes, salt: bytes, held: ArchivedEntries
) -> tuple[ObjectRow, bytes]:
    """The row of an archive of these, and the bytes to be put where it says."""
    entries = {number: list(each) for number, each in held.items()}
    plain = canonical_bytes({"muniment": FORMAT, "salt": salt.hex(), "entries": entries})
    data = zlib.compress(plain, 6)
    sealed_by = None
    if outside.keys is not None:
        key = outside.keys()[0]
        data = key.seal(data, salt, (tenant_id.encode(), name))
        sealed_by = f"{key.id}:{salt.hex()}"
    held_at = f"{outside.tenant_folder(tenant_id)}/archives/{sha256(data).hexdigest()}"
    return ObjectRow(name, "archive", "", held_at, sealed_by, len(plain)), data
