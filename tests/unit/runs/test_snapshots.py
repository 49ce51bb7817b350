"""A log as a snapshot: its keys, what changed, what to do next, its names."""

from __future__ import annotations

from typing import Any

import pytest
from run_entries import (
    DONE,
    NOW,
    OBJECTIVE,
    RUN,
    SEA,
    A,
    B,
    Told,
    answered,
    claim,
    conflict,
    entries,
    failure,
    fold,
    patch,
    question,
    snapshot,
    start,
    step,
    steps,
    taken,
    window,
)

from muniment.contracts.schemas import validate
from muniment.contracts.snapshot import CompactionSnapshot
from muniment.errors import InvalidRecord
from muniment.runs.snapshots import log_of, snapshot_id_of, snapshots_id, split_snapshot_id

STORY: list[Told] = [
    start(),
    *steps(2, action={"tool": "map"}, tokens=7),
    step("COMPILE_DONE", manifest=window("evt_a", "evt_q")),
    claim("k1", A),
    claim("k2", B, status="candidate"),
    conflict("c1", A, SEA),
    failure(),
    question("Which year?"),
]


def wire_of(*told: Told) -> dict[str, Any]:
    return snapshot(fold(entries(told))).to_wire()


@pytest.mark.req("CS-01")
def test_every_key_of_the_contract_is_there() -> None:
    """The contract's own check: keys exist and types match."""
    wire = wire_of(*STORY)
    assert validate("CompactionSnapshot", wire) == []
    assert {key: wire[key] for key in ("run_id", "sequence", "created_at", "objective", "done_definition")} == {
        "run_id": RUN,
        "sequence": 1,
        "created_at": NOW,
        "objective": OBJECTIVE,
        "done_definition": DONE,
    }
    assert wire["snapshot_id"] == snapshot_id_of(RUN, 1)
    assert wire["provenance_mode"] == "audit_only"
    assert wire["counts"] == {"steps_since_last_compaction": 3, "counted_events_since_last_compaction": 6}
    assert wire["latest_context_manifest_ids"] == ["m1"]
    assert wire["state"]["open_questions"] == ["Which year?"]
    assert wire["state"]["source_coverage"]["chunk_ids_seen"] == ["evt_a", "evt_b", "chk_1", "evt_q"]
    assert wire["budgets"]["limits"] == {"tokens": 1000}
    assert wire["budgets"]["used"]["tokens"] == 14
    assert wire["previous_snapshot_id"] is None


@pytest.mark.req("CS-11")
def test_what_changed_since_the_last_one() -> None:
    first = fold(entries(STORY))
    before = snapshot(first)
    assert before.to_wire()["deltas"]["claims_made"] == ["k1", "k2"]
    then = [
        *STORY,
        taken(1, first.seq),
        patch("claim_demoted", id="k1", reason="no"),
        patch("claim_retracted", id="k2", reason="no"),
        claim("k3", A),
        patch("conflict_settled", id="c1", resolution="a"),
        conflict("c2"),
        failure(),
        failure(where="else"),
        answered("Which year?"),
        question("Which sea?"),
        step("PLAN_DONE", tokens=5),
    ]
    log = fold(entries(then))
    deltas = snapshot(log, before).to_wire()["deltas"]
    assert deltas.pop("counts") == {"events": 11, "steps": 0, "counted_events": 1, "tool_calls": 0, "tokens": 5}
    assert deltas == {
        "claims_made": ["k3"],
        "claims_verified": ["k3"],
        "claims_retracted": ["k2"],
        "claims_demoted": ["k1"],
        "conflicts_recorded": ["c2"],
        "conflicts_settled": ["c1"],
        "failures_met": [each.failure_id for each in log.failures],
        "questions_opened": [log.open_questions[0].question_id],
        "questions_closed": [first.open_questions[0].question_id],
    }
    still = fold(entries([taken(2, log.seq)], first=log.seq + 1), log=log_of(snapshot(log, before)))
    quiet = snapshot(still, snapshot(log, before)).to_wire()["deltas"]
    assert quiet.pop("counts")["events"] == 1
    assert not any(quiet.values())


@pytest.mark.req("CS-11")
def test_what_to_do_next_is_what_was_planned_or_what_is_open() -> None:
    def actions(*told: Told) -> list[str]:
        found: list[str] = wire_of(*told)["state"]["next_actions"]
        assert 1 <= len(found) <= 3
        return found

    planned = patch("actions_planned", actions=["look", "ask"])
    assert actions(*STORY, planned) == ["look", "ask"]
    assert actions(*STORY) == [
        "Settle the conflict c1: where",
        "Find evidence for the claim k2: k2 is so",
        "Answer the question: Which year?",
    ]
    assert actions(claim("k1", A))[0].startswith("Compare what is verified with the done definition")
    many = [claim(f"k{number}", A, status="candidate", statement="long " * 99) for number in range(9)]
    assert all(len(action) < 200 for action in actions(*many))
    assert log_of(snapshot(fold(entries(STORY)))).next_actions == (), "what was derived was not planned"
    assert log_of(snapshot(fold(entries([*STORY, planned])))).next_actions == ("look", "ask")


def test_a_snapshot_of_another_make_gives_no_log() -> None:
    wire = wire_of(*STORY)
    state = wire["state"]
    for wrong in (
        {key: value for key, value in wire.items() if key != "cursor"},
        wire | {"budgets": 7},
        wire | {"cursor": wire["cursor"] | {"seq": -1}},
        wire | {"cursor": wire["cursor"] | {"planned": 2}},
        wire | {"state": {key: value for key, value in state.items() if key != "open_question_refs"}},
        wire | {"state": state | {"open_question_refs": []}},
        wire | {"state": state | {"claims": [state["claims"][0] | {"status": "certain"}]}},
    ):
        with pytest.raises(InvalidRecord):
            log_of(CompactionSnapshot.from_wire(wrong))


def test_names_of_snapshots() -> None:
    assert split_snapshot_id(snapshot_id_of(RUN, 12)) == (snapshots_id(RUN), 12)
    assert snapshots_id(RUN) != snapshots_id("run_2")
    whole = snapshots_id(RUN)
    for wrong in (
        whole,
        f"{whole}.0",
        f"{whole}.01",
        f"{whole}.x",
        f"{whole}.1\n",
        f"{whole}.١",
        "s.1",
        "",
        f"x{whole}.1",
    ):
        assert split_snapshot_id(wrong) is None
    log = fold(entries(STORY))
    assert snapshot(log, snapshot_id=snapshot_id_of(RUN, 7)).sequence == 7, "as its id says"
