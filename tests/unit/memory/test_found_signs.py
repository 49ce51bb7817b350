"""Does memory hold anything on what was asked: the signs of a query, read from all turns of the scope."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from muniment.core.policy import RecallPolicy
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.evidence import FOUND_SIGNS, read_found
from muniment.memory.query import read_query
from muniment.memory.ranking import rank, signs_of
from muniment.memory.scoring import Dense, score
from products import for_each

TODAY = date(2026, 5, 1)
START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = RecallPolicy()

TALK = (
    ("Ana", "I restored an old violin last winter."),
    ("Ben", "Did you restore the violin all by yourself?"),
    ("Ana", "Yes, the varnish took me weeks."),
    ("Ben", "I run a small bakery near the harbour."),
    ("Ana", "Do you bake rye bread in your bakery?"),
    ("Ben", "Every morning, the rye bread sells out by nine."),
    ("Ana", "My allotment has tomatoes and beans this year."),
    ("Ben", "I sold my motorcycle to a neighbour."),
    ("Ana", "The weather was dreadful on Monday."),
    ("Ben", "It was, the harbour was closed."),
)


def index_of(*turns: tuple[str, str]) -> MemoryIndex:
    return MemoryIndex(
        SpokenTurn(f"s{place // 4}", speaker, "user", START + timedelta(hours=place), text)
        for place, (speaker, text) in enumerate(turns)
    )


def found(query: str, index: MemoryIndex | None = None, dense: Dense | None = None) -> dict[str, float]:
    whole = signs_of(query, index_of(*TALK) if index is None else index, POLICY, TODAY, 10, dense)[2]
    return dict(zip(FOUND_SIGNS, whole[0].tolist(), strict=True))


ASKED = [
    ("What did {} restore, an old violin?", "Ana", "Ben"),
    ("Where is the small bakery that {} runs?", "Ben", "Ana"),
    ("Does the rye bread of {} sell out?", "Ben", "Ana"),
    ("Who bought the motorcycle that {} sold?", "Ben", "Ana"),
    ("Which tomatoes and beans has {} in the allotment?", "Ana", "Ben"),
]


@for_each(("query", "who", "other"), ASKED)
def test_what_the_one_named_said_is_told_from_what_others_said(query: str, who: str, other: str) -> None:
    theirs, swapped = found(query.format(who)), found(query.format(other))
    assert theirs["named"] == swapped["named"] == 1
    assert theirs["says"] > theirs["rival"]
    assert swapped["says"] < swapped["rival"]
    assert theirs["says"] == swapped["rival"]
    assert theirs["part"] > 0 > swapped["part"]


@pytest.mark.req("TM-11")
@for_each(("query", "who", "other"), ASKED)
def test_asked_of_another_every_hit_is_less_likely(query: str, who: str, other: str) -> None:
    theirs = rank(query.format(who), index_of(*TALK), POLICY, TODAY, 10)
    swapped = rank(query.format(other), index_of(*TALK), POLICY, TODAY, 10)
    assert swapped[0].chance < theirs[0].chance


def test_who_asks_has_not_said_it() -> None:
    """Ana asks about rye bread and Ben about the violin: neither says anything on it."""
    assert found("What rye bread does Ana bake?")["part"] < 0
    assert found("Which violin did Ben restore?")["says"] < found("Which violin did Ana restore?")["says"]
    only_asked = index_of(("Ana", "Did you sell the canoe?"), ("Ben", "Let us talk later."), ("Ana", "Fine by me."))
    assert found("Who will sell the canoe?", only_asked)["says"] == 0
    assert found("Who will sell the canoe?", only_asked)["hears"] < 1


def test_where_nobody_is_named_everybody_counts() -> None:
    signs = found("Who restored an old violin?")
    assert signs["named"] == signs["rival"] == signs["part"] == 0
    assert signs["says"] == pytest.approx(1.0)
    both = found("Did Ana and Ben restore an old violin?")
    assert both["named"] == both["rival"] == 0


@for_each("query", ["Zorblax quidditch", "", "?", "Ana", "Ana and Ben", "2026"])
def test_a_query_that_nothing_holds_has_no_such_signs(query: str) -> None:
    signs = found(query)
    assert signs["says"] == signs["rival"] == 0
    assert all(np.isfinite(value) for value in signs.values())


def test_what_may_stand_for_a_word_counts_in_part() -> None:
    index = index_of(("Ana", "We adopted a dog in June."), ("Ben", "Good for you."), ("Ana", "He is a terrier."))
    assert 0 < found("Which pets are there?", index)["says"] < 1


def test_only_where_it_may_look_counts() -> None:
    index = index_of(*TALK)
    asked = read_query("Which violin did Ana restore?", index.speakers, TODAY)
    scores = score(asked, index, POLICY)
    says = FOUND_SIGNS.index("says")
    assert read_found(asked, index, POLICY, scores)[0, says] > 0
    none = scores._replace(eligible=np.zeros(len(TALK), bool))
    assert read_found(asked, index, POLICY, none)[0, says] == 0


def test_the_nearest_is_sought_among_those_who_are_asked_of() -> None:
    near = np.zeros(len(TALK))
    near[0] = 1.0  # Ana's
    dense = Dense(near, near)
    of_ana, of_ben, of_any = (found(f"What did {who} mend?", dense=dense) for who in ("Ana", "Ben", "they"))
    assert of_ana["nearest"] > of_ana["rival_nearest"]
    assert of_ben["nearest"] < of_ben["rival_nearest"] == of_ana["nearest"]
    assert of_any["nearest"] == of_ana["nearest"]
    assert of_any["rival_nearest"] == 0


def test_the_same_talk_gives_the_same_signs() -> None:
    for query, who, _ in ASKED:
        assert found(query.format(who)) == found(query.format(who))
