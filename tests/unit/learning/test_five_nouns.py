"""Learning in a few calls: finish learns, hints recalls, lessons lists, undo takes back."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

import muniment
from muniment.errors import Conflict, NotFound
from muniment.surfaces.http.app import create_app

VERDICTS = {
    True: {"verifier_id": "shop", "verdict": "PASS", "outcome": "OK"},
    False: {"verifier_id": "shop", "verdict": "FAIL", "outcome": "FAIL"},
}


def look_up(mem: Any, order: int, way: str, passed: bool, user: str = "ana") -> Any:
    run = mem.run(user_id=user, agent_id="clerk", task_type="lookup")
    run.observe("user", f"Find order {order}.")
    run.hints()
    run.observe_tool(way, args={"order": order}, content="found" if passed else "Error: no such name", ok=passed)
    return run.finish(verifier_result=VERDICTS[passed])


@pytest.mark.req("RC-08", "RC-10")
def test_hints_are_the_last_passes_of_the_task_type(any_mem: Any) -> None:
    for order in range(4):
        look_up(any_mem, order, "by_name", passed=False)
        look_up(any_mem, 100 + order, "by_number", passed=True)
    run = any_mem.run(user_id="ana", agent_id="clerk", task_type="lookup")
    run.observe("user", "Find order 7.")
    run.observe("assistant", "Let me see.")
    found = run.hints()
    assert found.request.query == "Find order 7."
    assert found.text.splitlines()[0] == "- Asked: Find order 103. Passed. Did: by_number (order as asked)."
    assert "by_name" not in found.text
    assert "earlier run: Asked: Find order 103." in run.compose("planner", query="Find order 7.").text
    assert run.hints("Find order 7.", intent={"task_family": "returns"}).hints == ()
    other = any_mem.run(user_id="bob", agent_id="clerk", task_type="lookup")
    assert other.hints().text == ""


@pytest.mark.req("RC-11", "TM-15")
def test_lessons_are_listed_with_their_measured_effect_and_undone_by_plan(mem: Any) -> None:
    added = mem.bank(user_id="ana").add_lesson("Call by_number first", intent={"task_family": "lookup"})
    for order in range(20):
        look_up(mem, order, "by_number" if order % 2 else "by_name", passed=bool(order % 2))
    lessons = {lesson.lesson_id: lesson for lesson in mem.lessons(user_id="ana")}
    mine = lessons[added.lesson_id]
    assert (mine.kind, mine.origin, mine.text) == ("tactic", "person", "Call by_number first.")
    assert mine.effect.had.n + mine.effect.held_out.n > 5
    assert mine.effect.difference is not None
    drafted = [lesson for lesson in lessons.values() if lesson.kind == "draft"]
    assert drafted
    assert all(lesson.stage == "candidate" and lesson.effect.had.n == 0 for lesson in drafted)
    assert mem.lessons(user_id="bob") == mem.lessons() == []
    assert [each.lesson_id for each in mem.lessons(user_id="ana", stage="trial")] == [added.lesson_id]
    assert len(mem.lessons(user_id="ana", limit=1)) == 1
    mem.bank(user_id="ana").sign_lesson(added.lesson_id, signed_by="rosa")
    dropped = mem.bank(user_id="ana").drop_lesson(added.lesson_id, reason="the shop closes")
    assert mem.lessons(user_id="ana", stage="active") == []
    mem.undo(dropped.plan_id)
    assert [each.lesson_id for each in mem.lessons(user_id="ana", stage="active")] == [added.lesson_id]


def test_undo_finds_the_plan_in_whichever_bank(mem: Any) -> None:
    fold = look_up(mem, 1, "by_number", passed=True, user="cleo")
    records = mem.undo(fold.action_plan_id)
    assert {record.status for record in records} == {"APPLIED"}
    assert mem.bank(user_id="cleo").records(kind="reasoning") == []
    assert mem.undo(fold.action_plan_id) == records
    for wrong in ("plan_none", "", 7):
        with pytest.raises(NotFound):
            mem.undo(wrong)
    plan = mem.bank(user_id="cleo").plan([])
    with pytest.raises(Conflict):
        mem.undo(plan.plan_id)


def test_a_run_of_no_task_type_and_without_a_message_recalls_nothing() -> None:
    with muniment.open(":memory:") as mem:
        assert mem.run(user_id="ana").hints().hints == ()


def test_the_same_over_http(mem: Any) -> None:
    fold = look_up(mem, 1, "by_number", passed=True)
    lesson = mem.bank(user_id="ana").add_lesson("Call by_number first", intent={"task_family": "lookup"})
    run = mem.run(user_id="ana", agent_id="clerk", task_type="lookup")
    run.observe("user", "Find order 7.")
    tenant = "/v1/tenants/default"
    with TestClient(create_app(mem), base_url="http://localhost") as client:
        hints = client.post(f"{tenant}/users/ana/runs/{run.run_id}/hints", json={})
        assert hints.status_code == 200, hints.text
        assert "by_number" in str(hints.json())
        listed = client.get(f"{tenant}/users/ana/lessons")
        assert listed.status_code == 200, listed.text
        assert lesson.lesson_id in listed.text
        assert client.get(f"{tenant}/users/bob/lessons").json()["items"] == []
        undone = client.post(f"{tenant}/plans/{fold.action_plan_id}/undo", json={})
        assert undone.status_code == 200, undone.text
    assert mem.bank(user_id="ana").records(kind="reasoning") == []
