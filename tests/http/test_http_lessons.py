"""Lessons over HTTP: paged, shown, signed and dropped, by who may; refused as in the library."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

import muniment
from muniment.handles.memory import Memory
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings
from products import for_each

AT = "/v1/tenants/default/banks/user:ana/lessons"
TEXT = "Look it up by its number."


def write(mem: Memory, name: str, **scope: Any) -> None:
    tactic = {
        "schema_version": "0.5.15", "tactic_id": name, "created_at": "2026-01-01T00:00:00Z", "status": "active",
        "ttl": "days:60", "summary": TEXT, "injection": {"mode": "inline", "content": TEXT},
        "intent_key": "intent|domain=shop|family=lookup",
    }  # fmt: skip
    bank = mem.bank(**scope)
    bank.apply(bank.plan([{"op": "WRITE", "target_store": "ReuseBuffer", "payload": tactic}]).plan_id)


@pytest.fixture
def client(tmp_path: Any) -> TestClient:
    mem = muniment.open()
    for number in range(3):
        write(mem, f"tac_{number}", user_id="ana")
    write(mem, "tac_tenant")
    settings = ServerSettings(keys=str(tmp_path / "keys.json"), research_dir=str(tmp_path))
    return TestClient(create_app(mem, settings), base_url="http://localhost")


def test_lessons_are_paged(client: TestClient) -> None:
    first = client.get(AT, params={"limit": 2}).json()
    assert [each["lesson_id"] for each in first["items"]] == ["tac_0", "tac_1"]
    rest = client.get(AT, params={"limit": 2, "cursor": first["next"]}).json()
    assert [each["lesson_id"] for each in rest["items"]] == ["tac_2"]
    newest = client.get(AT, params={"order": "desc", "limit": 1}).json()["items"]
    assert [each["lesson_id"] for each in newest] == ["tac_2"]
    assert client.get(AT, params={"stage": "suspended"}).json()["items"] == []
    tenants = client.get("/v1/tenants/default/banks/tenant/lessons").json()["items"]
    assert [each["lesson_id"] for each in tenants] == ["tac_tenant"]


def test_a_lesson_is_signed_dropped_and_undone(client: TestClient) -> None:
    signed = client.post(f"{AT}/tac_0/sign", json={"signed_by": "rosa"}).json()
    assert signed["lesson"]["signed"] is True
    plans = "/v1/tenants/default/banks/user:ana/plans"
    assert client.post(f"{plans}/{signed['plan_id']}/undo").status_code == 200
    dropped = client.post(f"{AT}/tac_0/drop", json={"reason": "the shop has changed"}).json()
    assert dropped["lesson"]["stage"] == "retired"
    story = client.get(f"{AT}/tac_0").json()
    assert story["history"][-1]["plan_id"] == dropped["plan_id"]


@for_each(
    ("method", "path", "body", "status", "where"),
    [
        ("GET", "?stage=good", None, 422, "$.stage"),
        ("GET", "?limit=0", None, 422, "$.limit"),
        ("GET", "/nobody", None, 404, "$.lesson_id"),
        ("GET", "/tac_tenant", None, 404, "$.lesson_id"),
        ("POST", "/tac_0/sign", {}, 422, "$.signed_by"),
        ("POST", "/tac_0/sign", {"signed_by": 7}, 422, "$.signed_by"),
        ("POST", "/tac_0/sign", {"signed_by": "rosa", "more": 1}, 422, "$.more"),
        ("POST", "/tac_0/drop", {}, 422, "$.reason"),
        ("POST", "/tac_0/drop", {"reason": " "}, 422, "$.reason"),
        ("POST", "/nobody/drop", {"reason": "x"}, 404, "$.lesson_id"),
    ],
)
def test_what_cannot_be_done_is_refused_as_in_the_library(
    client: TestClient, method: str, path: str, body: Any, status: int, where: str
) -> None:
    before = client.get(AT).json()
    answer = client.request(method, f"{AT}{path}", json=body)
    assert answer.status_code == status
    assert answer.json()["path"] == where
    assert client.get(AT).json() == before
