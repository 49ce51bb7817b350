"""Context spread at query time is the context that documents would have had; the best k are the head of a full sort."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import term_hash
from muniment.memory._index import MemoryIndex, SpokenTurn, index_text
from muniment.memory.query import read_query
from muniment.memory.ranking import rank, top
from muniment.memory.scoring import Dense, Scores, score, spread

START = datetime(2023, 5, 8, 12, tzinfo=UTC)
NOW = date(2023, 7, 1)
WORDS = ("apple", "bridge", "candle", "dragon", "engine", "forest")

scopes = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.sampled_from(WORDS), max_size=6)), min_size=1, max_size=14
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


def build(rows: list[tuple[int, list[str]]]) -> MemoryIndex:
    return MemoryIndex(
        SpokenTurn(str(session), "Ann" if place % 2 else "Bob", "user", START + timedelta(hours=place), " ".join(words))
        for place, (session, words) in enumerate(rows)
    )


@given(scopes, st.sampled_from(WORDS))
def test_spreading_equals_documents_with_their_context(rows: list[tuple[int, list[str]]], word: str) -> None:
    index = build(rows)
    weights = {0: 2.0, 1: 1.0, 2: 0.5, -1: 0.25, -2: 0.125}
    expected = []
    for place, (session, _) in enumerate(rows):
        document: Counter[str] = Counter()
        for offset, weight in weights.items():
            near = place - offset
            if 0 <= near < len(rows) and rows[near][0] == session:
                for other in rows[near][1]:
                    document[other] += weight  # type: ignore[assignment]
        expected.append(float(document[word]))
    ordinals, counts = index.postings(term_hash(next(iter(_stems(word)))))
    assert np.allclose(spread(index, ordinals, counts.astype(float), weights), expected)


def _stems(word: str) -> list[str]:
    from muniment.core.text.analyzer import analyze

    return analyze(word)


@given(scopes, st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True))
def test_words_are_bm25_over_context_documents(rows: list[tuple[int, list[str]]], asked: list[str]) -> None:
    policy = RecallPolicy(kinds=0.0, question=0.0)
    index = build(rows)
    mean = max(np.maximum(index.length, 1).mean(), 1e-9)
    weights = {0: 2.0, 1: policy.before_1, 2: policy.before_2, -1: policy.after_1, -2: policy.after_2}
    expected = np.zeros(len(rows))
    for word in asked:
        heard = []
        for place, (session, _) in enumerate(rows):
            total = 0.0
            for offset, weight in weights.items():
                near = place - offset
                if 0 <= near < len(rows) and rows[near][0] == session:
                    size = max(len(rows[near][1]), 1)
                    total += weight * rows[near][1].count(word) / (1 - policy.length + policy.length * size / mean)
            heard.append(total)
        holding = sum(value > 0 for value in heard)
        idf = math.log(1 + (len(rows) - holding + 0.5) / (holding + 0.5))
        expected += [idf * (policy.saturation + 1) * value / (value + policy.saturation) for value in heard]
    got = score(read_query(" ".join(asked), index.speakers, NOW), index, policy)
    if expected.max() > 0:
        assert np.allclose(got.parts["words"], expected / expected.max())
    else:
        assert "words" not in got.parts


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.booleans()), max_size=40), st.integers(1, 12))
def test_the_best_k_are_the_head_of_a_full_sort(rows: list[tuple[float, bool]], k: int) -> None:
    total = np.array([value for value, _ in rows])
    eligible = np.array([flag for _, flag in rows], bool)
    expected = sorted(
        (place for place in range(len(rows)) if eligible[place]), key=lambda place: (-total[place], place)
    )
    assert top(Scores(total, {}, eligible), k).tolist() == expected[:k]


@settings(max_examples=examples(20))
@given(
    st.lists(st.tuples(st.integers(0, 2), st.text(max_size=30)), max_size=10).map(sorted),
    st.text(max_size=60),
    st.integers(1, 12),
)
def test_any_scope_and_any_query(rows: list[tuple[int, str]], query: str, k: int) -> None:
    index = MemoryIndex(
        SpokenTurn(str(session), "Ann", "user", START + timedelta(minutes=place), text)
        for place, (session, text) in enumerate(rows)
    )
    found = rank(query, index, RecallPolicy(), NOW, k)
    assert found == rank(query, index, RecallPolicy(), NOW, k)
    assert len(found) <= min(k, len(rows))
    assert len({hit.ordinal for hit in found}) == len(found)
    assert all(one.score >= other.score for one, other in pairwise(found))
    for hit in found:
        assert math.isclose(sum(hit.parts.values()), hit.score, abs_tol=1e-9)
        assert hit.reasons


def test_a_huge_query_is_read_from_its_start() -> None:
    index = build([(0, ["apple"]), (0, ["bridge"])])
    assert rank("apple " * 200_000, index, RecallPolicy(), NOW, 1)[0].ordinal == 0


def test_an_empty_scope_has_no_answer() -> None:
    assert rank("apple", MemoryIndex([]), RecallPolicy(), NOW, 5) == []


def test_vectors_move_the_order_and_open_the_door() -> None:
    index = build([(0, ["apple"]), (1, ["bridge"]), (2, ["candle"])])
    near = np.array([0.0, 0.0, 1.0], np.float32)
    assert [hit.ordinal for hit in rank("zebra", index, RecallPolicy(), NOW, 3)] == []
    assert rank("zebra", index, RecallPolicy(), NOW, 3, Dense(near, None))[0].ordinal == 2


def test_one_scope_does_not_move_another() -> None:
    rows = [(0, ["apple", "bridge"]), (1, ["apple"])]
    alone = rank("apple bridge", build(rows), RecallPolicy(), NOW, 5)
    build([(0, ["apple"])] * 50)
    assert rank("apple bridge", build(rows), RecallPolicy(), NOW, 5) == alone


def test_what_is_indexed_holds_dates_and_a_mark_but_not_their_length() -> None:
    length, terms = index_text("Did you paint yesterday?", date(2023, 5, 8))
    assert term_hash("#d5-7") in terms
    assert term_hash("#q") in terms
    assert length == 2


# -- long turns ---------------------------------------------------------------------------------------

FILLER = "The report goes on about budgets, tables, rooms and the weather of the whole week. "


def _long(said: str, before: int = 8, after: int = 8) -> str:
    return FILLER * before + said + " " + FILLER * after


def _chat(*texts: str, speaker: str = "") -> MemoryIndex:
    roles = ("user", "assistant")
    return MemoryIndex(
        SpokenTurn(f"s{place // 2}", speaker, roles[place % 2], START + timedelta(hours=place), text)
        for place, text in enumerate(texts)
    )


def test_the_neighbour_of_the_right_turn_does_not_win_in_a_chat() -> None:
    index = _chat(
        "My sister Wilma adopted a greyhound called Bolt.",
        _long("A greyhound is a fine choice for a sister. A greyhound needs walks, and a greyhound sleeps a lot."),
        "Thank you! I also planted tomatoes.",
        _long("Tomatoes need light."),
    )
    assert rank("What greyhound did my sister Wilma adopt?", index, RecallPolicy(), NOW, 2)[0].ordinal == 0
    alone = score(read_query("the greyhound", index.speakers, NOW), index, RecallPolicy(chat_context=0.0))
    assert alone.parts["words"][2] == 0, "a long answer is not heard by the turn behind it"


def test_among_people_turns_lean_on_each_other_as_far_as_ever() -> None:
    texts = ("Did you see the heron?", "Yes, by the lake.", "Which lake?", "The one behind the mill.")
    for speakers, is_chat in ((("Ana", "Ben"), False), (("", ""), True)):
        index = MemoryIndex(
            SpokenTurn("s", speakers[place % 2], ("user", "assistant")[place % 2], START + timedelta(hours=place), text)
            for place, text in enumerate(texts)
        )
        asked = read_query("heron", index.speakers, NOW)
        whole, none = (score(asked, index, RecallPolicy(chat_context=share)).parts["words"][1] for share in (1.0, 0.0))
        assert bool(none < whole) is is_chat


# -- many people's sessions in one scope --------------------------------------------------------------


def _crowd() -> MemoryIndex:
    """Caroline and Bob talk, and so do many others, of whom nobody ever says her name."""
    said = [("home", speaker, text) for speaker, text in (
        ("Bob", "Hi Caroline!"), ("Caroline", "I adopted a greyhound."), ("Bob", "Caroline, that is wonderful news."),
        ("Caroline", "He sleeps a lot."), ("Bob", "Bye, Caroline!"),
    )]  # fmt: skip
    said += [(f"far{number}", f"Guest {number}", f"My dog adopted habit number {number}.") for number in range(60)]
    return MemoryIndex(
        SpokenTurn(session, speaker, "user", START + timedelta(hours=place), text)
        for place, (session, speaker, text) in enumerate(said)
    )


def test_a_name_that_only_its_company_says_does_not_outweigh_what_is_asked() -> None:
    found = rank("What did Caroline adopt?", _crowd(), RecallPolicy(), NOW, 3)
    assert found[0].ordinal == 1
    assert "said among Caroline" in found[0].reasons
    parts = rank("Which dog sleeps a lot at Caroline's?", _crowd(), RecallPolicy(), NOW, 20)
    assert {hit.ordinal for hit in parts if "company" in hit.parts} <= {0, 1, 2, 3, 4}


@pytest.mark.parametrize("named", ["Kate", "Kate and Ben"])
def test_a_greeting_by_name_does_not_outweigh_what_is_asked(named: str) -> None:
    index = MemoryIndex(
        SpokenTurn("s", "Ben" if place % 2 else "Kate", "user", START + timedelta(hours=place), text)
        for place, text in enumerate(
            ("Good day to you.", "Hi Kate! Hi Ben!", "So so.", "Right.", "We bake bread and rolls.")
        )
    )
    found = score(read_query(f"Does {named} bake?", index.speakers, NOW), index, RecallPolicy()).parts["words"]
    assert found[4] > found[1] > 0
    alike = score(read_query(f"Does {named} bake?", index.speakers, NOW), index, RecallPolicy(called=1.0)).parts[
        "words"
    ]
    assert found[1] < alike[1], "by as much as the policy says"


def test_where_the_one_named_speaks_in_every_session_company_tells_nothing() -> None:
    index = build([(0, ["apple"]), (0, ["bridge"]), (1, ["candle"]), (1, ["apple"])])
    assert all("company" not in hit.parts for hit in rank("What apple did Ann eat?", index, RecallPolicy(), NOW, 5))
