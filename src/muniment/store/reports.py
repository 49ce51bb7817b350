"""What the store reports: the state of its chains, what an import or a rebuild did, what changed, who is in it."""

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
    """Something derived that is not what the ledger gives."""

    tenant_id: str
    kind: str
    id: str
    version: Count
    reason: str


class VerifyReport(Record):  # LG-05
    """All chains walked, and what was derived from them made again."""

    tenants: Count
    sessions: Count
    entries: Count
    forgotten: Count
    unreceipted: Count
    """Of those forgotten, how many name a receipt that is not in this store: usual after importing a part of one."""
    outdated: Count = 0
    """Users whose turns were indexed by another version of the analyzer: they are found, but by what it knew of words.
    `muniment store rebuild` indexes them again. Of a sample: among the users of its sessions."""
    derived: Count = 0
    """Versions of derived items that were held against the ledger: none of a tenant whose chains do not hold."""
    lacking: Count = 0
    """Items that the ledger gives and that are not here, as of kinds that an earlier version did not derive.
    `muniment store rebuild` makes them."""
    unproven: Count = 0
    """Proofs of builds and receipts that the key of this store did not make: it was opened without the key, or they
    were made before there was one."""
    sampled: bool = False
    """Only a sample of the sessions was looked at, and nothing that was derived."""
    sessions_held: Count = 0
    """Of a sample: how many sessions there are. Of one tenant at most 10,000 are counted."""
    sessions_uncounted: bool = False
    """Of a sample: there are more sessions than were counted."""
    resume: str | None = None
    """Where to go on, of a verification that stopped behind as many entries as it was to look at; None at the end."""
    differing: Items[Differing] = ()
    broken: Items[BrokenLink]

    @property
    def ok(self) -> bool:
        return not self.broken and not self.differing


class ImportReport(Record):
    """What an import wrote, and what was there already."""

    tenant_id: str
    written: dict[str, Count]
    skipped: dict[str, Count]
    proven: Count = 0
    """Proofs of builds and receipts that were made anew, with the key of this store: a dump brings none, and its digest
    is all that vouches for them."""


class RebuildReport(Record):
    """Projections computed again from the ledger, and which stored items differed from them."""

    items: Count
    repaired: Items[str]
    turns: Count
    """Turns that were indexed again."""


class ScrubbedFiles(Record):  # LG-07
    """What a thorough scrub has done to the store's files."""

    clean: bool
    """Nothing that was forgotten is left in any file of the store; False where the engine cannot know."""
    due: bool
    """Something is still there that another scrub could take, at another time or by another role."""
    receipts: Count
    """Receipts of forgets that had waited for it."""
    note: str


class Appended(Record):
    """Entries that follow one another in a session, all of one run."""

    ledger: Literal["user", "bank"]
    """The user's own ledger, or that of the user's bank: what was learnt, and rules."""
    session_id: str
    run_id: str
    first_seq: Count
    last_seq: Count
    events: Items[str]
    """What kinds there are among them: `message`, `tool_result`, `step`, or the name of what a run said of itself, such
    as `run_finished`."""


class Built(Record):
    """A packet that was composed."""

    build_id: str
    session_id: str
    run_id: str


class Changes(Record):
    """What was committed after a position, oldest first within each session. One moment: all of it, or nothing yet."""

    position: str
    """Where this ends: ask for what comes `after` it."""
    reset: bool = False
    """What happened since the position cannot be told exactly: look at everything again."""
    more: bool = False
    """There is more already: ask again at once."""
    entries: Items[Appended] = ()
    builds: Items[Built] = ()
    receipts: Items[str] = ()
    """Of what was forgotten in this scope."""

    @property
    def is_empty(self) -> bool:
        return not (self.reset or self.entries or self.builds or self.receipts)


class UserState(Record):
    """A user of a tenant: what of theirs is there, and since when. Sessions that were forgotten do not count."""

    user_id: IdText
    sessions: Count
    runs: Count
    events: Count
    """All events that were written to these sessions, including those that were forgotten one by one."""
    first_seen_at: Timestamp
    last_seen_at: Timestamp
    is_rough: Absent[bool] = None
    """True where there are more sessions or runs than are looked at one by one: then what was forgotten counts too,
    each number stops at 200,000, and `last_seen_at` is that of the newest runs."""
