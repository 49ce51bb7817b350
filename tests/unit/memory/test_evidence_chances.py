"""A hit's score: the chance that it is evidence, on one scale, in the order of the ranking."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muniment
from muniment import Memory
from muniment.core.policy import RecallPolicy
from muniment.errors import InvalidInput
from muniment.memory import evidence
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.evidence import FOUND_SIGNS, SIGNS, Calibration, Weights, calibration, chance_of_fact, chances
from muniment.memory.ranking import rank, signs_of
from products import for_each

TODAY = date(2026, 5, 1)
START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = RecallPolicy()


def index_of(*texts: str, speakers: tuple[str, ...] = ("Ana", "Ben")) -> MemoryIndex:
    return MemoryIndex(
        SpokenTurn(f"s{place // 6}", speakers[place % len(speakers)], "user", START + timedelta(hours=place), text)
        for place, text in enumerate(texts)
    )


CHAT = (
    "I bought a kayak last summer and paddle every Sunday.",
    "That sounds lovely, where do you go?",
    "Mostly the lake near Uppsala, the water is calm there.",
    "My yoga class moved to Thursdays.",
    "I am learning to bake sourdough bread.",
    "Bread is hard, mine never rises.",
    "We adopted a grey cat called Miso.",
    "Miso sleeps on the piano all day.",
    "My brother plays the piano in a jazz band.",
    "The band has a concert in June.",
)
ASKED = "Where does Ana go with her kayak?"
NEVER_SAID = "What colour is Zorblax's spaceship?"


@pytest.fixture
def mem() -> Iterator[Memory]:
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="one")
        for text in CHAT:
            run.observe("user", text)
        yield mem


# -- one scale ----------------------------------------------------------------------------------------


@pytest.mark.req("TM-11")
def test_what_was_never_said_scores_low_for_whatever_comes_first(mem: Memory) -> None:
    """Every query had a hit at 1.0 while scores were divided by the query's own best."""
    run = mem.run(user_id="ana", session_id="two")
    said = run.search("Who bought a kayak and paddles every Sunday?")[0]
    unsaid = run.search("Which colour is the Sunday rocket of Zorblax's galactic spaceship fleet?")
    assert said.text == CHAT[0]
    assert said.score > 0.5
    assert unsaid
    assert unsaid[0].score < said.score / 2
    assert run.search("Quidditch snitch broomstick") == []


@pytest.mark.parametrize("query", [ASKED, "Who plays the piano?", "bread", "What is the cat called?"])
def test_scores_are_chances_and_fall_with_the_ranking(query: str) -> None:
    hits = rank(query, index_of(*CHAT), POLICY, TODAY, 10)
    assert hits
    assert all(0 < hit.chance < 1 for hit in hits)
    for above, below in pairwise(hits):
        assert above.chance > below.chance or (above.score == below.score and above.chance == below.chance)


@pytest.mark.parametrize("query", [ASKED, "Who plays the piano?", "bread and yoga"])
def test_a_score_does_not_depend_on_how_many_are_wanted(query: str) -> None:
    index = index_of(*CHAT)
    every = rank(query, index, POLICY, TODAY, 100)
    for k in (1, 2, 3, 5):
        few = rank(query, index, POLICY, TODAY, k)
        assert [(hit.ordinal, hit.chance) for hit in few] == [(hit.ordinal, hit.chance) for hit in every[:k]]


def test_turns_that_are_worth_the_same_are_as_likely() -> None:
    index = index_of("a red crane", "filler words here", "more filler there", "nothing else", "a red crane")
    index.session[:] = np.arange(5)  # each alone: no context
    hits = {hit.ordinal: hit.chance for hit in rank("red crane", index, POLICY, TODAY, 5)}
    assert hits[0] == hits[4]


def test_a_question_on_somebody_else_is_less_likely_answered() -> None:
    """Said, but not by the one it is asked of."""
    index = index_of(*CHAT)
    of_ana = rank("When did Ana buy a kayak?", index, POLICY, TODAY, 10)
    of_ben = rank("When did Ben buy a kayak?", index, POLICY, TODAY, 10)
    by_ana = {hit.ordinal: hit.chance for hit in of_ana}[0]
    by_ben = {hit.ordinal: hit.chance for hit in of_ben}[0]
    assert by_ben < by_ana


# -- the model ----------------------------------------------------------------------------------------


def test_the_policy_names_the_file_that_comes_with_the_package() -> None:
    written = (Path(evidence.__file__).parent / "data" / "evidence.json").read_bytes()
    assert sha256(written).hexdigest().startswith(POLICY.evidence)
    assert len(POLICY.evidence) >= 16
    held = json.loads(written)
    for part in ("hit", "found"):
        assert len(held[part]["terms"]) == len(held[part]["words"]) == len(held[part]["vectors"])
    assert "learn_evidence" in held["about"]


