"""Rulecraft v0.5.15 (001): every field of the document's own tables, its type, its nulls and its MUST, and no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from contract_cases import Maker, seed_text
from rulecraft_table import COMMITTED, read_table

from muniment.contracts.kinds import KINDS, document_of, record_of
from muniment.contracts.schemas import schema_of, validate
from products import for_each

TABLE: dict[str, dict[str, list[str]]] = json.loads(COMMITTED.read_text(encoding="utf-8"))
RULECRAFT = [kind for kind in KINDS if document_of(kind).startswith("Rulecraft")]
CLASS_KIND = {record_of(kind).__name__: kind for kind in RULECRAFT}
SCALARS = {
    "string": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "object": "object",
    "null": "null",
}

# The only ranges a field of 001 states, each beside the field itself.
RANGES = {
    ("VerifierResult", "score"),
    ("RolloutSummary", "confidence"),
    ("ReasoningMemoryRecord", "pass_p_hat"),
}

Types = frozenset[Any]


def test_the_committed_table_is_the_documents() -> None:
    text = seed_text("001")
    if text is None:
        pytest.skip("../shared/seeds is not here: the committed copy stands for the document")
    assert read_table(text) == TABLE


@pytest.mark.req("X-01")
def test_every_kind_of_the_document_is_here() -> None:
    assert set(TABLE) == set(RULECRAFT)


# -- the document's side --------------------------------------------------------------------------------


def types_in(text: str) -> Types:
    """`"a"|"b"|null` → {="a", ="b", null}; `[string]` → {(array, {string})}; a record's name → (record, name)."""
    found: set[Any] = set()
    depth, part = 0, ""
    for char in text + "|":
        depth += (char == "[") - (char == "]")
        if char == "|" and depth == 0:
            found.add(one_type(part.strip()))
            part = ""
        else:
            part += char
    return frozenset(found)


def one_type(text: str) -> Any:
    if text.startswith("["):
        return ("array", types_in(text[1:-1].replace(",", "|")))
    if text.startswith('"'):
        return ("=", text.strip('"'))
    return SCALARS.get(text) or ("record", text)


def documented(kind: str) -> dict[str, tuple[Types, bool]]:
    rows = TABLE[kind]
    made = {}
    for path, (text, marker) in rows.items():
        if path.endswith("[]"):
            continue
        if text:
            types = types_in(text)
        elif any(other.startswith(f"{path}[]") for other in rows):
            item = rows.get(f"{path}[]")
            types = frozenset({("array", types_in(item[0]) if item else frozenset({"object"}))})
        else:
            types = frozenset({"object"})
        made[path] = (types, marker == "MUST" or path == "schema_version")
    return made


# -- our side -------------------------------------------------------------------------------------------


def ours(kind: str) -> dict[str, tuple[Types, bool]]:
    schema = schema_of(kind)
    made: dict[str, tuple[Types, bool]] = {}

    def types_of(node: dict[str, Any]) -> Types:
        if "anyOf" in node:
            return frozenset().union(*(types_of(branch) for branch in node["anyOf"]))
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            return frozenset({("record", CLASS_KIND[name]) if name in CLASS_KIND else "object"})
        if "const" in node:
            return frozenset({("=", node["const"])})
        if "enum" in node:
            return frozenset(("=", value) for value in node["enum"])
        if node["type"] == "array":
            return frozenset({("array", types_of(node["items"]))})
        return frozenset({node["type"]})

    def walk(node: dict[str, Any], path: str) -> None:
        for branch in node.get("anyOf", ()):
            walk(branch, path)
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            if name in CLASS_KIND:
                return
            node = schema["$defs"][name]
            assert node["additionalProperties"] is True, f"{name} is closed"
        for key, child in node.get("properties", {}).items():
            here = f"{path}.{key}" if path else key
            made[here] = (types_of(child), key in node.get("required", ()))
            walk(child, here)
        if isinstance(node.get("items"), dict):
            walk(node["items"], f"{path}[]")
        if isinstance(node.get("additionalProperties"), dict):
            made[f"{path}.<bucket_key>"] = (types_of(node["additionalProperties"]), False)
            walk(node["additionalProperties"], f"{path}.<bucket_key>")

    walk(schema, "")
    return made


@pytest.mark.req("X-01", "X-02", "X-03")
@for_each("kind", RULECRAFT)
def test_fields_types_nulls_and_musts_are_the_documents(kind: str) -> None:
    assert ours(kind) == documented(kind)


@pytest.mark.req("X-02")
@for_each("kind", RULECRAFT)
def test_ranges_only_where_the_field_states_one(kind: str) -> None:
    schema = schema_of(kind)
    found = set()
    for key, node in schema["properties"].items():
        if any("minimum" in branch for branch in (node, *node.get("anyOf", ()))):
            found.add((kind, key))
    assert found == {place for place in RANGES if place[0] == kind}


# -- by hand --------------------------------------------------------------------------------------------

