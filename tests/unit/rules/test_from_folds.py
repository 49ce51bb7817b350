"""A fold's own drafts, all the way: rules, tests, gate, trial, a report to sign, and in force."""

from __future__ import annotations

from typing import Any

import pytest
from promotion_makers import AWAY, LATER, NOW, POLICY, compared, example, memory_of

from muniment.contracts.rules import DistillDraft
from muniment.core.policy import FoldPolicy, PromotePolicy, RulePolicy
from muniment.learning._contrast import contrast, window
from muniment.learning._drafts import draft_rules
from muniment.learning._episodes import Writer
from muniment.learning.keys import ANYWHERE
from muniment.learning.records import IntentParts, RunFacts, StepFacts
from muniment.rules._consolidate import consolidate, rule_of
from muniment.rules._gate import ReplayPair, judge_canary, judge_gate, judge_replay, outcome_of, start_canary
from muniment.rules._tests import Example, bad_outputs, find_clashes, is_vacuous, make_tests, with_tests
from muniment.rules.activation import activated, report_change, report_promotion, restored, retired, rule_in, staged
from muniment.verify.outputs import Output
from muniment.verify.regression import grade

FOLD = FoldPolicy()
ASKED = ({"contains": "booked"}, {"words": {"max": 50}}, {"tool_not_called": {"tool": "cancel"}})


def run(name: str, passed: bool, tools: tuple[str, ...]) -> RunFacts:
    return RunFacts(
        trace_id=name,
        x_summary="Book a flight",
        intent=IntentParts(domain_tag="travel", task_family="booking"),
        verdict="PASS" if passed else "FAIL",
        outcome="OK" if passed else "FAIL",
        passed=passed,
        reason_codes=() if passed else ("tool_misroute",),
        steps=tuple(StepFacts(evidence_id=f"{name}{at}", action=tool) for at, tool in enumerate(tools)),
        at=NOW,
    )


def folded() -> list[DistillDraft]:
    runs = [
        *(run(f"g{place}", True, ("search", "book")) for place in range(9)),
        *(run(f"b{place}", False, ("book",)) for place in range(9)),
    ]
    seen = window(runs, FOLD)
    writer = Writer(lambda text: len(text.split()), FOLD.summary_tokens_max, lambda _: True)
    return draft_rules(
        runs[0], seen, contrast(seen, FOLD), policy=FOLD, trigger="end_of_run", writer=writer, ids=ANYWHERE
    )


def runs_at_hand() -> tuple[list[Example], list[Example]]:
    bad = [
        example(f"b{place}", False, "sorry", ("book", "cancel"), reason_codes=("tool_misroute",), constraints=ASKED)
        for place in range(2)
    ]
    good = [
        example("g0", True, "booked", ("search", "book"), constraints=ASKED),
        example("away", True, "refunded", ("refund",), features=AWAY),
    ]
    return bad, good


def answer(name: str) -> Output:
    """An agent that does as the rule says, where it applies."""
    text, tools = ("refunded", ["refund"]) if "away" in name else ("booked", ["search", "book"])
    return Output.from_wire({"text": text, "tool_calls": [{"name": tool} for tool in tools]})


@pytest.mark.req("RC-18", "RC-14")
def test_a_strategy_of_a_fold_goes_all_the_way_and_back() -> None:
    strategy = next(one for one in folded() if one.proposed_rule.type == "StrategyRule")
    proposed = consolidate(rule_of(strategy, "rule-1", NOW), (), now=NOW)
    assert proposed.kind == "new"
    assert proposed.record is not None
    bad, good = runs_at_hand()
    tests = make_tests(proposed.record, failing=bad, passing=good, grade=grade, draft=strategy)
    assert tests.notes == ()
    rule = with_tests(proposed.record, tests.specs)
    assert set(strategy.tests.regression_tests or ()) <= set(rule.tests.regression_tests)
    assert set(strategy.tests.counterexample_tests or ()) <= set(rule.tests.counterexample_tests)

    worse = bad_outputs(rule, (*bad, *good))
    outcomes = [
        outcome_of(spec, grade(spec, answer(spec.x_ref)), vacuous=is_vacuous(spec, grade, worse))
        for spec in tests.specs
    ]
    clashes = find_clashes(tests.specs, grade)
    gate = judge_gate(
        rule,
        draft=strategy,
        specs=tests.specs,
        outcomes=outcomes,
        lint=(),
        clashes=clashes,
        policy=POLICY.gate,
        report_id="g",
        now=NOW,
    )
    assert gate.passed, gate.checks
    pairs = [ReplayPair(f"b{place}", True, False) for place in range(5)]
    replay = judge_replay(rule, pairs, POLICY, report_id="y", now=NOW)
    plan = start_canary(rule, gate, replay, POLICY, canary_id="c", now=NOW)
    memory = staged(memory_of(rule), "gated", POLICY, NOW, gate=gate)
    memory = staged(memory, "replayed", POLICY, NOW, gate=gate, replay=replay)
    memory = staged(memory, "canary", POLICY, NOW, gate=gate, replay=replay, canary=plan)
    seen = compared("better")
    verdict = judge_canary(seen, POLICY.canary, plan)
    assert verdict.decision == "promote"
    report = report_promotion(
        rule, gate, replay, plan, seen, verdict, POLICY, report_id="p", now=LATER, signed_by="ada"
    )
    active = activated(memory, report, gate, replay, POLICY, LATER)
    assert rule_in(active).status == "active"

    gone = retired(active, report_change(rule, "retire", ("x",), POLICY, report_id="q", now=LATER), POLICY, LATER)
    back = report_change(
        rule, "rollback", ("to 3",), POLICY, report_id="s", now=LATER, signed_by="ada", acts_again=True
    )
    assert restored(active, gone, back, report, POLICY).record == active.record

    lines = "\n".join(report.reasons)
    for part in ("better than without it", "effect +1.000", "replay: 5 of 5 passed with it, 0 without", "tests passed"):
        assert part in lines
    assert "ok: lint finds no error" in lines


def test_what_a_policy_allows_is_named_and_nothing_else_is() -> None:
    rule = rule_of(folded()[0], "rule-1", NOW)
    strict = RulePolicy(promote=PromotePolicy(retire_signature="required"))
    wanted: dict[str, Any] = {"report_id": "r", "now": NOW}
    assert report_change(rule, "retire", ("x",), POLICY, **wanted).allowed_by == "default"
    assert report_change(rule, "retire", ("x",), strict, **wanted).allowed_by is None
    assert report_change(rule, "rollback", ("x",), POLICY, acts_again=True, **wanted).allowed_by is None


def test_folds_of_the_same_runs_merge_and_of_another_family_stand_apart() -> None:
    for made in folded():
        first = memory_of(rule_of(made, "rule-1", NOW))
        again = consolidate(rule_of(made, "rule-2", NOW), [first], now=NOW)
        assert (again.kind, again.into) == ("merged", "rule-1")
        moved = DistillDraft.from_wire(
            made.to_wire() | {"proposed_rule": {**made.to_wire()["proposed_rule"], "applicability": dict(AWAY)}}
        )
        assert consolidate(rule_of(moved, "rule-2", NOW), [first], now=NOW).kind == "new"
