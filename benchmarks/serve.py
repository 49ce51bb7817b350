"""The server under load against the library called in-process, in one run; and its memory over many minutes.

    python -m benchmarks.serve                    load: a mix of compose, search and observe, over HTTP and at home
    python -m benchmarks.serve --soak [SECONDS]   soak: the mix over HTTP for ten minutes, and the server's memory
    python -m benchmarks.serve --quick            small sizes, for a look
    python -m benchmarks.serve --scratch DIR      keep the store there, and take up one that is there already

The server is `muniment serve` with one worker, a process of its own on loopback. The mix is 40 % compose, 40 % search
and 20 % observe, over scopes of 10,000 events that the writes go to as well. Both sides carry out the same calls in the
same order on copies of one store, by turns. The library is called by one thread and by as many as the server has
connections, and the better of the two is what the server is held against. Whoever asks writes requests that are made
already and reads answers to their last byte; `asking` is the share of one core that takes, so that it can be seen that
the server is what is measured. `cpu` compares processor time alone, which a busy neighbour does not change.

`ratio` is the server's calls per second ÷ the library's, or the library's median ÷ the server's (higher is better),
`tail` p99 ÷ p50 over all calls; of the soak, `ratio` is resident memory last ÷ first after warm-up. The soak goes at a
steady pace: each event that is written is also held in the index of its scope. `holds` says whether a target is met.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import muniment
from benchmarks.compose import Talk, Turn, events_of
from benchmarks.harness import RESULTS, report

EVENTS = 10_000
"""In each scope."""
CONNECTIONS = 8
SOAK_S = 600
SOAK_PER_S = 25
"""Calls in a second of the soak: the scopes are to grow by less than a tenth, or their own growth would be measured."""
SOAK_PARTS = 20
"""Readings of the server's memory."""
SOAK_WARM = 4_000
"""Calls before the first of them: what is kept between calls is bounded, and is to be full."""
TURN = 10
"""Calls of a single caller before the other side has its turn."""
MIX = ("compose",) * 4 + ("search",) * 4 + ("observe",) * 2
_PATHS = {"compose": "compose", "search": "search", "observe": "events"}


@dataclass(frozen=True, slots=True)
class Call:
    kind: Literal["compose", "search", "observe"]
    user: str
    text: str


@dataclass(frozen=True, slots=True)
class Load:
    """What came of a number of calls."""

    seconds: float
    cpu_s: float
    """Of whoever carried them out."""
    asking: float
    times: dict[str, list[float]]
    """Seconds of each call, by kind."""

    @property
    def per_s(self) -> float:
        return sum(map(len, self.times.values())) / self.seconds

    @property
    def cpu_ms(self) -> float:
        return self.cpu_s * 1e3 / sum(map(len, self.times.values()))


# -- the store and what is asked of it ----------------------------------------------------------------


def users_of(count: int) -> list[str]:
    return [f"user{number}" for number in range(count)]


def build_store(path: Path, users: Sequence[str], events: int) -> None:
    """Scopes of so many events, each grown session by session; the last session is the one that is written to."""
    if path.exists():
        return
    start, made = time.perf_counter(), path.with_suffix(".part")
    with muniment.open(made) as mem:
        talk = Talk(seed=7)
        for user in users:
            for number, turns in enumerate(talk.sessions(events)):
                mem.run(user_id=user, session_id=f"{user}-s{number}").observe_many(events_of(turns))
            mem.run(user_id=user, session_id=user, run_id=f"run-{user}").observe("user", "Good morning.")
    made.rename(path)
    print(f"store ready in {time.perf_counter() - start:,.0f} s", file=sys.stderr)


def calls(seed: int, users: Sequence[str]) -> Iterator[Call]:
    """The mix, without end: exact over every ten calls, in an order of chance; no question comes twice."""
    chance, talk = random.Random(seed), Talk(seed)
    while True:
        turns: list[Turn] = [turn for session in talk.sessions(len(MIX), len(MIX)) for turn in session]
        for kind, turn in zip(chance.sample(MIX, len(MIX)), turns, strict=True):
            text = turn.text if kind == "observe" else talk.question(turn)
            yield Call(kind, chance.choice(users), text)  # type: ignore[arg-type]


def some_calls(seed: int, users: Sequence[str], count: int) -> list[Call]:
    return list(islice(calls(seed, users), count))


def copied(store: Path, name: str) -> Path:
    return Path(shutil.copy(store, store.with_name(name)))


# -- the library --------------------------------------------------------------------------------------


def ask_library(mem: muniment.Memory, asked: Sequence[Call], threads: int) -> Load:
    """The calls, by so many threads that each take the next one."""
    runs = {
        user: mem.run(user_id=user, session_id=user, run_id=f"run-{user}") for user in {each.user for each in asked}
    }
    waiting, times = iter(asked), defaultdict[str, list[float]](list)

    def work() -> None:
        for call in waiting:
            run, start = runs[call.user], time.perf_counter()
            if call.kind == "compose":
                run.compose("responder", query=call.text)
            elif call.kind == "search":
                run.search(call.text)
            else:
                run.observe("user", call.text)
            times[call.kind].append(time.perf_counter() - start)

    start, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        for job in [pool.submit(work) for _ in range(threads)]:
            job.result()
    return Load(time.perf_counter() - start, time.process_time() - cpu, 0.0, times)


