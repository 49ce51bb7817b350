"""Run by test_graph_kill.py in a process of its own: a graph takes its steps, and dies at a transaction of its choice.

    python kill_grapher.py FILE NUMBER inside|after STEPS

It kills itself (SIGKILL) at the NUMBERth transaction that writes: before it is committed, or as soon as it is. With
more than there are, it ends by itself with 7. STEPS is a file that has a line for each step that was taken.
"""

from __future__ import annotations

import operator
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from kill_learner import ENDED, dying

import muniment

CONFIG: Any = {"configurable": {"thread_id": "t"}}
STEPS = ("first", "second", "third")


class Way(TypedDict):
    taken: Annotated[list[str], operator.add]


def graph(mem: muniment.Memory, told: Path) -> Any:
    from langgraph.graph import START, StateGraph

    from muniment.integrations.langgraph import MunimentSaver

    builder = StateGraph(Way)
    for before, name in zip((START, *STEPS), STEPS, strict=False):

        def step(_: Way, name: str = name) -> dict[str, list[str]]:
            with told.open("a") as file:
                file.write(f"{name}\n")
            return {"taken": [name]}

        builder.add_node(name, step)
        builder.add_edge(before, name)
    return builder.compile(checkpointer=MunimentSaver(mem))


if __name__ == "__main__":
    path, number, moment, told = sys.argv[1:]
    with muniment.open(path) as mem:
        engine: Any = mem._ctx.engine
        engine.write = dying(engine.write, int(number), moment)
        graph(mem, Path(told)).invoke({"taken": []}, CONFIG, durability="sync")
    sys.exit(ENDED)
