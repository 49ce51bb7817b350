"""Replay and canary: decided by the sequential comparison, with reasons a person can read."""

from __future__ import annotations

import random
from typing import Any

import pytest
from promotion_makers import NOW, POLICY, Gated, compared

from muniment.core.policy import CanaryPolicy, GatePolicy, RulePolicy
from muniment.core.stats import Comparison
from muniment.errors import GateFailed, InvalidInput
from muniment.learning.records import CanaryPlan
from muniment.rules._gate import (
    CanaryVerdict,
    ReplayPair,
    judge_canary,
    judge_replay,
    start_canary,
)
from muniment.rules._records import RuleUse
from products import for_each

PLAN = CanaryPlan(canary_id="c", share=0.05, started_at=NOW)


def use(arm: str, passed: bool, place: int = 0, /, **fields: Any) -> RuleUse:
    plain: dict[str, Any] = {
        "trace_id": f"t{place}",
        "rule_id": "r",
        "version": "1",
        "arm": arm,
        "passed": passed,
        "confirmed": passed,
        "at": NOW,
    }
    return RuleUse.model_validate(plain | fields)


def judged(seen: Comparison, policy: CanaryPolicy | None = None, **fields: Any) -> CanaryVerdict:
    return judge_canary(seen.to_wire(), policy or CanaryPolicy(), PLAN)


# -- canary ---------------------------------------------------------------------------------------------


@pytest.mark.req("RC-18", "RC-16")
@for_each(
    ("claim", "needs", "decision"),
    [
        ("undecided", "not_harmful", "stay"),
        ("not_harmful", "not_harmful", "promote"),
        ("not_harmful", "better", "stay"),
        ("better", "not_harmful", "promote"),
        ("better", "better", "promote"),
        ("harmful", "not_harmful", "rollback"),
        ("harmful", "better", "rollback"),
    ],
)
def test_the_comparison_decides(claim: str, needs: Any, decision: str) -> None:
    verdict = judged(compared(claim), CanaryPolicy(needs=needs))
    assert (verdict.decision, verdict.claim) == (decision, claim)
    assert verdict.bounds.lower <= (verdict.effect or 0) <= verdict.bounds.upper


def test_a_trial_that_says_nothing_ends_at_its_limit_and_not_before() -> None:
    seen = compared("undecided")
    assert judged(seen, CanaryPolicy(runs_max=7)).decision == "stay"
    ended = judged(seen, CanaryPolicy(runs_max=6))
    assert (ended.decision, ended.runs) == ("ended", 6)
    assert "at most 6" in ended.reasons[0]
    assert judged(compared("not_harmful"), CanaryPolicy(needs="better", runs_max=1)).decision == "ended"
    assert judged(compared("harmful"), CanaryPolicy(runs_max=1)).decision == "rollback"


def test_nothing_seen_is_no_reason_to_move() -> None:
    verdict = judged(Comparison())
    assert (verdict.decision, verdict.effect, verdict.bounds) == ("stay", None, (-1.0, 1.0))


def test_what_is_worse_by_less_than_the_margin_is_not_promoted() -> None:
    seen = Comparison(margin=0.3)
    draws = random.Random(5)
    while "worse" not in seen.claims or "not_harmful" not in seen.claims:
        seen = seen.add("candidate", draws.random() < 0.75).add("baseline", draws.random() < 0.9)
    assert seen.decision == "not_harmful"
    verdict = judged(seen, CanaryPolicy(margin=0.3))
    assert verdict.decision == "ended"


@pytest.mark.parametrize("fields", [{"margin": 0.5}, {"alpha": 0.5}])
def test_a_comparison_of_other_numbers_is_refused(fields: dict[str, float]) -> None:
    """Whoever may choose alpha may choose the verdict."""
    with pytest.raises(InvalidInput, match="comparison was made with"):
        judged(compared("not_harmful", **fields))


def test_what_is_no_comparison_is_refused() -> None:
    with pytest.raises(InvalidInput):
        judge_canary({"decision": "better"}, CanaryPolicy(), PLAN)


def test_reasons_hold_counts_effect_and_bounds() -> None:
    seen = compared("better")
    lines = " | ".join(judged(seen).reasons)
    assert f"passed {seen.candidate.passes} of {seen.candidate.n} with it, 0 of {seen.baseline.n} without" in lines
    assert "effect +1.000, between" in lines
    assert "evidence, of what a claim takes: harm 0%" in lines


