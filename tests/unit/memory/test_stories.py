"""Small stories in three languages: who, where, when, what changed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from muniment.core.policy import RecallPolicy
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.query import read_query
from muniment.memory.ranking import Ranked, rank
from products import for_each

NOW = date(2023, 9, 1)


def story(*turns: tuple[str, str, str], roles: dict[str, str] | None = None) -> MemoryIndex:
    """Turns as (session date, speaker, text)."""
    at: dict[str, int] = {}
    passages = []
    for day, speaker, text in turns:
        at[day] = at.get(day, -1) + 1
        said_at = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(minutes=at[day])
        passages.append(SpokenTurn(day, speaker, (roles or {}).get(speaker, "user"), said_at, text))
    return MemoryIndex(passages)


def ask(index: MemoryIndex, query: str, policy: RecallPolicy | None = None, k: int = 5) -> list[Ranked]:
    return rank(query, index, policy or RecallPolicy(), NOW, k)


MOVES = story(
    ("2023-01-10", "Ann", "I live in Seattle, close to the lake."),
    ("2023-01-10", "Bob", "Nice! I live in Denver."),
    ("2023-04-02", "Ann", "The cherry trees are in bloom."),
    ("2023-06-20", "Ann", "I live in Boston now, close to the harbour."),
    ("2023-06-20", "Bob", "Boston! How is the food?"),
)


def test_the_newest_statement_stands_first() -> None:
    found = ask(MOVES, "Where does Ann live now?")
    assert [hit.ordinal for hit in found[:2]] == [3, 0]
    assert any(reason.startswith("newest of") for reason in found[0].reasons)


def test_who_is_named_counts() -> None:
    assert ask(MOVES, "Where does Bob live?")[0].ordinal == 1
    assert "said by Bob" in ask(MOVES, "Where does Bob live?")[0].reasons


def test_a_former_state_is_not_turned_round() -> None:
    found = ask(MOVES, "Where did Ann live before?")
    assert found[0].ordinal in (0, 3)


def test_later_facts_win_within_one_session() -> None:
    index = story(
        ("2023-01-01", "user", "Nick plays the position of goalkeeper."),
        ("2023-01-01", "user", "The capital of Ruritania is Strelsau."),
        ("2023-01-01", "user", "Nick plays the position of striker."),
        ("2023-01-01", "user", "The capital of Ruritania is Zenda."),
    )
    found = ask(index, "What is the capital of Ruritania?")
    assert [hit.ordinal for hit in found[:2]] == [3, 1]
    assert ask(index, "What position does Nick play?")[0].ordinal == 2


def test_the_answer_to_a_question_is_found_by_the_words_of_the_question() -> None:
    index = story(
        ("2023-01-01", "Ann", "What is the name of your violin teacher?"),
        ("2023-01-01", "Bob", "Mrs Kowalska, she is strict."),
        ("2023-02-01", "Bob", "It rained all week."),
    )
    found = ask(index, "Who teaches Bob the violin?", RecallPolicy(ranking=""))
    assert found[0].ordinal == 1
    assert "stands beside what matches" in found[0].reasons


def test_a_kind_is_found_by_its_members() -> None:
    index = story(
        ("2023-01-01", "Ann", "I bought a new lamp."),
        ("2023-02-01", "Ann", "My puppy chewed the lamp."),
        ("2023-03-01", "Ann", "We repainted the hall."),
    )
    found = ask(index, "What pets does Ann have?")
    assert found[0].ordinal == 1
    assert any(reason.startswith("may speak of") for reason in found[0].reasons)


def test_dates_in_questions_meet_what_was_said_then() -> None:
    index = story(
        ("2023-05-08", "Ann", "I went to the concert yesterday."),
        ("2023-07-03", "Ann", "I went to another concert yesterday."),
    )
    assert ask(index, "Which concert on 7 May 2023?")[0].ordinal == 0
    assert ask(index, "Which concert was on 2 July?")[0].ordinal == 1
    assert ask(index, "What happened in July 2023?")[0].ordinal == 1


def test_what_was_said_at_the_time_that_is_asked_for_is_found_by_the_time_alone() -> None:
    """Mutation: a turn is a hit by its words alone, though it was said within the time that the question names."""
    index = story(
        ("2023-06-30", "Ann", "We repainted the hall."),
        ("2023-07-01", "Ann", "The cherry trees are in bloom."),
        ("2023-07-31", "Ann", "It rained all week."),
        ("2023-08-01", "Ann", "My puppy chewed the lamp."),
    )
    policy = RecallPolicy(ranking="")
    time = policy.time
    for asked, expected in (
        ("Anything before July?", [0]),
        ("Anything after July?", [3]),
        ("Anything since 31 July?", [2, 3]),
        ("Anything after June?", [1, 2, 3]),
    ):
        found = ask(index, asked, policy)
        assert [(hit.ordinal, dict(hit.parts)) for hit in found] == [(each, {"time": time}) for each in expected], asked
    both = ask(index, "Which hall after July?", policy)
    assert [(hit.ordinal, dict(hit.parts)) for hit in both] == [(0, {"words": 1.0}), (3, {"time": time})]
    assert ask(index, "Anything?") == []


def test_the_user_and_the_assistant_are_told_apart() -> None:
    index = story(
        ("2023-01-01", "user", "Which tent should I take to the mountains?"),
        ("2023-01-01", "assistant", "Take a light tent with two poles to the mountains."),
        roles={"user": "user", "assistant": "assistant"},
    )
    assert ask(index, "What tent did you recommend for the mountains?")[0].ordinal == 1
    assert ask(index, "Did I ask about a tent for the mountains?")[0].ordinal == 0


def test_chinese() -> None:
    index = story(
        ("2023-01-10", "小明", "我住在上海，离公司很近。"),
        ("2023-03-01", "小红", "我养了一只猫。"),
        ("2023-06-20", "小明", "我现在住在北京，离公司不远。"),
        ("2023-06-21", "小明", "昨天我看了一场电影。"),
    )
    assert ask(index, "小明现在住在哪里？")[0].ordinal == 2
    assert ask(index, "小红有什么宠物？")[0].ordinal == 1
    assert ask(index, "6月20日小明看了什么电影？")[0].ordinal == 3


def test_korean() -> None:
    index = story(
        ("2023-01-10", "민수", "나는 부산에 살고 있어요."),
        ("2023-03-01", "지영", "강아지를 한 마리 키워요."),
        ("2023-06-20", "민수", "나는 이제 서울에 살고 있어요."),
    )
    assert ask(index, "민수는 지금 어디에 살고 있나요?")[0].ordinal == 2
    assert ask(index, "지영의 반려동물은 무엇인가요?")[0].ordinal == 1


@for_each(
    ("text", "flag"),
    [
        ("What was my previous address?", "looks_back"),
        ("What did you suggest for dinner?", "addressed"),
        ("What did I cook?", "asker"),
    ],
)
def test_what_a_question_wants(text: str, flag: str) -> None:
    assert getattr(read_query(text, (), NOW), flag)


def test_a_name_that_two_share_or_nobody_has_is_no_speaker() -> None:
    assert read_query("What did Ann Lee and Bob say?", ("Ann Lee", "Bob"), NOW).speaker is None
    assert read_query("What did Ann say?", ("Ann Lee", "Bob"), NOW).speaker == 0
    assert read_query("What did the user say?", ("user", "assistant"), NOW).speaker is None
