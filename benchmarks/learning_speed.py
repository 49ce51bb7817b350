"""What learning costs: a recall beside a bare search, a fold beside a bare append.

    python -m benchmarks.learning_speed            everything (a bank of 100,000 records; ten minutes or more)
    python -m benchmarks.learning_speed --quick    small sizes, for a look

Each figure is a ratio within one process. `recall`: the whole of `run.learning.recall`, told to the run and written,
against the ten best of the same index for the same words. `fold`: `run.learning.learn` of a run of so many steps, in a
bank with as many earlier runs as a fold looks at, against the append of one entry of the same bytes as the EventLog
that the fold writes.

    python -m benchmarks.learning_speed --growth 1000 10000    what recall and fold cost as a bank grows
    python -m benchmarks.learning_speed --bytes 300            what a run of five events writes in a bank of 300 runs

`growth`: processor time of a recall and of a fold, and rows that they read, in one bank at each size, medians of
twenty rounds. Until then the bank grows by runs of which one in eight recalls and that are compared with four others:
as many records, logs and uses as are read, in a quarter of the time. `bytes`: what the write-ahead log of SQLite takes
for a run of five events, whole pages as they are, with recall and fold and without; and what the file grows by.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import muniment
from benchmarks.harness import report, timed, versus
from muniment.core.policy import Policy
from muniment.core.ports.engine import Reader, Select
from muniment.learning.keys import intent_key
from muniment.learning.records import IntentParts
from muniment.memory.search import find_turns

FAMILIES = 20
WORDS = tuple(f"word{number}" for number in range(5_000))
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
BATCH = 1_000
TOP = 10


@contextmanager
def a_store(**options: Any) -> Iterator[muniment.Memory]:
    with (
        tempfile.TemporaryDirectory() as folder,
        muniment.open(Path(folder, "m.db"), embedder="none", **options) as mem,
    ):
        yield mem


class Clocked:
    """Something that is timed by the clock, for `versus`, and by the processor, for busy machines."""

    def __init__(self, work: Callable[[int], Callable[[], object]]) -> None:
        self._work = work
        self._cpu: list[float] = []

    def __call__(self, round_: int) -> float:
        ready = self._work(round_)
        start = time.process_time()
        spent = timed(ready)
        self._cpu.append(time.process_time() - start)
        return spent

    @property
    def cpu(self) -> float:
        return statistics.median(self._cpu)


def compare(ours: Clocked, reference: Clocked, rounds: int, names: tuple[str, str]) -> dict[str, float]:
    mine, theirs, ratio = versus(ours, reference, rounds)
    return {
        f"{names[0]}_ms": mine * 1e3,
        f"{names[1]}_ms": theirs * 1e3,
        "times": 1 / ratio,
        f"{names[0]}_cpu_ms": ours.cpu * 1e3,
        f"{names[1]}_cpu_ms": reference.cpu * 1e3,
        "cpu_times": ours.cpu / reference.cpu,
    }


# -- recall -------------------------------------------------------------------------------------------


def records(count: int, random: Random) -> Iterator[dict[str, Any]]:
    """Episodes of twenty families, about thirty words each."""
    keys = [intent_key(IntentParts(domain_tag="d", task_family=f"f{number}")) for number in range(FAMILIES)]
    for number in range(count):
        passed = random.random() < 0.5
        yield {
            "schema_version": "0.5.15",
            "memory_id": f"rm_{number}",
            "kind": "episode",
            "created_at": "2026-01-01T00:00:00Z",
            "status": "active",
            "summary": f"Asked: {' '.join(random.choices(WORDS, k=25))}. Passed. Did: search, then book.",
            "intent_key": keys[number % FAMILIES],
            "state_key": "state|mode=main",
            "tags": ["pass" if passed else "fail"],
            "pass_p_hat": float(passed),
        }


def fill(mem: muniment.Memory, count: int) -> None:
    bank = mem.bank(user_id="ana")
    listed = list(records(count, Random(1)))
    for at in range(0, count, BATCH):
        actions = [
            {"op": "WRITE", "target_store": "ReasoningBank", "payload": record} for record in listed[at : at + BATCH]
        ]
        bank.apply(bank.plan(actions).plan_id)


def recall_against_search(sizes: Sequence[int], rounds: int) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for size in sizes:
        with a_store() as mem:
            fill(mem, size)
            rows[f"recall of {size:,} records"] = _recall(mem, rounds)
    return rows


def _recall(mem: muniment.Memory, rounds: int) -> dict[str, Any]:
    random, ctx = Random(2), mem._ctx
    asked = [" ".join(random.choices(WORDS, k=8)) for _ in range(rounds + 1)]
    run = mem.run(user_id="ana", agent_id="agent")

    def recall(round_: int) -> Callable[[], object]:
        intent = {"domain_tag": "d", "task_family": f"f{round_ % FAMILIES}"}
        return lambda: run.learning.recall(asked[round_], intent=intent, state={"mode": "main"})

    def search(round_: int) -> Callable[[], object]:
        policy, now = ctx.policy.recall, ctx.now()

        def find(reader: Reader) -> object:
            return find_turns(ctx, reader, "default", "bank:user:ana", asked[round_], TOP, now, policy)

        return lambda: ctx.engine.read("default", find)

    recall(rounds)(), search(rounds)()
    return compare(Clocked(recall), Clocked(search), rounds, ("recall", "search"))


# -- folds --------------------------------------------------------------------------------------------


def a_run(mem: muniment.Memory, number: int, steps: int, user_id: str = "ana") -> muniment.Run:
    """A run that searched and booked, with so many steps."""
    run = mem.run(user_id=user_id, agent_id="agent")
    tools = ("search", "read", "book", "verify")
    events: list[dict[str, Any]] = [{"role": "user", "content": f"Find a table for {number % 9 + 1} in Berlin."}]
    events += [
        {
            "role": "tool",
            "content": f"row {step} of {number}: 12 tables",
            "tool": {"name": tools[(step * (number % 3 + 1)) % 4], "args": {"row": step}, "ok": step % 7 != 3},
        }
        for step in range(steps)
    ]
    events.append({"role": "assistant", "content": f"Booked table {number}."})
    run.observe_many(events)
    return run


def learn(run: muniment.Run, number: int) -> None:
    strategy = "careful" if number % 3 else "quick"
    passed = (number * 7 % 10) < (8 if number % 3 else 3)
    run.learning.learn(
        PASS if passed else FAIL,
        intent={"domain_tag": "travel", "task_family": "booking"},
        state={"mode": "main"},
        features={"strategy": strategy},
    )


def fold_against_append(steps: int, peers: int, rounds: int) -> dict[str, dict[str, Any]]:
    with a_store() as mem:
        for number in range(peers):
            learn(a_run(mem, number, steps), number)
        bare = mem.run(user_id="bo", agent_id="agent")

        def fold(round_: int) -> Callable[[], object]:
            run = a_run(mem, peers + round_, steps)
            return lambda: learn(run, peers + round_)

        def append(_round: int) -> Callable[[], object]:
            told = _newest_log(mem)
            return lambda: bare.observe("assistant", told)

        append(0)()
        row = compare(Clocked(fold), Clocked(append), rounds, ("fold", "append"))
        return {f"fold of {steps} steps, {peers} earlier runs": row | {"event_log_bytes": len(_newest_log(mem))}}


def _newest_log(mem: muniment.Memory) -> str:
    """What the last fold wrote of its run."""
    select = Select("items", where=(("kind", "=", "event_log"),), order=("created_at",), descending=True, limit=1)
    rows = mem._ctx.engine.read("default", lambda reader: reader.do(select))
    return str(rows[0][11])


# -- growth -------------------------------------------------------------------------------------------


class Counted:
    """A reader that counts the rows it hands out."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def do(self, command: Any) -> Any:
        answer = self._reader.do(command)
        self.rows += len(answer) if isinstance(answer, list | tuple) else 1
        return answer


