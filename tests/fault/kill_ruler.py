"""Run by test_rules_kill.py in a process of its own: takes a rule from draft to rollback, and dies on the way.

    python kill_ruler.py FILE NUMBER inside|after first|second

It kills itself (SIGKILL) at the NUMBERth transaction that writes after the runs were taught: before it is committed, or
as soon as it is. With more than there are, it ends by itself with 7. Every step may be told again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from kill_learner import ENDED, dying
from rule_stores import LATER, store

from muniment.errors import Conflict, MunimentError
from muniment.handles.memory import Memory
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import RuleStory


def steps(story: RuleStory, rule_id: str) -> list[Callable[[], Any]]:
    """From where the rule is on trial and the trial has spoken, to the end; each is one change of the rulebook."""
    book = story.book
    return [
        lambda: book.promote(rule_id, signed_by="rosa"),
        lambda: story.run(),
        book.publish,
        lambda: book.add("Answer in one line.", applicability={"domain_tag": "count"}),
        lambda: book.retire(rule_id, reason="a doubt", signed_by="rosa"),
        lambda: book.rollback(to=6, reason="it was right", signed_by="rosa"),
    ]


def first_steps(story: RuleStory) -> list[Callable[[], Any]]:
    """From a draft to a rule on trial."""
    book = story.book
    rule: list[str] = [one.id for one in book.rules()]

    def submit() -> None:
        drafts = story.memory.bank(user_id="ana").drafts()
        draft = next(each for each in drafts if "FORMAT:JSON_ONLY" in (each.proposed_rule.title or ""))
        rule.append(book.submit(draft.draft_id).id)

    return [
        submit,
        lambda: book.make_tests(rule[0]),
        lambda: book.gate(rule[0], story.agent),
        lambda: book.replay(rule[0], story.agent, story.verifier),
        lambda: book.canary(rule[0], share=0.5),
    ]


def tell(told: list[Callable[[], Any]]) -> None:
    """All the steps; what was done before is refused, and the next goes on."""
    for step in told:
        try:
            step()
        except Conflict:
            continue


def open_story(path: str, seed: str = "killed") -> tuple[Memory, RuleStory]:
    mem = store(open_engine(path), seed=seed, start=LATER + timedelta(hours=1))  # after all that was prepared
    story = RuleStory(mem, seed=4, with_rule=1.0)
    story.number = 2_000
    return mem, story


if __name__ == "__main__":
    path, number, moment, part = sys.argv[1:]
    mem, story = open_story(path)
    with mem:
        engine = mem._ctx.engine
        engine.write = dying(engine.write, int(number), moment)  # type: ignore[method-assign]
        try:
            tell(first_steps(story) if part == "first" else steps(story, story.book.rules(include_all=True)[0].id))
        except MunimentError as error:
            sys.exit(f"{type(error).__name__}: {error}")
    sys.exit(ENDED)
