"""Whether the blob that an entry refers to is there, and is what it was. Writes nothing."""

from __future__ import annotations

from muniment.core.canonical import parse_json, salted_digest
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import get, select
from muniment.core.ports.schema import BLOBS, BlobRow, EntryRow
from muniment.errors import InvalidJson

__all__ = ["blob_fault", "blobs_of"]


def blobs_of(reader: Reader, row: EntryRow) -> list[BlobRow]:
    """The blob that an entry names, and no other."""
    return [blob for blob in select(reader, BLOBS, (("entry_id", "=", row.id),)) if blob.hash.hex() in (row.body or "")]


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
    blob = get(reader, BLOBS, (key,))
    if blob is None:
        return f"its blob {name[:12]}… is missing"
    sound = blob.data is not None and salted_digest(row.salt or b"", blob.data).hex() == name
    sound = sound and (blob.entry_id, blob.size) == (row.id, len(blob.data or b""))
    return None if sound else f"its blob {name[:12]}… was altered"
