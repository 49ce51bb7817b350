"""Each part of a turn's score by itself, against the same worked out turn by turn, and what a part does not touch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import term_hash
from muniment.core.text.times.when import Window
from muniment.memory import scoring
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.query import Kind, Query, Slot
from muniment.memory.scoring import Dense, idf, match_turns, score, score_words, share_of, spread, weigh
from products import for_each

START = datetime(2023, 5, 30, 12, tzinfo=UTC)
POLICY = RecallPolicy()
NOTHING = Query(())
"""A query that asks for nothing at all."""

TURNS = (
    ("a", "Ann", "user", 0, "apple bridge apple"),
    ("a", "Bob", "assistant", 1, "candle"),
    ("a", "Ann", "user", 2, "Do you like an apple?"),
    ("b", "Bob", "assistant", 24, "dragon engine forest garden harbour"),
    ("b", "Ann", "user", 48, "I saw bridges. Is there an engine?"),
    ("c", "Cid", "tool", 90, "12 candles"),
)
"""Session, speaker, role, hours since the start, and what was said."""
WORDS = (("appl", "bridg", "appl"), ("candl",), ("appl",), (), ("bridg",), ("candl",))
"""What of the words below each says."""


def index_of(turns: Sequence[tuple[str, str, str, int, str]] = TURNS) -> MemoryIndex:
    return MemoryIndex(SpokenTurn(a, b, c, START + timedelta(hours=hours), text) for a, b, c, hours, text in turns)


def slot(word: str, repeats: int = 1) -> Slot:
    return Slot(word, term_hash(word), repeats)


def heard_by(index: MemoryIndex, counts: Sequence[float], weights: Mapping[int, float], share: float) -> list[float]:
    """What each turn hears of a term: its own, and its neighbours' of the same session."""
    lengths = [max(int(length), 1) for length in index.length]
    mean = sum(lengths) / len(lengths)
    worth = [count / (1 - share + share * length / mean) for count, length in zip(counts, lengths, strict=True)]
    return [
        sum(
            weight * worth[at - offset]
            for offset, weight in weights.items()
            if 0 <= at - offset < len(worth) and index.session[at - offset] == index.session[at]
        )
        for at in range(len(worth))
    ]


