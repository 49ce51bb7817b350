"""Handles stay small: the verbs that most callers use, and further handles for the rest."""

from __future__ import annotations

import inspect
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import muniment
from muniment import aio
from muniment.handles.bank import Bank
from muniment.handles.memory import Memory
from muniment.handles.rulebook import Rulebook
from muniment.handles.run import Run
from muniment.surfaces.client import remote
from muniment.surfaces.operations.table import SUBHANDLES
from products import for_each

"""About as many as a reader takes in at a glance, and an editor shows on one screen."""
OWNERS: dict[str, tuple[type, type, type]] = {
    "memory": (Memory, aio.AsyncMemory, remote.RemoteMemory),
    "run": (Run, aio.AsyncRun, remote.RemoteRun),
}
"""Sync, async and over a connection."""
TO_COME = {Run: {"record", "summarize"}, Bank: {"add_lesson"}, Rulebook: {"advance"}}
"""Fixed names that are not there yet, for which there must be room."""

OPENED = """
import sys
import muniment
with muniment.open(sys.argv[1]) as mem:
    run = mem.run(user_id="ana")
    run.search("Where did I move?")
    assert not {"ledger", "log", "learning", "memory", "store"} & {*vars(run), *vars(mem)}
print(" ".join(sys.modules))
"""


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


@for_each("place", SUBHANDLES)
def test_further_handles_are_there_with_await_and_over_a_connection(place: str) -> None:
    owner, _, name = place.partition(".")
    sync, twin, far = OWNERS[owner]
    cls = SUBHANDLES[place]
    member = inspect.getattr_static(sync, name)
    assert isinstance(member, cached_property)
    assert member.func.__annotations__["return"] == cls.__name__
    assert member.__doc__
    assert name in public(twin)
    assert public(getattr(aio, f"Async{cls.__name__}")) == public(cls)
    asked: Any = inspect.getattr_static(far, name)
    assert asked is not member, "a connection has no store to make the handle of"


def test_a_further_handle_is_one_and_the_same() -> None:
    with muniment.open() as mem:
        run = mem.run(user_id="ana")
        for place in SUBHANDLES:
            owner, _, name = place.partition(".")
            handle = getattr({"memory": mem, "run": run}[owner], name)
            assert type(handle) is SUBHANDLES[place]
            assert getattr({"memory": mem, "run": run}[owner], name) is handle


def test_a_process_that_does_not_ask_for_one_does_not_load_it(tmp_path: Path) -> None:
    store = str(tmp_path / "agent.db")
    with muniment.open(store) as mem:
        mem.run(user_id="ana").observe("user", "I moved to Berlin in May.")
    done = subprocess.run([sys.executable, "-c", OPENED, store], capture_output=True, text=True, check=True, timeout=60)
    assert not {cls.__module__ for cls in SUBHANDLES.values()} & set(done.stdout.split())