def test_another_calibration_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="0123456789abcdef"):
        calibration("0123456789abcdef")
    with muniment.open(":memory:", policy={"recall": {"evidence": "f" * 16}}) as mem:
        run = mem.run(user_id="u", session_id="s")
        run.observe("user", "a word")
        with pytest.raises(InvalidInput, match="ffff"):
            run.search("word")


def test_without_vectors_their_signs_are_nothing() -> None:
    order, signs, found = signs_of(ASKED, index_of(*CHAT), POLICY, TODAY, 10)
    assert signs.shape == (len(order), len(SIGNS))
    assert not signs[:, [SIGNS.index(name) for name in ("near", "best_near", "near_window")]].any()
    assert found.shape == (1, len(FOUND_SIGNS))
    assert not found[:, [FOUND_SIGNS.index(name) for name in ("nearest", "rival_nearest")]].any()
    of_nothing = signs_of(ASKED, MemoryIndex(()), POLICY, TODAY, 10)
    assert [each.shape for each in of_nothing[1:]] == [(0, len(SIGNS)), (1, len(FOUND_SIGNS))]


rows = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12)


def one_sign(count: int) -> Weights:
    """The chance is told by the first of so many signs alone."""
    return Weights((np.array([0]), np.array([count])), np.ones(1), np.ones(1))


MADE = Calibration(one_sign(len(SIGNS)), one_sign(len(FOUND_SIGNS)), (0.0, 1.0))


@given(rows, st.floats(-5, 1e3))
def test_chances_are_never_out_of_order(values: list[float], found: float) -> None:
    signs, whole = np.zeros((len(values), len(SIGNS))), np.zeros((1, len(FOUND_SIGNS)))
    signs[:, 0], whole[0, 0] = values, found
    likely = chances(signs, whole, np.arange(len(values), 0, -1.0), MADE, has_vectors=False)
    assert all(0 < chance <= 1 for chance in likely)
    assert all(above > below or below <= 2e-6 for above, below in pairwise(likely))


@given(st.floats(-4, 4), st.floats(-4, 4), st.floats(-4, 4))
def test_what_memory_hardly_holds_makes_every_hit_less_likely(value: float, one: float, other: float) -> None:
    """No hit is likelier than that there is anything."""
    signs, whole = np.zeros((1, len(SIGNS))), np.zeros((1, len(FOUND_SIGNS)))
    signs[0, 0] = value
    likely = []
    for found in sorted((one, other)):
        whole[0, 0] = found
        (chance,) = chances(signs, whole, np.ones(1), MADE, has_vectors=False)
        assert chance <= 1 / (1 + np.exp(-found)) + 1e-9
        likely.append(chance)
    assert likely[0] <= likely[1]


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_fact_that_holds_more_is_likelier(one: float, other: float) -> None:
    made = calibration(POLICY.evidence)
    less, more = sorted((one, other))
    assert 0 <= chance_of_fact(less, made) <= chance_of_fact(more, made) < 1
    assert chance_of_fact(0.0, made) == 0.0


# -- min_score ----------------------------------------------------------------------------------------


@pytest.mark.req("TM-11")
def test_min_score_leaves_out_what_is_less_likely(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="two")
    run.remember("user.sport", "kayak", sources=[run.search("kayak")[0].id])
    every = run.search("Where do I go with my kayak?", k=20)
    assert {hit.kind for hit in every} == {"event", "fact"}
    for least in (0, 0.0, every[2].score, 0.3, 1):
        assert run.search("Where do I go with my kayak?", k=20, min_score=least) == [
            hit for hit in every if hit.score >= least
        ]
    assert run.search("Where do I go with my kayak?", k=20, min_score=None) == every
    corpus = mem.corpus("notes")
    corpus.add("The kayak hangs in the shed.", document_id="shed")
    (chunk,) = corpus.search("where is the kayak")
    assert 0 < chunk.score < 1
    assert corpus.search("where is the kayak", min_score=chunk.score) == [chunk]
    assert corpus.search("where is the kayak", min_score=1) == []


@for_each("bad", [-0.1, 1.1, "0.5", True, float("nan"), float("inf"), [0.5]])
def test_a_min_score_that_is_no_chance_is_refused(mem: Memory, bad: object) -> None:
    run = mem.run(user_id="ana", session_id="two")
    for search in (run.search, mem.corpus("notes").search):
        with pytest.raises(InvalidInput) as refused:
            search("kayak", min_score=bad)  # type: ignore[operator]
        assert refused.value.path == "$.min_score"
