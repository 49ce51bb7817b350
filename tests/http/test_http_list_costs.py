"""A page of any list reads what it shows: not one row more where its scope holds twenty times as much.

Rows are counted as readers hand them out, never time. A list that is new and not bounded fails here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from http_support import count_rows
from other_requests import KINDS
from other_scopes import PASSED, holdings, propose_none
from starlette.testclient import TestClient

import muniment
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.ports.engine import Row, Transaction
from muniment.core.ports.rows import insert
from muniment.core.ports.schema import ITEMS
from muniment.handles.memory import Memory
from muniment.rules.projection import book_id
from muniment.store.items import LISTED, PROVEN, checked_item, latest, relist, select_items
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.lists import SOUGHT
from muniment.surfaces.http.routing import Route, routes_of
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.operations.rows import OPERATIONS
from rule_stages import story_at

UNBOUNDED = {
    "run.failures": "each is counted over the whole run, from its latest snapshot",
    "study.perspectives": "a study is one record, and its policy bounds it",
    "study.claims": "a study is one record, and its policy bounds it",
    "study.sources": "a study is one record, and its policy bounds it",
    "works.list": "what this process carries out, at most so many",
}
"""Lists that are read whole, and why that is no more than they show."""
LIMIT = 3
SMALL, LARGE = 6, 60
LISTS = [each for each in OPERATIONS if each.is_listed and not each.takes_body]
NAMED = ("answer", "rule_test", "rule_report")
"""Kinds that are listed by a name."""


def test_every_list_is_sought_or_says_why_not() -> None:
    assert {each.id for each in LISTS} == SOUGHT.keys() | UNBOUNDED.keys()
    assert not SOUGHT.keys() & UNBOUNDED.keys()


class Grown:
    """A store that holds so many of everything, and a client of it."""

    def __init__(self, count: int, folder: Path) -> None:
        self.memory: Memory = muniment.open(clock=TickingClock(), ids=CountingIds())
        story, self.rule = story_at(self.memory, "gate")
        self.owner = story.book._book.owner
        asked = self.memory.run(user_id=self.owner.rpartition(":")[2], agent_id="agent")
        asked.observe("user", "Count the pears.")
        asked.learning.learn(PASSED, lessons=propose_none)
        self.own = holdings(self.memory, "acme", "bo", "own", folder / "own")
        run = self.memory.run(tenant_id="acme", user_id="bo", session_id="session-own", run_id=self.own["run"])
        run.observe("assistant", "In Oslo [1].", build=self.own["build"])
        for tenant_id in ("acme", "default"):
            self.memory._ctx.engine.write(tenant_id, lambda tx: self._clone(tx, count))
        for number in range(count):
            self.memory.run(tenant_id="crowd", user_id=f"user{number:04}", session_id="s").observe("user", "Hello.")
            self.memory.run(tenant_id=f"tenant{number:04}", user_id="bo", session_id="s").observe("user", "Hello.")
            self.memory.run(tenant_id="acme", user_id="zoe", session_id=f"s{number:04}").observe("user", "Hello there.")
            run.observe("user", f"Cup {number} of tea.")
            run.log.compact()
        for at in range(0, count * 60, 400):
            said = [{"role": "user", "content": f"Tea number {each}."} for each in range(at, min(count * 60, at + 400))]
            run.observe_many(said)
        app = create_app(self.memory, ServerSettings(keys=str(folder / "keys.json"), research_dir=str(folder / "own")))
        self.client = TestClient(app, base_url="http://localhost")

    def _clone(self, tx: Transaction, count: int) -> None:
        """So many more of each thing that a list shows, and of each of its versions where it shows those."""
        kinds = tuple(sorted(LISTED | set(NAMED)))
        cloned: set[tuple[str, str | None]] = set()
        for item in select_items(tx, (("kind", "in", kinds), ("receipt_id", "=", None))):
            if latest(tx, item.id) != item or (item.kind, item.name) in cloned:
                continue
            cloned.add((item.kind, item.name))
            made = [checked_item(item._replace(id=f"{item.id}-{number:04}", version=1)) for number in range(count)]
            insert(tx, ITEMS, [each._replace(digest=None, checked=0) if each.kind in PROVEN else each for each in made])
        for item in select_items(tx, (("kind", "in", ("rule", "rulebook")), ("receipt_id", "=", None))):
            if item.id in (self.rule, book_id("default", self.owner)) and latest(tx, item.id) == item:
                versions = [item._replace(version=item.version + 1 + number) for number in range(count)]
                insert(tx, ITEMS, [checked_item(version) for version in versions])
                relist(tx, item.id)

    def path(self, route: Route) -> str:
        operation = route.operation
        names = {"tenant_id": "acme", "user_id": "bo", "agent_id": "agent"}
        names |= {name: self.own[kind] for name, kind in KINDS.items()}
        if operation.handle in ("rulebook", "bank"):
            names |= {"tenant_id": "default", "user_id": self.owner.rpartition(":")[2], "rule_id": self.rule}
        if operation.id == "memory.users":  # each is told with all of its sessions and runs
            names["tenant_id"] = "crowd"
        path = route.template
        for name in operation.named_in(path):
            path = path.replace(f"{{{name}}}", names[name])
        return path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Grown, Grown]:
    return tuple(Grown(count, tmp_path_factory.mktemp(f"of{count}")) for count in (SMALL, LARGE))  # type: ignore[return-value]


def pages(store: Grown, path: str, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The rows that the first pages of a list have read, and whether each shows as many as it may."""
    found: list[tuple[int, bool]] = []
    with monkeypatch.context() as patched:
        rows: list[Row] = []
        count_rows(store.memory, rows, patched)
        cursor: dict[str, str] = {}
        for _ in range(2):
            store.memory._ctx.clear_caches()
            rows.clear()
            answer = store.client.get(path, params={"limit": LIMIT, **asked, **cursor})
            assert answer.status_code == 200, answer.text
            told = answer.json()
            found.append((len(rows), len(told["items"]) == LIMIT))
            if "next" not in told:
                break
            cursor = {"cursor": told["next"]}
    return found


@pytest.mark.soak
@pytest.mark.parametrize("operation", [each for each in LISTS if each.id in SOUGHT], ids=lambda each: each.id)
def test_a_page_reads_what_it_shows(
    operation: Any, stores: tuple[Grown, Grown], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = stores
    was_full = False
    for route in routes_of([operation]):
        if "{rule_id}" in route.template and route.level != "user":
            continue  # the rule is a user's
        orders = ["asc", "desc"] if "order" in operation.takes_names else [None]
        for order in orders:
            asked = ({} if order is None else {"order": order}) | (
                {"key": "user.city"} if "key" in required(route) else {}
            )
            if operation.id == "memory.turns" and route.level == "tenant":  # of a tenant as a whole there are none
                asked |= {"run_id": small.own["run"]}
            if operation.id == "memory.attention":  # a trial is looked for among all rules, 2,000 for a page
                asked |= {"kind": "candidate_waiting"}
            less = pages(small, small.path(route), asked, monkeypatch)
            more = pages(large, large.path(route), asked, monkeypatch)
            assert len(less) == len(more)
            for (few, _), (many, is_full) in zip(less, more, strict=True):
                was_full |= is_full
                assert many <= 1.5 * few + 2 * LIMIT, f"{route.template} {asked}: {few} rows, and {many} of more"
    assert was_full, "no page of it was full, so nothing was shown"


def required(route: Route) -> set[str]:
    return {each.name for each in route.operation.parameters(route.template) if each.is_required}
