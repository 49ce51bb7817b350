"""An object store that answers late, or not at all, keeps nobody waiting but who asked for what lies there.

Nothing outside is asked while a transaction is open, on any engine: each call of the object store looks whether its
thread is in one. Then the same with a pool of two connections and a bucket that stands still.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import muniment
from deployments import url_of
from muniment.core.outside.object_folder import FolderObjects
from muniment.core.pointer import EventSpan, Span
from muniment.core.ports.objects import Listed, Removal
from muniment.errors import ObjectsUnavailable
from muniment.handles.memory import Memory
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.objects import fetching
from muniment.store.objects.view import OutsideEngine

LARGE = "The harbour master counts the boats at dusk. " * 60
POLICY = {"ledger": {"inline_bytes_max": 1000}}
WAIT_S = 60


class WatchedObjects:
    """A folder of objects. Notes each call that is made within a transaction, and can be held up."""

    def __init__(self, folder: Path) -> None:
        self._folder = FolderObjects(str(folder))
        self.engine: Any = None
        self.calls: list[str] = []
        self.within: list[str] = []
        self.waiting = threading.Semaphore(0)
        """Released by each call that is held up."""
        self.answers = threading.Event()
        self.answers.set()
        self.error: Exception | None = None

    @property
    def location(self) -> str:
        return self._folder.location

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.engine is not None and self.engine._turns.busy:
            self.within.append(name)
        if not self.answers.is_set():
            self.waiting.release()
            assert self.answers.wait(WAIT_S)
        if self.error is not None:
            raise self.error

    def put(self, key: str, data: bytes) -> None:
        self._called("put")
        self._folder.put(key, data)

    def get(self, key: str) -> bytes | None:
        self._called("get")
        return self._folder.get(key)

    def remove(self, key: str) -> Removal:
        self._called("remove")
        return self._folder.remove(key)

    def listed(self, prefix: str) -> Iterator[Listed]:
        self._called("listed")
        return self._folder.listed(prefix)


class Room:
    """A store, its object store, and another handle of the same store."""

    def __init__(self, mem: Memory, objects: WatchedObjects) -> None:
        self.mem = mem
        self.objects = objects
        objects.engine = self.engine

    @property
    def engine(self) -> Any:
        engine = self.mem._ctx.engine
        return engine.inner if isinstance(engine, OutsideEngine) else engine

    def unread(self) -> Memory:
        assert self.mem._ctx.outside is not None
        self.mem._ctx.clear_caches()
        self.objects.calls.clear()
        return self.mem


Opened = Callable[..., Room]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    (tmp_path / "objects").mkdir()
    with ExitStack() as stack:

        def target() -> str:
            if request.param == "postgres":
                schema = request.getfixturevalue("kept_postgres_schema")
                return url_of(request.getfixturevalue("postgres_dsn"), schema, pool_size=2)
            return ":memory:" if request.param == "memory" else str(tmp_path / "store.db")

        def open_(**more: Any) -> Room:
            objects = WatchedObjects(tmp_path / "objects")
            return Room(stack.enter_context(muniment.open(target(), objects=objects, policy=POLICY, **more)), objects)

        yield open_


def fill(mem: Memory, *, contents: int = 6, user_id: str = "ana", tenant_id: str = "default") -> list[str]:
    """Sessions with large contents, and one that is archived besides."""
    ids = []
    for number in range(contents):
        run = mem.run(user_id=user_id, session_id=f"s{number}", tenant_id=tenant_id)
        ids.append(run.observe("user", f"Boat {number}. {LARGE}").id)
        run.observe("assistant", f"Noted: boat {number} of the harbour.")
    mem.store.archive(session="s0", user_id=user_id, tenant_id=tenant_id)
    mem.store.archive(session="s1", user_id=user_id, tenant_id=tenant_id)
    return ids


CALLS: dict[str, Callable[[Memory, list[str]], Any]] = {
    "content": lambda mem, ids: mem.ledger.content(ids[2]),
    "archived": lambda mem, ids: mem.ledger.get(ids[0]),
    "session": lambda mem, ids: list(mem.ledger.entries(user_id="ana", session_id="s1")),
    "search": lambda mem, ids: mem.run(user_id="ana", session_id="new").search("harbour boats dusk"),
    "compose": lambda mem, ids: mem.run(user_id="ana", session_id="new").compose("responder", query="Which boats?"),
    "resolve": lambda mem, ids: mem.ledger.resolve(EventSpan(event_id=ids[3], span=Span(start=0, end=4))),
    "remember": lambda mem, ids: mem.run(user_id="ana", session_id="new").remember(
        "user.boat", "three", sources=[ids[3]]
    ),
    "forget event": lambda mem, ids: mem.forget(event=ids[1]),
    "forget session": lambda mem, ids: mem.forget(session="s0", user_id="ana"),
    "forget user": lambda mem, ids: mem.forget(user_id="ana"),
    "scrub": lambda mem, ids: mem.store.scrub(),
    "archive": lambda mem, ids: mem.store.archive(session="s2", user_id="ana"),
    "unarchive": lambda mem, ids: mem.store.unarchive(session="s1", user_id="ana"),
    "move back": lambda mem, ids: mem.store.move_contents(back=True),
    "sweep": lambda mem, ids: mem.store.sweep_objects(grace_hours=0),
    "rebuild": lambda mem, ids: mem.store.rebuild(),
    "write": lambda mem, ids: mem.run(user_id="ana", session_id="s0").observe("user", LARGE),
}


@pytest.mark.req("LG-18")
@pytest.mark.parametrize("call", CALLS)
def test_nothing_outside_is_asked_within_a_transaction(opened: Opened, call: str) -> None:
    room = opened()
    ids = fill(room.mem)
    mem = room.unread()
    CALLS[call](mem, ids)
    assert room.objects.within == []
    assert room.objects.calls or call in ("resolve", "remember", "scrub", "forget event")
    assert mem.verify().ok


def _in_use(room: Room) -> int:
    """Connections that calls hold; of the other engines none is counted."""
    engine = room.engine
    if not isinstance(engine, PostgresEngine):
        return 0
    stats = engine._pool.get_stats()
    return int(stats["pool_size"]) - int(stats["pool_available"])


STALLED: dict[str, Callable[[Memory, list[str]], Any]] = {
    name: CALLS[name] for name in ("content", "archived", "search", "compose", "forget session", "archive", "write")
} | {
    "export": lambda mem, ids: list(mem.export(user_id="ana")),
    "export memory": lambda mem, ids: list(mem.store.export_memory(user_id="ana")),
    "verify": lambda mem, ids: mem.verify(),
    "quick verify": lambda mem, ids: mem.verify(quick=True),
}


@pytest.mark.req("LG-18")
@pytest.mark.parametrize("call", STALLED)
def test_a_bucket_that_stands_still_keeps_no_other_user_waiting(opened: Opened, call: str) -> None:
    """Three at once wait for it, with a pool of two. Of long views two, which have a pool of their own."""
    many = 1 if call == "forget session" else 2 if call in ("export", "export memory", "verify", "quick verify") else 3
    room = opened()
    ids = fill(room.mem)
    mem = room.unread()
    room.objects.answers.clear()
    with ThreadPoolExecutor(3) as pool:
        going = [pool.submit(STALLED[call], mem, ids) for _ in range(many)]
        try:
            for _ in going:
                assert room.objects.waiting.acquire(timeout=WAIT_S)
            assert _in_use(room) == 0
            assert not any(each.done() for each in going)
            for number in range(5):
                other = mem.run(user_id="ben", session_id="s")
                other.observe("user", f"The lighthouse was painted {number} times.")
                assert other.search("lighthouse painted")
                assert other.compose("responder", query="How often was the lighthouse painted?").text
        finally:
            room.objects.answers.set()
        assert [each.exception() for each in going] == [None] * many
    assert mem.verify().ok


def test_a_long_view_of_a_slow_reader_keeps_nobody_waiting(opened: Opened) -> None:
    """Two who take their export in slowly, with a pool of two connections."""
    room = opened()
    fill(room.mem, contents=2)
    slow = [room.mem.export(user_id="ana") for _ in range(2)]
    for lines in slow:
        assert next(lines)
    assert _in_use(room) == 0
    room.mem.run(user_id="ben", session_id="s").observe("user", "The lighthouse was painted.")
    assert [len(list(lines)) for lines in slow] == [len(list(room.mem.export(user_id="ana"))) - 1] * 2


# -- how often, and how much --------------------------------------------------------------------------


@pytest.mark.soak
def test_a_call_that_reads_many_begins_anew_a_few_times(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    room = opened()
    for number in range(40):
        room.mem.run(user_id="ana", session_id=f"s{number}").observe("user", f"Boat {number}. {LARGE}")
    room.mem.store.archive(before="2100-01-01T00:00:00Z")
    begun: list[int] = []
    bring = fetching.Brought.bring

    def counted(held: fetching.Brought, wanted: Sequence[fetching.Wanted]) -> None:
        begun.append(len(wanted))
        bring(held, wanted)

    monkeypatch.setattr(fetching.Brought, "bring", counted)
    mem = room.unread()
    assert len(list(mem.ledger.entries(user_id="ana", kind="message"))) == 40
    assert room.objects.calls == ["get"] * 40, "no archive is fetched twice, and no content that nobody reads"
    assert len(begun) <= 8
    assert room.objects.within == []


def test_what_fails_to_come_is_told_once_and_by_its_own_error(opened: Opened) -> None:
    room = opened()
    ids = fill(room.mem)
    mem = room.unread()
    room.objects.error = ObjectsUnavailable("the bucket is away", path="$.objects")
    for call in ("content", "archived", "compose"):
        with pytest.raises(ObjectsUnavailable, match="the bucket is away"):
            CALLS[call](mem, ids)
        assert len(room.objects.calls) == 1, "a server that is down is not asked for each"
        room.objects.calls.clear()
    assert mem.run(user_id="ben", session_id="s").observe("user", "Short.").id
    room.objects.error = None
    assert mem.ledger.content(ids[2]).startswith("Boat 2")


def test_more_than_is_held_in_memory_is_read_all_the_same(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the transaction then, and one such call at a time."""
    room = opened()
    ids = fill(room.mem)
    expected = room.mem.run(user_id="ana", session_id="new").search("harbour boats dusk")
    monkeypatch.setattr(fetching, "HELD_BYTES_MAX", len(LARGE) * 2)
    mem = room.unread()
    found = mem.run(user_id="ana", session_id="new").search("harbour boats dusk")
    assert [hit.text for hit in found] == [hit.text for hit in expected]
    assert len(room.objects.within) < len(room.objects.calls)
    room.unread()
    room.objects.answers.clear()
    with ThreadPoolExecutor(3) as pool:
        going = [pool.submit(CALLS["search"], mem, ids) for _ in range(3)]
        for _ in going:
            assert room.objects.waiting.acquire(timeout=WAIT_S)
        room.objects.answers.set()
        assert all(len(each.result()) == len(expected) for each in going)


