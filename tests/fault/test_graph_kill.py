"""kill -9 at every transaction of a graph with a checkpointer: it goes on where it was, and nothing is done twice."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest.importorskip("langgraph", reason="the langgraph extra is not installed: pip install 'muniment[langgraph]'")

from kill_grapher import CONFIG, STEPS, graph
from kill_learner import ENDED

import muniment
from deployments import FreshStore, on
from effort import SOAK
from warm_commands import run_script

GRAPHER = Path(__file__).parent / "kill_grapher.py"


@pytest.mark.soak
@pytest.mark.slow
@on("sqlite")
def test_a_graph_that_is_killed_goes_on_where_it_was(
    fresh_store: FreshStore, tmp_path: Path, warm_place: str | None
) -> None:
    died = 0
    for number in range(1, 100) if SOAK else (2, 3, 7, 100):
        told = tmp_path / f"{number}.told"
        told.write_text("")
        with fresh_store() as store:
            moment = ("inside", "after")[number % 2]
            ended = run_script(warm_place, GRAPHER, store.target, str(number), moment, str(told))
            assert ended in (-signal.SIGKILL, ENDED)
            if ended == ENDED:
                break
            go_on(store.target, told)
        taken = told.read_text().split()
        assert sorted(set(taken)) == sorted(STEPS)
        assert len(taken) <= len(STEPS) + 1, "no more than the step it died in is taken again"
        died += 1
    assert died >= (6 if SOAK else 3), "a checkpoint and the writes of each step"


def go_on(target: str, told: Path) -> None:
    with muniment.open(target) as mem:
        assert mem.verify().ok
        resumed = graph(mem, told)
        is_begun = resumed.get_state(CONFIG).values != {} or resumed.get_state(CONFIG).next
        done = resumed.invoke(None if is_begun else {"taken": []}, CONFIG)
        assert done["taken"] == list(STEPS)
        assert mem.verify().ok
