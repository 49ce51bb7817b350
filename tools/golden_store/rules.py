"""Chapter 4: a rule from its draft to its promotion and back; one that fails its gate; one that a person writes."""

from __future__ import annotations

import json
from typing import Any

from golden_store.store import GoldenStore

__all__ = ["write_rules"]

COUNTING = {"domain_tag": "count", "task_family": "apples", "output_format": "json"}
WEATHER = {"domain_tag": "weather", "task_family": "now"}
KEPT = "FORMAT:JSON_ONLY"
BROKEN = {
    "verifier_id": "json", "verdict": "FAIL", "outcome": "FAIL",
    "reason_codes": ["format_leak"], "violated_constraints": [KEPT],
}  # fmt: skip
TRIALS_MAX = 120


class Counter:
    """An agent that answers in JSON if it is reminded or, once in a while, by luck; its luck repeats."""

    def __init__(self) -> None:
        self._asked = 0

    def text(self, prompt: str) -> str:
        if "weather" in prompt:
            return "Sunny, twelve degrees."
        self._asked += 1
        is_lucky = self._asked % 11 == 5
        return '{"count": 1}' if is_lucky or f"Keep {KEPT}" in prompt else "There is one apple."

    def __call__(self, task: Any) -> Any:
        return self.text(task if isinstance(task, str) else task.prompt)


def judge(text: str) -> dict[str, Any]:
    """Is it JSON, or about the weather?"""
    try:
        held = "Sunny" in text or json.loads(text) is not None
    except ValueError:
        held = False
    return {"verifier_id": "json", "verdict": "PASS", "outcome": "OK"} if held else BROKEN


def write_rules(store: GoldenStore) -> None:
    store.go_to("2026-03-01T08:00:00+00:00")
    agent = Counter()
    for number in range(8):
        _run(store, agent, f"run-box-{number}", f"Count the apples in box {number}.", COUNTING, select=False)
    for number in range(3):
        _run(store, agent, f"run-town-{number}", f"How is the weather in town {number}?", WEATHER, select=False)
    rule_id = _to_the_canary(store, agent)
    _trial(store, agent, rule_id)
    _other_rules(store)
    _taken_back(store, rule_id)


def _run(store: GoldenStore, agent: Counter, run_id: str, task: str, intent: dict[str, str], *, select: bool) -> None:
    """One judged run, with the rules that it is given."""
    run = store.mem.run(user_id="ana", agent_id="counter", session_id="apples", run_id=run_id, task_type="apples")
    rules = run.learning.select_rules(intent=intent).text if select else ""
    run.observe("user", task)
    answer = agent.text(f"{rules}\n{task}")
    run.observe("assistant", answer)
    run.learning.learn(judge(answer), intent=intent)


def _to_the_canary(store: GoldenStore, agent: Counter) -> str:
    """Drafted by a fold, submitted, given tests, gated, replayed, on trial."""
    book = store.mem.rulebook(user_id="ana")
    drafts = store.mem.bank(user_id="ana").drafts()
    draft = next(each for each in drafts if KEPT in (each.proposed_rule.title or ""))
    rule_id = book.submit(draft.draft_id).id
    book.gate(rule_id, agent)  # it has no tests yet, and does not pass
    book.make_tests(rule_id, constraints=[{"words": {"max": 40}}])
    book.gate(rule_id, agent)
    book.replay(rule_id, agent, lambda output, _task: judge(output.text))
    book.canary(rule_id, share=0.5)
    return str(rule_id)


def _trial(store: GoldenStore, agent: Counter, rule_id: str) -> None:
    """Real runs try the rule until its trial speaks for it; then a person signs."""
    book = store.mem.rulebook(user_id="ana")
    for number in range(TRIALS_MAX):
        _run(store, agent, f"run-basket-{number}", f"Count the apples in basket {number}.", COUNTING, select=True)
        if number % 4 == 3 and book.watch()[rule_id].decision == "promote":
            book.promote(rule_id, signed_by="rosa")
            break
    book.publish()
    run = store.mem.run(
        user_id="ana", agent_id="counter", session_id="apples", run_id="run-reminded", task_type="apples"
    )
    run.learning.select_rules(intent=COUNTING)
    run.observe("user", "Count the apples in the cellar.")
    for purpose in ("planner", "responder"):
        store.compose(run, purpose, query="Count the apples.", max_tokens=700)


def _other_rules(store: GoldenStore) -> None:
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
    book.add("Answer in one line.", title="Short", applicability={"domain_tag": "count"}, ttl="days:20")


def _taken_back(store: GoldenStore, rule_id: str) -> None:
    """Retired, put in force again by a rollback, and retired for good."""
    book = store.mem.rulebook(user_id="ana")
    there = book.revision
    book.retire(rule_id, reason="the shop takes text now", signed_by="rosa")
    book.rollback(to=there, reason="it does not", signed_by="rosa")
    book.retire(rule_id, reason="nobody counts apples any more", signed_by="rosa")
    shared = store.mem.rulebook()
    shared.add("Say please.", applicability={"domain_tag": "count"})
