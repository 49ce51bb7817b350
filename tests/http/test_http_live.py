"""Changes as they come: in order, taken up again without loss or double, to nobody else, ended when they should be."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_support import ANA, Serve, bearer

import muniment
from muniment.handles.memory import Memory
from muniment.surfaces.http import live
from muniment.surfaces.http._keys import KeyFile
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.serve import make_server
from muniment.surfaces.http.settings import ServerSettings

Start = Callable[..., str]


@contextmanager
def running(memory: Memory, **settings: Any) -> Iterator[str]:
    """The address of a server on a port of this machine; it ends in order."""
    server = make_server(memory, ServerSettings(port=0, **settings))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
    assert not thread.is_alive(), "the streams held the server"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(memory, …)`: the address of a server over the store."""
    with ExitStack() as stack:
        places = {"keys": str(tmp_path / "keys.json"), "research_dir": str(tmp_path / "research")}
        yield lambda memory, **settings: stack.enter_context(running(memory, **places | settings))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with muniment.open(tmp_path / "store.db") as mem:
        yield mem


class Listener:
    """Somebody with a stream open."""

    def __init__(self, address: str, **headers: str) -> None:
        self._stack = ExitStack()
        client = self._stack.enter_context(httpx2.Client(timeout=20))
        said = {"Accept": "text/event-stream"} | {name.replace("_", "-"): value for name, value in headers.items()}
        self.answer = self._stack.enter_context(client.stream("GET", address, headers=said))
        self._lines = self.answer.iter_lines()
        self.last_id = ""

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def next(self) -> tuple[str, dict[str, Any]] | None:
        """The next event; None where the stream has ended."""
        said: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name in ("event", "id", "data"):
                said[name] = value
            if not line and "data" in said:
                self.last_id = said.get("id", "")
                return said["event"], json.loads(said["data"])
        return None

    def until(self, is_enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """What was told of entries, until it is enough."""
        told: list[dict[str, Any]] = []
        while not is_enough(told):
            event = self.next()
            assert event is not None, f"the stream ended after {told}"
            assert event[0] in ("here", "changed"), event
            told += event[1].get("entries", [])
        return told


def numbers(told: list[dict[str, Any]], session: str = "s1") -> list[int]:
    """Every entry of a session that was told of."""
    of = [each for each in told if each["session_id"] == session and each["ledger"] == "user"]
    return [seq for each in of for seq in range(each["first_seq"], each["last_seq"] + 1)]


def up_to(last: int, session: str = "s1") -> Callable[[list[dict[str, Any]]], bool]:
    return lambda told: last in numbers(told, session)


# -- asking without a stream --------------------------------------------------------------------------


def test_what_is_new_after_a_position(any_store: Memory) -> None:
    run = any_store.run(user_id="ana", session_id="s1", run_id="r1", agent_id="a")
    run.observe("user", "one")
    here = any_store.ledger.changes(user_id="ana")
    assert here.is_empty
    said = run.observe("user", "two")
    run.remember("user.city", "Berlin", sources=[said.id])
    build = run.compose("responder", query="city?", max_tokens=512)
    run.finish("OBJECTIVE_ACHIEVED")
    new = any_store.ledger.changes(user_id="ana", after=here.position)
    (appended,) = new.entries
    assert (appended.session_id, appended.run_id, appended.first_seq) == ("s1", "r1", 3)
    assert appended.last_seq == sum(1 for _ in run.ledger.entries())
    assert appended.events[0] == "message"
    assert appended.events[-1] == "run_finished"
    assert [each.build_id for each in new.builds] == [build.id]
    assert any_store.ledger.changes(user_id="ana", after=new.position).is_empty
    assert "two" not in str(new)
    any_store.forget(event=said.id)
    gone = any_store.ledger.changes(user_id="ana", after=new.position)
    assert len(gone.receipts) == 1
    assert not any_store.ledger.changes(user_id="ana", after=gone.position).receipts


def test_a_position_is_exact_or_says_that_it_is_not(any_store: Memory) -> None:
    """With more sessions than a position names, written in whatever order: nothing is lost, nothing told twice."""
    runs = [any_store.run(user_id="ana", session_id=f"s{n}", run_id=f"r{n}") for n in range(20)]
    for run in runs:
        run.observe("user", "x")
    position = any_store.ledger.changes(user_id="ana").position
    counts = {f"s{n}": 2 for n in range(20)}
    for turn in range(12):
        written = [(turn * 7) % 20, (turn * 3 + 1) % 20]
        for n in written:
            runs[n].observe_many([{"role": "user", "content": "y"}] * (turn + 1))
        new = any_store.ledger.changes(user_id="ana", after=position)
        assert not new.reset
        for each in new.entries:
            assert each.first_seq == counts[each.session_id] + 1
            counts[each.session_id] = each.last_seq
        position = new.position
    for n in range(20):
        assert counts[f"s{n}"] == sum(1 for _ in runs[n].ledger.entries())


def test_what_cannot_be_told_exactly_is_a_reset(any_store: Memory) -> None:
    """A build as of a time long past comes in before those that are known: that it is new shows by their number."""
    run = any_store.run(user_id="ana", session_id="s1")
    run.observe("user", "x", ts="2020-01-01T00:00:00Z")
    run.compose("responder", query="x", max_tokens=512)
    position = any_store.ledger.changes(user_id="ana").position
    run.compose("responder", query="x", max_tokens=512, now="2020-06-01T00:00:00Z")
    new = any_store.ledger.changes(user_id="ana", after=position)
    assert new.reset
    assert not new.entries
    assert any_store.ledger.changes(user_id="ana", after=new.position).is_empty


def test_a_store_that_was_put_back_is_a_reset(tmp_path: Path, start: Start) -> None:
    """A position from after a backup was made, shown to the backup: there are fewer entries than it says were read."""
    with muniment.open(tmp_path / "new.db") as new, muniment.open(tmp_path / "old.db") as old:
        run = new.run(user_id="ana", session_id="s1", run_id="r1")
        run.observe("user", "x")
        old.import_(new.export)
        run.observe("user", "y")
        position = new.ledger.changes(user_id="ana").position
        told = old.ledger.changes(user_id="ana", after=position)
        assert (told.reset, told.more) == (True, False)
        assert old.ledger.changes(user_id="ana", after=told.position).is_empty
        with Listener(f"{start(old)}{ANA}/changes", Last_Event_ID=position) as stream:
            first = stream.next()
            assert first is not None
            assert first[0] == "reset"
            old.run(user_id="ana", session_id="s1", run_id="r1").observe("user", "z")
            assert numbers(stream.until(up_to(3))) == [3]


def test_a_position_of_somebody_else_is_refused(serve: Serve) -> None:
    client = serve()
    client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "x"})
    position = client.get(f"{ANA}/changes").json()["position"]
    other = client.get("/v1/tenants/default/users/bo/changes", params={"after": position})
    assert (other.status_code, other.json()["path"]) == (422, "$.after")
    for bad in ("", "x", "A" * 50, "é"):
        refused = client.get(f"{ANA}/changes", params={"after": bad})
        assert refused.status_code == 422, bad
    assert client.get("/v1/tenants/default/users/corpus:x/changes").status_code == 422


