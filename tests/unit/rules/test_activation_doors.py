"""Each door of a rule's life from both sides: what comes out where it opens, and all that is told where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from promotion_makers import EASY, LATER, NOW, POLICY, Gated, compared, memory_of

from muniment.contracts.rules import RuleRecord
from muniment.core.policy import CanaryPolicy, GatePolicy, PromotePolicy, RulePolicy
from muniment.errors import GateFailed, InvalidInput, MunimentError, WrongStage
from muniment.learning.records import CanaryPlan, StoredMemory, Tally
from muniment.rules._gate import rule_digest
from muniment.rules._records import GateReport, LintFinding, PromotionReport
from muniment.rules.activation import (
    activated,
    is_borne_out,
    narrowed,
    refuse_stage,
    restored,
    retired,
    rule_in,
    staged,
)
from products import for_each

ID = "rule-d1"
UNSIGNED = "no one has signed, and 'default' does not allow it alone"
PLAN = CanaryPlan(canary_id="c", share=0.05, started_at=NOW)
ALONE = RulePolicy(policy_id="night", promote=PromotePolicy(signature="policy"), canary=EASY)
"""A policy that asks for nobody's signature."""
STRICT = RulePolicy(promote=PromotePolicy(retire_signature="required"), canary=EASY)
"""A policy that asks for one even where a rule goes out of force."""


def active_of(made: Gated, **changes: Any) -> StoredMemory:
    after = activated(made.on_trial(), made.report(), made.gate(), made.replay(), made.policy, LATER)
    return after.model_copy(update=changes)


def told(made: Gated, action: str, **fields: Any) -> PromotionReport:
    plain = {"action": action, "report_id": "r2", "gate_report_id": None, "replay_report_id": None, "canary": None}
    return made.report(**(plain | fields))


def refused(call: Callable[[], Any], what: str) -> list[str]:
    """The reasons of a refusal, of which the message names the first."""
    with pytest.raises(GateFailed) as caught:
        call()
    reasons: list[str] = caught.value.details["reasons"]
    assert caught.value.message == f"{ID} {what}: {reasons[0]}"
    assert caught.value.hint == "the details hold every reason"
    assert caught.value.details == {"rule_id": ID, "reasons": reasons}
    return reasons


def words_of(call: Callable[[], Any], error: type[MunimentError]) -> tuple[str, str | None, dict[str, Any]]:
    with pytest.raises(error) as caught:
        call()
    return caught.value.message, caught.value.hint, caught.value.details


# -- whose rule it is, and where it stands -------------------------------------------------------------


def test_a_memory_that_holds_no_rule_or_another_one_says_so() -> None:
    made = Gated()
    tactic = made.on_trial().model_copy(update={"kind": "tactic"})
    assert words_of(lambda: rule_in(tactic), InvalidInput)[0] == f"{ID} is a tactic and no rule"
    other = made.on_trial().model_copy(update={"id": "other"})
    assert words_of(lambda: rule_in(other), InvalidInput)[0] == f"other holds the rule {ID}"


@pytest.mark.req("RC-14")
@for_each(
    ("change", "message", "hint", "details"),
    [
        ({"layer": "user"}, f"{ID} is of the submitted layer", "those are added and retired, never promoted", {}),
        (
            {"stage": "canary"},
            f"{ID} is canary",
            "it must stand at drafted or gated or replayed before that",
            {"stage": "canary"},
        ),
        (
            {"stage": None, "status": "retired"},
            f"{ID} is retired",
            "it must stand at drafted or gated or replayed before that",
            {"stage": "retired"},
        ),
        ({"status": "retired"}, f"{ID} is retired or has expired", "submit it anew", {}),
        ({"status": "pruned"}, f"{ID} is pruned or has expired", "submit it anew", {}),
        ({"expires_at": NOW}, f"{ID} is temporary or has expired", "submit it anew", {}),
    ],
)
def test_a_rule_that_is_not_where_it_should_be_is_told_so(
    change: dict[str, Any], message: str, hint: str, details: dict[str, Any]
) -> None:
    made = Gated()
    memory = memory_of(made.rule).model_copy(update=change)
    got = words_of(lambda: staged(memory, "gated", POLICY, LATER, gate=made.gate()), WrongStage)
    assert got == (message, hint, details)


