"""Forgotten entries, and the receipts that vouch for them.

A tombstone names its receipt only if that receipt is in this store and lists the entry (TM-12): a forget writes the
column after the entry was sealed, so the row alone proves nothing. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muniment.core.canonical import read_canonical
from muniment.core.limits import remembered
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ITEMS, EntryRow
from muniment.errors import Forgotten, MunimentError
from muniment.store.chain import damaged_entry
from muniment.store.items import Item
from muniment.store.ledger import EntryReceipt, LedgerEntry, entry_of_row

__all__ = [
    "Listed",
    "forgotten",
    "is_receipted",
    "listed_by",
    "load_entries",
    "load_entry",
]

Listed = dict[str, frozenset[str] | None]
"""Ids listed by each receipt; None for one that is missing or altered."""


def load_entries(reader: Reader, tenant_id: str, rows: Sequence[EntryRow]) -> list[LedgerEntry]:
    """Read stored rows as records: forgotten ones with their receipts, if present."""
    listed = listed_by(reader, (row.receipt_id for row in rows if row.receipt_id is not None))
    return [_with_receipt(entry_of_row(tenant_id, row), row, listed) for row in rows]


def load_entry(reader: Reader, tenant_id: str, row: EntryRow) -> LedgerEntry:
    """Read one stored row, as `load_entries` does."""
    return load_entries(reader, tenant_id, (row,))[0]


def _with_receipt(entry: LedgerEntry, row: EntryRow, listed: Listed) -> LedgerEntry:
    return entry if is_receipted(row, listed) else entry.model_copy(update={"receipt_id": None})


def is_receipted(row: EntryRow | EntryReceipt, listed: Listed) -> bool:
    """Return whether the receipt of a forgotten entry is present; raises `StoreDamaged` if it does not list the entry.

    Entries imported from a part of another store lack their receipts.
    """
    if row.receipt_id is None:
        return True
    ids = listed[row.receipt_id]
    if ids is not None and row.id not in ids:
        raise damaged_entry(row.id, "its receipt does not list it")
    return ids is not None


def listed_by(reader: Reader, receipt_ids: Iterable[str]) -> Listed:
    """Return the lists of receipts, by their newest versions."""
    listed: Listed = dict.fromkeys(receipt_ids)
    newest: dict[str, Item] = {}
    for item in by_ids(reader, ITEMS, list(listed), into=Item, where=(("kind", "=", "receipt"),)):
        if item.id not in newest or newest[item.id].version < item.version:
            newest[item.id] = item
    return listed | {id_: _ids_of(item) for id_, item in newest.items()}


def _ids_of(receipt: Item) -> frozenset[str] | None:
    """Return the ids that a receipt lists; None if it is damaged, which reading the receipt reports."""
    try:
        receipt.check()
        return None if receipt.body is None else _ids_in(receipt.body)
    except (MunimentError, KeyError, TypeError):
        return None


@remembered(4)
def _ids_in(body: str) -> frozenset[str]:
    return frozenset(gone["id"] for gone in read_canonical(body)["erased"])


def forgotten(entry: LedgerEntry, words: str, *, path: str | None = None) -> Forgotten:
    """Return the error for a forgotten entry; it names the receipt, if present."""
    receipt_id = entry.receipt_id
    hint = (
        "its receipt is not in this store"
        if receipt_id is None
        else f"receipt {receipt_id} says when and by which request"
    )
    return Forgotten(words, path=path, hint=hint, details={"id": entry.id, "receipt_id": receipt_id})
