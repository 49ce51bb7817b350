"""Whom a query names: speakers by name, nickname, in other letters, with a slip; names that no turn spells so."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import analyze, term_hash
from muniment.memory.recall.index import MemoryIndex, SpokenTurn
from muniment.memory.recall.people import names_unsaid, speakers_named
from muniment.memory.recall.query import read_query
from muniment.memory.recall.rank import rank
from products import for_each

NOW = date(2024, 3, 1)
PAIR = ("Caroline", "Muhammad", "user", "assistant")
MEETING = (
    "The Chair (Hon. Anthony Rota (Nipissing, Lib.))",
    "Mr. Garnett Genuis (Sherwood Park, CPC)",
    "Hon. Mélanie Joly",
    "Grad A",
    "Grad C",
    "Professor B",
    "Project Manager",
    "Marketing",
    "Anna Lee",
    "Anna Kim",
)


def named(text: str, *speakers: str) -> list[str]:
    return [speakers[each.number] for each in speakers_named(text, speakers)]


@for_each(
    ("text", "speaker", "other"),
    [
        ("What did Caroline buy?", "Caroline", "Muhammad"),
        ("what did caroline buy", "Caroline", "Muhammad"),
        ("Where does Muhhamed live?", "Muhammad", "Caroline"),
        ("where does muhhamed live", "Muhammad", "Caroline"),
        ("Muhhamed's birthday?", "Muhammad", "Caroline"),
        ("Where does Mohamed live?", "Muhammad", "Caroline"),
        ("Где живёт Мухаммад?", "Muhammad", "Caroline"),
        ("Где живёт Михаил?", "Mikhail", "Caroline"),
        ("Где живёт Юрий?", "Yuri", "Caroline"),
        ("Где живёт Мария?", "Maria", "Mario"),
        ("Πού μένει η Ευγενία;", "Evgenia", "Emi"),
        ("أين يعيش محمد؟", "Muhammad", "Caroline"),
        ("What is Kate's job?", "Katherine", "Emi"),
        ("what is kate's job", "Katherine", "Emi"),
        ("What is Katherine's job?", "Kate", "Emi"),
        ("When did Bob move?", "Robert", "Mike"),
        ("When did Michael move?", "Mike", "Robert"),
        ("What did Sasha cook?", "Alexander", "Emi"),
        ("What did Pepe cook?", "José", "Emi"),
        ("What did Jose cook?", "José", "Emi"),
        ("What did José cook?", "Jose", "Emi"),
        ("What did Zoe cook?", "Zoë", "Emi"),
        ("What did Melany say?", "Melanie", "Caroline"),
        ("How long have Mel and her husband been married?", "Melanie", "Caroline"),
        ("What did Carloine say?", "Caroline", "Melanie"),
        ("What did Soren say?", "Søren", "Emi"),
        ("민수는 어디에 살아?", "Minsu", "Emi"),
        ("Where does Minsu live?", "민수", "지은"),
        ("Where does Kenji live?", "ケンジ", "さくら"),
        ("Where does Tina live?", "ティナ", "さくら"),
        ("What did William say, and will he come?", "Will", "Emi"),
    ],
)
def test_a_speaker_however_the_name_is_given(text: str, speaker: str, other: str) -> None:
    assert named(text, speaker, other) == [speaker]
    assert named(text, other, speaker) == [speaker]


@for_each(
    ("text", "speakers"),
    [
        ("What are Kate's hobbies?", ("Emi", "Elise")),
        ("Where is Mario?", ("Maria", "Emi")),
        ("Where is Maria?", ("Mario", "Emi")),
        ("Where is Danielle?", ("Daniel", "Emi")),
        ("Where is Eric?", ("Erica", "Emi")),
        ("Where is Elisa?", ("Elise", "Emi")),
        ("Where is Alex?", ("Alexander", "Alexandra")),
        ("Did they marry in June?", ("Mary", "Emi")),
        ("did they marry in june", ("Mary", "Emi")),
        ("Will it rain?", ("William", "Emi")),
        ("Who pays the bill?", ("William", "Emi")),
        ("who pays the bill", ("William", "Emi")),
        ("Mark the date", ("Marcus", "Emi")),
        ("What did the user say?", ("user", "assistant")),
        ("What was the project about?", ("Project Manager", "Emi")),
        ("Where is Marai?", ("Maria", "Maria")),
        ("What of Paris and China?", ("Parker", "Chima")),
        ("", ("Emi",)),
    ],
)
def test_a_name_that_is_somebody_elses_or_could_be_two_names_nobody(text: str, speakers: tuple[str, ...]) -> None:
    assert named(text, *speakers) == []


@for_each(
    ("text", "expected"),
    [
        ("What did Grad C think of a new plan?", ["Grad C"]),
        ("What did the professor think?", ["Professor B"]),
        ("What did the project manager say?", ["Project Manager"]),
        ("What did Marketing think?", ["Marketing"]),
        ("What did Mr. Genuis ask?", [MEETING[1]]),
        ("What did Garnett Genuis ask the chair?", [MEETING[0], MEETING[1]]),
        ("What did Melanie Joly answer?", ["Hon. Mélanie Joly"]),
        ("What did Anna Kim say?", ["Anna Kim"]),
        ("What did Anna say?", ["Anna Lee", "Anna Kim"]),
        ("What did the others say in the meeting?", []),
    ],
)
def test_those_who_speak_in_a_meeting(text: str, expected: list[str]) -> None:
    assert named(text, *MEETING) == expected


def test_a_question_on_two_people_names_both() -> None:
    query = read_query("What do Muhhamed and Caroline share?", PAIR, NOW)
    assert query.speakers == (0, 1)
    assert query.speaker is None
    alone = read_query("What does Caroline like?", PAIR, NOW)
    assert (alone.speakers, alone.speaker) == ((0,), 0)
    assert read_query("What is new?", PAIR, NOW).speakers == ()


def test_a_name_that_the_scope_speaks_of_is_no_slip_for_a_speaker() -> None:
    known = {term_hash(term) for term in analyze("Carolyne")}
    assert speakers_named("Where is Carolyne?", PAIR, lambda term: 0)[0].number == 0
    assert speakers_named("Where is Carolyne?", PAIR, lambda term: 1 if term in known else 0)[0].number == 0
    assert speakers_named("Where is Carolyne?", PAIR, lambda term: 9 if term in known else 0) == []


def test_a_speaker_spelled_otherwise_is_looked_for_as_they_are_spelled() -> None:
    query = read_query("What did Muhhamed buy?", PAIR, NOW)
    place = next(place for place, slot in enumerate(query.slots) if slot.word == "muhham")
    assert [kind.terms for kind in query.kinds if kind.slots == (place,)] == [
        tuple(map(term_hash, analyze("Muhammad")))
    ]


def scope(*texts: str) -> MemoryIndex:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return MemoryIndex(
        SpokenTurn(f"s{place // 4}", ("Ana", "Ben")[place % 2], "user", start + timedelta(minutes=place), text)
        for place, text in enumerate(texts)
    )


@for_each(
    ("said", "asked"),
    [
        ("Muhammad", "Muhhamed"),
        ("Katherine", "Kate"),
        ("Kate", "Katherine"),
        ("Kristofer", "Christopher"),
        ("Мухаммад", "Muhammad"),
        ("Barcelona", "Barselona"),
        ("Zorblaxen", "Zorblaxin"),
    ],
)
def test_somebody_who_is_only_mentioned_is_found_by_another_spelling(said: str, asked: str) -> None:
    other = [f"The weather on day {day} was fine and we stayed at home." for day in range(8)]
    index = scope(*other[:5], f"Then {said} came over for dinner.", *other[5:])
    found = rank(f"Tell me about {asked}", index, RecallPolicy(), NOW, 3)
    assert [hit.ordinal for hit in found][:1] == [5]


def test_a_name_that_some_turn_has_is_looked_for_as_it_is() -> None:
    index = scope("We saw Muhammad there.", "And Muhhamed came as well.", "The weather was fine.")
    holding = lambda term: len(index.postings(term)[0])  # noqa: E731
    assert names_unsaid("Where is Muhhamed?", holding) == {}
    assert list(names_unsaid("Where is Mohammed?", holding)) == ["mohammed"]


@given(st.text(max_size=80), st.lists(st.text(max_size=12), max_size=6))
def test_any_query_and_any_speakers(text: str, speakers: list[str]) -> None:
    found = speakers_named(text, speakers)
    assert [each.number for each in found] == sorted({each.number for each in found})
    assert found == speakers_named(text, speakers)
