"""Writers that reconnect by themselves and repeat what broke off, and what they were told: in threads, or as processes:

    python failover_writer.py TARGET ACKS NAME DURABILITY

Each event has an idempotency key, under which it is sent until it is acknowledged; then one line of JSON is written to
ACKS with one `os.write`, and the event is read back, which must not miss it. It ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal, cast

import muniment
from muniment.errors import NotFound, StorageFailure

__all__ = ["Acks", "check", "write"]


def write(target: str, acks: int, name: str, durability: str, is_over: Any) -> None:
    """Write event after event, in a session of this writer's and in one that all share, until it is over."""
    with muniment.open(target, durability=cast("Literal['normal']", durability)) as mem:
        own, shared = (mem.run(user_id="ana", session_id=session) for session in (f"s-{name}", "s-shared"))
        number = 0
        while not is_over():
            number += 1
            key, tries = f"{name}-{number}", 0
            run = shared if number % 3 == 0 else own
            while True:
                tries += 1
                try:
                    entry = run.observe("user", f"{key} was said", idempotency_key=key)
                    break
                except StorageFailure as error:
                    _tell(acks, {"failed": error.code, "key": key})
                    if is_over():
                        return
                    time.sleep(0.05)
            _tell(acks, {"key": key, "id": entry.id, "tries": tries})
            try:
                mem.ledger.get(entry.id)
            except NotFound:
                _tell(acks, {"missed": entry.id, "key": key})
            except StorageFailure as error:
                _tell(acks, {"failed": error.code, "key": key})


class Acks:
    """What writers were told, from a file that they add to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def acknowledged(self) -> dict[str, str]:
        return {line["key"]: line["id"] for line in self.lines() if "id" in line}

    def count(self, name: str) -> int:
        return sum(key.rpartition("-")[0] == name for key in self.acknowledged())


def check(target: str, acks: Acks, *, lost: int) -> None:
    """Every acknowledged event is there once, in chains that hold; at most so many are not there at all."""
    acknowledged = acks.acknowledged()
    with muniment.open(target) as mem:
        report = mem.verify()
        assert report.ok, report
        entries = list(mem.ledger.entries(user_id="ana"))
    said = Counter(entry.content for entry in entries if entry.kind == "message")
    assert not [content for content, count in said.items() if count > 1], "written twice"
    there = {entry.id for entry in entries}
    missing = [key for key, id_ in acknowledged.items() if id_ not in there]
    assert len(missing) <= lost, f"{len(missing)} of {len(acknowledged)} acknowledged events are gone: {missing[:10]}"


def _tell(acks: int, said: dict[str, Any]) -> None:
    os.write(acks, (json.dumps(said) + "\n").encode())


def _stdin_ended() -> bool:
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(ready) and not sys.stdin.read(1)


if __name__ == "__main__":
    target_, acks_, name_, durability_ = sys.argv[1:]
    write(target_, os.open(acks_, os.O_WRONLY | os.O_CREAT | os.O_APPEND), name_, durability_, _stdin_ended)