@contextmanager
def counting(mem: muniment.Memory) -> Iterator[list[int]]:
    """The rows that each read and each write of a store looks at, while it is open."""
    engine, seen = mem._ctx.engine, [0]
    kept = {name: getattr(engine, name) for name in ("read", "write")}

    def counted(name: str) -> Callable[..., Any]:
        def call(tenant_id: str, work: Callable[[Any], Any], *more: Any, **named: Any) -> Any:
            def looked(reader: Any) -> Any:
                reading = Counted(reader)
                try:
                    return work(reading)
                finally:
                    seen[0] += reading.rows

            return kept[name](tenant_id, looked, *more, **named)

        return call

    for name in kept:
        setattr(engine, name, counted(name))
    try:
        yield seen
    finally:
        for name in kept:
            delattr(engine, name)


def five_events(mem: muniment.Memory, number: int, *, learns: bool = True, recalls: bool = True) -> dict[str, float]:
    """A run of five events, recalled for and folded; the processor's seconds of both."""
    run = mem.run(user_id="ana", agent_id="agent")
    intent = {"domain_tag": "travel", "task_family": f"family{number % 5}"}
    run.observe("user", f"Find a table for {number % 9 + 1} in {WORDS[number % 97]}, and mind {WORDS[number % 89]}.")
    start = time.process_time()
    if learns and recalls:
        run.learning.recall("Find a table", intent=intent, state={"mode": "main"})
    recalled = time.process_time() - start
    strategy = ("careful", "quick", "late")[number % 3]
    run.observe_tool(f"look_{strategy}", content=f"{number} tables", args={"row": number})
    run.observe_tool("book", content="done", args={"row": number})
    run.observe("assistant", f"Booked table {number}.")
    start = time.process_time()
    passed = (number * 7 % 10) < (8 if strategy == "careful" else 3)
    if learns:
        run.finish(verifier_result=PASS if passed else FAIL, intent=intent, features={"strategy": strategy})
    else:
        run.finish()
    return {"recall": recalled, "fold": time.process_time() - start}


