"""Run by test_tree_kill.py in a process of its own: searches, and kills itself (SIGKILL) at a call of its choice.

    python kill_searcher.py FILE NUMBER

Without a NUMBER it goes on to the end, and prints what it found and how many calls it took.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from itertools import count

import muniment
from muniment.rules.tree_search import TreeProblem, search_tree

GOAL = 1234


def main(path: str, number: int | None) -> None:
    calls = count(1)

    def counted(answer: object) -> object:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    problem = TreeProblem(
        root=1,
        expand=lambda state: counted([state * 2, state + 1, state + 7]),  # type: ignore[arg-type, return-value]
        verify=lambda state: counted(state == GOAL),
        score=lambda state: counted(1 / (1 + abs(GOAL - state))),  # type: ignore[arg-type, return-value]
    )
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s", run_id="r")
        found = search_tree(run, problem, policy={"checkpoint_answers": 8, "nodes_max": 200})
        print(json.dumps([found.way, found.block.to_wire(), found.resumed, next(calls) - 1]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