def test_many_entries_come_in_parts(memory: Memory) -> None:
    position = memory.ledger.changes(user_id="ana").position
    run = memory.run(user_id="ana", session_id="s1")
    run.observe_many([{"role": "user", "content": "x"}] * 700)
    told: list[int] = []
    while True:
        new = memory.ledger.changes(user_id="ana", after=position)
        told += [seq for each in new.entries for seq in range(each.first_seq, each.last_seq + 1)]
        position = new.position
        if not new.more:
            break
    assert told == list(range(1, 702))


# -- a stream -----------------------------------------------------------------------------------------


def test_a_stream_tells_in_order_and_is_taken_up_without_loss_or_double(start: Start, memory: Memory) -> None:
    run = memory.run(user_id="ana", session_id="s1", run_id="r1")
    run.observe("user", "before")
    url = start(memory) + ANA + "/changes"
    with Listener(url) as listener:
        assert listener.answer.headers["content-type"].startswith("text/event-stream")
        assert listener.next() == ("here", {"position": listener.last_id})
        for _ in range(5):
            run.observe("user", "x")
        told = listener.until(up_to(7))
        assert numbers(told) == [3, 4, 5, 6, 7]
        left_at = listener.last_id
    for _ in range(3):
        run.observe("user", "while nobody listened")
    with Listener(url, Last_Event_ID=left_at) as listener:
        run.observe("user", "after")
        assert numbers(listener.until(up_to(11))) == [8, 9, 10, 11]


