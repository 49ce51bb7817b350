"""Two snapshots of a run compared: what came, what changed its standing, what went; and for people, in Markdown."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from snapshot_cases import relaxed, snapshots

from muniment.contracts.snapshot import CompactionSnapshot
from muniment.errors import InvalidInput
from muniment.runs.snapshot_diff import SnapshotDiff, diff_snapshots

FULL = json.loads((Path(__file__).parents[2] / "golden" / "narrative" / "full.json").read_text("utf-8"))
ONE_RUN = st.just("run_1")


def changed(**changes: Any) -> dict[str, Any]:
    document = copy.deepcopy(FULL)
    document["state"] |= changes
    return document | {"snapshot_id": "snp_7f3a.4", "sequence": 4}


def diff(a: dict[str, Any], b: dict[str, Any]) -> SnapshotDiff:
    return diff_snapshots(CompactionSnapshot.from_wire(a), CompactionSnapshot.from_wire(b))


def claim(id_: str, status: str, statement: str = "s", refs: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"claim_id": id_, "status": status, "statement": statement, "evidence_refs": list(refs)}


def ids(changes: Any) -> list[str]:
    return [each.id for each in changes]


@pytest.mark.req("CS-11")
def test_claims_by_what_became_of_them() -> None:
    new = {"evidence_id": "ev_new", "chunk_id": "c9", "span": [0, 3]}
    before = [claim("a", "candidate"), claim("b", "verified"), claim("c", "verified"), claim("d", "verified", "old")]
    after = [
        claim("a", "verified", refs=(new, new)),
        claim("b", "retracted"),
        claim("c", "candidate"),
        claim("d", "Verified", "new"),
        claim("e", "verified"),
        claim("f", "needs review"),
    ]
    found = diff(changed(claims=before), changed(claims=after))
    assert ids(found.claims_added) == ["e", "f"]
    assert ids(found.claims_verified) == ["a", "e"]
    assert ids(found.claims_retracted) == ["b"]
    assert ids(found.claims_fell_back) == ["c"]
    assert ids(found.claims_reworded) == ["d"]
    assert [pointer.evidence_id for pointer in found.evidence_added] == ["ev_new"]
    assert [(each.was, each.now) for each in found.claims_verified] == [("candidate", "verified"), (None, "verified")]
    assert "- a (candidate → verified): s" in found.text
    assert "ev_new [c9 0–3]" in found.text


def test_conflicts_failures_and_questions() -> None:
    def conflict(id_: str, **more: Any) -> dict[str, Any]:
        return {"conflict_id": id_, "description": "d", "side_a_refs": [], "side_b_refs": []} | more

    def failure(id_: str, **more: Any) -> dict[str, Any]:
        return {"failure_id": id_, "category": "tool", "where": "w", "why": "y"} | more

    a = changed(
        conflicts=[conflict("1", status="open"), conflict("2", status="settled"), conflict("3")],
        failures=[failure("x", count=1), failure("y"), failure("z", count=4)],
        open_questions=["why?", "who?"],
    )
    b = changed(
        conflicts=[conflict("1", status="settled"), conflict("2", status="settled"), conflict("4")],
        failures=[failure("x", count=3), failure("y"), failure("w", count=2)],
        open_questions=["who?", "when?", "when?"],
    )
    found = diff(a, b)
    assert (ids(found.conflicts_opened), ids(found.conflicts_settled)) == (["4"], ["1"])
    assert [(each.id, each.times_a, each.times_b) for each in found.failures_new] == [("w", 0, 2)]
    assert [(each.id, each.times_a, each.times_b) for each in found.failures_recurring] == [("x", 1, 3)]
    assert (found.questions_opened, found.questions_closed) == (("when?",), ("why?",))
    assert ids(found.gone) == ["3", "z"]
    assert "- x (times: 1 → 3): tool in w: y" in found.text


def test_budgets_and_coverage() -> None:
    a, b = changed(), changed(source_coverage={"source_ids_seen": [], "chunk_ids_seen": ["n"], "chunk_ids_cited": []})
    a["budgets"] = {"limits": {"tokens": 9}, "used": {"tokens": 5, "steps": 1}, "note": "x"}
    b["budgets"] = {"limits": {"tokens": 9}, "used": {"tokens": 8.5, "calls": 2}}
    found = diff(a, b)
    amounts = [(each.name, each.a, each.b) for each in found.budgets]
    assert amounts == [("used.calls", None, 2), ("used.steps", 1, None), ("used.tokens", 5, 8.5)]
    assert (found.sources_seen.a, found.sources_seen.b, found.sources_seen.added) == (2, 0, ())
    assert (found.chunks_seen.a, found.chunks_seen.b, found.chunks_seen.added) == (3, 1, ("n",))
    assert "- used.tokens: 5 → 8.5" in found.text
    assert "- chunks seen: 3 → 1; new: n" in found.text


def test_two_runs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two runs") as refused:
        diff(FULL, changed() | {"run_id": "run_other"})
    assert refused.value.hint
    assert refused.value.path == "$.run_id"


@relaxed
@given(snapshots(ONE_RUN))
def test_nothing_changed_between_a_snapshot_and_itself(snapshot: CompactionSnapshot) -> None:
    # A foreign snapshot may use one id for two claims, and then it does differ from itself.
    state = snapshot.state
    for held in ([c.claim_id for c in state.claims], [c.conflict_id for c in state.conflicts]):
        if len(set(held)) != len(held):
            return
    if len({f.failure_id for f in state.failures}) != len(state.failures):
        return
    found = diff_snapshots(snapshot, snapshot)
    assert found.is_same
    assert found.text.endswith("nothing changed\n")


@pytest.mark.soak
@relaxed
@given(snapshots(ONE_RUN), snapshots(ONE_RUN))
def test_any_two_snapshots_of_a_run_compare(a: CompactionSnapshot, b: CompactionSnapshot) -> None:
    found = diff_snapshots(a, b)
    assert found == diff_snapshots(a, b)
    assert SnapshotDiff.from_wire(json.loads(found.to_bytes())).to_bytes() == found.to_bytes()
    assert {each.id for each in found.claims_added} == {c.claim_id for c in b.state.claims} - {
        c.claim_id for c in a.state.claims
    }
    forward, back = diff_snapshots(a, b), diff_snapshots(b, a)
    assert set(forward.questions_opened) == set(back.questions_closed)
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(found.text)
    inline = {child.type for token in tokens for child in token.children or ()}
    assert inline <= {"text", "softbreak", "text_special"}
    titles = [line for line in found.text.splitlines() if line.lstrip().startswith("#")]
    assert len(titles) == sum(token.type == "heading_open" for token in tokens)