# -- replay ---------------------------------------------------------------------------------------------


@pytest.mark.req("RC-18")
def test_replay_passes_where_enough_was_tried_and_no_harm_was_shown() -> None:
    report = Gated().replay([(True, False), (True, True), (False, False), (True, True), (False, True)])
    assert (report.passed, report.decision, report.pairs) == (True, "undecided", 5)
    assert (report.with_passes, report.without_passes, report.effect) == (3, 3, 0.0)


@pytest.mark.req("RC-16")
def test_of_a_task_that_was_asked_twice_all_answers_count_and_it_is_one_task() -> None:
    made = Gated()
    tried = [ReplayPair(f"t{number}", 2, number % 2, 2) for number in range(6)]
    report = judge_replay(made.rule, tried, POLICY, report_id="r", now=NOW)
    assert (report.pairs, report.with_passes, report.without_passes, len(report.trace_ids)) == (12, 12, 3, 6)
    assert Comparison.from_wire(report.comparison).rounds == 6
    assert "6 tasks passed more often with the rule, 0 more often without" in report.notes
    assert not judge_replay(made.rule, tried[:4], POLICY, report_id="r", now=NOW).passed, "four tasks are too few"
    more = judge_replay(made.rule, [ReplayPair("t9", 1, 1, 2)], POLICY, report_id="r2", now=NOW, before=report)
    assert (more.pairs, len(more.trace_ids)) == (14, 7)


def test_five_losses_of_five_are_harm_although_the_sequence_cannot_say_so_yet() -> None:
    report = Gated().replay([(False, True)] * 5)
    assert (report.passed, report.decision) == (False, "harmful")
    assert Comparison.from_wire(report.comparison).decision == "undecided"
    assert Gated().replay([(False, True)] * 3 + [(True, True)] * 2).passed, "three of three may be chance"


def test_too_few_tasks_and_the_same_task_again_do_not_pass() -> None:
    made = Gated()
    assert not made.replay([(True, True)] * 4).passed
    assert not made.replay([]).passed
    assert made.replay([]).effect is None
    again = [ReplayPair("t", True, True)] * 9
    report = judge_replay(made.rule, again, POLICY, report_id="r", now=NOW)
    assert (report.passed, report.pairs, report.trace_ids) == (False, 9, ("t",))
    assert "too few: needed 5" in report.notes


# -- starting -------------------------------------------------------------------------------------------


def test_a_trial_starts_after_gate_and_replay() -> None:
    made = Gated()
    plan = start_canary(
        made.rule,
        made.gate(),
        made.replay(),
        POLICY,
        canary_id="c",
        now=NOW,
        bucket_keys=("I3|travel|clarity_low",) * 2,
    )
    assert plan == CanaryPlan(canary_id="c", share=0.05, bucket_keys=("I3|travel|clarity_low",), started_at=NOW)


@pytest.mark.parametrize("share", [0, -0.1, 0.51, 1])
def test_a_share_is_within_limits(share: float) -> None:
    made = Gated()
    with pytest.raises(InvalidInput, match="share"):
        start_canary(made.rule, made.gate(), made.replay(), POLICY, canary_id="c", now=NOW, share=share)


def test_a_bucket_that_is_none_is_refused() -> None:
    made = Gated()
    with pytest.raises(InvalidInput, match="bucket"):
        start_canary(made.rule, made.gate(), made.replay(), POLICY, canary_id="c", now=NOW, bucket_keys=("x",))


@pytest.mark.req("RC-18")
def test_no_trial_without_gate_or_replay() -> None:
    made = Gated()
    failed = made.gate(outcomes=made.outcomes(**{"d1-regression": "no"}))
    harmful = made.replay([(False, True)] * 5)
    for gate, replay in ((failed, made.replay()), (made.gate(), harmful), (made.gate(), None)):
        with pytest.raises(GateFailed) as error:
            start_canary(made.rule, gate, replay, POLICY, canary_id="c", now=NOW)
        assert error.value.details["reasons"]
    lax = RulePolicy(gate=GatePolicy(replay_pairs_min=0))
    made = Gated(policy=lax)
    assert start_canary(made.rule, made.gate(), None, lax, canary_id="c", now=NOW).canary_id == "c"
