"""Who waits behind whom: a request behind those that have the threads, nobody behind long work, health behind none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest
from http_support import ANA, TENANT, Serve

from muniment.handles.memory import Memory
from muniment.handles.run import Run

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
