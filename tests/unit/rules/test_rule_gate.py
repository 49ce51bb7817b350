"""The gate: what it lets through, and everything it does not."""

from __future__ import annotations

from typing import Any

import pytest
from promotion_makers import NOW, POLICY, Gated, draft, rule

from muniment.contracts.rules import DistillDraft, RuleRecord
from muniment.core.policy.rules import GatePolicy
from muniment.rules.promotion.clashes import Clash
from muniment.rules.promotion.gate import faults_of, judge_gate, reasons_of, rule_digest
from muniment.rules.promotion.records import GateReport, LintFinding
from muniment.rules.promotion.tests import is_micro, with_tests


def failing_checks(report: GateReport) -> list[str]:
    assert report.passed == (not [check for check in report.checks if not check.ok])
    return [check.name for check in report.checks if not check.ok]


@pytest.mark.req("RC-18")
def test_a_rule_whose_tests_can_fail_and_pass_is_let_through() -> None:
    made = Gated()
    report = made.gate()
    assert failing_checks(report) == []
    assert faults_of(report, made.rule, POLICY.gate) == ()
    assert report.rule_digest == rule_digest(made.rule)
    assert {outcome.kind for outcome in report.outcomes} == {None, "cluster", "boundary"}


@pytest.mark.req("RC-18")
def test_a_rule_without_tests_stays_temporary_by_name() -> None:
    made = rule(draft())
    report = judge_gate(made, draft=draft(), specs=(), outcomes=(), lint=(), policy=POLICY.gate, report_id="g", now=NOW)
    assert not report.passed
    assert "the rule has tests" in failing_checks(report)
    assert reasons_of(report)[0] == "the rule stays temporary"
    assert any("none: it stays temporary" in line for line in reasons_of(report))


@pytest.mark.req("RC-18")
@pytest.mark.parametrize(
    ("gone", "check"),
    [
        ("regression", "regressions"),
        ("cluster", "cluster counterexamples"),
        ("boundary", "boundary counterexamples"),
        ("micro", "micro-regressions"),
    ],
)
def test_each_kind_of_test_is_asked_for(gone: str, check: str) -> None:
    made = Gated()
    made.specs = [spec for spec in made.specs if ("micro" if is_micro(spec) else spec.kind or "regression") != gone]
    made.rule = with_tests(made.rule, made.specs)
    report = made.gate()
    assert failing_checks(report) == [check]
    assert any(check in fault for fault in faults_of(report, made.rule, POLICY.gate))


def test_the_same_micro_test_under_five_names_is_one() -> None:
    made = Gated()
    micro = next(spec for spec in made.specs if is_micro(spec))
    made.specs = [spec for spec in made.specs if not is_micro(spec)]
    made.specs += [micro.model_copy(update={"test_id": f"m{place}"}) for place in range(5)]
    made.rule = with_tests(made.rule, made.specs)
    assert failing_checks(made.gate()) == ["micro-regressions"]


@pytest.mark.req("RC-18")
def test_one_test_that_fails_keeps_the_rule_out() -> None:
    made = Gated()
    report = made.gate(outcomes=made.outcomes(**{"d1-boundary": "I will not say"}))
    assert failing_checks(report) == ["every test passes"]
    assert any("d1-boundary failed" in line for line in reasons_of(report))


@pytest.mark.parametrize("status", ["error", "timeout", "not_graded"])
def test_a_test_that_did_not_run_to_its_end_did_not_pass(status: str) -> None:
    made = Gated()
    first, *rest = made.outcomes()
    broken = first.model_copy(update={"status": status, "ok": status == "not_graded"})
    assert "every test passes" in failing_checks(made.gate(outcomes=[broken, *rest]))


@pytest.mark.req("RC-18")
def test_a_test_that_was_not_graded_is_not_counted() -> None:
    """Mutation: `not_graded` counts towards the tests that a rule must have; of one that was graded, any end counts."""
    made = Gated()
    graded = made.outcomes()
    kinds = {"d1-regression": "regressions", "d1-cluster": "cluster counterexamples"}
    for test_id, check in kinds.items():
        for status, expected in (("not_graded", [check, "every test passes"]), ("error", ["every test passes"])):
            told = {"status": status, "ok": False}
            changed = [one.model_copy(update=told) if one.test_id == test_id else one for one in graded]
            report = made.gate(outcomes=changed)
            assert failing_checks(report) == expected
            assert {one.name: one.found for one in report.checks}[check] == str(int(status != "not_graded"))


@pytest.mark.req("RC-18")
def test_a_vacuous_test_is_refused_by_name() -> None:
    made = Gated()
    first, *rest = made.outcomes()
    report = made.gate(outcomes=[first.model_copy(update={"vacuous": True}), *rest])
    assert failing_checks(report) == ["regressions", "none is vacuous"]
    assert any("none is vacuous: d1-regression" in line for line in reasons_of(report))


