"""Events that wait on disk until somebody who has the store open writes them.

A tool's result comes many times in a turn, and opening a store for each would cost the person who waits; and a host
that exits waits for nobody. Such an event is put down as a file of its own, written whole or not at all. A process of
its own, started at the end of a turn (`write_apart`), or the next hook that has the store open anyway writes it into
the ledger and takes the file away afterwards. A file that was written and not yet taken away is written once all the
same, since its name is its key.

The files hold what the host said as it stands, so nobody else may read them. Only the standard library is loaded here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import time_ns
from typing import Any, NamedTuple

__all__ = ["Pending", "pending_folder", "put", "the_only_writer", "waiting", "write_apart"]

_AT_ONCE = 2_000
"""How many are taken up by one hook; what is left waits for the next."""


class Pending(NamedTuple):
    """An event that waits."""

    path: Path
    at_ns: int
    """When it happened, in nanoseconds since 1970."""
    tenant: str
    event: dict[str, Any]
    user: str = ""
    """Whose it is and which agent told it; empty where an earlier version put it down."""
    agent: str = ""

    @property
    def key(self) -> str:
        return self.path.stem

    def done(self) -> None:
        self.path.unlink(missing_ok=True)

    def set_aside(self) -> None:
        """It will never be written: under another name it is there to be looked at, and in nobody's way."""
        with suppress(FileNotFoundError):  # another hook was quicker
            self.path.rename(self.path.with_suffix(".unreadable"))


def pending_folder(home: Path, db: str) -> Path:
    """Where the events for a store wait: below the person's own folder of muniment, apart for each store."""
    return home / "pending" / sha256(db.encode()).hexdigest()[:16]


def put(folder: Path, tenant: str, event: Mapping[str, Any], *, user: str, agent: str) -> None:
    """Put an event down. Raises `OSError` where that cannot be done."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = time_ns()
    name = f"{now:020d}-{os.getpid()}-{os.urandom(4).hex()}"
    beside = folder / f"{name}.part"
    told = {"tenant": tenant, "user": user, "agent": agent, "event": event}
    text = json.dumps(told, ensure_ascii=True, separators=(",", ":"))
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
        at_ns = int(path.name.partition("-")[0])
        whose = str(said.get("user", "")), str(said.get("agent", ""))
        return Pending(path, at_ns, str(said["tenant"]), dict(said["event"]), *whose)
    except FileNotFoundError:
        return None  # another hook was quicker
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        path.rename(path.with_suffix(".unreadable"))
        return None


def write_apart(command: Sequence[str]) -> None:
    """Start a process that outlives this one and its host. Where it is ended all the same, what waits is written by the
    next hook.
    """
    from subprocess import DEVNULL, Popen

    new: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":
        new = {"creationflags": 0x00000208}  # DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP
    Popen(list(command), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, close_fds=True, **new)


@contextmanager
def the_only_writer(folder: Path) -> Iterator[bool]:
    """False where another process writes already: it takes up what came meanwhile. True where locks are not known."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        yield True
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "writing.lock").open("w") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
