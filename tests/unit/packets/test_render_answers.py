"""Marks in an answer resolve to evidence, and what does not is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.packets.answers import resolve, unmarked
from products import for_each

MARKS = {"1": "e1", "2": "e2", "3": "e3"}


def told(answer: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.text, each.evidence_ids) for each in resolve(answer, MARKS).sentences]


@pytest.mark.req("MP-13", "TM-10")
def test_sentences_with_what_they_cite() -> None:
    answer = "Ana lives in Berlin [1]. She likes tea. [2][3] She is 40 [7]! Perhaps."
    resolution = resolve(answer, MARKS)
    assert told(answer) == [
        ("Ana lives in Berlin [1].", ("e1",)),
        ("She likes tea. [2][3]", ("e2", "e3")),
        ("She is 40 [7]!", ()),
        ("Perhaps.", ()),
    ]
    assert resolution.evidence_ids == ("e1", "e2", "e3")
    assert resolution.unknown_marks == ("[7]",)
    assert resolution.uncited == ("She is 40 [7]!", "Perhaps.")


@for_each(
    ("answer", "ids"),
    [
        ("Yes [1, 3].", ("e1", "e3")),
        ("Yes [1-3].", ("e1", "e2", "e3")),
        ("Yes [1–2; 3].", ("e1", "e2", "e3")),
        ("Yes [01].", ("e1",)),
        ("Yes [3-1].", ("e3", "e1")),
        ("Yes [1][1].", ("e1",)),
        ("她住在柏林[1]。她喜欢茶。", ("e1",)),
        ("Yes [a] [ ] [] [1.5].", ()),
    ],
)
def test_ways_to_write_marks(answer: str, ids: tuple[str, ...]) -> None:
    assert resolve(answer, MARKS).evidence_ids == ids


def test_a_mark_that_opens_a_line_belongs_to_that_line() -> None:
    assert told("Sources:\n[1] Berlin\n[2] tea") == [("Sources:", ()), ("[1] Berlin", ("e1",)), ("[2] tea", ("e2",))]


def test_a_range_without_end_is_not_unrolled() -> None:
    resolution = resolve("Yes [1-999999999].", MARKS)
    assert resolution.evidence_ids == ("e1",)
    assert resolution.unknown_marks == ("[999999999]",)


@pytest.mark.req("TM-10")
@given(st.text(alphabet="ab .!?[]0123456789-,;\n。", max_size=120))
def test_any_answer_resolves_and_names_only_what_exists(answer: str) -> None:
    resolution = resolve(answer, MARKS)
    assert set(resolution.evidence_ids) <= set(MARKS.values())
    assert all(mark.strip("[]") not in MARKS for mark in resolution.unknown_marks)
    kept = "".join("".join(each.text.split()) for each in resolution.sentences)
    assert sorted(kept) == sorted("".join(answer.split()))


@for_each(
    ("answer", "said"),
    [
        ("It is 330 m tall [1].", "It is 330 m tall."),
        ("It is 330 m tall. [1]", "It is 330 m tall."),
        ("It is 330 m tall[1][2]. And old [2, 3].", "It is 330 m tall. And old."),
        ("[1] says so, [1-3] too.", " says so, too."),
        ("It is 330 m tall [7].", "It is 330 m tall [7]."),
        ("It is 330 m tall [1, 7].", "It is 330 m tall [1, 7]."),
        ("It is 330 m tall [1][7].", "It is 330 m tall[7]."),
        ("One [1]\n[2] two", "One\n two"),
        ("No marks: [a], [1.5], [ ].", "No marks: [a], [1.5], [ ]."),
    ],
)
def test_what_an_answer_says_without_its_marks(answer: str, said: str) -> None:
    assert unmarked(answer, resolve(answer, MARKS).unknown_marks) == said


@given(st.lists(st.sampled_from(["Ana", " ", ".", "[1]", "[2, 3]", "[9]", "[1-9]", "[", "]", "7", "\n"]), max_size=12))
def test_only_marks_that_name_evidence_are_taken_out(parts: list[str]) -> None:
    answer = "".join(parts)
    said = unmarked(answer, resolve(answer, MARKS).unknown_marks)
    assert resolve(said, MARKS).unknown_marks == resolve(answer, MARKS).unknown_marks
    assert [sign for sign in said if sign.isalpha()] == [sign for sign in answer if sign.isalpha()]
