"""Two workers against one: requests per second of wall and of processor time, by route, connections and store.

    python -m benchmarks.workers                     SQLite and PostgreSQL, 1, 8 and 32 connections
    python -m benchmarks.workers --quick             small sizes, for a look
    python -m benchmarks.workers --engine sqlite     one of the stores; the figures of the other stay in the result
    python -m benchmarks.workers --client asyncio    the client of this file, although wrk is installed

Two servers stand over copies of one store (on PostgreSQL: over two schemas), `muniment serve` with one worker and with
two, and are asked by turns, the same requests with the same tool: wrk where it is installed, else a client on asyncio,
in a process of its own either way. Caches are each worker's own, and are filled before anything is measured. Whoever
asks, and PostgreSQL, take processor time of the same machine, so requests per second of wall say what this machine
does. `per_cpu_s` is requests ÷ seconds of processor time (user and system) of all processes of the server, the
supervisor too.

`ratio` is per_cpu_s of two workers ÷ that of one, the median over the rounds (higher is better; `holds` from .85 on),
`wall` the same of wall time; `memory_mb` is proportional set size of all processes of a server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import muniment
from benchmarks.compose import Talk, events_of
from benchmarks.harness import RESULTS, report

TARGET = 0.85
CONNECTIONS = (1, 8, 32)
BODIES = 200
"""Different requests of a route; they come in turn."""
USER = "ana"
_RUN = f"/v1/tenants/default/users/{USER}/runs/run-1"


class Route(NamedTuple):
    method: str
    path: str
    bodies: tuple[str, ...] = ("",)


class Size(NamedTuple):
    seconds: float
    warm: int
    """How often every question is asked before anything is measured."""
    rounds: int
    events: int


FULL, QUICK = Size(6.0, 4, 3, 2_000), Size(2.0, 1, 1, 200)


class Measured(NamedTuple):
    requests: int
    seconds: float
    cpu_s: float
    p50_ms: float
    p99_ms: float


def routes() -> dict[str, Route]:
    """What is asked for: nothing of the store, a list, a search, a packet, a write."""
    talk = Talk(seed=11)
    turns = [turn for session in talk.sessions(BODIES) for turn in session][:BODIES]
    questions = [talk.question(turn) for turn in turns]
    asked = tuple(json.dumps({"query": text, "k": 8}) for text in questions)
    composed = tuple(json.dumps({"purpose": "responder", "query": text}) for text in questions)
    said = tuple(json.dumps({"role": "user", "content": turn.text}) for turn in turns)
    return {
        "health": Route("GET", "/v1/health"),
        "events": Route("GET", f"{_RUN}/events?limit=20"),
        "search": Route("POST", f"{_RUN}/search", asked),
        "compose": Route("POST", f"{_RUN}/compose", composed),
        "observe": Route("POST", f"{_RUN}/events", said),
    }


def fill(target: str | Path, events: int) -> None:
    """A user of so many events, session by session; the last one is written to."""
    with muniment.open(target) as mem:
        for number, turns in enumerate(Talk(seed=7).sessions(events)):
            mem.run(user_id=USER, session_id=f"s{number}").observe_many(events_of(turns))
        mem.run(user_id=USER, session_id="run-1", run_id="run-1").observe("user", "Good morning.")


# -- servers ------------------------------------------------------------------------------------------


class Server(NamedTuple):
    url: str
    process: subprocess.Popen[bytes]

    def pids(self) -> list[int]:
        own = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, own)]

    def cpu_s(self) -> float:
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids()]
        return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self.pids()]
        return sum(int(re.findall(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)[0]) for text in texts) / 1024


@contextmanager
def serving(target: str, workers: int, folder: Path) -> Iterator[Server]:
    """`muniment serve`, once all its workers take requests."""
    with tempfile.NamedTemporaryFile("w+b", dir=folder, suffix=".log", delete=False) as log:
        port = _free_port()
        command = [sys.executable, "-m", "muniment", "serve", "--auth", "auto", "--db", target, "--port", str(port)]
        process = subprocess.Popen(
            [*command, "--workers", str(workers)], cwd=folder, stdout=subprocess.DEVNULL, stderr=log
        )
        try:
            for _ in range(2400):
                started = Path(log.name).read_text().count("Application startup complete")
                if process.poll() is not None or started == workers:
                    break
                time.sleep(0.05)
            if process.poll() is not None or started != workers:
                raise SystemExit(f"the server did not start: {Path(log.name).read_text()[-2000:]}")
            yield Server(f"http://127.0.0.1:{port}", process)
        finally:
            process.terminate()
            process.wait(60)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# -- asking -------------------------------------------------------------------------------------------

_LUA = """
local bodies = {%s}
local number = 0
request = function()
  number = number %% #bodies + 1
  return wrk.format("%s", "%s", {["Content-Type"] = "application/json"}, bodies[number])
