"""What one write touches of the index when it fills a level and has to merge: rows, bytes and CPU time of the worst.

    python -m benchmarks.index_merges [--turns 100000]

One user's turns are put into the index one by one, each in a transaction of its own, in a store in memory: so what is
counted is the index alone. Bytes are those of blocks that are deleted and written anew; on a disk they are written once
to the log and once to the table. Counts are the same in every run; the CPU time is of this process.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from datetime import date
from typing import Any, NamedTuple

from muniment.memory.indexing import SEGMENTS, SegmentCache, segments_of

from benchmarks.harness import report, without_collections
from muniment.core.ports.engine import Delete, Insert, Op, Transaction
from muniment.memory.recall.index import index_text
from muniment.memory.recall.segments import IndexedPassage, IndexedTurn, build_segment
from muniment.store.blocks import append_block
from muniment.store.engines.sqlite import SqliteEngine

__all__ = ["main"]

DAY = date(2026, 5, 1)
WORDS = 3_000
WORDS_A_TURN = 20


class Write(NamedTuple):
    rows: int
    """Blocks that were deleted."""
    size_bytes: int
    """Of the block that was written."""
    cpu_s: float


class Counting:
    """A transaction that counts what is deleted and inserted."""

    def __init__(self, inner: Transaction) -> None:
        self.inner = inner
        self.rows = self.size_bytes = 0

    def do(self, op: Op[Any]) -> Any:
        answer = self.inner.do(op)
        if isinstance(op, Delete):
            self.rows += answer
        elif isinstance(op, Insert):
            self.size_bytes += sum(len(value) for row in op.rows for value in row if isinstance(value, bytes))
        return answer

    def stream(self, select: Any) -> Any:
        return self.inner.stream(select)


def turns(count: int) -> list[IndexedTurn]:
    """Turns of common and rare words, as a long conversation has them."""
    rng = random.Random(11)
    words = [f"word{number}" for number in range(WORDS)]
    weights = [1 / (number + 1) for number in range(WORDS)]
    said: list[IndexedPassage] = []
    for _ in range(2_000):
        said.extend(index_text(" ".join(rng.choices(words, weights, k=WORDS_A_TURN)), DAY)[:1])

    def turn(number: int) -> IndexedTurn:
        passages = (said[number % len(said)],)
        return IndexedTurn(f"evt_{number:032x}", f"s{number // 200}", number % 200, "user", "user", number, passages)

    return [turn(number) for number in range(count)]


def written(count: int) -> list[Write]:
    engine, place, cache = SqliteEngine(":memory:"), segments_of("ana"), SegmentCache()
    found: list[Write] = []
    for turn in turns(count):
        block = build_segment([turn])

        def work(tx: Transaction, block: Any = block) -> Counting:
            counting = Counting(tx)
            append_block(counting, place, SEGMENTS, block, ("default", cache))
            return counting

        start = time.process_time()
        done = engine.write("default", work)
        found.append(Write(done.rows, done.size_bytes, time.process_time() - start))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100_000)
    asked = parser.parse_args()
    with without_collections():
        found = written(asked.turns)
    by_size = sorted(found, key=lambda each: each.size_bytes)
    worst = by_size[-1]
    rows: dict[str, dict[str, Any]] = {
        "median": {"bytes": int(statistics.median(each.size_bytes for each in found))},
        "99 of 100": {"bytes": by_size[int(len(found) * 0.99)].size_bytes},
        "999 of 1000": {"bytes": by_size[int(len(found) * 0.999)].size_bytes},
        "worst": {
            "bytes": worst.size_bytes,
            "blocks_merged": worst.rows,
            "cpu_ms": round(worst.cpu_s * 1000, 1),
            "at": found.index(worst) + 1,
        },
        "all": {
            "bytes_a_turn": round(sum(each.size_bytes for each in found) / len(found)),
            "cpu_ms_a_turn": round(sum(each.cpu_s for each in found) * 1000 / len(found), 3),
            "writes_over_1_mb": sum(each.size_bytes > 1_000_000 for each in found),
        },
    }
    report("index_merges", rows, vars(asked))


if __name__ == "__main__":
    main()
