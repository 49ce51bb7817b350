"""Which of two turns is newer, where the index alone cannot tell: sessions that speak within one second."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from muniment.core.policy import RecallPolicy
from muniment.memory.recall.index import MemoryIndex, SpokenTurn
from muniment.memory.recall.moments import Moments
from muniment.memory.recall.rank import rank

START = datetime(2025, 1, 6, 9, tzinfo=UTC)


def said(*turns: tuple[str, float, str]) -> MemoryIndex:
    return MemoryIndex(
        [SpokenTurn(session, "user", "user", START + timedelta(seconds=at), text) for session, at, text in turns]
    )


class Clock:
    """Exact moments by ordinal; counts what it is asked."""

    def __init__(self, *moments: str) -> None:
        self.moments, self.asked = moments, list[list[int]]()

    def __call__(self, turns: Sequence[int]) -> list[str]:
        self.asked.append(list(turns))
        return [self.moments[turn] for turn in turns]


def test_only_turns_of_several_sessions_in_one_second_are_asked_about_and_once() -> None:
    index = said(("a", 0, "one"), ("a", 0, "two"), ("a", 5, "three"), ("b", 5, "four"), ("c", 9, "five"))
    clock = Clock("", "", "5.7", "5.2", "")
    moments = Moments(index, clock)
    start = int(START.timestamp())
    expected = [(start, 0), (start, 0), (start + 5, 1), (start + 5, 0), (start + 9, 0)]
    assert moments.of([0, 1, 2, 3, 4]) == moments.of([0, 1, 2, 3, 4]) == expected
    assert clock.asked == [[2, 3]]
    assert moments.of([2, 4]) == [(start + 5, 0), (start + 9, 0)]
    assert Moments(index, None).of([2, 3]) == [(start + 5, 0), (start + 5, 0)]
    assert moments.of([]) == []


@pytest.mark.parametrize("query", ["Where does she live?", "Where did I move to?"])
@pytest.mark.parametrize("newer", [0, 1])
def test_of_two_sessions_in_one_second_the_later_statement_stands(query: str, newer: int) -> None:
    index = said(("a", 0, "I moved to Hamburg."), ("b", 0, "I moved to Berlin."))
    clock = Clock(*("0.9" if ordinal == newer else "0.1" for ordinal in (0, 1)))
    found = rank(query, index, RecallPolicy(), date(2025, 12, 1), 10, exact_moments=clock)
    assert [hit.ordinal for hit in found] == [newer, 1 - newer]
