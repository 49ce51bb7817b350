"""Run by test_kill_anywhere.py in a process of its own: a scripted agent works on its task, from a packet or afresh.

    python kill_agent.py STORE ACTS SEED

ACTS is the world: a line for each act, written with one `os.write` before the agent records it. A run that is in the
store is resumed from a planner's packet of 2,048 tokens and nothing else.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.kill.__main__ import QUERY, TOKENS, write_turn
from benchmarks.kill._agent import Agent, Task, Turn, World

import muniment


class LoggedWorld(World):
    """A world that outlives the process."""

    def __init__(self, task: Task, acts: Path) -> None:
        super().__init__(task)
        self.log = os.open(acts, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        for line in acts.read_text("utf-8").splitlines():
            kind, _, item = line.partition(" ")
            if kind == "asked":
                self.asked += 1
            else:
                (self.done if kind == "done" else self.failed)[item] += 1

    def act(self, item: str) -> Turn:
        turn = super().act(item)
        os.write(self.log, f"{'done' if turn.ok else 'failed'} {item}\n".encode())
        return turn


def work(mem: muniment.Memory, world: LoggedWorld) -> None:
    is_known = bool(mem.runs())
    run = mem.resume("r").run if is_known else mem.run(user_id="ana", session_id="s", run_id="r", objective="go on")
    page = run.compose("planner", query=QUERY, max_tokens=TOKENS).text if is_known else ""

    def record(turn: Turn) -> None:
        write_turn(run, turn)
        if turn.role == "user":
            os.write(world.log, b"asked\n")

    Agent.resumed(world, page, record, newest_first=True).run()


if __name__ == "__main__":
    store, acts, seed = sys.argv[1:]
    with muniment.open(store) as mem:
        work(mem, LoggedWorld(Task(int(seed)), Path(acts)))
