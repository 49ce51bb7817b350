"""Questions of an eval: what each field refuses and how that is said, where it stands, and what names a question."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.errors import InvalidInput
from muniment.verify.evals.questions import (
    EvalQuestion,
    KnownValue,
    Placed,
    first_questions,
    read_question,
    read_questions,
)
from products import for_each

GOOD: dict[str, Any] = {"question": "Where does Ana live?", "answers": ["Berlin"]}


@for_each(
    ("wrong", "path"),
    [
        ({"question": ""}, "$.question"),
        ({"question": "   "}, "$.question"),
        ({"question": 3}, "$.question"),
        ({"question": None}, "$.question"),
        ({"question": "x" * 16_001}, "$.question"),
        ({"answers": "Berlin"}, "$.answers"),
        ({"answers": [""]}, "$.answers[0]"),
        ({"answers": [7]}, "$.answers[0]"),
        ({"evidence": "evt_1"}, "$.evidence"),
        ({"evidence": ["evt_1", None]}, "$.evidence[1]"),
        ({"stale": {"evt_1": 1}}, "$.stale"),
        ({"not_told": [[]]}, "$.not_told[0]"),
        ({"answerable": "no"}, "$.answerable"),
        ({"answerable": None}, "$.answerable"),
        ({"user_id": ""}, "$.user_id"),
        ({"user_id": 7}, "$.user_id"),
        ({"agent_id": "a\nb"}, "$.agent_id"),
        ({"session_id": []}, "$.session_id"),
        ({"id": "x" * 300}, "$.id"),
        ({"asked_at": "yesterday"}, "$.asked_at"),
        ({"asked_at": 5}, "$.asked_at"),
        ({"note": 5}, "$.note"),
        ({"answer": "Berlin"}, "$.answer"),
        ({"answers": []}, "$"),
        ({"answerable": False}, "$.answers"),
        ({"stale": ["evt_1"]}, "$.stale"),
    ],
)
def test_what_is_wrong_with_a_field_is_said_with_its_place(wrong: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_question({**GOOD, **wrong}, "questions.jsonl:3")
    assert "questions.jsonl:3: " in refused.value.message
    assert refused.value.path == path
    assert refused.value.hint


@pytest.mark.parametrize("data", ["Where?", 3, None, True])
def test_a_question_is_an_object(data: Any) -> None:
    with pytest.raises(InvalidInput, match="a question is an object"):
        read_question(data)


def test_a_question_without_its_text_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_question({"answers": ["Berlin"]})
    assert refused.value.path == "$.question"


def test_a_single_text_for_a_list_is_told_how_to_write_it() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_question({**GOOD, "evidence": "evt_1"})
    assert refused.value.hint == 'evidence is a list: "evidence": ["…"]'


def test_a_list_in_a_document_says_which_of_it() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_questions([Placed("q.json:1", [GOOD, {"question": "When?", "answers": [1]}])])
    assert refused.value.path == "$[1].answers[0]"


def test_a_file_without_a_question_is_refused() -> None:
    for documents in ([], [Placed("q.json:1", [])]):
        with pytest.raises(InvalidInput, match="there is no question"):
            read_questions(documents)


def test_two_of_one_id_are_refused_with_both_places() -> None:
    with pytest.raises(InvalidInput, match=r"q:2: .*stands at q:1 already"):
        read_questions([Placed("q:1", {**GOOD, "id": "a"}), Placed("q:2", {**GOOD, "id": "a"})])
    with pytest.raises(InvalidInput, match="already"):
        read_questions([Placed("q:1", GOOD), Placed("q:2", GOOD)])


def test_an_id_follows_from_the_question_and_not_from_its_place() -> None:
    one, same = read_question(GOOD), read_question({**GOOD, "answers": ["Hamburg"]})
    other = read_question({**GOOD, "user_id": "bo"})
    assert one.name == same.name != other.name
    assert read_question({**GOOD, "id": "home"}).name == "home"


def test_what_is_expected_is_as_it_was_written() -> None:
    asked = EvalQuestion.from_wire({"question": "Where?", "answerable": False, "not_told": ["Paris"]})
    assert asked.expected == {"not_told": ["Paris"], "answerable": False}


# -- a first file -------------------------------------------------------------------------------------


def test_a_first_file_asks_for_values_changes_and_what_only_others_said() -> None:
    known = {
        "bo": [KnownValue("user.diet", "vegetarian", ("evt_9",), True)],
        "ana": [
            KnownValue("user.city", "Hamburg", ("evt_1",), False),
            KnownValue("user.city", "Berlin", ("evt_2",), True),
            KnownValue("user.age", 40, (), True),
        ],
    }
    made = list(first_questions(known))
    city, no_diet, diet, no_city = made
    assert (city["answers"], city["evidence"], city["stale"]) == (["Berlin"], ["evt_2"], ["evt_1"])
    assert (no_diet["user_id"], no_diet["answerable"], no_diet["not_told"]) == ("ana", False, ["vegetarian"])
    assert (diet["user_id"], diet["answers"]) == ("bo", ["vegetarian"])
    assert (no_city["user_id"], no_city["not_told"]) == ("bo", ["Berlin"])
    assert made == list(first_questions(dict(reversed(known.items()))))
    assert len(read_questions(Placed(str(at), each) for at, each in enumerate(made))) == len(made)


def test_a_key_that_somebody_ever_had_is_not_asked_of_them_as_unknown() -> None:
    known = {
        "ana": [KnownValue("user.city", "Hamburg", ("evt_1",), False)],
        "bo": [KnownValue("user.city", "Paris", ("evt_2",), True)],
    }
    assert [each["user_id"] for each in first_questions(known)] == ["bo"]
