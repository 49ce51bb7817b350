"""What checking costs: search, compose and verify with the checks, and without them, in turns in one process.

    python -m benchmarks.checked_reads [--turns 2000] [--rounds 15]

The reference is the same code with the checks of entries, places, items and blocks taken out, as it was before there
were any. CPU time of the process; cold means a store that was just opened, warm one that has answered before.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import muniment
from benchmarks.harness import report
from muniment.core.canonical import read_canonical
from muniment.handles.memory import Memory

__all__ = ["main"]

WORDS = ("clinic", "lease", "flat", "garden", "train", "office", "letter", "supper", "lesson", "bridge", "harbour")
QUERIES = ("when does the lease end?", "which doctor has the office?", "what about the garden and the train?")


Work = Callable[[Memory], None]
Measure = Callable[[Path, Work], float]


def fill(path: Path, turns: int) -> None:
    rng = random.Random(7)
    with muniment.open(path) as mem:
        for session in range(turns // 50):
            run = mem.run(user_id="ana", session_id=f"s{session:03}")
            run.observe_many(
                {
                    "role": rng.choice(("user", "assistant")),
                    "content": f"{' '.join(rng.choices(WORDS, k=30))} {number}.",
                }
                for number in range(50)
            )
            said = next(entry.id for entry in run.ledger.entries() if entry.kind == "message")
            run.remember(f"user.thing{session}", rng.choice(WORDS), sources=[said])


@contextmanager
def unchecked() -> Iterator[None]:
    """The same code as before there were checks."""

    def plain_body(row: Any) -> Any:
        return None if row.body is None else read_canonical(row.body)

    def nothing(*_: Any) -> None:
        return None

    with (
        mock.patch("muniment.store.ledger.check_header", nothing),
        mock.patch("muniment.store.ledger.read_body", plain_body),
        mock.patch("muniment.memory.turn_reading.check_header", nothing),
        mock.patch("muniment.memory.turn_reading.read_body", plain_body),
        mock.patch("muniment.memory.search.check_header", nothing),
        mock.patch("muniment.packets.searching.check_cited", nothing),
        mock.patch("muniment.packets.builds.check_cited", nothing),
        mock.patch("muniment.store.items.Item.check", nothing),
        mock.patch("muniment.store.items.row_digest", return_value=b""),
        mock.patch("muniment.store.blocks._is_intact", return_value=True),
    ):
        yield


def searched(mem: Memory) -> None:
    for query in QUERIES:
        mem.run(user_id="ana", session_id="s000").search(query)


def composed(mem: Memory) -> None:
    for query in QUERIES:
        mem.run(user_id="ana", session_id="s000").compose("responder", query=query)


def cold(path: Path, work: Callable[[Memory], None]) -> float:
    with muniment.open(path) as mem:
        started = time.process_time()
        work(mem)
        return time.process_time() - started


def warm(path: Path, work: Callable[[Memory], None]) -> float:
    with muniment.open(path) as mem:
        work(mem)
        started = time.process_time()
        for _ in range(3):
            work(mem)
        return time.process_time() - started


def ratios(
    path: Path, rounds: int, measure: Callable[[Path, Callable[[Memory], None]], float], work: Any
) -> list[float]:
    """Checked over unchecked, one pair a round; who goes first takes turns."""
    found = []
    measure(path, work)
    for number in range(rounds):
        times: dict[bool, float] = {}
        for is_checked in (True, False) if number % 2 else (False, True):
            if is_checked:
                times[True] = measure(path, work)
            else:
                with unchecked():
                    times[False] = measure(path, work)
        found.append(times[True] / times[False])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        fill(path, given.turns)
        told: dict[str, Any] = {}
        for name, work in (("search", searched), ("compose", composed)):
            for how, measure in (("cold", cold), ("warm", warm)):
                found = sorted(ratios(path, given.rounds, measure, work))
                quartiles = statistics.quantiles(found, n=4)
                told[f"{name} {how}"] = {
                    "ratio": round(statistics.median(found), 3),
                    "quartiles": [round(quartiles[0], 3), round(quartiles[2], 3)],
                }
        started = time.process_time()
        with muniment.open(path) as mem:
            whole = mem.verify()
        whole_s = time.process_time() - started
        with (
            muniment.open(path) as mem,
            mock.patch("muniment.store.verify._TenantCheck._walk_derived", return_value=None),
        ):
            started = time.process_time()
            mem.verify()
            chains_s = time.process_time() - started
        told["verify"] = {"ratio": round(whole_s / chains_s, 2), "entries": whole.entries, "derived": whole.derived}
    report("checked_reads", told, {"turns": given.turns, "rounds": given.rounds})


if __name__ == "__main__":
    main()
