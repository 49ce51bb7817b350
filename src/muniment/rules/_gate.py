"""The evidence a rule must show (RC-18): gate tests, replay of earlier tasks, canary on real runs. Pure.

Reports are recomputed wherever they are relied on: `faults_of` and `holds` do not trust a `passed` that the report's
own checks and outcomes do not support.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import comb, log
from typing import Any, Literal, NamedTuple

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.canonical import digest_of
from muniment.core.policy import CanaryPolicy, GatePolicy, RulePolicy
from muniment.core.record import Record
from muniment.core.stats import Bounds, Comparison, Decision, Tally, difference_sequence
from muniment.errors import GateFailed, InvalidInput
from muniment.learning.records import CanaryPlan
from muniment.rules._records import GateCheck, GateReport, LintFinding, ReplayReport, TestOutcome
from muniment.rules._tests import Clash, Graded, is_micro, task_of
from muniment.verify.results import parse_bucket_key

# == gate =============================================================================================================

_SHOWN = 5


def outcome_of(spec: RegressionTestSpec, graded: Graded, *, vacuous: bool, is_form: bool = False) -> TestOutcome:
    """The outcome of a test as stored in the report."""
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
    """Run every check, even after one fails, so that all faults are reported at once."""
    by_id = {outcome.test_id: outcome for outcome in outcomes}
    checks = (
        *_counted(specs, by_id, policy),
        _check_named(rule, specs, outcomes),
        _check_outcomes(specs, by_id),
        _none("none is vacuous", [one.test_id for one in outcomes if one.vacuous]),
        _none("none contradict", [f"{one.one} and {one.other}: {one.why}" for one in clashes]),
        _check_tasks(specs),
        _check_foreseen(draft),
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
    """Return whether the report says the rule passed, and its contents agree."""
    checked = bool(report.checks) and all(check.ok for check in report.checks)
    tested = bool(report.outcomes) and all(
        one.ok and one.status == "passed" and not one.vacuous for one in report.outcomes
    )
    return report.passed and checked and tested and all(one.severity != "error" for one in report.lint)


def faults_of(report: GateReport, rule: RuleRecord, policy: GatePolicy) -> tuple[str, ...]:
    """Reasons why the report does not admit this rule in its current form under this policy; empty if it does."""
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
    """The report as readable lines for a signer: failures first, then passes."""
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
    """Count tests that were graded and can fail, by kind; the same assertion on the same task counts once."""
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
    """Digest of a test's task and assertion."""
    return digest_of([task_of(spec), spec.to_wire().get("assert")])


def _check_named(rule: RuleRecord, specs: Sequence[RegressionTestSpec], outcomes: Sequence[TestOutcome]) -> GateCheck:
    """Check that the tests named by the rule are exactly those run, all belong to the rule, and ids are unique."""
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
    """Check that counterexamples use other tasks than the regression: the same task is no new example."""
    tasks = {task_of(spec) for spec in specs if _is_regression(spec)}
    same = [spec.test_id for spec in specs if spec.test_type == "counterexample" and task_of(spec) in tasks]
    return _none("counterexamples are of other tasks", same)


_PREDICTED_FAILURES_MIN = 2


def _check_foreseen(draft: DistillDraft | None) -> GateCheck:
    foreseen = draft.failure_prediction.predicted_failures if draft and draft.failure_prediction else None
    failures = {one.id or one.description for one in foreseen or () if one.id or one.description}
    is_enough = len(failures) >= _PREDICTED_FAILURES_MIN
    return _check("failures are predicted", is_enough, str(len(failures)), f"{_PREDICTED_FAILURES_MIN} or more")


def _check(name: str, ok: bool, found: str, needed: str) -> GateCheck:
    return GateCheck(name=name, ok=ok, found=found, needed=needed)


def _none(name: str, wrong: Sequence[str]) -> GateCheck:
    return _check(name, not wrong, _few(wrong) or "none against it", "none")


