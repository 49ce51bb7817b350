"""Records of a bank are recalled each for its own words."""

from __future__ import annotations

import pytest


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