def test_a_record_out_of_step_with_its_memory_is_told_so() -> None:
    made = Gated()
    says_active = made.rule.model_copy(update={"status": "active"}).to_wire()
    memory = memory_of(made.rule).model_copy(update={"record": says_active})
    message = f"{ID} is drafted and its record says active"
    got = words_of(lambda: staged(memory, "gated", POLICY, NOW, gate=made.gate()), WrongStage)
    assert got == (message, "read what stands now", {})


@pytest.mark.parametrize("status", ["temporary", "pinned"])
def test_a_rule_of_no_stage_is_a_draft_while_it_is_temporary_or_pinned(status: str) -> None:
    made = Gated()
    bare = memory_of(made.rule, status=status).model_copy(update={"stage": None})
    after = staged(bare, "gated", POLICY, NOW, gate=made.gate())
    assert (after.stage, after.status) == ("gated", status)


@pytest.mark.parametrize("stage", ["active", "retired"])
def test_a_stage_that_takes_a_report_names_who_makes_it(stage: Any) -> None:
    made = Gated()
    got = words_of(lambda: staged(made.on_trial(), stage, POLICY, NOW), WrongStage)
    assert got == (f"no rule is simply made {stage}", "activated() or retired(), with a report", {})


@pytest.mark.req("RC-14")
def test_each_stage_is_come_to_from_those_before_it_and_no_others() -> None:
    made = Gated()
    proof: dict[str, dict[str, Any]] = {
        "drafted": {},
        "gated": {"gate": made.gate()},
        "replayed": {"gate": made.gate(), "replay": made.replay()},
        "canary": {"gate": made.gate(), "replay": made.replay(), "canary": PLAN},
    }
    before = {
        "drafted": {"drafted", "gated", "replayed", "canary"},
        "gated": {"drafted", "gated", "replayed"},
        "replayed": {"gated", "replayed"},
        "canary": {"gated", "replayed", "canary"},
    }
    for stage, kept in proof.items():
        for origin in ("drafted", "gated", "replayed", "canary", "retired"):
            memory = memory_of(made.rule, stage=origin)
            if origin in before[stage]:
                after = staged(memory, stage, POLICY, LATER, **kept)  # type: ignore[arg-type]
                assert (after.stage, after.status, after.reason_keys) == (stage, "temporary", (stage,))
            else:
                with pytest.raises(WrongStage):
                    staged(memory, stage, POLICY, LATER, **kept)  # type: ignore[arg-type]


# -- what each stage asks for --------------------------------------------------------------------------


@pytest.mark.req("RC-18")
@pytest.mark.parametrize(
    ("stage", "given", "reasons"),
    [
        ("gated", (), ["no gate"]),
        ("gated", ("gate", "canary"), ["only a trial has a plan"]),
        ("drafted", ("canary",), ["only a trial has a plan"]),
        ("replayed", (), ["no gate", "no replay", "no replay; needed 5 tasks or more"]),
        ("replayed", ("gate",), ["no replay", "no replay; needed 5 tasks or more"]),
        ("replayed", ("gate", "replay", "canary"), ["only a trial has a plan"]),
        ("canary", (), ["no gate", "no replay; needed 5 tasks or more", "a trial has a plan"]),
        ("canary", ("gate", "replay"), ["a trial has a plan"]),
        ("canary", ("gate", "canary"), ["no replay; needed 5 tasks or more"]),
        ("canary", ("replay", "canary"), ["no gate"]),
    ],
)
def test_what_a_stage_lacks_is_told_in_full_by_both_doors(
    stage: Any, given: tuple[str, ...], reasons: list[str]
) -> None:
    made = Gated(policy=RulePolicy(gate=GatePolicy(replay_pairs_min=5), canary=EASY))
    held: dict[str, Any] = {"gate": made.gate(), "replay": made.replay(), "canary": PLAN}
    proof = {name: held[name] for name in given}
    memory = memory_of(made.rule, stage="gated")
    for door in (staged, refuse_stage):
        assert (
            refused(lambda door=door: door(memory, stage, made.policy, NOW, **proof), f"may not be {stage}") == reasons
        )


