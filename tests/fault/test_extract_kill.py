"""kill -9 at every transaction of a worker that has a model read what is pending: nothing is lost, nothing is doubled.

And several processes at once on one file: each turn is read by one of them.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from kill_extractor import TURNS, Model, policy
from kill_learner import ENDED

import muniment
from deployments import FreshStore, on
from warm_commands import run_script, start_script

EXTRACTOR = Path(__file__).parent / "kill_extractor.py"


def filled(target: str) -> None:
    with muniment.open(target) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        run.observe_many([{"role": "user", "content": text} for text in TURNS])


def finished(target: str, asked: Path) -> None:
    """Read to the end, however long a dead worker's claim holds; all is there, once."""
    deadline = time.monotonic() + 60
    with muniment.open(target, policy=policy(1)) as mem:
        while mem.extract_pending(model=Model(asked)).left:
            assert time.monotonic() < deadline, "the claim of a dead worker does not run out"
            time.sleep(0.05)
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()
        run = mem.run(user_id="ana")
        made = [each.value for each in run.memory.candidates() if each.proposed_by == "model:model"]
        assert sorted(made) == [f"number{at}" for at in range(len(TURNS))]
        assert sorted(fact.value for fact in run.facts("user.likes")) == sorted(made)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("MP-17", "LG-06")
@on("sqlite")
def test_a_worker_is_killed_at_each_transaction(
    fresh_store: FreshStore, tmp_path: Path, warm_place: str | None
) -> None:
    number, died = 1, 0
    while True:
        asked = tmp_path / f"{number}.asked"
        with fresh_store() as store:
            filled(store.target)
            moment = ("inside", "after")[number % 2]
            ended = run_script(warm_place, EXTRACTOR, store.target, str(number), moment, str(asked), "1")
            assert ended in (-signal.SIGKILL, ENDED)
            if ended == ENDED:
                break
            finished(store.target, asked)
        times = Counter(asked.read_text().splitlines())
        assert set(times) == set(TURNS)
        assert sum(times.values()) <= len(TURNS) + 2, "no more than the batch it died in is asked about again"
        number, died = number + 1, died + 1
    assert died >= 6, "a claim and its end for each of three batches"


@pytest.mark.slow
@pytest.mark.req("MP-17")
@on("sqlite")
def test_processes_that_share_a_store_share_the_work(
    fresh_store: FreshStore, tmp_path: Path, warm_place: str | None
) -> None:
    asked = tmp_path / "asked"
    with fresh_store() as store:
        filled(store.target)
        arguments = (store.target, "1000", "inside", str(asked), "600")
        workers = [start_script(warm_place, EXTRACTOR, *arguments) for _ in range(3)]
        assert [worker.wait(120) for worker in workers] == [ENDED] * 3
        finished(store.target, asked)
    assert Counter(asked.read_text().splitlines()) == Counter(TURNS)
