"""Count the modules and the depth of five walks through the package, as a reader would follow them.

    python tools/walks.py             the table, and for each walk its modules in the order they are reached
    python tools/walks.py --json      the same as one document

A walk is one call on a store that has been used before, so that what is loaded or made at the first use does not count.
Modules are those of which a function is entered; comprehensions and properties of records count for their module as
well. Depth is the most functions of the package that wait for each other.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import muniment

PACKAGE = str(Path(muniment.__file__).parent)


@dataclass
class Walk:
    """What was entered, in order."""

    modules: dict[str, None] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    """`room.module.function`, each the first time it is entered."""
    depth: int = 0

    def enter(self, frame: FrameType) -> None:
        module = frame.f_globals.get("__name__", "").removeprefix("muniment.")
        self.modules.setdefault(module)
        name = f"{module}.{frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name}"
        if name not in self._seen:
            self._seen.add(name)
            self.functions.append(name)

    _seen: set[str] = field(default_factory=set)


@contextmanager
def walked() -> Iterator[Walk]:
    """Follow every call into the package, in this thread and those that it starts."""
    walk, waiting = Walk(), threading.local()

    def follow(frame: FrameType, event: str, _argument: object) -> None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if event == "call":
            waiting.depth = getattr(waiting, "depth", 0) + 1
            walk.depth = max(walk.depth, waiting.depth)
            walk.enter(frame)
        elif event == "return":
            waiting.depth = getattr(waiting, "depth", 1) - 1

    threading.setprofile(follow)
    sys.setprofile(follow)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def _story(mem: Any) -> Any:
    """A user with a few sessions, a fact and a state, so that no section of a packet is empty."""
    for number in range(3):
        run = mem.run(user_id="ana", agent_id="support", session_id=f"s{number}")
        said = run.observe("user", f"I moved to Berlin in May; visit {number} is on Friday. Who will book it?")
        run.observe_tool("weather", args={"city": "Berlin"}, content="12 °C", ok=True)
        run.observe("assistant", "I will book the table for Friday.")
        run.remember("user.city", "Berlin", sources=[said.id])
        run.patch(goal="book dinner", slots={"city": "Berlin"})
        run.procedure("booking", {"steps": ["ask", "book"]}, priority=1)
        run.insight("hypothesis", "she may be vegetarian", sources=[said.id])
    return run


def _observe(mem: Any) -> Callable[[], object]:
    run = _story(mem)
    return lambda: run.observe("user", "I moved to Rome in June.")


def _compose(mem: Any) -> Callable[[], object]:
    run = _story(mem)
    run.compose("planner", query="Where does she live?")
    return lambda: run.compose("planner", query="Where did we eat?")


def _forget(mem: Any) -> Callable[[], object]:
    run = _story(mem)
    first, second = (run.observe("user", f"I am allergic to nuts, {number}.") for number in range(2))
    mem.forget(event=first.id)
    return lambda: mem.forget(event=second.id)


def _request(mem: Any) -> Callable[[], object]:
    from starlette.testclient import TestClient

    from muniment.surfaces.http.app import create_app

    run = _story(mem)
    address = f"/v1/tenants/default/users/ana/runs/{run.run_id}/search"

    def ask(client: TestClient) -> None:
        answer = client.post(address, json={"query": "Where does she live?"})
        assert answer.status_code == 200, answer.text

    # The threads of a server start with its first request, and only threads that start later are followed.
    first, second = (TestClient(create_app(mem), base_url="http://localhost") for _ in range(2))
    ask(first)
    return lambda: ask(second)


def _promote(mem: Any) -> Callable[[], object]:
    from muniment.testing.rule_story import RuleStory

    story = RuleStory(mem)
    rule_id = story.canary()
    for _ in range(400):
        story.run()
        if story.number % 20 == 0 and story.book.watch()[rule_id].decision == "promote":
            book = story.book
            return lambda: book.promote(rule_id, signed_by="rosa")
    raise AssertionError("the trial never spoke")


WALKS: dict[str, Callable[[Any], Callable[[], object]]] = {
    "observe": _observe,
    "compose": _compose,
    "forget": _forget,
    "HTTP request": _request,
    "promotion": _promote,
}


def take(name: str) -> Walk:
    """One of the walks, on a store of its own in memory."""
    with muniment.open(":memory:") as mem:
        call = WALKS[name](mem)
        with walked() as walk:
            call()
    return walk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--functions", action="store_true", help="every function as it is first entered")
    options = parser.parse_args()
    walks = {name: take(name) for name in WALKS}
    if options.json:
        told = {name: {"modules": len(walk.modules), "depth": walk.depth} for name, walk in walks.items()}
        print(json.dumps(told, indent=2))
        return
    for name, walk in walks.items():
        print(f"{name:14} {len(walk.modules):3} modules, depth {walk.depth}")
        for shown in walk.functions if options.functions else walk.modules:
            print(f"    {shown}")


if __name__ == "__main__":
    main()
