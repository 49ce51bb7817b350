"""What changed: in other words, told by a change, with vectors; and what never changes is left alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from muniment.core.policy import RecallPolicy
from muniment.memory.recall.index import MemoryIndex, SpokenTurn
from muniment.memory.recall.query import read_query
from muniment.memory.recall.rank import Ranked, rank
from muniment.memory.recall.score import Dense
from products import for_each

START = datetime(2025, 1, 6, 9, tzinfo=UTC)
NOW = date(2025, 12, 1)
FILLERS = (
    "The rain would not stop all afternoon.",
    "Could you help me plan dinner for six people?",
    "That film was longer than it had to be.",
    "We repainted the hall in a pale yellow.",
    "Do you know a good recipe for lentil soup?",
    "The train was late again this morning.",
)


def sessions(*turns: str) -> MemoryIndex:
    """A session a week, each with one of the turns among fillers; the user speaks."""
    passages = []
    for week, turn in enumerate(turns):
        said = [FILLERS[(2 * week) % 6], turn, FILLERS[(2 * week + 1) % 6]]
        passages += [
            SpokenTurn(str(week), "user", "user", START + timedelta(weeks=week, minutes=place), text)
            for place, text in enumerate(said)
        ]
    return MemoryIndex(passages)


def ask(index: MemoryIndex, query: str, dense: Dense | None = None) -> list[Ranked]:
    return rank(query, index, RecallPolicy(), NOW, 10, dense)


def places(found: list[Ranked]) -> dict[int, int]:
    return {hit.ordinal: place for place, hit in enumerate(found)}


OLD, NEW = 1, 4
"""Where the two statements of a story stand."""


@for_each(
    ("query", "old", "new"),
    [
        ("Where does she live?", "I live in Lisbon.", "I moved to Berlin."),
        ("Where do I live?", "I'm based in Turin these days.", "We relocated to Genoa in spring."),
        ("Which town does the user live in?", "I've been living near Graz since 2019.", "I have settled in Linz."),
        ("Where does she work?", "I work at a bakery.", "I started at Novartis this week."),
        ("Who does she work for?", "I work for a law firm in town.", "I quit my job at the firm and took a new role."),
        ("What is my job?", "I work as a nurse.", "I got a new job as a librarian."),
        ("Is she single?", "I am happily engaged to Tom.", "Tom and I broke up."),
        ("Which car does she drive?", "I drive an old Toyota.", "I traded it in and bought a Volvo."),
        ("What phone do I have?", "I use a Galaxy S9.", "I switched to a Pixel."),
        ("What am I studying?", "I study law at the university.", "I changed my major to physics."),
        ("我住在哪里？", "我住在上海。", "我搬到了杭州。"),
        ("我在哪里工作？", "我在一家银行工作。", "我跳槽了，新工作很忙。"),
        ("저는 어디에 살아요?", "저는 부산에 살아요.", "저는 서울로 이사했어요."),
        ("제 직장은 어디예요?", "저는 은행에서 일해요.", "저는 작은 회사로 이직했어요."),
    ],
)
def test_a_change_in_other_words_comes_first(query: str, old: str, new: str) -> None:
    found = ask(sessions(old, new), query)
    at = places(found)
    assert at[NEW] < at[OLD]
    assert any(reason.startswith("states ") for reason in found[at[NEW]].reasons)


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        ("What milk do I put in my coffee?", "I put whole milk in my coffee.", "I switched to oat milk."),
        ("What gym do I go to?", "I go to the gym on Elm Street.", "I changed to a gym near the office."),
        ("How often do I swim?", "I swim once a week, every 7 days.", "I swim 3 times a week now."),
        ("What is my rent?", "My rent is 900 a month.", "They raised my rent to 980 a month."),
    ],
)
def test_what_tells_of_a_change_counts_for_anything(query: str, old: str, new: str) -> None:
    at = places(ask(sessions(old, new), query))
    assert at[NEW] < at[OLD]


@for_each(
    ("query", "answer", "later"),
    [
        ("Who taught me to play chess?", "My grandfather taught me to play chess.", "I want to play chess tonight."),
        ("Which drill did I buy?", "I bought the red Bosch drill.", "The drill made a hole in the wall."),
        ("What could make my garden nicer?", "A pond would make my garden nicer.", "I spent the day in my garden."),
        ("How much did I pay for the sofa?", "I paid 900 euros for the sofa.", "I paid for the sofa on the spot."),
        ("What kind of tea do I like?", "I like jasmine tea.", "I had a tea with a friend who talked a lot."),
        ("Where did I grow up?", "I grew up in Vermont.", "I want to grow tomatoes."),
        ("Where do I live?", "I live in Lisbon.", "My sister moved to Berlin."),
        ("Where do I live?", "I live in Lisbon.", "I would love to live in Berlin."),
        ("Where do I live?", "I live in Lisbon.", "Rachel lives in Berlin now."),
    ],
)
def test_what_does_not_answer_is_not_lifted_for_being_late(query: str, answer: str, later: str) -> None:
    found = ask(sessions(answer, later), query)
    assert found[0].ordinal == OLD


def test_a_change_within_one_session_counts_too() -> None:
    said = ("I live in Lisbon.", "It rained.", "I moved to Berlin.")
    passages = [
        SpokenTurn("a", "user", "user", START + timedelta(seconds=10 * place), text) for place, text in enumerate(said)
    ]
    found = ask(MemoryIndex(passages), "Where does she live?")
    assert found[0].ordinal == 2


def test_documents_of_one_moment_are_not_turned_round() -> None:
    texts = ("The tower has 3 floors of red brick.", "The tower has 3 floors of red brick and a bell of bronze.")
    passages = [SpokenTurn(str(at), "", "document", START, text) for at, text in enumerate(texts)]
    assert ask(MemoryIndex(passages), "How many floors has the tower?")[0].ordinal == 0


def test_somebody_else_has_a_home_too() -> None:
    index = sessions("My sister lives in Porto.", "I moved to Berlin.", "My sister moved to Rome.")
    assert ask(index, "Where does my sister live?")[0].ordinal == 7
    assert ask(index, "Where do I live?")[0].ordinal == NEW


def test_a_question_is_no_newer_answer() -> None:
    found = ask(sessions("I play tennis on 2 days.", "Do people play tennis on 5 days?"), "How often do I play tennis?")
    assert found[0].ordinal == OLD


@for_each("nearest", range(6))
def test_vectors_do_not_undo_it(nearest: int) -> None:
    """Whichever turn nearness in meaning puts first: the newest statement stays above the stale one."""
    index = sessions(
        "I attended three sessions of the pottery group.", "I have now been to five sessions of the pottery group."
    )
    near = np.zeros(len(index.ts))
    near[nearest] = 1.0
    at = places(ask(index, "How many sessions of the pottery group did I attend?", Dense(turn=near, window=near)))
    assert at[NEW] < at[OLD]


def test_what_was_said_beside_it_is_as_old() -> None:
    """The pronoun's turn goes with the session that names whom it is about."""
    passages = [
        SpokenTurn("a", "user", "user", START, "My friend Rachel moved to a new apartment in the city."),
        SpokenTurn("a", "user", "user", START + timedelta(minutes=1), "She moved to Chicago."),
        SpokenTurn("b", "user", "user", START + timedelta(weeks=2), "Rachel just moved back to the suburbs again."),
    ]
    near = np.array([0.2, 1.0, 0.1])
    found = ask(MemoryIndex(passages), "Where did Rachel move to recently?", Dense(turn=near))
    assert found[0].ordinal == 2


