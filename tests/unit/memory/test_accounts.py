"""Accounts of what was said: which questions ask for one, and the order in which the best turns then stand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from muniment.core.policy import RecallPolicy
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.query import asks_for_account, read_query
from muniment.memory.ranking import Ranked, rank
from products import for_each

NOW = date(2024, 6, 1)
START = datetime(2024, 1, 1, 9, tzinfo=UTC)
PLAIN = RecallPolicy(ranking="", stretch=0.0)


@for_each(
    "text",
    [
        "Summarize what we decided for the garden.",
        "Can you give me a summary of the interviews so far?",
        "What did the committee discuss about school meals?",
        "What was said in the discussion on batteries?",
        "What did the designer think of the rubber case?",
        "What was Ana's opinion on the new timetable?",
        "What did they talk about at lunch?",
        "总结一下我们关于搬家的对话",
        "大家对新方案的看法是什么？",
        "회의 내용을 요약해 줘",
        "예산에 대해 어떤 논의가 있었나요?",
    ],
)
def test_an_account_of_what_was_said_is_recognised(text: str) -> None:
    assert asks_for_account(text)
    assert read_query(text, (), NOW).account


@for_each(
    "text",
    [
        "What is my sister's name?",
        "What is the name of the dentist?",
        "Which song motivates Caroline?",
        "How many days ago did I buy the smoker?",
        "When did Paola stay in bed all day?",
        "What exciting news did Maria share?",
        "Which bus do I take to work?",
        "What pet does Caroline have?",
        "What kind of flooring does Jon want?",
        "Where does Kate live?",
        "Who gave me the lamp?",
        "What was the focus of his talk?",
        "Which pair of shoes did I clean?",
        "What was the third item on the list?",
        "What are you doing?",
        "I have been to many countries and love all of them. Where is my passport?",
        "In our last discussion, what was the price of the lens?",
        "他住在哪里？",
        "我每天都想着那个玩具车。我的生日是几月？",
        "민수는 어디에 살아요?",
        "며칠 전에 전화했어요?",
    ],
)
def test_a_question_for_one_thing_asks_for_no_account(text: str) -> None:
    assert not read_query(text, (), NOW).account


def test_of_a_document_the_start_is_read() -> None:
    question = "What did they discuss about museums?"
    assert asks_for_account("Hello. " * 100 + question)
    assert not asks_for_account("Hello. " * 3_000 + question)


def _index(*sessions: list[str]) -> MemoryIndex:
    return MemoryIndex(
        SpokenTurn(
            f"s{number}", "Ann" if place % 2 else "Bob", "user", START + timedelta(days=number, minutes=place), text
        )
        for number, texts in enumerate(sessions)
        for place, text in enumerate(texts)
    )


TALK = [
    "Morning, did everybody get the notes?",
    "Yes, thanks for sending them.",
    "Then the battery: it must last a year.",
    "A year is hard with a screen.",
    "Solar would save the battery, but the parts cost more.",
    "Nobody wants to charge it.",
    "Kinetic is cheaper, and people shake it anyway.",
    "Fine, then the battery stays small.",
    *[f"About the colour, option {number} looks good." for number in range(20)],
    "My own battery died in the car today.",
    *[f"Lunch number {number} was late." for number in range(12)],
]


def _ask(text: str, index: MemoryIndex, policy: RecallPolicy) -> list[Ranked]:
    return rank(text, index, policy, NOW, 60)


def test_an_account_holds_the_stretch_and_not_a_lone_mention() -> None:
    index = _index(TALK)
    question = "What did they discuss about the battery?"
    lone = TALK.index("My own battery died in the car today.")
    inside = TALK.index("Solar would save the battery, but the parts cost more.")
    plain, covered = (
        [hit.ordinal for hit in _ask(question, index, policy)]
        for policy in (PLAIN, PLAIN.model_copy(update={"stretch": 0.15}))
    )
    assert covered.index(lone) > plain.index(lone)
    assert covered.index(inside) < covered.index(lone)
    assert set(covered[:6]) <= set(range(2, 8)), "the stretch stands together"


def test_an_account_says_why_and_adds_up() -> None:
    hits = _ask("Summarize the talk about the battery.", _index(TALK), PLAIN.model_copy(update={"stretch": 0.15}))
    assert any("stands among turns that match" in hit.reasons for hit in hits)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.parts.values()))


def test_the_best_of_an_account_is_worth_what_the_best_was() -> None:
    """What a stretch adds orders the candidates; how well the best answers is told by what it says."""
    question, index = "Summarize the talk about the battery.", _index(TALK)
    plain, covered = (_ask(question, index, PLAIN.model_copy(update={"stretch": share})) for share in (0.0, 0.15))
    assert covered[0].score == pytest.approx(plain[0].score)


def test_a_stretch_ends_with_its_session() -> None:
    """The first turn of a session gains nothing by what another session ended with."""
    around = ["The boiler rattles.", "The boiler leaks.", "The boiler is old."]
    other = ["The boiler is under guarantee.", "Good.", "Nice day.", "Bye."]
    apart = _ask("Summarize the boiler talk.", _index(around, other), PLAIN.model_copy(update={"stretch": 0.5}))
    joined = _ask("Summarize the boiler talk.", _index(around + other), PLAIN.model_copy(update={"stretch": 0.5}))
    place = 3
    assert [hit.ordinal for hit in joined].index(place) < [hit.ordinal for hit in apart].index(place)


def test_what_may_not_be_found_adds_nothing_to_a_stretch() -> None:
    index = _index(TALK)
    among = np.ones(len(TALK), bool)
    among[2:4] = among[5:8] = False
    policy = PLAIN.model_copy(update={"stretch": 0.15})
    hits = rank("Summarize the talk about the battery.", index, policy, NOW, 60, among=among)
    assert not any("stands among turns that match" in hit.reasons for hit in hits if hit.ordinal == 4)