def test_a_gate_or_a_replay_that_speaks_against_a_stage_is_heard_at_both_doors() -> None:
    made = Gated()
    memory = memory_of(made.rule, stage="gated")
    failed = made.gate().model_copy(update={"passed": False})
    harmful = made.replay().model_copy(update={"passed": False})
    for door in (staged, refuse_stage):
        for stage, plan in (("replayed", None), ("canary", PLAN)):
            reasons = refused(
                lambda door=door, stage=stage, plan=plan: door(
                    memory, stage, POLICY, NOW, gate=failed, replay=harmful, canary=plan
                ),
                f"may not be {stage}",
            )
            assert reasons == ["the gate did not pass", "the replay did not pass"]


def test_a_rule_at_the_wrong_stage_is_no_question_of_proof() -> None:
    with pytest.raises(WrongStage):
        refuse_stage(memory_of(Gated().rule), "replayed", POLICY, NOW)
    gone = memory_of(Gated().rule).model_copy(update={"expires_at": NOW})
    with pytest.raises(WrongStage):
        refuse_stage(gone, "gated", POLICY, LATER)


# -- what comes out ------------------------------------------------------------------------------------


def test_a_version_that_was_moved_differs_in_what_was_moved_and_in_nothing_else() -> None:
    made = Gated()
    before = memory_of(made.rule, stage="replayed", version=7, sources=["t1"], with_tally={"n": 3, "passes": 2})
    after = staged(before, "canary", POLICY, LATER, gate=made.gate(), replay=made.replay(), canary=PLAN)
    wire = before.to_wire()
    lifecycle = {**wire["record"]["lifecycle"], "updated_at": LATER}
    assert after.to_wire() == wire | {
        "version": 8,
        "stage": "canary",
        "status": "temporary",
        "reason_keys": ["canary"],
        "record": wire["record"] | {"status": "temporary", "lifecycle": lifecycle},
        "canary": PLAN.to_wire(),
        "report_id": "gate-1",
    }
    back = staged(after, "drafted", POLICY, LATER, reason="trial_ended")
    assert (back.version, back.reason_keys, back.canary, back.report_id) == (9, ("trial_ended",), None, None)


def test_a_record_without_a_lifecycle_gets_one() -> None:
    made = Gated()
    wire = made.rule.to_wire()
    wire.pop("lifecycle")
    bare = RuleRecord.from_wire(wire)
    after = rule_in(staged(memory_of(bare), "gated", POLICY, LATER, gate=made.gate()))
    assert after.lifecycle is not None
    assert after.lifecycle.to_wire() == {"updated_at": LATER}


def test_a_pin_ends_where_a_rule_becomes_active_or_is_retired() -> None:
    made = Gated()
    pinned = made.on_trial().model_copy(update={"status": "pinned"})
    active = activated(pinned, made.report(), made.gate(), made.replay(), POLICY, LATER)
    assert (active.status, active.record["status"]) == ("active", "active")
    gone = retired(pinned, told(made, "retire"), POLICY, LATER)
    assert (gone.status, gone.record["status"], gone.reason_keys) == ("retired", "retired", ("retired",))
    assert gone.record["lifecycle"]["updated_at"] == LATER


# -- active --------------------------------------------------------------------------------------------


@pytest.mark.req("RC-14", "RC-18")
def test_everything_that_keeps_a_rule_from_being_active_is_told_in_order() -> None:
    made = Gated()
    report = made.report(
        action="retire",
        rule_id="another",
        rule_digest="0",
        gate_report_id="gate-2",
        replay_report_id="replay-2",
        canary=PLAN,
        seen=compared("harmful"),
        decision="better",
        reasons=(" ",),
        signed_by=None,
    )
    link = LintFinding(code="link", path="$.body", message="names an address", severity="warning")
    gate = made.gate(lint=[link]).model_copy(update={"passed": False})
    replay = made.replay().model_copy(update={"passed": False})
    reasons = refused(lambda: activated(made.on_trial(), report, gate, replay, POLICY, LATER), "may not be made active")
    assert reasons == [
        "the report is one to retire",
        "the report is of the rule another",
        "the report is of the rule as it was, or would be",
        "the report gives no reason",
        "the report names another gate",
        "the gate did not pass",
        "the report names another replay",
        "the replay did not pass",
        "the report is of another trial",
        "the report says better, its figures harmful",
        "the trial has shown harmful; needed not_harmful",
        "the trial has shown it to be worse",
        UNSIGNED,
        "it names an address (link), which takes a person's signature",
    ]


