"""`GET /v1/tenants/{tenant}/users`: in pages, sought by index; for keys of the tenant, never for a user's own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from http_support import TENANT, Serve, bearer, count_rows
from starlette.testclient import TestClient

import muniment
from muniment.core.ports.engine import Row
from muniment.errors import Forbidden
from muniment.handles.memory import Memory
from muniment.surfaces.http._keys import KeyFile

USERS = f"{TENANT}/users"


def say(mem: Memory, user_id: str, tenant_id: str = "default") -> None:
    mem.run(user_id=user_id, tenant_id=tenant_id).observe("user", "x")


def pages(client: TestClient, limit: int) -> list[list[str]]:
    found, cursor = [], {}
    while True:
        answer = client.get(USERS, params={"limit": limit, **cursor}).json()
        found.append([each["user_id"] for each in answer["items"]])
        if "next" not in answer:
            return found
        cursor = {"cursor": answer["next"]}


def test_pages_lines_and_the_library_agree(serve: Serve, any_store: Memory) -> None:
    people = ["Ana", "a/b c", "ana", "bob", "zoe", "Ünal", "日向"]
    for name in reversed(people):
        say(any_store, name)
    say(any_store, "elsewhere", "acme")
    client = serve(any_store)
    at_home = [user.to_wire() for user in any_store.store.users()]
    assert [each["user_id"] for each in at_home] == sorted(people)
    assert client.get(USERS).json() == {"items": at_home}
    assert [name for page in pages(client, 3) for name in page] == sorted(people)
    assert [len(page) for page in pages(client, 3)] == [3, 3, 1]
    lines = client.get(USERS, headers={"Accept": "application/x-ndjson"}).text.splitlines()
    assert len(lines) == len(people)
    with muniment.connect("http://localhost", http=client) as remote:
        assert [user.to_wire() for user in remote.store.users()] == at_home
        assert [user.user_id for user in remote.store.users(tenant_id="acme")] == ["elsewhere"]


def test_a_page_goes_on_where_the_last_ended_whatever_came_or_went(serve: Serve) -> None:
    with muniment.open() as mem:
        for name in ("b", "d", "f", "h"):
            say(mem, name)
        client = serve(mem)
        first = client.get(USERS, params={"limit": 2}).json()
        say(mem, "a")
        say(mem, "e")
        mem.forget(user_id="d")  # the one the cursor names
        second = client.get(USERS, params={"limit": 10, "cursor": first["next"]}).json()
        assert [each["user_id"] for each in second["items"]] == ["e", "f", "h"]


def test_a_page_reads_no_more_than_it_shows(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """However far in it lies, and whatever other tenants hold."""
    monkeypatch.setattr("muniment.store.users.PAGE_USERS", 5)
    with muniment.open() as mem:
        for number in range(40):
            say(mem, f"u{number:02}")
            for each in range(3):
                say(mem, f"v{number:02}{each}", "acme")
        client = serve(mem)
        rows: list[Row] = []
        count_rows(mem, rows, monkeypatch)
        read = []
        cursor: dict[str, Any] = {}
        for _ in range(10):
            rows.clear()
            answer = client.get(USERS, params={"limit": 4, **cursor}).json()
            read.append(len(rows))
            cursor = {"cursor": answer.get("next")}
        assert max(read[:-1]) <= 4 * 5 + 2, "of each user a session, its ends and a run, and the next session"


@pytest.mark.req("LG-02")
def test_who_may_list(serve: Serve, keys: KeyFile, tmp_path: Path) -> None:
    with muniment.open() as mem:
        say(mem, "ana", "acme")
        say(mem, "zoe", "acme")
        say(mem, "rival", "other")
        client = serve(mem, auth="on")
        path = "/v1/tenants/acme/users"
        reads = bearer(keys.create("reader", tenant="acme", access="read").token)
        assert [each["user_id"] for each in client.get(path, headers=reads).json()["items"]] == ["ana", "zoe"]
        assert client.get("/v1/tenants/other/users", headers=reads).status_code == 403
        every = bearer(keys.create("all", tenant="*", access="read").token)
        assert [each["user_id"] for each in client.get("/v1/tenants/other/users", headers=every).json()["items"]] == [
            "rival"
        ]
        own = bearer(keys.create("ana", tenant="acme", user="ana", access="admin").token)
        refused = client.get(path, headers=own)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert "zoe" not in refused.text
        assert client.get(path).status_code == 401


def test_a_user_s_connection_is_refused_too(serve: Serve, keys: KeyFile) -> None:
    with muniment.open() as mem:
        say(mem, "ana", "acme")
        token = keys.create("ana", tenant="acme", user="ana").token
        remote = muniment.connect("http://localhost", key=token, http=serve(mem, auth="on"))
        with remote, pytest.raises(Forbidden):
            remote.store.users(tenant_id="acme")


def test_a_cursor_of_another_list_or_of_nothing_is_refused(client: TestClient) -> None:
    for name in ("ana", "bob"):
        client.post(f"{USERS}/{name}/runs/r_{name}/events", json={"role": "user", "content": "x"})
    entries = client.get(f"{USERS}/ana/events", params={"limit": 1}).json()["next"]
    runs = client.get(f"{TENANT}/runs", params={"limit": 1}).json()["next"]
    users = client.get(USERS, params={"limit": 1}).json()["next"]
    for path, cursor in ((USERS, entries), (USERS, runs), (USERS, "?"), (USERS, ""), (f"{TENANT}/runs", users)):
        answer = client.get(path, params={"cursor": cursor})
        assert (answer.status_code, answer.json()["path"]) == (422, "$.cursor"), (path, cursor)
    for wrong in ({"limit": 0}, {"limit": 1001}, {"after": "x"}, {"user_id": "ana"}):
        assert client.get(USERS, params=wrong).status_code == 422


def test_dates_are_of_the_ledger(client: TestClient) -> None:
    client.post(f"{USERS}/ana/runs/r1/events", json={"role": "user", "content": "x", "ts": "2020-01-01T00:00:00Z"})
    (ana,) = client.get(USERS).json()["items"]
    assert datetime.fromisoformat(ana["first_seen_at"]).tzinfo == UTC
    assert ana["last_seen_at"] >= ana["first_seen_at"] > "2020-01-02", "when it was recorded, not what it speaks of"