V = {"schema_version": "0.5.15"}
RULE = {
    **V,
    "rule_id": "r1",
    "version": "1.0.0",
    "type": "GuardrailRule",
    "status": "temporary",
    "body": "Never answer without a citation.",
    "applicability": {},
    "evidence": {},
    "tests": {"regression_tests": [], "counterexample_tests": []},
    "metrics": {},
}
FULL_RULE = {
    **RULE,
    "title": "Cite",
    "applicability": {
        "domain_tag": "coding",
        "task_family": "qa",
        "predicates": ["impact == 'high'"],
        "bucket_keys": ["I3"],
    },
    "priority": {"guardrail_first": True, "rank": 3},
    "evidence": {"trace_ids": ["t1"], "verifier_ids": [], "regression_ids": []},
    "metrics": {
        "utility_q_ema": 0.4,
        "pass_p_hat": None,
        "pass_p_lb95": 0.2,
        "pass_p_K": 3.0,
        "pass_p_bucket": {"I3|coding|clarity_low": {"p_hat": 0.5, "p_lb95": 0.2, "K": 3}},
        "pass_p_bucket_delta": {"I3|coding|clarity_low": {"delta_p_hat": None, "delta_p_lb95": None, "delta_K": None}},
    },
    "lifecycle": {"created_at": "2026-01-26", "updated_at": "…", "last_used_at": "…", "retire_candidate": False},
}
EVENT_LOG = {**V, "trace_id": "t", "x_ref": "x", "selected_rules": [], "verifier": {}}
WINDOWLESS = {**V, "generated_at": "", "bucket_key": "", "risk": {}, "opportunity": {}}
BUFFER = {**V, "buffer_id": "b", "policy_id": "p", "max_size": 1, "seed_entries": [], "tactic_entries": []}
TEST = {**V, "test_id": "t", "test_type": "regression", "x_ref": "x"}
REQUEST = {**V, "request_id": "r", "x_ref": "x"}
ACTION = {**V, "trace_id": "t", "action_id": "a", "turn": 1, "tool": "submit"}
ROLLOUT = {**V, "summary_id": "s", "trace_id": "t", "answer": "42", "key_reasoning": ["because"]}


@for_each(
    ("kind", "document"),
    [
        ("RuleRecord", RULE),
        ("RuleRecord", FULL_RULE),
        ("EventLog", EVENT_LOG),
        ("EventLog", {**EVENT_LOG, "verifier": {"verdict": "anything", "outcome": "goes"}}),
        (
            "EventLog",
            {**EVENT_LOG, "memory_fold": {"trigger_kind": "a new one"}, "selected_rules": [{"type": "Other"}]},
        ),
        ("EventLog", {**EVENT_LOG, "outputs": {"rollout_summary": ROLLOUT}, "repr": {"dim": 768}}),
        ("EventLog", {**EVENT_LOG, "experiment": {"reward": {"pass": 1, "total": None}}}),
        ("MemoryHint", {"memory_id": "m", "source": "elsewhere"}),
        ("FoldResult", {**V, "fold_id": "f", "created_at": "…", "trigger": {"kind": "budget_hit"}, "produced": {}}),
        (
            "RegressionTestSpec",
            {**V, "test_id": "t", "test_type": "regression", "x_ref": "x", "assert": {"type": "contains"}},
        ),
        ("ReuseSelectMeta", {**V, "puct": {"c": 1.4, "Q": 0.5, "P": 0.2, "N": 3, "T_total": 9}}),
        ("CandidateSelectRequest", {**V, "request_id": "r", "x_ref": "x"}),
        ("SandboxActionTrace", {**V, "trace_id": "t", "action_id": "a", "turn": 1, "tool": "submit"}),
    ],
)
def test_accepted(kind: str, document: dict[str, Any]) -> None:
    assert validate(kind, document) == []
    assert record_of(kind).from_wire(document).to_wire() == document


@for_each(
    ("kind", "document", "path"),
    [
        ("RuleRecord", {**RULE, "schema_version": "0.5.14"}, "$.schema_version"),
        ("RuleRecord", {**RULE, "type": "Strategy"}, "$.type"),
        ("RuleRecord", {**RULE, "title": None}, "$.title"),
        ("RuleRecord", {**RULE, "priority": {}}, "$.priority.guardrail_first"),
        ("RuleRecord", {**RULE, "tests": {"regression_tests": []}}, "$.tests.counterexample_tests"),
        ("RuleRecord", {**RULE, "metrics": {"pass_p_bucket": {"I1": {"K": 1.5}}}}, "$.metrics.pass_p_bucket.I1.K"),
        ("RuleRecord", {**RULE, "metrics": {"pass_p_bucket": {"I|": {"K": None}}}}, '$.metrics.pass_p_bucket["I|"].K'),
        ("EventLog", {**EVENT_LOG, "run": {}}, "$.run.mode"),
        ("EventLog", {**EVENT_LOG, "run": {"mode": "beam"}}, "$.run.mode"),
        ("EventLog", {**EVENT_LOG, "run": None}, "$.run"),
        (
            "EventLog",
            {**EVENT_LOG, "outputs": {"rollout_summary": {"answer": "42"}}},
            "$.outputs.rollout_summary.schema_version",
        ),
        ("FlowMapSnapshot", {**WINDOWLESS, "window": {}}, "$.window.start_at"),
        ("RegressionTestSpec", {**TEST, "expected": {}}, "$.expected.must_pass"),
        ("ReuseBuffer", {**BUFFER, "seed_entries": [{}]}, "$.seed_entries[0].schema_version"),
        ("CandidateSelectRequest", {**REQUEST, "constraints": {}}, "$.constraints.max_rules"),
        ("SandboxActionTrace", {**ACTION, "obs": {}}, "$.obs.ok"),
        ("RolloutSummary", {**ROLLOUT, "confidence": 1.01}, "$.confidence"),
        ("RolloutSummary", {**ROLLOUT, "confidence": None}, "$.confidence"),
    ],
)
def test_refused(kind: str, document: dict[str, Any], path: str) -> None:
    assert path in [issue.path for issue in validate(kind, document)]


@for_each("kind", [kind for kind in RULECRAFT if kind != "MemoryHint"])
def test_schema_version_is_required(kind: str) -> None:
    document = Maker(schema_of(kind)).minimal()
    del document["schema_version"]
    assert [issue.path for issue in validate(kind, document)] == ["$.schema_version"]
