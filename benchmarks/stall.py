"""Can two tenants keep a third waiting? Two hammer their users of 100,000 events, and a third's requests are timed.

    python -m benchmarks.stall                       two users of 100,000 events (made once: minutes), a small third
    python -m benchmarks.stall --events 5000         smaller ones, for a look
    python -m benchmarks.stall --scratch DIR         keep the store there, and take up one that is there already
    python -m benchmarks.stall --connections 8       of each of the two
    python -m benchmarks.stall --routes search,list  what the two ask for, out of search, compose, episodes, list

The server is `muniment serve`, a process of its own on loopback. The two ask again as soon as they are answered, over
so many connections each, with wrk where it is installed and else with a client of ours in a process of its own. The
third asks one thing after the other, with a pause of a twentieth of a second between, first alone and then beside the
two: the same requests, in the same order. A row is a route of the third's: its median and 99th percentile alone and
beside, and `ratio`, the 99th percentile beside ÷ alone (lower is better, the target is 3). `holds` says whether it is
met. The last rows are what the two were answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import muniment
from benchmarks.compose import BATCH, SESSION, Talk, events_of
from benchmarks.harness import report
from benchmarks.serve import Server, percentile_ms, serving

EVENTS = 100_000
SMALL_EVENTS = 400
SESSIONS = 50
"""Of a large user: long ones, so that a page of episodes is about all that was said."""
HEAVY = ("north", "south")
LIGHT = "east"
ROUTES = ("search", "compose", "episodes", "list")
ASKED = 200
"""Requests of the third for each route, alone and beside."""
PAUSE_S = 0.05
TARGET = 3.0
WARM_S = 3.0
_TIMEOUT_S = 600


# -- the store ----------------------------------------------------------------------------------------


def build_store(path: Path, events: int) -> None:
    """A user `u` of so many events for each of the two tenants, and a small one for the third."""
    if path.exists():
        return
    start, made = time.perf_counter(), path.with_suffix(".part")
    made.unlink(missing_ok=True)
    with muniment.open(made) as mem:
        talk = Talk(seed=11)
        for tenant, size in (*((each, events) for each in HEAVY), (LIGHT, SMALL_EVENTS)):
            for number, turns in enumerate(talk.sessions(size, max(SESSION, size // SESSIONS))):
                run = mem.run(tenant_id=tenant, user_id="u", session_id=f"s{number}")
                for at in range(0, len(turns), BATCH):
                    run.observe_many(events_of(turns[at : at + BATCH]))
            mem.run(tenant_id=tenant, user_id="u", session_id="last", run_id="r").observe("user", "Good morning.")
    made.rename(path)
    print(f"store ready in {time.perf_counter() - start:,.0f} s", file=sys.stderr)


# -- what is asked ------------------------------------------------------------------------------------


def requests_of(tenant: str, routes: Sequence[str], count: int, seed: int) -> list[tuple[str, bytes]]:
    """So many requests of each route, by turns; no question comes twice."""
    talk = Talk(seed)
    turns = [turn for session in talk.sessions(count) for turn in session]
    return [(route, _request(tenant, route, talk.question(turn))) for turn in turns for route in routes]


def _request(tenant: str, route: str, question: str) -> bytes:
    user = f"/v1/tenants/{tenant}/users/u"
    body = b""
    match route:
        case "search":
            head, body = f"POST {user}/runs/r/search", json.dumps({"query": question}).encode()
        case "compose":
            head = f"POST {user}/runs/r/compose"
            body = json.dumps({"purpose": "responder", "query": question}).encode()
        case "episodes":
            head = f"GET {user}/episodes?limit=50"
        case _:
            head = f"GET {user}/events?limit=50"
    said = f"{head} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    if body:
        said += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return said.encode() + b"\r\n" + body


# -- the two ------------------------------------------------------------------------------------------


class Hammer:
    """A tenant that asks as soon as it is answered, in a process of its own, until it is told to stop."""

    def __init__(self, folder: Path, server: Server, tenant: str, routes: Sequence[str], connections: int) -> None:
        asked = [request for _, request in requests_of(tenant, routes, 200, seed=len(tenant) + ord(tenant[0]))]
        self._folder = folder / tenant
        self._folder.mkdir()
        self.tool = "wrk" if shutil.which("wrk") else "own"
        if self.tool == "wrk":
            command = self._wrk(server, asked, connections)
        else:
            listed = self._folder / "asked.json"
            listed.write_text(json.dumps([each.decode() for each in asked]))
            command = [sys.executable, "-m", "benchmarks.stall", "--hammer", str(server.port), str(listed)]
            command += ["--connections", str(connections)]
        self._said = (self._folder / "said.txt").open("w+")
        self._started_s = time.perf_counter()
        self._process = subprocess.Popen(command, stdout=self._said, stderr=subprocess.STDOUT)

    def _wrk(self, server: Server, asked: Sequence[bytes], connections: int) -> list[str]:
        script = self._folder / "asked.lua"
        lines = ["asked = {"]
        lines += ['"' + "".join(f"\\{byte:03d}" for byte in each) + '",' for each in asked]
        lines += ["}", "at = 0", "request = function()", "at = at % #asked + 1", "return asked[at]", "end"]
        lines += ["done = function(summary)", 'print("answered " .. summary.requests .. " refused " ..']
        lines += ["summary.errors.status)", "end"]
        script.write_text("\n".join(lines))
        command = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{_TIMEOUT_S}s", "--timeout", f"{_TIMEOUT_S}s"]
        return [*command, "-s", str(script), f"http://127.0.0.1:{server.port}/"]

    def stop(self) -> dict[str, Any]:
        """What it was answered."""
        seconds = time.perf_counter() - self._started_s
        running = self._process.poll() is None
        self._process.send_signal(2)
        self._process.wait(30)
        self._said.seek(0)
        told = self._said.read()
        self._said.close()
        counted = re.search(r"answered (\d+) refused (\d+)", told)
        if counted is None or not running:
            raise SystemExit(f"the load broke off: {told[-2000:]}")
        return {"answered": int(counted[1]), "refused": int(counted[2]), "per_s": int(counted[1]) / seconds}


def hammer_here(port: int, listed: Path, connections: int) -> None:
    """What the process of a hammer does where there is no wrk."""
    asked = [each.encode() for each in json.loads(listed.read_text())]
    counts = {"answered": 0, "refused": 0}
    waiting = (asked[at % len(asked)] for at in range(1 << 62))

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        for request in waiting:
            is_right, _ = await _exchange(reader, writer, request)
            counts["answered"] += 1
            counts["refused"] += not is_right

    async def all_of_them() -> None:
        await asyncio.gather(*(connection() for _ in range(connections)))

    try:
        asyncio.run(all_of_them())
    except KeyboardInterrupt:
        print(f"answered {counts['answered']} refused {counts['refused']}", flush=True)


# -- the third ----------------------------------------------------------------------------------------


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[bool, bytes]:
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    size = int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
    return head.startswith(b"http/1.1 2"), await reader.readexactly(size)


def ask(server: Server, asked: Sequence[tuple[str, bytes]]) -> dict[str, list[float]]:
    """Seconds of each request, by route."""
    times = defaultdict[str, list[float]](list)

    async def one_after_the_other() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 24)
        for route, request in asked:
            start = time.perf_counter()
            is_right, body = await _exchange(reader, writer, request)
            times[route].append(time.perf_counter() - start)
            if not is_right:
                raise SystemExit(f"the third was refused: {body[:500]!r}")
            await asyncio.sleep(PAUSE_S)
        writer.close()

    asyncio.run(one_after_the_other())
    return times


@contextmanager
def hammering(
    folder: Path, server: Server, routes: Sequence[str], connections: int, told: dict[str, Any]
) -> Iterator[None]:
    hammers = {tenant: Hammer(folder, server, tenant, routes, connections) for tenant in HEAVY}
    try:
        time.sleep(WARM_S)
        yield
    finally:
        for tenant, each in hammers.items():
            told[f"what {tenant} was answered"] = each.stop() | {"tool": each.tool}


def measure(store: Path, folder: Path, routes: Sequence[str], connections: int, count: int) -> dict[str, Any]:
    told: dict[str, Any] = {}
    with serving(store) as server:
        ask(server, requests_of(LIGHT, ROUTES, 20, seed=3))
        for tenant in HEAVY:  # what is read once and kept is there before the clock is started
            ask(server, requests_of(tenant, routes, 1, seed=4))
        asked = requests_of(LIGHT, ROUTES, count, seed=5)
        alone = ask(server, asked)
        with hammering(folder, server, routes, connections, told):
            beside = ask(server, asked)
        told["the server"] = {"resident_mb": server.resident_mb()}
    return (
        {route: _row(alone[route], beside[route]) for route in ROUTES}
        | {"all routes": _row(_all(alone), _all(beside))}
        | told
    )


def _all(times: dict[str, list[float]]) -> list[float]:
    return [seconds for each in times.values() for seconds in each]


def _row(alone: Sequence[float], beside: Sequence[float]) -> dict[str, Any]:
    spread = {
        f"{name}_p{share}_ms": percentile_ms(times, share / 100)
        for name, times in (("alone", alone), ("beside", beside))
        for share in (50, 99)
    }
    ratio = spread["beside_p99_ms"] / spread["alone_p99_ms"]
    return spread | {"ratio": ratio, "target": TARGET, "holds": ratio <= TARGET}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=EVENTS, help="of each of the two users")
    parser.add_argument("--connections", type=int, default=4, help="of each of the two")
    parser.add_argument("--count", type=int, default=ASKED, help="requests of the third for each route")
    parser.add_argument("--routes", default=",".join(ROUTES), help="what the two ask for")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "muniment-stall")
    parser.add_argument("--file", default="stall", help="the name of the result")
    parser.add_argument("--hammer", nargs=2, metavar=("PORT", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.hammer:
        hammer_here(int(given.hammer[0]), Path(given.hammer[1]), given.connections)
        return
    routes = tuple(given.routes.split(","))
    if not set(routes) <= set(ROUTES):
        parser.error(f"routes are of {', '.join(ROUTES)}")
    given.scratch.mkdir(parents=True, exist_ok=True)
    kept = given.scratch / f"tenants-{given.events}-{SESSIONS}.db"
    build_store(kept, given.events)
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as folder:
        store = Path(shutil.copy(kept, Path(folder) / "store.db"))
        rows = measure(store, Path(folder), routes, given.connections, given.count)
    arguments = {"events": given.events, "connections": given.connections, "routes": list(routes)}
    report("stall", rows, arguments | {"requests_a_route": given.count}, given.file)


if __name__ == "__main__":
    main()
