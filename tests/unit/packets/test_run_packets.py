"""What a run has verified stands in its packets, cited; and what was forgotten leaves every build."""

from __future__ import annotations

import pytest

from muniment.contracts.semantics import check_packet
from muniment.errors import Forgotten, RunLocked
from muniment.handles.memory import Memory
from muniment.memory.patches import draft_patch
from muniment.store.append import append_in
from muniment.store.ledger import CLAIM_MADE

SAID = "The capital of France is Paris."


@pytest.mark.req("CS-06", "MP-13")
@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
def test_verified_claims_stand_in_a_packet_with_their_evidence(any_mem: Memory, purpose: str) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", run_id="r1")
    found = run.observe_tool("search", content=SAID)
    claim = run.log.claim(
        "Paris is the capital", evidence=[{"event_id": found.id, "quote": "Paris"}], status="verified"
    )
    run.log.claim("Rome is the capital")
    run.log.retract_claim(
        run.log.claim("Bonn is the capital", evidence=[found.id], status="verified").claim_id, reason="no"
    )
    build = run.compose(purpose, query="what is the capital of France?")
    wire = build.packet.to_wire()
    assert [each["claim_id"] for each in wire["short_term"]["working_state"]["claims"]] == [claim.claim_id]
    assert "verified: Paris is the capital [1]" in build.text
    assert "Rome" not in build.text
    assert "Bonn" not in build.text
    assert build.marks["1"] == found.id
    assert found.id in {citation.id for citation in build.packet.citations}
    assert check_packet(wire) == []
    assert any_mem.replay(build.id).packet_bytes == build.packet_bytes


@pytest.mark.req("CS-06")
def test_a_claim_that_came_without_evidence_is_not_shown_as_verified(mem: Memory) -> None:
    """No run writes such a one; an imported ledger may hold it."""
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    run.observe("user", "begin")
    writer = run._writer()
    said = {"id": "clm_foreign", "status": "verified", "statement": "Paris is the capital", "evidence_refs": []}
    draft = draft_patch(CLAIM_MADE, "assistant", said)
    mem._ctx.engine.write("default", lambda tx: append_in(writer.ctx, tx, writer.scope, [draft], writer.opening, ""))
    assert [claim.claim_id for claim in run.log.claims("verified")] == ["clm_foreign"]
    assert "Paris" not in run.compose("planner", query="capital").text
    with pytest.raises(RunLocked, match="clm_foreign"):
        run.log.compact()


@pytest.mark.req("CS-12")
def test_a_packet_after_resume_is_the_one_without_the_break(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="find the capital", task_type="research")
    found = run.observe_tool("search", content=SAID)
    run.log.claim("Paris is the capital", evidence=[found.id], status="verified")
    run.log.compact()
    run.log.step("PLAN_DONE", "look further")
    now = "2026-05-01T12:00:00Z"
    whole = run.compose("planner", query="capital", now=now)
    again = mem.resume("r1").run.compose("planner", query="capital", now=now)
    assert again.packet_bytes == whole.packet_bytes
    assert again.text == whole.text


@pytest.mark.req("MP-14")
def test_claims_go_by_match_and_leave_when_there_is_no_room(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    found = run.observe_tool("search", content="Readings: " + " ".join(f"r{n}" for n in range(40)))
    for number in range(40):
        run.log.claim(f"the reading r{number} of the pump {number} was stable", evidence=[found.id], status="verified")
    build = run.compose("planner", query="pump 7", max_tokens=600)
    shown = build.packet.to_wire()["short_term"]["working_state"]["claims"]
    assert shown[0]["statement"].startswith("the reading r7 of the pump 7 ")
    assert len(shown) < 40
    assert build.tokens <= 600


@pytest.mark.req("LG-07")
def test_a_build_does_not_outlive_the_state_or_the_claims_it_shows(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", run_id="r1")
    found = run.observe_tool("search", content=SAID)
    run.patch(goal="a secret goal")
    patch = [entry for entry in run.ledger.entries() if entry.kind == "state_patch"][-1]
    first = run.compose("planner", query="capital")
    any_mem.forget(event=patch.id)
    with pytest.raises(Forgotten):
        any_mem.replay(first.id)
    run.log.claim("Paris is the capital", evidence=[found.id], status="verified")
    made = [entry for entry in run.ledger.entries() if entry.kind == "state_patch"][-1]
    second = run.compose("planner", query="", max_tokens=256)
    any_mem.forget(event=made.id)
    with pytest.raises(Forgotten):
        any_mem.replay(second.id)
    assert "Paris is the capital" not in run.compose("planner", query="capital").text
