"""What findings come to, and IFEval's instructions in our words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.schemas import validate
from muniment.errors import InvalidInput
from muniment.verify.composition import verify_static
from muniment.verify.outputs import Output
from muniment.verify.static import constraints, json_schema, read_constraints
from muniment.verify.static.evaluation import evaluate
from muniment.verify.static.ifeval import IFEVAL_KINDS, from_ifeval, from_instruction
from muniment.verify.taxonomy import DEFAULT_REGISTRY
from muniment.verify.verdicts import is_pass
from products import for_each

BAD = Output(text="I can, as an AI, say: 3", tool_calls=())
ASKED = (
    constraints.json_only(),
    constraints.words(max=3),
    constraints.lines(max=1),
    constraints.tool_called(tool="search"),
    constraints.not_contains(texts=("as an AI",)),
)


@pytest.mark.req("RC-17", "RC-02")
def test_a_violated_constraint_fails_with_keys_reasons_and_a_cluster() -> None:
    result = verify_static(BAD, ASKED)
    assert (result.verdict, result.outcome, result.score) == ("FAIL", "UNKNOWN", 0.0)
    assert result.violated_constraints == (
        "FORMAT:JSON_ONLY",
        "FORMAT:WORDS",
        "TOOL:CALL_REQUIRED:search",
        "CONTENT:NOT_CONTAINS",
    )
    assert result.reason_codes == ("format_leak", "constraint_violation", "tool_misroute")
    assert result.failure_cluster_id == verify_static(BAD, ASKED[::-1]).failure_cluster_id
    assert validate("VerifierResult", result.to_wire()) == []
    assert not is_pass(result.verdict, result.outcome)


@pytest.mark.req("RC-17", "RC-01")
def test_what_holds_passes_and_is_not_confirmed() -> None:
    result = verify_static(Output(text="{}"), [constraints.json_only()])
    assert (result.verdict, result.outcome, result.score, result.verifier_id) == ("PASS", "UNKNOWN", 0.6, "v_l1_only")
    assert result.violated_constraints is None
    assert result.reason_codes is None
    assert result.failure_cluster_id is None
    assert is_pass(result.verdict, result.outcome)
    assert validate("VerifierResult", result.to_wire()) == []


@pytest.mark.req("RC-17")
def test_a_minor_violation_leaves_it_partial() -> None:
    result = verify_static(BAD, [constraints.words(max=3, severity="minor"), constraints.not_empty()])
    assert (result.verdict, result.score) == ("PARTIAL", 0.3)
    assert result.reason_codes == ("constraint_violation",)


@pytest.mark.req("RC-02")
def test_a_key_that_is_not_registered_cannot_be_reported() -> None:
    stray = constraints.words(max=1, key="STYLE:VOICE")
    with pytest.raises(InvalidInput, match="STYLE:VOICE"):
        verify_static(BAD, [stray])
    registry = DEFAULT_REGISTRY.with_key("STYLE:VOICE", "how it sounds")
    assert verify_static(BAD, [stray], registry=registry).violated_constraints == ("STYLE:VOICE",)


def test_what_cannot_be_decided_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "STEPS_MAX", json_schema.STEPS_MAX // 10)
    doubling = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)} | {"a60": {}}
    bomb = constraints.json_schema(schema={"$ref": "#/$defs/a0", "$defs": doubling})
    denied = constraints.none_of(constraints=[bomb])
    twice = constraints.none_of(constraints=[denied])
    for constraint in (bomb, denied, twice, constraints.any_of(constraints=[bomb])):
        (finding,) = evaluate(Output(text="1"), [constraint])
        assert not finding.ok
        assert "decided" in finding.message


@given(st.text(max_size=80), st.permutations(ASKED))
def test_the_order_of_constraints_changes_no_verdict_and_no_cluster(text: str, order: list[object]) -> None:
    output = Output(text=text, tool_calls=())
    one, other = verify_static(output, ASKED), verify_static(output, order)  # type: ignore[arg-type]
    assert (one.verdict, one.failure_cluster_id, one.reason_codes) == (
        other.verdict,
        other.failure_cluster_id,
        other.reason_codes,
    )


# -- IFEval -------------------------------------------------------------------------------------------

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


def test_the_readme_of_the_language_is_true() -> None:
    read = read_constraints("- words: {max: 300}")
    assert read.constraints == (constraints.words(max=300),)
