"""What is wrong with a receipt by what it says of itself. Reads no row."""

from __future__ import annotations

from muniment.errors import MunimentError
from muniment.store.forget import SCRUB_DUE, receipt_change
from muniment.store.items import WRITTEN, Item, item_of, receipts_of
from muniment.store.ledger.records import Receipt

__all__ = ["receipt_fault"]


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
    asked = receipt.user_among(())
    if receipt.concerns is not None and asked and receipt.concerns != receipts_of(asked):
        return "it concerns another user than it was asked for"
    made = item_of(receipt_change(receipt, item.status), item.version)
    named = [name for name, one, other in zip(WRITTEN, item, made, strict=False) if one != other]
    named = [name for name in named if item.checked or name not in ("digest", "checked")]
    return f"{', '.join(named)} not as it says itself" if named else None
