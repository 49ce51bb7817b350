"""No text costs more than it is long: twice a hostile text is at most 2.4 times the work, wherever it is read.

Observed, searched among, searched by, composed from, composed by, extracted from, verified against. `make soak` walks
through all stretches of all families, alone and amid a text, at larger sizes, and verifies them too.
"""

from __future__ import annotations

import re

import pytest
from doubling import GROWTH_MAX, find_growth
from hostile_texts import FAMILIES, hostile_text

from effort import SOAK
from muniment.memory.recall import index

SIZES = (8_500, 17_000)
"""A turn over 8,000 signs is shown by excerpts, which is a step and no growth; queries are read up to 20,000 signs."""
STRETCHES = [
    pytest.param(stretch, id=f"{family}: {stretch!r}")
    for family, stretches in FAMILIES.items()
    for stretch in (stretches if SOAK else stretches[:2])
]


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, True] if SOAK else [False], ids=lambda alone: "alone" if alone else "amid")
@pytest.mark.parametrize("stretch", STRETCHES)
def test_twice_the_text_is_about_twice_the_work(stretch: str, alone: bool) -> None:
    found = find_growth(lambda size: hostile_text(stretch, size, alone=alone), SIZES, is_verified=SOAK)
    assert not found, f"more than {GROWTH_MAX} times the work for twice the text: {found}"


def test_the_harness_tells_the_square_of_a_text_from_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is for: a reader that begins again at the start for every word is found, and by name."""
    plain, never = index.passage_spans, re.compile("[A-Z]\0")

    def again_and_again(text: str) -> list[tuple[int, int]]:
        for at in range(0, len(text), 4):
            never.search(text, 0, at)
        return plain(text)

    monkeypatch.setattr(index, "passage_spans", again_and_again)
    found = find_growth(lambda size: hostile_text("tea ", size), SIZES)
    assert set(found) >= {"observe", "observe of a tool"}
    assert "extract" not in found
