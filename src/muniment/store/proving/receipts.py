"""A receipt as an item of the store, and what is wrong with one by what it says of itself. Reads no row."""

from __future__ import annotations

from muniment.errors import MunimentError
from muniment.store.items import Change, Item, item_of
from muniment.store.ledger.records import Receipt

__all__ = ["SCRUB_DUE", "receipt_change", "receipt_fault"]

SCRUB_DUE = "scrub_due"
"""The status of a receipt for what may still lie in the store's files."""


def receipt_change(receipt: Receipt, status: str) -> Change:
    return Change(
        id=receipt.receipt_id,
        kind="receipt",
        status=status,
        body=receipt.to_wire(),
        created_at=receipt.requested_at,
        trust="user",
    )


def receipt_fault(item: Item, _sources: frozenset[str]) -> str | None:
    """What is wrong with a receipt by what it says of itself; None where it holds."""
    try:
        receipt = Receipt.from_wire(item.plain())
    except MunimentError as error:
        return error.message
    if item.status not in ("issued", SCRUB_DUE):
        return "its status is not one of a receipt"
    if receipt.selector.get("tenant_id", receipt.tenant_id) != receipt.tenant_id:
        return "it was asked for in another tenant"
    made = item_of(receipt_change(receipt, item.status), item.version)
    named = [name for name, one, other in zip(Item._fields, item, made, strict=True) if one != other]
    named = [name for name in named if item.checked or name not in ("digest", "checked")]
    return f"{', '.join(named)} not as it says itself" if named else None
