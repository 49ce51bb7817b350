"""What a model's answer is worth: dates and numbers in one form, containment, declining, citations."""

from __future__ import annotations

import pytest

from muniment.verify.answers import answer_tokens, best_f1, contains_any, judge_citations, token_f1, was_declined
from products import for_each


@for_each(
    ("one", "other"),
    [
        ("7 May 2023", "2023-05-07"),
        ("May 7th, 2023", "7 May 2023"),
        ("the 7th of May 2023", "May 7, 2023"),
        ("two dogs", "2 dogs"),
        ("1,200 dollars", "1200 dollar"),
        ("The Café.", "cafe"),
        ("In June", "in june!"),
        ("painting", "paintings"),
        ("", ""),
        ("No.", "no"),
        ("She lives in Berlin [3].", "she lives in berlin"),
        ("２０２３年5月7日", "2023-05-07"),
        ("Luna and Oliver", "Luna, Oliver"),
        ("James's cat", "James cat"),
        ("Ross’s 1990s", "Ross 1990s"),
        ("$75.00", "75"),
        ("a 50mm lens", "50mm lens"),
        ("Apr 3rd", "3 April"),
    ],
)
def test_ways_of_writing_one_thing_are_one(one: str, other: str) -> None:
    assert token_f1(one, other) == token_f1(other, one) == 1


@for_each(
    ("answer", "expected", "f1"),
    [
        ("Berlin", "Hamburg", 0.0),
        ("", "Berlin", 0.0),
        ("Berlin", "", 0.0),
        ("May 2023", "7 May 2023", 0.8),
        ("in Berlin", "Berlin", 2 / 3),
        ("yes", "no", 0.0),
        ("dog dog dog", "dog", 0.5),
        ("北京市", "北京", 0.8),
        ("Luna and Oliver", "Two cats and a dog", 0.0),
        ("50mm lens", "5 0mm", 0.0),
        ("50mm", "70-200mm", 0.0),
    ],
)
def test_f1_is_what_two_texts_share(answer: str, expected: str, f1: float) -> None:
    assert token_f1(answer, expected) == pytest.approx(f1)


def test_the_expected_answer_that_fits_best_counts() -> None:
    assert best_f1("Berlin", ["Hamburg", "Berlin"]) == 1
    assert best_f1("Berlin", []) == 0


@for_each(
    ("text", "expected"),
    [
        ("She moved to Berlin in May.", "berlin"),
        ("She moved to New York.", "New York"),
        ("[1] 2023-05-07 Ana: I moved.", "7 May 2023"),
        ("It was in May 2023.", "2023"),
        ("That year, 2023, was good.", "2023"),
        ("She has 2 dogs.", "two dogs"),
        ("她住在北京市。", "北京"),
    ],
)
def test_what_was_expected_stands_in_the_text(text: str, expected: str) -> None:
    assert contains_any(text, ["something else", expected])


@for_each(
    ("text", "expected"),
    [
        ("She moved to York, which is new.", "New York"),
        ("It was in May.", "7 May 2023"),
        ("Berliner", "Berlin Wall"),
        ("anything", "…"),
        ("", "Berlin"),
        ("She has 22 dogs.", "2 dogs"),
    ],
)
def test_what_does_not_stand_there_does_not(text: str, expected: str) -> None:
    assert not contains_any(text, [expected])


@for_each(
    "answer",
    [
        "",
        "…",
        "I don't know.",
        "I don’t know which city it was.",
        "Unknown",
        "Not mentioned.",
        "It is not mentioned in the conversation.",
        "The evidence does not say where she works.",
        "There is no information about a dog. Would you like me to look further?",
        "The memory has no record of that.",
        "It cannot be determined from the context.",
        "Nothing in the evidence says so.",
        "I'm not sure.",
        "No, not mentioned.",
        "The answer is: not mentioned.",
        "Answer: unknown",
        "Sorry, not stated.",
        "John's financial status is unknown.",
        "Her age remains unclear from the conversation.",
        "I'm sorry, but I am not able to provide that.",
        "I'm unable to answer this.",
        "Das weiß ich nicht.",
        "No se menciona.",
        "文中未提及。",
        "わかりません。",
        "언급되지 않았습니다.",
    ],
)
def test_an_answer_that_says_it_is_not_known_declines(answer: str) -> None:
    assert was_declined(answer)


@for_each(
    "answer",
    [
        "Berlin",
        "No",
        "No, she said no to it.",
        "She doesn't know how to swim.",
        "I'm not sure, but it was Berlin.",
        "He has no data plan.",
        "Berlin. I don't know more than that.",
        "Nothing was bought.",
        "[4]",
        "[1], [2]",
        "A",
        "He painted The Unknown Soldier.",
        "The grave is unknown ground to her",
        "I'm unable to swim, she said.",
        "I'm sorry for your loss.",
        "A notable mention",
        "No sugar",
    ],
)
def test_an_answer_that_answers_does_not(answer: str) -> None:
    assert not was_declined(answer)


def test_citations_are_held_against_what_was_expected() -> None:
    marks = {"1": "evt_a", "2": "evt_b", "3": "evt_c"}
    right = judge_citations("She lives in Berlin [2].", marks, ["evt_b", "evt_c"])
    assert (right.any, right.known, right.right, right.recall) == (True, True, True, 0.5)
    wrong = judge_citations("She lives in Berlin [1].", marks, ["evt_b"])
    assert (wrong.any, wrong.known, wrong.right, wrong.recall) == (True, True, False, 0.0)
    made_up = judge_citations("She lives in Berlin [9].", marks, ["evt_b"])
    assert (made_up.any, made_up.known, made_up.right, made_up.recall) == (True, False, False, 0.0)
    assert [each.unknown for each in (right, wrong, made_up)] == [False, False, True]
    assert judge_citations("Berlin [2] [9]", marks, ["evt_b"]) == (True, True, True, True, 1.0)
    assert not judge_citations("Berlin", marks, ["evt_b"]).any


def test_a_long_text_is_read_once() -> None:
    text = "Berlin and so on " * 20_000
    assert answer_tokens(text).words[0] == "berlin"
    assert not was_declined(text)
