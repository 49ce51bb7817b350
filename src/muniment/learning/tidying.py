"""Keeping a bank within its size limits: expired and surplus records are retired, by an ordinary plan (RC-21).

Pinned records are kept; expired ones go first, then those selected by the policy's method:

- `lru`: the longest unused; a record that was never used counts from when it was made.
- `score_decay`: the lowest score·2^(−age/half-life), with the age counted from the last use.
- `hybrid`: the lowest sum of the ranks in these two orders, so that neither an old favourite nor a fresh failure stays
  for one criterion alone.

Ties go by id. Retired and pruned records take no room.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import exp2
from typing import TYPE_CHECKING, Any

from muniment.core.instants import parse_instant
from muniment.core.policy import EvictionPolicy
from muniment.core.ports.engine import Count
from muniment.core.ports.rows import get
from muniment.core.ports.schema import SESSIONS
from muniment.core.record import RULECRAFT_VERSION, JsonValue
from muniment.core.scope import bank_scope
from muniment.learning._operations import check_plan
from muniment.learning.banks import list_memories, lock_bank, store_of, write_bank
from muniment.learning.keys import has_expired
from muniment.learning.plans import applied_draft, run_plan
from muniment.learning.records import StoredMemory
from muniment.learning.uses import with_counts

if TYPE_CHECKING:
    from muniment.contracts.learning import MemoryActionRecord
    from muniment.core.policy import LearnPolicy
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.learning.records import MemoryKind
    from muniment.store.context import Context

__all__ = ["EVERY", "bank_length", "decayed_score", "own_score", "tidy", "tidy_sometimes", "to_evict"]

EVERY = 512
"""Entries between two checks of a bank; fewer for small stores."""
_LIVE = ("active", "pinned", "temporary")


def tidy(ctx: Context, tenant_id: str, owner: str, *, leave: int = 0) -> tuple[MemoryActionRecord, ...]:
    """Retire expired and surplus records; `leave` reserves room in each store.

    Uses several plans if the actions exceed the limit of one.
    """
    records: list[MemoryActionRecord] = []
    while made := _tidy_once(ctx, tenant_id, owner, leave):
        records += made
        if len(made) < ctx.policy.learn.plan_actions_max or made[0].status != "APPLIED":
            break
    return tuple(records)


def _tidy_once(ctx: Context, tenant_id: str, owner: str, leave: int) -> tuple[MemoryActionRecord, ...]:
    now = ctx.now()
    plan_id = ctx.ids.new("plan")

    def work(tx: Transaction) -> tuple[MemoryActionRecord, ...]:
        lock_bank(tx, owner)
        found = _actions(tx, owner, ctx.policy.learn, now, leave)[: ctx.policy.learn.plan_actions_max]
        if not found:
            return ()
        plain = {"schema_version": RULECRAFT_VERSION, "plan_id": plan_id, "created_at": now, "actions": found}
        plan = check_plan(plain | {"notes": "tidy"})
        ran = run_plan(ctx, tx, owner, plan, {}, now)
        write_bank(ctx, tx, tenant_id, owner, [applied_draft(plan, {}, ran), *ran.drafts])
        return ran.applied.records

    return ctx.engine.write(tenant_id, work)


def bank_length(ctx: Context, tenant_id: str, owner: str) -> int:
    """The number of entries in a bank."""
    place = owner, bank_scope(tenant_id, owner).session_id
    row = ctx.engine.read(tenant_id, lambda reader: get(reader, SESSIONS, place))
    return 0 if row is None else row.head_seq


def tidy_sometimes(ctx: Context, tenant_id: str, owner: str, *, since: int) -> None:
    """Tidy a bank if it has grown enough since `since` entries that a store may be over its limit."""
    eviction = ctx.policy.learn.eviction
    smallest = min(eviction.reasoning_max, eviction.tactics_max, eviction.seeds_max, eviction.capsules_max)
    step = max(1, min(EVERY, smallest // 4))
    length = bank_length(ctx, tenant_id, owner)
    if length > since and (step == 1 or length // step != since // step):
        tidy(ctx, tenant_id, owner, leave=0 if step == 1 else step)


def _actions(reader: Reader, owner: str, policy: LearnPolicy, now: str, leave: int) -> list[dict[str, Any]]:
    sizes: dict[MemoryKind, int] = {
        "reasoning": policy.eviction.reasoning_max,
        "tactic": policy.eviction.tactics_max,
        "seed": policy.eviction.seeds_max,
        "trace_capsule": policy.eviction.capsules_max,
    }
    actions: list[dict[str, Any]] = []
    for kind, most in sizes.items():
        if leave and _versions(reader, owner, kind) + leave <= most:
            continue  # there is room even if all are live, and expired records are not recalled meanwhile
        held = [held.memory for held in list_memories(reader, owner, kind, statuses=_LIVE)]
        live = with_counts(reader, owner, held, policy.lessons.uses_max)
        expired = [memory for memory in live if has_expired(memory, now)]
        gone = {memory.id for memory in expired}
        rest = [memory for memory in live if memory.id not in gone]
        evicted = set(to_evict(rest, max(1, most - leave), policy.eviction, now)) if len(rest) + leave > most else set()
        actions += [_retire(memory, "ttl_expired") for memory in expired]
        actions += [_retire(memory, "over_capacity") for memory in rest if memory.id in evicted]
    return actions


def _versions(reader: Reader, owner: str, kind: MemoryKind) -> int:
    return reader.do(Count("items", where=(("kind", "=", kind), ("user_id", "=", owner))))


def _retire(memory: StoredMemory, reason: str) -> dict[str, Any]:
    return {
        "op": "RETIRE",
        "target_store": store_of(memory.kind),
        "target_ids": [memory.id],
        "reason_keys": [reason],
    }


# -- eviction --------------------------------------------------------------------------------------


_RATE = {"reasoning": ("pass_p_hat",), "tactic": ("metrics", "pass_p_hat"), "seed": ("reward", "total")}
_OWN_WEIGHT = 2
_DAY_SECONDS = 86_400


def to_evict(entries: Sequence[StoredMemory], size_max: int, policy: EvictionPolicy, now: str) -> list[str]:
    """The ids to retire so that at most `size_max` entries remain, in order.

    If more are pinned than fit, only the others are retired.
    """
    live = [entry for entry in entries if entry.status not in ("retired", "pruned")]
    surplus = len(live) - size_max
    if surplus <= 0:
        return []
    loose = sorted((entry for entry in live if entry.status != "pinned"), key=lambda entry: entry.id)
    moment = parse_instant(now, path="$.now")
    expired = [entry for entry in loose if has_expired(entry, moment)]
    expired.sort(key=lambda entry: parse_instant(entry.expires_at or now))
    gone = {entry.id for entry in expired}
    order = expired + _ordered([entry for entry in loose if entry.id not in gone], policy, moment)
    return [entry.id for entry in order[:surplus]]


def decayed_score(entry: StoredMemory, half_life_days: float, now: datetime) -> float:
    """The score of an entry, halved for each half-life since its last use."""
    age_days = max((now - _last_used(entry)).total_seconds(), 0.0) / _DAY_SECONDS
    return own_score(entry) * exp2(-age_days / half_life_days)


def own_score(entry: StoredMemory) -> float:
    """The score of an entry, from 0 to 1: the pass rate of the runs that used it, with its own rate counted as two
    runs.
    """
    said = _said(entry)
    return (said * _OWN_WEIGHT + entry.with_tally.passes) / (_OWN_WEIGHT + entry.with_tally.n)


def _said(entry: StoredMemory) -> float:
    """The rate or reward in the record itself, within 0 and 1; 0.5 if absent."""
    found: JsonValue = entry.record
    for name in _RATE.get(entry.kind, ("",)):
        found = found.get(name) if isinstance(found, dict) else None
    if isinstance(found, int | float) and not isinstance(found, bool):
        return float(min(max(found, 0.0), 1.0))
    return 0.5


def _ordered(entries: list[StoredMemory], policy: EvictionPolicy, now: datetime) -> list[StoredMemory]:
    """The entries in order of eviction. They come sorted by id, and sorting is stable, so that ties go by id."""
    by_use = sorted(entries, key=_last_used)
    if policy.method == "lru":
        return by_use
    by_score = sorted(entries, key=lambda entry: decayed_score(entry, policy.half_life_days, now))
    if policy.method == "score_decay":
        return by_score
    places = {entry.id: place for place, entry in enumerate(by_use)}
    for place, entry in enumerate(by_score):
        places[entry.id] += place
    return sorted(entries, key=lambda entry: places[entry.id])


def _last_used(entry: StoredMemory) -> datetime:
    return parse_instant(entry.last_used_at or entry.created_at)
