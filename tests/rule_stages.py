"""The story of a rule, told once in every process: a store in which it has come to some stage is a copy of rows.

What a test gets is what it would have got by telling the story itself: rows, ids, the clock and the agent's luck.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeVar

from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.core.ports.engine import Engine, Insert, Select
from muniment.core.ports.schema import TABLES
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.stories import RuleStory

__all__ = ["STAGES", "copy_rows", "story_at", "told"]

STAGES = ("teach", "submit", "gate", "canary", "promote")
"""Each is a step of the story, and goes on from the one before; after the canary there is "shown" too: a rule that has
only to be signed for."""

Kind = TypeVar("Kind", bound=RuleStory)


class Told(NamedTuple):
    """The story up to a stage, and where it goes on."""

    memory: Memory
    answer: str
    luck: Any
    number: int


def _into(story: Kind, past: Told) -> Kind:
    story.random.setstate(past.luck)
    story.number = past.number
    return story


@cache
def told(stage: str) -> Told:
    """The id of the draft, where it was taught, else of the rule; nobody writes into this store."""
    clock, ids = TickingClock(), CountingIds()
    mem = Memory(new_context(engine=SqliteEngine(":memory:"), policy=Policy(), clock=clock, ids=ids))
    story = RuleStory(mem)
    if stage == "shown":
        story, answer = story_at(mem, "canary")
        while story.book.watch(act=False)[answer].decision != "promote":
            for _ in range(5):
                story.run()
        return Told(mem, answer, story.random.getstate(), story.number)
    if stage != STAGES[0]:
        before = STAGES[STAGES.index(stage) - 1]
        story, answer = story_at(mem, before)
        setattr(story, before, lambda: answer)  # the step before was taken
    return Told(mem, getattr(story, stage)(), story.random.getstate(), story.number)


def copy_rows(source: Memory, engine: Engine) -> None:
    """All that stands in a store in memory, into a store that is empty."""
    origin = source._ctx.engine
    assert isinstance(origin, SqliteEngine)
    for tenant_id in origin.tenants():
        rows = origin.read(tenant_id, lambda reader: [(spec.name, reader.do(Select(spec.name))) for spec in TABLES])
        inserts = [Insert(name, found) for name, found in rows if found]
        engine.write(tenant_id, lambda transaction, inserts=inserts: [transaction.do(one) for one in inserts])


def story_at(mem: Memory, stage: str, kind: type[Kind] = RuleStory) -> tuple[Kind, str]:  # type: ignore[assignment]
    """The story in a fresh store of its own, where it has come so far; and the id of the draft or rule."""
    past = told(stage)
    copy_rows(past.memory, mem._ctx.engine)
    here, there = mem._ctx, past.memory._ctx
    if isinstance(here.clock, TickingClock) and isinstance(there.clock, TickingClock):
        here.clock.set(max(here.clock._now, there.clock._now))
    if isinstance(here.ids, CountingIds) and isinstance(there.ids, CountingIds):
        here.ids._count = there.ids._count
    return _into(kind(mem), past), past.answer
