"""Runs of a small coding world told to a store, and models that write lessons of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from muniment.contracts.learning import FoldResult
from muniment.handles.memory import Memory

PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["TESTS_FAILED"]}
INTENT = {"domain_tag": "shop", "task_family": "coding"}
EDIT = ("edit", {"file": "cart.py"}, "done", True)
TESTED = ("run_tests", {"path": "tests/test_cart.py"}, "3 passed", True)
GOOD = {"text": "Call run_tests on tests/test_cart.py", "when": "cart.py was edited", "events": ["e2", "e3"]}


def lesson(text: str, *events: str, when: str = "carts", **more: Any) -> dict[str, Any]:
    return {"text": text, "when": when, "events": list(events) or ["e1", "e2"], "advice": "do"} | more


def saying(*lessons: Any) -> Callable[[Any], str]:
    """A model that answers this, whatever it is shown."""
    return lambda _messages: json.dumps({"lessons": list(lessons)})


def fold(
    mem: Memory, *calls: Any, passed: bool, task: str = "Fix the rounding bug in cart.py", **said: Any
) -> FoldResult:
    """One run, judged and learnt from."""
    scope = {name: said.pop(name) for name in ("user_id", "agent_id", "grants") if name in said}
    run = mem.run(**{"user_id": "ana", "agent_id": "dev", **scope})
    run.observe("user", task)
    for name, args, content, ok in calls:
        run.observe_tool(name, args=args, content=content, ok=ok)
    return run.finish(verifier_result=PASS if passed else FAIL, **{"intent": INTENT, **said})


def told(result: FoldResult) -> dict[str, Any]:
    """What a fold says of the lessons of a model."""
    return (result.model_extra or {}).get("lessons") or {}


def lessons_of(mem: Memory, **who: str) -> list[str]:
    """What stands as a lesson that somebody wrote."""
    bank = mem.bank(**(who or {"user_id": "ana"}))
    return [str(each.record["summary"]) for each in bank.records(kind="tactic") if "lesson" in each.record]
