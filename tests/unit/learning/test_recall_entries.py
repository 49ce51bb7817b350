"""What an imported entry says of a recall is taken where it is one: packets read it as it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.learning.projection import project_recall

INTENT = {"domain_tag": "shop", "task_family": "lookup"}


def _entry(mem: Memory) -> Any:
    first = mem.run(user_id="ana", session_id="s1")
    first.observe("user", "Find order 1.")
    first.finish(verifier_result={"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}, intent=INTENT)
    run = mem.run(user_id="ana", session_id="s2")
    run.observe("user", "Find order 2.")
    assert run.learning.recall("Find order 2.", intent=INTENT).hints
    (entry,) = [
        each for each in mem.ledger.entries(user_id="ana") if (each.metadata or {}).get("event") == "memory_recalled"
    ]
    return entry


def _saying(entry: Any, metadata: dict[str, Any]) -> Any:
    return entry.model_copy(update={"body": entry.body.model_copy(update={"metadata": metadata})})


def test_a_recall_is_projected(make: Callable[..., Memory]) -> None:
    assert len(project_recall(_entry(make("memory")), lambda _: None)) == 1


@pytest.mark.soak
@pytest.mark.parametrize(
    "said",
    [{"response": None}, {"response": {}},
     {"response": {"items": [5]}}, {"response": {"request_id": "r", "items": [{"injected": True}]}}, {"response": 1}],
    ids=str,
)  # fmt: skip
def test_what_is_none_is_not(make: Callable[..., Memory], said: dict[str, Any]) -> None:
    entry = _entry(make("memory"))
    assert project_recall(_saying(entry, {**entry.metadata, **said}), lambda _: None) == []


@pytest.mark.parametrize("arms", [None, [{}], [5], {"memory_id": "m"}, "m"], ids=str)
def test_what_is_no_arm_is_passed_over(make: Callable[..., Memory], arms: Any) -> None:
    entry = _entry(make("memory"))
    (change,) = project_recall(_saying(entry, {**entry.metadata, "arms": arms}), lambda _: None)
    assert change.body["arms"] == []
    whole = {"memory_id": "m", "arm": "had", "stage": "active", "share": 1}
    if isinstance(arms, list):
        (change,) = project_recall(_saying(entry, {**entry.metadata, "arms": [*arms, whole]}), lambda _: None)
        assert [each["memory_id"] for each in change.body["arms"]] == ["m"]


def test_one_that_answers_nothing_is_none(make: Callable[..., Memory]) -> None:
    entry = _entry(make("memory"))
    metadata = {name: value for name, value in entry.metadata.items() if name != "response"}
    assert project_recall(_saying(entry, metadata), lambda _: None) == []
