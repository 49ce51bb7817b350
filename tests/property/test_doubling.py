"""No text costs more than it is long: twice a hostile text is at most 2.4 times the work, wherever it is read.

Observed, searched among, composed from, composed by (which is to search by it), extracted from, verified against.
Every run walks through one stretch of each third family; `make soak` through all of them, alone and amid a text, for
every reader, and verifies them too.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hostile_texts import FAMILIES, hostile_text

import doubling
from doubling import GROWTH_MAX, STAGES, find_growth
from effort import SOAK, one_in
from muniment.memory.recall import index
from products import for_each

SIZES = (8_500, 17_000)
"""A turn over 8,000 signs is shown by excerpts, which is a step and no growth; queries are read up to 20,000 signs."""
STRETCHES = [
    pytest.param(stretch, id=f"{family}: {stretch!r}")
    for family, stretches in one_in(3, list(FAMILIES.items()))
    for stretch in (stretches if SOAK else stretches[:1])
]


@pytest.mark.slow
@for_each("alone", [False, True] if SOAK else [False], ids=lambda alone: "alone" if alone else "amid")
@for_each("stretch", STRETCHES)
def test_twice_the_text_is_about_twice_the_work(stretch: str, alone: bool) -> None:
    stages = STAGES if SOAK else STAGES - {"search by it", "compose for a responder", "verify it"}
    found = find_growth(lambda size: hostile_text(stretch, size, alone=alone), SIZES, stages=stages)
    assert not found, f"more than {GROWTH_MAX} times the work for twice the text: {found}"


@pytest.mark.parametrize("is_planted", [True, False], ids=["planted", "as it is"])
def test_the_harness_tells_the_square_of_a_text_from_the_text(
    monkeypatch: pytest.MonkeyPatch, is_planted: bool
) -> None:
    """What it is for: a reader that begins again at the start for every other word is found, and by name.

    Two doublings, so that the square is sixteen times as much and its limit not quite six.
    """
    plain, never = index.passage_spans, re.compile("[A-Z]\0")

    def again_and_again(text: str) -> list[tuple[int, int]]:
        for at in range(0, len(text) if is_planted else 0, 8):
            never.search(text, 0, at)
        return plain(text)

    monkeypatch.setattr(index, "passage_spans", again_and_again)
    readers = {"observe", "observe of a tool"}
    found = find_growth(
        lambda size: hostile_text("tea ", size), (SIZES[0] // 2, SIZES[1]), stages={*readers, "extract"}, is_sure=True
    )
    assert set(found) == (readers if is_planted else set())


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("calm", [0, 2, 7, 12])
@pytest.mark.parametrize("loaded", SIZES)
def test_a_loaded_machine_neither_hides_a_growth_nor_makes_one(
    monkeypatch: pytest.MonkeyPatch, power: int, calm: int, loaded: int
) -> None:
    """One size is measured at five times its work whenever it is measured but once, which is all it needs."""
    measured: Counter[int] = Counter()

    def walk(text: str, **_: object) -> dict[str, float]:
        size = len(text)
        measured[size] += 1
        is_disturbed = size == loaded and measured[size] != calm + 1
        return {"extract": 0.001 + 0.05 * (size / SIZES[0]) ** power * (5 if is_disturbed else 1)}

    monkeypatch.setattr(doubling, "walk", walk)
    monkeypatch.setattr(doubling, "_standing", lambda: {"extract": 0.004})  # itself measured under a load
    found = find_growth("x".__mul__, SIZES, stages={"extract"}, is_sure=True)
    assert set(found) == ({"extract"} if power == 2 else set())
    if power == 1:
        measured.clear()
        assert not find_growth("x".__mul__, SIZES, stages={"extract"})
