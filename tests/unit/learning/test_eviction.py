"""What goes when a store is full: never what is pinned, and always the same (RC-21)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.instants import format_instant
from muniment.core.policy import EvictionPolicy
from muniment.learning.records import StoredMemory, Tally
from muniment.learning.tidying import decayed_score, own_score, to_evict

pytestmark = pytest.mark.req("RC-21", "RC-06")

START = datetime(2026, 5, 1, tzinfo=UTC)
NOW = format_instant(START + timedelta(days=100))


def day(number: float) -> str:
    return format_instant(START + timedelta(days=number))


def entry(name: str, made: float = 0, used: float | None = None, **fields: Any) -> StoredMemory:
    if used is not None:
        fields["last_used_at"] = day(used)
    plain = {
        "id": name,
        "kind": "tactic",
        "level": "user",
        "version": 1,
        "record": {},
        "status": "active",
        "created_at": day(made),
    }
    return StoredMemory.model_validate(plain | fields)


def evicted(entries: list[StoredMemory], size: int, method: str = "lru", **policy: Any) -> list[str]:
    return to_evict(entries, size, EvictionPolicy(method=method, **policy), NOW)


def test_nothing_goes_while_there_is_room() -> None:
    assert evicted([entry("a"), entry("b")], 2) == []
    assert evicted([], 1) == []


def test_lru_goes_by_use_or_else_by_birth() -> None:
    entries = [entry("old_used", 0, 90), entry("new", 50), entry("older", 10), entry("stale", 5, 20)]
    assert evicted(entries, 1) == ["older", "stale", "new"]


def test_score_decay_halves_with_age() -> None:
    good = entry("good", 0, 72, with_tally=Tally(n=8, passes=8))
    fair = entry("fair", 0, 100, with_tally=Tally(n=8, passes=2))
    now = START + timedelta(days=100)
    assert decayed_score(good, 14, now) == pytest.approx(0.9 / 4)
    assert decayed_score(fair, 14, now) == pytest.approx(0.3)
    assert evicted([good, fair], 1, "score_decay") == ["good"]
    assert evicted([good, fair], 1, "score_decay", half_life_days=1000) == ["fair"]


def test_a_score_is_what_was_said_and_what_was_seen() -> None:
    assert own_score(entry("a")) == 0.5
    assert own_score(entry("a", record={"metrics": {"pass_p_hat": 0.8}})) == 0.8
    assert own_score(entry("a", record={"metrics": {"pass_p_hat": 1}}, with_tally=Tally(n=2))) == 0.5
    assert own_score(entry("a", kind="seed", record={"reward": {"total": 7.5}})) == 1.0
    assert own_score(entry("a", kind="seed", record={"reward": {"total": -3}})) == 0.0
    assert own_score(entry("a", kind="reasoning", record={"pass_p_hat": 0.25})) == 0.25
    assert own_score(entry("a", record={"metrics": None})) == 0.5


def test_hybrid_wants_both_sides_bad() -> None:
    favourite = entry("favourite", 0, 60, with_tally=Tally(n=20, passes=20))
    failure = entry("failure", 0, 99, with_tally=Tally(n=20, passes=0))
    middling = entry("middling", 0, 70, with_tally=Tally(n=20, passes=2))
    entries = [favourite, failure, middling]
    assert evicted(entries, 2, "lru") == ["favourite"]
    assert evicted(entries, 2, "score_decay", half_life_days=1000) == ["failure"]
    assert evicted(entries, 0, "hybrid", half_life_days=1000) == ["failure", "favourite", "middling"]
    worse = entry("worse", 0, 50, with_tally=Tally(n=20, passes=1))
    assert evicted([*entries, worse], 3, "hybrid", half_life_days=1000) == ["worse"]


@pytest.mark.parametrize("method", ["lru", "score_decay", "hybrid"])
def test_what_has_expired_goes_first(method: str) -> None:
    entries = [entry("a", 0), entry("b", 99, 99, expires_at=day(99.5)), entry("c", 98, expires_at=day(99.2))]
    assert evicted(entries, 1, method) == ["c", "b"]


def test_pins_stay_even_when_they_fill_the_store() -> None:
    pinned = [entry(name, 0, status="pinned", expires_at=day(1)) for name in "abc"]
    assert evicted([*pinned, entry("d", 99)], 2) == ["d"]
    assert evicted(pinned, 1) == []


def test_what_is_retired_takes_no_room() -> None:
    entries = [entry("a", status="retired"), entry("b", status="pruned"), entry("c")]
    assert evicted(entries, 1) == []


ENTRIES = st.lists(
    st.builds(
        entry,
        st.sampled_from("abcdefghij"),
        st.integers(0, 120),
        st.none() | st.integers(0, 120),
        status=st.sampled_from(["active", "pinned", "retired", "temporary", "pruned"]),
        expires_at=st.integers(0, 200).map(day),
        with_tally=st.sampled_from([Tally(), Tally(n=3, passes=1), Tally(n=5, passes=5)]),
    ),
    unique_by=lambda memory: memory.id,
)


@given(ENTRIES, st.integers(1, 8), st.sampled_from(["lru", "score_decay", "hybrid"]), st.randoms())
def test_eviction_is_a_rule(entries: list[StoredMemory], size: int, method: str, chance: Random) -> None:
    gone = evicted(entries, size, method)
    shuffled = list(entries)
    chance.shuffle(shuffled)
    assert evicted(shuffled, size, method) == gone
    by_id = {memory.id: memory for memory in entries}
    assert all(by_id[name].status in ("active", "temporary") for name in gone)
    live = [memory for memory in entries if memory.status not in ("retired", "pruned")]
    pinned = [memory for memory in live if memory.status == "pinned"]
    assert len(live) - len(gone) == (min(len(live), max(size, len(pinned))))
