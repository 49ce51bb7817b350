"""Reports of the store: the state of its chains, results of imports and rebuilds, changes, users."""

from typing import Literal

from muniment.core.record import Absent, Count, Items, Record, Timestamp
from muniment.core.scope import IdText

__all__ = [
    "Appended",
    "BrokenLink",
    "Built",
    "Changes",
    "Differing",
    "ImportReport",
    "RebuildReport",
    "ScrubbedFiles",
    "UserState",
    "VerifyReport",
]


class BrokenLink(Record):
    """The first link of a session's chain that does not hold."""

    tenant_id: str
    user_id: str
    session_id: str
    seq: Count
    id: str | None
    reason: str


class Differing(Record):
    """A derived item that differs from what the ledger gives."""

    tenant_id: str
    kind: str
    id: str
    version: Count
    reason: str


class VerifyReport(Record):  # LG-05
    """The result of walking all chains and rederiving what was derived from them."""

    tenants: Count
    sessions: Count
    entries: Count
    forgotten: Count
    unreceipted: Count
    """Forgotten entries whose receipt is not in this store: usual after importing a part of one."""
    outdated: Count = 0
    """Users whose turns were indexed by another version of the analyzer: searches find them with that version's terms.
    `muniment store rebuild` indexes them again. In a sample: among the users of its sessions.
    """
    derived: Count = 0
    """Versions of derived items that were compared with the ledger; none for a tenant whose chains do not hold."""
    lacking: Count = 0
    """Items that the ledger gives and the store lacks, as of kinds that an earlier version did not derive. `muniment
    store rebuild` makes them.
    """
    unproven: Count = 0
    """Proofs of builds and receipts made without this store's key: it was opened without the key, or they are older
    than it.
    """
    sampled: bool = False
    """Only a sample of the sessions was checked, and nothing derived."""
    sessions_held: Count = 0
    """In a sample: the total number of sessions. At most 10,000 are counted for one tenant."""
    sessions_uncounted: bool = False
    """In a sample: there are more sessions than were counted."""
    resume: str | None = None
    """The cursor to continue from, if the verification stopped at its limit of entries; None at the end."""
    differing: Items[Differing] = ()
    broken: Items[BrokenLink]

    @property
    def ok(self) -> bool:
        return not self.broken and not self.differing


class ImportReport(Record):
    """The rows an import wrote, and those already present."""

    tenant_id: str
    written: dict[str, Count]
    skipped: dict[str, Count]
    proven: Count = 0
    """Proofs of builds and receipts recreated with this store's key: a dump contains none, and only its
    digest vouches for these items.
    """


class RebuildReport(Record):
    """Projections recomputed from the ledger, and the stored items that differed from them."""

    items: Count
    repaired: Items[str]
    turns: Count
    """Turns indexed again."""


class ScrubbedFiles(Record):  # LG-07
    """The effect of a thorough scrub on the store's files."""

    clean: bool
    """Nothing forgotten is left in any file of the store; False where the engine cannot know."""
    due: bool
    """Something remains that another scrub could remove, later or under another role."""
    receipts: Count
    """Receipts of forgets that had waited for this scrub."""
    note: str


class Appended(Record):
    """Consecutive entries of one session, all of one run."""

    ledger: Literal["user", "bank"]
    """The user's own ledger, or that of the user's bank: reasoning memory and rules."""
    session_id: str
    run_id: str
    first_seq: Count
    last_seq: Count
    events: Items[str]
    """Distinct kinds of these entries: `message`, `tool_result`, `step`, or the name of a run's own event, such as
    `run_finished`.
    """


class Built(Record):
    """A packet that was composed."""

    build_id: str
    session_id: str
    run_id: str


class Changes(Record):
    """Changes committed after a position, oldest first within each session. Each commit is included whole or not at
    all.
    """

    position: str
    """The end of these changes: pass it as `after` to continue."""
    reset: bool = False
    """The changes since the position cannot be determined exactly: reload everything."""
    more: bool = False
    """More changes are available: ask again at once."""
    entries: Items[Appended] = ()
    builds: Items[Built] = ()
    receipts: Items[str] = ()
    """Receipts of forgets in this scope."""

    @property
    def is_empty(self) -> bool:
        return not (self.reset or self.entries or self.builds or self.receipts)


class UserState(Record):
    """A user of a tenant: counts of their data, and since when. Forgotten sessions do not count."""

    user_id: IdText
    sessions: Count
    runs: Count
    events: Count
    """All events written to these sessions, including those forgotten one by one."""
    first_seen_at: Timestamp
    last_seen_at: Timestamp
    is_rough: Absent[bool] = None
    """True where there are too many sessions or runs to examine one by one: then forgotten ones count too, each number
    stops at 200,000, and `last_seen_at` is that of the newest runs.
    """
