"""Blocks of an EventLog that a caller tells, and rules that were tried: there when used, and only then (RC-27)."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.contracts.runs import RunConfig, SelectedRuleMirror
from muniment.contracts.schemas import unknown_keys, validate
from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.learning.event_logs import Finished, build_capsule, build_event_log
from muniment.learning.records import IntentParts, RuleArm, RunBlocks, StateParts
from products import for_each

PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
SUMMARY = {"schema_version": "0.5.15", "summary_id": "s", "trace_id": "t", "answer": "24", "key_reasoning": ["it is"]}
BLOCKS: dict[str, Any] = {
    "mode": "synth",
    "attempt": 3,
    "flow_tags": ["odd"],
    "rollout_summary": SUMMARY,
    "sot_signals": {"qa": 1},
    "sot_profile": "sot_mini_v1",
    "sot_max_turns": 2,
    "synth_inputs": {"used_summary_ids": ["s"]},
    "rollout_select": {"rollouts_n": 3, "diversity_score": 0.5},
    "experiment": {"population_id": "p"},
    "tree_search": {"enabled": True, "node_expanded": 7},
    "policy_signals": {"risk_score": 0.5},
}


def finished(**more: Any) -> Finished:
    return Finished("trc_1", (), None, IntentParts(), StateParts(), **more)


@pytest.mark.req("RC-27")
def test_what_is_told_stands_in_the_log() -> None:
    run = finished(blocks=RunBlocks.from_wire(BLOCKS), cfg=RunConfig.from_wire({"temperature": 0.5, "seed": 7}))
    log = build_event_log(run).to_wire()
    assert validate("EventLog", log) == []
    assert unknown_keys("EventLog", log) == []
    assert log["run"] == {"mode": "synth", "attempt": 3, "cfg": {"temperature": 0.5, "seed": 7}}
    assert log["flow_tags"] == ["odd"]
    for name in ("rollout_summary", "sot_signals", "synth_inputs"):
        assert log["outputs"][name] == BLOCKS[name]
    for name in ("sot_profile", "sot_max_turns", "rollout_select", "experiment", "tree_search", "policy_signals"):
        assert log[name] == BLOCKS[name]


@pytest.mark.req("RC-27")
def test_what_was_not_used_is_not_there() -> None:
    log = build_event_log(finished()).to_wire()
    assert log["run"] == {"mode": "main"}
    assert log["outputs"] == {"y_ref": None}
    assert not set(BLOCKS) & set(log) - {"flow_tags"}


@pytest.mark.req("RC-16", "RC-27")
def test_rules_and_arms_are_told() -> None:
    arms = [
        RuleArm(rule_id=f"r{number}", version="1", type="StrategyRule", arm=arm)  # type: ignore[arg-type]
        for number, arm in enumerate(["active", "canary", "holdout", "baseline"])
    ]
    had = [
        SelectedRuleMirror.from_wire({"rule_id": name, "version": "1", "type": "StrategyRule"}) for name in ("r0", "r1")
    ]
    run = finished(arms=arms, selected_rules=had, blocks=RunBlocks.from_wire({"experiment": {"population_id": "p"}}))
    log = build_event_log(run).to_wire()
    assert validate("EventLog", log) == []
    assert unknown_keys("EventLog", log) == []
    assert log["experiment"]["kind"] == "rule_evolve"
    assert log["experiment"]["population_id"] == "p"
    assert [each["arm"] for each in log["experiment"]["arms"]] == ["canary", "holdout", "baseline"]
    assert [each["rule_id"] for each in log["selected_rules"]] == ["r0", "r1"]
    assert build_capsule(run, "2026-01-01T00:00:00Z").used_rule_ids == ("r0", "r1")
    assert "experiment" not in build_event_log(finished(arms=arms[:1])).to_wire()


@for_each(
    "blocks",
    [
        7,
        {"mode": "auto"},
        {"mode": 7},
        {"attempt": 0},
        {"nonsense": 1},
        {"rollout_summary": {}},
        {"flow_tags": [""]},
        {"sot_signals": {"x": "y" * 20_000}},
    ],
)
def test_blocks_that_are_none_are_refused(mem: Memory, blocks: Any) -> None:
    run = mem.run(user_id="ana")
    run.observe("user", "hello")
    with pytest.raises(MunimentError):
        run.learning.learn(PASS, blocks=blocks)
    learned = run.learning.learn(PASS, blocks={"mode": "kroll"})
    assert learned.event_log.run is not None
    assert learned.event_log.run.mode == "kroll"
