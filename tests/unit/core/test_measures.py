"""Which values a text states, and which kinds of them a question asks for."""

from __future__ import annotations

from muniment.core.text.analyzer import ascii_words
from muniment.core.text.stated.measures import VALUES_MAX, asked_measures, counted, stated, value_marks
from products import for_each


def kinds(text: str) -> set[str]:
    """The kinds of the values that a text states, without what is counted."""
    return {mark.removeprefix(stated("")) for mark in value_marks(text) if mark.startswith(stated(""))}


@for_each(
    ("text", "kind"),
    [
        ("The budget is $1,250.", "money"),
        ("We pay 40 euros a head.", "money"),
        ("Coverage reached 78%.", "percent"),
        ("It fell to 12 percent.", "percent"),
        ("The webinar is on March 27.", "date"),
        ("It moved to the 5th of May.", "number"),
        ("It moved to 5 May.", "date"),
        ("It runs July 12-15.", "date"),
        ("Due 2024-05-01.", "date"),
        ("It moved to Thursday.", "date"),
        ("We start at 7:15 pm.", "clock"),
        ("We start at 7pm.", "clock"),
        ("It takes 2.5 hours.", "duration"),
        ("It took two weeks.", "duration"),
        ("It answers in 180ms.", "duration"),
        ("The cache has 512MB.", "size"),
        ("I ran 10 km.", "size"),
        ("It showed 135/82.", "ratio"),
        ("We run v18.15.0.", "version"),
        ("We run Locust 2.15.1.", "version"),
        ("The release is version 4.", "version"),
        ("I have 52 sources.", "number"),
        ("I just finished my fifth issue.", "number"),
    ],
)
def test_the_kind_of_a_value_is_told_by_what_stands_beside_it(text: str, kind: str) -> None:
    assert kind in kinds(text)
    assert value_marks(text, ascii_words(text)) == value_marks(text)


def test_what_is_counted_is_marked_up_to_a_word_that_joins() -> None:
    assert value_marks("I solved 12 conditional probability problems.") == [
        stated("number"),
        *map(counted, ("condit", "probabl", "problem")),
    ]
    assert value_marks("I added 52 sources to my library.") == [stated("number"), counted("sourc")]
    assert value_marks("I went five times.") == [stated("number"), counted("time")]


@for_each(
    "text",
    [
        "Nothing is counted here.",
        "Should we move to 500?",
        "Maybe 500 is better.",
        "I want to reach 500 one day.",
        "They suggested 500 instead.",
        "It used to be 400.",
        "It was 400 before.",
        "We no longer have 400.",
        "The old limit of 400 is gone.",
        "It is not 400.",
        "Do people play on 5 days?",
        "My sister's limit is 900.",
        "My brother raised his limit to 900.",
        "My cousin swims 30 laps.",
        "My aunt Rosa pays $900.",
        "The bank offered 5% for the car.",
        "It began in 2019.",
        "The h264 codec is fine.",
        "```\nlimit = 500\n```",
        "\n1. First\n2) Second",
    ],
)
def test_what_is_asked_thought_of_past_or_somebody_elses_is_not_stated(text: str) -> None:
    assert value_marks(text) == []


@for_each(
    "text",
    [
        "It went from 400 to 500.",
        "It used to be 400, now it is 500.",
        "The original 400 was moved to 500.",
        "How can I use the 500 best?",
        "Should I worry? We have 500.",
        "My sister called, and I have 500.",
        "With my wife we set it to 500.",
        "I should sleep, but we have 500.",
    ],
)
def test_a_value_beside_such_words_is_stated_all_the_same(text: str) -> None:
    assert stated("number") in value_marks(text)


def test_a_table_is_read_to_its_limit() -> None:
    rows = "".join(f"| {row} thing{'s' * row} |\n" for row in range(10, 10 + 2 * VALUES_MAX))
    assert len(value_marks(rows)) <= 2 * VALUES_MAX
    assert value_marks(rows + "$75") == value_marks(rows)


@for_each(
    ("question", "asked"),
    [
        ("what is the snack budget", {"money"}),
        ("what is the deadline", {"date"}),
        ("how long is it", {"duration"}),
        ("how many are there", {"number"}),
        ("which version do we run", {"version"}),
        ("who is the coach", set()),
    ],
)
def test_a_question_names_the_kinds_it_asks_for(question: str, asked: set[str]) -> None:
    assert asked_measures(frozenset(question.split())) == asked
