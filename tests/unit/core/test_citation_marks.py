"""An answer's marks: what they named, and the answer with the marks of another page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.sentences import named_by_marks, numbers_in, with_marks
from muniment.packets.answers import resolve
from products import for_each

NAMED = {"1": "a", "2": "b", "3": ""}
THERE = {"a": "[44]"}


@pytest.mark.req("TM-10")
@for_each(
    ("text", "written"),
    [
        ("Lisbon [1].", "Lisbon [44]."),
        ("Lisbon[1].", "Lisbon[44]."),
        ("Lisbon. [1] Next", "Lisbon. [44] Next"),
        ("[1] Lisbon", "[44] Lisbon"),
        ("Lisbon [2].", "Lisbon."),
        ("[2] Lisbon", "Lisbon"),
        ("One.\n[2] Two", "One.\nTwo"),
        ("Both [1, 2], all [1-2], none [2;3].", "Both [44], all [44], none."),
        ("It says [3].", "It says."),
        ("a[3] is an item", "a[3] is an item"),
        ("`a[1]` and [1]", "`a[1]` and [44]"),
        ("```\na[1] = b[2]\n```\nDone [2]", "```\na[1] = b[2]\n```\nDone"),
        ("[7] is nobody's", "[7] is nobody's"),
        ("[1, 7] is mixed", "[1, 7] is mixed"),
        ("[x] [] [1.5] [a1]", "[x] [] [1.5] [a1]"),
        ("", ""),
    ],
)
def test_marks_are_those_of_the_evidence_there_or_none(text: str, written: str) -> None:
    assert with_marks(text, NAMED, THERE.get) == written


@given(st.text())
def test_without_a_table_a_text_stays_as_it_is(text: str) -> None:
    assert with_marks(text, {}, THERE.get) == text


_PIECES = st.sampled_from(["Lisbon", ". ", " [1]", "[2]", " [1, 3]", "[2-4]", "\n", " [9]", "? ", "`x[1]`", " it is"])


@pytest.mark.req("TM-10")
@given(st.lists(_PIECES).map("".join), st.dictionaries(st.sampled_from("12345"), st.sampled_from("12345")))
def test_what_an_answer_cites_tells_what_its_numbers_named(answer: str, numbered: dict[str, str]) -> None:
    marks = {number: f"evt_{number}" for number in numbered}
    cited = resolve(answer, marks)
    named = named_by_marks(answer, cited.evidence_ids, cited.unknown_marks)
    assert named == {number: marks.get(number, "") for number in numbers_in(answer)}
    again = with_marks(answer, named, lambda id_: f"[{id_[4:]}]")
    assert resolve(again, marks).evidence_ids == cited.evidence_ids


def test_where_numbers_and_evidence_do_not_fit_nothing_is_named() -> None:
    assert named_by_marks("One [1], two [2].", ["a"], []) == {"1": "", "2": ""}