def test_a_comparison_that_cannot_be_read_is_told_with_its_reason() -> None:
    made = Gated()
    report = made.report(comparison={})
    (reason,) = refused(
        lambda: activated(made.on_trial(), report, made.gate(), made.replay(), POLICY, LATER), "may not be made active"
    )
    assert reason.startswith("the trial cannot be judged: ")
    assert len(reason) > len("the trial cannot be judged: None")


def test_a_trial_that_needs_better_says_what_it_has_shown() -> None:
    made = Gated(policy=RulePolicy(canary=CanaryPolicy(needs="better")))
    reasons = refused(
        lambda: activated(made.on_trial(), made.report(), made.gate(), made.replay(), made.policy, LATER),
        "may not be made active",
    )
    assert reasons == ["the trial has shown not_harmful; needed better"]


@pytest.mark.parametrize("needs", ["better", "not_harmful"])
def test_what_is_better_is_enough_for_either(needs: Any) -> None:
    made = Gated(policy=RulePolicy(canary=CanaryPolicy(needs=needs)))
    report = made.report(seen=compared("better"))
    after = activated(made.on_trial(), report, made.gate(), made.replay(), made.policy, LATER)
    assert after.status == "active"


@pytest.mark.req("RC-18")
@pytest.mark.parametrize("code", ["link", "host"])
def test_an_address_takes_a_person_even_where_a_policy_signs(code: str) -> None:
    made = Gated(policy=ALONE)
    finding = LintFinding(code=code, path="$.body", message="names an address", severity="warning")
    gate = made.gate(lint=[finding])
    alone = made.report(signed_by=None, allowed_by="night")

    def promote(report: PromotionReport, gate: GateReport) -> StoredMemory:
        return activated(made.on_trial(), report, gate, made.replay(), ALONE, LATER)

    reasons = refused(lambda: promote(alone, gate), "may not be made active")
    assert reasons == [f"it names an address ({code}), which takes a person's signature"]
    assert promote(made.report(), gate).status == "active"
    other = made.gate(lint=[finding.model_copy(update={"code": "long"})])
    assert promote(alone, other).status == "active"


def test_a_policy_signs_only_where_it_may_and_under_its_own_name() -> None:
    made = Gated(policy=ALONE)
    for fields in ({"allowed_by": None}, {"allowed_by": "day"}):
        report = made.report(signed_by=None, **fields)
        reasons = refused(
            lambda report=report: activated(made.on_trial(), report, made.gate(), made.replay(), ALONE, LATER),
            "may not be made active",
        )
        assert reasons == ["no one has signed, and 'night' does not allow it alone"]


# -- a smaller place -----------------------------------------------------------------------------------


def cut_of(made: Gated, **changes: Any) -> RuleRecord:
    """The rule in a smaller place, unless the changes say otherwise."""
    wire = made.rule.to_wire()
    smaller = {"applicability": {**wire["applicability"], "predicates": ["vip"]}, "version": "2"}
    return RuleRecord.from_wire(wire | smaller | changes)


def narrowing(made: Gated, cut: RuleRecord, **fields: Any) -> Callable[[], StoredMemory]:
    gate = fields.pop("gate", None) or made.gate(rule=cut, report_id="gate-2")
    memory = fields.pop("memory", None) or active_of(made)
    plain = {"rule_digest": rule_digest(cut), "gate_report_id": "gate-2"}
    report = told(made, **({"action": "promote"} | plain | fields))
    return lambda: narrowed(memory, cut, report, gate, made.policy, "2026-05-03T12:00:00.000000Z")


