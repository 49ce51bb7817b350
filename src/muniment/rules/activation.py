"""The only place that makes a rule active (001 §4.6, RC-14), and the stages before and after that.

A rule becomes active from its canary, by a report that refers to a gate passed in its current form, a replay if the
policy requires one, a conclusive trial, and a signature or a policy that needs none. Each is checked again here; the
report's own claims are not enough. Missing evidence is refused: `WrongStage` if the rule is at another stage,
`GateFailed` if something was not shown; the details list every reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

from muniment.contracts.rules import RuleRecord
from muniment.core.policy import CanaryPolicy, RulePolicy
from muniment.core.stats import Comparison, Tally
from muniment.errors import GateFailed, InvalidInput, WrongStage
from muniment.learning.keys import has_expired
from muniment.learning.records import CanaryPlan, RuleStage, StoredMemory
from muniment.rules._consolidate import is_within, place_of
from muniment.rules._gate import (
    CanaryVerdict,
    comparison_of,
    faults_of,
    holds,
    own_runs_lacking,
    reasons_of,
    replay_faults,
    rule_digest,
)
from muniment.rules._records import GateReport, PromotionReport, ReplayReport

# == activation =======================================================================================================

_BEFORE: dict[RuleStage, tuple[RuleStage, ...]] = {
    "drafted": ("drafted", "gated", "replayed", "canary"),
    "gated": ("drafted", "gated", "replayed"),
    "replayed": ("gated", "replayed"),
    "canary": ("gated", "replayed", "canary"),
}
"""The stages from which a rule may move to each temporary stage."""
_LEADS_OUT = ("link", "host")
_COUNTED = ("with_tally", "without_tally", "streak", "last_used_at")


def rule_in(memory: StoredMemory) -> RuleRecord:
    """The record in a memory. Raises `InvalidInput` if it is not a rule."""
    if memory.kind != "rule":
        raise InvalidInput(f"{memory.id} is a {memory.kind} and no rule")
    rule = RuleRecord.from_wire(memory.record)
    if rule.rule_id != memory.id:
        raise InvalidInput(f"{memory.id} holds the rule {rule.rule_id}")
    return rule


def activated(
    memory: StoredMemory,
    report: PromotionReport,
    gate: GateReport,
    replay: ReplayReport | None,
    policy: RulePolicy,
    now: str,
) -> StoredMemory:
    """Return the rule, active. Nothing else makes an inactive rule active."""
    rule = _candidate(memory, ("canary",), now)
    faults = (
        *_report_faults(report, rule, "promote"),
        *([] if report.gate_report_id == gate.report_id else ["the report names another gate"]),
        *faults_of(gate, rule, policy.gate),
        *_replay_named(report, replay),
        *replay_faults(replay, rule, policy),
        *([] if memory.canary is not None and report.canary == memory.canary else ["the report is of another trial"]),
        *_trial_faults(report, replay, policy.canary),
        *_signature_faults(report, policy.promote.signature, policy),
        *_address_faults(report, gate),
    )
    if faults:
        _refuse(rule.rule_id, "may not be made active", faults)
    return _moved(memory, rule, "active", now, reasons=("promoted",), report_id=report.report_id)


def narrowed(
    memory: StoredMemory, cut: RuleRecord, report: PromotionReport, gate: GateReport, policy: RulePolicy, now: str
) -> StoredMemory:
    """Return an active rule restricted to a smaller place, to make room for an exception: same words, passed by the
    gate.

    It needs no trial of its own: where it still applies, it is the rule that was tried.
    """
    rule = _candidate(memory, ("active",), now)
    same = (rule.rule_id, rule.type, rule.title, rule.body) == (cut.rule_id, cut.type, cut.title, cut.body)
    inside = is_within(place_of(cut.applicability), place_of(rule.applicability))
    faults = (
        *([] if same else ["it would say something else"]),
        *([] if inside else ["its place would be another, and not a smaller one"]),
        *([] if rule_digest(cut) != rule_digest(rule) else ["nothing would change"]),
        *_report_faults(report, cut, "promote"),
        *([] if report.gate_report_id == gate.report_id else ["the report names another gate"]),
        *faults_of(gate, cut, policy.gate),
        *_signature_faults(report, policy.promote.signature, policy),
    )
    if faults:
        _refuse(rule.rule_id, "may not be narrowed", faults)
    return _moved(memory, cut, "active", now, reasons=("narrowed",), report_id=report.report_id)


def restored(
    then: StoredMemory,
    current: StoredMemory,
    report: PromotionReport,
    promoted: PromotionReport | None,
    policy: RulePolicy,
) -> StoredMemory:
    """Return an earlier version of a rule, put back in force; counts collected since are kept.

    `promoted` is the report that once made it active, if any. To put an inactive rule back in force needs the signature
    a promotion needs.
    """
    rule = rule_in(then)
    acts, acting = _acts(then), _acts(current)
    needed = policy.promote.signature if acts and not acting else policy.promote.retire_signature
    faults = [
        *(
            []
            if then.id == current.id and then.version <= current.version
            else [f"{then.id} is no earlier version of it"]
        ),
        *_report_faults(report, rule, "rollback"),
        *_signature_faults(report, needed, policy),
    ]
    if "active" in (then.status, then.stage, rule.status):
        faults += _promoted_faults(then, rule, promoted)
    if faults:
        _refuse(current.id, "may not be restored", tuple(faults))
    kept = {name: getattr(current, name) for name in _COUNTED if name in current.model_fields_set}
    return _remade(then, drop=_COUNTED, update={"version": current.version + 1, **kept})


def retired(memory: StoredMemory, report: PromotionReport, policy: RulePolicy, now: str) -> StoredMemory:
    """Take the rule out of force: kept, but never selected."""
    rule = rule_in(memory)
    if memory.status in ("retired", "pruned"):
        raise WrongStage(f"{memory.id} is {memory.status} already", hint="read what stands now")
    actions = ("rollback",) if report.action == "rollback" else ("retire",)
    faults = (
        *_report_faults(report, rule, *actions),
        *_signature_faults(report, policy.promote.retire_signature, policy),
    )
    if faults:
        _refuse(memory.id, "may not be retired", faults)
    return _moved(memory, rule, "retired", now, reasons=("retired",))


def staged(
    memory: StoredMemory,
    stage: RuleStage,
    policy: RulePolicy,
    now: str,
    *,
    gate: GateReport | None = None,
    replay: ReplayReport | None = None,
    canary: CanaryPlan | None = None,
    reason: str = "",
) -> StoredMemory:
    """Move the rule to the next stage, or back to a draft. Each stage requires its evidence; none of them is
    `active`.
    """
    if stage not in _BEFORE:
        raise WrongStage(f"no rule is simply made {stage}", hint="activated() or retired(), with a report")
    rule = _candidate(memory, _BEFORE[stage], now)
    faults = _stage_faults(rule, stage, policy, gate, replay, canary)
    if faults:
        _refuse(memory.id, f"may not be {stage}", faults)
    plan: dict[str, Any] = {}
    if canary is not None and gate is not None:
        plan = {"canary": canary, "report_id": gate.report_id}
    return _moved(memory, rule, stage, now, reasons=(reason or stage,), **plan)


def refuse_stage(
    memory: StoredMemory,
    stage: RuleStage,
    policy: RulePolicy,
    now: str,
    *,
    gate: GateReport | None = None,
    replay: ReplayReport | None = None,
    canary: CanaryPlan | None = None,
) -> NoReturn:
    """Raise the error that lists everything a rule lacks for a stage; for callers that already know it lacks
    something.
    """
    rule = _candidate(memory, _BEFORE[stage], now)
    _refuse(memory.id, f"may not be {stage}", _stage_faults(rule, stage, policy, gate, replay, canary))


def _stage_faults(
    rule: RuleRecord,
    stage: RuleStage,
    policy: RulePolicy,
    gate: GateReport | None,
    replay: ReplayReport | None,
    canary: CanaryPlan | None,
) -> tuple[str, ...]:
    """The requirements of a stage that these reports do not meet."""
    faults: list[str] = []
    if stage != "drafted":
        faults += ["no gate"] if gate is None else faults_of(gate, rule, policy.gate)
    if stage == "replayed" and replay is None:
        faults.append("no replay")
    if stage in ("replayed", "canary"):
        faults += replay_faults(replay, rule, policy)
    if (stage == "canary") != (canary is not None):
        faults.append("a trial has a plan" if canary is None else "only a trial has a plan")
    return tuple(faults)


def is_borne_out(memory: StoredMemory, gate: GateReport, promoted: PromotionReport | None) -> bool:
    """Return whether these reports support a rule's claim to be on trial or active, by their evidence rather than a
    policy.

    Used for imported rules, whose path through the stages was not observed.
    """
    rule = rule_in(memory)
    named = (rule.rule_id, rule_digest(rule))
    if memory.layer == "user" or (gate.rule_id, gate.rule_digest) != named or not holds(gate):
        return False
    if promoted is None:
        plan = memory.canary
        standing = memory.stage == "canary" and memory.status in ("temporary", "pinned") and rule.status == "temporary"
        return standing and plan is not None and 0 < plan.share < 1
    signed = promoted.signed_by is not None or promoted.allowed_by is not None
    spoke = promoted.canary is None or promoted.decision in ("better", "not_harmful")
    return (
        (memory.status, memory.stage, rule.status) == ("active", "active", "active")
        and (promoted.rule_id, promoted.rule_digest, promoted.action) == (*named, "promote")
        and promoted.gate_report_id == gate.report_id
        and signed
        and spoke
    )


# -- requirements on reports --------------------------------------------------------------------------


def _candidate(memory: StoredMemory, stages: tuple[RuleStage, ...], now: str) -> RuleRecord:
    """The learned, live rule of a memory at one of these stages."""
    rule = rule_in(memory)
    if memory.layer == "user":
        raise WrongStage(f"{memory.id} is of the submitted layer", hint="those are added and retired, never promoted")
    stage = memory.stage or ("drafted" if memory.status in ("temporary", "pinned") else memory.status)
    if stage not in stages:
        hint = f"it must stand at {' or '.join(stages)} before that"
        raise WrongStage(f"{memory.id} is {stage}", hint=hint, details={"stage": stage})
    if memory.status in ("retired", "pruned") or has_expired(memory, now):
        raise WrongStage(f"{memory.id} is {memory.status} or has expired", hint="submit it anew")
    if (rule.status == "active") != (stage == "active"):
        raise WrongStage(f"{memory.id} is {stage} and its record says {rule.status}", hint="read what stands now")
    return rule


def _report_faults(report: PromotionReport, rule: RuleRecord, *actions: str) -> list[str]:
    return [
        *([] if report.action in actions else [f"the report is one to {report.action}"]),
        *([] if report.rule_id == rule.rule_id else [f"the report is of the rule {report.rule_id}"]),
        *([] if report.rule_digest == rule_digest(rule) else ["the report is of the rule as it was, or would be"]),
        *([] if any(reason.strip() for reason in report.reasons) else ["the report gives no reason"]),
    ]


def _replay_named(report: PromotionReport, replay: ReplayReport | None) -> list[str]:
    named = None if replay is None else replay.report_id
    return [] if report.replay_report_id == named else ["the report names another replay"]


def _trial_faults(report: PromotionReport, replay: ReplayReport | None, policy: CanaryPolicy) -> list[str]:
    """The requirements that a trial's figures do not meet. Figures that started with a replay are kept apart from the
    trial's own.
    """
    try:
        seen = comparison_of(report.comparison, policy)
    except InvalidInput as error:
        return [f"the trial cannot be judged: {error.message}"]
    enough = ("better",) if policy.needs == "better" else ("better", "not_harmful")
    return [
        *(
            []
            if seen.decision == report.decision
            else [f"the report says {report.decision}, its figures {seen.decision}"]
        ),
        *([] if seen.decision in enough else [f"the trial has shown {seen.decision}; needed {policy.needs}"]),
        *(["the trial has shown it to be worse"] if "worse" in seen.claims else []),
        *(_joined_faults(seen, replay, policy) if report.counts_replay else []),
    ]


def _joined_faults(seen: Comparison, replay: ReplayReport | None, policy: CanaryPolicy) -> list[str]:
    """Why a comparison that started with a replay does not count: because of the policy, the replay, or the trial's own
    runs.
    """
    if not policy.counts_replay:
        return ["what was shown before the trial does not count"]
    if replay is None or not replay.pairs:
        return ["the report counts a replay, and there is none"]
    tallies = ((seen.candidate, replay.with_passes), (seen.baseline, replay.without_passes))
    if any(tally.n < replay.pairs or tally.passes < passes for tally, passes in tallies):
        return ["the figures do not hold the replay that they count"]
    mine, other = (Tally(tally.passes - passes, tally.n - replay.pairs) for tally, passes in tallies)
    own = Comparison(policy.margin, policy.alpha, candidate=mine, baseline=other)
    return list(own_runs_lacking(own, policy))


def _signature_faults(report: PromotionReport, needed: str, policy: RulePolicy) -> list[str]:
    if report.signed_by is not None and report.signed_by.strip():
        return []
    if needed == "policy" and report.allowed_by == policy.policy_id:
        return []
    return [f"no one has signed, and {policy.policy_id!r} does not allow it alone"]


def _address_faults(report: PromotionReport, gate: GateReport) -> list[str]:
    """Require a person's review for links to the outside, which figures cannot judge."""
    named = [one.code for one in gate.lint if one.code in _LEADS_OUT]
    is_alone = named and not report.signed_by
    return [f"it names an address ({named[0]}), which takes a person's signature"] if is_alone else []


