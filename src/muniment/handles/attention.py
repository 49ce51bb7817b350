"""A tenant's overview and the items waiting for a person. Read-only: nothing is written or decided here.

Each list is read at its source: runs, facts and candidates by status, rules by the current result of their trials,
receipts by whether a scrub is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from muniment.core.canonical import canonical_text
from muniment.core.listing import ListQuery, Placed
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import first
from muniment.core.ports.schema import ITEMS
from muniment.core.record import Absent, Count, Items, Record, Timestamp
from muniment.core.scope import ScopeLevel, bank_holder, bank_level, bank_names, is_bank, user_bank
from muniment.memory._fact_records import StoredCandidate, StoredFact
from muniment.memory.index import count_unindexed
from muniment.store.background.leases import open_leases
from muniment.store.forget import SCRUB_DUE
from muniment.store.items import Item
from muniment.store.ledger import Receipt, RunState
from muniment.store.lists.seeking import (
    COUNT_MAX,
    Listed,
    Make,
    count_rows,
    each_made,
    in_turn,
    listed_where,
    read_listed,
    rows_listed,
    seek,
)
from muniment.store.users import next_users

if TYPE_CHECKING:
    from muniment.store.context import Context

__all__ = ["WAITING_KINDS", "Overview", "Waiting", "WaitingKind", "overview", "page_waiting"]

WaitingKind = Literal["run_locked", "canary_decided", "fact_disputed", "candidate_waiting", "scrub_due"]
WAITING_KINDS: tuple[str, ...] = get_args(WaitingKind)
USERS_MAX = 2000
"""The number of users counted one by one."""

Where = tuple[Condition, ...]


class Waiting(Record):
    """An item that needs a person's attention."""

    kind: WaitingKind
    id: str
    """The id of the run, rule, fact, candidate or receipt."""
    at: Timestamp
    """When it entered its current state."""
    text: str
    """The item's text, or the reason it is waiting."""
    user_id: Absent[str] = None
    run_id: Absent[str] = None
    """The run it came from, if any."""
    level: Absent[ScopeLevel] = None
    """For a rule: the level of its rulebook."""
    agent_id: Absent[str] = None


class Overview(Record):
    """Counts of a tenant's contents, and the time of its last activity."""

    users: Count
    sessions: Count
    runs: Count
    events: Count
    builds: Count
    unindexed: Count = 0
    """Entries not yet in the stored index; searches read them from the ledger. `muniment store upkeep`."""
    unembedded: Count = 0
    """Users with indexed turns that lack vectors because an embedder failed or was interrupted: only word search finds
    them. `muniment store upkeep` retries.
    """
    under_way: Count = 0
    """Pieces of upkeep in progress, in any process and of any kind. `muniment store upkeep`."""
    at_least: Items[str]
    """Names of the counts that stopped at their bound: the true number is at least as large."""
    last_run_at: Absent[Timestamp] = None
    last_build_at: Absent[Timestamp] = None


class _Id(NamedTuple):
    id: str


# -- waiting items ----------------------------------------------------------------------------------------


def page_waiting(ctx: Context, tenant_id: str, user_id: str | None, asked: ListQuery) -> Iterator[Placed[Waiting]]:
    """Items of a tenant, or of one user, oldest first within a kind, placed by kind, then time and id."""
    bank = None if user_id is None else user_bank(user_id)
    reads = [
        read_listed("run", user_id, each_made(_run), asked, "locked"),
        read_listed("rule", bank, _rules(ctx, tenant_id), asked),
        read_listed("fact", user_id, each_made(_fact), asked, "disputed"),
        read_listed("candidate", user_id, each_made(_candidate), asked, "proposed"),
    ]
    if user_id is None:
        reads.append(read_listed("receipt", None, each_made(_scrub), asked, SCRUB_DUE))
    meant = {number: read for number, read in enumerate(reads) if asked.kind in (None, WAITING_KINDS[number])}
    return seek(ctx, tenant_id, in_turn(meant), asked)


def _waiting(**told: str | None) -> Waiting:
    """Build a record, leaving out unknown fields."""
    return Waiting.from_wire({name: each for name, each in told.items() if each is not None})


def _run(item: Item) -> Waiting:
    state = RunState.from_wire(item.plain())
    return _waiting(
        kind="run_locked",
        id=item.id,
        at=item.created_at,
        text=state.objective or "",
        user_id=item.user_id,
        run_id=item.id,
    )


