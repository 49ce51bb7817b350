"""What checks and transfers report: the state of the hash chains, what an import or a rebuild did."""

from muniment.core.record import Count, Items, Record

__all__ = ["BrokenLink", "ImportReport", "RebuildReport", "ScrubbedFiles", "VerifyReport"]


class BrokenLink(Record):
    """The first link of a session's chain that does not hold."""

    tenant_id: str
    user_id: str
    session_id: str
    seq: Count
    id: str | None
    reason: str


class VerifyReport(Record):
    """All chains walked (LG-05)."""

    tenants: Count
    sessions: Count
    entries: Count
    forgotten: Count
    unreceipted: Count
    """Of those forgotten, how many name a receipt that is not in this store: usual after importing a part of one."""
    broken: Items[BrokenLink]

    @property
    def ok(self) -> bool:
        return not self.broken


class ImportReport(Record):
    """What an import wrote, and what was there already."""

    tenant_id: str
    written: dict[str, Count]
    skipped: dict[str, Count]


class RebuildReport(Record):
    """Projections computed again from the ledger, and which stored items differed from them."""

    items: Count
    repaired: Items[str]
    turns: Count
    """Turns that were indexed again."""


class ScrubbedFiles(Record):
    """What a thorough scrub has done to the store's files (LG-07)."""

    clean: bool
    """Nothing that was forgotten is left in any file of the store; False where the engine cannot know."""
    due: bool
    """Something is still there that another scrub could take, at another time or by another role."""
    receipts: Count
    """Receipts of forgets that had waited for it."""
    note: str
