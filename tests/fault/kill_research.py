"""Run by test_research_kill.py in a process of its own: a research run that is killed again and again, and goes on.

    python kill_research.py every FILE ROOT STRIDE            each call killed at its moments, each time from one state
    python kill_research.py again TARGET ROOT STRIDE SCHEMA   one run whose every process is killed a little later

A *moment* is just before the store is written, just before that is committed, just after, and just before each file is
synced, renamed or removed. Every process is forked, and ended by SIGKILL. Says at the end how many there were, as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from muniment.core.outside.system import CountingIds
from muniment.core.policy import Policy
from muniment.core.ports.engine import Engine
from muniment.errors import Conflict, StaleState
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.handles.study import Study
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import PAGES, QUESTION, TOOL_USE, draft_for, output_for

LIMITS = {"max_wave1_agents": 2, "max_wave2_agents": 1}
POLICY = Policy.from_wire({"research": {"perspectives_min": 2}})
Call = Callable[[Study, int], Any]


def _ingest(perspective_id: str) -> Call:
    return lambda study, at: study.ingest(
        perspective_id, output_for(perspective_id), tool_use=TOOL_USE, expected_revision=at
    )


CALLS: list[tuple[str, Call]] = [
    ("route", lambda study, at: study.route(expected_revision=at)),
    ("ingest", _ingest("p1")),
    ("reject", lambda study, at: study.ingest("p2", "Nothing.", expected_revision=at)),
    ("give up", lambda study, at: study.give_up("p2", "it says nothing", expected_revision=at)),
    ("pivot", lambda study, at: study.pivot(second_wave=True, expected_revision=at)),
    ("second wave", _ingest("p3")),
    ("supply", lambda study, _: study.supply(PAGES)),
    ("citations", lambda study, at: study.citations(expected_revision=at)),
    ("pack", lambda study, at: study.pack(expected_revision=at)),
    ("citations again", lambda study, at: study.citations(expected_revision=at)),
    ("pack again", lambda study, at: study.pack(expected_revision=at)),
    ("check", lambda study, at: study.check(draft_for(study.synthesis_input()), expected_revision=at)),
]
REVISIONS = [2, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 12]
"""Of the run after each call."""


class Deadly:
    """Counts moments, and ends the process at one of them."""

    def __init__(self, at: int) -> None:
        self.at, self.moment = at, 0

    def tick(self) -> None:
        self.moment += 1
        if self.moment == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, name: str) -> None:
        real = getattr(os, name)

        def watched(*args: Any, **more: Any) -> Any:
            self.tick()
            return real(*args, **more)

        setattr(os, name, watched)


class Watched:
    """An engine whose writes have moments."""

    def __init__(self, inner: Engine, deadly: Deadly) -> None:
        self.inner, self.deadly = inner, deadly

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, tenant_id: str, work: Callable[[Any], Any]) -> Any:
        def inside(tx: Any) -> Any:
            answer = work(tx)
            self.deadly.tick()
            return answer

        self.deadly.tick()
        answer = self.inner.write(tenant_id, inside)
        self.deadly.tick()
        return answer


class Store:
    def __init__(self, target: str, root: Path) -> None:
        self.target, self.root = target, root

    def open(self, seed: str, deadly: Deadly) -> Memory:
        """Clock and ids are the call's: who does it again says the same."""
        engine = open_engine(self.target)
        now = datetime(2026, 1, 1, tzinfo=UTC)
        context = new_context(
            engine=Watched(engine, deadly),  # type: ignore[arg-type]
            policy=POLICY,
            clock=lambda: now,
            ids=CountingIds(seed),
        )
        return Memory(context)

    def files(self) -> dict[str, bytes]:
        paths = sorted(path for path in (self.root / "dr_1").rglob("*") if path.is_file() and path.name != ".lock")
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in paths}

    def begin(self, mem: Memory) -> Study:
        try:
            return mem.research(QUESTION, user_id="ana", run_id="dr_1", limits=LIMITS, directory=self.root / "dr_1")
        except Conflict:
            return mem.open_research("dr_1")

    def do(self, number: int, deadly: Deadly, attempt: int = 0) -> None:
        """The call of this number (-1: the start), as a process does that may be the second to try it."""
        name, call = CALLS[number] if number >= 0 else ("start", None)
        seed = f"c{number}a{attempt}" if name == "supply" else f"c{number}"  # documents are kept one by one
        with self.open(seed, deadly) as mem:
            if call is None:
                study = self.begin(mem)
            else:
                study = mem.open_research("dr_1")
                try:
                    call(study, REVISIONS[number - 1] if number else 1)
                except StaleState:  # it was through, and its process was not
                    assert study.manifest().revision == REVISIONS[number]
            if study.status().edited or (study.directory / ".pending").exists():
                study.resume()

    def check(self) -> None:
        with self.open("check", Deadly(0)) as mem:
            assert mem.verify().ok
            assert mem.store.rebuild().repaired == ()