def test_a_stream_is_taken_up_at_another_server(start: Start, memory: Memory, tmp_path: Path) -> None:
    run = memory.run(user_id="ana", session_id="s1", run_id="r1")
    run.observe("user", "before")
    with Listener(start(memory) + ANA + "/changes") as listener:
        listener.next()
        left_at = listener.last_id
    run.observe("user", "between")
    with (
        muniment.open(tmp_path / "store.db") as other,
        Listener(f"{start(other)}{ANA}/changes", Last_Event_ID=left_at) as listener,
    ):
        assert numbers(listener.until(up_to(3))) == [3]


def test_what_another_process_writes_is_told(start: Start, memory: Memory, tmp_path: Path) -> None:
    with Listener(start(memory) + ANA + "/changes") as listener:
        listener.next()
        code = (
            "import sys, muniment\n"
            "with muniment.open(sys.argv[1]) as mem:\n"
            "    run = mem.run(user_id='ana', session_id='s1', run_id='r1')\n"
            "    run.observe('user', 'from elsewhere')\n"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "store.db")], check=True)
        assert numbers(listener.until(up_to(2))) == [1, 2]


def test_the_store_of_each_engine_is_watched(start: Start, any_store: Memory) -> None:
    with Listener(start(any_store) + ANA + "/changes") as listener:
        listener.next()
        run = any_store.run(user_id="ana", session_id="s1", run_id="r1")
        run.observe("user", "x")
        assert numbers(listener.until(up_to(2))) == [1, 2]
        build = run.compose("responder", query="x", max_tokens=512)
        event = listener.next()
        assert event is not None
        assert event[1]["builds"] == [{"build_id": build.id, "run_id": "r1", "session_id": "s1"}]


@pytest.mark.req("LG-02")
def test_nothing_of_others_is_told(start: Start, memory: Memory) -> None:
    with Listener(start(memory) + ANA + "/changes") as listener:
        listener.next()
        receipts = []
        for tenant, user in (("default", "bo"), ("other", "ana"), ("other", "bo")):
            run = memory.run(tenant_id=tenant, user_id=user, session_id="theirs")
            entry = run.observe("user", "theirs")
            receipts.append(memory.forget(event=entry.id, tenant_id=tenant))
        memory.run(user_id="ana", session_id="s1").observe("user", "mine")
        event = listener.next()
        assert event is not None
        assert {each["session_id"] for each in event[1]["entries"]} == {"s1"}
        assert "receipts" not in event[1]
        position = base64.urlsafe_b64decode(listener.last_id + "=" * (-len(listener.last_id) % 4)).decode()
        assert "s1" in position
        assert not any(part in position for each in receipts for part in (each.receipt_id, each.requested_at))


@pytest.mark.req("LG-02")
def test_a_key_reads_its_own_and_ends_with_it(start: Start, memory: Memory, keys: KeyFile) -> None:
    url = start(memory, auth="on")
    ana = keys.create("ana", tenant="default", user="ana", access="read")
    for path, status in ((f"{url}{ANA}/changes", 401), (f"{url}/v1/tenants/default/users/bo/changes", 403)):
        headers = {"Accept": "text/event-stream"} | ({} if status == 401 else bearer(ana.token))
        assert httpx2.get(path, headers=headers).status_code == status
    with Listener(f"{url}{ANA}/changes", Authorization=f"Bearer {ana.token}") as listener:
        listener.next()
        memory.run(user_id="ana", session_id="s1").observe("user", "x")
        assert listener.next() is not None
        keys.revoke(ana.key.key_id)
        assert listener.next() is None


