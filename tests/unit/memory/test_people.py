"""Whom a query names of those who speak in a scope."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from muniment.memory.query import read_query, speakers_named
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
    return [speakers[number] for number in speakers_named(text, speakers)]


@for_each(
    ("text", "speaker", "other"),
    [
        ("What did Caroline buy?", "Caroline", "Muhammad"),
        ("what did caroline buy", "Caroline", "Muhammad"),
        ("Muhammad's birthday?", "Muhammad", "Caroline"),
        ("What did José cook?", "José", "Emi"),
        ("What did Jose cook?", "José", "Emi"),
        ("What did José cook?", "Jose", "Emi"),
        ("What did Zoe cook?", "Zoë", "Emi"),
        ("민수는 어디에 살아?", "민수", "지은"),
    ],
)
def test_a_speaker_is_named_in_small_letters_and_without_accents(text: str, speaker: str, other: str) -> None:
    assert named(text, speaker, other) == [speaker]
    assert named(text, other, speaker) == [speaker]


@for_each(
    ("text", "speakers"),
    [
        ("What are Kate's hobbies?", ("Emi", "Elise")),
        ("Where is Mario?", ("Maria", "Emi")),
        ("Did they marry in June?", ("Mary", "Emi")),
        ("Will it rain?", ("William", "Emi")),
        ("What did the user say?", ("user", "assistant")),
        ("What was the project about?", ("Project Manager", "Emi")),
        ("", ("Emi",)),
    ],
)
def test_nobody_is_named(text: str, speakers: tuple[str, ...]) -> None:
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
    query = read_query("What do Muhammad and Caroline share?", PAIR, NOW)
    assert query.speakers == (0, 1)
    assert query.speaker is None
    alone = read_query("What does Caroline like?", PAIR, NOW)
    assert (alone.speakers, alone.speaker) == ((0,), 0)
    assert read_query("What is new?", PAIR, NOW).speakers == ()


@given(st.text(max_size=80), st.lists(st.text(max_size=12), max_size=6))
def test_any_query_and_any_speakers(text: str, speakers: list[str]) -> None:
    found = speakers_named(text, speakers)
    assert found == sorted(set(found))
    assert found == speakers_named(text, speakers)
