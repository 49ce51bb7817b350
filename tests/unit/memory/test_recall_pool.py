"""The benchmark of recall over the pool: what it leaves out, what may be searched, and what its measures count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from benchmarks import learn_ranking, recall_pool
from benchmarks.data import PERMITTED, POOL, Question, Scope, Turn
from benchmarks.recall_pool import OURS, SHIPPED, WITHOUT, Learnt, bootstrap, means_of, measure, search_all

from muniment.memory.ranking import TRAITS, Ranking, ranking
from products import for_each

START = datetime(2025, 1, 1, tzinfo=UTC)
SAID = (
    ("s1", "Ana", "I keep three green parrots in the kitchen."),
    ("s1", "Ben", "How lovely, I only have a cat."),
    ("s2", "Ana", "The parrots moved to the garden, they are five by now."),
    ("s2", "Ben", "My cat looks at parrots all day long."),
    ("s3", "Ana", "I sold every parrot, none is left."),
)
TURNS = [
    Turn(str(place), session, who, "user", START + timedelta(days=place), text)
    for place, (session, who, text) in enumerate(SAID)
]


def asked(text: str = "How many parrots does Ana keep?", **told: object) -> Question:
    given: dict[str, object] = {"gold": frozenset({"4"}), "kind": "", "now": START + timedelta(days=9)}
    return Question(text, **(given | told))  # type: ignore[arg-type]


@pytest.fixture
def none_learnt() -> dict[str, Ranking]:
    nothing = np.zeros(len(TRAITS))
    return {"ours": Ranking(nothing, nothing), "shipped": ranking(recall_pool.shipped_digest())}


def test_every_system_searches_only_what_was_said_before(none_learnt: dict[str, Ranking]) -> None:
    scope = Scope("made", TURNS, [asked(), asked(asked_in="s3"), asked(asked_in="s2"), asked(asked_in="s1")])
    found = search_all([scope], (OURS, SHIPPED, *WITHOUT), none_learnt, None)
    assert set(found) == {"bm25", "bm25_named", "recipe", "ours", "shipped", *(each.name for each in WITHOUT)}
    for system, (ordinals,) in found.items():
        everything, *earlier = ordinals
        assert 4 in everything, system
        for found_before, limit in zip(earlier, (4, 2, 0), strict=True):
            assert bool(found_before) == bool(limit), system
            assert all(ordinal < limit for ordinal in found_before), system


def test_what_is_taken_away_is_given_back(none_learnt: dict[str, Ranking]) -> None:
    scope = Scope("made", TURNS, [asked()])
    first = search_all([scope], (OURS,), none_learnt, None)
    again = search_all([scope], (*WITHOUT, OURS), none_learnt, None)
    assert first["ours"] == again["ours"]


def test_the_newest_rules_can_be_taken_away(none_learnt: dict[str, Ranking]) -> None:
    """A later value stands first by those rules alone, or the benchmark measures nothing of them."""
    texts = ("My phone number is 555 0101.", "It rained all day.", "My phone number is 555 0199.")
    turns = [Turn(str(at), f"s{at}", "Ana", "user", START + timedelta(days=at), text) for at, text in enumerate(texts)]
    scope = Scope("made", turns, [asked("What is my phone number?")])
    variants = (OURS, next(each for each in WITHOUT if each.name == "without newest"))
    found = search_all([scope], variants, none_learnt, None)
    assert found["ours"][0][0][0] == 2
    assert found["without newest"][0][0][0] == 0


def test_a_set_is_left_out_of_what_it_is_ranked_by(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[set[str]] = []

    def fit(pool: dict[str, list[learn_ranking.Sample]]) -> learn_ranking.Array:
        fitted.append(set(pool))
        return np.zeros(len(TRAITS))

    monkeypatch.setattr(recall_pool, "drawn", lambda _data, _name, _scopes: [])
    monkeypatch.setattr(learn_ranking, "fit", fit)
    learnt = Learnt(Path(), None, {})
    for name in POOL:
        fitted.clear()
        made = learnt.without(name)
        if name in PERMITTED:
            assert fitted == [set(PERMITTED) - {name}] * 2
        else:
            assert made is ranking(recall_pool.shipped_digest())
            assert not fitted, "what is for measuring only has no part in the package's own"


def test_recall_counts_gold_and_the_tokens_before_it() -> None:
    scope = Scope("made", TURNS, [asked(gold=frozenset({"0", "2"}))])
    row = measure("locomo", [scope], [[[4, 2, 1]]])
    assert (row["questions"], row["R@5"], row["in_1024"], row["in_512"]) == (1, 0.5, 0.5, 0.5)
    long = [Turn(str(at), "s", "", "user", START, "word " * 400) for at in range(4)]
    row = measure("locomo", [Scope("made", long, [asked(gold=frozenset({"0", "2"}))])], [[[0, 1, 2]]])
    assert (row["R@5"], row["in_512"], row["in_1024"]) == (1.0, 0.5, 0.5)


@for_each(
    ("found", "newest", "stale_first"),
    [([4, 0, 2], 1.0, 0.0), ([0, 4, 2], 0.0, 1.0), ([1, 2, 4], 0.0, 0.0), ([1, 4], 1.0, 0.0), ([1, 3], 0.0, 0.0)],
)
def test_the_newest_stands_above_every_older_value(found: list[int], newest: float, stale_first: float) -> None:
    gold, stale = frozenset({"4"}), frozenset({"0", "2"})
    scope = Scope("made", TURNS, [asked(gold=gold | stale, newest=(gold, stale))])
    row = measure("beam_100k", [scope], [[found]])
    assert (row["updated"], row["newest_above_stale"], row["stale_first"]) == (1, newest, stale_first)


def test_sessions_stand_where_their_best_turn_stands() -> None:
    scope = Scope("made", TURNS, [asked(gold=frozenset({"0", "4"}))])
    row = measure("longmemeval", [scope], [[[3, 1, 2]]])
    assert (row["sessions_any@5"], row["sessions_all@5"]) == (1.0, 0.0)
    by_session = Scope("made", TURNS, [asked(gold=frozenset(), gold_sessions=frozenset({"s1", "s3"}))])
    row = measure("realmem", [by_session], [[[3, 1, 2]]])
    assert row["R@5"] == 0.5
    assert "in_512" not in row


def test_questions_without_an_answer_are_left_out() -> None:
    questions = [asked(), asked(gold=frozenset(), answerable=False)]
    assert measure("locomo", [Scope("made", TURNS, questions)], [[[4], [4]]])["questions"] == 1


def test_the_bootstrap_is_over_scopes_and_always_the_same() -> None:
    assert bootstrap([[0.5, 0.5], [0.5]]) == [0.5, 0.5]
    low, high = bootstrap([[0.0] * 9, [1.0]])
    assert (low, high) == (0.0, 1.0)
    assert bootstrap([[0.2, 0.4], [0.9]]) == bootstrap([[0.2, 0.4], [0.9]])


def test_the_mean_counts_sets_alike_and_no_easy_one() -> None:
    keys = ("R@5", "R@10", "R@20", "in_256", "in_512", "in_1024")
    values = {"locomo": 0.2, "qmsum": 0.6, "bfcl_memory": 1.0, "factconsolidation": 1.0}
    rows = {f"{name} ours": dict.fromkeys(keys, value) for name, value in values.items()}
    rows["realmem ours"] = dict.fromkeys(keys[:3], 1.0)
    found = means_of(rows, ["locomo", "qmsum", "bfcl_memory", "factconsolidation", "realmem"], "ours")
    assert found == {"sets": 2} | dict.fromkeys(keys, pytest.approx(0.4))
