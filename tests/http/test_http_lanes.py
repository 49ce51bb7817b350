"""Who waits behind whom: a request behind those that have the threads, nobody behind long work, health behind none."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest
from http_support import ANA, TENANT, Serve

from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.surfaces.http.lanes.interpreter import set_interpreter
from muniment.surfaces.http.lanes.running import Lanes, _Job, _Turn
from muniment.surfaces.http.lanes.shares import Limits

WAIT_S = 30


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, cls: type, name: str) -> Iterator[Callable[[], bool]]:
    """A method that does not come back until the block is left; what is yielded waits until it has been called."""
    real, called, freed = getattr(cls, name), threading.Event(), threading.Event()

    @wraps(real)
    def hold(self: Any, *args: Any, **named: Any) -> Any:
        called.set()
        assert freed.wait(WAIT_S)
        return real(self, *args, **named)

    monkeypatch.setattr(cls, name, hold)
    try:
        yield lambda: called.wait(WAIT_S)
    finally:
        freed.set()


def test_nobody_waits_behind_long_work_that_somebody_waits_for(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    client = serve(threads=1)
    with ThreadPoolExecutor(1) as pool:
        with held(monkeypatch, Memory, "verify") as has_begun:
            long = pool.submit(client.post, f"{TENANT}/verify", json={})
            assert has_begun()
            said = client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "x"})
            assert said.status_code == 201
            assert not long.done()
        assert long.result().status_code == 200


def test_whether_it_is_alive_and_ready_is_answered_while_requests_wait(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.surfaces.http.lanes.running._WALL_SHARE", 0.0)  # who waits outside keeps its place
    client = serve(threads=1)
    assert client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "x"}).status_code == 201
    with ThreadPoolExecutor(2) as pool:
        with held(monkeypatch, Run, "search") as has_begun:
            first = pool.submit(client.post, f"{ANA}/search", json={"query": "x"})
            assert has_begun()
            behind = pool.submit(client.get, f"{ANA}/runs/r1/status")
            assert client.get("/v1/health").json() == {"status": "ok"}
            assert client.get("/v1/ready").json() == {"status": "ready"}
            assert not first.done()
            assert not behind.done(), "there is one thread, and it is taken"
        assert len(first.result().json()["items"]) == 1
        assert behind.result().status_code == 200


def test_long_requests_wait_for_quick_ones_and_not_for_ever() -> None:
    """At a place where they hold nothing, a moment each, and at most three times as long as they have run."""
    lanes = Lanes(Limits())
    job = _Job("t", "k u", "r", lane="long", started_s=time.monotonic() - 1)
    job.cancellation = _Turn(lanes, job, settles=True)
    job.cancellation.check(can_wait=True)
    assert job.paused_s == 0, "nobody is there to wait for"
    lanes._rank = 1  # a quick request runs
    lanes._calm[1].clear()
    job.cancellation.check()
    assert job.paused_s == 0, "it holds something"
    job.cancellation.check(can_wait=True)
    assert job.paused_s > 0
    job.started_s, job.paused_s = time.monotonic() - 10_000, 9_999.0  # nearly all the time since it began
    job.cancellation.check(can_wait=True)
    assert job.paused_s == 9_999.0, "it has its share too"
    job.paused_s, job.lane = 0.0, "quick"
    job.cancellation.check(can_wait=True)
    assert job.paused_s == 0
    lanes.close()


def test_a_long_request_gives_its_place_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for something outside, with one thread for quick requests: those behind it do not wait until its end."""
    client = serve(threads=1)
    assert client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "x"}).status_code == 201
    with ThreadPoolExecutor(1) as pool:
        with held(monkeypatch, Run, "search") as has_begun:
            first = pool.submit(client.post, f"{ANA}/search", json={"query": "x"})
            assert has_begun()
            assert client.get(f"{ANA}/runs/r1/status").status_code == 200
            assert not first.done()
            counts = client.app.state.lanes.snapshot()  # type: ignore[attr-defined]
            assert (counts["quick"].running, counts["long"].running) == (0, 1)
        assert first.result().status_code == 200


def test_only_a_server_sets_its_interpreter() -> None:
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    assert before == 0.005, "nothing that is imported does"  # what is frozen, tests/conftest.py froze, and it stays so
    try:
        set_interpreter()
        assert sys.getswitchinterval() == 0.0005
        assert gc.get_freeze_count() > 0
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*thresholds)