def _few(several: Iterable[str]) -> str:
    shown = list(several)
    more = len(shown) - _SHOWN
    return "; ".join(shown[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def rule_digest(rule: RuleRecord) -> str:
    """Digest of type, title, body and applicability; not of metrics, evidence, tests, status, version or lifecycle."""
    return digest_of(["rule", rule.type, rule.title, rule.body, rule.applicability.to_wire()])


def policy_digest(policy: Record) -> str:
    """Digest of a policy with its defaults filled in, so equal policies have equal digests."""
    return digest_of(policy.model_dump(mode="json"))


# == trials ===========================================================================================================

_TOP = 5


class ReplayPair(NamedTuple):
    """One earlier task, tried with and without the rule: passes on each side, and answers per side."""

    trace_id: str
    with_passed: int
    without_passed: int
    asked: int = 1


class CanaryVerdict(NamedTuple):
    """The decision on a rule under trial, with reasons."""

    decision: Literal["stay", "promote", "rollback", "ended"]
    claim: Decision
    effect: float | None
    bounds: Bounds
    """Bounds of the effect, valid at every look."""
    runs: int
    reasons: tuple[str, ...]


# -- replay -------------------------------------------------------------------------------------------


def judge_replay(
    rule: RuleRecord,
    pairs: Sequence[ReplayPair],
    policy: RulePolicy,
    *,
    report_id: str,
    now: str,
    before: ReplayReport | None = None,
) -> ReplayReport:
    """Judge matched pairs by the sequential comparison, or by the exact sign test when there is a single look at few
    pairs.

    `before` is a replay on other tasks that this one goes on from.
    """
    seen = Comparison(policy.canary.margin, policy.canary.alpha)
    if before is not None:
        seen = comparison_of(before.comparison, policy.canary)
    for pair in pairs:
        mine, other = Tally(int(pair.with_passed), pair.asked), Tally(int(pair.without_passed), pair.asked)
        seen = seen.add_matched(mine, other)
    won = sum(pair.with_passed > pair.without_passed for pair in pairs)
    lost = sum(pair.with_passed < pair.without_passed for pair in pairs)
    chance = _tail(lost, won + lost)
    is_worse = (seen.effect or 0) <= -policy.canary.margin and chance <= policy.canary.alpha
    decision: Decision = "harmful" if seen.decision == "undecided" and is_worse else seen.decision
    earlier = () if before is None else before.trace_ids
    traces = tuple(dict.fromkeys((*earlier, *(pair.trace_id for pair in pairs))))
    least = policy.gate.replay_pairs_min
    how = "only" if all(pair.asked == 1 for pair in pairs) else "more often"
    notes = [f"{won} tasks passed {how} with the rule, {lost} {how} without: chance {chance:.3g} of as many losses"]
    if len(traces) < least:
        notes.append(f"{len(traces)} tasks are too few: needed {least}")
    fields: dict[str, Any] = {} if seen.effect is None else {"effect": seen.effect}
    fields |= {} if before is None else {"continues": before.report_id}
    return ReplayReport(
        report_id=report_id,
        rule_id=rule.rule_id,
        rule_digest=rule_digest(rule),
        pairs=seen.candidate.n,
        with_passes=seen.candidate.passes,
        without_passes=seen.baseline.passes,
        decision=decision,
        passed=decision != "harmful" and len(traces) >= least,
        comparison=seen.to_wire(),
        trace_ids=traces,
        notes="; ".join(notes),
        created_at=now,
        **fields,
    )


def replay_faults(report: ReplayReport | None, rule: RuleRecord, policy: RulePolicy) -> tuple[str, ...]:
    """Reasons why a replay does not admit this rule; empty if it does, or if the policy requires none."""
    least = policy.gate.replay_pairs_min
    if report is None:
        return (f"no replay; needed {least} tasks or more",) if least else ()
    named = [] if report.rule_id == rule.rule_id else [f"the replay tried the rule {report.rule_id}"]
    changed = [] if report.rule_digest == rule_digest(rule) else ["the rule was changed after the replay"]
    failed = [] if report.passed else ["the replay did not pass"]
    harmful = ["the replay showed harm"] if report.decision == "harmful" else []
    tried = len(set(report.trace_ids))
    few = [f"{tried} tasks were replayed; needed {least}"] if tried < least else []
    return (*named, *changed, *failed, *harmful, *few)


def _tail(losses: int, n: int) -> float:
    """The probability of at least this many losses among n, if losses and wins are equally likely."""
    return float(sum(comb(n, k) for k in range(losses, n + 1)) / 2**n)


# -- canary -------------------------------------------------------------------------------------------


def start_canary(
    rule: RuleRecord,
    gate: GateReport,
    replay: ReplayReport | None,
    policy: RulePolicy,
    *,
    canary_id: str,
    now: str,
    share: float | None = None,
    bucket_keys: Sequence[str] = (),
) -> CanaryPlan:
    """Plan a trial. Raises `GateFailed` if gate or replay do not permit it."""
    faults = (*faults_of(gate, rule, policy.gate), *replay_faults(replay, rule, policy))
    if faults:
        raise GateFailed(f"{rule.rule_id} may not be tried: {faults[0]}", details={"reasons": list(faults)})
    wanted = policy.canary.share if share is None else share
    if not 0 < wanted <= policy.canary.share_max:
        hint = f"more than 0 and at most {policy.canary.share_max:g}"
        raise InvalidInput(f"a share of {wanted:g} of the runs", path="$.share", hint=hint)
    for key in bucket_keys:
        parse_bucket_key(key)
    buckets = tuple(dict.fromkeys(bucket_keys))
    return CanaryPlan(canary_id=canary_id, share=wanted, bucket_keys=buckets, started_at=now)


def judge_canary(
    comparison: Comparison | Mapping[str, Any],
    policy: CanaryPolicy,
    plan: CanaryPlan,
    joined: Comparison | None = None,
) -> CanaryVerdict:
    """Decide on a trial by the comparison of its two arms alone; it continues until that is conclusive.

    `joined` is the comparison that started with the replay and continued with the same runs. In that case a promotion
    also needs a minimum number of agreeing runs of the trial itself, and the trial's own runs suffice to end it.
    """
    alone = comparison_of(comparison, policy)
    seen = alone if joined is None else comparison_of(joined, policy)
    runs = alone.candidate.n + alone.baseline.n
    decision, why = _decided(alone, runs, policy)
    if joined is not None and decision in ("stay", "promote"):
        decision, why = _decided_together(seen, alone, runs, policy)
    bounds = difference_sequence(seen.candidate, seen.baseline, policy.alpha)
    replayed = () if joined is None else (_joined_line(seen, alone),)
    reasons = (*why, *replayed, *_figures(alone, seen, bounds, plan, policy))
    claim = alone.decision if decision in ("rollback", "ended") else seen.decision
    return CanaryVerdict(decision, claim, alone.effect, bounds, runs, reasons)


def comparison_of(comparison: Comparison | Mapping[str, Any], policy: CanaryPolicy) -> Comparison:
    """Use the comparison only if it was made with this policy's margin and alpha."""
    seen = comparison if isinstance(comparison, Comparison) else Comparison.from_wire(dict(comparison))
    if (seen.margin, seen.alpha) != (policy.margin, policy.alpha):
        found = f"margin {seen.margin:g} and alpha {seen.alpha:g}"
        raise InvalidInput(
            f"the comparison was made with {found}", hint=f"the policy has {policy.margin:g} and {policy.alpha:g}"
        )
    return seen


# -- deciding -----------------------------------------------------------------------------------------


def _decided(
    seen: Comparison, runs: int, policy: CanaryPolicy
) -> tuple[Literal["stay", "promote", "rollback", "ended"], tuple[str, ...]]:
    claim = seen.decision
    if claim == "harmful":
        return "rollback", (f"harmful: worse than without it, and a harm of {policy.margin:g} is not excluded",)
    if "worse" in seen.claims:
        return "ended", (f"worse than without it, though by less than {policy.margin:g}: nothing speaks for it",)
    if claim == "better":
        return "promote", ("better than without it",)
    if claim == "not_harmful" and policy.needs == "not_harmful":
        return "promote", (f"not harmful: a harm of {policy.margin:g} or more is excluded",)
    lacking = policy.needs if claim == "not_harmful" else "anything"
    if runs >= policy.runs_max:
        return "ended", (f"{runs} runs, and it has not shown {lacking}: at most {policy.runs_max} are tried",)
    return "stay", (f"has not shown {lacking} after {runs} runs: it stays until it does, or until {policy.runs_max}",)


def _decided_together(
    seen: Comparison, alone: Comparison, runs: int, policy: CanaryPolicy
) -> tuple[Literal["stay", "promote", "rollback", "ended"], tuple[str, ...]]:
    """Decide by replay and trial as one comparison, once enough runs of the trial agree."""
    decision, why = _decided(seen, runs, policy)
    if decision != "promote":
        return decision, why
    lacking = own_runs_lacking(alone, policy)
    return ("promote", why) if not lacking else ("stay", (f"{why[0]}, with its replay; {lacking[0]}", *lacking[1:]))


def own_runs_lacking(alone: Comparison, policy: CanaryPolicy) -> tuple[str, ...]:
    """Reasons why a trial's own runs do not yet confirm its replay; empty if they do."""
    arms = (("with it", alone.candidate.n), ("without it", alone.baseline.n))
    few = [
        f"needs {policy.runs_min - n} more runs {which}: {n} of {policy.runs_min}"
        for which, n in arms
        if n < policy.runs_min
    ]
    agrees = alone.effect is not None and alone.effect > 0
    return tuple(few) if few or agrees else ("its own runs do not bear it out so far",)


def _joined_line(seen: Comparison, alone: Comparison) -> str:
    mine, other = seen.candidate, seen.baseline
    return (
        f"its replay counts: passed {mine.passes - alone.candidate.passes} of {mine.n - alone.candidate.n} with it, "
        f"{other.passes - alone.baseline.passes} of {other.n - alone.baseline.n} without"
    )


def _figures(
    alone: Comparison, seen: Comparison, bounds: Bounds, plan: CanaryPlan, policy: CanaryPolicy
) -> tuple[str, ...]:
    where = f" in {', '.join(plan.bucket_keys)}" if plan.bucket_keys else ""
    mine, other = alone.candidate, alone.baseline
    effect = "unknown" if seen.effect is None else f"{seen.effect:+.3f}"
    edge = -log(policy.alpha)
    peaks = (("harm", seen.worse_peak), ("no harm", seen.not_harmful_peak), ("gain", seen.better_peak))
    runs = (
        "every run: never left out, so there is nothing to compare with"
        if plan.share == 1
        else f"a share of {plan.share:g}"
    )
    shown = ", ".join(f"{name} {min(1.0, max(0.0, peak / edge)):.0%}" for name, peak in peaks)
    return (
        f"passed {mine.passes} of {mine.n} with it, {other.passes} of {other.n} without, "
        f"since {plan.started_at} on {runs}{where}",
        f"effect {effect}, between {bounds.lower:+.3f} and {bounds.upper:+.3f} at every look",
        f"evidence, of what a claim takes: {shown}",
    )