def test_a_narrowed_rule_is_the_same_rule_one_version_on() -> None:
    made = Gated()
    cut = cut_of(made)
    before = active_of(made)
    after = narrowing(made, cut)()
    assert (after.version, after.status, after.stage) == (before.version + 1, "active", "active")
    assert (after.reason_keys, after.report_id) == (("narrowed",), "r2")
    narrow = rule_in(after)
    assert narrow.applicability == cut.applicability
    assert narrow.status == "active"
    assert narrow.lifecycle is not None
    assert narrow.lifecycle.updated_at == "2026-05-03T12:00:00.000000Z"


def test_an_active_rule_of_no_stage_is_narrowed_too() -> None:
    made = Gated()
    bare = active_of(made, stage=None)
    assert narrowing(made, cut_of(made), memory=bare)().stage == "active"


def test_a_policy_that_signs_for_promotions_signs_for_a_narrowing() -> None:
    made = Gated(policy=ALONE)
    assert narrowing(made, cut_of(made), signed_by=None, allowed_by="night")().status == "active"
    lax = Gated()
    reasons = refused(narrowing(lax, cut_of(lax), signed_by=None, allowed_by="default"), "may not be narrowed")
    assert reasons == [UNSIGNED]


@for_each(
    ("changes", "why"),
    [
        ({"type": "StrategyRule"}, "it would say something else"),
        ({"title": "Another"}, "it would say something else"),
        ({"body": "Something else."}, "it would say something else"),
        ({"applicability": {}}, "its place would be another, and not a smaller one"),
        ({"applicability": {"domain_tag": "travel", "task_family": "booking"}}, "nothing would change"),
    ],
)
def test_what_is_not_the_rule_in_a_smaller_place_is_told(changes: dict[str, Any], why: str) -> None:
    made = Gated()
    assert refused(narrowing(made, cut_of(made, **changes)), "may not be narrowed") == [why]


@for_each(
    ("fields", "why"),
    [
        ({"action": "rollback"}, "the report is one to rollback"),
        ({"rule_id": "another"}, "the report is of the rule another"),
        ({"rule_digest": "0"}, "the report is of the rule as it was, or would be"),
        ({"reasons": ()}, "the report gives no reason"),
        ({"gate_report_id": "gate-1"}, "the report names another gate"),
        ({"signed_by": None}, UNSIGNED),
    ],
)
def test_a_narrowing_needs_its_own_report(fields: dict[str, Any], why: str) -> None:
    made = Gated()
    assert refused(narrowing(made, cut_of(made), **fields), "may not be narrowed") == [why]


def test_a_narrowing_goes_through_the_gate_of_the_smaller_rule() -> None:
    made = Gated()
    stale = made.gate(report_id="gate-2")
    reasons = refused(narrowing(made, cut_of(made), gate=stale), "may not be narrowed")
    assert reasons == ["the rule was changed after the gate"]


# -- out of force, and back ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["retired", "pruned"])
def test_what_is_out_of_force_is_not_retired_again(status: str) -> None:
    made = Gated()
    gone = made.on_trial().model_copy(update={"status": status})
    got = words_of(lambda: retired(gone, told(made, "retire"), POLICY, LATER), WrongStage)
    assert got == (f"{ID} is {status} already", "read what stands now", {})


def test_a_rollback_retires_a_rule_and_a_promotion_does_not() -> None:
    made = Gated()
    assert retired(active_of(made), told(made, "rollback"), POLICY, LATER).status == "retired"
    reasons = refused(lambda: retired(active_of(made), told(made, "promote"), POLICY, LATER), "may not be retired")
    assert reasons == ["the report is one to promote"]


def test_a_policy_may_ask_for_a_signature_to_retire() -> None:
    made = Gated()
    alone = told(made, "retire", signed_by=None, allowed_by="default")
    assert retired(active_of(made), alone, POLICY, LATER).status == "retired"
    assert refused(lambda: retired(active_of(made), alone, STRICT, LATER), "may not be retired") == [UNSIGNED]
    assert retired(active_of(made), told(made, "retire"), STRICT, LATER).status == "retired"


def submitted(made: Gated, **fields: Any) -> StoredMemory:
    """A rule that a person wrote: it acts by its layer."""
    return memory_of(made.rule, **({"layer": "user", "stage": "drafted"} | fields))