@for_each(
    ("text", "is_state"),
    [
        ("What is my favourite tea?", True),
        ("How many books have I read?", True),
        ("Where does she work?", True),
        ("Did I switch to decaf?", True),
        ("Which drill did I buy?", False),
        ("What could I cook?", False),
        ("Who taught me to play chess?", False),
        ("What is the capital of France?", False),
    ],
)
def test_what_asks_for_a_state_that_may_change(text: str, is_state: bool) -> None:
    assert read_query(text, (), NOW).state is is_state


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        ("Who is her manager?", "My manager is Helen Ortiz.", "My new manager is Tomas Bergqvist."),
        ("When is the meeting?", "The meeting is at 3pm.", "The meeting was moved to 4pm."),
        (
            "When does the conference start?",
            "The conference starts on May 12.",
            "The conference now starts on May 19, not May 12.",
        ),
        ("Does she drink coffee?", "I drink coffee every morning.", "I gave up coffee."),
    ],
)
def test_what_is_replaced_in_few_words_is_ended(query: str, old: str, new: str) -> None:
    found = ask(sessions(old, new), query)
    at = places(found)
    assert at[NEW] < at[OLD]


@pytest.mark.parametrize(
    ("query", "answer", "wish"),
    [
        ("她住在哪里？", "我住在深圳。", "要是我住在北京就好了。"),
        ("她住在哪里？", "我住在深圳。", "我住在北京的话会更开心。"),
        ("어디에 살아요?", "저는 서울에 살아요.", "제주도에 살고 싶어요."),
        ("어디에 살아요?", "저는 서울에 살아요.", "제주도에 살면 좋을 텐데요."),
    ],
)
def test_what_is_only_wished_for_stands_below_what_is(query: str, answer: str, wish: str) -> None:
    found = ask(sessions(answer, wish), query)
    assert found[0].ordinal == OLD


def test_what_is_asked_of_a_time_is_not_turned_round() -> None:
    index = sessions("I swim 2 times a week.", "I swim 5 times a week now.")
    first = START.date().isoformat()
    assert ask(index, f"How often do I swim, on {first}?")[0].ordinal == OLD
