"""What goes when a store is full (RC-21): never what is pinned, what has expired first, then by the policy's method.

- `lru`: what was not used for the longest time; what was never used counts from when it was made.
- `score_decay`: the lowest score·2^(−age/half-life), the age counted from the last use.
- `hybrid`: the lowest sum of its places in these two orders, so that neither an old favourite nor a fresh failure
  stays for one good side alone.

Ties go by id. What is retired or pruned takes no room.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import exp2

from muniment.core.instants import parse_instant
from muniment.core.policy import EvictionPolicy
from muniment.core.record import JsonValue
from muniment.learning.keys import has_expired
from muniment.learning.stored_memory import StoredMemory

__all__ = ["decayed_score", "own_score", "to_evict"]

_RATE = {"reasoning": ("pass_p_hat",), "tactic": ("metrics", "pass_p_hat"), "seed": ("reward", "total")}
_OWN_WEIGHT = 2
_DAY_SECONDS = 86_400


def to_evict(entries: Sequence[StoredMemory], size_max: int, policy: EvictionPolicy, now: str) -> list[str]:
    """The ids that must go for `entries` to be no more than `size_max`, the first to go first.

    Where more are pinned than fit, all that is not pinned goes and no more.
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
    """The score of an entry, halved for each half-life since it was last used."""
    age_days = max((now - _last_used(entry)).total_seconds(), 0.0) / _DAY_SECONDS
    return own_score(entry) * exp2(-age_days / half_life_days)


def own_score(entry: StoredMemory) -> float:
    """The score of an entry, from 0 to 1: the pass rate of the runs that used it, with what its record says of it
    counted as two runs.
    """
    said = _said(entry)
    return (said * _OWN_WEIGHT + entry.with_tally.passes) / (_OWN_WEIGHT + entry.with_tally.n)


def _said(entry: StoredMemory) -> float:
    """The rate or reward that the record itself names, within 0 and 1; 0.5 where it names none."""
    found: JsonValue = entry.record
    for name in _RATE.get(entry.kind, ("",)):
        found = found.get(name) if isinstance(found, dict) else None
    if isinstance(found, int | float) and not isinstance(found, bool):
        return float(min(max(found, 0.0), 1.0))
    return 0.5


def _ordered(entries: list[StoredMemory], policy: EvictionPolicy, now: datetime) -> list[StoredMemory]:
    """The first to go first. The entries come by id, and sorting is stable, so that ties go by id."""
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