@pytest.mark.req("RC-14")
def test_what_did_not_act_and_would_is_signed_for_as_a_promotion_is() -> None:
    """A rule acts on trial, when active, and, if a person wrote it, until it is retired."""
    made = Gated()
    drafted = memory_of(made.rule, stage="drafted", version=9)
    acting = {
        "on trial": made.on_trial(),
        "submitted": submitted(made),
    }
    resting = {
        "gated": memory_of(made.rule, stage="gated"),
        "a retired one of a person's": submitted(made, status="retired"),
        "a draft that was learned": memory_of(made.rule),
    }
    alone = told(made, "rollback", signed_by=None, allowed_by="default")
    for name, then in acting.items():
        reasons = refused(lambda then=then: restored(then, drafted, alone, None, POLICY), "may not be restored")
        assert reasons == [UNSIGNED], name
        assert restored(then, drafted, told(made, "rollback"), None, POLICY).version == 10, name
        current = then.model_copy(update={"version": 9})
        assert restored(then, current, alone, None, POLICY).version == 10, name
        assert restored(drafted.model_copy(update={"version": 1}), current, alone, None, POLICY).version == 10, name
    for name, then in resting.items():
        assert restored(then, drafted, alone, None, POLICY).version == 10, name


def test_to_restore_what_rests_a_signature_is_asked_for_where_retiring_takes_one() -> None:
    made = Gated()
    alone = told(made, "rollback", signed_by=None, allowed_by="default")
    current = memory_of(made.rule, version=2)
    assert refused(lambda: restored(memory_of(made.rule), current, alone, None, STRICT), "may not be restored") == [
        UNSIGNED
    ]


def test_all_that_keeps_a_version_from_coming_back_is_told_in_order() -> None:
    made = Gated()
    then = active_of(made, version=99)
    report = told(made, "promote", rule_id="another", rule_digest="0", reasons=(), signed_by=None)
    reasons = refused(lambda: restored(then, made.on_trial(), report, None, POLICY), "may not be restored")
    assert reasons == [
        f"{ID} is no earlier version of it",
        "the report is one to promote",
        "the report is of the rule another",
        "the report is of the rule as it was, or would be",
        "the report gives no reason",
        UNSIGNED,
        "no report tells what once made it active",
    ]


def test_a_version_comes_back_over_itself_but_not_over_another_rule() -> None:
    made = Gated()
    memory = memory_of(made.rule, version=3)
    assert restored(memory, memory, told(made, "rollback"), None, POLICY).version == 4
    other = memory.model_copy(update={"id": "other"})
    with pytest.raises(GateFailed) as caught:
        restored(memory, other, told(made, "rollback"), None, POLICY)
    assert caught.value.details == {"rule_id": "other", "reasons": [f"{ID} is no earlier version of it"]}


@for_each(
    ("fields", "reasons"),
    [
        ({"report_id": "other"}, ["no report tells what once made it active"]),
        ({"gate_report_id": None}, ["what made it active names no gate"]),
        ({"action": "retire"}, ["the report is one to retire"]),
        (
            {"gate_report_id": None, "rule_id": "x"},
            ["what made it active names no gate", "the report is of the rule x"],
        ),
        ({"action": "rollback"}, []),
        ({"action": "promote"}, []),
    ],
)
def test_what_was_once_active_shows_the_report_that_made_it_so(fields: dict[str, Any], reasons: list[str]) -> None:
    made = Gated()
    active = active_of(made)
    gone = retired(active, told(made, "retire"), POLICY, LATER)
    again = lambda: restored(active, gone, told(made, "rollback"), made.report(**fields), POLICY)  # noqa: E731
    if reasons:
        assert refused(again, "may not be restored") == reasons
    else:
        assert again().status == "active"


@pytest.mark.parametrize("part", ["status", "stage", "record"])
def test_whatever_calls_it_active_asks_for_that_report(part: str) -> None:
    made = Gated()
    drafted = memory_of(made.rule)
    dressed = {"status": "active", "stage": "active", "record": {**drafted.record, "status": "active"}}
    then = drafted.model_copy(update={part: dressed[part]})
    reasons = refused(lambda: restored(then, drafted, told(made, "rollback"), None, POLICY), "may not be restored")
    assert reasons == ["no report tells what once made it active"]


