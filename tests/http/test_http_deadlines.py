"""Who is late is told so and has written nothing; who has gone is worked for no longer; too much is refused."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from http_support import ANA, TENANT, Serve, running
from starlette.requests import Request
from test_http_lanes import held

import muniment
from muniment.core.limits import CURRENT, Cancellation, cancellable, checkpoint
from muniment.core.ports.engine import Count, Engine, Op
from muniment.errors import DeadlineExceeded, InvalidInput, Stopped, StorageFailure
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.store.engines._sql import SqlReader
from muniment.surfaces.http import _calls as calls
from muniment.surfaces.http._guard import OPEN, Caller
from muniment.surfaces.http._keys import KeyFile
from muniment.surfaces.http.lanes.admission import how_long
from muniment.surfaces.http.lanes.deadlines import seconds_of
from muniment.surfaces.http.settings import ServerSettings
from products import for_each

WAIT_S = 30
SAID = {"role": "user", "content": "x"}
PATIENCE = (0.2, 2, 20)
"""Deadlines in seconds, the next where a slow machine did not come far enough within the one before."""


def until(happened: Callable[[], bool]) -> None:
    """Wait for another thread; fails after a long time."""
    for _ in range(WAIT_S * 100):
        if happened():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def idle(lanes: Any) -> bool:
    return not any(each.running or each.waiting for each in lanes.snapshot().values())


class Endless:
    """A search that reads one row after the other and never ends, and counts what it was allowed to read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads, self.reads_after = 0, 0
        self.began = threading.Event()
        endless = self

        @wraps(Run.search)
        def search(self: Run, *_: Any, **__: Any) -> Any:
            def read(reader: Any) -> None:
                while True:
                    was_stopped = getattr(CURRENT.get(), "is_stopped", False)
                    reader.do(Count("sessions"))
                    endless.reads += 1
                    endless.reads_after += was_stopped
                    endless.began.set()

            self._ctx.engine.read("default", read)

        monkeypatch.setattr(Run, "search", search)


# -- deadlines ----------------------------------------------------------------------------------------


