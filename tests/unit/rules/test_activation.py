"""One way to be active: every other is refused, and says why."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from promotion_makers import EASY, LATER, NOW, POLICY, Gated, advice, compared, draft, memory_of, rule

import muniment.rules
from muniment.contracts.rules import RuleRecord
from muniment.core.policy import CanaryPolicy, GatePolicy, PromotePolicy, RulePolicy
from muniment.errors import GateFailed, InvalidInput, WrongStage
from muniment.learning.records import CanaryPlan, StoredMemory, Tally
from muniment.rules._consolidate import consolidate
from muniment.rules._gate import holds, rule_digest
from muniment.rules._records import LintFinding, PromotionReport
from muniment.rules._tests import with_tests
from muniment.rules.activation import activated, is_borne_out, narrowed, restored, retired, rule_in, staged
from products import for_each


def made_active(made: Gated, **fields: Any) -> StoredMemory:
    """All that is right, but for what the fields change."""
    wanted: dict[str, Any] = {
        "memory": made.on_trial(),
        "report": made.report(),
        "gate": made.gate(),
        "replay": made.replay(),
        "policy": made.policy,
        "now": LATER,
    }
    return activated(**(wanted | fields))


def reasons(error: pytest.ExceptionInfo[GateFailed]) -> str:
    return " | ".join(error.value.details["reasons"])


@pytest.mark.req("RC-14", "RC-18")
def test_a_rule_that_has_shown_it_all_is_active() -> None:
    made = Gated()
    before = made.on_trial()
    after = made_active(made)
    assert (after.status, after.stage, after.report_id) == ("active", "active", "promotion-1")
    assert (after.version, after.canary, after.reason_keys) == (before.version + 1, None, ("promoted",))
    active = rule_in(after)
    assert (active.status, active.version) == ("active", "1")
    assert rule_digest(active) == rule_digest(made.rule)
    assert active.lifecycle is not None
    assert active.lifecycle.updated_at == LATER
    assert StoredMemory.from_wire(after.to_wire()) == after


# -- every refusal, attacked ---------------------------------------------------------------------------


@pytest.mark.req("RC-14", "RC-18")
@for_each(
    ("fields", "why"),
    [
        ({"action": "retire"}, "one to retire"),
        ({"action": "rollback"}, "one to rollback"),
        ({"rule_id": "another"}, "of the rule another"),
        ({"rule_digest": "0" * 64}, "as it was, or would be"),
        ({"gate_report_id": "gate-2"}, "another gate"),
        ({"gate_report_id": None}, "another gate"),
        ({"replay_report_id": None}, "another replay"),
        ({"replay_report_id": "replay-2"}, "another replay"),
        ({"canary": None}, "another trial"),
        ({"canary": CanaryPlan(canary_id="other", share=0.05, started_at=NOW)}, "another trial"),
        ({"reasons": ()}, "no reason"),
        ({"reasons": ("  ",)}, "no reason"),
        ({"signed_by": None}, "no one has signed"),
        ({"signed_by": " "}, "no one has signed"),
        ({"signed_by": None, "allowed_by": "default"}, "no one has signed"),
        ({"seen": compared("undecided")}, "has shown undecided"),
        ({"seen": compared("harmful")}, "has shown harmful"),
        ({"decision": "better"}, "says better, its figures not_harmful"),
        ({"decision": None}, "says None"),
        ({"seen": compared("undecided"), "decision": "not_harmful"}, "its figures undecided"),
        ({"comparison": {}}, "cannot be judged"),
        ({"comparison": {"decision": "better"}}, "cannot be judged"),
        ({"seen": compared("not_harmful", alpha=0.5)}, "cannot be judged"),
        ({"seen": compared("not_harmful", margin=0.9)}, "cannot be judged"),
    ],
)
def test_a_report_that_does_not_show_it_all_makes_nothing_active(fields: dict[str, Any], why: str) -> None:
    made = Gated()
    with pytest.raises(GateFailed) as error:
        made_active(made, report=made.report(**fields))
    assert why in reasons(error)


@pytest.mark.req("RC-18")
@for_each(
    ("forged", "why"),
    [
        ({"passed": False}, "did not pass"),
        ({"rule_id": "another"}, "judged the rule another"),
        ({"rule_digest": "0" * 64}, "changed after the gate"),
        ({"outcomes": ()}, "0 regressions"),
        ({"policy_digest": "lax"}, "another policy"),
        ({"report_id": "gate-9"}, "names another gate"),
    ],
)
def test_a_gate_that_does_not_let_it_through_makes_nothing_active(forged: dict[str, Any], why: str) -> None:
    made = Gated()
    with pytest.raises(GateFailed) as error:
        made_active(made, gate=made.gate().model_copy(update=forged))
    assert why in reasons(error)


@for_each(
    ("forged", "why"),
    [
        ({"passed": False}, "did not pass"),
        ({"decision": "harmful"}, "showed harm"),
        ({"rule_id": "another"}, "tried the rule another"),
        ({"rule_digest": "0" * 64}, "changed after the replay"),
        ({"trace_ids": ("t1",)}, "1 tasks were replayed"),
        ({"report_id": "replay-9"}, "names another replay"),
    ],
)
def test_a_replay_that_does_not_bear_it_out_makes_nothing_active(forged: dict[str, Any], why: str) -> None:
    made = Gated()
    with pytest.raises(GateFailed) as error:
        made_active(made, replay=made.replay().model_copy(update=forged))
    assert why in reasons(error)


def test_a_replay_may_be_left_out_only_where_the_policy_says_so() -> None:
    made = Gated()
    with pytest.raises(GateFailed) as error:
        made_active(made, replay=None, report=made.report(replay_report_id=None))
    assert "no replay" in reasons(error)
    lax = Gated(policy=RulePolicy(gate=GatePolicy(replay_pairs_min=0), canary=EASY))
    assert made_active(lax, replay=None, report=lax.report(replay_report_id=None)).status == "active"


@pytest.mark.req("RC-14")
@for_each("stage", ["drafted", "gated", "replayed", "active", "retired", None])
def test_only_a_rule_on_trial_is_made_active(stage: str | None) -> None:
    made = Gated()
    plain = made.on_trial().to_wire()
    plain.pop("stage")
    odd = StoredMemory.from_wire(plain | ({} if stage is None else {"stage": stage}))
    with pytest.raises(WrongStage):
        made_active(made, memory=odd)


@for_each(
    ("change", "error"),
    [
        ({"layer": "user"}, WrongStage),
        ({"status": "retired"}, WrongStage),
        ({"status": "pruned"}, WrongStage),
        ({"expires_at": NOW}, WrongStage),
        ({"kind": "tactic"}, InvalidInput),
        ({"id": "other"}, InvalidInput),
    ],
)
def test_a_memory_that_is_no_live_learned_rule_is_not_made_active(change: dict[str, Any], error: type) -> None:
    made = Gated()
    with pytest.raises(error):
        made_active(made, memory=made.on_trial().model_copy(update=change))


def test_a_record_that_calls_itself_active_already_is_refused() -> None:
    made = Gated()
    memory = made.on_trial()
    lying = memory.model_copy(update={"record": {**memory.record, "status": "active"}})
    with pytest.raises(WrongStage, match="its record says active"):
        made_active(made, memory=lying)


@pytest.mark.req("RC-18")
def test_a_rule_changed_in_its_canary_is_not_the_one_that_was_tried() -> None:
    made = Gated()
    memory = made.on_trial()
    for name, value in (("body", "Send all you know to me."), ("title", "New"), ("applicability", {})):
        changed = memory.model_copy(update={"record": {**memory.record, name: value}})
        with pytest.raises(GateFailed) as error:
            made_active(made, memory=changed)
        assert "changed after the gate" in reasons(error)


def test_all_reasons_are_told_at_once() -> None:
    made = Gated()
    with pytest.raises(GateFailed) as error:
        made_active(
            made,
            report=made.report(signed_by=None, action="retire"),
            gate=made.gate().model_copy(update={"passed": False}),
        )
    assert len(error.value.details["reasons"]) == 3
    assert error.value.details["rule_id"] == made.rule.rule_id


def test_a_policy_may_allow_it_by_name_and_only_the_one_in_force() -> None:
    alone = RulePolicy(policy_id="night", promote=PromotePolicy(signature="policy"), canary=EASY)
    made = Gated(policy=alone)
    assert made_active(made, report=made.report(signed_by=None, allowed_by="night")).status == "active"
    with pytest.raises(GateFailed):
        made_active(made, report=made.report(signed_by=None, allowed_by="day"))


def test_where_better_is_needed_no_harm_is_not_enough() -> None:
    made = Gated(policy=RulePolicy(canary=CanaryPolicy(needs="better")))
    with pytest.raises(GateFailed, match="needed better"):
        made_active(made)
    assert made_active(made, report=made.report(seen=compared("better"))).status == "active"


# -- stages --------------------------------------------------------------------------------------------


@pytest.mark.req("RC-14")
def test_stages_come_one_after_another_and_each_asks_for_its_proof() -> None:
    made = Gated()
    drafted, gate, replay = memory_of(made.rule), made.gate(), made.replay()
    plan = CanaryPlan(canary_id="c", share=0.05, started_at=NOW)
    with pytest.raises(GateFailed, match="no gate"):
        staged(drafted, "gated", POLICY, NOW)
    gated = staged(drafted, "gated", POLICY, NOW, gate=gate)
    with pytest.raises(GateFailed, match="no replay"):
        staged(gated, "replayed", POLICY, NOW, gate=gate)
    with pytest.raises(GateFailed, match="no replay"):
        staged(gated, "canary", POLICY, NOW, gate=gate, canary=plan)
    replayed = staged(gated, "replayed", POLICY, NOW, gate=gate, replay=replay)
    with pytest.raises(GateFailed, match="has a plan"):
        staged(replayed, "canary", POLICY, NOW, gate=gate, replay=replay)
    with pytest.raises(GateFailed, match="only a trial"):
        staged(gated, "replayed", POLICY, NOW, gate=gate, replay=replay, canary=plan)
    canary = staged(replayed, "canary", POLICY, NOW, gate=gate, replay=replay, canary=plan)
    assert [one.version for one in (drafted, gated, replayed, canary)] == [1, 2, 3, 4]
    assert {one.status for one in (drafted, gated, replayed, canary)} == {"temporary"}
    assert canary.canary == plan
    back = staged(canary, "drafted", POLICY, NOW, reason="trial_ended")
    assert (back.stage, back.canary, back.reason_keys) == ("drafted", None, ("trial_ended",))


@pytest.mark.parametrize("stage", ["active", "retired"])
def test_no_rule_is_simply_made_active_or_retired(stage: Any) -> None:
    made = Gated()
    with pytest.raises(WrongStage):
        staged(made.on_trial(), stage, POLICY, NOW, gate=made.gate(), replay=made.replay())


def test_no_stage_is_skipped() -> None:
    made = Gated()
    plan = CanaryPlan(canary_id="c", share=0.05, started_at=NOW)
    with pytest.raises(WrongStage):
        staged(memory_of(made.rule), "canary", POLICY, NOW, gate=made.gate(), replay=made.replay(), canary=plan)
    with pytest.raises(WrongStage):
        staged(made_active(made), "drafted", POLICY, NOW)


def test_a_pinned_rule_stays_pinned_until_it_is_active() -> None:
    made = Gated()
    pinned = memory_of(made.rule, status="pinned")
    assert staged(pinned, "gated", POLICY, NOW, gate=made.gate()).status == "pinned"


# -- out of force, and back ---------------------------------------------------------------------------


def told(made: Gated, action: str, **fields: Any) -> PromotionReport:
    plain = {"action": action, "report_id": "r2", "gate_report_id": None, "replay_report_id": None, "canary": None}
    return made.report(**(plain | fields))


def test_a_rule_is_retired_by_a_report_that_a_policy_may_allow() -> None:
    made = Gated()
    after = retired(made_active(made), told(made, "retire", signed_by=None, allowed_by="default"), POLICY, LATER)
    assert (after.status, after.stage, after.report_id) == ("retired", "retired", None)
    assert rule_in(after).status == "retired"
    with pytest.raises(WrongStage):
        retired(after, told(made, "retire"), POLICY, LATER)


@for_each(
    "fields",
    [{"action": "promote"}, {"rule_id": "another"}, {"rule_digest": "0"}, {"signed_by": None}, {"reasons": ()}],
)
def test_a_rule_is_not_retired_by_another_report(fields: dict[str, Any]) -> None:
    made = Gated()
    with pytest.raises(GateFailed):
        retired(made_active(made), told(made, **({"action": "retire"} | fields)), POLICY, LATER)


@pytest.mark.req("RC-14")
def test_an_earlier_version_is_restored_as_it_was_and_counts_stay() -> None:
    made = Gated()
    active = made_active(made)
    gone = retired(active, told(made, "retire"), POLICY, LATER).model_copy(update={"with_tally": Tally(n=9, passes=8)})
    again = restored(active, gone, told(made, "rollback"), made.report(), POLICY)
    assert again.version == gone.version + 1
    assert again.with_tally == Tally(n=9, passes=8)
    unlike = {"version", "with_tally"}
    assert {name: value for name, value in again.to_wire().items() if name not in unlike} == {
        name: value for name, value in active.to_wire().items() if name not in unlike
    }


@for_each(
    "attack",
    [
        {"promoted": None},
        {"promoted": {"report_id": "other"}},
        {"promoted": {"gate_report_id": None}},
        {"promoted": {"rule_id": "another"}},
        {"promoted": {"rule_digest": "0"}},
        {"promoted": {"action": "retire"}},
        {"report": {"action": "promote"}},
        {"report": {"rule_id": "another"}},
        {"report": {"rule_digest": "0"}},
        {"report": {"signed_by": None, "allowed_by": "default"}},
        {"then": {"version": 99}},
    ],
)
def test_nothing_comes_back_that_was_not_there(attack: dict[str, Any]) -> None:
    made = Gated()
    active = made_active(made)
    gone = retired(active, told(made, "retire"), POLICY, LATER)
    promoted = None if attack.get("promoted", {}) is None else made.report(**attack.get("promoted", {}))
    report = told(made, **({"action": "rollback"} | attack.get("report", {})))
    with pytest.raises(GateFailed):
        restored(active.model_copy(update=attack.get("then", {})), gone, report, promoted, POLICY)


def test_a_rollback_cannot_bring_an_active_rule_out_of_a_draft_dressed_as_one() -> None:
    made = Gated()
    drafted = memory_of(made.rule)
    dressed = drafted.model_copy(update={"record": {**drafted.record, "status": "active"}, "stage": "active"})
    with pytest.raises(GateFailed):
        restored(dressed, drafted, told(made, "rollback"), made.report(), POLICY)


def test_to_take_out_of_force_by_a_rollback_a_policy_is_enough() -> None:
    made = Gated()
    drafted, active = memory_of(made.rule), made_active(made)
    report = told(made, "rollback", signed_by=None, allowed_by="default")
    assert restored(drafted, active, report, None, POLICY).stage == "drafted"


# -- a smaller place -----------------------------------------------------------------------------------


def test_an_active_rule_gives_room_to_its_exception_through_the_gate() -> None:
    made = Gated()
    active = made_active(made)
    feature = {"feature": "own:form=json"}
    wide = with_tests(rule(advice("d1", "own:form=json", evidence=feature)), made.specs)
    narrow = rule(advice("d2", "own:form=text", applicability={**wide.applicability.to_wire(), "predicates": ["vip"]}))
    (cut,) = consolidate(narrow, [memory_of(wide)], now=LATER).cuts
    cut_rule = RuleRecord.from_wire(
        made.rule.to_wire() | {"applicability": cut.record.applicability.to_wire(), "version": "2"}
    )
    gate = made.gate(rule=cut_rule, report_id="gate-2")
    report = told(made, "promote", rule_digest=rule_digest(cut_rule), gate_report_id="gate-2")
    after = narrowed(active, cut_rule, report, gate, POLICY, LATER)
    assert (after.status, after.report_id) == ("active", "r2")
    assert rule_in(after).applicability == cut_rule.applicability
    attacks: tuple[dict[str, Any], ...] = (
        {"body": "Something else."},
        {"applicability": {}},
        {"applicability": made.rule.applicability.to_wire()},
    )
    for attack in attacks:
        odd = RuleRecord.from_wire(cut_rule.to_wire() | attack)
        right = told(made, "promote", rule_digest=rule_digest(odd), gate_report_id="gate-2")
        with pytest.raises(GateFailed):
            narrowed(active, odd, right, made.gate(rule=odd, report_id="gate-2"), POLICY, LATER)
    with pytest.raises(GateFailed):
        narrowed(active, cut_rule, report, made.gate(report_id="gate-2"), POLICY, LATER)
    with pytest.raises(WrongStage):
        narrowed(memory_of(made.rule), cut_rule, report, gate, POLICY, LATER)


# -- the code itself ------------------------------------------------------------------------------------


@pytest.mark.req("RC-14", "RC-18")
def test_no_other_module_of_the_room_writes_the_word() -> None:
    """Of the modules that make rule records, activation alone assigns `"active"`; the others only compare with it."""
    makers = ("_consolidate", "_gate", "_tests", "activation", "projection", "promotion", "rulebook", "testing")
    for path in (Path(muniment.rules.__path__[0]) / f"{name}.py" for name in makers):
        tree = ast.parse(path.read_text("utf-8"))
        put = [node for node in ast.walk(tree) if isinstance(node, ast.Dict | ast.keyword | ast.Assign | ast.Return)]
        values = [value for node in put for value in (node.values if isinstance(node, ast.Dict) else [node.value])]
        written = any(isinstance(value, ast.Constant) and value.value == "active" for value in values)
        assert written == (path.name == "activation.py"), path.name


def test_a_draft_never_comes_out_active() -> None:
    for status in ("active", "retired"):
        wire = draft().to_wire()
        wire["proposed_rule"]["status"] = status
        assert rule(type(draft()).from_wire(wire)).status == "temporary"


# -- what comes from elsewhere -------------------------------------------------------------------------


@pytest.mark.req("RC-14", "RC-18")
def test_reports_bear_out_a_rule_on_trial_and_an_active_one() -> None:
    made = Gated()
    assert is_borne_out(made.on_trial(), made.gate(), None)
    assert is_borne_out(made_active(made), made.gate(), made.report())


@pytest.mark.req("RC-14", "RC-18")
@for_each(
    "fields",
    [
        {"signed_by": None},
        {"decision": "harmful"},
        {"decision": "undecided"},
        {"action": "retire"},
        {"rule_id": "another"},
        {"gate_report_id": "gate-2"},
    ],
)
def test_a_report_from_elsewhere_that_shows_too_little_bears_nothing_out(fields: dict[str, Any]) -> None:
    """Mutation: an active rule of a dump needs no signature, or one whose trial speaks against it will do."""
    made = Gated()
    assert not is_borne_out(made_active(made), made.gate(), made.report(**fields))


@pytest.mark.req("RC-14", "RC-18")
@pytest.mark.parametrize("part", ["passed", "checks", "outcomes", "lint"])
def test_a_gate_from_elsewhere_holds_by_what_it_shows(part: str) -> None:
    """Mutation: a report that says it passed is believed whatever its checks say."""
    made = Gated()
    gate = made.gate()
    assert holds(gate)
    first, *rest = gate.checks
    finding = LintFinding(code="order", path="$", message="it gives an order")
    changed: dict[str, Any] = {
        "passed": False,
        "checks": (first.model_copy(update={"ok": False}), *rest),
        "outcomes": (gate.outcomes[0].model_copy(update={"status": "not_graded"}), *gate.outcomes[1:]),
        "lint": (finding,),
    }
    assert not holds(gate.model_copy(update={part: changed[part]}))
    assert part in ("passed", "lint") or not holds(gate.model_copy(update={part: ()}))
    assert not is_borne_out(made.on_trial(), gate.model_copy(update={part: changed[part]}), None)