def _promoted_faults(then: StoredMemory, rule: RuleRecord, promoted: PromotionReport | None) -> list[str]:
    if promoted is None or promoted.report_id != then.report_id:
        return ["no report tells what once made it active"]
    ungated = [] if promoted.gate_report_id else ["what made it active names no gate"]
    return [*ungated, *_report_faults(promoted, rule, "promote", "rollback")]


def _refuse(rule_id: str, what: str, faults: tuple[str, ...]) -> NoReturn:
    details: dict[str, Any] = {"rule_id": rule_id, "reasons": list(faults)}
    raise GateFailed(f"{rule_id} {what}: {faults[0]}", hint="the details hold every reason", details=details)


def _acts(memory: StoredMemory) -> bool:
    """Return whether it can be selected for runs. A submitted rule can, because of its layer, until it is retired."""
    return memory.stage in ("canary", "active") or (memory.layer == "user" and memory.status == "temporary")


# -- versions -----------------------------------------------------------------------------------------

_STATUS: dict[RuleStage, str] = {"active": "active", "retired": "retired"}


def _moved(
    memory: StoredMemory, rule: RuleRecord, stage: RuleStage, now: str, *, reasons: tuple[str, ...], **update: Any
) -> StoredMemory:
    """The next version of a rule at a stage, with record, status and lifecycle consistent."""
    status = _STATUS.get(stage, "temporary")
    wire = rule.to_wire()
    record = {**wire, "status": status, "lifecycle": {**wire.get("lifecycle", {}), "updated_at": now}}
    pinned = memory.status == "pinned" and status == "temporary"
    changes = {
        "version": memory.version + 1,
        "record": record,
        "status": "pinned" if pinned else status,
        "stage": stage,
        "reason_keys": reasons,
        **update,
    }
    return _remade(memory, drop=("canary", "report_id"), update=changes)


