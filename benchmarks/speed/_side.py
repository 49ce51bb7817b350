"""One side of the comparison: a process with the package of one checkout that answers requests line by line.

It imports the package and the standard library alone, so that any checkout can be the other side.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import muniment

_TEXTS = (
    "I moved to {} in May and found a flat near the canal, two rooms, not cheap but quiet.",
    "Could you remind me what we decided in {} about the invoice from the printer last week?",
    "Sure. You wanted to wait for the corrected version from {} before paying the whole amount.",
    "She is vegetarian, her brother is not; book a table in {} for six at seven, outside if dry.",
)
_PLACES = ("Berlin", "Lisbon", "Osaka", "Leeds", "Austin", "Turin", "Ghent", "Porto", "Bergen", "Lyon", "Graz", "Bath")
_QUESTIONS = (
    "Where is the flat near the canal in {}?",
    "What did we decide about the invoice in {}?",
    "Who is vegetarian in {}?",
)
BATCH = 1000
SESSION = 200


def make_events(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Events with bodies of about 90 bytes."""
    return [
        {
            "role": "user" if number % 2 else "assistant",
            "content": f"{number}: " + _TEXTS[number % len(_TEXTS)].format(_PLACES[number // 7 % len(_PLACES)]),
        }
        for number in range(start, start + count)
    ]


def question(number: int) -> str:
    return _QUESTIONS[number % len(_QUESTIONS)].format(_PLACES[number % len(_PLACES)])


def fill(target: str, count: int, users: int) -> None:
    """Write `count` events, divided evenly among `users`, in sessions of 200."""
    with muniment.open(target) as mem:
        share = count // users
        for user in range(users):
            for start in range(0, share, SESSION):
                run = mem.run(user_id=f"user-{user}", session_id=f"s-{user}-{start}")
                run.observe_many(make_events(min(SESSION, share - start), user * share + start))


def disk_bytes(target: str) -> int:
    """Bytes of a SQLite store's files."""
    return sum(os.path.getsize(target + end) for end in ("", "-wal") if os.path.exists(target + end))


class Side:
    """The store of one checkout, and what is measured on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mem: muniment.Memory | None = None

    def write(self, *, count: int, batch: int, number: int) -> dict[str, float]:
        """Seconds to write events in batches into a new store, until it is closed; and the bytes it takes."""
        target = str(self._folder / f"write-{batch}-{number}.db")
        events = make_events(count)
        with muniment.open(target) as mem:
            run = mem.run(user_id="ana", session_id="s1")
            run.observe("user", "first")
        empty = disk_bytes(target)
        mem = muniment.open(target)
        run = mem.run(user_id="ana", session_id="s1", run_id=run.run_id)

        def work() -> None:
            if batch == 1:
                for event in events:
                    run.observe(event["role"], event["content"])
            else:
                for start in range(0, count, batch):
                    run.observe_many(events[start : start + batch])
            mem.close()

        seconds = _clocked(work)
        return {"seconds": seconds, "bytes": (disk_bytes(target) - empty) / count}

    def open(self, *, target: str, count: int, users: int) -> dict[str, float]:
        """Fill a store and keep it open for what follows."""
        target = target or str(self._folder / f"open-{count}-{users}.db")
        fill(target, count, users)
        self._mem = muniment.open(target)
        self._target = target
        self._run = self._mem.run(user_id="user-0", session_id="now")
        self._run.observe("user", "Hello again.")
        self._run.compose("responder", query=question(0), max_tokens=1024)
        return {"bytes": disk_bytes(target) if "://" not in target else 0}

    def compose_after_write(self, *, number: int) -> dict[str, float]:
        event = make_events(1, number)[0]
        self._run.observe(event["role"], event["content"])
        seconds = _clocked(lambda: self._run.compose("responder", query=question(number), max_tokens=1024))
        return {"seconds": seconds}

    def search(self, *, number: int) -> dict[str, float]:
        return {"seconds": _clocked(lambda: self._run.search(question(number)))}

    def bytes_of_composes(self, *, count: int) -> dict[str, float]:
        """How much a store grows by a compose."""
        self._reopen()
        before = disk_bytes(self._target)
        for number in range(count):
            self._run.compose("responder", query=question(number), max_tokens=1024)
        self._reopen()
        return {"bytes": (disk_bytes(self._target) - before) / count}

    def forget_one(self, *, number: int) -> dict[str, float]:
        event = self._run.observe("user", f"The code of gate {number} is {number * 7919}.")
        assert self._mem is not None
        mem = self._mem
        return {"seconds": _clocked(lambda: mem.forget(event=event.id))}

    def verify(self) -> dict[str, float]:
        """Memory that a verify takes beyond what the process held before."""
        assert self._mem is not None
        before = _peak_mib()
        seconds = _clocked(self._check)
        return {"seconds": seconds, "mib": _peak_mib() - before}

    def close(self) -> dict[str, float]:
        if self._mem is not None:
            self._mem.close()
        self._mem = None
        return {}

    def _check(self) -> None:
        assert self._mem is not None
        if not self._mem.verify().ok:
            raise SystemExit("the store does not verify")

    def _reopen(self) -> None:
        assert self._mem is not None
        self._mem.close()
        self._mem = muniment.open(self._target)
        self._run = self._mem.run(user_id="user-0", session_id="now", run_id=self._run.run_id)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _clocked(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
    for line in sys.stdin:
        request = json.loads(line)
        yield request.pop("work"), request


def main() -> None:
    side = Side(Path(sys.argv[1]))
    print(json.dumps({"package": str(Path(muniment.__file__).parent)}), flush=True)
    for work, arguments in _requests():
        print(json.dumps(getattr(side, work)(**arguments)), flush=True)


if __name__ == "__main__":
    main()
