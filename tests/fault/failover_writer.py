"""Run by test_failover.py in processes of their own: writers that reconnect by themselves and repeat what broke off.

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
from typing import Any, Literal, cast

import muniment
from muniment.errors import NotFound, StorageFailure

__all__ = ["write"]


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


def _tell(acks: int, said: dict[str, Any]) -> None:
    os.write(acks, (json.dumps(said) + "\n").encode())


def _stdin_ended() -> bool:
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(ready) and not sys.stdin.read(1)


if __name__ == "__main__":
    target_, acks_, name_, durability_ = sys.argv[1:]
    write(target_, os.open(acks_, os.O_WRONLY | os.O_CREAT | os.O_APPEND), name_, durability_, _stdin_ended)
