"""An agent that is stopped anywhere and resumed from a packet does nothing twice and obeys the newest order.

MUNIMENT_KILL_ROUNDS sets the number of stops in the process (default 8). `python -m benchmarks.kill` makes hundreds.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.kill.__main__ import stop_once
from benchmarks.kill._agent import FAMILIES, Outcome, Task

import muniment

AGENT = Path(__file__).parent / "kill_agent.py"
ROOT = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("MUNIMENT_KILL_ROUNDS", "8"))
RIGHT = Outcome(0, 0, 0, 0)


@pytest.mark.req("TM-02", "TM-17", "CS-12")
def test_an_agent_is_stopped_anywhere() -> None:
    found = {seed: stop_once(1000 + seed)[0] for seed in range(ROUNDS)}
    assert {seed: arms["ours"] for seed, arms in found.items()} == dict.fromkeys(range(ROUNDS), RIGHT)
    assert any(arms["last turns"] != RIGHT for arms in found.values()), "the last turns would have been enough"


@pytest.mark.req("TM-02", "TM-17", "CS-12")
def test_an_agent_is_killed(tmp_path: Path) -> None:
    """By SIGKILL, somewhere in the middle; another process goes on from a packet and ends where the task should end."""
    seed = 2 * len(FAMILIES)
    store, acts = tmp_path / "run.db", tmp_path / "acts"
    first = _start(store, acts, seed)
    wanted = random.Random(seed).randint(5, 9)
    deadline = time.monotonic() + 120
    while first.poll() is None and not (acts.exists() and acts.read_text("utf-8").count("done") >= wanted):
        assert time.monotonic() < deadline, "the agent did not begin"
        time.sleep(0.002)
    first.send_signal(signal.SIGKILL)
    assert first.wait(30) == -signal.SIGKILL, "the agent ended by itself"
    before = _done(acts)
    assert _start(store, acts, seed).wait(240) == 0
    done, task = _done(acts), Task(seed)
    assert max(done.values()) == 1, "something was done twice"
    assert before.keys() <= done.keys() <= set(task.items)
    newest = {item: order for _, order in task.orders for item in task.items if item in order}
    held = {item for item, order in newest.items() if order == task.family.hold.format(item)}
    assert set(task.items) - held <= done.keys(), "something was left undone"
    with muniment.open(store) as mem:
        assert mem.verify().ok


def _start(store: Path, acts: Path, seed: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    return subprocess.Popen([sys.executable, AGENT, store, acts, str(seed)], env=environment)


def _done(acts: Path) -> Counter[str]:
    lines = acts.read_text("utf-8").splitlines()
    return Counter(line.partition(" ")[2] for line in lines if line.startswith("done "))
