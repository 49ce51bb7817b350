"""Passages are whole sentences, in order, and nothing of a text is lost between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.sentences import PASSAGE_WORDS, passage_spans

SENTENCES = (
    "It rained all day.",
    "We went to the museum in Lyon, and it was closed!",
    "Why?",
    "- milk\n- eggs\n",
    "第一条。",
)


@given(st.lists(st.sampled_from(SENTENCES), max_size=80).map(" ".join) | st.text(max_size=2000))
def test_nothing_but_white_space_is_left_out(text: str) -> None:
    spans = passage_spans(text)
    place = 0
    for start, end in spans:
        assert place <= start < end
        assert not text[place:start].strip()
        place = end
    assert not text[place:].strip()
    assert spans == passage_spans(text)


@given(st.lists(st.sampled_from(SENTENCES[:3]), min_size=30, max_size=80))
def test_a_passage_is_of_whole_sentences_and_of_bounded_length(sentences: list[str]) -> None:
    text = " ".join(sentences)
    ends = {0}
    for sentence in sentences:
        ends.add(max(ends) + len(sentence) + 1)
    for start, end in passage_spans(text):
        assert start in ends
        assert end + 1 in ends
        assert len(text[start:end].split()) <= 2 * PASSAGE_WORDS


@pytest.mark.parametrize(
    ("text", "at_most"),
    [
        ("word " * 4000, 2 * PASSAGE_WORDS),
        ("字" * 8000, 2 * PASSAGE_WORDS),
        ("x" * 9000, 9000),
        ("ก" * 5000, 2 * PASSAGE_WORDS),
    ],
)
def test_one_endless_sentence_is_cut(text: str, at_most: int) -> None:
    spans = passage_spans(text)
    unit = 1 if text[0].isascii() else 2
    assert all(len(text[start:end].split(" ")) <= at_most and end - start <= at_most * 6 * unit for start, end in spans)


def test_a_short_text_is_one_passage_and_an_empty_one_is_none() -> None:
    assert passage_spans("Hello. How are you?") == [(0, 19)]
    assert passage_spans("") == passage_spans(" \n") == []


@pytest.mark.parametrize("sentence", ["今天天气很好，我们去公园散步。", "昨日は雨だったので家で本を読んだ。"])
def test_of_scripts_without_spaces_a_passage_has_four_signs_to_a_word(sentence: str) -> None:
    few, many = 4 * PASSAGE_WORDS // len(sentence), 4 * 4 * PASSAGE_WORDS // len(sentence)
    assert len(passage_spans(sentence * few)) == 1
    assert 2 < len(passage_spans(sentence * many)) < 6
