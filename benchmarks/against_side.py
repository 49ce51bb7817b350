"""One side of `benchmarks.against`: a process with the package of one checkout, told line by line what to do.

It imports the package and the standard library alone, so that any checkout can be the other side.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import muniment


class Side:
    """A store of its own, and the works that are timed on it."""

    def __init__(self, job: dict[str, Any], folder: Path) -> None:
        self._mem = muniment.open(folder / "side.db")
        self._now: str = job["now"]
        self._questions: list[str] = job["questions"]
        self._told: list[dict[str, Any]] = job["told"]
        session = ""
        for session, events in job["sessions"]:
            self._mem.run(user_id="asked", session_id=session).observe_many(events)
        self._asked = self._mem.run(user_id="asked", session_id=session)
        self._written = self._mem.run(user_id="told", session_id="one by one")
        self._batched = self._mem.run(user_id="told", session_id="in batches")

    def work(self, name: str, at: int) -> Callable[[], object]:
        """What is timed: the work of a name, for the question or the turns of a number."""
        kind, *rest = name.split(" ")
        if kind == "compose":
            purpose, tokens = rest[0], int(rest[1])
            query = "" if rest[2:] else self._questions[at % len(self._questions)]
            return lambda: self._asked.compose(purpose, query=query, max_tokens=tokens, now=self._now)
        if kind == "search":
            return lambda: self._asked.search(self._questions[at % len(self._questions)], now=self._now)
        size = int(rest[0])
        told = [self._told[place % len(self._told)] for place in range(at * size, (at + 1) * size)]
        if size == 1:
            (one,) = told
            return lambda: self._written.observe(one["role"], one["content"], speaker=one["speaker"])
        return lambda: self._batched.observe_many(told)

    def close(self) -> None:
        self._mem.close()


def main() -> None:
    job, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    side = Side(job, folder)
    print(json.dumps({"package": str(Path(muniment.__file__).parent)}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        work = side.work(asked["work"], asked["at"])
        gc.collect()
        start = time.process_time()
        work()
        print(json.dumps({"seconds": time.process_time() - start}), flush=True)
    side.close()


if __name__ == "__main__":
    main()
