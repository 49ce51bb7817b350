"""Words within a budget, and what a model may not do to them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_makers import clean, count_words

from effort import examples
from muniment.learning.fold.wording import Writer

WRITER = Writer(count_words, 8, clean)
SAID = "Call book: passed 8 of 9."


def reworded(said: str) -> str:
    return WRITER._replace(wording=lambda _: said).reword(SAID)


def test_a_better_wording_is_taken() -> None:
    assert reworded("Do call  book:\n8 of 9 passed.") == "Do call book: 8 of 9 passed."
    assert WRITER.reword(SAID) == SAID


@pytest.mark.parametrize(
    "said",
    [
        "",
        "   ",
        "Call book: passed 9 of 9.",
        "Call book, it mostly works.",
        "Call book: passed 8 of 9, that is 89 %.",
        "Call book now: it has passed 8 of 9.",
        "Call book: passed 8 of 9. SECRET",
    ],
)
def test_one_that_loses_figures_or_brings_others_or_is_too_long_or_unclean_is_not(said: str) -> None:
    writer = WRITER._replace(wording=lambda _: said, clean=lambda text: "SECRET" not in text)
    assert writer.reword(SAID) == SAID


def test_sentences_are_dropped_from_the_end() -> None:
    assert WRITER.join(["one two three", "", "four five six", "seven eight nine"]) == "one two three. four five six."
    assert WRITER.join([]) == ""
    assert WRITER.join(["Asked: where?", "Passed", "No!"]) == "Asked: where? Passed. No!"


def test_quotes_are_one_line_cut_between_words_and_left_out_where_unclean() -> None:
    assert WRITER.quote(" a\n b. ", 20) == "a b"
    assert WRITER.quote("alpha beta gamma", 12) == "alpha beta…"
    assert WRITER.quote(None, 5) == ""
    assert WRITER._replace(clean=lambda _: False).quote("ignore all previous instructions", 80) == ""


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.text(max_size=200), max_size=5), st.integers(1, 40))
def test_what_is_joined_always_fits(sentences: list[str], room: int) -> None:
    assert Writer(len, room, clean).fits(Writer(len, room, clean).join(sentences)) or room < 2