@pytest.fixture
def held_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Rebuilding does not end until this is set."""
    from muniment.store import verify as verifying

    release, real = threading.Event(), verifying.rebuild

    def slow(*args: Any) -> Any:
        release.wait(20)
        return real(*args)

    monkeypatch.setattr(verifying, "rebuild", slow)
    yield release
    release.set()


def begin_work(url: str, token: str) -> str:
    """The address of the events of some long work."""
    begun = httpx2.post(f"{url}/v1/tenants/default/rebuild", headers=bearer(token) | {"Prefer": "respond-async"})
    return f"{url}{begun.headers['location']}/events"


@pytest.mark.req("LG-02")
def test_the_progress_of_a_work_is_told_to_a_key_that_holds(
    start: Start, memory: Memory, keys: KeyFile, held_up: threading.Event
) -> None:
    url = start(memory, auth="on")
    gone, kept = (keys.create(name, tenant="default", access="admin") for name in ("gone", "kept"))
    events = begin_work(url, kept.token)
    with (
        Listener(events, Authorization=f"Bearer {gone.token}") as revoked,
        Listener(events, Authorization=f"Bearer {kept.token}") as follower,
    ):
        assert [revoked.next()[0], follower.next()[0]] == ["running", "running"]  # type: ignore[index]
        keys.revoke(gone.key.key_id)
        assert revoked.next() is None, "the work still runs; it is no longer told"
        held_up.set()
        told = follower.next()
        assert told is not None
        assert told[0] == "done"
        assert follower.next() is None
    assert httpx2.get(events, headers=bearer(gone.token)).status_code == 401


def test_who_follows_a_work_is_one_of_so_many_streams(
    start: Start, memory: Memory, keys: KeyFile, held_up: threading.Event
) -> None:
    url = start(memory, auth="on", streams_per_key_max=1)
    token = keys.create("k", tenant="default", access="admin").token
    events = begin_work(url, token)
    with Listener(events, Authorization=f"Bearer {token}") as follower:
        follower.next()
        refused = httpx2.get(events, headers=bearer(token))
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        held_up.set()
        assert follower.next()[0] == "done"  # type: ignore[index]


def test_a_work_is_told_to_its_end_while_the_server_stops(
    memory: Memory, tmp_path: Path, held_up: threading.Event
) -> None:
    with ExitStack() as stack:
        with running(memory, keys=str(tmp_path / "keys.json"), research_dir=str(tmp_path / "research")) as url:
            follower = stack.enter_context(Listener(begin_work(url, "none")))
            assert follower.next()[0] == "running"  # type: ignore[index]
            threading.Timer(0.5, held_up.set).start()
        assert follower.next()[0] == "done"  # type: ignore[index]


def test_so_many_streams_and_no_more(start: Start, memory: Memory, keys: KeyFile) -> None:
    url = start(memory, auth="on", streams_max=3, streams_per_key_max=2)
    one, two = (keys.create(name, tenant="default", access="read").token for name in ("one", "two"))
    headers = {"Accept": "text/event-stream"}
    with ExitStack() as stack:
        for token in (one, one, two):
            stack.enter_context(Listener(f"{url}{ANA}/changes", Authorization=f"Bearer {token}")).next()
        for token in (one, two):
            refused = httpx2.get(f"{url}{ANA}/changes", headers=headers | bearer(token))
            assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    for _ in range(100):  # a stream that was closed makes room, as soon as the server has noticed
        answer = httpx2.Client().send(
            httpx2.Request("GET", f"{url}{ANA}/changes", headers=headers | bearer(one)), stream=True
        )
        if answer.status_code == 200:
            break
        time.sleep(0.1)
    assert answer.status_code == 200
    answer.close()


class Held:
    """A caller at the application itself, who takes what is sent when the gate is open, and not before."""

    def __init__(self, app: Any, *headers: tuple[bytes, bytes]) -> None:
        self.gate = asyncio.Event()
        self.sent = b""
        scope = {"type": "http", "method": "GET", "path": f"{ANA}/changes", "raw_path": f"{ANA}/changes".encode(),
                 "query_string": b"", "headers": [(b"host", b"localhost"), (b"accept", b"text/event-stream"), *headers],
                 "asgi": {"spec_version": "2.3"}}  # fmt: skip
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, str]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await self.gate.wait()
        self.sent += message.get("body", b"")

    def entries(self) -> list[dict[str, Any]]:
        events = [json.loads(line[6:]) for line in self.sent.decode().splitlines() if line.startswith("data: ")]
        return [each for event in events for each in event.get("entries", [])]


async def soon(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come")


def test_a_reader_that_takes_nothing_holds_nobody_up(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The other goes on, no more than so much waits, and when it reads again it has missed nothing, told once."""
    monkeypatch.setattr(live, "WAITING_MAX", 2)
    monkeypatch.setattr(live, "POLL_S", 0.01)
    monkeypatch.setattr(live, "REST", 0)
    run = memory.run(user_id="ana", session_id="s1")

    async def watch() -> None:
        app = create_app(memory, ServerSettings(keys=str(tmp_path / "keys.json")))
        slow, quick = Held(app), Held(app)
        quick.gate.set()
        await soon(lambda: b"here" in quick.sent and len(app.state.live._streams) == 2)
        for turn in range(6):
            await asyncio.to_thread(run.observe, "user", "x")
            await soon(lambda turn=turn: turn + 2 in numbers(quick.entries()))  # type: ignore[misc]
        ((_, watched),) = app.state.live._watches.items()
        assert len(watched.streams) == 1, "who takes nothing is no longer waited for"
        slow.gate.set()
        await soon(lambda: 7 in numbers(slow.entries()))
        await asyncio.to_thread(run.observe, "user", "x")
        await soon(lambda: 8 in numbers(slow.entries()) and 8 in numbers(quick.entries()))
        assert numbers(slow.entries()) == numbers(quick.entries()) == list(range(1, 9))
        app.state.live.end()
        await asyncio.gather(slow.task, quick.task)
        assert not app.state.live._streams
        app.state.live.close()

    asyncio.run(watch())


