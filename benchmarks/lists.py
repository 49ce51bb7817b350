"""Pages of lists over HTTP, in this process: what the first, one in the midst and the last cost, as a scope grows.

    python -m benchmarks.lists                 users of 1,000, 10,000 and 100,000 events
    python -m benchmarks.lists --events 500    other sizes, for a look

Processor milliseconds of a request for twenty: `first`, `middle` (around the one in the midst), `last` (the first of
the list turned around). `whole` is the reading of the whole list by the library in the same run, which is what a page
cost before it had a place to begin at; `ratio` is `whole` ÷ the dearest of the three, so that it should grow with the
scope. `rows` are those that readers of the store handed out for the dearest page.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import muniment
from benchmarks.harness import report
from muniment.core.ports.engine import Reader, Select
from muniment.handles.memory import Memory
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.operations.parts import builds

EVENTS = (1_000, 10_000, 100_000)
USER = "/v1/tenants/default/users/ana"
LIMIT = 20
ROUNDS = 5
SESSION_EVENTS = 2_000
ONE_IN = 100
"""Of so many events there is one run with a fact, and of ten such one has a build."""

WHOLE: dict[str, Callable[[Memory], list[str]]] = {
    "events": lambda mem: [each.id for each in mem.ledger.entries(user_id="ana")],
    "episodes": lambda mem: [each.sources[0] for each in mem.ledger.episodes(user_id="ana")],
    "runs": lambda mem: [each.run_id for each in mem.runs(user_id="ana")],
    "facts": lambda mem: [each.fact_id for each in mem.run(user_id="ana").facts(order="asc")],
    "builds": lambda mem: [each.build_id for each in builds(mem, user_id="ana", order="asc")],
}
"""By the end of its address, the ids of the whole list; of an episode, that of an event in it."""


def fill(mem: Memory, events: int) -> None:
    for number, at in enumerate(range(0, events, ONE_IN)):
        run = mem.run(user_id="ana", session_id=f"s{at // SESSION_EVENTS:04}", run_id=f"run{number:05}")
        said = [
            {"role": "user", "content": f"Tree {each} was planted near the river by team {each % 7}."}
            for each in range(at, min(events, at + ONE_IN))
        ]
        entries = run.observe_many(said)
        run.remember(f"tree.{number}", f"near the river {number}", sources=[entries[0].id])
        if number % 10 == 0:
            run.compose("responder", query=f"Where is tree {at}?")


class _Counting:
    def __init__(self, inner: Reader, rows: list[int]) -> None:
        self._inner, self._rows = inner, rows

    def do(self, op: Any) -> Any:
        answer = self._inner.do(op)
        self._rows[0] += len(answer) if isinstance(answer, list) else 1
        return answer

    def stream(self, select: Select) -> Iterator[Any]:
        for row in self._inner.stream(select):
            self._rows[0] += 1
            yield row


@contextmanager
def counted(mem: Memory) -> Iterator[list[int]]:
    """How many rows readers hand out meanwhile."""
    engine: Any = mem._ctx.engine
    rows = [0]
    read = engine.read
    engine.read = lambda tenant_id, work: read(tenant_id, lambda reader: work(_Counting(reader, rows)))
    try:
        yield rows
    finally:
        del engine.read


def asked(mem: Memory, client: TestClient, name: str, **query: Any) -> tuple[float, int]:
    """Processor milliseconds of a page, the median of some, and its rows with nothing in the caches."""
    times: list[float] = []
    rows_read = 0
    for _ in range(ROUNDS):
        mem._ctx.clear_caches()
        with counted(mem) as rows:
            start = time.process_time()
            answer = client.get(f"{USER}/{name}", params={"limit": LIMIT, **query})
            times.append((time.process_time() - start) * 1e3)
        assert answer.status_code == 200, answer.text
        rows_read = rows[0]
    return statistics.median(times), rows_read


def measure(events: int, folder: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    with muniment.open(folder / f"{events}.db") as mem:
        fill(mem, events)
        settings = ServerSettings(keys=str(folder / "keys.json"), research_dir=str(folder / "research"))
        with TestClient(create_app(mem, settings), base_url="http://localhost") as client:
            for name, whole_of in WHOLE.items():
                mem._ctx.clear_caches()
                start = time.process_time()
                whole = whole_of(mem)
                all_ms = (time.process_time() - start) * 1e3
                pages = {
                    "first": asked(mem, client, name, order="asc"),
                    "middle": asked(mem, client, name, order="asc", around=whole[len(whole) // 2]),
                    "last": asked(mem, client, name, order="desc"),
                }
                dearest = max(each for each, _ in pages.values())
                found[f"{name} of {events}"] = {
                    **{f"{page}_ms": round(each, 2) for page, (each, _) in pages.items()},
                    "rows": max(rows for _, rows in pages.values()),
                    "listed": len(whole),
                    "whole_ms": round(all_ms, 1),
                    "ratio": round(all_ms / dearest, 2),
                }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=list(EVENTS))
    sizes = parser.parse_args().events
    with tempfile.TemporaryDirectory() as folder:
        rows: dict[str, dict[str, Any]] = {}
        for events in sizes:
            rows |= measure(events, Path(folder))
    file = "lists" if tuple(sizes) == EVENTS else "lists-look"
    report("lists", rows, {"events": sizes, "limit": LIMIT}, file)


if __name__ == "__main__":
    main()
