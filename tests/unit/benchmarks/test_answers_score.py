"""The measures of the bench of answers: each says what it is meant to say, on cases nobody fitted it to."""

from __future__ import annotations

import pytest
from benchmarks.answers_score import contains, f1, has_declined, one_form, score, words_of


@pytest.mark.parametrize(
    ("told", "form"),
    [
        ("7 May 2023", "7 may 2023"),
        ("May 7th, 2023", "7 may 2023"),
        ("2023-05-07", "7 may 2023"),
        ("2023 May 7", "7 may 2023"),
        ("the 7th of May, 2023", "the 7 may 2023"),
        ("Sept 2021 was, 2021-13 is not", "sept 2021 was, 2021-13 is not"),
        ("in June, 2022", "in june 2022"),
        ("The Sunday before 25 May 2023", "21 may 2023"),
        ("the saturday before 20 May 2023", "13 may 2023"),
        ("the week before 3 July 2023", "week of 26 june 2023"),
        ("the week before 9 June 2023", "week of 29 may 2023"),
        ("the weekend before 17 July 2023", "weekend of 15 july 2023"),
        ("the weekend before 16 July 2023", "weekend of 15 july 2023"),
        ("the day before 1 March 2024", "29 february 2024"),
        ("the day before 31 June 2024", "the day before 31 june 2024"),
        ("no date at all", "no date at all"),
    ],
)
def test_dates_have_one_form(told: str, form: str) -> None:
    assert one_form(told) == form


def test_the_same_date_in_two_forms_is_the_same_answer() -> None:
    assert f1("2023-05-21", "The Sunday before 25 May 2023") == 1.0
    assert f1("2023-05-21", "The Sunday before 25 May 2023", is_plain=True) == 0.0
    assert f1("May 20, 2023", "21 May 2023") == pytest.approx(2 / 3)


def test_words_are_stems_without_articles() -> None:
    assert words_of("The Runners and a cat's") == words_of("runner cat")
    assert f1("two dogs", "2 dogs") == 1.0
    assert f1("two dogs", "2 dogs", is_plain=True) == 0.5
    assert f1("1,200 calls per day", "1200 calls per day") == 1.0
    assert f1("", "anything") == 0.0
    assert f1("nothing alike", "another thing") == 0.0


def test_a_key_is_contained_as_it_stands() -> None:
    assert contains("She went on May 7, 2023, she said", "7 May 2023")
    assert not contains("She went on May 8, 2023", "7 May 2023")
    assert not contains("dance the first", "first dance")
    assert not contains("anything", "")


@pytest.mark.parametrize(
    "answer",
    [
        "Not mentioned.",
        "It is not mentioned in the conversation.",
        "The text does not specify this",
        "No information about that.",
        "I'm sorry, but I don't know",
        "Memory doesn’t say.",
        "unknown",
        "Nothing in memory answers this",
        "That was not explicitly stated",
    ],
)
def test_declined(answer: str) -> None:
    assert has_declined(answer)


@pytest.mark.parametrize(
    "answer",
    ["Nothing but tea", "7 May 2023", "She did not go", "Yes, she knows him", "No", "a notable mention", "no sugar"],
)
def test_not_declined(answer: str) -> None:
    assert not has_declined(answer)


def test_citations() -> None:
    marks = {"1": "a", "2": "b", "3": "c"}
    gold = frozenset({"b", "x"})
    right = score("Paris [2]", ["Paris"], gold=gold, marks=marks)
    assert (right.f1, right.contains, right.cites, right.right, right.unknown) == (1.0, True, True, True, False)
    assert right.cited_recall == 0.5
    wrong = score("Paris [1][9]", ["Paris"], gold=gold, marks=marks)
    assert (wrong.cites, wrong.right, wrong.unknown, wrong.cited_recall) == (True, False, True, 0.0)
    assert score("Paris [n]", ["Paris"], gold=gold, marks=marks).literal
    none = score("Paris", ["London", "Paris"], gold=gold, marks=marks)
    assert (none.f1, none.cites, none.literal) == (1.0, False, False)


def test_the_answer_of_another_is_a_trap() -> None:
    assert score("self-care is important", [], gold=frozenset(), marks={}, trap="Self-care is important").trapped
    assert not score("not mentioned", [], gold=frozenset(), marks={}, trap="Self-care is important").trapped
