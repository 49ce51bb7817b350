"""Whether the blob that an entry refers to is there, and is what it was. Writes nothing."""

from __future__ import annotations

from muniment.core.canonical import parse_json, salted_digest
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import get, select
from muniment.core.ports.schema import BLOBS, OBJECTS, BlobRow, EntryRow
from muniment.errors import InvalidJson
from muniment.store.objects.view import near, sees_through
from muniment.store.turns import unreached

__all__ = ["blob_fault", "blobs_of", "lies_outside"]


def blobs_of(reader: Reader, row: EntryRow) -> list[BlobRow]:
    """The blob that an entry names, and no other."""
    return [blob for blob in select(reader, BLOBS, (("entry_id", "=", row.id),)) if blob.hash.hex() in (row.body or "")]


def lies_outside(reader: Reader, row: EntryRow) -> bool:
    """Whether the content of an entry lies in an object of its own. Nothing outside is asked."""
    name = _name_in(row)
    return name is not None and get(reader, OBJECTS, (name,)) is not None


def _name_in(row: EntryRow) -> bytes | None:
    """The name of the blob that an entry refers to; None where it refers to none."""
    if row.body is None or '"blob":"' not in row.body:
        return None
    try:
        return bytes.fromhex(parse_json(row.body).get("blob") or "") or None
    except (InvalidJson, ValueError, AttributeError, TypeError):
        return None


def blob_fault(reader: Reader, row: EntryRow) -> str | None:
    """Is the blob an entry refers to there, and does it hash to its name?"""
    if row.body is None or '"blob":"' not in row.body:
        return None
    try:
        name = parse_json(row.body).get("blob")
        key = None if name is None else bytes.fromhex(name)
    except (InvalidJson, AttributeError, TypeError, ValueError):
        return "the content was altered"
    if key is None:
        return None
    held = get(near(reader), OBJECTS, (key,))
    if held is not None and not sees_through(reader):
        raise unreached(row.id)
    blob = get(reader, BLOBS, (key,))
    if blob is None:
        return f"its blob {name[:12]}… is missing"
    if held is not None and blob.data is None:
        return f"its object {held.held_at} is missing"
    sound = blob.data is not None and salted_digest(row.salt or b"", blob.data).hex() == name
    sound = sound and (blob.entry_id, blob.size) == (row.id, len(blob.data or b""))
    named = f"its blob {name[:12]}…" if held is None else f"its object {held.held_at}"
    return None if sound else f"{named} was altered"
