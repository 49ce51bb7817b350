"""Chapter 4: a rule from its draft to its promotion and back; one that fails its gate; one that a person writes."""

from __future__ import annotations

from golden_store.store import GoldenStore
from muniment.testing.rule_story import COUNTING, RuleStory

__all__ = ["write_rules"]

def write_rules(store: GoldenStore) -> None:
    store.go_to("2026-03-01T08:00:00+00:00")
    rule_id = _other_rules(store) if store.is_small else RuleStory(store.mem).canary()
    _reminded(store)
    if not store.is_small:
        _other_rules(store)
    _taken_back(store, rule_id)


def _reminded(store: GoldenStore) -> None:
    """A run that the rule reminds."""
    store.mem.rulebook(user_id="ana").publish()
    run = store.mem.run(
        user_id="ana", agent_id="counter", session_id="apples", run_id="run-reminded", task_type="apples"
    )
    run.learning.select_rules(intent=COUNTING)
    run.observe("user", "Count the apples in the cellar.")
    store.compose(run, "planner", query="Count the apples.", max_tokens=700)


def _other_rules(store: GoldenStore) -> str:
    """A draft of one's own, with tests of one's own; and a rule that a person writes."""
    book = store.mem.rulebook(user_id="ana")
    foreseen = [
        {"id": name, "description": "it could", "triggers": ["x"], "severity": "low"}
        for name in ("overconstraint", "context_dilution")
    ]
    submitted = book.submit(
        {
            "draft_id": "draft-pears",
            "source_trace_ids": ["trc-pears"],
            "proposed_rule": {
                "type": "GuardrailRule", "title": "Name the fruit", "body": "Name the fruit that you count.",
                "applicability": {"domain_tag": "count", "task_family": "pears"},
            },
            "evidence": {"trace_ids": ["trc-pears"]},
            "failure_prediction": {"mechanism": "m", "dependencies": [], "predicted_failures": foreseen},
            "tests": {"regression_tests": [], "counterexample_tests": []},
        }
    )  # fmt: skip
    book.add_tests(
        submitted.id,
        [
            {
                "test_id": "test-pears", "test_type": "regression", "x_ref": "pears", "prompt": "Count the pears.",
                "assert": {"type": "contains", "args": {"text": "pear"}}, "expected": {"must_pass": True},
            }
        ],
    )  # fmt: skip
    book.gate(submitted.id, {"test-pears": "There is one pear."})
    return str(book.add("Answer in one line.", title="Short", applicability={"domain_tag": "count"}, ttl="days:20").id)


def _taken_back(store: GoldenStore, rule_id: str) -> None:
    """Retired, put in force again by a rollback, and retired for good."""
    book = store.mem.rulebook(user_id="ana")
    there = book.revision
    book.retire(rule_id, reason="the shop takes text now", signed_by="rosa")
    book.rollback(to=there, reason="it does not", signed_by="rosa")
    book.retire(rule_id, reason="nobody counts apples any more", signed_by="rosa")
    shared = store.mem.rulebook()
    shared.add("Say please.", applicability={"domain_tag": "count"})
