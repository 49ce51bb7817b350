"""What findings come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.schemas import validate
from muniment.errors import InvalidInput
from muniment.verify import _json_schema as json_schema
from muniment.verify import constraints
from muniment.verify.constraint_files import read_constraints
from muniment.verify.constraints import DEFAULT_REGISTRY, evaluate
from muniment.verify.outputs import Output
from muniment.verify.results import is_pass, verify_static

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


def test_the_readme_of_the_language_is_true() -> None:
    read = read_constraints("- words: {max: 300}")
    assert read.constraints == (constraints.words(max=300),)
