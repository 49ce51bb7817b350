"""Whether the blob that an entry refers to is there, and is what it was; and whether the rows of objects are. Writes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from muniment.core.canonical import parse_json, salted_digest
from muniment.core.ports.engine import Reader
from muniment.core.ports.objects import ObjectRow
from muniment.core.ports.rows import by_ids, first, get, select, stream
from muniment.core.ports.schema import BLOBS, ENTRIES, ITEMS, OBJECTS, BlobRow, EntryRow
from muniment.errors import InvalidJson
from muniment.store.objects.archives import MARK, marker_of
from muniment.store.objects.clearing import MOVED
from muniment.store.objects.view import near, sees_through
from muniment.store.turns import unreached

__all__ = ["blob_fault", "blobs_of", "is_out_of_reach", "lies_outside", "object_faults"]

_USES = ("blob", "archive", "rewrite", "due", "going", "swept")


def blobs_of(reader: Reader, row: EntryRow) -> list[BlobRow]:
    """The blob that an entry names, and no other."""
    return [blob for blob in select(reader, BLOBS, (("entry_id", "=", row.id),)) if blob.hash.hex() in (row.body or "")]


def lies_outside(reader: Reader, row: EntryRow) -> bool:
    """Whether the content of an entry lies in an object of its own. Nothing outside is asked."""
    name = _name_in(row)
    return name is not None and get(reader, OBJECTS, (name,)) is not None


def is_out_of_reach(row: EntryRow, find: Callable[[bytes], ObjectRow | None]) -> bool:
    """Whether what an entry holds lies outside, and no row says where: then nobody can delete it.

    `find` gives the row of an object by its name. Nothing outside is asked.
    """
    if row.body is not None and row.body.startswith(MARK):
        marker = marker_of(row.body)
        held = None if marker is None else find(marker.name)
        return held is None or held.use not in ("archive", "rewrite") or "/archives/" not in held.held_at
    name = _name_in(row)
    held = None if name is None else find(name)
    if name is None or held is None:
        return False
    return (held.use, held.subject) != ("blob", row.id) or not held.held_at.rpartition("/")[2].startswith(name.hex())


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
    if sound and held is not None and (held.size != blob.size or is_out_of_reach(row, lambda _: held)):
        return f"the row of {named} was altered"
    return None if sound else f"{named} was altered"


class _Pointer(NamedTuple):
    id: str
    body: str | None


def object_faults(reader: Reader) -> Iterator[tuple[str, str]]:
    """Rows of objects that are not as they were written, by where the object lies. Nothing outside is asked.

    What an entry or an archive needs and no row names is found where the entry is read.
    """
    for row in stream(reader, OBJECTS):
        if row.use not in _USES:
            yield row.held_at, "what it is for was altered"
        elif row.use == "blob" and not _names_blob(reader, row):
            yield row.held_at, "no event names it"
        elif row.use == "archive" and (row.subject or "/archives/" not in row.held_at):
            yield row.held_at, "the row of an archive was altered"
        elif row.use in ("rewrite", "due", "going"):
            named = [each for each in row.subject.split() if each != MOVED]
            known = {item.id for item in by_ids(reader, ITEMS, named, into=_Kind) if item.kind == "receipt"}
            if not row.subject.split() or not known.issuperset(named):
                yield row.held_at, "it is due under no receipt"


class _Kind(NamedTuple):
    id: str
    kind: str


def _names_blob(reader: Reader, row: ObjectRow) -> bool:
    """Whether its event names it, as far as its row tells: what lies in an archive is not fetched for it."""
    entry = first(near(reader), ENTRIES, (("id", "=", row.subject),), into=_Pointer)
    if entry is None or entry.body is None:
        return False
    return entry.body.startswith(MARK) or row.name.hex() in entry.body
