"""Rules that a person submits: a layer of their own, added and never changed, with a TTL, never a system guard.

They act by their layer and not by their status: with no tests of their own they stay temporary (RC-18), stand inline
below every learned rule, and end by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from muniment.contracts.rules import RuleRecord
from muniment.core.policy import PromotePolicy
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.core.scope import RuleType, ScopeLevel
from muniment.core.text.sentences import words_of
from muniment.errors import Conflict, DuplicateId, InvalidInput, InvalidRecord, Issue, TooLarge
from muniment.learning.keys import expires_at, has_expired, parse_ttl
from muniment.learning.stored_memory import StoredMemory
from muniment.rules.promotion.consolidation import can_hold, place_of
from muniment.rules.promotion.gate import rule_digest
from muniment.rules.promotion.records import LintFinding

__all__ = ["check_user_change", "user_memory", "user_rule"]


def user_rule(
    rule_id: str,
    body: str,
    *,
    now: str,
    type_: RuleType = "StrategyRule",
    title: str | None = None,
    applicability: JsonObject | None = None,
) -> RuleRecord:
    """A person's rule as a record; `InvalidInput` where it says nothing, or applies nowhere."""
    if not body.strip():
        raise InvalidInput("a rule that says nothing", path="$.body")
    rule = RuleRecord.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "rule_id": rule_id,
            "version": "1",
            "type": type_,
            "status": "temporary",
            **({} if title is None else {"title": title}),
            "body": body,
            "applicability": applicability or {},
            "priority": {"guardrail_first": False},
            "evidence": {},
            "tests": {"regression_tests": [], "counterexample_tests": []},
            "metrics": {},
            "lifecycle": {"created_at": now, "updated_at": now},
        }
    )
    if not can_hold(place_of(rule.applicability)):
        raise InvalidInput("its conditions contradict each other", path="$.applicability.predicates")
    return rule


def user_memory(
    rule: RuleRecord,
    existing: Sequence[StoredMemory],
    *,
    lint: Sequence[LintFinding],
    policy: PromotePolicy,
    level: ScopeLevel,
    now: str,
    ttl: str | None = None,
) -> StoredMemory:
    """The rule as the bank keeps it, once it may be added. `existing` are the bank's rules."""
    _check_record(rule)
    errors = [Issue(one.path, one.message, one.code) for one in lint if one.severity == "error"]
    if errors:
        raise InvalidRecord(f"the rule {rule.rule_id!r} may not be added", errors)
    if any(memory.id == rule.rule_id for memory in existing):
        raise DuplicateId(
            f"there is a rule {rule.rule_id!r} already", hint="rules of this layer are added, never changed"
        )
    live = [one for one in existing if one.layer == "user" and _is_live(one, now)]
    if len(live) >= policy.user_rules_max:
        raise TooLarge(f"{len(live)} submitted rules are in force", hint=f"at most {policy.user_rules_max}: retire one")
    for memory in live:
        if _same(rule, RuleRecord.from_wire(memory.record)):
            raise Conflict(
                f"{memory.id} says so already", hint="wait until it ends, or retire it", details={"id": memory.id}
            )
    until = expires_at(parse_ttl(policy.user_ttl if ttl is None else ttl), now)
    if until is None:
        raise InvalidInput("a rule of a person's ends at a time", path="$.ttl", hint="hours:6 or days:14")
    return StoredMemory(
        id=rule.rule_id,
        kind="rule",
        level=level,
        version=1,
        record=rule.to_wire(),
        status="temporary",
        created_at=now,
        expires_at=until,
        reason_keys=("user_rule",),
        layer="user",
    )


def check_user_change(before: StoredMemory | None, after: StoredMemory) -> None:
    """A rule of this layer may be added, retired, and put back by a rollback, as it is; all else is a `Conflict`."""
    layers = {after.layer} if before is None else {before.layer, after.layer}
    if "user" not in layers:
        return
    if before is not None and before.layer != after.layer:
        raise Conflict(f"{after.id} would change its layer", hint="submit what it says as a draft instead")
    rule = RuleRecord.from_wire(after.record)
    _check_record(rule)
    if after.expires_at is None or (after.stage is not None and after.stage != "retired"):
        raise Conflict(
            f"{after.id} would outlive its time or be staged", hint="a submitted rule has a TTL and no stage"
        )
    if "active" in (after.status, rule.status):
        raise Conflict(f"{after.id} would be an active rule", hint="only promotion makes those, of learned rules")
    if before is None:
        return
    same = (
        rule_digest(RuleRecord.from_wire(before.record)) == rule_digest(rule) and before.expires_at == after.expires_at
    )
    if not same:
        raise Conflict(f"{after.id} would be changed", hint="rules of this layer are added and retired, never changed")


def _check_record(rule: RuleRecord) -> None:
    if rule.status == "active" or (rule.priority is not None and rule.priority.guardrail_first):
        raise InvalidInput(
            f"{rule.rule_id!r} would stand as a system guard", path="$.priority", hint="a submitted rule stands inline"
        )


def _is_live(memory: StoredMemory, now: str) -> bool:
    return memory.status not in ("retired", "pruned") and not has_expired(memory, now)


def _same(one: RuleRecord, other: RuleRecord) -> bool:
    places = place_of(one.applicability) == place_of(other.applicability)
    return places and words_of(one.body) == words_of(other.body)
