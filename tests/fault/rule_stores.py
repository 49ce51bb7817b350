"""Stores in which a rule has come to some stage of its life, made once and copied; and dumps forged."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any

from muniment.core.canonical import canonical_bytes
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.core.ports.engine import Engine
from muniment.core.ports.models import Clock
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import RuleStory

LATER = datetime(2026, 2, 1, tzinfo=UTC)
Dump = tuple[bytes, ...]


def store(
    engine: Engine | None = None,
    *,
    seed: str = "later",
    policy: Any = None,
    start: datetime = LATER,
    clock: Clock | None = None,
) -> Memory:
    return Memory(
        new_context(
            engine=engine or open_engine(":memory:"),
            policy=Policy.from_wire(policy) if policy else Policy(),
            clock=clock or TickingClock(start),
            ids=CountingIds(seed),
        )
    )


@cache
def grown(step: str) -> tuple[Dump, str]:
    """The dump of a store in which the story's rule has come as far as that step, and the rule's id."""
    from rule_stages import told  # a script that needs a store alone has no such module

    past = told(step)
    return tuple(past.memory.export()), past.answer


def at(step: str, engine: Engine | None = None, **parts: Any) -> tuple[RuleStory, str]:
    """A store in which the rule has come so far; the story goes on in it."""
    from rule_stages import copy_rows, told

    past = told(step)
    mem = store(engine, **parts)
    copy_rows(past.memory, mem._ctx.engine)
    story = RuleStory(mem, seed=2)
    story.number = 1_000
    return story, past.answer


def forged(dump: Dump, edit: Callable[[list[dict[str, Any]]], None]) -> Dump:
    """The dump with its lines edited and its digest made right again."""
    lines = [json.loads(line) for line in dump[1:-1]]
    known = {id(line): (line, text) for line, text in zip(lines, dump[1:-1], strict=True)}
    edit(lines)
    body = [dump[0]]
    for line in lines:  # most are as they were, and need not be written anew
        _, text = known.get(id(line), (None, b"{}"))
        body.append(text if line == json.loads(text) else canonical_bytes(line) + b"\n")
    counts: dict[str, int] = {}
    for line in lines:
        counts[line["table"]] = counts.get(line["table"], 0) + 1
    digest = sha256(b"".join(body)).hexdigest()
    return (*body, canonical_bytes({"end": True, "counts": counts, "digest": digest}) + b"\n")


def versions(lines: list[dict[str, Any]], item_id: str) -> list[dict[str, Any]]:
    return [line["row"] for line in lines if line["table"] == "items" and line["row"]["id"] == item_id]


def rewrite(row: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> None:
    """An item's body, changed and canonical again."""
    body = json.loads(row["body"])
    change(body)
    row["body"] = canonical_bytes(body).decode()