def test_what_takes_too_long_is_stopped_on_every_engine(
    any_store: Memory, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(any_store)
    assert client.post(f"{ANA}/runs/r1/events", json=SAID).status_code == 201
    endless = Endless(monkeypatch)
    for seconds in PATIENCE:
        late = client.post(f"{ANA}/search", json={"query": "x"}, headers={"Prefer": f"wait={seconds}"})
        assert late.status_code == 504
        told = late.json()
        assert (told["code"], told["details"]) == ("deadline_exceeded", {"seconds": seconds})
        assert f"{seconds} seconds" in told["detail"]
        assert "nothing was written" in told["hint"]
        until(partial(idle, client.app.state.lanes))  # type: ignore[attr-defined]
        if endless.reads:
            break
    assert endless.reads > 0
    assert endless.reads_after == 0
    assert client.get(f"{ANA}/runs/r1/status").status_code == 200, "the store is as usable as before"


def test_a_write_that_is_late_writes_nothing_and_one_that_is_done_stands(
    any_store: Memory, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Just before its commit it is stopped, just after it no longer can be."""
    client, engine = serve(any_store), type(any_store._ctx.engine)
    assert client.post(f"{ANA}/runs/r1/events", json=SAID).status_code == 201
    real = engine.write
    waits_before = True

    def write(self: Engine, tenant_id: str, work: Callable[[Any], Any]) -> Any:
        cancellation = CURRENT.get()
        assert cancellation is not None

        def late(tx: Any) -> Any:
            answer = work(tx)
            if waits_before:
                until(lambda: cancellation.is_stopped)
            return answer

        answer = real(self, tenant_id, late)
        if not waits_before:
            assert not cancellation.stop(lambda: DeadlineExceeded("late"))
        return answer

    monkeypatch.setattr(engine, "write", write)
    ask = partial(client.post, f"{ANA}/runs/r1/events")
    late = ask(json={"role": "user", "content": "lost"}, headers={"Prefer": "wait=0.2"})
    assert (late.status_code, late.json()["code"]) == (504, "deadline_exceeded")
    until(partial(idle, client.app.state.lanes))  # type: ignore[attr-defined]
    waits_before = False
    done = ask(json={"role": "user", "content": "kept"})
    assert done.status_code == 201, "it was written, so it is not told to have failed"
    said = [entry.content for entry in any_store.ledger.entries(user_id="ana") if entry.content]
    assert [each for each in said if each in ("x", "lost", "kept")] == ["x", "kept"]


class Spin(Op[int]):
    """A statement that does not end."""


def statement(engine: Engine) -> str:
    if engine.info.name == "postgres":
        return "SELECT pg_sleep(600)"
    return "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


@pytest.mark.parametrize("any_store", ["sqlite", "postgres"], indirect=True)
def test_one_long_statement_is_broken_off(any_store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, cancellation = any_store._ctx.engine, Cancellation()
    any_store.run(user_id="ana", session_id="s1", run_id="r1").observe("user", "x")
    monkeypatch.setitem(SqlReader.ops, Spin, lambda view, _: view._fetch("sessions", statement(engine), ()))

    def spin() -> None:
        with cancellable(cancellation):
            engine.read("default", lambda reader: reader.do(Spin()))

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(spin)
        time.sleep(0.1)
        assert cancellation.stop(lambda: DeadlineExceeded("late"))
        for _ in range(100):
            cancellation.interrupt()
            if asked.done():
                break
            time.sleep(0.05)
        with pytest.raises(DeadlineExceeded):
            asked.result(WAIT_S)
    cancellation.interrupt()  # of nothing: whoever has the connection now is left alone
    assert engine.read("default", lambda reader: reader.do(Count("sessions"))) == 1


def test_stopping_and_committing_exclude_each_other() -> None:
    stopped, settled, many = Cancellation(), Cancellation(), Cancellation(settles=False)
    assert stopped.stop(lambda: Stopped("gone"))
    assert not stopped.stop(lambda: Stopped("gone")), "once"
    for look in (stopped.check, stopped.settle, lambda: stopped.begin(lambda: None)):
        with pytest.raises(Stopped):
            look()
    settled.settle()
    assert not settled.stop(lambda: Stopped("gone"))
    settled.check()
    many.settle()
    assert many.stop(lambda: Stopped("gone")), "between two commits"
    with cancellable(many), pytest.raises(Stopped):
        checkpoint()
    checkpoint()


def test_a_failure_that_is_none_of_ours_is_told_as_it_is(any_store: Memory) -> None:
    kept: list[Any] = []
    any_store._ctx.engine.read("default", kept.append)
    with cancellable(Cancellation()), pytest.raises(StorageFailure, match="ended"):
        kept[0].do(Count("sessions"))


# -- how long -----------------------------------------------------------------------------------------


@for_each(
    ("prefer", "seconds"),
    [
        ([], 30), (["wait=2"], 2), (["respond-async, wait=2"], 2), (["respond-async", "Wait = 2.5"], 2.5),
        (['wait="2"'], 2), (["wait=2; foo=bar"], 2), (["wait=600"], 30), (["handling=lenient"], 30),
        (["waiting=x"], 30),
    ],
)  # fmt: skip
def test_a_caller_asks_for_less(prefer: list[str], seconds: float) -> None:
    assert seconds_of(prefer, 30) == seconds
    assert seconds_of([], None) is None


BAD = ["wait", "wait=", "wait=0", "wait=0.000", "wait=-1", "wait=1e3", "wait=NaN", "wait=2s", "wait=1234567", "wait=٣",
       "wait=2, wait=3", "wait=1.2345", "wait=2 3", "wait==2"]  # fmt: skip


@for_each("prefer", BAD)
def test_what_is_no_time_is_refused_and_says_what_is_one(prefer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        seconds_of([prefer], 30)
    assert "wait=2" in refused.value.hint


def test_a_bad_time_is_refused_before_anything_is_done(serve: Serve) -> None:
    client = serve()
    refused = client.post(f"{ANA}/runs/r1/events", json=SAID, headers={"Prefer": "wait=soon"})
    assert (refused.status_code, refused.json()["path"]) == (422, "$.prefer")
    assert client.get(f"{ANA}/events").json()["items"] == []


def test_a_key_has_a_time_of_its_own(keys: KeyFile) -> None:
    made = keys.create("k", tenant="default", request_seconds_max=7)
    caller = Caller(made.key.key_id, "default", None, "write", request_seconds_max=made.key.request_seconds_max)
    request = Request({"type": "http", "headers": [(b"prefer", b"wait=600")]})
    settings = ServerSettings()

    class Asked:
        class found:
            class route:
                class operation:
                    is_long = False

    assert how_long(request, Asked, caller, settings)["seconds"] == 7  # type: ignore[arg-type]
    assert how_long(request, Asked, OPEN, settings)["seconds"] == settings.request_seconds_max  # type: ignore[arg-type]
    Asked.found.route.operation.is_long = True
    told = how_long(request, Asked, caller, settings)  # type: ignore[arg-type]
    assert (told["seconds"], told["settles"]) == (600, False), (
        "long work has what it needs, unless its caller says less"
    )


# -- queues -------------------------------------------------------------------------------------------


def test_a_tenant_whose_queue_is_full_is_told_when_to_come_back(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.surfaces.http.lanes.running._WALL_SHARE", 0.0)  # who waits outside keeps its place
    client = serve(threads=1, waiting_per_tenant_max=1)
    assert client.post(f"{ANA}/runs/r1/events", json=SAID).status_code == 201
    ask = partial(client.post, f"{ANA}/search", json={"query": "x"})
    with ThreadPoolExecutor(3) as pool:
        with held(monkeypatch, Run, "search") as has_begun:
            first = pool.submit(ask)
            assert has_begun()
            lanes = client.app.state.lanes  # type: ignore[attr-defined]
            waiting = pool.submit(client.get, f"{ANA}/runs/r1/status")
            until(lambda: lanes.snapshot()["quick"].waiting == 1)
            full = ask()
            assert (full.status_code, full.json()["code"]) == (429, "queue_full")
            assert int(full.headers["Retry-After"]) >= 1
            other = client.get("/v1/tenants/other/users", headers={"Prefer": "wait=0.1"})
            assert other.status_code == 504, "another tenant is let in, and waits"
            assert lanes.snapshot()["quick"].stopped == 1
        assert (first.result().status_code, waiting.result().status_code) == (200, 200)
    counted = client.app.state.lanes.snapshot()["quick"]  # type: ignore[attr-defined]
    assert counted.waiting == 0
    assert counted.started >= 2


# -- who has gone -------------------------------------------------------------------------------------


def request_bytes(method: str, path: str, body: Any = None, accept: str = "application/json") -> bytes:
    sent = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Memory]:
    with muniment.open(tmp_path / "store.db") as memory:
        memory.run(user_id="ana", session_id="s1", run_id="r1").observe("user", "x")
        yield memory


def test_nothing_is_read_for_who_has_gone(stored: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = Endless(monkeypatch)
    with running(stored, tmp_path) as url:
        with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), WAIT_S) as asking:
            asking.sendall(request_bytes("POST", f"{ANA}/search", {"query": "x"}))
            assert endless.began.wait(WAIT_S)
        muniment.connect(url).close()  # when this is answered, the loop has seen the other one go
        reads = -1
        while reads != endless.reads:
            reads = endless.reads
            time.sleep(0.05)
        assert endless.reads_after == 0


PARTS = 1_200
"""Events of 20,000 characters: several times what the buffers of two sockets may grow to."""


def test_a_stream_of_lines_ends_with_its_reader(
    stored: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stored.run(user_id="ana", session_id="s1", run_id="r1")
    run.observe_many([{"role": "user", "content": "y" * 20_000} for _ in range(PARTS)])
    made, chunked = [0], calls._chunked

    def counted(lines: Iterator[bytes]) -> Iterator[bytes]:
        for part in chunked(lines):
            made[0] += 1
            yield part

    monkeypatch.setattr(calls, "_chunked", counted)
    with running(stored, tmp_path) as url:
        with socket.socket() as asking:
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
            asking.settimeout(WAIT_S)
            asking.connect(("127.0.0.1", urlsplit(url).port or 0))
            asking.sendall(request_bytes("GET", f"{ANA}/events", accept="application/x-ndjson"))
            until(lambda: len(asking.recv(1 << 14)) > 0 and made[0] > 0)
        muniment.connect(url).close()
        seen = -1
        while seen != made[0]:
            seen = made[0]
            time.sleep(0.05)
        assert 0 < made[0] < PARTS * 20_000 // calls._CHUNK_BYTES // 2, "it stopped long before its end"


# -- the client ---------------------------------------------------------------------------------------


def test_the_client_raises_the_typed_error(stored: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Endless(monkeypatch)
    with running(stored, tmp_path) as url:
        with pytest.raises(DeadlineExceeded) as late, muniment.connect(url, deadline_s=0.2) as remote:
            remote.run(user_id="ana", session_id="s1", run_id="r1").search("x")
        assert late.value.details == {"seconds": 0.2}
        for wrong in (0, -1, float("nan"), 10**6):
            with pytest.raises(InvalidInput, match="deadline"):
                muniment.connect(url, deadline_s=wrong)


def test_a_line_that_comes_too_late_is_the_last_one(stored: Memory, serve: Serve) -> None:
    """A list that stalls midway: what was sent stands, and the last line says why it is not whole."""
    run = stored.run(user_id="ana", session_id="s1", run_id="r1")
    run.observe_many([{"role": "user", "content": "y" * 20_000} for _ in range(12)])
    client = serve(stored)
    real, left = calls.canonical_bytes, [0]

    def slow(plain: Any) -> bytes:
        left[0] -= 1
        if left[0] == 0:
            cancellation = CURRENT.get()
            assert cancellation is not None
            until(lambda: cancellation.is_stopped)
            checkpoint()
        return real(plain)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "canonical_bytes", slow)
        for seconds in PATIENCE:
            left[0] = 8
            accept = {"Accept": "application/x-ndjson", "Prefer": f"wait={seconds}"}
            lines = client.get(f"{ANA}/events", headers=accept).text.splitlines()
            if left[0] <= 0:
                break
    assert json.loads(lines[-1])["problem"]["code"] == "deadline_exceeded"
    assert 1 <= len(lines) - 1 <= 8
    assert client.get(f"{TENANT}/users").status_code == 200