end
done = function(summary, latency)
  local errors = summary.errors
  io.stderr:write(string.format(
    '{"requests": %%d, "us": %%d, "bad": %%d, "p50": %%f, "p99": %%f}',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""


def ask(tool: str, server: Server, route: Route, connections: int, seconds: float, folder: Path) -> Measured:
    """Ask for so long over so many connections, by a process of its own."""
    if tool == "wrk":
        script = folder / "ask.lua"
        bodies = ", ".join(f"[==[{body}]==]" for body in route.bodies) if route.bodies != ("",) else "''"
        script.write_text(_LUA % (bodies, route.method, route.path))
        command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "60s"]
        command += ["-s", str(script), server.url]
    else:
        (folder / "ask.json").write_text(json.dumps(route))
        command = [sys.executable, "-m", "benchmarks.workers", "--ask", str(folder / "ask.json"), server.url]
        command += [str(connections), str(seconds)]
    before = server.cpu_s()
    done = subprocess.run(command, capture_output=True, check=True)
    cpu_s = server.cpu_s() - before
    said = json.loads(done.stderr.decode().strip().splitlines()[-1])
    if said["bad"]:
        raise SystemExit(f"{said['bad']} of {said['requests']} were not answered: {route.method} {route.path}")
    return Measured(said["requests"], said["us"] / 1e6, cpu_s, said["p50"] / 1e3, said["p99"] / 1e3)


async def _ask_here(route: Route, url: str, connections: int, seconds: float) -> dict[str, float]:
    """The client of this file: connections that ask without pause, and read every answer to its end."""
    host, _, port = url.removeprefix("http://").partition(":")
    times: list[float] = []
    bad = 0
    heads = f"{route.method} {route.path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    requests = [f"{heads}Content-Length: {len(body.encode())}\r\n\r\n{body}".encode() for body in route.bodies]
    end = time.perf_counter() + seconds

    async def one(number: int) -> None:
        nonlocal bad
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
        while (start := time.perf_counter()) < end:
            number += 1
            writer.write(requests[number % len(requests)])
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]))
            bad += not head.startswith(b"http/1.1 2")
            times.append(time.perf_counter() - start)
        writer.close()
        await writer.wait_closed()

    begun = time.perf_counter()
    await asyncio.gather(*(one(number * 7) for number in range(connections)))
    took_us = (time.perf_counter() - begun) * 1e6
    times.sort()
    spread = {f"p{share}": times[min(len(times) - 1, len(times) * share // 100)] * 1e6 for share in (50, 99)}
    return {"requests": len(times), "us": took_us, "bad": bad, **spread}


# -- measuring ----------------------------------------------------------------------------------------


def measure(
    engine: str, servers: dict[int, Server], tool: str, folder: Path, connections: Sequence[int], size: Size
) -> dict[str, dict[str, Any]]:
    """Each route over so many connections: one worker, two workers, and so on by turns."""
    rows: dict[str, dict[str, Any]] = {}
    for name, route in routes().items():
        for server in servers.values():
            warmed = 0
            while warmed < size.warm * len(route.bodies):
                warmed += ask(tool, server, route, 16, size.seconds, folder).requests
        for count in connections:
            taken: dict[int, list[Measured]] = {workers: [] for workers in servers}
            for _ in range(size.rounds):
                for workers, server in servers.items():
                    taken[workers].append(ask(tool, server, route, count, size.seconds, folder))
            rows[f"{engine} {name} c{count}"] = _row(taken, servers)
            print(f"{engine} {name} c{count}: {rows[f'{engine} {name} c{count}']['ratio']:.2f}", file=sys.stderr)
    return rows


def _row(taken: dict[int, list[Measured]], servers: dict[int, Server]) -> dict[str, Any]:
    per_cpu = {workers: [each.requests / max(each.cpu_s, 0.01) for each in all_] for workers, all_ in taken.items()}
    per_s = {workers: [each.requests / each.seconds for each in all_] for workers, all_ in taken.items()}
    ratio = statistics.median(b / a for a, b in zip(per_cpu[1], per_cpu[2], strict=True))
    row: dict[str, Any] = {
        "ratio": ratio,
        "holds": ratio >= TARGET,
        "wall": statistics.median(b / a for a, b in zip(per_s[1], per_s[2], strict=True)),
    }
    for workers, server in servers.items():
        row |= {
            f"per_s_{workers}": statistics.median(per_s[workers]),
            f"per_cpu_s_{workers}": statistics.median(per_cpu[workers]),
            f"p50_ms_{workers}": statistics.median(each.p50_ms for each in taken[workers]),
            f"p99_ms_{workers}": statistics.median(each.p99_ms for each in taken[workers]),
            f"memory_mb_{workers}": server.memory_mb(),
        }
    return row


@contextmanager
def targets(engine: str, events: int, folder: Path) -> Iterator[dict[int, str]]:
    """Where one worker's store is, and where that of two: alike, and each its own."""
    if engine == "sqlite":
        fill(folder / "1.db", events)
        shutil.copy(folder / "1.db", folder / "2.db")
        yield {workers: str(folder / f"{workers}.db") for workers in (1, 2)}
        return
    from muniment.testing.postgres import fresh_schema, server_dsn

    dsn = server_dsn()
    with fresh_schema(dsn) as one, fresh_schema(dsn) as two:
        mark = "&" if "?" in dsn else "?"
        found = {1: f"{dsn}{mark}schema={one}", 2: f"{dsn}{mark}schema={two}"}
        for target in found.values():
            fill(target, events)
        yield found


def earlier(engines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The rows of stores that are not measured this time."""
    path = RESULTS / "workers.json"
    found = json.loads(path.read_text())["results"] if path.exists() else {}
    return {key: row for key, row in found.items() if key.partition(" ")[0] not in (*engines, "all")}


def main() -> None:
    if "--ask" in sys.argv:
        place, url, connections, seconds = sys.argv[sys.argv.index("--ask") + 1 :]
        method, path, bodies = json.loads(Path(place).read_text())
        said = asyncio.run(_ask_here(Route(method, path, tuple(bodies)), url, int(connections), float(seconds)))
        print(json.dumps(said), file=sys.stderr)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--engine", choices=("sqlite", "postgres"), action="append")
    parser.add_argument("--client", choices=("wrk", "asyncio"), default="wrk" if shutil.which("wrk") else "asyncio")
    given = parser.parse_args()
    engines = given.engine or ["sqlite", "postgres"]
    size, asked = (QUICK, CONNECTIONS[:2]) if given.quick else (FULL, CONNECTIONS)
    rows = earlier(engines)
    for engine in engines:
        with tempfile.TemporaryDirectory(prefix="muniment-bench-") as name, ExitStack() as stack:
            folder = Path(name)
            found = stack.enter_context(targets(engine, size.events, folder))
            servers = {workers: stack.enter_context(serving(found[workers], workers, folder)) for workers in (1, 2)}
            rows |= measure(engine, servers, given.client, folder, asked, size)
    ratios = [row["ratio"] for key, row in rows.items() if not key.startswith("all")]
    rows["all"] = {
        "ratio": statistics.median(ratios),
        "holds": statistics.median(ratios) >= TARGET,
        "lowest": min(ratios),
        "cells_that_hold": f"{sum(ratio >= TARGET for ratio in ratios)} of {len(ratios)}",
    }
    report("workers", rows, {"quick": given.quick, "client": given.client, **size._asdict()})


if __name__ == "__main__":
    main()
