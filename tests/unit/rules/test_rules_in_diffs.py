"""Rules stand before a packet: the difference of two builds names those that came and went, and says why."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.surfaces.cli.explained import explained
from muniment.testing.stories import COUNTING
from rule_stages import story_at


@pytest.fixture(scope="module")
def told() -> Any:
    """A store with an active rule, its story, and a build that was given the rule."""
    import muniment
    from muniment.core.outside.system import CountingIds, TickingClock

    with muniment.open(":memory:", clock=TickingClock(), ids=CountingIds("rules")) as mem:
        story, rule_id = story_at(mem, "promote")
        yield mem, story.book, rule_id, build_of(mem)


def build_of(mem: Memory, *, intent: Any = COUNTING, select: bool = True, max_tokens: int = 1024) -> Any:
    run = mem.run(user_id="ana", agent_id="counter", task_type="apples")
    if select:
        run.learning.select_rules(intent=intent)
    return run.compose("responder", query="Count the apples.", max_tokens=max_tokens)


def rule_change(mem: Memory, a: Any, b: Any) -> tuple[str, str, str] | None:
    changes = [each for each in mem.diff(a.id, b.id).changes if each.item.startswith("rule:")]
    assert len(changes) <= 1
    return (changes[0].what, changes[0].item, changes[0].why) if changes else None


@pytest.mark.soak
def test_rules_that_another_run_was_not_given(told: Any) -> None:
    mem, _, rule_id, given = told
    name = f"rule:{rule_id}"
    for other in (build_of(mem, select=False), build_of(mem, intent={"domain_tag": "weather"})):
        assert rule_change(mem, given, other) == ("removed", name, "it was not selected for the run")
        assert rule_change(mem, other, given) == ("added", name, "it was selected for the run")
    assert rule_change(mem, given, build_of(mem)) is None


def test_rules_for_which_there_was_no_room(told: Any) -> None:
    mem, _, rule_id, given = told
    small = build_of(mem, max_tokens=256)
    assert small.rules.omitted.endswith("leave no room")
    assert rule_change(mem, given, small) == ("removed", f"rule:{rule_id}", small.rules.omitted)
    assert explained(small)["rules"]["omitted"] == small.rules.omitted
    assert explained(given)["rules"]["rule_ids"] == [rule_id]


@pytest.mark.soak
def test_rules_that_were_taken_out_and_put_back(told: Any) -> None:
    mem, book, rule_id, given = told
    name, there = f"rule:{rule_id}", book.revision
    book.retire(rule_id, reason="a change of mind", signed_by="rosa")
    why = f"retire in revision {there + 1} of the rulebook, signed by rosa: a change of mind"
    assert rule_change(mem, given, build_of(mem)) == ("removed", name, why)
    book.rollback(to=there, reason="it was right", signed_by="rosa")
    assert rule_change(mem, given, build_of(mem)) is None
    assert rule_change(mem, given, build_of(mem, select=False)) == ("removed", name, "it was not selected for the run")
    book.rollback(to=0)
    why = f"rollback in revision {there + 3} of the rulebook"
    changed = rule_change(mem, given, build_of(mem))
    assert changed is not None
    assert changed[2].startswith(why)