def expected_words(
    index: MemoryIndex, policy: RecallPolicy, asked: Mapping[str, int], dated: Mapping[str, Sequence[bool]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    weights = {0: policy.own, 1: policy.before_1, 2: policy.before_2, -1: policy.after_1, -2: policy.after_2}
    total = np.zeros(len(WORDS))
    for word, repeats in asked.items():
        heard = heard_by(index, [said.count(word) for said in WORDS], weights, policy.length)
        if word in dated:
            heard = [one + policy.session_date * is_on for one, is_on in zip(heard, dated[word], strict=True)]
        holding = sum(value > 0 for value in heard)
        worth = min(repeats, policy.term_repeats_max) * idf(len(WORDS), holding)
        total += [worth * (policy.saturation + 1) * value / (value + policy.saturation) for value in heard]
    return total


def test_a_term_weighs_less_the_more_turns_have_it_and_never_nothing() -> None:
    assert idf(10, 0) == pytest.approx(math.log(22))
    assert idf(10, 3) == pytest.approx(math.log(1 + 7.5 / 3.5))
    assert idf(10, 10) == pytest.approx(math.log(1 + 0.5 / 10.5))


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_a_word_asked_for_more_than_once_counts_so_often_up_to_a_limit(repeats: int) -> None:
    index = index_of()
    query = NOTHING._replace(slots=(slot("appl"), slot("bridg", repeats), slot("zebra", 2)))
    lexical, kinds, _ = score_words(query, index, POLICY)
    assert kinds is None
    assert np.allclose(lexical, expected_words(index, POLICY, {"appl": 1, "bridg": repeats}, {}))


def test_every_weight_of_the_policy_is_the_one_that_counts() -> None:
    odd = RecallPolicy(
        own=3, before_1=0.7, before_2=0.3, after_1=0.2, after_2=0.1, saturation=1.7, length=0.8, term_repeats_max=3
    )
    index = index_of()
    query = NOTHING._replace(slots=(slot("appl", 5), slot("candl")))
    assert np.allclose(score_words(query, index, odd)[0], expected_words(index, odd, {"appl": 5, "candl": 1}, {}))


@for_each(
    ("word", "days"),
    [
        ("#m5", (True, True, True, True, False, False)),
        ("#m6", (False, False, False, False, True, True)),
        ("#d5-30", (True, True, True, False, False, False)),
        ("#d5-31", (False, False, False, True, False, False)),
        ("#d6-1", (False, False, False, False, True, False)),
        ("#d6-30", (False,) * 6),
        ("2023", (True,) * 6),
        ("2024", (False,) * 6),
    ],
)
def test_the_day_on_which_it_was_said_counts_as_if_it_were_said(word: str, days: Sequence[bool]) -> None:
    index = index_of()
    policy = RecallPolicy(session_date=0.6)
    lexical, _, _ = score_words(NOTHING._replace(slots=(slot(word), slot("appl"))), index, policy)
    assert np.allclose(lexical, expected_words(index, policy, {word: 1, "appl": 1}, {word: days}))


@for_each("word", ["123", "12345", "20a3", "٢٠٢٣", "x#m5"])
def test_what_is_no_date_is_none(word: str) -> None:
    lexical, _, _ = score_words(NOTHING._replace(slots=(slot(word),)), index_of(), POLICY)
    assert not lexical.any()


def test_portions_of_the_query_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few terms are scored at once: the same sums."""
    query = NOTHING._replace(
        slots=(slot("appl"), slot("#m6"), slot("zebra"), slot("bridg", 2), slot("candl")),
        kinds=(Kind((0,), (term_hash("candl"),)), Kind((1,), (term_hash("bridg"), term_hash("engin")))),
    )
    index = index_of()
    whole = score_words(query, index, POLICY)
    for cells in (1, 12, 18):
        monkeypatch.setattr(scoring, "_CELLS_MAX", cells)
        part = score_words(query, index, POLICY)
        assert np.allclose(part[0], whole[0])
        assert whole[1] is not None
        assert part[1] is not None
        assert np.allclose(part[1], whole[1])


def test_what_may_stand_for_a_word_counts_less_where_the_words_are_said_anyway() -> None:
    index = index_of()
    candles = Kind((0,), (term_hash("candl"), term_hash("bridg")))
    for asked in (("zebra",), ("zebra", "appl"), ("appl",)):
        for policy in (RecallPolicy(), RecallPolicy(kinds=0.8, kinds_damping=0.3, kinds_before=0.4, kinds_after=0.1)):
            lexical, kinds, _ = score_words(
                NOTHING._replace(slots=tuple(map(slot, asked)), kinds=(candles,)), index, policy
            )
            plain = score_words(NOTHING._replace(slots=tuple(map(slot, asked))), index, policy)[0]
            assert np.array_equal(lexical, plain)
            weights = {0: policy.own, 1: policy.before_1, 2: policy.before_2, -1: policy.after_1, -2: policy.after_2}
            worth = {}
            covered = np.zeros(len(WORDS))
            for word in asked:
                heard = heard_by(index, [said.count(word) for said in WORDS], weights, policy.length)
                worth[word] = idf(len(WORDS), sum(value > 0 for value in heard))
                covered += [worth[word] * (value > 0) for value in heard]
            damped = policy.kinds * (1 - policy.kinds_damping * covered.max() / sum(worth.values()))
            near = {0: 1.0, 1: policy.kinds_before, -1: policy.kinds_after}
            counts = [said.count("candl") + said.count("bridg") for said in WORDS]
            heard = heard_by(index, counts, near, policy.length)
            weight = damped * idf(len(WORDS), sum(value > 0 for value in heard))
            assert kinds is not None
            assert np.allclose(kinds, [weight * value / (value + 1) for value in heard])


def test_where_nothing_may_stand_for_it_there_is_no_such_part() -> None:
    index = index_of()
    kinds = (Kind((0,), (term_hash("candl"),)),)
    query = NOTHING._replace(slots=(slot("appl"),), kinds=kinds)
    assert score_words(query, index, RecallPolicy(kinds=0.0))[1] is None
    assert score_words(query._replace(kinds=()), index, POLICY)[1] is None
    assert score_words(query._replace(slots=()), index, POLICY)[1] is None
    everywhere = NOTHING._replace(slots=(slot("2023"),), kinds=kinds)
    assert score_words(everywhere, index, RecallPolicy(kinds_damping=1.0))[1] is None
    lexical, none, _ = score_words(query, MemoryIndex([]), POLICY)
    assert (len(lexical), none) == (0, None)


def test_values_stay_in_their_session_and_in_their_row() -> None:
    index = index_of()
    ordinals, values = np.array([0, 2, 3, 5]), np.array([1.0, 10.0, 100.0, 1000.0])
    weights = {0: 1.0, 1: 0.5, 2: 0.25, -1: 0.125, -2: 0.0625}
    one = spread(index, ordinals, values, weights)
    assert one.dtype == np.float64
    assert one.tolist() == [1 + 0.625, 0.5 + 1.25, 10 + 0.25, 100.0, 50.0, 1000.0]
    starts = np.array([0, 0, 6, 6])
    rows = spread(index, ordinals, values, weights, starts, 2).reshape(2, 6)
    assert rows.tolist() == [[1.625, 1.75, 10.25, 0, 0, 0], [0, 0, 0, 100, 50, 1000]]
    assert spread(index, ordinals, values, {0: 0.0, 1: 0.0}, starts, 2).tolist() == [0.0] * 12
    assert spread(index, np.array([], int), np.array([]), weights, None, 3).tolist() == [0.0] * 18


# -- who, when, what sort of turn ----------------------------------------------------------------------


def parts_of(query: Query, policy: RecallPolicy = POLICY, dense: Dense | None = None) -> dict[str, list[float]]:
    got = score(query, index_of(), policy, dense)
    assert np.allclose(got.total, sum(got.parts.values()))
    return {name: part.tolist() for name, part in got.parts.items() if name != "question"}


def test_a_query_that_asks_for_nothing_finds_nothing() -> None:
    got = score(NOTHING, index_of(), POLICY)
    assert set(got.parts) == {"question"}
    assert got.eligible is not None
    assert not got.eligible.any()


def test_all_that_is_looked_up_is_asked_for_at_once() -> None:
    class Asked(MemoryIndex):
        prepared: Sequence[int] = ()

        def prepare(self, terms: Sequence[int]) -> None:
            self.prepared = terms

    index = Asked([])
    query = NOTHING._replace(slots=(slot("appl"),), kinds=(Kind((0,), (term_hash("candl"),)),))
    score(query, index, POLICY)
    assert {term_hash("appl"), term_hash("candl"), term_hash("#q")} <= set(index.prepared)


def test_words_and_what_stands_for_them_are_measured_by_the_best() -> None:
    query = NOTHING._replace(slots=(slot("appl"),), kinds=(Kind((0,), (term_hash("candl"),)),))
    index = index_of()
    lexical, kinds, _ = score_words(query, index, POLICY)
    assert kinds is not None
    best = (lexical + kinds).max()
    got = score(query, index, POLICY)
    assert np.allclose(got.parts["words"], lexical / best)
    assert np.allclose(got.parts["kinds"], kinds / best)
    assert got.eligible is not None
    assert got.eligible.tolist() == [True, True, True, False, False, True]
    away = score(query._replace(kinds=(Kind((0,), (term_hash("zebra"),)),)), index, POLICY)
    assert "kinds" not in away.parts
    assert away.parts["words"].max() == 1.0


def test_who_said_it_counts_where_somebody_is_asked_about() -> None:
    assert parts_of(NOTHING._replace(speaker=1), RecallPolicy(speaker=0.7)) == {"speaker": [0, 0.7, 0, 0.7, 0, 0]}
    assert parts_of(NOTHING._replace(speaker=0), RecallPolicy(speaker=0.7)) == {"speaker": [0.7, 0, 0.7, 0, 0.7, 0]}
    role = RecallPolicy(role=0.6)
    user, assistant = [0.6, 0, 0.6, 0, 0.6, 0], [0, 0.6, 0, 0.6, 0, 0]
    assert parts_of(NOTHING._replace(asker=True), role) == {"role": user}
    assert parts_of(NOTHING._replace(addressed=True), role) == {"role": assistant}
    assert parts_of(NOTHING._replace(addressed=True, asker=True), role) == {"role": assistant}


@pytest.mark.parametrize(
    ("start", "end", "within"),
    [
        (date(2023, 5, 30), date(2023, 5, 30), (1, 1, 1, 0, 0, 0)),
        (date(2023, 5, 31), date(2023, 6, 1), (0, 0, 0, 1, 1, 0)),
        (date(2023, 6, 2), date(2023, 6, 3), (0, 0, 0, 0, 0, 1)),
        (date(2022, 1, 1), date(2022, 12, 31), (0, 0, 0, 0, 0, 0)),
    ],
)
def test_turns_of_the_time_asked_about_count_and_may_be_shown(start: date, end: date, within: Sequence[int]) -> None:
    window = Window(start, end, "day")
    got = score(NOTHING._replace(window=window), index_of(), RecallPolicy(time=0.4))
    assert got.parts["time"].tolist() == [0.4 * one for one in within]
    assert got.eligible is not None
    assert got.eligible.tolist() == [bool(one) for one in within]
    both = score(NOTHING._replace(window=window, slots=(slot("candl"),)), index_of(), POLICY)
    assert both.eligible is not None
    assert both.eligible.tolist() == [bool(one) or at in (0, 1, 2, 5) for at, one in enumerate(within)]


def test_a_day_begins_and_ends_at_midnight() -> None:
    turns = [("a", "Ann", "user", hours, "hm") for hours in (-13, -12, 11, 12)]
    got = score(NOTHING._replace(window=Window(START.date(), START.date(), "day")), index_of(turns), POLICY)
    assert got.parts["time"].tolist() == [0.0, POLICY.time, POLICY.time, 0.0]


def test_turns_that_ask_lose_and_those_that_only_ask_lose_more() -> None:
    policy = RecallPolicy(question=0.2, question_only=0.5)
    index = index_of()
    assert score(NOTHING, index, policy).parts["question"].tolist() == [0, 0, -0.5, 0, -0.2, 0]
    other = RecallPolicy(question=0.3, question_only=0.6)
    assert score(NOTHING, index, other).parts["question"].tolist() == [0, 0, -0.6, 0, -0.3, 0]
    assert "question" not in score(NOTHING, index_of(TURNS[:2]), policy).parts


def test_nearness_is_told_in_standard_deviations_from_the_mean() -> None:
    near = np.array([3.0, 1.0, 1.0, 1.0, 1.0, 5.0], np.float32)
    far = np.array([0.0, 0.0, 4.0, 4.0, 0.0, 4.0], np.float32)
    policy = RecallPolicy(dense_turn=0.5, dense_window=0.25)
    apart = (near - 2) / math.sqrt(((near - 2) ** 2).mean())
    got = score(NOTHING, index_of(), policy, Dense(near, far))
    assert np.allclose(got.parts["dense_turn"], 0.5 * apart)
    assert np.allclose(got.parts["dense_window"], 0.25 * np.array([-1, -1, 1, 1, -1, 1]))
    assert got.eligible is None
    assert near.tolist() == [3, 1, 1, 1, 1, 5]
    assert set(parts_of(NOTHING, policy, Dense(near, None))) == {"dense_turn"}
    assert set(parts_of(NOTHING, RecallPolicy(dense_turn=0.0), Dense(near, far))) == {"dense_window"}
    level = score(NOTHING, index_of(), policy, Dense(np.full(6, 2.0), None))
    assert level.parts["dense_turn"].tolist() == [0.0] * 6
    nowhere = score(NOTHING, index_of(), policy, Dense())
    assert nowhere.eligible is not None
    assert len(score(NOTHING, MemoryIndex([]), policy, Dense(np.array([]), None)).total) == 0


# -- what the best say ---------------------------------------------------------------------------------


def test_what_some_turns_say_and_mean() -> None:
    index = index_of()
    kinds = (Kind((0,), (term_hash("candl"), term_hash("bridg"))),)
    query = NOTHING._replace(slots=(slot("appl"), slot("zebra"), slot("#m5"), slot("bob")), kinds=kinds, speakers=(1,))
    found = match_turns(query, index, np.array([5, 0, 4]))
    assert found.words.tolist() == [[False, True, False], [False] * 3, [False] * 3, [False] * 3]
    assert found.meant.tolist() == [[True, False, True], [False] * 3, [False] * 3, [False] * 3]
    assert found.counts == [2, 0, 0, 0]
    assert found.weights.tolist() == [idf(6, 2), idf(6, 0), 0.0, 0.0], "neither a date nor who is named weighs anything"
    assert weigh(found.weights, found.words).tolist() == [0.0, idf(6, 2), 0.0]
    assert share_of(found.weights, found.words)[1] == pytest.approx(idf(6, 2) / (idf(6, 2) + idf(6, 0)))
    assert found.take(np.array([1, 2])).turns.tolist() == [0, 4]
    assert match_turns(NOTHING, index, np.array([1])).words.shape == (0, 1)
