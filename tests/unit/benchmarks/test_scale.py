"""The benchmark of large stores: its events are the same in every size, and its model says where it is off."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest
from benchmarks.scale import BY_EVENTS, BY_LARGE, FLAT, large_events, line, model
from benchmarks.scale_asking import questions
from benchmarks.scale_stores import ASKED, FORGOTTEN, PROBE_EVENTS, Files, build, make_events

import muniment

SIZES = (100_000, 300_000, 1_000_000)


def rows(**wrong: float) -> dict[int, dict[str, Any]]:
    made: dict[int, dict[str, Any]] = {}
    for size in SIZES:
        made[size] = dict.fromkeys(FLAT, 5.0) | dict.fromkeys(BY_EVENTS, 3.0 + size / 1000)
        made[size] |= {name: 1.0 + large_events(size) / 1000 for name in BY_LARGE} | {"search_cold_blocks": 100.0}
    made[SIZES[-1]] |= wrong
    return made


def test_a_line_goes_through_its_points() -> None:
    assert line([(1, 5), (3, 9)]) == pytest.approx((3, 2))
    assert line([(0, 1), (1, 2), (2, 3)]) == pytest.approx((1, 1))


def test_the_model_tells_the_largest_from_the_others() -> None:
    told = model(rows())
    assert (told["fitted_to"], told["held_against"]) == ([100_000, 300_000], 1_000_000)
    assert told["within_a_fifth"] == told["predicted"] == len(FLAT) + len(BY_EVENTS) + len(BY_LARGE)
    assert told["load_s_each_million"] == pytest.approx(1000)
    assert told["search_cold_blocks_growth"] == 1.0


def test_a_miss_is_told() -> None:
    told = model(rows(forget_ms=10.0, store_mb=1500.0))
    assert told["within_a_fifth"] == told["predicted"] - 2
    assert (told["forget_ms_off"], told["forget_ms_growth"]) == (-0.5, 2.0)
    assert told["store_mb_off"] == pytest.approx(1003 / 1500 - 1)


def test_the_events_of_a_size_are_the_first_of_a_larger_one() -> None:
    small = list(islice(make_events(200), 9_000))
    large = list(islice(make_events(200), 12_000))
    assert small == large[:9_000]
    of_user = Counter(event["user_id"] for event in small)
    assert {of_user[user] for user in (*ASKED, *FORGOTTEN)} == {PROBE_EVENTS}
    assert of_user["large"] == 500
    assert len(of_user) == 200


@pytest.mark.soak
def test_a_store_grows_out_of_a_smaller_one_and_answers_every_question(tmp_path: Any) -> None:
    """On SQLite, with few users: all that is asked of a store can be asked of this one."""
    place = Files(tmp_path)
    first = build(place, 6_000, None, 20)
    then = build(place, 6_100, first, 20)
    assert (first["events"], then["events"]) == (6_000, 6_100)
    assert then["load_s"] > first["load_s"]
    with muniment.open(place.store(6_100).url) as mem:
        for question in questions():
            works = question.works(mem)
            assert works, question.name
            works[0]()
        assert mem.verify(quick=True).ok
