"""Run by test_rules_bytes.py, here and in a process of its own: a rule's whole life, and all that was said of it.

    python tell_rules.py

The agent draws its lots from the prompt, so that no thread's turn decides anything.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from typing import Any

from rule_stores import store

from muniment.core.canonical import canonical_bytes
from muniment.handles.memory import Memory
from muniment.testing.stories import COUNTING, RuleStory


class StableStory(RuleStory):
    """The story, told by an agent that answers the same prompt alike."""

    def agent(self, task: Any) -> str:
        prompt = task if isinstance(task, str) else task.prompt
        if "weather" in prompt:
            return "Sunny, twelve degrees."
        lot = int(sha256(prompt.encode()).hexdigest()[:8], 16) / 2**32
        return '{"count": 1}' if lot < self.rates["Keep FORMAT:JSON_ONLY" in prompt] else "There is one apple."


def tell(mem: Memory) -> bytes:
    """Everything that the rulebook answers, reports and counts along a rule's life, as bytes."""
    story = StableStory(mem, with_rule=1.0)
    rule_id = story.promote()
    book = story.book
    looks = [book.select(intent=COUNTING, run_id=f"run {number}") for number in range(6)]
    there = book.revision
    book.publish()
    book.add("Answer in one line.", applicability={"domain_tag": "count"})
    book.retire(rule_id, reason="a doubt", signed_by="rosa")
    book.rollback(to=there, reason="it was right", signed_by="rosa")
    looks += [book.select(intent=COUNTING, run_id=f"run {number}") for number in range(6)]
    told = {
        "requests": [look.request.to_wire() for look in looks],
        "responses": [look.response.to_wire() for look in looks],
        "refused": [[each.to_wire() for each in look.refused] for look in looks],
        "texts": [look.text for look in looks],
        "reports": [report.to_wire() for report in book.reports(rule_id)],
        "revisions": [revision.to_wire() for revision in book.revisions()],
        "rules": [memory.to_wire() for memory in book.rules(include_all=True)],
        "history": [memory.to_wire() for memory in book.history(rule_id)],
        "tests": [[test.spec.to_wire(), test.is_micro] for test in book.tests(rule_id)],
        "stats": repr(book.stats(rule_id)),
        "watch": repr(book.watch(act=False)),
    }
    return canonical_bytes(told)


if __name__ == "__main__":
    with store(seed="told") as mem:
        sys.stdout.buffer.write(tell(mem))
