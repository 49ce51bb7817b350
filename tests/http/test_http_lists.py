"""Lists in pages cost what they show, however much the scope holds, and go on where the last page ended."""

from __future__ import annotations

from typing import Any

import pytest
from http_support import TENANT, Serve, count_rows
from starlette.testclient import TestClient

import muniment
from muniment.core.ports.engine import Row
from muniment.handles.memory import Memory

EPISODES = f"{TENANT}/users/ana/episodes"


def tell(mem: Memory, session_id: str, count: int, day: int = 1) -> list[str]:
    """A turn a minute, so that only their number cuts episodes."""
    run = mem.run(user_id="ana", session_id=session_id)
    said = [
        {
            "role": "user",
            "content": f"Tree {each} of {session_id} was planted near the river.",
            "ts": f"2026-03-{day + each // 1440:02}T{each // 60 % 24:02}:{each % 60:02}:00Z",
        }
        for each in range(count)
    ]
    return [entry.id for entry in run.observe_many(said)]


def pages(client: TestClient, limit: int, **asked: Any) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = client.get(EPISODES, params={"limit": limit, **asked, **cursor}).json()
        found.append(answer["items"])
        if "next" not in answer:
            return found
        cursor = {"cursor": answer["next"]}


def test_pages_of_episodes_make_the_whole(serve: Serve, any_store: Memory) -> None:
    for session_id, count in (("a", 100), ("b", 40), ("c", 41), ("d", 1)):
        tell(any_store, session_id, count)
    client = serve(any_store)
    whole = [each.to_wire() for each in any_store.ledger.episodes(user_id="ana")]
    assert [len(each["sources"]) for each in whole] == [40, 40, 20, 40, 40, 1, 1]
    for limit in (1, 2, 3, 7):
        assert [each for page in pages(client, limit) for each in page] == whole
    assert [each for page in pages(client, 2, session_id="a") for each in page] == whole[:3]


def test_a_page_of_episodes_reads_what_it_shows(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page and one far in, of a session of many turns: each reads its own turns and no more."""
    with muniment.open() as mem:
        tell(mem, "long", 1_600)
        client = serve(mem)
        rows: list[Row] = []
        count_rows(mem, rows, monkeypatch)
        read, cursor = [], {}
        for _ in range(12):
            rows.clear()
            answer = client.get(EPISODES, params={"limit": 3, **cursor}).json()
            cursor = {"cursor": answer["next"]}
            read.append(len(rows))
        assert max(read) <= 500, "three episodes of forty turns, and the page of entries that the next one begins in"


def test_a_cursor_holds_when_its_last_turn_is_forgotten(serve: Serve) -> None:
    with muniment.open() as mem:
        ids = tell(mem, "a", 120)
        client = serve(mem)
        first = client.get(EPISODES, params={"limit": 1}).json()
        mem.forget(event=ids[39])
        rest = client.get(EPISODES, params={"cursor": first["next"]}).json()
        assert [each["sources"] for each in rest["items"]] == [ids[40:80], ids[80:]]


def test_another_user_s_cursor_tells_nothing(serve: Serve) -> None:
    with muniment.open() as mem:
        tell(mem, "a", 90)
        mem.run(user_id="bob", session_id="z").observe("user", "I am Bob and I plant nothing.")
        client = serve(mem)
        first = client.get(EPISODES, params={"limit": 1}).json()
        of_bob = client.get(f"{TENANT}/users/bob/episodes", params={"cursor": first["next"]})
        assert of_bob.status_code == 200
        assert [len(each["sources"]) for each in of_bob.json()["items"]] == [1], "his own, from that place on"
        assert "Tree" not in of_bob.text
