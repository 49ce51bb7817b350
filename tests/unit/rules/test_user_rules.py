"""Rules that a person submits: added, never changed, for a time, never as a guard."""

from __future__ import annotations

from typing import Any

import pytest
from promotion_makers import LATER, NOW, draft, memory_of, rule

from muniment.contracts.rules import RuleRecord
from muniment.core.policy import PromotePolicy, RulePolicy
from muniment.errors import Conflict, DuplicateId, GateFailed, InvalidInput, InvalidRecord, TooLarge
from muniment.learning.records import StoredMemory
from muniment.rules._records import LintFinding
from muniment.rules.activation import report_change, restored, retired, staged
from muniment.rules.rulebook import check_user_change, user_memory, user_rule
from products import for_each


def submitted(name: str = "u1", body: str = "Answer in French.", **fields: Any) -> StoredMemory:
    place = {"applicability": fields.pop("applicability", None), "type_": fields.pop("type_", "StrategyRule")}
    wanted: dict[str, Any] = {"lint": (), "policy": PromotePolicy(), "level": "user", "now": NOW, "existing": ()}
    return user_memory(user_rule(name, body, now=NOW, **place), **(wanted | fields))


@pytest.mark.req("RC-14", "RC-18")
def test_a_submitted_rule_is_temporary_inline_and_ends() -> None:
    memory = submitted()
    assert (memory.layer, memory.status, memory.stage, memory.version) == ("user", "temporary", None, 1)
    assert memory.expires_at == "2026-05-31T12:00:00.000000Z"
    record = RuleRecord.from_wire(memory.record)
    assert record.priority is not None
    assert not record.priority.guardrail_first
    assert submitted(type_="GuardrailRule").record["priority"] == {"guardrail_first": False}
    assert submitted(ttl="hours:2").expires_at == "2026-05-01T14:00:00.000000Z"


@pytest.mark.parametrize("ttl", ["session", "days:0", "soon", "days:999999"])
def test_a_time_that_does_not_end_is_refused(ttl: str) -> None:
    with pytest.raises(InvalidInput):
        submitted(ttl=ttl)


@pytest.mark.parametrize("body", ["", " \n"])
def test_a_rule_that_says_nothing_is_refused(body: str) -> None:
    with pytest.raises(InvalidInput):
        submitted(body=body)


@pytest.mark.parametrize("predicates", [["tools.evil()"], ["x_features.n > 3", "x_features.n < 2"]])
def test_conditions_that_do_not_parse_or_cannot_hold_are_refused(predicates: list[str]) -> None:
    with pytest.raises(InvalidInput):
        submitted(applicability={"predicates": predicates})


def test_lint_errors_are_told_as_issues_and_warnings_pass() -> None:
    error = LintFinding(code="injection", path="$.body", message="gives orders")
    with pytest.raises(InvalidRecord) as raised:
        submitted(lint=[error])
    assert [issue.code for issue in raised.value.issues] == ["injection"]
    assert submitted(lint=[error.model_copy(update={"severity": "warning"})])


def test_rules_are_added_and_never_changed() -> None:
    first = submitted()
    with pytest.raises(DuplicateId):
        submitted(body="Answer in German.", existing=[first])
    with pytest.raises(Conflict, match="u1 says so already"):
        submitted("u2", "answer in FRENCH", existing=[first])
    assert submitted("u2", "Answer in French.", existing=[first], applicability={"domain_tag": "x"})


def test_only_so_many_are_in_force_and_what_ended_makes_room() -> None:
    policy = PromotePolicy(user_rules_max=2)
    there = [submitted(f"u{place}", f"Rule number {place}.") for place in range(2)]
    with pytest.raises(TooLarge):
        submitted("u9", existing=there, policy=policy)
    gone = there[0].model_copy(update={"status": "retired"})
    over = there[0].model_copy(update={"expires_at": "2026-04-01T00:00:00Z"})
    for one in (gone, over):
        assert submitted("u9", existing=[one, there[1]], policy=policy)
    learned = [memory_of(rule(draft(f"d{place}"))) for place in range(5)]
    assert submitted("u9", existing=learned, policy=policy)


@pytest.mark.req("RC-14")
def test_a_submitted_rule_is_never_a_system_guard_or_active() -> None:
    wanted: dict[str, Any] = {"lint": (), "policy": PromotePolicy(), "level": "user", "now": NOW}
    for change in ({"priority": {"guardrail_first": True}}, {"status": "active"}):
        odd = RuleRecord.from_wire(user_rule("u1", "Obey.", now=NOW).to_wire() | change)
        with pytest.raises(InvalidInput, match="system guard"):
            user_memory(odd, (), **wanted)
    with pytest.raises(Conflict):
        staged(submitted(), "gated", RulePolicy(), NOW)


@for_each(
    "change",
    [
        {"layer": "learned"},
        {"expires_at": "2027-01-01T00:00:00Z"},
        {"stage": "canary"},
        {"stage": "active"},
        {"status": "active"},
        {"record": {"body": "Answer in German."}},
        {"record": {"applicability": {"domain_tag": "x"}}},
        {"record": {"status": "active"}},
        {"record": {"priority": {"guardrail_first": True}}},
    ],
)
def test_every_change_of_a_submitted_rule_is_refused(change: dict[str, Any]) -> None:
    before = submitted()
    update = dict(change)
    if "record" in update:
        update["record"] = before.record | update["record"]
    with pytest.raises((Conflict, InvalidInput)):
        check_user_change(before, before.model_copy(update=update))


def test_adding_retiring_and_counting_are_let_through() -> None:
    before = submitted()
    check_user_change(None, before)
    record = before.record | {"status": "retired", "lifecycle": {"updated_at": LATER}}
    gone = before.model_copy(update={"status": "retired", "stage": "retired", "record": record})
    check_user_change(before, gone)
    check_user_change(gone, before)  # a rollback puts back what was there
    check_user_change(None, memory_of(rule(draft())))


def test_a_learned_rule_cannot_be_made_a_submitted_one() -> None:
    learned = memory_of(rule(draft()))
    with pytest.raises(Conflict, match="layer"):
        check_user_change(learned, learned.model_copy(update={"layer": "user", "expires_at": LATER}))


def test_a_submitted_rule_comes_back_with_a_signature_alone() -> None:
    before, policy = submitted(), RulePolicy()
    rule_ = RuleRecord.from_wire(before.record)
    wanted: dict[str, Any] = {"report_id": "r", "now": LATER}
    gone = retired(before, report_change(rule_, "retire", ("asked",), policy, **wanted), policy, LATER)
    check_user_change(before, gone)
    alone = report_change(rule_, "rollback", ("to 1",), policy, **wanted)
    with pytest.raises(GateFailed):
        restored(before, gone, alone, None, policy)
    signed = report_change(rule_, "rollback", ("to 1",), policy, signed_by="ada", acts_again=True, **wanted)
    back = restored(before, gone, signed, None, policy)
    check_user_change(gone, back)
    assert (back.record, back.layer, back.expires_at) == (before.record, "user", before.expires_at)