def forked(work: Callable[[Deadly], None], at: int) -> int:
    """Do it in a process that dies at this moment (0: it does not). The signal or status it ended with."""
    child = os.fork()
    if child == 0:
        deadly = Deadly(at)
        for name in ("replace", "fsync", "unlink", "rmdir"):
            deadly.watch(name)
        try:
            work(deadly)
        except BaseException:  # noqa: BLE001 - the child ends here, whatever it was
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the process ended with {status}"
    return status


def warm_up(root: Path) -> None:
    """What the story imports and compiles is there before the first fork."""
    store = Store(str(root / "warm.db"), root / "warm")
    store.root.mkdir()
    for number in range(-1, len(CALLS)):
        store.do(number, Deadly(0))
    store.check()


def whole(store: Store) -> list[dict[str, bytes]]:
    """The files after each call of a run that nobody interrupts."""
    seen: list[dict[str, bytes]] = []
    for number in range(-1, len(CALLS)):
        forked(lambda deadly, number=number: store.do(number, deadly), 0)
        seen.append(store.files())
    store.check()
    return seen


def every(target: str, root: Path, stride: int) -> int:
    """Each call from one and the same state, killed at its n-th moment, and done again by another process."""
    store = Store(target, root)
    expected = whole(store)
    _clear(store)
    kills = 0
    for number in range(-1, len(CALLS)):
        before = root / "before"
        shutil.rmtree(before, ignore_errors=True)
        _copy(store, before)
        at = 1 + (number % stride)
        while forked(lambda deadly, number=number: store.do(number, deadly), at) != 0:
            kills += 1
            forked(lambda deadly, number=number: store.do(number, deadly, attempt=1), 0)
            assert store.files() == expected[number + 1], (CALLS[number][0], at)
            if kills % 10 == 0:
                store.check()
            _clear(store)
            _copy_back(before, store)
            at += stride
        assert store.files() == expected[number + 1]
    store.check()
    return kills


def again(target: str, root: Path, stride: int) -> int:
    """Each process comes a little further than the last, until one is through."""
    undisturbed = Store(str(root / "undisturbed.db"), root / "undisturbed")
    undisturbed.root.mkdir()
    expected = whole(undisturbed)
    store = Store(target, root / "killed")
    store.root.mkdir()
    kills = 0
    for number in range(-1, len(CALLS)):
        at, attempt = 1 + (number % stride), 0
        while forked(lambda deadly, n=number, a=attempt: store.do(n, deadly, a), at) != 0:
            kills += 1
            at, attempt = at + stride, attempt + 1
        assert _alike(store.files()) == _alike(expected[number + 1]), CALLS[number][0]
    store.check()
    return kills


def _alike(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path.partition("/")[2]: data for path, data in files.items()}


def _clear(store: Store) -> None:
    shutil.rmtree(store.root / "dr_1", ignore_errors=True)
    for suffix in ("", "-wal", "-shm"):
        Path(store.target + suffix).unlink(missing_ok=True)


def _copy(store: Store, to: Path) -> None:
    to.mkdir()
    if (store.root / "dr_1").exists():
        shutil.copytree(store.root / "dr_1", to / "dr_1")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(store.target + suffix):
            shutil.copy(store.target + suffix, to / f"store{suffix}")


def _copy_back(kept: Path, store: Store) -> None:
    if (kept / "dr_1").exists():
        shutil.copytree(kept / "dr_1", store.root / "dr_1")
    for suffix in ("", "-wal", "-shm"):
        if (kept / f"store{suffix}").exists():
            shutil.copy(kept / f"store{suffix}", store.target + suffix)


if __name__ == "__main__":
    how, target, root, stride = sys.argv[1:]
    warm_up(Path(root))
    killed = (every if how == "every" else again)(target, Path(root), int(stride))
    print(json.dumps({"kills": killed}))
