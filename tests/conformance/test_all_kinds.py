"""Every kind: record and generated schema agree, and the wire comes back."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from typing import Any

import jsonschema_rs
import pytest
from contract_cases import ROOT, Maker, assert_path_stands, random_mutation, single_mutations
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.contracts.kinds import ALL_KINDS, KINDS, record_of
from muniment.contracts.schemas import DIALECT, schema_of, validate
from muniment.core.canonical import canonical_text
from muniment.errors import InvalidRecord, UnknownKind
from products import for_each

OTHERS = [kind for kind in KINDS if kind != "MemoryPacket"]
JUDGES = {kind: jsonschema_rs.Draft202012Validator(schema_of(kind)) for kind in KINDS}
MAKERS = {kind: Maker(schema_of(kind)) for kind in KINDS}
API_KINDS = """
MemoryPacket RuleRecord CandidateSelectRequest CandidateSelectResponse VerifierResult FGFCReport EventLog
TraceCapsule FoldResult MemoryActionPlan MemoryActionRecord DistillDraft PatterningPlan RegressionTestSpec
RolloutSummary FlowMapSnapshot ReuseStateRecord ConditionalTacticRecord ReuseBuffer ReuseSelectMeta
WorkingSetRecord WorkingSet ReasoningMemoryRecord ReasoningBank MemoryRecallRequest MemoryHint
MemoryRecallResponse SandboxPolicy SandboxActionTrace CompactionSnapshot EvidencePointer Perspectives
SummaryPack
"""


def agree(kind: str, document: Any) -> bool:
    schema, issues = JUDGES[kind].is_valid(document), validate(kind, document)
    assert schema == (not issues), (kind, schema, issues, document)
    for issue in issues:
        assert_path_stands(document, issue.path)
    return schema


@pytest.mark.req("X-01")
def test_the_kinds_are_those_of_the_documents() -> None:
    assert API_KINDS.split() == list(KINDS)


@pytest.mark.req("X-01")
def test_listing_kinds_loads_no_record() -> None:
    code = "import sys, muniment.contracts.kinds as k; assert len(k.KINDS) == 33; assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_kind_names_what_comes_close() -> None:
    with pytest.raises(UnknownKind) as caught:
        record_of("memorypackets")
    assert "MemoryPacket" in str(caught.value.hint)


@pytest.mark.req("X-02")
@for_each("kind", ALL_KINDS)
def test_a_schema_is_draft_2020_12_and_plain(kind: str) -> None:
    schema = schema_of(kind)
    assert schema["$schema"] == DIALECT
    assert schema["$id"] == f"urn:muniment:schema:{kind}"
    jsonschema_rs.meta.validate(schema)

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            assert "default" not in node or node is properties_of(node)
            assert not isinstance(node.get("title"), str)
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    def properties_of(node: dict[str, Any]) -> Any:
        return node if "type" not in node else None

    walk(schema)


@pytest.mark.soak
@pytest.mark.req("X-02", "X-08")
@for_each("kind", OTHERS)
def test_record_and_schema_agree_on_every_single_mutation(kind: str) -> None:
    largest = MAKERS[kind].maximal()
    assert agree(kind, largest)
    assert agree(kind, MAKERS[kind].minimal())
    verdicts = [agree(kind, document) for document in single_mutations(largest)]
    assert not all(verdicts)


@pytest.mark.req("X-02", "X-03", "X-08")
@pytest.mark.parametrize("kind", OTHERS)
@settings(max_examples=examples(16), deadline=None)
@given(seed=st.integers(0, 2**64))
def test_random_documents(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    document = MAKERS[kind].random(rng)
    assert agree(kind, document)
    for _ in range(5):
        agree(kind, random_mutation(document, rng))
    assert canonical_text(record_of(kind).from_wire(document).to_wire()) == canonical_text(document)


@pytest.mark.req("X-08")
@for_each("kind", OTHERS)
def test_unknown_keys_are_kept_and_written_back(kind: str) -> None:
    document = {**MAKERS[kind].maximal(), "zz_unknown": {"a": [1, None]}, "model_config": "x", "from_wire": 1}
    assert canonical_text(record_of(kind).from_wire(document).to_wire()) == canonical_text(document)


@pytest.mark.req("X-03")
def test_an_alias_is_the_only_wire_name() -> None:
    """The Python name of `assert` is not a second name for it: on the wire it is an unknown key like any other."""
    document = {**MAKERS["RegressionTestSpec"].minimal(), "assert": {"type": "contains"}, "assertion": 7}
    record: Any = record_of("RegressionTestSpec").from_wire(document)
    assert record.assertion.type == "contains"
    assert record.to_wire() == document


@pytest.mark.req("X-04")
@for_each(
    ("kind", "at", "value", "path", "message"),
    [
        ("MemoryPacket", "citations", "x", "$.citations", 'wanted an array, found "x"'),
        ("MemoryPacket", "citations", {"a": 1}, "$.citations", "wanted an array, found an object"),
        ("MemoryPacket", "meta", [], "$.meta", "wanted an object, found an array"),
        ("CompactionSnapshot", "done_definition", 5, "$.done_definition", "wanted an object or a string, found 5"),
        ("CompactionSnapshot", "sequence", "1", "$.sequence", 'wanted an integer, found "1"'),
        ("CompactionSnapshot", "sequence", True, "$.sequence", "wanted an integer, found true"),
        ("CompactionSnapshot", "sequence", 1.5, "$.sequence", "wanted an integer, found 1.5"),
        ("CompactionSnapshot", "objective", None, "$.objective", "wanted a string, found null"),
        ("EvidencePointer", "span", None, "$.span", "wanted an object or an array or a string, found null"),
        ("VerifierResult", "score", 1.5, "$.score", "wanted a number from 0 to 1, found 1.5"),
        ("VerifierResult", "verdict", "OK", "$.verdict", "wanted 'PASS', 'FAIL' or 'PARTIAL', found \"OK\""),
        ("PatterningPlan", "applied", 1, "$.applied", "wanted true or false, found 1"),
        ("ReuseBuffer", "max_size", "x" * 99, "$.max_size", 'wanted an integer, found "' + "x" * 56 + "..."),
    ],
)
def test_one_issue_says_where_what_was_wanted_and_what_was_found(
    kind: str, at: str, value: Any, path: str, message: str
) -> None:
    document = {**MAKERS[kind].maximal(), at: value}
    assert [(issue.path, issue.message) for issue in validate(kind, document)] == [(path, message)]


@for_each("value", [{"a"}, iter(()), "ab", {"a": 1}, b"ab", range(2)])
def test_an_array_is_a_list_or_a_tuple(value: Any) -> None:
    with pytest.raises(InvalidRecord):
        record_of("WorkingSet").from_wire({"schema_version": "0.5.15", "stack": value})


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": [{"b": float("nan")}]}, {"a": {2: 3}}])
def test_what_is_not_json_is_refused_with_a_clean_path(value: Any) -> None:
    document = {**MAKERS["SandboxActionTrace"].minimal(), "args": {"k": [value]}}
    with pytest.raises(InvalidRecord) as caught:
        record_of("SandboxActionTrace").from_wire(document)
    for issue in caught.value.issues:
        assert issue.path.startswith("$.args.k[0]")
        assert_path_stands(document, issue.path)


@pytest.mark.req("X-06")
@for_each("room", ["contracts", "core/predicates.py", "core/predicate_nodes.py", "core/stats.py", "core/text"])
def test_the_pure_rooms_read_no_clock_chance_or_environment(room: str) -> None:
    outside = {"os", "time", "random", "uuid", "secrets", "sqlite3", "socket", "subprocess", "click", "tempfile"}
    clocks = {"now", "utcnow", "today"}
    place = ROOT / "src" / "muniment" / room
    paths = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert paths, "the room is there"
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not outside & {name.partition(".")[0] for name in names}, (path, names)
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            assert called not in clocks, (path, node.lineno)


@pytest.mark.req("X-07")
def test_the_two_confidences_are_different_types() -> None:
    def confidence_maxima(kind: str) -> set[Any]:
        found = set()

        def walk(node: Any) -> None:
            if isinstance(node, dict):
                declared = node.get("properties", {}).get("confidence")
                if isinstance(declared, dict):
                    found.add((declared["minimum"], declared["maximum"]))
                for child in node.values():
                    walk(child)

        walk(schema_of(kind))
        return found

    assert {kind: found for kind in KINDS if (found := confidence_maxima(kind))} == {
        "MemoryPacket": {(0, 1)},
        "RolloutSummary": {(0, 1)},
        "EventLog": {(0, 1)},
        "SummaryPack": {(0, 100)},
    }
