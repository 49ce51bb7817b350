"""Records of a bank are recalled each for its own words, and what runs have in common is kept once."""

from __future__ import annotations

import pytest

PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL"}


def write(memory_id, summary):
    record = {
        "schema_version": "0.5.15", "memory_id": memory_id, "kind": "episode", "created_at": "2026-01-01T00:00:00Z",
        "status": "active", "summary": summary,
    }  # fmt: skip
    return {"op": "WRITE", "target_store": "ReasoningBank", "payload": record}


@pytest.mark.req("RC-08")
def test_a_record_lends_no_words_to_its_neighbours(mem):
    bank = mem.bank(user_id="ana")
    told = ["Renew the passport early.", "Water the ferns weekly.", "Oil the bicycle chain."]
    bank.apply(bank.plan([write(f"rm_{number}", text) for number, text in enumerate(told)]).plan_id)
    recalled = mem.run(user_id="ana", agent_id="solver").learning.recall("ferns")
    assert [hint.memory_id for hint in recalled.hints] == ["rm_1"]


@pytest.mark.req("RC-13")
def test_runs_that_differ_in_their_tools_share_their_tactics(mem):
    for number in range(12):
        run = mem.run(user_id="ana", agent_id="solver")
        run.observe("user", f"Reach {number}.")
        strategy = "greedy" if number % 2 else "backward"
        run.finish(
            verifier_result=FAIL if number % 2 else PASS,
            intent={"domain_tag": "math", "task_family": "countdown", "required_tools": [f"tool{number % 3}"]},
            features={"strategy": strategy},
        )
    tactics = mem.bank(user_id="ana").records(kind="tactic")
    texts = [tactic.record["summary"].partition(":")[0] for tactic in tactics]
    assert texts
    assert len(set(texts)) == len(texts)
    assert {tactic.record["intent_key"] for tactic in tactics} == {"intent|domain=math|family=countdown"}
