"""A story of a rule for tests and demos: an agent that forgets to answer in JSON, and the rule that reminds it.

Everything is drawn from a seed. The agent obeys what stands in its prompt and knows nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from muniment.verify.outputs import Output

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.rulebook import Rulebook

__all__ = ["COUNTING", "RuleStory"]

COUNTING: Mapping[str, Any] = {"domain_tag": "count", "task_family": "apples", "output_format": "json"}
WEATHER: Mapping[str, Any] = {"domain_tag": "weather", "task_family": "now"}
_KEY = "FORMAT:JSON_ONLY"
_REMINDER = f"Keep {_KEY}"


class RuleStory:
    """A memory in which the rule can be drafted, tested, tried and promoted, one step at a time."""

    def __init__(self, memory: Memory, *, seed: int = 1, with_rule: float = 1.0, without: float = 0.4) -> None:
        self.memory = memory
        self.rates = {True: with_rule, False: without}
        self.random = Random(seed)
        self.number = 0

    @property
    def book(self) -> Rulebook:
        return self.memory.rulebook(user_id="ana")

    # -- the agent and its verifier

    def agent(self, task: Any) -> str:
        """Answers about the weather in words; counts in JSON if it is reminded, or lucky."""
        prompt = task if isinstance(task, str) else task.prompt
        if "weather" in prompt:
            return "Sunny, twelve degrees."
        counts = self.random.random() < self.rates[_REMINDER in prompt]
        return '{"count": 1}' if counts else "There is one apple."

    @staticmethod
    def verifier(output: Output, task: str) -> Any:
        if "weather" in task:
            return True
        try:
            json.loads(output.text)
        except ValueError:
            return {
                "verifier_id": "json",
                "verdict": "FAIL",
                "outcome": "FAIL",
                "reason_codes": ["format_leak"],
                "violated_constraints": [_KEY],
            }
        return True

    # -- the steps

    def run(self, *, select: bool = True, task: str | None = None) -> Any:
        """One run of the counting agent, judged and learnt from; answers what was learnt."""
        self.number += 1
        asked = task or f"Count the apples in basket {self.number}."
        run = self.memory.run(user_id="ana", agent_id="counter", task_type="apples")
        text = run.learning.select_rules(intent=COUNTING).text if select else ""
        run.observe("user", asked)
        answer = self.agent(f"{text}\n{asked}")
        run.observe("assistant", answer)
        result = self.verifier(Output(text=answer), asked)
        passed = {"verifier_id": "json", "verdict": "PASS", "outcome": "OK"}
        return run.learning.learn(passed if result is True else result, intent=COUNTING)

    def teach(self, runs: int = 14) -> str:
        """Judged runs of two kinds; answers the id of the draft that came of them."""
        runner = self.memory.runner(
            self.agent, self.verifier, {"recall": False, "rules": False}, user_id="ana", agent_id="counter"
        )
        for number in range(runs):
            runner.run(f"Count the apples in box {number}.", intent=COUNTING)
            if number % 3 == 0:
                runner.run(f"How is the weather in town {number}?", intent=WEATHER)
        drafts = self.memory.bank(user_id="ana").drafts()
        return next(draft.draft_id for draft in drafts if _KEY in (draft.proposed_rule.title or ""))

    def submit(self) -> str:
        return self.book.submit(self.teach()).id

    def gate(self) -> str:
        rule_id = self.submit()
        self.book.make_tests(rule_id)
        self.book.gate(rule_id, self.agent)
        return rule_id

    def canary(self, share: float = 0.5) -> str:
        rule_id = self.gate()
        self.book.replay(rule_id, self.agent, self.verifier)
        self.book.canary(rule_id, share=share)
        return rule_id

    def promote(self) -> str:
        rule_id = self.canary()
        for _ in range(400):
            self.run()
            if self.number % 20 == 0 and self.book.watch()[rule_id].decision == "promote":
                self.book.promote(rule_id, signed_by="rosa")
                return rule_id
        raise AssertionError("the trial never spoke")
