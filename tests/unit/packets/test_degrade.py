"""Cutting a text: which sentence is kept, how far the cut grows round it, and where words end (MP-05, MP-14)."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core.text.analyzer import analyze
from muniment.packets.allocate import cut_text, cut_value
from products import for_each

TERMS = analyze("bridge harbour")


def within(limit: int) -> Any:
    return lambda text: len(text) <= limit


@pytest.mark.req("MP-05")
def test_of_sentences_that_share_as_many_terms_the_first_is_kept() -> None:
    """Mutation: at a tie the last of the sentences is kept."""
    text = "It rained. The bridge is old. It rained more. The bridge is new. It rained again."
    assert cut_text(text, within(18), TERMS) == "The bridge is old."
    assert cut_text(text, within(12), ()) == "It rained."


@pytest.mark.req("MP-05")
def test_more_terms_win_over_an_earlier_place() -> None:
    text = "The bridge is old. The bridge stands in the harbour. The end."
    assert cut_text(text, within(34), TERMS) == "The bridge stands in the harbour."


@pytest.mark.req("MP-05")
def test_the_cut_grows_forward_first_and_then_backward_as_long_as_it_fits() -> None:
    """Mutation: the cut grows backward first, or by one sentence less than fits, or past what fits."""
    text = "One is up. Two is up. The bridge. Four is up. Five is up."
    assert cut_text(text, within(11), TERMS) == "The bridge."
    assert cut_text(text, within(23), TERMS) == "The bridge. Four is up."
    assert cut_text(text, within(35), TERMS) == "The bridge. Four is up. Five is up."
    assert cut_text(text, within(46), TERMS) == "Two is up. The bridge. Four is up. Five is up."
    assert cut_text(text, within(len(text) - 1), TERMS) == "Two is up. The bridge. Four is up. Five is up."
    assert cut_text(text, within(len(text)), TERMS) == text


@pytest.mark.req("TM-16")
@for_each(
    "text",
    [
        "I started eating fish again last month but stopped because it made me ill.",
        "I am not allergic to nuts, only to the sesame that they are roasted with.",
        "Deploy on Friday only if both of us have signed the checklist",
        "我开始吃鱼了但是上个月又停了因为我过敏",
    ],
)
def test_a_sentence_is_never_cut(text: str) -> None:
    """Half of it may say the opposite: it stands whole or not at all."""
    for limit in range(len(text)):
        assert cut_text(text, within(limit), analyze("fish nuts deploy 吃鱼")) is None
    assert cut_text(text, within(len(text)), analyze("fish nuts deploy 吃鱼")) == text


@pytest.mark.req("TM-16")
def test_where_the_best_sentence_does_not_fit_another_that_shares_a_term_does() -> None:
    text = "It rained. The bridge that leads over the harbour is closed until the spring. The bridge is old. Bye."
    assert cut_text(text, within(20), TERMS) == "The bridge is old."
    assert cut_text(text, within(12), TERMS) is None, "a sentence on something else tells nothing of it"


@pytest.mark.req("MP-05")
def test_a_value_that_does_not_fit_is_cut_at_its_words() -> None:
    text = "alpha beta  gamma delta"
    assert cut_value(text, within(22)) == "alpha beta  gamma"
    assert cut_value(text, within(17)) == "alpha beta  gamma"
    assert cut_value(text, within(16)) == "alpha beta"
    assert cut_value(text, within(5)) == "alpha"
    assert cut_value(text, within(4)) is None


@pytest.mark.req("MP-05")
def test_words_that_are_not_set_apart_are_cut_at_any_sign() -> None:
    """Mutation: a text of one word, or of few, is cut at its spaces alone."""
    assert cut_value("柏" * 90, within(7)) == "柏" * 7
    assert cut_value("a b" + "柏" * 90, within(7)) == "a b柏柏柏柏"
    assert cut_value("x" * 40, within(7)) == "x" * 7
    assert cut_value("x" * 39, within(7)) is None  # a word of this length is one


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_nothing_is_cut_from_nothing(text: str) -> None:
    assert cut_text(text, within(5)) is None


def test_a_value_is_cut_as_a_text_or_by_its_first_items() -> None:
    assert cut_value("One. Two. Three.", within(9)) == "One. Two."
    assert cut_value([1, 2, 3, 4], lambda kept: len(kept) <= 2) == [1, 2]
    assert cut_value([1, 2, 3, 4], lambda kept: len(kept) <= 4) == [1, 2, 3]  # whole is for the caller to try
    assert cut_value([1, 2], lambda kept: len(kept) <= 1) == [1]
    assert cut_value([1, 2], lambda kept: False) is None
    assert cut_value([1], lambda kept: True) is None
    assert cut_value({"a": 1}, lambda kept: True) is None
    assert cut_value(7, lambda kept: True) is None