# -- the server ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Server:
    """A server under way; what it uses is read as Linux tells it."""

    port: int
    pid: int

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def serving(store: Path, db: str | None = None) -> Iterator[Server]:
    """`muniment serve` over the store, once it answers; over another address, with the log beside this path."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        sys.executable,
        "-m",
        "muniment",
        "serve",
        "--auth",
        "auto",
        "--db",
        db or str(store),
        "--port",
        str(port),
    ]
    with store.with_suffix(".log").open("w") as log:
        process = subprocess.Popen(command, cwd=store.parent, stdout=subprocess.DEVNULL, stderr=log)
        try:
            for _ in range(1200):
                if process.poll() is not None or _answers(port):
                    break
                time.sleep(0.05)
            if process.poll() is not None:
                raise SystemExit(f"the server did not start: {Path(log.name).read_text()[-2000:]}")
            yield Server(port, process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False


def request_of(call: Call) -> bytes:
    plain: dict[str, str] = {"query": call.text}
    if call.kind == "compose":
        plain["purpose"] = "responder"
    elif call.kind == "observe":
        plain = {"role": "user", "content": call.text}
    body = json.dumps(plain).encode()
    path = f"/v1/tenants/default/users/{call.user}/runs/run-{call.user}/{_PATHS[call.kind]}"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    size = int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(size)
    if not head.startswith(b"http/1.1 2"):
        raise SystemExit(f"refused: {head!r} {body[:500]!r}")


def ask_server(
    server: Server, waiting: Iterator[tuple[str, bytes]], connections: int, per_s: float | None = None
) -> Load:
    """The calls, over so many connections that each take the next one: at once, or no more of them `per_s`."""
    times = defaultdict[str, list[float]](list)
    period_s = 0.0 if per_s is None else connections / per_s

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 24)
        for kind, request in waiting:
            start = time.perf_counter()
            await _exchange(reader, writer, request)
            times[kind].append(time.perf_counter() - start)
            if period_s:
                await asyncio.sleep(max(0.0, start + period_s - time.perf_counter()))
        writer.close()
        await writer.wait_closed()

    async def all_of_them() -> None:
        await asyncio.gather(*(connection() for _ in range(connections)))

    start, cpu, own = time.perf_counter(), server.cpu_s(), time.process_time()
    _run(all_of_them)
    seconds = time.perf_counter() - start
    return Load(seconds, server.cpu_s() - cpu, (time.process_time() - own) / seconds, times)


def _run(work: Callable[[], Awaitable[None]]) -> None:
    """On the loop that the server has too, where it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work())  # type: ignore[arg-type]
    else:
        uvloop.run(work())  # type: ignore[arg-type]


# -- measuring ----------------------------------------------------------------------------------------