def test_an_archive_that_is_written_anew_meanwhile_is_no_damage(opened: Opened) -> None:
    """Between the look at where it lies and the fetching of it, another event of it is forgotten."""
    room = opened()
    run = room.mem.run(user_id="ana", session_id="s0")
    first, second = (run.observe("user", f"Boat {number} lies at the quay.").id for number in range(2))
    room.mem.store.archive(session="s0", user_id="ana")
    mem = room.unread()
    room.objects.answers.clear()
    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(lambda: mem.ledger.content(first))
        assert room.objects.waiting.acquire(timeout=WAIT_S)
        objects, room.objects.engine = room.objects._folder, None
        held = mem._ctx.outside
        assert held is not None
        held.store = objects  # the forget is not held up
        mem.forget(event=second)
        held.store = room.objects
        room.objects.answers.set()
        assert reading.result() == "Boat 0 lies at the quay."


@pytest.mark.req("LG-07")
def test_a_scrub_asks_a_bucket_that_is_away_once_and_not_for_each_tenant(opened: Opened) -> None:
    room = opened()
    for tenant in ("a", "b", "c"):
        fill(room.mem, contents=2, tenant_id=tenant)
    room.objects.error = ObjectsUnavailable("the bucket is away", path="$.objects")
    for tenant in ("a", "b", "c"):
        room.mem.forget(user_id="ana", tenant_id=tenant)
    room.objects.calls.clear()
    assert room.mem.store.scrub().due
    assert len(room.objects.calls) == 1
    room.objects.error = None
    report = room.mem.store.scrub()
    assert (report.due, report.receipts) == (False, 3)
    assert not any(room.mem.store.attention(kind="scrub_due", tenant_id=tenant) for tenant in ("a", "b", "c"))