def _fact(item: Item) -> Waiting:
    fact = StoredFact.from_wire(item.plain())
    said = fact.objections[-1].reason if fact.objections else None
    return _waiting(
        kind="fact_disputed",
        id=item.id,
        at=item.created_at,
        text=f"{fact.key}: {_shown(fact.value)}" + (f" ({said})" if said else ""),
        user_id=item.user_id,
        run_id=item.run_id,
    )


def _candidate(item: Item) -> Waiting:
    proposed = StoredCandidate.from_wire(item.plain())
    return _waiting(
        kind="candidate_waiting",
        id=item.id,
        at=item.created_at,
        text=f"{proposed.key}: {_shown(proposed.value)}",
        user_id=item.user_id,
        run_id=item.run_id,
    )


def _shown(value: object) -> str:
    return value if isinstance(value, str) else canonical_text(value)


def _rules(ctx: Context, tenant_id: str) -> Make[Waiting]:
    """Rules on trial whose runs already settle the outcome; a person or `watch` has to act on it."""

    def make(reader: Reader, items: Sequence[Item]) -> list[Waiting | None]:
        return [_rule(reader, item) for item in items]

    def _rule(reader: Reader, item: Item) -> Waiting | None:
        from muniment.learning.banks import held_of  # only a store with rules needs these rooms
        from muniment.rules.promotion import verdict_of
        from muniment.rules.rulebook import Book

        memory, owner = held_of(item).memory, item.user_id or ""
        if memory.stage != "canary" or not is_bank(owner):
            return None
        verdict, _ = verdict_of(Book(ctx, tenant_id, owner), reader, memory)
        if verdict.decision == "stay":
            return None
        return _waiting(
            kind="canary_decided",
            id=item.id,
            at=item.created_at,
            text=f"{verdict.decision}: {verdict.reasons[0]}",
            user_id=bank_holder(owner),
            level=bank_level(owner),
            agent_id=bank_names(owner).get("agent_id"),
        )

    return make


def _scrub(item: Item) -> Waiting:
    receipt = Receipt.from_wire(item.plain())
    named = ", ".join(f"{name} {value}" for name, value in sorted(receipt.selector.items()))
    return _waiting(kind="scrub_due", id=item.id, at=receipt.requested_at, text=named)


# -- overview ---------------------------------------------------------------------------------------------


def overview(ctx: Context, tenant_id: str) -> Overview:
    """Count by index alone, each count up to a bound."""

    def listed(kind: str, user_id: str | None = None) -> Where:
        return listed_where(kind, user_id, ListQuery())

    def has_run(reader: Reader, user_id: str) -> bool:
        return first(reader, ITEMS, listed("run", user_id), into=_Id, order=("status", "placed_at", "id")) is not None

    def users(reader: Reader) -> int:
        named = (begun.user_id for begun in next_users(reader, None))
        return sum(1 for _ in islice((name for name in named if has_run(reader, name)), USERS_MAX + 1))

    def last(kind: str) -> str | None:
        def newest(reader: Reader) -> list[Listed]:
            return rows_listed(reader, listed(kind), descending=True, limit=1)

        return next((each.placed_at for each in ctx.engine.read(tenant_id, newest)), None)

    counted = {
        "users": (ctx.engine.read(tenant_id, users), USERS_MAX),
        "sessions": (count_rows(ctx, tenant_id, "sessions", ()), COUNT_MAX),
        "runs": (count_rows(ctx, tenant_id, "items", listed("run")), COUNT_MAX),
        "events": (count_rows(ctx, tenant_id, "entries", ()), COUNT_MAX),
        "builds": (count_rows(ctx, tenant_id, "items", listed("build")), COUNT_MAX),
    }
    seen = {"last_run_at": last("run"), "last_build_at": last("build")}
    told: dict[str, Any] = {name: at for name, at in seen.items() if at is not None}
    told |= {name: most if count is None else min(count, most) for name, (count, most) in counted.items()}
    told["unindexed"] = count_unindexed(ctx, tenant_id)
    if ctx.embedder is not None:
        from muniment.memory.vectors import users_unembedded

        told["unembedded"] = len(ctx.engine.read(tenant_id, users_unembedded))
    told["under_way"] = ctx.engine.read(tenant_id, lambda reader: len(open_leases(reader)))
    told["at_least"] = [name for name, (count, most) in counted.items() if count is None or count > most]
    return Overview.from_wire(told)
