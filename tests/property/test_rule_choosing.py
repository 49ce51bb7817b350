"""Selection of rules, whatever the rulebook is: limits hold, everyone is accounted for, order of input is nothing."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.contracts.rules import CandidateSelectRequest
from muniment.contracts.schemas import unknown_keys, validate
from muniment.core.policy import RulePolicy
from muniment.core.text.sentences import cosine
from muniment.learning.records import StoredMemory
from muniment.rules._select import Candidate, RuleRequest, Selected, compile_rule, select_rules

NOW = "2026-05-01T12:00:00.000000Z"
BUCKET = "I3|travel|clarity_low"
WORDS = ("search", "book", "compare", "convert", "fare", "train", "price", "euro", "never", "always", "not", "three")


def count_words(text: str) -> int:
    return len(text.split())


def _memory(parts: dict[str, Any]) -> StoredMemory:
    place, stage = parts["place"], parts["stage"]
    status = {"active": "active", "retired": "retired"}.get(stage, "temporary")
    rule: dict[str, Any] = {
        "schema_version": "0.5.15",
        "rule_id": f"r{place:03}",
        "version": "1",
        "type": parts["type"],
        "status": status,
        "body": " ".join(parts["words"]),
        "applicability": {key: value for key, value in parts["where"].items() if value is not None},
        "priority": {"guardrail_first": parts["type"] == "GuardrailRule", "rank": parts["rank"]},
        "evidence": {},
        "tests": {"regression_tests": [], "counterexample_tests": []},
        "metrics": {"pass_p_hat": parts["rate"], "pass_p_lb95": parts["rate"] / 2, "pass_p_K": parts["runs"]},
    }
    around: dict[str, Any] = {"layer": parts["layer"]}
    if stage == "canary":
        around["canary"] = {"canary_id": f"can_{place}", "share": parts["share"], "bucket_keys": [], "started_at": NOW}
    if parts["expires_at"] is not None:
        around["expires_at"] = parts["expires_at"]
    fixed = {"id": rule["rule_id"], "kind": "rule", "level": "user", "version": 1, "created_at": NOW}
    return StoredMemory.from_wire(fixed | {"record": rule, "status": status, "stage": stage} | around)


RULES = st.lists(
    st.fixed_dictionaries(
        {
            "place": st.integers(0, 300),
            "type": st.sampled_from(["StrategyRule", "GuardrailRule"]),
            "stage": st.sampled_from(["active", "active", "active", "canary", "canary", "gated", "retired"]),
            "layer": st.sampled_from(["learned", "learned", "user"]),
            "words": st.lists(st.sampled_from(WORDS), min_size=1, max_size=9),
            "where": st.fixed_dictionaries(
                {
                    "domain_tag": st.sampled_from([None, "travel", "coding"]),
                    "task_family": st.sampled_from([None, "booking"]),
                    "predicates": st.sampled_from(
                        [None, ["x_features.n == 3"], ["x_features.n == 4"], ["x_features.m == 1"]]
                    ),
                    "bucket_keys": st.sampled_from([None, [BUCKET], ["I1|travel|clarity_low"]]),
                }
            ),
            "rank": st.integers(0, 3),
            "rate": st.floats(0, 1),
            "runs": st.integers(0, 30),
            "share": st.sampled_from([0, 0.5, 1]),
            "expires_at": st.sampled_from([None, None, "2026-04-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
        }
    ).map(_memory),
    max_size=40,
    unique_by=lambda one: one.id,
)
POLICIES = st.builds(
    lambda tokens, debias, novelty, holdout: RulePolicy.from_wire(
        {
            "select": {"tokens_max": tokens, "debias": debias, "novelty_weight": novelty},
            "canary": {"holdout_share": holdout},
        }
    ),
    st.sampled_from([1, 8, 20, 512]),
    st.booleans(),
    st.sampled_from([0, 0.5]),
    st.sampled_from([0, 0.3]),
)


def ask(max_rules: int, types: list[str], run_id: str) -> RuleRequest:
    wire = {
        "schema_version": "0.5.15",
        "request_id": "q",
        "x_ref": "x",
        "bucket_key": BUCKET,
        "constraints": {"max_rules": max_rules, "allow_types": types},
    }
    request = CandidateSelectRequest.from_wire(wire)
    return RuleRequest.of(request, run_id=run_id, now=NOW, task_family="booking", features={"x_features": {"n": 3}})


def check(selected: Selected, candidates: list[Candidate], asked: RuleRequest, policy: RulePolicy) -> None:
    by_id = {each.rule.rule_id: each for each in candidates}
    told = [by_id[each.rule_id or ""] for each in selected.response.selected_rules]
    constraints = asked.request.constraints
    assert constraints is not None
    assert len(told) <= constraints.max_rules
    assert selected.tokens == sum(each.tokens for each in told) <= policy.select.tokens_max
    assert [each.is_guardrail for each in told] == sorted((each.is_guardrail for each in told), reverse=True)
    refused = [each.rule_id for each in selected.refused]
    assert sorted([*refused, *(each.rule.rule_id for each in told)]) == sorted(by_id)  # everyone, and once
    for one, other in combinations(told, 2):
        assert cosine(one.words, other.words) < policy.select.near_duplicate
    for each, how in zip(told, selected.response.selected_rules, strict=True):
        assert each.stage in ("active", "canary") or each.is_users
        assert each.stage != "retired"
        assert each.rule.type in constraints.allow_types
        assert (how.injection_mode == "system_guard") <= (
            each.is_guardrail and each.stage == "active" and not each.is_users
        )
        assert how.reasons
    arms = {arm.rule_id: arm.arm for arm in selected.arms}
    assert len(arms) == len(selected.arms)
    assert [arm.rule_id for arm in selected.arms if arm.arm in ("active", "canary")] == [
        each.rule.rule_id for each in told
    ]
    left_out = {each.rule_id: each.code for each in selected.refused if each.code in ("holdout", "baseline")}
    assert {name: arm for name, arm in arms.items() if arm in ("holdout", "baseline")} == left_out
    assert all(by_id[name].rule.type == "StrategyRule" for name, arm in arms.items() if arm == "holdout")


@pytest.mark.req("RC-14", "RC-15")
@given(
    memories=RULES,
    policy=POLICIES,
    max_rules=st.integers(0, 10),
    types=st.sampled_from([["StrategyRule"], ["GuardrailRule"], ["StrategyRule", "GuardrailRule"], []]),
    run_id=st.sampled_from(["run_1", "run_2", "run_3"]),
    data=st.data(),
)
@settings(max_examples=examples(60), deadline=None)
def test_selection_holds_its_word(
    memories: list[StoredMemory], policy: RulePolicy, max_rules: int, types: list[str], run_id: str, data: Any
) -> None:
    candidates = [compile_rule(each, count_words) for each in memories]
    asked = ask(max_rules, types, run_id)
    selected = select_rules(candidates, asked, policy)
    check(selected, candidates, asked, policy)
    wire = selected.response.to_wire()
    assert validate("CandidateSelectResponse", wire) == []
    assert unknown_keys("CandidateSelectResponse", wire) == []
    again = select_rules(data.draw(st.permutations(candidates)), asked, policy)
    assert again.response.to_bytes() == selected.response.to_bytes()
    assert (again.arms, again.refused, again.text) == (selected.arms, selected.refused, selected.text)


@pytest.mark.req("RC-16")
@given(memories=RULES, policy=POLICIES)
@settings(max_examples=examples(20), deadline=None)
def test_whether_a_rule_takes_part_does_not_depend_on_its_own_draw(
    memories: list[StoredMemory], policy: RulePolicy
) -> None:
    """Else a trial would compare runs of two kinds: change one trial's share, and it is told an arm all the same."""
    asked = ask(4, ["StrategyRule", "GuardrailRule"], "run_1")
    trials = [each for each in memories if each.canary is not None and each.layer == "learned"]
    for trial in trials[:3]:
        assert trial.canary is not None
        told = set()
        for share in (0, 1):
            plan = trial.canary.model_copy(update={"share": share})
            others = [each if each.id != trial.id else each.model_copy(update={"canary": plan}) for each in memories]
            arms = select_rules([compile_rule(each, count_words) for each in others], asked, policy).arms
            told.add(next((("in" if arm.arm == "canary" else "out") for arm in arms if arm.rule_id == trial.id), None))
        assert told in ({"in", "out"}, {None})