def _remade(memory: StoredMemory, *, drop: tuple[str, ...], update: dict[str, Any]) -> StoredMemory:
    kept = {name: getattr(memory, name) for name in memory.model_fields_set if name not in drop}
    return StoredMemory(**{**kept, **update})


# == reports ==========================================================================================================


def report_promotion(
    rule: RuleRecord,
    gate: GateReport,
    replay: ReplayReport | None,
    plan: CanaryPlan,
    comparison: Comparison | Mapping[str, Any],
    verdict: CanaryVerdict,
    policy: RulePolicy,
    *,
    report_id: str,
    now: str,
    signed_by: str | None = None,
    judges: Mapping[str, int] | None = None,
    counts_replay: bool = False,
) -> PromotionReport:
    """Collect the evidence for making a rule active. Decides nothing: `activation.activated` checks all of it again."""
    seen = comparison_of(comparison, policy.canary)
    replayed = () if replay is None else (_replay_line(replay),)
    optional: dict[str, Any] = {} if replay is None else {"replay_report_id": replay.report_id}
    optional |= {"judges": dict(judges)} if judges else {}
    optional |= {"counts_replay": True} if counts_replay else {}
    return PromotionReport(
        report_id=report_id,
        rule_id=rule.rule_id,
        rule_digest=rule_digest(rule),
        action="promote",
        gate_report_id=gate.report_id,
        canary=plan,
        comparison=seen.to_wire(),
        decision=seen.decision,
        reasons=(*verdict.reasons, *replayed, *reasons_of(gate)),
        created_at=now,
        **optional,
        **_names(signed_by, policy.promote.signature, policy),
    )


