"""Who wraps an agent and a verifier and names no kind of work gets lessons all the same, and only where they fit."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from effort import SOAK
from muniment.handles.memory import Memory


def agent(task: Any) -> dict[str, Any]:
    """Goes by whatever it is told, else by the toss of a coin."""
    told = " ".join(hint.summary or "" for hint in task.hints if hint.source == "ReuseBuffer")
    tossed = int(sha256(task.prompt.encode()).hexdigest(), 16) % 2
    way = "by_number" if "by_number" in told or tossed else "by_name"
    answer = "found" if way == "by_number" else "nothing"
    task.run.observe_tool(way, content=answer)
    return {"text": answer, "features": {"way": way}}


@pytest.mark.soak
@pytest.mark.req("TM-15")
@pytest.mark.parametrize("seed", ["s0", "s3", "s7"] if SOAK else ["s0"])
def test_a_runner_without_an_intent_hands_out_what_it_learnt_and_measures_it(
    make: Callable[..., Memory], seed: str
) -> None:
    """Who gets a lesson is drawn by hash of the run, so runs have names of their own."""
    with make("memory", seed=seed) as mem:
        runner = mem.runner(agent, lambda output, _task: output.text == "found", user_id="ana", agent_id="clerk")
        done = [runner.run(f"Find order {number * 37}.") for number in range(70)]
        bank = mem.bank(user_id="ana")
        (lesson,) = bank.lessons(stage="active")
        assert "by_number" in lesson.text
        assert lesson.effect.difference is not None
        assert lesson.effect.difference > 0
        assert sum(bool(each.lessons.had) for each in done[45:]) >= 18
        assert sum(each.passed for each in done[45:]) > sum(each.passed for each in done[:25])

        run = mem.run(user_id="ana", agent_id="clerk")
        looked = run.learning.recall("Write a short poem about the sea at night", keep=False)
        assert lesson.lesson_id not in [hint.memory_id for hint in looked.hints]
        alike = run.learning.recall("Find order 9999.", keep=False)
        assert lesson.lesson_id in [hint.memory_id for hint in alike.hints]
