"""What a run was told of learned memory, and what it left there: its newest recall, and its lessons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.core.ports.engine import Condition, Reader
from muniment.core.scope import Scope, owners_seen
from muniment.errors import InvalidRecord
from muniment.learning.lesson_state import LessonArm
from muniment.learning.lessons.records import RunLessons
from muniment.store.items import latest, latest_of_run, newest_items

__all__ = ["arms_told", "latest_recall", "run_lessons"]


def latest_recall(reader: Reader, scope: Scope) -> dict[str, Any] | None:
    item = latest_of_run(reader, "recall", scope.user_id, scope.run_id)
    return None if item is None else item.plain()


def arms_told(told: Mapping[str, Any] | None) -> tuple[LessonArm, ...]:
    """The arms that a recall drew. What is none is passed over: an imported entry may say anything."""
    said = (told or {}).get("arms")
    found = (_arm(each) for each in said) if isinstance(said, list) else ()
    return tuple(arm for arm in found if arm is not None)


def _arm(said: Any) -> LessonArm | None:
    try:
        return LessonArm.from_wire(said)
    except InvalidRecord:
        return None


def run_lessons(reader: Reader, scope: Scope) -> RunLessons:
    """The lessons that a run had, those that were held out of it, and those that came of it. None of them need stand
    any more.
    """
    told = latest_recall(reader, scope) or {}
    arms = arms_told(told)
    return RunLessons(
        had=tuple(arm.memory_id for arm in arms if arm.arm == "had") if "arms" in told else _had_before(told),
        held_out=tuple(arm.memory_id for arm in arms if arm.arm == "held_out"),
        made=tuple(_made(reader, scope)),
    )


def _had_before(told: dict[str, Any]) -> tuple[str, ...]:
    """Of recalls that drew no arms: all that was injected was had."""
    hints = told.get("response", {}).get("items", ())
    return tuple(hint["memory_id"] for hint in hints if hint.get("source") == "ReuseBuffer" and hint.get("injected"))


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
