"""An exception promoted beside an active rule: the wider one is narrowed in the same revision, or nothing happens."""

from __future__ import annotations

from random import Random

import pytest
from rule_drafts import draft

from muniment.errors import Conflict
from muniment.verify.outputs import Output

PLAIN = {"domain_tag": "count", "task_family": "pears"}
ODD = {"domain_tag": "count", "task_family": "apples"}
CALL, LEAVE = "Call search before answering.", "Do not call search."
POLICY = {
    "rules": {
        "gate": {"tries": 1, "cluster_counterexamples_min": 1, "replay_pairs_min": 0},
        "canary": {"share_max": 0.9, "holdout_share": 0.0},
    }
}


class World:
    """Searching helps with pears and hurts with apples; the agent does what its prompt says, or draws."""

    def __init__(self, mem):
        self.mem, self.random = mem, Random(7)
        self.book = mem.rulebook(user_id="ana")

    def agent(self, task):
        prompt = task if isinstance(task, str) else task.prompt
        searches = LEAVE not in prompt and (CALL in prompt or self.random.random() < 0.3)
        calls = [{"name": "search", "args": {}, "ok": True}] if searches else []
        return Output.from_wire({"text": "counted", "tool_calls": calls})

    def passes(self, output, task):
        searched = bool(output.tool_calls)
        return searched if "pears" in task else not searched

    def run(self, intent):
        run = self.mem.run(user_id="ana", agent_id="counter")
        text = run.learning.select_rules(intent=intent).text
        task = f"Count the {intent['task_family']}."
        run.observe("user", task)
        output = self.agent(f"{text}\n{task}")
        for call in output.tool_calls:
            run.observe_tool(call.name, content="found")
        run.observe("assistant", output.text)
        passed = self.passes(output, task)
        words = ("PASS", "OK") if passed else ("FAIL", "FAIL")
        run.learning.learn({"verifier_id": "v", "verdict": words[0], "outcome": words[1]}, intent=intent)
        return text

    def tests(self, rule_id, task, kind):
        """Tests of one's own: what is called on this task, and on others like it."""
        other = "Count the clouds."
        made = [
            ("regression", None, task, {"type": kind, "args": {"tool": "search"}}),
            ("counterexample", "cluster", f"{task} Again.", {"type": kind, "args": {"tool": "search"}}),
            ("counterexample", "boundary", other, {"type": "regex_absent", "args": {"pattern": "search"}}),
        ]
        specs = [self.spec(f"{rule_id}.{at}", *each) for at, each in enumerate(made)]
        called = {"type": kind, "args": {"tool": "search"}}
        micro = [
            self.spec(f"{rule_id}.m{at}", "regression", None, f"{task} {at}", called, tags=["TOOL"]) for at in range(5)
        ]
        self.book.add_tests(rule_id, [*specs, *micro])

    @staticmethod
    def spec(test_id, test_type, kind, prompt, assertion, tags=None):
        plain = {
            "schema_version": "0.5.15", "test_id": test_id, "test_type": test_type, "x_ref": test_id, "prompt": prompt,
            "assert": assertion, "expected": {"must_pass": True},
        }  # fmt: skip
        return plain | ({"kind": kind} if kind else {}) | ({"tags": tags} if tags else {})

    def tried(self, rule_id, intent, task, kind):
        self.tests(rule_id, task, kind)
        report = self.book.gate(rule_id, self.agent)
        assert report.passed, [check for check in report.checks if not check.ok]
        self.book.canary(rule_id, share=0.5)
        for _ in range(400):
            self.run(intent)
            if self.book.watch()[rule_id].decision == "promote":
                return
        raise AssertionError("the trial never spoke")


@pytest.mark.soak
@pytest.mark.req("RC-15", "RC-18")
def test_an_exception_narrows_the_active_rule_when_it_is_promoted(make):
    world = World(make("memory", policy=POLICY))
    book = world.book
    given = draft("wide", body=CALL, domain_tag="count")
    given["evidence"]["feature"] = "tool:search"
    wide = book.submit(given).id
    world.tried(wide, PLAIN, "Count the pears.", "tool_called")
    book.promote(wide, signed_by="rosa")
    assert CALL in book.select(intent=ODD).text

    given = draft("narrow", body=LEAVE, type="GuardrailRule", domain_tag="count", task_family="apples")
    given["evidence"]["feature"] = "tool:search"
    submitted = book.submit(given)
    assert (submitted.kind, submitted.narrowed) == ("split", (wide,))
    narrow = submitted.id
    assert book.get(wide).stage == "active"  # it acts on until the exception is promoted
    world.tried(narrow, ODD, "Count the apples.", "tool_not_called")
    texts = {world.run(ODD) for _ in range(12)}
    assert not any(CALL in text and LEAVE in text for text in texts)  # a run never has both
    before = book.revision
    with pytest.raises(Conflict) as refused:
        book.promote(narrow, signed_by="rosa")
    assert refused.value.details == {"rule_id": wide, "exception": narrow}
    assert book.revision == before

    assert book.gate(wide, world.agent, beside=narrow).passed
    book.promote(narrow, signed_by="rosa")
    assert {change.rule_id for change in book.revisions()[-1].changes} == {wide, narrow}
    assert LEAVE in book.select(intent=ODD).text
    assert CALL not in book.select(intent=ODD).text
    assert CALL in book.select(intent=PLAIN).text
    assert book.get(wide).stage == "active"
    assert not world.mem.store.rebuild().repaired

    book.rollback(to=before, signed_by="rosa")
    assert CALL in book.select(intent=ODD, run_id="r").text or LEAVE in book.select(intent=ODD, run_id="r").text
    assert book.get(narrow).stage == "canary"