def test_contradictory_tests_are_refused_by_name() -> None:
    report = Gated().gate(clashes=[Clash("a", "b", "'x' must stand and must not")])
    assert failing_checks(report) == ["none contradict"]
    assert any("a and b: 'x' must stand and must not" in line for line in reasons_of(report))


def test_a_counterexample_of_the_regressions_task_is_none() -> None:
    made = Gated()
    task = next(spec.prompt for spec in made.specs if spec.test_id == "d1-regression")
    made.specs = [
        spec.model_copy(update={"prompt": task}) if spec.test_id == "d1-cluster" else spec for spec in made.specs
    ]
    assert failing_checks(made.gate()) == ["counterexamples are of other tasks"]


def _foreign(made: Gated) -> dict[str, Any]:
    specs = [made.specs[0].model_copy(update={"linked_rule_ids": ("another",)}), *made.specs[1:]]
    return {"specs": specs}


@pytest.mark.parametrize(
    "change",
    [
        _foreign,
        lambda made: {"rule": with_tests(made.rule, made.specs[1:])},
        lambda made: {"specs": made.specs[:-1]},
        lambda made: {"specs": [*made.specs, made.specs[0]]},
        lambda made: {"outcomes": [*made.outcomes(), made.outcomes()[0].model_copy(update={"test_id": "other"})]},
    ],
    ids=["linked to others", "not named", "not run", "twice", "unknown"],
)
def test_the_tests_are_those_that_the_rule_names_and_its_own(change: Any) -> None:
    made = Gated()
    assert "the rule has tests" in failing_checks(made.gate(**change(made)))


def test_a_test_without_an_outcome_did_not_pass() -> None:
    made = Gated()
    report = made.gate(outcomes=made.outcomes()[1:])
    assert failing_checks(report) == ["regressions", "every test passes"]


@pytest.mark.parametrize("foreseen", [None, {}, {"predicted_failures": [{"id": "a"}, {"id": "a"}]}])
def test_failures_must_be_predicted(foreseen: Any) -> None:
    made = Gated()
    wire = made.draft.to_wire()
    wire.pop("failure_prediction")
    given = None if foreseen is None else DistillDraft.from_wire(wire | {"failure_prediction": foreseen})
    assert failing_checks(made.gate(draft=given)) == ["failures are predicted"]


def test_lint_errors_keep_it_out_and_warnings_are_shown() -> None:
    error = LintFinding(code="injection", path="$.body", message="gives orders")
    report = Gated().gate(lint=[error])
    assert failing_checks(report) == ["lint finds no error"]
    warned = Gated().gate(lint=[error.model_copy(update={"severity": "warning"})])
    assert warned.passed
    assert reasons_of(warned)[-1] == "warning: injection at $.body: gives orders"


@pytest.mark.parametrize(
    ("change", "check"), [({"evidence": {}}, "has evidence"), ({"status": "retired"}, "not retired")]
)
def test_evidence_and_life_are_asked_for(change: dict[str, Any], check: str) -> None:
    made = Gated()
    odd = RuleRecord.from_wire(made.rule.to_wire() | change)
    assert failing_checks(made.gate(rule=odd)) == [check]


@pytest.mark.req("RC-18")
@pytest.mark.parametrize(
    "forged",
    [
        lambda report: {"passed": False},
        lambda report: {"rule_id": "another"},
        lambda report: {"rule_digest": "0" * 64},
        lambda report: {"policy_digest": "0" * 64},
        lambda report: {"outcomes": ()},
        lambda report: {"outcomes": tuple(one for one in report.outcomes if not one.is_micro)},
        lambda report: {"outcomes": tuple(one.model_copy(update={"vacuous": True}) for one in report.outcomes)},
        lambda report: {
            "outcomes": (*report.outcomes, report.outcomes[0].model_copy(update={"test_id": "z", "ok": False}))
        },
        lambda report: {"checks": tuple(one.model_copy(update={"ok": False}) for one in report.checks)},
        lambda report: {"lint": (LintFinding(code="injection", path="$", message="m"),)},
    ],
)
def test_a_report_is_not_believed_when_it_says_it_passed(forged: Any) -> None:
    made = Gated()
    report = made.gate()
    assert faults_of(report.model_copy(update=forged(report)), made.rule, POLICY.gate)


def test_a_rule_that_is_changed_or_a_stricter_policy_goes_through_the_gate_again() -> None:
    made = Gated()
    report = made.gate()
    for field, value in (("body", "Other words."), ("title", "Another"), ("type", "StrategyRule")):
        assert faults_of(report, made.rule.model_copy(update={field: value}), POLICY.gate)
    wider = RuleRecord.from_wire(made.rule.to_wire() | {"applicability": {}})
    assert faults_of(report, wider, POLICY.gate)
    assert faults_of(report, made.rule, GatePolicy(micro_min=6))
    counted = RuleRecord.from_wire(made.rule.to_wire() | {"metrics": {"pass_p_K": 3}, "version": "7"})
    assert faults_of(report, counted, POLICY.gate) == ()


def test_the_report_is_the_same_bytes_again() -> None:
    assert Gated().gate().to_bytes() == Gated().gate().to_bytes()
