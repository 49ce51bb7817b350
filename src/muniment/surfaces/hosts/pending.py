"""Events that wait on disk until a hook that opens the store writes them.

A tool's result comes many times in a turn, and opening a store for each would cost the person who waits. Such an event
is put down as a file of its own, written whole or not at all; the next hook that has the store open anyway (the end of
the turn, the next prompt, the end of the session) writes it into the ledger and takes the file away afterwards. A file
that was written and not yet taken away is written once all the same, since its name is its key.

The files hold what the host said as it stands, so nobody else may read them. Only the standard library is loaded here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from time import time_ns
from typing import Any, NamedTuple

__all__ = ["Pending", "pending_folder", "put", "waiting"]

_AT_ONCE = 2_000
"""How many are taken up by one hook; what is left waits for the next."""


class Pending(NamedTuple):
    """An event that waits."""

    path: Path
    at_ns: int
    """When it happened, in nanoseconds since 1970."""
    tenant: str
    event: dict[str, Any]

    @property
    def key(self) -> str:
        return self.path.stem

    def done(self) -> None:
        self.path.unlink(missing_ok=True)


def pending_folder(home: Path, db: str) -> Path:
    """Where the events for a store wait: below the person's own folder of muniment, apart for each store."""
    return home / "pending" / sha256(db.encode()).hexdigest()[:16]


def put(folder: Path, tenant: str, event: Mapping[str, Any]) -> None:
    """Put an event down. Raises `OSError` where that cannot be done."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = time_ns()
    name = f"{now:020d}-{os.getpid()}-{os.urandom(4).hex()}"
    beside = folder / f"{name}.part"
    text = json.dumps({"tenant": tenant, "event": event}, ensure_ascii=True, separators=(",", ":"))
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(text)
    beside.replace(folder / f"{name}.json")


def waiting(folder: Path) -> Iterator[Pending]:
    """What waits, oldest first; a file that cannot be read is set aside under another name, and the rest goes on."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return
    for name in names[:_AT_ONCE]:
        read = _read(folder / name)
        if read is not None:
            yield read


def _read(path: Path) -> Pending | None:
    try:
        said = json.loads(path.read_bytes())
        return Pending(path, int(path.name.partition("-")[0]), str(said["tenant"]), dict(said["event"]))
    except FileNotFoundError:
        return None  # another hook was quicker
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        path.rename(path.with_suffix(".unreadable"))
        return None
