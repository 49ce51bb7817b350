"""What a run was told of learned memory, and what it left there: its newest recall, and its lessons."""

from __future__ import annotations

from typing import Any

from muniment.core.owners import owners_seen
from muniment.core.ports.engine import Condition, Reader
from muniment.core.scope import Scope
from muniment.learning.lessons.records import RunLessons
from muniment.store.items import latest, latest_of_run, newest_items

__all__ = ["latest_recall", "run_lessons"]


def latest_recall(reader: Reader, scope: Scope) -> dict[str, Any] | None:
    item = latest_of_run(reader, "recall", scope.user_id, scope.run_id)
    return None if item is None else item.plain()


def run_lessons(reader: Reader, scope: Scope) -> RunLessons:
    """The lessons that a run had, those that were held out of it, and those that came of it. None of them need stand
    any more.
    """
    told = latest_recall(reader, scope) or {}
    arms = told.get("arms") or _arms_of_before(told)
    return RunLessons(
        had=tuple(arm["memory_id"] for arm in arms if arm["arm"] == "had"),
        held_out=tuple(arm["memory_id"] for arm in arms if arm["arm"] == "held_out"),
        made=tuple(_made(reader, scope)),
    )


def _arms_of_before(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Of recalls that drew no arms: all that was injected was had."""
    hints = told.get("response", {}).get("items", ())
    return [
        {"memory_id": hint["memory_id"], "arm": "had"}
        for hint in hints
        if hint.get("source") == "ReuseBuffer" and hint.get("injected")
    ]


def _made(reader: Reader, scope: Scope) -> list[str]:
    """The tactics that the plan of the run's fold wrote first."""
    owners = owners_seen(scope)
    where: tuple[Condition, ...] = (("kind", "=", "event_log"), ("run_id", "=", scope.run_id))
    found: list[str] = []
    for log in newest_items(reader, where):
        fold = log.plain()["event_log"].get("memory_fold") or {}
        plan = latest(reader, fold.get("action_plan_id") or "") if log.user_id in owners else None
        if plan is None or plan.kind != "plan" or plan.body is None:
            continue
        for id_, before, _ in plan.plain().get("touched", ()):
            item = latest(reader, id_) if before == 0 else None
            found += [id_] if item is not None and item.kind == "tactic" and item.body is not None else []
    return found
