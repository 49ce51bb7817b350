"""Of turns that say the same, the newest comes first; what only looks like it is left alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np

from muniment.core.policy import RecallPolicy
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.ranking import Ranked, rank
from muniment.memory.scoring import Dense
from products import for_each

START = datetime(2025, 1, 6, 9, tzinfo=UTC)
NOW = date(2025, 12, 1)
FILLERS = ("The rain would not stop all afternoon.", "We repainted the hall in a pale yellow.")
OLD, NEW = 1, 4
"""Where the two statements of a story stand."""


def sessions(*turns: str, speaker: str = "user", role: str = "user") -> MemoryIndex:
    """A session a week, each with one of the turns between fillers."""
    return MemoryIndex(
        SpokenTurn(str(week), speaker, role, START + timedelta(weeks=week, minutes=place), text)
        for week, turn in enumerate(turns)
        for place, text in enumerate((FILLERS[0], turn, FILLERS[1]))
    )


def ask(index: MemoryIndex, query: str, policy: RecallPolicy | None = None, dense: Dense | None = None) -> list[Ranked]:
    return rank(query, index, policy or RecallPolicy(), NOW, 10, dense)


def places(found: list[Ranked]) -> dict[int, int]:
    return {hit.ordinal: place for place, hit in enumerate(found)}


CHANGED = (
    ("How often do I swim?", "I swim once a week, every Monday.", "I swim three times a week now."),
    ("What is my rent?", "My rent is 900 a month.", "They raised my rent to 980 a month."),
    ("Which team does Ana play for?", "Ana plays for the team of Porto.", "Ana plays for the team of Braga."),
    ("我住在哪里？", "我住在上海的旧城。", "我住在杭州的旧城。"),
    ("저는 어디에 살아요?", "저는 부산 바닷가에 살아요.", "저는 서울 바닷가에 살아요."),
)


@for_each(("query", "old", "new"), CHANGED)
def test_the_newest_of_what_says_the_same_comes_first(query: str, old: str, new: str) -> None:
    found = ask(sessions(old, new), query)
    at = places(found)
    assert at[NEW] < at[OLD]
    assert "newest of 2 that answer alike" in found[at[NEW]].reasons


def test_the_policy_turns_it_off() -> None:
    query, old, new = CHANGED[1]
    index = sessions(old, new)
    scored = ask(index, query, RecallPolicy(newest=1))
    assert not any("newest of" in reason for hit in scored for reason in hit.reasons)
    assert [hit.ordinal for hit in ask(sessions(new, old), query)][:2] == [NEW, OLD]


@for_each(
    ("query", "answer", "later"),
    [
        ("Who taught me to play chess?", "My grandfather taught me to play chess.", "I want to play chess tonight."),
        ("Which drill did I buy?", "I bought the red Bosch drill.", "The drill made a hole in the wall."),
        ("What could make my garden nicer?", "A pond would make my garden nicer.", "I spent the day in my garden."),
        ("How often do I play tennis?", "I play tennis on 2 days.", "Do people play tennis on 5 days?"),
    ],
)
def test_what_does_not_answer_is_not_lifted_for_being_late(query: str, answer: str, later: str) -> None:
    assert ask(sessions(answer, later), query)[0].ordinal == OLD


@for_each("query", ["What was my rent before?", "When did my rent reach 900 a month?", "What was my rent in January?"])
def test_a_question_about_the_past_is_not_turned_round(query: str) -> None:
    index = sessions("My rent is 900 a month.", "My rent is 980 a month now.")
    assert not any("newest of" in reason for hit in ask(index, query) for reason in hit.reasons)


def test_only_the_same_person_restates() -> None:
    texts = (("Ana", "My rent is 900 a month."), ("Ben", "My rent is 500 a month."))
    index = MemoryIndex(
        SpokenTurn(str(week), who, "user", START + timedelta(weeks=week), text)
        for week, (who, text) in enumerate(texts)
    )
    assert not any("newest of" in reason for hit in ask(index, "What is the rent a month?") for reason in hit.reasons)


def test_an_assistant_repeats_and_restates_nothing() -> None:
    index = sessions("Your rent is 900 a month.", "Your rent is 980 a month.", speaker="assistant", role="assistant")
    assert not any("newest of" in reason for hit in ask(index, "What is my rent a month?") for reason in hit.reasons)
    found = ask(index, "What did you tell me my rent is a month?")
    assert found[0].ordinal == NEW


@for_each("nearest", range(6))
def test_vectors_do_not_undo_it(nearest: int) -> None:
    index = sessions(
        "I attended three sessions of the pottery group.", "I have now been to five sessions of the pottery group."
    )
    near = np.zeros(len(index.ts))
    near[nearest] = 1.0
    dense = Dense(turn=near, window=near)
    at = places(ask(index, "How many sessions of the pottery group did I attend?", dense=dense))
    assert at[NEW] < at[OLD]


def test_documents_of_one_moment_are_not_turned_round() -> None:
    texts = ("The tower has 3 floors of red brick.", "The tower has 3 floors of red brick and a bell of bronze.")
    index = MemoryIndex(SpokenTurn(str(at), "", "document", START, text) for at, text in enumerate(texts))
    assert ask(index, "How many floors has the tower?")[0].ordinal == 0


OTHERWISE = (
    (
        "How many followers do I have?",
        "I have 900 followers and the account of the bakery keeps growing every single week.",
        "With the reels from Lisbon my followers went up, 1,300 in total by Sunday night, the bakery is thrilled.",
    ),
    (
        "How many cups of coffee do I drink?",
        "I drink 4 cups of coffee through the morning while the office slowly fills up.",
        "My doctor frowned about my sleep: since Tuesday 2 cups of coffee before lunch, afterwards tea.",
    ),
    (
        "How long have I lived in the flat?",
        "I have lived in the flat by the canal for a month, boxes everywhere, no curtains and a kettle on the floor.",
        "Half a year already that the three of us lived in the flat, who would believe it, time flies.",
    ),
)  # fmt: skip


@for_each(("query", "old", "new"), OTHERWISE)
def test_a_newer_value_in_other_words_comes_first_where_both_are_near_in_meaning(
    query: str, old: str, new: str
) -> None:
    index = sessions(old, new, *FILLERS, "The bus was late.", "We played cards until ten.")
    near = np.full(len(index.ts), 0.1)
    near[OLD], near[NEW] = 0.9, 0.88
    dense = RecallPolicy(dense_turn=1.0)
    assert not any("newest of" in reason for hit in ask(index, query) for reason in hit.reasons)
    found = ask(index, query, dense, Dense(turn=near, window=near))
    assert places(found)[NEW] < places(found)[OLD]
    near[NEW] = 0.05
    found = ask(index, query, dense, Dense(turn=near, window=near))
    assert places(found)[OLD] < places(found)[NEW]
