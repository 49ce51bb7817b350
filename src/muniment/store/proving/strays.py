"""Rows that do not stand where they were written, as a forget meets them in a store that somebody edited.

An entry belongs to the session whose chain holds it, whatever name its row says: the entry before it or the one after
it has its hash, or its own header proves it. So what was given to another is found by the gap that it left, and nobody
takes another's row for their own. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import NamedTuple

from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import ASKED_MAX, by_ids, chunked, get, select, stream, texts
from muniment.core.ports.schema import ENTRIES, SESSIONS, EntryRow
from muniment.errors import StoreDamaged
from muniment.store.chain import blob_fault
from muniment.store.items import HOLDS_BODY, Item, links_of
from muniment.store.ledger.chain import genesis
from muniment.store.ledger.rows import check_content, check_header
from muniment.store.turns import users_of

__all__ = ["Claimed", "Placed", "altered_entries", "claimed_entries", "is_foreign_item"]


class Placed(NamedTuple):
    """An entry that is to go: where its row says that it stands, its hashes, and the salt of its content."""

    id: str
    user_id: str
    session_id: str
    seq: int
    prev_hash: bytes
    hash: bytes
    salt: bytes | None
    receipt_id: str | None


class Claimed(NamedTuple):
    """The entries of a scope, by their chains."""

    entries: list[Placed]
    """Whole ones that are in it, wherever they stand now."""
    foreign: int
    """Rows that say they are in it, and are another's."""
    missing: int
    """Entries that its chains had and that are nowhere."""


def claimed_entries(reader: Reader, tenant_id: str, where: tuple[Condition, ...]) -> Claimed:
    """What is in a scope, whatever was done to its rows."""
    found: list[Placed] = []
    foreign = missing = 0
    wanted: set[bytes] = set()
    seen: set[tuple[str, str]] = set()
    rows = stream(reader, ENTRIES, where, into=Placed, order=("user_id", "session_id", "seq"))
    for place, group in groupby(rows, key=lambda row: (row.user_id, row.session_id)):
        own, others, gaps, lost = _of_session(reader, tenant_id, place, list(group))
        found += own
        foreign += others
        wanted |= gaps
        missing += lost
        seen.add(place)
    for session in stream(reader, SESSIONS, where):
        if (session.user_id, session.session_id) not in seen and session.head_seq > 0:
            wanted.add(session.head_hash)
            missing += max(0, session.head_seq - 1)
    strays = [row for some in chunked(sorted(wanted)) for row in _with_hash(reader, some)]
    missing += max(0, len(wanted) - len(strays))
    held = set(texts(reader, ENTRIES, "id", (*where, HOLDS_BODY)))  # whatever a row says of a receipt
    held.update(row.id for row in (*found, *strays) if row.receipt_id is None or row.salt is not None)
    return Claimed([row for row in (*found, *strays) if row.id in held], foreign, missing)


def _with_hash(reader: Reader, hashes: Sequence[bytes]) -> list[Placed]:
    return select(reader, ENTRIES, (("hash", "in", tuple(hashes)),), into=Placed)


def _of_session(
    reader: Reader, tenant_id: str, place: tuple[str, str], rows: list[Placed]
) -> tuple[list[Placed], int, set[bytes], int]:
    """Its own rows, how many are another's, the hashes of entries that stand elsewhere, and how many are lost."""
    session = get(reader, SESSIONS, place)
    head_seq, head_hash = (rows[-1].seq, rows[-1].hash) if session is None else (session.head_seq, session.head_hash)
    by_seq = {row.seq: row for row in rows}
    own: dict[int, Placed] = {}
    foreign = 0
    for row in rows:
        before, after = by_seq.get(row.seq - 1), by_seq.get(row.seq + 1)
        is_first = row.seq == 1 and row.prev_hash == genesis(tenant_id, *place).hash
        is_held = (
            is_first
            or (before is not None and before.hash == row.prev_hash)
            or (after is not None and after.prev_hash == row.hash)
            or (row.seq, row.hash) == (head_seq, head_hash)
        )
        if is_held or _proves_itself(reader, tenant_id, row):
            own[row.seq] = row
        else:
            foreign += 1
    last = max([*own, head_seq if session is not None else 0], default=0)
    if last > ASKED_MAX * 1000 + len(rows):  # no chain is that much longer than its rows: the head was altered
        last = max(own, default=0)
    gaps: set[bytes] = set()
    lost = 0
    for seq in range(1, last + 1):
        if seq in own:
            continue
        after = own.get(seq + 1)
        named = after.prev_hash if after is not None else head_hash if seq == head_seq else None
        lost += named is None
        gaps |= set() if named is None else {named}
    return list(own.values()), foreign, gaps, lost


def _proves_itself(reader: Reader, tenant_id: str, row: Placed) -> bool:
    where: tuple[Condition, ...] = (
        ("user_id", "=", row.user_id),
        ("session_id", "=", row.session_id),
        ("seq", "=", row.seq),
    )
    try:
        for whole in select(reader, ENTRIES, where):
            check_header(tenant_id, EntryRow(*whole))
    except StoreDamaged:
        return False
    return True


def is_foreign_item(reader: Reader, item: Item, owners: Collection[str]) -> bool:
    """Whether an item that says it is one of these owners' was altered, and was made from another's turns alone."""
    if item.is_sound:
        return False
    users = set(users_of(reader, [link.source_id for link in links_of(reader, item.id)]))
    return bool(users) and users.isdisjoint(owners)


def altered_entries(reader: Reader, ids: Sequence[str]) -> int:
    """How many of these hold something else than what was written there: what they held may stand in another row."""
    count = 0
    for row in by_ids(reader, ENTRIES, ids):
        try:
            check_content(row)
            count += blob_fault(reader, row) is not None
        except StoreDamaged:
            count += 1
    return count
