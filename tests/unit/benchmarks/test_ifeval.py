"""IFEval's instructions can be expressed in the constraint language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.ifeval import IFEVAL_KINDS, capital_word_count, from_ifeval, from_instruction

from muniment.errors import InvalidInput
from muniment.verify.constraints import evaluate
from muniment.verify.outputs import Output
from products import for_each

GIVEN: dict[str, tuple[dict[str, object], str, str]] = {
    "keywords:existence": ({"keywords": ["sun"]}, "Sunny", "rain"),
    "keywords:frequency": ({"keyword": "sun", "frequency": 2, "relation": "less than"}, "sun", "sun sun"),
    "keywords:forbidden_words": ({"forbidden_words": ["sun"]}, "sunny", "the sun"),
    "keywords:letter_frequency": ({"letter": "q", "let_frequency": 1, "let_relation": "at least"}, "Q", "k"),
    "language:response_language": ({"language": "hi"}, "यह एक हिंदी वाक्य है।", "This is English."),
    "length_constraints:number_sentences": (
        {"num_sentences": 2, "relation": "at least"},
        "One two. Three four.",
        "One two.",
    ),
    "length_constraints:number_paragraphs": ({"num_paragraphs": 2}, "a\n***\nb", "a\n\nb"),
    "length_constraints:number_words": ({"num_words": 3, "relation": "less than"}, "a b", "a b c"),
    "length_constraints:nth_paragraph_first_word": (
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"},
        "a\n\nthen b",
        "then a\n\nb",
    ),
    "detectable_content:number_placeholders": ({"num_placeholders": 1}, "[x]", "x"),
    "detectable_content:postscript": ({"postscript_marker": "P.P.S"}, "a\nP. P. S. b", "P.S. b"),
    "detectable_format:number_bullet_lists": ({"num_bullets": 1}, "* a", "a"),
    "detectable_format:constrained_response": ({}, "Well. My answer is no.", "No."),
    "detectable_format:number_highlighted_sections": ({"num_highlights": 1}, "**a**", "a"),
    "detectable_format:multiple_sections": ({"section_spliter": "Day", "num_sections": 2}, "Day 1 Day 2", "Day 1"),
    "detectable_format:json_format": ({}, "```json\n{}\n```", "so: {}"),
    "detectable_format:title": ({}, "<<a>>", "<a>"),
    "combination:two_responses": ({}, "a\n******\nb", "a"),
    "combination:repeat_prompt": ({"prompt_to_repeat": "Say hi."}, "say hi. Hi!", "Hi!"),
    "startend:end_checker": ({"end_phrase": "Bye."}, "so bye.", "bye. so"),
    "startend:quotation": ({}, '"a"', "a"),
    "change_case:capital_word_frequency": ({"capital_frequency": 1, "capital_relation": "at least"}, "an ABC", "abc"),
    "change_case:english_capital": ({}, "THIS IS AN ENTIRELY ENGLISH SENTENCE. AND THIS TOO.", "This is not."),
    "change_case:english_lowercase": ({}, "this is an entirely english sentence.", "This is not."),
    "punctuation:no_comma": ({}, "a b", "a, b"),
}


@pytest.mark.req("RC-17")
def test_all_kinds_of_ifeval_are_there() -> None:
    assert set(GIVEN) == set(IFEVAL_KINDS)
    assert len(IFEVAL_KINDS) == 25


@pytest.mark.req("RC-17")
@for_each("name", IFEVAL_KINDS)
def test_an_instruction_of_ifeval_can_be_said(name: str) -> None:
    kwargs, holds, breaks = GIVEN[name]
    (group,) = from_ifeval([name], [{**kwargs, "unused": None}])
    assert all(finding.ok for finding in evaluate(Output(text=holds), group))
    for text in (breaks, " \n"):
        assert not all(finding.ok for finding in evaluate(Output(text=text), group))


def test_instructions_that_do_not_exist_or_lack_an_argument_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no IFEval instruction"):
        from_instruction("keywords:nothing", {})
    with pytest.raises(InvalidInput, match="wants 'keywords'"):
        from_instruction("keywords:existence", {})
    with pytest.raises(InvalidInput, match="relation"):
        from_instruction("length_constraints:number_words", {"num_words": 3, "relation": "about"})
    with pytest.raises(InvalidInput):
        from_ifeval(["startend:quotation"], [])


def test_every_prompt_of_ifeval_can_be_converted() -> None:
    data = Path(__file__).parents[4] / "shared" / "data" / "ifeval_input_data.jsonl"
    if not data.exists():
        pytest.skip("../shared/data is not here: the prompts of IFEval were not converted")
    for line in data.read_text("utf-8").splitlines():
        row = json.loads(line)
        assert len(from_ifeval(row["instruction_id_list"], row["kwargs"])) == len(row["kwargs"])


@pytest.mark.parametrize(("text", "count"), [("I DON'T KNOW", 4), ("HELLO-WORLD (ABC), x", 2), ("COVID-19...NASA", 2)])
def test_words_in_capitals(text: str, count: int) -> None:
    assert capital_word_count(text) == count
