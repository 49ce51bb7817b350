"""`run.verify`: the layers as one result, kept with the run, forgotten with what it quotes."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.contracts.schemas import validate
from muniment.errors import Forgotten, InvalidInput, InvalidRecord, MunimentError, NotFound
from muniment.handles.memory import Memory
from muniment.verify.results import is_pass
from muniment.verify.sandbox.harness import Harness
from products import for_each

SOURCE = "The Eiffel Tower is 330 metres tall. It was finished in 1889."
WRONG = "The Eiffel Tower is 300 metres tall. It was finished in 1889."


@pytest.mark.req("RC-17", "RC-01")
def test_the_layers_make_one_result(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", run_id="r1")
    found = run.observe_tool("search", content=SOURCE)
    said = run.observe("assistant", WRONG)
    result = run.verify(WRONG, constraints="- words: {max: 5}\n", evidence=[found.id], event=said.id)
    assert validate("VerifierResult", result.to_wire()) == []
    assert (result.verdict, result.outcome) == ("FAIL", "UNKNOWN")
    assert result.violated_constraints == ("FORMAT:WORDS",)
    assert result.failure_cluster_id is not None
    assert not is_pass(result.verdict, result.outcome)
    assert 1 <= len(result.reason_codes or ()) <= 3
    assert result.fgfc is not None
    units: Any = result.fgfc["units"]
    assert [unit["verdict"] for unit in units] == ["REFUTED", "SUPPORTED"]
    assert units[0]["correction"] == SOURCE.partition(". ")[0] + "."
    good = run.verify(SOURCE, documents=[SOURCE], constraints=[{"words": {"max": 50}}])
    assert (good.verdict, good.outcome) == ("PASS", "UNKNOWN")
    assert is_pass(good.verdict, good.outcome)
    assert run.verifications() == [result, good]
    any_mem.store.rebuild()
    assert run.verifications() == [result, good]


@pytest.mark.req("LG-07")
def test_a_result_goes_with_the_evidence_it_quotes_and_the_output_it_judges(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", run_id="r1")
    found, said = run.observe_tool("search", content=SOURCE), run.observe("assistant", WRONG)
    run.verify(WRONG, evidence=[found.id])
    run.verify(WRONG, constraints="- words: {max: 5}\n", event=said.id)
    any_mem.forget(event=found.id)
    assert len(run.verifications()) == 1
    any_mem.forget(event=said.id)
    assert run.verifications() == []
    with pytest.raises(Forgotten):
        run.verify(WRONG, evidence=[found.id])


def test_documents_of_a_corpus_are_evidence(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    guides = mem.corpus("guides")
    guides.add(SOURCE, document_id="tower")
    chunk = guides.search("tower")[0]
    result = run.verify(WRONG, evidence=[{"corpus_id": "guides", "chunk_id": chunk.id}])
    assert result.verdict == "FAIL"
    guides.forget("tower")
    assert run.verifications() == []


@for_each(
    ("arguments", "error"),
    [
        ({}, InvalidInput),
        ({"constraints": "- wrods: {max: 5}"}, InvalidRecord),
        ({"constraints": 5}, MunimentError),
        ({"documents": SOURCE}, InvalidInput),
        ({"documents": [5]}, InvalidInput),
        ({"evidence": ["evt_nothing"]}, NotFound),
        ({"documents": [SOURCE], "event": "evt_nothing"}, NotFound),
        ({"documents": [SOURCE], "event": 5}, InvalidInput),
        ({"harness": "true"}, InvalidInput),
        ({"harness": Harness(command="true"), "files": {"a": "text"}}, InvalidInput),
        ({"harness": Harness(command="true"), "files": ["a"]}, InvalidInput),
    ],
)
def test_bad_input_is_refused_and_keeps_nothing(mem: Memory, arguments: dict[str, Any], error: type[Exception]) -> None:
    run = mem.run(user_id="ana")
    run.observe("user", "hello")
    before = len(list(run.ledger.entries()))
    with pytest.raises(error) as caught:
        run.verify("some output", **arguments)
    assert caught.value.code  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput):
        run.verify(5, documents=[SOURCE])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="surrogate"):
        run.verify("some \ud800", documents=[SOURCE])
    assert len(list(run.ledger.entries())) == before


@pytest.mark.req("LG-10")
def test_no_part_of_a_secret_is_told(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", run_id="r1")
    key, other = "sk-proj-abcdefghijklmnopq123456", "sk-proj-zyxwvutsrqponmlkj987654"
    said = f"The tower opens with {key} at noon. The Eiffel Tower is 300 metres tall."
    source = f"The tower opens with {other} at noon. {SOURCE}"
    result = run.verify(said, documents=[source], constraints=[{"not_contains": key}])
    for shown in (result, *run.verifications()):
        told = str(shown.to_wire())
        assert not any(part in told for part in ("abcdefghijklmnopq", "123456", "zyxwvutsrqponmlkj", "987654"))
    assert result.violated_constraints == ("CONTENT:NOT_CONTAINS",)
    assert result.fgfc is not None
    units: Any = result.fgfc["units"]
    assert units[0]["verdict"] != "SUPPORTED"  # another key, and redaction does not make it the same
    assert units[1]["correction"] == SOURCE.partition(". ")[0] + "."


@for_each(
    "fields",
    [
        {},
        {"command": 5},
        {"command": "true", "pytest": ("test_a.py",)},
        {"pytest": "test_a.py"},
        {"pytest": (5,)},
        {"command": "true", "runs": "2"},
        {"command": "true", "runs": 0},
        {"command": "true", "files": {"a": "text"}},
    ],
)
def test_a_harness_that_makes_no_sense_is_refused_when_it_is_made(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Harness(**fields)
    assert caught.value.path is not None


def test_a_result_is_of_the_event_it_names(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    other = run.observe("assistant", "something else")
    with pytest.raises(InvalidInput) as caught:
        run.verify(SOURCE, documents=[SOURCE], event=other.id)
    assert caught.value.path == "$.event"
    assert run.verifications() == []


@pytest.mark.soak
@pytest.mark.parametrize(
    ("answer", "verdicts"),
    [
        ("The Eiffel Tower is 330 metres tall {own}.", ["SUPPORTED"]),
        ("The Eiffel Tower is 330 metres tall. {own} It was finished in 1889 {own}{own}.", ["SUPPORTED", "SUPPORTED"]),
        ("The Eiffel Tower is 300 metres tall {own}.", ["REFUTED"]),
        ("The Eiffel Tower is 330 metres tall [98].", ["NOT_ENOUGH_INFO"]),
        ("It was finished in [1890] {own}.", ["NOT_ENOUGH_INFO"]),
    ],
)
def test_the_marks_by_which_an_answer_cites_are_no_figures(mem: Memory, answer: str, verdicts: list[str]) -> None:
    """Of an answer that was observed with its build; a number in brackets that is no mark of it is still a figure."""
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    found = run.observe_tool("search", content=SOURCE)
    build = run.compose("responder", query="How tall is the Eiffel Tower?")
    own = next(f"[{number}]" for number, named in build.marks.items() if named == found.id)
    text = answer.format(own=own)
    said = run.observe("assistant", text, build=build)
    result: Any = run.verify(text, evidence=[found.id], event=said.id).fgfc
    assert [unit["verdict"] for unit in result["units"]] == verdicts
    alone = run.observe("assistant", text)
    unknown: Any = run.verify(text, evidence=[found.id], event=alone.id).fgfc
    assert {unit["verdict"] for unit in unknown["units"]} != {"SUPPORTED"}  # nobody knows what its numbers are
