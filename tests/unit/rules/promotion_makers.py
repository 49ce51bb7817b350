"""Drafts, rules, runs and reports of a promotion, made in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.policy import CanaryPolicy, RulePolicy
from muniment.core.stats import Comparison
from muniment.learning.records import StoredMemory
from muniment.rules._consolidate import rule_of
from muniment.rules._gate import ReplayPair, judge_gate, judge_replay, outcome_of, rule_digest, start_canary
from muniment.rules._records import GateReport, LintFinding, PromotionReport, ReplayReport, TestOutcome
from muniment.rules._tests import Example, bad_outputs, find_clashes, is_vacuous, make_tests, with_tests
from muniment.rules.activation import staged
from muniment.verify.constraint_files import parse_constraints
from muniment.verify.outputs import Output
from muniment.verify.regression import grade, make_packs

NOW = "2026-05-01T12:00:00.000000Z"
LATER = "2026-05-02T12:00:00.000000Z"
EASY = CanaryPolicy(needs="not_harmful")
POLICY = RulePolicy(canary=EASY)
HOME = {"domain_tag": "travel", "task_family": "booking"}
AWAY = {"domain_tag": "retail", "task_family": "returns"}


def draft(name: str = "d1", **fields: Any) -> DistillDraft:
    """A guardrail against answers that are no JSON, unless the fields say otherwise."""
    rule = {
        "type": "GuardrailRule",
        "title": "Against FORMAT:JSON_ONLY",
        "body": "Keep FORMAT:JSON_ONLY: one JSON document and nothing else.",
        "applicability": dict(HOME),
    }
    rule |= {key: fields.pop(key) for key in ("type", "title", "body", "applicability") if key in fields}
    plain: dict[str, Any] = {
        "schema_version": "0.5.15",
        "draft_id": name,
        "source_trace_ids": [f"{name}-t1", f"{name}-t2"],
        "proposed_rule": {key: value for key, value in rule.items() if value is not None},
        "evidence": {"trace_ids": [f"{name}-t1", f"{name}-t2"], **fields.pop("evidence", {})},
        "failure_prediction": {
            "predicted_failures": [{"id": "format_leak"}, {"id": "instruction_conflict"}],
        },
        "tests": {
            "regression_tests": [f"{name}-regression"],
            "counterexample_tests": [f"{name}-cluster", f"{name}-boundary"],
        },
    }
    return DistillDraft.from_wire(plain | fields)


def advice(name: str, feature: str, *, do: bool = True, **fields: Any) -> DistillDraft:
    """What a fold drafts of a feature that separates."""
    line = f"Call {feature.partition(':')[2]}" if do else f"Do not call {feature.partition(':')[2]}"
    defaults: dict[str, Any] = {
        "type": "StrategyRule" if do else "GuardrailRule",
        "title": line,
        "body": f"{line}: passed 8 of 9 with it, 2 of 9 without.",
        "evidence": {"feature": feature},
    }
    return draft(name, **(defaults | fields))


def rule(made: DistillDraft, rule_id: str | None = None) -> RuleRecord:
    return rule_of(made, rule_id or f"rule-{made.draft_id}", NOW)


def memory_of(record: RuleRecord, **fields: Any) -> StoredMemory:
    plain: dict[str, Any] = {
        "id": record.rule_id,
        "kind": "rule",
        "level": "user",
        "version": 1,
        "record": record.to_wire(),
        "status": record.status,
        "created_at": NOW,
        "layer": "learned",
        "stage": {"temporary": "drafted"}.get(record.status, record.status),
    }
    return StoredMemory.model_validate(plain | fields)


def example(name: str, passed: bool, text: str = "", tools: Sequence[str] = (), **fields: Any) -> Example:
    constraints = fields.pop("constraints", ())
    prompt = fields.pop("prompt", f"The task of {name}")
    parsed = parse_constraints(list(constraints)).constraints if constraints else ()
    packs = make_packs(parsed, x_ref=f"x-{name}", prompt=prompt)
    output = Output.from_wire({"text": text, "tool_calls": [{"name": tool} for tool in tools]})
    plain: dict[str, Any] = {"features": HOME, "packs": tuple(spec for pack in packs.values() for spec in pack)}
    return Example(name, f"x-{name}", prompt, output, passed, **(plain | fields))


CONSTRAINTS = ("json_only", {"contains": "total"}, {"words": {"max": 90}}, {"tool_not_called": {"tool": "pay"}})


def failing(count: int = 2) -> list[Example]:
    """Runs that broke FORMAT:JSON_ONLY, of one cluster."""
    return [
        example(
            f"f{place}",
            False,
            "Here is your total: 3",
            ("search", "pay"),
            violated=("FORMAT:JSON_ONLY",),
            cluster_id="fc_1",
            constraints=CONSTRAINTS,
        )
        for place in range(count)
    ]


def passing() -> list[Example]:
    return [
        example("p0", True, '{"total": 3}', ("search",), constraints=CONSTRAINTS),
        example(
            "away", True, "Dear customer, done.", ("refund",), features=AWAY, constraints=({"contains": "customer"},)
        ),
    ]


class Gated:
    """A rule with its tests, and what it takes to bring it to each stage."""

    def __init__(self, made: DistillDraft | None = None, *, policy: RulePolicy = POLICY) -> None:
        self.draft = made or draft()
        self.policy = policy
        runs = (failing(), passing())
        self.bad = bad_outputs(rule(self.draft), (*runs[0], *runs[1]))
        made_tests = make_tests(rule(self.draft), failing=runs[0], passing=runs[1], grade=grade, draft=self.draft)
        self.specs: list[RegressionTestSpec] = list(made_tests.specs)
        self.notes = made_tests.notes
        self.rule = with_tests(rule(self.draft), self.specs)

    def outcomes(self, **said: str) -> list[TestOutcome]:
        """Of an agent that answers each test as it should, but where `said` has other words for it."""
        return [
            outcome_of(spec, grade(spec, _answer(spec, said)), vacuous=is_vacuous(spec, grade, self.bad))
            for spec in self.specs
        ]

    def gate(self, *, lint: Sequence[LintFinding] = (), outcomes: Any = None, **fields: Any) -> GateReport:
        wanted: dict[str, Any] = {
            "draft": self.draft,
            "specs": self.specs,
            "outcomes": self.outcomes() if outcomes is None else outcomes,
            "lint": lint,
            "clashes": find_clashes(self.specs, grade),
            "policy": self.policy.gate,
            "report_id": "gate-1",
            "now": NOW,
        }
        return judge_gate(fields.pop("rule", self.rule), **(wanted | fields))

    def replay(self, pairs: Sequence[tuple[bool, bool]] = ((True, False),) * 6) -> ReplayReport:
        several = [ReplayPair(f"t{place}", *pair) for place, pair in enumerate(pairs)]
        return judge_replay(self.rule, several, self.policy, report_id="replay-1", now=NOW)

    def on_trial(self) -> StoredMemory:
        gate, replay = self.gate(), self.replay()
        memory = staged(memory_of(self.rule), "gated", self.policy, NOW, gate=gate)
        memory = staged(memory, "replayed", self.policy, NOW, gate=gate, replay=replay)
        plan = start_canary(self.rule, gate, replay, self.policy, canary_id="canary-1", now=NOW)
        return staged(memory, "canary", self.policy, NOW, gate=gate, replay=replay, canary=plan)

    def report(self, **fields: Any) -> PromotionReport:
        seen = fields.pop("seen", compared("not_harmful"))
        plain: dict[str, Any] = {
            "report_id": "promotion-1",
            "rule_id": self.rule.rule_id,
            "rule_digest": rule_digest(self.rule),
            "action": "promote",
            "gate_report_id": "gate-1",
            "replay_report_id": "replay-1",
            "canary": self.on_trial().canary,
            "comparison": seen.to_wire(),
            "decision": seen.decision,
            "reasons": ("it helps",),
            "signed_by": "ada",
        }
        wanted = plain | fields
        return PromotionReport(**{name: value for name, value in wanted.items() if value is not None}, created_at=NOW)


def _answer(spec: RegressionTestSpec, said: dict[str, str]) -> Output:
    text = "Dear customer, done." if "away" in spec.x_ref else '{"total": 3}'
    return Output.from_wire({"text": said.get(spec.test_id, text), "tool_calls": [{"name": "search"}]})


def compared(decision: str, **fields: Any) -> Comparison:
    """A comparison that has come to this decision."""
    rates = {"better": (True, False), "not_harmful": (True, True), "harmful": (False, True), "undecided": (True, True)}
    seen = Comparison(**fields)
    while seen.decision != decision or seen.rounds < 3:
        seen = seen.add("candidate", rates[decision][0]).add("baseline", rates[decision][1])
        assert seen.rounds < 2000
    return seen
