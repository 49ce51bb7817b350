"""Ids that we make: in the order of making, unique, and without a word of what else was made (X-09)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment.core.outside.system import SystemIds

pytestmark = pytest.mark.req("X-09")


def stamp(id_: str) -> int:
    return int(id_.removeprefix("evt_")[:16], 16)


def test_ids_rise_and_are_all_different() -> None:
    ids = SystemIds()
    with ThreadPoolExecutor(4) as pool:
        made = [id_ for batch in pool.map(lambda _: [ids.new("evt") for _ in range(500)], range(4)) for id_ in batch]
    assert len(set(made)) == len({stamp(id_) for id_ in made}) == 2000
    alone = [ids.new("evt") for _ in range(500)]
    assert alone == sorted(alone)
    assert abs((stamp(alone[-1]) >> 16) - time.time_ns() // 1_000_000) < 60_000


@pytest.mark.parametrize("others", [0, 1, 5])
def test_two_ids_do_not_tell_how_many_lie_between_them(monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    """Under a clock that stands still, where a count would show at once."""
    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_000_000_000_000)
    steps = []
    for _ in range(200):
        ids = SystemIds()
        first = stamp(ids.new("evt"))
        for _ in range(others):
            ids.new("evt")
        steps.append(stamp(ids.new("evt")) - first)
    assert min(steps) > 0
    assert len(set(steps)) > 150
    assert max(steps) - min(steps) > 20_000