def test_every_count_stays_as_it_is_now_and_nothing_else() -> None:
    made = Gated()
    then = memory_of(made.rule, streak=5, last_used_at=NOW, with_tally={"n": 1}, sources=["t1"])
    counted = {
        "with_tally": Tally(n=9, passes=8),
        "without_tally": Tally(n=7, passes=2),
        "streak": 2,
        "last_used_at": LATER,
    }
    now = memory_of(made.rule, version=4, sources=["t2"]).model_copy(update=counted)
    again = restored(then, now, told(made, "rollback"), None, POLICY)
    assert {name: getattr(again, name) for name in counted} == counted
    assert (again.version, again.sources) == (5, ("t1",))
    fresh = restored(then, memory_of(made.rule, version=4), told(made, "rollback"), None, POLICY)
    assert (fresh.streak, fresh.last_used_at, fresh.with_tally) == (0, None, Tally())


# -- what comes from elsewhere -------------------------------------------------------------------------


@pytest.mark.req("RC-14", "RC-18")
@pytest.mark.parametrize("change", [{}, {"status": "pinned"}])
def test_a_trial_from_elsewhere_stands_by_its_gate_and_its_plan(change: dict[str, Any]) -> None:
    made = Gated()
    assert is_borne_out(made.on_trial().model_copy(update=change), made.gate(), None) is True


@pytest.mark.req("RC-14", "RC-18")
@for_each(
    "change",
    [
        {"layer": "user"},
        {"stage": "replayed"},
        {"stage": "active"},
        {"status": "active"},
        {"status": "retired"},
        {"canary": None},
        {"canary": PLAN.model_copy(update={"share": 0})},
        {"canary": PLAN.model_copy(update={"share": 1})},
        {"canary": PLAN.model_copy(update={"share": 1.5})},
    ],
)
def test_a_trial_from_elsewhere_that_is_none_is_not_believed(change: dict[str, Any]) -> None:
    made = Gated()
    assert is_borne_out(made.on_trial().model_copy(update=change), made.gate(), None) is False


@pytest.mark.req("RC-14", "RC-18")
@pytest.mark.parametrize("status", ["active", "retired"])
def test_a_trial_whose_record_is_not_temporary_is_not_believed(status: str) -> None:
    made = Gated()
    memory = made.on_trial()
    odd = memory.model_copy(update={"record": {**memory.record, "status": status}})
    assert is_borne_out(odd, made.gate(), None) is False


@pytest.mark.req("RC-14", "RC-18")
@pytest.mark.parametrize("forged", [{"rule_id": "another"}, {"rule_digest": "0"}, {"passed": False}])
def test_a_gate_of_another_rule_bears_nothing_out(forged: dict[str, Any]) -> None:
    made = Gated()
    gate = made.gate().model_copy(update=forged)
    assert is_borne_out(made.on_trial(), gate, None) is False
    assert is_borne_out(active_of(made), gate, made.report()) is False


@pytest.mark.req("RC-14", "RC-18")
@for_each(
    ("fields", "expected"),
    [
        ({}, True),
        ({"seen": compared("better")}, True),
        ({"signed_by": None, "allowed_by": "night"}, True),
        ({"canary": None, "decision": None}, True),
        ({"decision": None}, False),
        ({"signed_by": None}, False),
        ({"rule_id": "another"}, False),
        ({"rule_digest": "0"}, False),
        ({"action": "rollback"}, False),
        ({"gate_report_id": None}, False),
    ],
)
def test_an_active_rule_from_elsewhere_stands_by_its_report(fields: dict[str, Any], expected: bool) -> None:
    made = Gated()
    assert is_borne_out(active_of(made), made.gate(), made.report(**fields)) is expected


@pytest.mark.req("RC-14", "RC-18")
@pytest.mark.parametrize("change", [{"status": "temporary"}, {"stage": "canary"}, {"layer": "user"}])
def test_what_is_not_active_in_every_place_is_no_active_rule(change: dict[str, Any]) -> None:
    made = Gated()
    active = active_of(made)
    assert is_borne_out(active.model_copy(update=change), made.gate(), made.report()) is False
    odd = active.model_copy(update={"record": {**active.record, "status": "temporary"}})
    assert is_borne_out(odd, made.gate(), made.report()) is False
