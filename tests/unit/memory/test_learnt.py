"""The learnt ranking: what each trait is, what it adds, that it is told, and that it can be left out."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.core.policy import RecallPolicy
from muniment.errors import InvalidInput
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.ranking import POOL, TRAITS, rank, ranking, traits_of
from muniment.memory.scoring import Dense

START = datetime(2024, 3, 4, 9, tzinfo=UTC)
NOW = date(2024, 6, 1)
WORDS = ("heron", "mill", "heron mill", "fish")


def _index(*turns: tuple[str, str, str, str]) -> MemoryIndex:
    """Turns as (session, speaker, role, text)."""
    return MemoryIndex(
        SpokenTurn(session, speaker, role, START + timedelta(hours=place), text)
        for place, (session, speaker, role, text) in enumerate(turns)
    )


def _traits(query: str, index: MemoryIndex, dense: Dense | None = None) -> dict[int, dict[str, float]]:
    order, _, traits = traits_of(query, index, RecallPolicy(), NOW, dense)
    return {
        ordinal: dict(zip(TRAITS, row, strict=True))
        for ordinal, row in zip(order.tolist(), traits.tolist(), strict=True)
    }


def test_the_one_named_and_dates_are_no_part_of_what_is_covered() -> None:
    index = _index(("a", "Ana", "user", "I paint herons."), ("a", "Ben", "user", "I paint barns."))
    assert math.isclose(_traits("What herons does Ana paint in May?", index)[0]["covers"], 1.0)


def test_what_stands_for_a_word_counts_where_the_word_itself_is_not_said() -> None:
    index = _index(
        ("a", "Ana", "user", "My puppy chewed the rug."),
        ("b", "Ana", "user", "A pet is expensive, and so is a dog."),
        ("c", "Ana", "user", "Expensive, all of it."),
    )
    found = _traits("Which pets are expensive?", index)
    assert found[0]["means"] > 0
    assert found[1]["means"] == found[2]["means"] == 0
    assert _traits("What was chewed?", index)[0]["means"] == 0, "nothing stands for it"


def test_who_opens_and_who_assists() -> None:
    index = _index(
        ("a", "", "user", "Which heron did you like?"),
        ("a", "", "assistant", "The grey heron."),
        ("b", "", "user", "A heron flew by, and I told everybody about it at length, again and again, for hours."),
        ("b", "Rex", "assistant", "A heron!"),
    )
    found = _traits("heron", index)
    assert [found[each]["opens"] for each in range(4)] == [1, 0, 1, 0]
    assert [found[each]["assistant"] for each in range(4)] == [0, 1, 0, 0], "an assistant with a name is a person"
    assert _traits("Which heron did you recommend?", index)[1]["assistant"] == 0, "asked what it said"


def test_the_session_is_told_by_its_other_candidates() -> None:
    index = _index(
        ("a", "Ana", "user", "The heron nests by the mill."),
        ("a", "Ben", "user", "Herons eat fish."),
        ("b", "Ana", "user", "Herons again."),
    )
    found = _traits("heron nest mill", index)
    assert found[1]["session"] > found[0]["session"] > 0
    assert found[2]["session"] == 0


def test_nearness_falls_with_the_place() -> None:
    index = _index(*[("a", "Ana", "user", f"heron {number}") for number in range(6)])
    near = np.array([0.1, 0.5, 0.3, 0.2, 0.6, 0.0], np.float32)
    found = _traits("heron", index, Dense(near, None))
    assert sorted(found, key=lambda each: -found[each]["near"]) == [4, 1, 2, 3, 0, 5]
    assert found[4]["near"] == 1.0
    assert all(each["near"] == 0 for each in _traits("heron", index).values()), "no vectors, no nearness"


def test_what_was_learnt_moves_the_order_is_told_and_can_be_left_out() -> None:
    index = _index(
        ("a", "", "user", "My cousin Ida breeds herons in Ghent, and she sells them."),
        ("a", "", "assistant", "Herons are fine birds. Herons in Ghent are bred by many a cousin. Herons! " * 2),
        *[("z", "", "user", f"Filler number {number} about nothing.") for number in range(8)],
    )
    query = "Where does cousin Ida breed herons?"
    learnt = rank(query, index, RecallPolicy(), NOW, 5)
    plain = rank(query, index, RecallPolicy(ranking=""), NOW, 5)
    assert learnt[0].ordinal == 0
    assert "opens its session" in learnt[0].reasons
    assert "learnt" in learnt[0].parts
    assert all("learnt" not in hit.parts for hit in plain)
    for hit in (*learnt, *plain):
        assert math.isclose(sum(hit.parts.values()), hit.score, abs_tol=1e-9)


@pytest.mark.parametrize("name", ["0" * 16, "f" * 64])
def test_a_ranking_that_the_package_has_not_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        rank("heron", _index(("a", "Ana", "user", "heron")), RecallPolicy(ranking=name), NOW, 1)
    assert caught.value.path == "$.recall.ranking"


def test_the_default_names_the_file_that_the_package_has() -> None:
    made = ranking(RecallPolicy().ranking)
    assert made.words.shape == made.vectors.shape == (len(TRAITS),)
    assert made.words[TRAITS.index("near")] == 0, "without vectors nothing is near"


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(("heron", "mill", "heron mill", "fish")), min_size=1, max_size=3 * POOL),
    st.integers(1, 200),
)
def test_how_many_are_wanted_does_not_change_who_comes_first(texts: list[str], count: int) -> None:
    index = _index(*[(str(place // 5), "Ana", "user", text) for place, text in enumerate(texts)])
    every = [hit.ordinal for hit in rank("heron mill", index, RecallPolicy(), NOW, 300)]
    assert [hit.ordinal for hit in rank("heron mill", index, RecallPolicy(), NOW, count)] == every[:count]
    scores = [hit.score for hit in rank("heron mill", index, RecallPolicy(), NOW, 300)]
    assert scores == sorted(scores, reverse=True)
