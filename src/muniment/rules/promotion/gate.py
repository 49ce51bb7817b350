"""The gate (RC-18): a rule is let through by tests that can fail and do not, and by nothing else.

A report says what was asked for and what was found, check by check. It is recomputed wherever it is relied on:
`faults_of` and `holds` trust no `passed` that its own checks and outcomes do not bear out. A rule without tests stays
temporary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.canonical import digest_of
from muniment.core.policy import GatePolicy
from muniment.core.record import Record
from muniment.rules.promotion.clashes import Clash
from muniment.rules.promotion.examples import Graded
from muniment.rules.promotion.records import (
    GateCheck,
    GateReport,
    LintFinding,
    TestOutcome,
)
from muniment.rules.promotion.tests import is_micro, task_of

__all__ = ["faults_of", "holds", "judge_gate", "outcome_of", "policy_digest", "reasons_of", "rule_digest"]

_SHOWN = 5


def outcome_of(spec: RegressionTestSpec, graded: Graded, *, vacuous: bool, is_form: bool = False) -> TestOutcome:
    """What came of a test, as the report keeps it."""
    plain = {
        "test_id": spec.test_id,
        "test_type": spec.test_type,
        "is_micro": is_micro(spec),
        "status": graded.status,
        "ok": graded.ok and graded.status == "passed",
        "vacuous": vacuous,
        "message": graded.message[:1000],
    }
    plain |= {} if spec.kind is None else {"kind": spec.kind}
    return TestOutcome.from_wire(plain | ({"is_form": True} if is_form else {}))


def judge_gate(
    rule: RuleRecord,
    *,
    draft: DistillDraft | None,
    specs: Sequence[RegressionTestSpec],
    outcomes: Sequence[TestOutcome],
    lint: Sequence[LintFinding],
    clashes: Sequence[Clash] = (),
    policy: GatePolicy,
    report_id: str,
    now: str,
) -> GateReport:
    """Every check, whether or not an earlier one fails: whoever mends the rule sees all there is to mend."""
    by_id = {outcome.test_id: outcome for outcome in outcomes}
    checks = (
        *_counted(specs, by_id, policy),
        _check_named(rule, specs, outcomes),
        _check_outcomes(specs, by_id),
        _none("none is vacuous", [one.test_id for one in outcomes if one.vacuous]),
        _none("none contradict", [f"{one.one} and {one.other}: {one.why}" for one in clashes]),
        _check_tasks(specs),
        _check_foreseen(draft, policy),
        _none("lint finds no error", [f"{one.code} at {one.path}" for one in lint if one.severity == "error"]),
        _check(
            "has evidence", bool(rule.evidence.trace_ids), f"{len(rule.evidence.trace_ids or ())} runs", "1 or more"
        ),
        _check("not retired", rule.status != "retired", rule.status, "temporary or active"),
    )
    return GateReport(
        report_id=report_id,
        rule_id=rule.rule_id,
        rule_digest=rule_digest(rule),
        passed=all(check.ok for check in checks),
        checks=checks,
        outcomes=tuple(outcomes),
        lint=tuple(lint),
        policy_digest=policy_digest(policy),
        created_at=now,
    )


def holds(report: GateReport) -> bool:
    """Whether it says that the rule passed, and all that it shows says so too."""
    checked = bool(report.checks) and all(check.ok for check in report.checks)
    tested = bool(report.outcomes) and all(
        one.ok and one.status == "passed" and not one.vacuous for one in report.outcomes
    )
    return report.passed and checked and tested and all(one.severity != "error" for one in report.lint)


def faults_of(report: GateReport, rule: RuleRecord, policy: GatePolicy) -> tuple[str, ...]:
    """Why a report does not let this rule through, as it stands and by this policy; none if it does."""
    needed = {
        "regressions": (policy.regressions_min, lambda one: one.test_type == "regression" and not one.is_micro),
        "cluster counterexamples": (policy.cluster_counterexamples_min, lambda one: one.kind == "cluster"),
        "boundary counterexamples": (policy.boundary_counterexamples_min, lambda one: one.kind == "boundary"),
        "micro-regressions": (policy.micro_min, lambda one: one.is_micro and not one.is_form),
    }
    good = {one.test_id: one for one in report.outcomes if one.ok and one.status == "passed" and not one.vacuous}
    found = {name: sum(map(which, good.values())) for name, (_, which) in needed.items()}
    failing = [check.name for check in report.checks if not check.ok]
    errors = [finding.code for finding in report.lint if finding.severity == "error"]
    faults = [
        *([] if report.passed else ["the gate did not pass"]),
        *([f"the gate judged the rule {report.rule_id}"] if report.rule_id != rule.rule_id else []),
        *(["the rule was changed after the gate"] if report.rule_digest != rule_digest(rule) else []),
        *(["the gate judged by another policy"] if report.policy_digest != policy_digest(policy) else []),
        *([f"checks fail: {', '.join(failing)}"] if failing else []),
        *([f"lint errors: {', '.join(errors)}"] if errors else []),
        *(
            f"{found[name]} {name} that passed; needed {least}"
            for name, (least, _) in needed.items()
            if found[name] < least
        ),
        *([] if len(good) == len(report.outcomes) else ["a test of the report did not pass, or says nothing"]),
    ]
    return tuple(faults)


def reasons_of(report: GateReport) -> tuple[str, ...]:
    """The report in lines that a person can read before signing: what fails first, then what held."""
    ordered = sorted(report.checks, key=lambda check: check.ok)
    lines = [
        f"{'ok' if check.ok else 'FAILS'}: {check.name}: {check.found} (needed {check.needed})" for check in ordered
    ]
    tests = sum(outcome.ok for outcome in report.outcomes)
    stays = [] if report.passed else ["the rule stays temporary"]
    warned = [f"warning: {one.code} at {one.path}: {one.message}" for one in report.lint if one.severity == "warning"]
    return (*stays, f"{tests} of {len(report.outcomes)} tests passed", *lines, *warned)


# -- checks -------------------------------------------------------------------------------------------


def _counted(
    specs: Sequence[RegressionTestSpec], by_id: dict[str, TestOutcome], policy: GatePolicy
) -> tuple[GateCheck, ...]:
    """Tests that were graded and can fail, by kind; the same assertion of the same task counts once."""
    kinds = (
        ("regressions", policy.regressions_min, [one for one in specs if _is_regression(one)]),
        ("cluster counterexamples", policy.cluster_counterexamples_min, [one for one in specs if _is(one, "cluster")]),
        (
            "boundary counterexamples",
            policy.boundary_counterexamples_min,
            [one for one in specs if _is(one, "boundary")],
        ),
        ("micro-regressions", policy.micro_min, [one for one in specs if is_micro(one)]),
    )
    checks = []
    for name, least, several in kinds:
        counted = {_question_digest(spec) for spec in several if _counts(by_id.get(spec.test_id))}
        forms = sum(bool(outcome and outcome.is_form) for outcome in (by_id.get(spec.test_id) for spec in several))
        found = f"{len(counted)}{f'; {forms} that ask for a form only do not count' if forms else ''}"
        checks.append(_check(name, len(counted) >= least, found, f"{least} or more"))
    return tuple(checks)


def _is_regression(spec: RegressionTestSpec) -> bool:
    return spec.test_type == "regression" and not is_micro(spec)


def _is(spec: RegressionTestSpec, kind: str) -> bool:
    return spec.test_type == "counterexample" and spec.kind == kind


def _counts(outcome: TestOutcome | None) -> bool:
    return outcome is not None and outcome.status != "not_graded" and not outcome.vacuous and not outcome.is_form


def _question_digest(spec: RegressionTestSpec) -> str:
    """The digest of what a test asks: its task and its assertion."""
    return digest_of([task_of(spec), spec.to_wire().get("assert")])


def _check_named(rule: RuleRecord, specs: Sequence[RegressionTestSpec], outcomes: Sequence[TestOutcome]) -> GateCheck:
    """The tests that the rule names are those that were run, each is of this rule, and no id stands twice."""
    ids = [spec.test_id for spec in specs]
    named = {*rule.tests.regression_tests, *rule.tests.counterexample_tests}
    wrong = [
        *(f"{one} was not run" for one in sorted(named - set(ids))),
        *(f"{one} is not the rule's" for one in sorted(set(ids) - named)),
        *(f"{one.test_id} is linked to others" for one in specs if rule.rule_id not in (one.linked_rule_ids or ())),
        *(f"{one} stands twice" for one in sorted({one for one in ids if ids.count(one) > 1})),
        *(f"{one.test_id} is no test at hand" for one in outcomes if one.test_id not in set(ids)),
    ]
    if not named and not ids:
        return _check("the rule has tests", False, "none: it stays temporary", "those of its draft")
    return _check(
        "the rule has tests", not wrong, _few(wrong) or f"{len(named)} tests", "the tests it names, and its own"
    )


def _check_outcomes(specs: Sequence[RegressionTestSpec], by_id: dict[str, TestOutcome]) -> GateCheck:
    bad = []
    for spec in specs:
        outcome = by_id.get(spec.test_id)
        if outcome is None:
            bad.append(f"{spec.test_id} has no outcome")
        elif not outcome.ok or outcome.status != "passed":
            bad.append(f"{spec.test_id} {outcome.status}{f': {outcome.message[:120]}' if outcome.message else ''}")
    return _none("every test passes", bad)


def _check_tasks(specs: Sequence[RegressionTestSpec]) -> GateCheck:
    """A counterexample of the task that the regression was made from is no other example."""
    tasks = {task_of(spec) for spec in specs if _is_regression(spec)}
    same = [spec.test_id for spec in specs if spec.test_type == "counterexample" and task_of(spec) in tasks]
    return _none("counterexamples are of other tasks", same)


def _check_foreseen(draft: DistillDraft | None, policy: GatePolicy) -> GateCheck:
    foreseen = draft.failure_prediction.predicted_failures if draft and draft.failure_prediction else None
    failures = {one.id or one.description for one in foreseen or () if one.id or one.description}
    least = policy.predicted_failures_min
    return _check("failures are predicted", len(failures) >= least, str(len(failures)), f"{least} or more")


def _check(name: str, ok: bool, found: str, needed: str) -> GateCheck:
    return GateCheck(name=name, ok=ok, found=found, needed=needed)


def _none(name: str, wrong: Sequence[str]) -> GateCheck:
    return _check(name, not wrong, _few(wrong) or "none against it", "none")


def _few(several: Iterable[str]) -> str:
    shown = list(several)
    more = len(shown) - _SHOWN
    return "; ".join(shown[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def rule_digest(rule: RuleRecord) -> str:
    """Over type, title, body and applicability: not over metrics, evidence, tests, status, version or lifecycle."""
    return digest_of(["rule", rule.type, rule.title, rule.body, rule.applicability.to_wire()])


def policy_digest(policy: Record) -> str:
    """The digest of a policy with its defaults written out: policies that say the same have the same digest."""
    return digest_of(policy.model_dump(mode="json"))
