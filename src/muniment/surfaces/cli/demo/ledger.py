"""The end of the demo: what the ledger beneath can prove, carry elsewhere, and forget."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from muniment.surfaces.cli.terminal import counted, echo, style

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.packets.builds import Build

__all__ = ["show_ledger"]


def show_ledger(mem: Memory, path: Path, build: Build, event_id: str) -> None:
    """Tamper with it, move it, forget from it."""
    echo()
    echo(style("7 · The ledger beneath can be proven, moved, and made to forget", bold=True))
    _prove(mem, path)
    _move(mem, build)
    _forget(mem, path, build, event_id)


def _say(text: str) -> None:
    echo(f"  {text}")


def _prove(mem: Memory, path: Path) -> None:
    report = mem.verify()
    events, sessions = counted(report.entries, "event"), counted(report.sessions, "session")
    _say(f"proof      {events} in {sessions}, every hash chain holds: {report.ok}")
    swap = """
        UPDATE entries SET body = replace(body, ?, ?)
        WHERE session_id = (SELECT number FROM names WHERE name = 'moving') AND seq = 2
    """
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(swap, ("Berlin", "Munich"))
    broken = mem.verify().broken[0]
    _say(f"           somebody edits the file behind our back → {broken.session_id}, seq {broken.seq}: {broken.reason}")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(swap, ("Munich", "Berlin"))


def _move(mem: Memory, build: Build) -> None:
    from muniment.handles.memory import open as open_memory

    dump = list(mem.export())
    with open_memory(":memory:") as other:
        other.import_(lambda: dump)
        same = list(other.export()) == dump
        replayed = other.replay(build.id).packet_bytes == build.packet_bytes
    _say(f"moving     {len(dump)} lines → another engine → the same lines: {same}; the build replays there: {replayed}")


def _forget(mem: Memory, path: Path, build: Build, event_id: str) -> None:
    from muniment.errors import Forgotten

    receipt = mem.forget(user_id="ana")
    counts = ", ".join(f"{count} {name}" for name, count in receipt.counts.items())
    _say(f"forgetting receipt {receipt.receipt_id}: {counts}")
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    left = sum(word.encode() in data for word in ("Berlin", "花生", "지우", "dumplings", "vegetarian"))
    _say(f"           words of hers left in the bytes of the store: {left}")
    try:
        mem.replay(build.id)
    except Forgotten as error:
        _say(f"           the build is refused, and names the receipt: {error.details['receipt_id']}")
    is_forgotten = mem.ledger.get(event_id).is_forgotten
    _say(f"           the event is a tombstone: {is_forgotten}; the chains hold: {mem.verify().ok}")