def percentile_ms(times: Sequence[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3


def spread(times: Sequence[float]) -> dict[str, float]:
    return {f"p{share}_ms": percentile_ms(times, share / 100) for share in (50, 95, 99)}


def measure_load(store: Path, users: Sequence[str], count: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Rounds of the same calls: over HTTP, by one thread at home, by as many threads as there are connections."""
    threads = (1, CONNECTIONS)
    loads: dict[int, list[Load]] = {0: [], **{number: [] for number in threads}}
    with ExitStack() as opened:
        server = opened.enter_context(serving(copied(store, "server.db")))
        homes = {each: opened.enter_context(muniment.open(copied(store, f"library{each}.db"))) for each in threads}
        for round_ in range(rounds + 1):
            asked = some_calls(100 + round_, users, count)
            ready = [(call.kind, request_of(call)) for call in asked]
            for who in sorted(loads, reverse=bool(round_ % 2)):
                done = ask_library(homes[who], asked, who) if who else ask_server(server, iter(ready), CONNECTIONS)
                loads[who].append(done)
            best = max(loads[number][-1].per_s for number in threads)
            told = f"round {round_}: {loads[0][-1].per_s:,.1f} a second over HTTP, {best:,.1f} at home"
            print(told + (" (warm-up)" if not round_ else ""), file=sys.stderr, flush=True)
        alone = measure_alone(server, homes[1], users, count // 10)
    return _load_rows(loads[0][1:], {number: loads[number][1:] for number in threads}) | alone


def measure_alone(server: Server, mem: muniment.Memory, users: Sequence[str], count: int) -> dict[str, dict[str, Any]]:
    """One caller and nobody else: each kind of call over HTTP and at home, by turns."""
    rows: dict[str, dict[str, Any]] = {}
    for kind in _PATHS:
        asked = [call for call in some_calls(200, users, 10 * count) if call.kind == kind][:count]
        ours: list[float] = []
        theirs: list[float] = []
        for at in range(0, count, TURN):
            turn = asked[at : at + TURN]
            ours += ask_server(server, iter([(kind, request_of(call)) for call in turn]), 1).times[kind]
            theirs += ask_library(mem, turn, 1).times[kind]
        mine, home = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
        rows[f"{kind}, one caller"] = {"p50_ms": mine, "library_p50_ms": home, "ratio": home / mine}
    return rows


def _load_rows(over_http: Sequence[Load], at_home: dict[int, list[Load]]) -> dict[str, dict[str, Any]]:
    best = max(at_home, key=lambda number: statistics.median(load.per_s for load in at_home[number]))
    pairs = list(zip(over_http, at_home[best], strict=True))
    ratio = statistics.median(ours.per_s / theirs.per_s for ours, theirs in pairs)
    cpu = statistics.median(theirs.cpu_ms / ours.cpu_ms for ours, theirs in pairs)
    every = [seconds for load in over_http for times in load.times.values() for seconds in times]
    tail = percentile_ms(every, 0.99) / percentile_ms(every, 0.5)
    rows: dict[str, dict[str, Any]] = {
        f"mixed load, {CONNECTIONS} connections": {
            "per_s": statistics.median(load.per_s for load in over_http),
            "library_per_s": statistics.median(load.per_s for load in at_home[best]),
            "library_threads": best,
            "ratio": ratio,
            "cpu": cpu,
            "cpu_ms": statistics.median(load.cpu_ms for load in over_http),
            "asking": max(load.asking for load in over_http),
            "holds": ratio >= 0.5,
        },
        "all calls over HTTP": spread(every) | {"tail": tail, "holds": tail <= 5},
    }
    for number, loads in at_home.items():
        each = [seconds for load in loads for times in load.times.values() for seconds in times]
        told = {"per_s": statistics.median(load.per_s for load in loads)}
        rows[f"all calls at home, threads {number}"] = told | spread(each)
    for kind in _PATHS:
        rows[f"{kind} over HTTP"] = spread([seconds for load in over_http for seconds in load.times[kind]])
    return rows


def measure_soak(store: Path, users: Sequence[str], seconds: float, warm: int) -> dict[str, dict[str, Any]]:
    """The mix at a steady pace; the server's resident size when it is warm and after each part of the time."""
    asked = calls(99, users)
    times: list[float] = []

    def until(end: float) -> Iterator[tuple[str, bytes]]:
        while time.perf_counter() < end:
            call = next(asked)
            yield call.kind, request_of(call)

    with serving(copied(store, "soak.db")) as server:
        ready = [(call.kind, request_of(call)) for call in islice(asked, warm)]
        ask_server(server, iter(ready), CONNECTIONS)
        sizes = [server.resident_mb()]
        print(f"warm after {warm:,} calls: {sizes[0]:,.1f} MB", file=sys.stderr, flush=True)
        for part in range(SOAK_PARTS):
            ending = until(time.perf_counter() + seconds / SOAK_PARTS)
            load = ask_server(server, ending, CONNECTIONS, SOAK_PER_S)
            times += [each for kind in load.times.values() for each in kind]
            sizes.append(server.resident_mb())
            told = f"part {part + 1} of {SOAK_PARTS}: {load.per_s:,.1f} a second, {sizes[-1]:,.1f} MB"
            print(told, file=sys.stderr, flush=True)
    first, last = sizes[0], sizes[-1]
    held: dict[str, Any] = {"seconds": round(seconds), "calls": len(times), "first_mb": first, "last_mb": last}
    held |= {"highest_mb": max(sizes), "ratio": last / first, "holds": last <= 1.1 * first}
    return {
        "soak, resident memory last over first": held,
        "soak, all calls": spread(times),
        "soak, resident memory": {f"part {at}": size for at, size in enumerate(sizes)},
    }


def earlier(*, soak: bool) -> dict[str, dict[str, Any]]:
    """What was measured before of the other part, which stays in the result."""
    path = RESULTS / "serve.json"
    found = json.loads(path.read_text())["results"] if path.exists() else {}
    return {key: row for key, row in found.items() if key.startswith("soak") == soak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--soak", type=float, nargs="?", const=SOAK_S, metavar="SECONDS", help="soak, without load")
    parser.add_argument("--scratch", type=Path, help="a directory to keep the store in")
    given = parser.parse_args()
    users = users_of(2 if given.quick else 4)
    events, count, rounds = (1_000, 200, 2) if given.quick else (EVENTS, 1_000, 5)
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as folder:
        kept = given.scratch or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        build_store(kept / f"scopes-{len(users)}-{events}.db", users, events)
        store = Path(shutil.copy(kept / f"scopes-{len(users)}-{events}.db", Path(folder) / "scopes.db"))
        if given.soak:
            rows = earlier(soak=False) | measure_soak(store, users, given.soak, 200 if given.quick else SOAK_WARM)
        else:
            rows = measure_load(store, users, count, rounds) | earlier(soak=True)
    report("serve", rows, {"quick": given.quick, "scopes": len(users), "events_a_scope": events, "rounds": rounds})


if __name__ == "__main__":
    main()
