"""Stores that hold so many of everything that a list shows."""

from __future__ import annotations

from pathlib import Path

from http_support import owner_at
from other_requests import KINDS
from other_scopes import PASSED, holdings, propose_none
from starlette.testclient import TestClient

import muniment
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.ports.engine import Transaction
from muniment.core.ports.rows import insert
from muniment.core.ports.schema import ITEMS
from muniment.handles.memory import Memory
from muniment.rules.projection import book_id
from muniment.store.items import LISTED, PROVEN, checked_item, latest, relist, select_items
from muniment.surfaces.http._calls import Route
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.operations.rows import OPERATIONS
from rule_stages import story_at

LISTS = [each for each in OPERATIONS if each.is_paged]
NAMED = ("answer", "rule_test", "rule_report")
"""Kinds that are listed by a name."""


class Grown:
    """A store that holds so many of everything, and a client of it."""

    def __init__(self, count: int, folder: Path, *, is_sound: bool = False) -> None:
        """`is_sound` clones nothing that is sealed by a proof, so that all of the store can be read."""
        self._unclonable = PROVEN if is_sound else frozenset()
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
            if is_sound:
                run.compose("responder", query=f"Which tea is number {number}?")
        for at in range(0, count * 60, 400):
            said = [{"role": "user", "content": f"Tea number {each}."} for each in range(at, min(count * 60, at + 400))]
            run.observe_many(said)
        app = create_app(self.memory, ServerSettings(keys=str(folder / "keys.json"), research_dir=str(folder / "own")))
        self.client = TestClient(app, base_url="http://localhost")

    def _clone(self, tx: Transaction, count: int) -> None:
        """So many more of each thing that a list shows, and of each of its versions where it shows those."""
        kinds = tuple(sorted((LISTED | set(NAMED)) - set(self._unclonable)))
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
        if operation.handle == "study":
            names["run_id"] = self.own["study"]
        if operation.handle in ("rulebook", "bank"):
            names |= {"tenant_id": "default", "user_id": self.owner.rpartition(":")[2], "rule_id": self.rule}
        if operation.id == "memory.users":  # each is told with all of its sessions and runs
            names["tenant_id"] = "crowd"
        names["owner"] = owner_at(route.level, names["user_id"], names["agent_id"])
        path = route.template
        for name in operation.named_in(path):
            path = path.replace(f"{{{name}}}", names[name])
        return path