def test_a_reader_that_takes_nothing_is_broken_off_at_the_end(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(live, "_GRACE_S", 0.01)

    async def watch() -> None:
        app = create_app(memory, ServerSettings(keys=str(tmp_path / "keys.json")))
        stuck = Held(app)
        await soon(lambda: len(app.state.live._streams) == 1)
        app.state.live.end()
        await stuck.task
        assert not app.state.live._streams
        app.state.live.close()

    asyncio.run(watch())


def test_a_reader_that_takes_nothing_is_broken_off_when_its_key_is_revoked(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, keys: KeyFile
) -> None:
    """Each look finds the key refused again; that does not put off the end."""
    monkeypatch.setattr(live, "_GRACE_S", 0.2)
    monkeypatch.setattr(live, "POLL_S", 0.01)
    monkeypatch.setattr(live, "REST", 0)
    made = keys.create("k", tenant="default")

    async def watch() -> None:
        app = create_app(memory, ServerSettings(auth="on", keys=str(keys.path)))
        stuck = Held(app, (b"authorization", f"Bearer {made.token}".encode()))
        await soon(lambda: len(app.state.live._streams) == 1)
        keys.revoke(made.key.key_id)
        await soon(stuck.task.done)
        assert not app.state.live._streams
        app.state.live.close()

    asyncio.run(watch())


def test_streams_end_with_the_watch(memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A defect leaves nobody with a stream that looks alive and tells nothing; who comes back is told again."""
    monkeypatch.setattr(live, "POLL_S", 0.01)

    def fail(_self: live.Live) -> None:
        raise OSError("nobody foresaw this")

    async def watch() -> None:
        app = create_app(memory, ServerSettings(keys=str(tmp_path / "keys.json")))
        with monkeypatch.context() as broken:
            broken.setattr(live.Live, "_end_the_refused", fail)
            told = Held(app)
            told.gate.set()
            await soon(told.task.done)
            assert isinstance(app.state.live._polling.exception(), OSError)
        again = Held(app)
        again.gate.set()
        await soon(lambda: b"here" in again.sent)
        await asyncio.to_thread(memory.run(user_id="ana", session_id="s1").observe, "user", "x")
        await soon(lambda: 2 in numbers(again.entries()))
        app.state.live.end()
        await again.task
        app.state.live.close()

    asyncio.run(watch())


def test_streams_end_when_the_server_does(memory: Memory, tmp_path: Path) -> None:
    """`running` fails where the server waits for them."""
    with running(memory, keys=str(tmp_path / "keys.json"), shutdown_seconds=60) as url:
        listener = Listener(f"{url}{ANA}/changes")
        listener.next()
    with listener:
        assert listener.next() is None