def growth(sizes: Sequence[int], rounds: int) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    done = 0
    policy = Policy()
    fold = policy.learn.fold.model_copy(update={"peers_max": 4})
    growing = policy.model_copy(update={"learn": policy.learn.model_copy(update={"fold": fold})})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.db")
        for size in sizes:
            with muniment.open(path, embedder="none", policy=growing) as mem:
                for number in range(done, size):
                    five_events(mem, number, recalls=number % 8 == 0)
            with muniment.open(path, embedder="none") as mem:
                five_events(mem, size)  # what is read once is in memory
                with counting(mem) as seen:
                    spent = [five_events(mem, size + 1 + round_) for round_ in range(rounds)]
            done = size + 1 + rounds
            cpu = {f"{name}_cpu_ms": statistics.median(each[name] for each in spent) * 1e3 for name in spent[0]}
            rows[f"after {size:,} runs"] = cpu | {"rows_read_a_run": seen[0] / rounds}
    first, last = rows[f"after {sizes[0]:,} runs"], rows[f"after {sizes[-1]:,} runs"]
    return rows | {"last against first": {name: last[name] / first[name] for name in first}}


def bytes_written(runs: int, rounds: int) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.db")
        with muniment.open(path, embedder="none") as mem, closing(sqlite3.connect(path)) as other:
            for number in range(runs):
                five_events(mem, number)

            def written(number: int, *, learns: bool) -> int:
                other.execute("pragma wal_checkpoint(TRUNCATE)").fetchall()
                five_events(mem, number, learns=learns)
                return Path(f"{path}-wal").stat().st_size

            before = _file_bytes(other, path)
            learnt = [written(runs + number, learns=True) for number in range(rounds)]
            kept = (_file_bytes(other, path) - before) / rounds
            bare = [written(runs + rounds + number, learns=False) for number in range(rounds)]
            figures = {"log_bytes": statistics.mean(learnt), "log_bytes_without_learning": statistics.mean(bare)}
            return {f"a run of five events after {runs:,}": figures | {"file_bytes": kept}}


def _file_bytes(connection: sqlite3.Connection, path: Path) -> int:
    connection.execute("pragma wal_checkpoint(TRUNCATE)").fetchall()
    return path.stat().st_size


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look")
    parser.add_argument("--growth", nargs="+", type=int, metavar="RUNS", help="only this: cost by the size of a bank")
    parser.add_argument("--bytes", type=int, metavar="RUNS", help="only this: what a run of five events writes")
    given = parser.parse_args(argv)
    if given.growth:
        report("learning_speed", growth(given.growth, 20), {"growth": given.growth}, file="learning_growth")
    if given.bytes:
        report("learning_speed", bytes_written(given.bytes, 20), {"bytes": given.bytes}, file="learning_bytes")
    if given.growth or given.bytes:
        return
    sizes = [2_000] if given.quick else [10_000, 100_000]
    peers, rounds = (40, 5) if given.quick else (200, 21)
    rows = recall_against_search(sizes, rounds)
    rows |= fold_against_append(200, peers, rounds)
    arguments = {"quick": given.quick, "sizes": sizes, "peers": peers, "rounds": rounds}
    report("learning_speed", rows, arguments)


if __name__ == "__main__":
    main()