def report_narrowing(
    cut: RuleRecord,
    exception_id: str,
    gate: GateReport,
    policy: RulePolicy,
    *,
    report_id: str,
    now: str,
    signed_by: str | None = None,
) -> PromotionReport:
    """Report why an active rule is restricted to a smaller place: another rule is an exception to it."""
    return PromotionReport(
        report_id=report_id,
        rule_id=cut.rule_id,
        rule_digest=rule_digest(cut),
        action="promote",
        gate_report_id=gate.report_id,
        reasons=(f"{exception_id} is an exception to it", *reasons_of(gate)),
        created_at=now,
        **_names(signed_by, policy.promote.signature, policy),
    )


def report_change(
    rule: RuleRecord,
    action: Literal["retire", "rollback"],
    reasons: Sequence[str],
    policy: RulePolicy,
    *,
    report_id: str,
    now: str,
    signed_by: str | None = None,
    acts_again: bool = False,
) -> PromotionReport:
    """Report why a rule is taken out of force or restored. Restoring one that acts is signed like a promotion."""
    needed = policy.promote.signature if acts_again else policy.promote.retire_signature
    return PromotionReport(
        report_id=report_id,
        rule_id=rule.rule_id,
        rule_digest=rule_digest(rule),
        action=action,
        reasons=tuple(reasons),
        created_at=now,
        **_names(signed_by, needed, policy),
    )


def _replay_line(replay: ReplayReport) -> str:
    effect = "" if replay.effect is None else f", effect {replay.effect:+.3f}"
    return (
        f"replay: {replay.with_passes} of {replay.pairs} passed with it, {replay.without_passes} without{effect}: "
        f"{replay.decision}; {replay.notes}"
    )


def _names(signed_by: str | None, needed: str, policy: RulePolicy) -> dict[str, Any]:
    if signed_by is not None:
        return {"signed_by": signed_by}
    return {"allowed_by": policy.policy_id} if needed == "policy" else {}
