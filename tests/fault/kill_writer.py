"""Run by test_kill.py in a process of its own: writes to a store, and acknowledges each call after it has returned.

    python kill_writer.py TARGET ACKS SEED MODE

A line of ACKS is JSON: {"ids": [...], "contents": [...], "batch": name} or {"forgotten": user}. Each is written with
one `os.write`, after the call came back, so a line that is there was promised.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

import muniment
from muniment.handles.memory import Memory


def write(mem: Memory, acks: int, seed: int) -> None:
    """Events one by one, in batches, with and without blobs, for ever."""
    chance = random.Random(seed)
    run = mem.run(user_id="ana", session_id="s1")
    for number in range(10**9):
        name = f"{seed}-{number}"
        size = chance.choice([1, 1, 2, 7, 40])
        events = [
            {
                "role": "user",
                "content": f"{name}/{at} " + "x" * chance.choice([0, 10, 3000, 70_000 if at % 5 == 0 else 0]),
                "metadata": {"batch": name, "of": size},
            }
            for at in range(size)
        ]
        said = [run.observe(**events[0])] if size == 1 else run.observe_many(events)
        tell(
            acks,
            {"ids": [entry.id for entry in said], "contents": [event["content"] for event in events], "batch": name},
        )


def forget(mem: Memory, acks: int) -> None:
    for user in [f"u{number}" for number in range(1000)]:
        if not any(entry.body for entry in mem.ledger.entries(user_id=user)):
            continue
        tell(acks, {"begun": user})
        mem.forget(user_id=user)
        tell(acks, {"forgotten": user})


def warm_up() -> None:
    """Load what a first write loads, so that the moments in which this process is killed are moments of writing."""
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana")
        run.observe("user", "x" * 70_000, metadata={"batch": "b", "of": 1})
        run.observe_many([{"role": "user", "content": "x", "metadata": {"batch": "b", "of": 1}}])


def tell(acks: int, what: dict[str, Any]) -> None:
    os.write(acks, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    target, path, seed, mode = sys.argv[1:]
    acks = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with muniment.open(target) as mem:
        if mode == "write":
            warm_up()
        tell(acks, {"ready": os.getpid()})
        write(mem, acks, int(seed)) if mode == "write" else forget(mem, acks)
