"""The gate: what it lets through, and everything it does not."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from promotion_makers import NOW, POLICY, Gated, draft, failing, rule

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.policy import GatePolicy
from muniment.rules._gate import (
    faults_of,
    holds,
    judge_gate,
    outcome_of,
    policy_digest,
    reasons_of,
    rule_digest,
)
from muniment.rules._records import GateReport, LintFinding
from muniment.rules._tests import Clash, is_form, is_micro, with_tests
from muniment.verify.regression import grade
from products import for_each


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


@pytest.mark.soak
@for_each(
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
@for_each(
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


# -- what a report says --------------------------------------------------------------------------------


def found_by(report: GateReport) -> dict[str, tuple[bool, str, str]]:
    return {check.name: (check.ok, check.found, check.needed) for check in report.checks}


@pytest.mark.req("RC-18")
def test_a_report_names_every_check_with_what_it_found_and_needed() -> None:
    made = Gated()
    report = made.gate()
    none = (True, "none against it", "none")
    boundary = sum(spec.kind == "boundary" and not is_micro(spec) for spec in made.specs)
    assert boundary > 0
    assert found_by(report) == {
        "regressions": (True, "1", "1 or more"),
        "cluster counterexamples": (True, "1", "1 or more"),
        "boundary counterexamples": (True, str(boundary), "1 or more"),
        "micro-regressions": (True, str(sum(map(is_micro, made.specs))), "5 or more"),
        "the rule has tests": (True, f"{len(made.specs)} tests", "the tests it names, and its own"),
        "every test passes": none,
        "none is vacuous": none,
        "none contradict": none,
        "counterexamples are of other tasks": none,
        "failures are predicted": (True, "2", "2 or more"),
        "lint finds no error": none,
        "has evidence": (True, "2 runs", "1 or more"),
        "not retired": (True, "temporary", "temporary or active"),
    }
    assert (report.report_id, report.rule_id, report.created_at) == ("gate-1", made.rule.rule_id, NOW)
    assert report.policy_digest == policy_digest(POLICY.gate)
    assert report.outcomes == tuple(made.outcomes())


@pytest.mark.soak
@for_each(
    ("change", "check", "found"),
    [
        (lambda made: {"outcomes": made.outcomes()[1:]}, "every test passes", "d1-regression has no outcome"),
        (_foreign, "the rule has tests", "d1-regression is linked to others"),
        (
            lambda made: {"rule": with_tests(made.rule, made.specs[1:])},
            "the rule has tests",
            "d1-regression is not the rule's",
        ),
        (lambda made: {"specs": made.specs[1:]}, "the rule has tests", "d1-regression was not run"),
        (lambda made: {"specs": [*made.specs, made.specs[0]]}, "the rule has tests", "d1-regression stands twice"),
        (
            lambda made: {"outcomes": [*made.outcomes(), made.outcomes()[0].model_copy(update={"test_id": "other"})]},
            "the rule has tests",
            "other is no test at hand",
        ),
        (
            lambda made: {"lint": [LintFinding(code="order", path="$.body", message="m")]},
            "lint finds no error",
            "order at $.body",
        ),
        (lambda made: {"clashes": [Clash("a", "b", "why")]}, "none contradict", "a and b: why"),
        (lambda made: {"draft": None}, "failures are predicted", "0"),
    ],
)
def test_a_check_that_fails_says_by_name_what_is_against_it(change: Any, check: str, found: str) -> None:
    made = Gated()
    fault = found_by(made.gate(**change(made)))[check]
    assert fault[0] is False
    assert fault[1].split("; ")[0] == found


def test_a_test_that_failed_is_told_with_its_message_if_it_has_one() -> None:
    made = Gated()
    first, *rest = made.outcomes()
    for message, said in (("", "d1-regression failed"), ("no JSON", "d1-regression failed: no JSON")):
        bad = first.model_copy(update={"ok": False, "status": "failed", "message": message})
        assert found_by(made.gate(outcomes=[bad, *rest]))["every test passes"] == (False, said, "none")
    long = first.model_copy(update={"ok": False, "status": "error", "message": "x" * 300})
    said = f"d1-regression error: {'x' * 120}"
    assert found_by(made.gate(outcomes=[long, *rest]))["every test passes"][1] == said


@pytest.mark.parametrize(("count", "more"), [(4, ""), (5, ""), (6, "; and 1 more"), (9, "; and 4 more")])
def test_five_are_named_and_the_others_counted(count: int, more: str) -> None:
    clashes = [Clash(f"t{place}", "b", "why") for place in range(count)]
    found = found_by(Gated().gate(clashes=clashes))["none contradict"][1]
    assert found == "; ".join(f"t{place} and b: why" for place in range(min(count, 5))) + more


def test_a_rule_that_neither_names_nor_has_tests_is_told_what_it_needs() -> None:
    made = Gated()
    made.specs = []
    made.rule = RuleRecord.from_wire(
        made.rule.to_wire() | {"tests": {"regression_tests": [], "counterexample_tests": []}}
    )
    report = made.gate()
    assert found_by(report)["the rule has tests"] == (False, "none: it stays temporary", "those of its draft")


def test_predicted_failures_are_told_apart_by_id_or_by_words() -> None:
    made = Gated()
    wire = made.draft.to_wire()
    for failures, count in (
        ([{"id": "a"}, {"description": "b"}], "2"),
        ([{"description": "b"}, {"description": "b"}], "1"),
        ([{"id": "a", "description": "x"}, {"id": "a", "description": "y"}], "1"),
        ([{}, {"id": "a"}], "1"),
    ):
        given = DistillDraft.from_wire(wire | {"failure_prediction": {"predicted_failures": failures}})
        assert found_by(made.gate(draft=given))["failures are predicted"] == (count == "2", count, "2 or more")


class Came(NamedTuple):
    """What a grader says of a test."""

    status: str
    ok: bool
    message: str


def test_what_came_of_a_test_is_kept_with_what_the_test_is() -> None:
    made = Gated()
    spec = next(one for one in made.specs if one.kind == "cluster")
    kept = outcome_of(spec, Came(status="passed", ok=True, message="m" * 1001), vacuous=False)
    assert kept.to_wire() == {
        "test_id": spec.test_id,
        "test_type": "counterexample",
        "kind": "cluster",
        "is_micro": False,
        "status": "passed",
        "ok": True,
        "vacuous": False,
        "message": "m" * 1000,
    }
    plain = next(one for one in made.specs if one.kind is None)
    assert outcome_of(plain, Came(status="passed", ok=True, message=""), vacuous=True).vacuous
    assert outcome_of(plain, Came(status="passed", ok=True, message=""), vacuous=True).kind is None
    micro = next(one for one in made.specs if is_micro(one))
    assert outcome_of(micro, Came(status="passed", ok=True, message=""), vacuous=False).is_micro
    for status, ok in (("passed", False), ("not_graded", True), ("error", True)):
        assert outcome_of(plain, Came(status=status, ok=ok, message=""), vacuous=False).ok is False


@pytest.mark.req("RC-18")
def test_all_that_speaks_against_a_report_is_told_in_order() -> None:
    made = Gated()
    report = made.gate()
    one, two, *rest = report.checks
    errors = [LintFinding(code=code, path="$", message="m") for code in ("order", "secret")]
    warning = LintFinding(code="long", path="$", message="m", severity="warning")
    forged = report.model_copy(
        update={
            "passed": False,
            "rule_id": "another",
            "rule_digest": "0",
            "policy_digest": "0",
            "checks": (one.model_copy(update={"ok": False}), two.model_copy(update={"ok": False}), *rest),
            "lint": (*errors, warning),
            "outcomes": tuple(each.model_copy(update={"vacuous": True}) for each in report.outcomes),
        }
    )
    assert faults_of(forged, made.rule, POLICY.gate) == (
        "the gate did not pass",
        "the gate judged the rule another",
        "the rule was changed after the gate",
        "the gate judged by another policy",
        "checks fail: regressions, cluster counterexamples",
        "lint errors: order, secret",
        "0 regressions that passed; needed 1",
        "0 cluster counterexamples that passed; needed 1",
        "0 boundary counterexamples that passed; needed 1",
        "0 micro-regressions that passed; needed 5",
        "a test of the report did not pass, or says nothing",
    )
    assert faults_of(report.model_copy(update={"lint": (warning,)}), made.rule, POLICY.gate) == ()


@pytest.mark.req("RC-18")
@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("regression", "0 regressions that passed; needed 1"),
        ("cluster", "0 cluster counterexamples that passed; needed 1"),
        ("boundary", "0 boundary counterexamples that passed; needed 1"),
        ("micro", "0 micro-regressions that passed; needed 5"),
    ],
)
def test_a_report_whose_outcomes_lack_a_kind_says_which(kind: str, fault: str) -> None:
    made = Gated()
    report = made.gate()
    rest = [one for one in report.outcomes if ("micro" if one.is_micro else one.kind or "regression") != kind]
    assert len(rest) < len(report.outcomes)
    assert faults_of(report.model_copy(update={"outcomes": tuple(rest)}), made.rule, POLICY.gate) == (fault,)


def test_a_rule_that_names_tests_of_which_none_was_run_is_told_which() -> None:
    made = Gated()
    found = found_by(made.gate(specs=[], outcomes=[]))["the rule has tests"]
    assert found[0] is False
    assert found[1].startswith("d1-boundary was not run; ")
    assert found[2] == "the tests it names, and its own"


@pytest.mark.req("RC-18")
@pytest.mark.parametrize("change", [{"ok": False}, {"status": "failed"}, {"vacuous": True}])
def test_one_outcome_that_does_not_hold_is_enough(change: dict[str, Any]) -> None:
    made = Gated()
    report = made.gate()
    extra = report.outcomes[0].model_copy(update={"test_id": "z"})
    sound = report.model_copy(update={"outcomes": (*report.outcomes, extra)})
    assert faults_of(sound, made.rule, POLICY.gate) == ()
    assert holds(sound) is True
    odd = report.model_copy(update={"outcomes": (*report.outcomes, extra.model_copy(update=change))})
    assert faults_of(odd, made.rule, POLICY.gate) == ("a test of the report did not pass, or says nothing",)
    assert holds(odd) is False


@pytest.mark.req("RC-18")
def test_a_report_holds_with_warnings_and_not_with_what_it_lacks() -> None:
    report = Gated().gate()
    warning = LintFinding(code="long", path="$", message="m", severity="warning")
    assert holds(report.model_copy(update={"lint": (warning,)})) is True
    bad = report.checks[-1].model_copy(update={"ok": False})
    for forged in (
        {"passed": False},
        {"checks": ()},
        {"checks": (*report.checks[:-1], bad)},
        {"outcomes": ()},
        {"lint": (warning, warning.model_copy(update={"severity": "error"}))},
    ):
        assert holds(report.model_copy(update=forged)) is False


def test_the_lines_to_sign_begin_with_what_fails_and_end_with_warnings() -> None:
    made = Gated()
    warning = LintFinding(code="long", path="$.body", message="many words", severity="warning")
    lines = reasons_of(made.gate(lint=[warning]))
    count = len(made.specs)
    assert lines[0] == f"{count} of {count} tests passed"
    assert lines[1] == "ok: regressions: 1 (needed 1 or more)"
    assert lines[-1] == "warning: long at $.body: many words"
    assert all(line.startswith("ok: ") for line in lines[1:-1])
    assert len(lines) == 15
    bad = reasons_of(made.gate(outcomes=made.outcomes(**{"d1-boundary": "I will not say"})))
    assert bad[:2] == ("the rule stays temporary", f"{count - 1} of {count} tests passed")
    assert bad[2].startswith("FAILS: every test passes: d1-boundary failed")
    assert bad[2].endswith("(needed none)")
    assert bad[3] == "ok: regressions: 1 (needed 1 or more)"


def test_digests_tell_apart_what_counts_and_nothing_else() -> None:
    made = Gated().rule
    wire = made.to_wire()
    changes: tuple[dict[str, Any], ...] = (
        {"type": "StrategyRule"},
        {"title": "Another"},
        {"body": "Other words."},
        {"applicability": {}},
    )
    digests = {rule_digest(RuleRecord.from_wire(wire | change)) for change in ({}, *changes)}
    assert len(digests) == 5
    for other in ({"metrics": {"pass_p_K": 3}}, {"version": "7"}, {"status": "active"}, {"evidence": {}}):
        assert rule_digest(RuleRecord.from_wire(wire | other)) == rule_digest(made)
    assert policy_digest(GatePolicy()) == policy_digest(GatePolicy.from_wire(GatePolicy().model_dump(mode="json")))
    assert policy_digest(GatePolicy(micro_min=6)) != policy_digest(GatePolicy())


@pytest.mark.req("RC-18")
def test_small_tests_that_ask_for_a_form_do_not_count() -> None:
    """All that a rule was tested on were its form: `\\S` and a length, which answers that failed keep too."""
    made = Gated()
    forms = [one.model_copy(update={"is_form": True}) if one.is_micro else one for one in made.outcomes()]
    report = made.gate(outcomes=forms)
    assert failing_checks(report) == ["micro-regressions"]
    assert "ask for a form only do not count" in found_by(report)["micro-regressions"][1]
    forged = report.model_copy(
        update={"passed": True, "checks": tuple(one.model_copy(update={"ok": True}) for one in report.checks)}
    )
    assert any("micro-regressions that passed" in each for each in faults_of(forged, made.rule, GatePolicy()))


@pytest.mark.req("RC-18")
@for_each(
    ("asked", "is_one"),
    [
        ({"type": "regex_present", "args": {"pattern": r"\S"}}, True),
        ({"type": "length_lte", "args": {"max": 4000}}, True),
        ({"type": "regex_absent", "args": {"pattern": "zebra"}}, True),
        ({"type": "json_schema", "args": {"schema": {}}}, False),
        ({"type": "tool_not_called", "args": {"tool": "pay"}}, False),
    ],
)
def test_a_form_is_what_answers_that_failed_keep_too(asked, is_one) -> None:
    plain = {"schema_version": "0.5.15", "test_id": "t", "test_type": "regression", "x_ref": "x", "assert": asked}
    assert is_form(RegressionTestSpec.from_wire(plain), grade, failing()) is is_one
    assert not is_form(RegressionTestSpec.from_wire(plain), grade, [])
