"""The compaction snapshot (002): every listed key, the pointer's shape, and the invariants counted again."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muniment.contracts.schemas import unknown_keys, validate
from muniment.contracts.semantics import RunInvariants, check_semantics
from muniment.contracts.snapshot import CompactionSnapshot
from products import for_each

POINTER = {"evidence_id": "ev_1", "chunk_id": "c1", "span": {"start": 0, "end": 12}}
SNAPSHOT: dict[str, Any] = {
    "snapshot_id": "snap_1",
    "run_id": "run_1",
    "sequence": 1,
    "created_at": "2026-02-13T12:05:00Z",
    "objective": "Find who moved to Berlin",
    "done_definition": {"answer": "a name with a citation"},
    "provenance_mode": "audit_only",
    "policy_snapshot_ref": None,
    "counts": {"steps_since_last_compaction": 6, "counted_events_since_last_compaction": 18},
    "latest_context_manifest_ids": ["m1"],
    "state": {
        "claims": [
            {"claim_id": "k1", "status": "verified", "statement": "Ana moved.", "evidence_refs": [POINTER]},
            {"claim_id": "k2", "status": "candidate", "statement": "In May.", "evidence_refs": []},
        ],
        "conflicts": [
            {"conflict_id": "x1", "description": "May or June", "side_a_refs": [POINTER], "side_b_refs": [POINTER]}
        ],
        "open_questions": ["Which district?"],
        "failures": [{"failure_id": "f1", "category": "tool", "where": "search", "why": "timeout"}],
        "source_coverage": {"source_ids_seen": ["s1"], "chunk_ids_seen": ["c1"], "chunk_ids_cited": ["c1"]},
    },
    "retrieval_diagnostics": {"queries": 3},
    "validation": {
        "status": "PASS",
        "checks": [{"name": "verified_claims", "status": "PASS", "message": "1 of 1"}],
        "failure_action_taken": "NONE",
    },
}


def snapshot(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SNAPSHOT), **changes}


def with_state(**changes: Any) -> dict[str, Any]:
    return snapshot(state={**copy.deepcopy(SNAPSHOT["state"]), **changes})


def clauses(document: dict[str, Any]) -> list[tuple[str, str]]:
    assert validate("CompactionSnapshot", document) == []
    return [(issue.code, issue.path) for issue in check_semantics("CompactionSnapshot", document)]


@pytest.mark.req("X-03")
def test_a_full_snapshot_is_valid_and_comes_back_with_its_null() -> None:
    assert clauses(SNAPSHOT) == []
    assert CompactionSnapshot.from_wire(SNAPSHOT).to_wire() == SNAPSHOT


@pytest.mark.req("X-03")
@for_each("key", list(SNAPSHOT))
def test_every_listed_key_is_stable(key: str) -> None:
    document = snapshot()
    del document[key]
    assert [issue.path for issue in validate("CompactionSnapshot", document)] == [f"$.{key}"]


@pytest.mark.parametrize("span", [{"start": 0, "end": 1}, {"page": 4}, [0, 1], "L1-L4"])
def test_a_span_is_offsets_or_equivalent(span: Any) -> None:
    assert validate("EvidencePointer", {**POINTER, "span": span}) == []


@pytest.mark.parametrize("key", list(POINTER))
def test_a_pointer_has_all_three_parts(key: str) -> None:
    pointer = {name: value for name, value in POINTER.items() if name != key}
    assert [issue.path for issue in validate("EvidencePointer", pointer)] == [f"$.{key}"]


@pytest.mark.parametrize("value", [None, 7, [], True])
def test_done_definition_is_an_object_or_a_string_and_one_issue_says_so(value: Any) -> None:
    assert len(validate("CompactionSnapshot", snapshot(done_definition=value))) == 1


@pytest.mark.req("CS-06")
@for_each(
    "refs",
    [
        [],
        [{**POINTER, "evidence_id": ""}],
        [{**POINTER, "chunk_id": " "}],
        [{**POINTER, "span": {}}],
        [{**POINTER, "span": []}],
        [{**POINTER, "span": ""}],
        [{**POINTER, "span": {"start": 9, "end": 3}}],
        [{**POINTER, "span": [9, 3]}],
    ],
)
def test_a_verified_claim_needs_a_full_pointer_whatever_the_document_says_of_itself(refs: list[Any]) -> None:
    claim = {"claim_id": "k", "status": "verified", "statement": "s", "evidence_refs": refs}
    assert clauses(with_state(claims=[claim])) == [("CS-06", "$.state.claims[0].evidence_refs")]
    assert clauses(with_state(claims=[{**claim, "evidence_refs": [*refs, POINTER]}])) == []
    assert clauses(with_state(claims=[{**claim, "status": "retracted"}])) == []


@pytest.mark.req("CS-07")
def test_a_conflict_needs_a_pointer_on_each_side() -> None:
    both_on_one = {"conflict_id": "x", "description": "d", "side_a_refs": [POINTER, POINTER], "side_b_refs": []}
    assert clauses(with_state(conflicts=[both_on_one])) == [("CS-07", "$.state.conflicts[0].side_b_refs")]
    none = {**both_on_one, "side_a_refs": []}
    assert [code for code, _ in clauses(with_state(conflicts=[none]))] == ["CS-07", "CS-07"]


def broken_runs(*documents: dict[str, Any]) -> dict[int, list[str]]:
    invariants = RunInvariants()
    for index, document in enumerate(documents):
        invariants.add(index, document)
    return {index: [issue.path for issue in issues] for index, issues in invariants.issues().items()}


@pytest.mark.req("CS-05")
def test_objective_and_done_definition_never_change_within_a_run() -> None:
    other_run = snapshot(run_id="run_2", objective="Something else")
    same_otherwise_written = snapshot(sequence=7.0, done_definition={"answer": "a name with a citation"})
    assert broken_runs(SNAPSHOT, other_run, same_otherwise_written) == {}
    changed = snapshot(sequence=2, objective="Find who moved")
    assert broken_runs(SNAPSHOT, changed) == {1: ["$.objective"]}
    assert broken_runs(changed, SNAPSHOT) == {0: ["$.objective"]}, (
        "the lowest sequence is the first, not the first read"
    )
    assert broken_runs(snapshot(sequence=3, done_definition="done"), SNAPSHOT, changed) == {
        0: ["$.done_definition"],
        2: ["$.objective"],
    }


@pytest.mark.req("CS-05")
def test_a_sequence_number_stands_once_in_a_run() -> None:
    assert broken_runs(SNAPSHOT, snapshot(snapshot_id="snap_2")) == {1: ["$.sequence"]}
    assert broken_runs(SNAPSHOT, snapshot(sequence=9)) == {}, "a gap is no fault"


@pytest.mark.req("X-04", "X-08")
def test_unknown_keys_are_told_of_but_not_in_free_form_nor_our_own() -> None:
    document = with_state(next_actions=["a"], clams=[])
    document.update(
        budgets={}, deltas={}, previous_snapshot_id="s0", sequnce=2, retrieval_diagnostics={"any": {"thing": 1}}
    )
    document["state"]["claims"][0]["evidence_refs"] = [{**POINTER, "chunkid": "c"}]
    found = {issue.path: issue.message for issue in unknown_keys("CompactionSnapshot", document)}
    assert set(found) == {"$.sequnce", "$.state.clams", "$.state.claims[0].evidence_refs[0].chunkid"}
    assert validate("CompactionSnapshot", document) == []
    missing = snapshot()
    missing["sequnce"] = missing.pop("sequence")
    (issue,) = unknown_keys("CompactionSnapshot", missing)
    assert "did you mean 'sequence'?" in issue.message
