"""Rules, requests and uses, made in one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muniment.contracts.rules import CandidateSelectRequest, RuleRecord
from muniment.core.policy import RulePolicy
from muniment.learning.records import StoredMemory
from muniment.rules._records import RuleUse
from muniment.rules._select import Candidate, RuleRequest, Selected, compile_rule, select_rules

NOW = "2026-05-01T12:00:00.000000Z"
BUCKET = "I2|travel|clarity_high"
HOUSE: dict[str, Any] = {"domain_tag": "travel", "task_family": "booking"}
NO_HOLDOUT = {"canary": {"holdout_share": 0}}


def count_words(text: str) -> int:
    return len(text.split())


def policy(**parts: Any) -> RulePolicy:
    return RulePolicy.from_wire(NO_HOLDOUT | parts)


def rule(rule_id: str = "r1", body: str = "Call search before book.", **more: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "schema_version": "0.5.15",
        "rule_id": rule_id,
        "version": "1",
        "type": "StrategyRule",
        "status": "active",
        "body": body,
        "applicability": {},
        "evidence": {},
        "tests": {"regression_tests": ["t1"], "counterexample_tests": ["t2", "t3"]},
        "metrics": {},
    }
    return plain | more


def guard(rule_id: str, body: str, **more: Any) -> dict[str, Any]:
    return rule(rule_id, body, type="GuardrailRule", priority={"guardrail_first": True}, **more)


def record(**more: Any) -> RuleRecord:
    return RuleRecord.from_wire(rule(**more))


def kept(plain: dict[str, Any], **more: Any) -> StoredMemory:
    status = plain["status"]
    fields: dict[str, Any] = {
        "id": plain["rule_id"],
        "kind": "rule",
        "level": "user",
        "version": 1,
        "record": plain,
        "status": status,
        "created_at": NOW,
        "stage": {"active": "active", "temporary": "drafted", "retired": "retired"}[status],
    }
    return StoredMemory.from_wire(fields | more)


def on_trial(plain: dict[str, Any], share: float = 0.5, buckets: Iterable[str] = (), **more: Any) -> StoredMemory:
    plan = {"canary_id": f"can_{plain['rule_id']}", "share": share, "bucket_keys": list(buckets), "started_at": NOW}
    return kept(plain | {"status": "temporary"}, stage="canary", canary=plan, **more)


def compiled(*rules: dict[str, Any] | StoredMemory) -> list[Candidate]:
    return [compile_rule(kept(each) if isinstance(each, dict) else each, count_words) for each in rules]


def asked(
    *, run_id: str = "run_1", now: str = NOW, family: str | None = "booking", features: Any = None, **more: Any
) -> RuleRequest:
    plain: dict[str, Any] = {"schema_version": "0.5.15", "request_id": "q1", "x_ref": "x1", "bucket_key": BUCKET}
    request = CandidateSelectRequest.from_wire(
        {key: value for key, value in (plain | more).items() if value is not None}
    )
    return RuleRequest.of(request, run_id=run_id, now=now, task_family=family, features=features)


def chosen(selected: Selected) -> list[str | None]:
    return [each.rule_id for each in selected.response.selected_rules]


def codes(selected: Selected) -> dict[str, str]:
    return {each.rule_id: each.code for each in selected.refused}


def select(*rules: dict[str, Any] | StoredMemory, using: RulePolicy | None = None, **more: Any) -> Selected:
    return select_rules(compiled(*rules), asked(**more), using or policy())


def use(place: int, passed: bool = True, arm: str = "active", **more: Any) -> RuleUse:
    """The `place`th run, one a second."""
    plain: dict[str, Any] = {
        "trace_id": f"t{place:06}",
        "rule_id": "r1",
        "version": "1",
        "arm": arm,
        "passed": passed,
        "confirmed": passed,
        "at": f"2026-05-01T{place // 3600:02}:{place // 60 % 60:02}:{place % 60:02}Z",
    }
    return RuleUse.from_wire(plain | more)
