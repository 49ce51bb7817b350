"""Every list behind every door: the library, a connection, HTTP pages and JSON lines read one `Listing`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any, get_origin

import pytest
from grown_store import LISTS, Grown
from starlette.testclient import TestClient

import muniment
from muniment.core.listing import Listing
from muniment.errors import InvalidInput
from muniment.surfaces.client.connection import Ask, Connection
from muniment.surfaces.http._calls import MatchedRoute, Route, open_handle, routes_of
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.table import owner_named

LINES = {"Accept": "application/x-ndjson"}
BAD: tuple[tuple[str, Any], ...] = (("limit", 0), ("limit", -5), ("cursor", "xx"), ("cursor", "WyJ4eCJd"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grown]:
    made = Grown(4, tmp_path_factory.mktemp("doors"), is_sound=True)
    yield made
    made.memory.close()


class Door:
    """One list at one address, as each door answers it."""

    def __init__(self, store: Grown, route: Route) -> None:
        self._store, self._route = store, route
        self.name = f"{route.operation.id} at {route.template}"
        self._shape = route.operation.shape.inner  # type: ignore[attr-defined]
        names = dict(zip(route.template.split("/"), store.path(route).split("/"), strict=True))
        self._names = {part[1:-1]: value for part, value in names.items() if part.startswith("{")}
        owner = owner_named(self._names.get("owner", ""))
        self._names |= {} if owner is None else owner[1]
        self._asked: dict[str, Any] = {}
        if any(each.name == "key" and each.is_required for each in route.operation.parameters(route.template)):
            self._asked["key"] = "user.city"
        if route.operation.id == "memory.turns" and route.level == "tenant":
            self._asked["run_id"] = store.own["run"]

    def library(self, **page: Any) -> Listing[Any]:
        operation = self._route.operation
        taken = {name: value for name, value in self._names.items() if name in operation.takes_names}
        if operation.handle == "works":  # they are the server's alone
            return self.connection(**page)
        handle = open_handle(self._store.memory, MatchedRoute(self._route, self._names), {})
        found: Listing[Any] = operation.target(handle, **taken, **self._asked, **page)
        return found

    def connection(self, **page: Any) -> Listing[Any]:
        ask = Ask(self._route.operation, self._route.template, self._names, self._asked | page)
        found: Listing[Any] = Connection(self._store.client, None).ask(ask)
        return found

    def page(self, **page: Any) -> Any:
        return self._get({}, page)

    def lines(self, **page: Any) -> Any:
        return self._get(LINES, page)

    def _get(self, headers: dict[str, str], page: dict[str, Any]) -> Any:
        client: TestClient = self._store.client
        return client.get(self._store.path(self._route), params=self._asked | page, headers=headers)

    def plain(self, items: Any) -> list[Any]:
        return [self._shape.encode(each) for each in items]


def decode_lines(answer: Any) -> list[Any]:
    return [json.loads(line) for line in answer.text.splitlines()]


def faults_of(door: Door) -> Iterator[str]:
    """What a door says otherwise than the library, in words."""
    whole = door.library()
    plain = door.plain(whole)
    yield from () if isinstance(whole, Listing) else ["the library answers no Listing"]
    yield from () if door.plain(door.connection()) == plain else ["a connection has another list"]
    yield from () if decode_lines(door.lines()) == plain else ["JSON lines have another list"]
    walked: list[Any] = []
    cursor: dict[str, Any] = {}
    for limit in chain((1, 2), repeat(100)):
        asked = {"limit": limit, **cursor}
        page = door.page(**asked).json()
        mine = door.library(**asked).page()
        theirs = door.connection(**asked).page()
        if (page["items"], page.get("next")) != (door.plain(mine.items), mine.next):
            yield "a page is another than the library's"
        if (mine.next, mine.total) != (theirs.next, theirs.total) or page.get("count") != mine.total:
            yield "cursors or counts differ"
        if decode_lines(door.lines(**asked)) != page["items"]:
            yield "JSON lines with a limit are another page"
        walked += page["items"]
        if "next" not in page:
            break
        cursor = {"cursor": page["next"]}
        if decode_lines(door.lines(**cursor)) != plain[len(walked) :]:
            yield "JSON lines do not go on from a cursor"
    yield from () if walked == plain else ["pages make another list"]
    for name, value in BAD:
        for ask in (door.library, door.connection):
            with pytest.raises(InvalidInput) as caught:
                ask(**{name: value})
            if caught.value.path != f"$.{name}":
                yield f"{name}={value} is refused at {caught.value.path}"
        for answer in (door.page(**{name: value}), door.lines(**{name: value})):
            if (answer.status_code, answer.json().get("path")) != (422, f"$.{name}"):
                yield f"{name}={value} is answered {answer.status_code}"


def test_every_list_is_the_same_behind_every_door(store: Grown) -> None:
    routes = [each for each in routes_of(LISTS) if "{rule_id}" not in each.template or each.level == "user"]
    found = {door.name: list(faults_of(door)) for door in (Door(store, route) for route in routes)}
    assert {name: faults for name, faults in found.items() if faults} == {}
    assert len(found) >= len(LISTS)


def test_a_get_that_answers_a_list_answers_a_listing() -> None:
    for operation in OPERATIONS:
        is_one = get_origin(operation.signature.returns) is Listing
        assert is_one == operation.is_paged, operation.id
        assert not is_one or {"limit", "cursor"} <= operation.takes_names, operation.id


def test_facts_have_one_order(tmp_path: Path) -> None:
    """By when they were first held, at every door, and not by key."""
    with muniment.open(tmp_path / "a.db") as mem:
        run = mem.run(user_id="ana")
        said = run.observe("user", "I keep a zebra in the city of A.")
        for key in ("zebra", "city", "a"):
            run.remember(key, "yes", sources=[said.id])
        assert [each.fact_key for each in run.facts()] == ["zebra", "city", "a"]
        assert [each.fact_key for each in run.facts(order="desc")] == ["a", "city", "zebra"]
        assert [each.fact_key for each in run.facts(limit=2)] == ["zebra", "city"]


def test_a_long_list_is_read_page_by_page(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as mem:
        run = mem.run(user_id="ana", session_id="s")
        run.observe_many([{"role": "user", "content": f"Line {each}."} for each in range(1250)])
        entries = mem.ledger.entries(user_id="ana", kind="message")
        assert len(entries.page().items) == 100
        assert [each.content for each in entries] == [f"Line {each}." for each in range(1250)]
        assert len(mem.ledger.entries(user_id="ana", kind="message", limit=1120)) == 1120
        assert entries[-1].content == "Line 1249."
        rest = mem.ledger.entries(user_id="ana", kind="message", cursor=entries.page().next)
        assert [each.id for each in rest] == [each.id for each in entries[100:]]
