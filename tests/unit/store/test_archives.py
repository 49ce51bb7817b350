"""Cold sessions in archives outside the store: found, cited, verified, exported, forgotten and brought back (LG-16)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import muniment
from effort import SOAK
from muniment.core.outside.object_opening import open_objects
from muniment.core.outside.system import TickingClock
from muniment.core.ports.objects import ObjectStore, Removal
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES, OBJECTS
from muniment.errors import Conflict, InvalidInput, NoObjectsKey, ObjectsUnavailable, StoreDamaged, UnknownScope
from muniment.handles.memory import Memory
from muniment.store.objects.view import near

pytestmark = pytest.mark.soak

Opener = Callable[..., Memory]
LARGE = "The cartographer drew the coast again and again. " * 2000


ENGINES = ("memory", "sqlite", "postgres")
DEPLOYMENTS = [
    *((engine, "folder") for engine in ENGINES),
    *((engine, "s3") for engine in (ENGINES if SOAK else ("sqlite",))),
]
"""Every engine with a folder, one of them with a server; under a soak all of them."""


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the objects of the store lie."""
    if "deployment" in request.fixturenames and request.getfixturevalue("deployment")[1] == "s3":
        return str(request.getfixturevalue("room").url(request.getfixturevalue("bucket")))
    (tmp_path / "objects").mkdir()
    return (tmp_path / "objects").as_uri()


@pytest.fixture
def folder(url: str) -> ObjectStore:
    """The same place, looked into behind the store's back."""
    found = open_objects(url)
    assert found is not None
    return found


@pytest.fixture(params=DEPLOYMENTS, ids="-".join)
def deployment(request: pytest.FixtureRequest) -> tuple[str, str]:
    named: tuple[str, str] = request.param
    return named


@pytest.fixture
def opened(request: pytest.FixtureRequest, deployment: tuple[str, str], url: str, tmp_path: Path) -> Iterator[Opener]:
    target = {"memory": ":memory:", "sqlite": str(tmp_path / "a.db")}.get(deployment[0])
    if target is None:
        dsn, schema = request.getfixturevalue("postgres_dsn"), request.getfixturevalue("kept_postgres_schema")
        target = f"{dsn}{'&' if '?' in dsn else '?'}schema={schema}"
    with ExitStack() as stack:

        def open_(**more: Any) -> Memory:
            return stack.enter_context(muniment.open(target, **{"objects": url} | more))

        yield open_


@pytest.fixture
def mem(opened: Opener) -> Memory:
    made = opened()
    _talk(made)
    return made


def _talk(mem: Memory) -> None:
    for user_id, session_id in (("ana", "old"), ("ana", "new"), ("ben", "old")):
        run = mem.run(user_id=user_id, session_id=session_id)
        run.observe("user", f"{user_id} keeps the {session_id} lighthouse of Marseille.")
        run.observe("assistant", "Noted: a lighthouse.")
        run.observe_tool("weather", content=f"Storm over the {session_id} harbour of {user_id}.")
    mem.run(user_id="ana", session_id="old").observe("user", LARGE)


def files(folder: ObjectStore) -> list[str]:
    return sorted(each.key for each in folder.listed(""))


def archives(folder: ObjectStore) -> list[str]:
    return [key for key in files(folder) if "/archives/" in key]


def data_of(folder: ObjectStore, key: str) -> bytes:
    data = folder.get(key)
    assert data is not None
    return data


def bodies(mem: Memory) -> list[str]:
    """What the rows hold, of those archived or not."""
    rows = mem._ctx.engine.read("default", lambda reader: select(near(reader), ENTRIES))
    return [row.body or "" for row in rows]


def said(mem: Memory, session_id: str = "old", user_id: str = "ana") -> list[str]:
    found = mem.ledger.entries(user_id=user_id, session_id=session_id)
    return [mem.ledger.content(entry.id) for entry in found if entry.kind in ("message", "tool_result")]


def cold(mem: Memory) -> None:
    """As if another process read it."""
    mem._ctx.clear_caches()


@pytest.mark.soak
@pytest.mark.req("LG-16")
def test_an_archived_session_is_found_cited_resolved_and_verified(mem: Memory, folder: ObjectStore) -> None:
    before = said(mem)
    hits = [hit.id for hit in mem.run(user_id="ana").search("old lighthouse Marseille")]
    done = mem.store.archive(session="old", user_id="ana")
    assert (done.sessions, done.events) == (1, 4)
    assert len(archives(folder)) == 1
    assert len(files(folder)) == 2, "the large content has an object of its own"
    assert not [body for body in bodies(mem) if "ana keeps the old" in body], "no row holds it"
    cold(mem)
    assert said(mem) == before
    assert [hit.id for hit in mem.run(user_id="ana").search("old lighthouse Marseille")] == hits
    assert mem.run(user_id="ana").search("old lighthouse Marseille")[0].text.startswith("ana keeps the old")
    event = next(entry for entry in mem.ledger.entries(user_id="ana", session_id="old") if entry.kind == "message")
    pointer = {"event_id": event.id, "span": {"start": 0, "end": 9}}
    assert mem.ledger.resolve(pointer).text == "ana keeps"
    build = mem.run(user_id="ana", session_id="new").compose("responder", query="Who keeps the old lighthouse?")
    assert "ana keeps the old lighthouse" in build.text
    cold(mem)
    report = mem.verify()
    assert report.ok, report
    mem.store.rebuild()
    assert mem.verify().ok
    run = mem.run(user_id="ana", session_id="old")
    run.observe("user", "And the session goes on.")
    assert said(mem) == [*before, "And the session goes on."]
    assert mem.store.archive(session="old", user_id="ana").events == 1
    assert mem.store.archive(session="old", user_id="ana").events == 0
    assert said(mem)[-1] == "And the session goes on."
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.req("LG-16")
def test_a_dump_is_the_same_and_goes_in_anywhere(mem: Memory, tmp_path: Path) -> None:
    dump = list(mem.export(user_id="ana"))
    mem.store.archive(session="old", user_id="ana")
    cold(mem)
    assert list(mem.export(user_id="ana")) == dump
    with muniment.open(tmp_path / "inside.db") as other:
        other.import_(dump)
        assert said(other) == said(mem)


@pytest.mark.soak
@pytest.mark.req("LG-16")
def test_the_way_back_leaves_nothing_outside(mem: Memory, folder: ObjectStore) -> None:
    rows = bodies(mem)
    mem.store.archive(before="2100-01-01T00:00:00Z")
    assert len(archives(folder)) == 3
    done = mem.store.unarchive(session="old", user_id="ana")
    assert (done.sessions, done.events, done.left) == (1, 4, 0)
    assert len(archives(folder)) == 2
    assert mem.store.unarchive().sessions == 2
    assert archives(folder) == []
    assert sorted(bodies(mem)) == sorted(rows)
    mem.store.move_contents(back=True)
    assert files(folder) == []
    assert mem.verify().ok


@pytest.mark.req("LG-16")
def test_only_sessions_that_are_cold_are_taken(url: str) -> None:
    clock = TickingClock(datetime(2026, 1, 1, tzinfo=UTC))
    with muniment.open(objects=url, clock=clock) as mem:
        mem.run(user_id="ana", session_id="old").observe("user", "In January.")
        clock.set(datetime(2026, 6, 1, tzinfo=UTC))
        mem.run(user_id="ana", session_id="new").observe("user", "In June.")
        corpus = mem.corpus("docs")
        corpus.add("A page about lighthouses.", title="Lighthouses")
        steps: list[int] = []
        done = mem.store.archive(before="2026-03-01T00:00:00Z", progress=steps.append)
        assert (done.sessions, done.events, steps) == (1, 1, [1])
        assert mem.store.archive(before="2026-03-01T00:00:00Z").sessions == 0
        assert mem.store.archive(before="2027-01-01T00:00:00Z").sessions == 1, "documents are nobody's session"
        assert mem.verify().ok


# -- forgetting ---------------------------------------------------------------------------------------


def unpacked(folder: ObjectStore) -> bytes:
    return b"".join(zlib.decompress(data_of(folder, key)) for key in archives(folder))


@pytest.mark.req("LG-16", "LG-14")
def test_what_is_forgotten_leaves_its_archive(mem: Memory, folder: ObjectStore) -> None:
    mem.store.archive(session="old", user_id="ana")
    found = [entry for entry in mem.ledger.entries(user_id="ana", session_id="old") if entry.kind != "system"]
    (before,) = archives(folder)
    receipt = mem.forget(event=found[0].id)
    assert receipt.counts["objects"] == 1
    assert receipt.scrubbed or mem.info.name == "postgres", receipt.note
    assert before not in files(folder)
    assert b"ana keeps the old" not in unpacked(folder)
    assert b"Noted: a lighthouse." in unpacked(folder)
    cold(mem)
    assert mem.ledger.get(found[0].id).is_forgotten
    assert mem.ledger.content(found[1].id) == "Noted: a lighthouse."
    assert mem.verify().ok
    receipt = mem.forget(session="old", user_id="ana")
    assert receipt.counts["objects"] == 2, "the archive and the large content"
    assert files(folder) == []
    assert mem.verify().ok
    assert said(mem, user_id="ben")


@pytest.mark.soak
@pytest.mark.req("LG-16", "LG-14")
def test_an_archive_that_cannot_be_written_anew_is_in_the_receipt(mem: Memory, folder: ObjectStore) -> None:
    mem.store.archive(session="old", user_id="ana")
    found = [entry for entry in mem.ledger.entries(user_id="ana", session_id="old") if entry.kind == "message"]
    outside = mem._ctx.outside
    assert outside is not None
    real = outside.store

    class Refusing:
        location = "a bucket"
        get, listed = real.get, real.listed

        def put(self, key: str, data: bytes) -> None:
            raise ObjectsUnavailable("the object store did not do its part")

        def remove(self, key: str) -> Removal:
            raise ObjectsUnavailable("the object store did not do its part")

    outside.store = Refusing()  # type: ignore[assignment]
    first = mem.forget(event=found[0].id)
    second = mem.forget(event=found[1].id)
    for receipt in (first, second):
        assert receipt.counts["left_objects"]
        assert not receipt.scrubbed
    assert b"ana keeps the old" in unpacked(folder), "it is still there, and the receipt says so"
    outside.store = real
    done = mem.store.scrub()
    assert (done.due, done.receipts) == (False, 2)
    assert b"ana keeps the old" not in unpacked(folder)
    assert b"Noted" not in unpacked(folder)
    assert b"Storm over the old" in unpacked(folder)
    assert mem.verify().ok


class Crash(Exception):
    """The process ends here."""


@pytest.mark.soak
@pytest.mark.req("LG-16", "LG-12")
@pytest.mark.parametrize("place", ["put", "change"])
def test_a_crash_while_archiving_leaves_the_session_as_it_was(
    mem: Memory, folder: ObjectStore, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = mem._ctx.outside
    assert outside is not None
    before = bodies(mem)

    def crash(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        if place == "put":
            patch.setattr(outside.store, "put", crash)
        else:
            patch.setattr("muniment.store.objects.archiving.take_up", crash)
        with pytest.raises(Crash):
            mem.store.archive(session="new", user_id="ana")
    assert bodies(mem) == before
    assert "left_objects" not in mem.forget(session="new", user_id="ana").counts
    assert archives(folder) == [], "what the crash left does not outlive the forget"
    assert mem.verify().ok


@pytest.mark.req("LG-16")
@pytest.mark.parametrize("when", ["before the put", "after the put"])
@pytest.mark.parametrize("session", ["new", "old"])
def test_what_is_forgotten_while_it_is_archived_is_not_archived(
    mem: Memory, folder: ObjectStore, when: str, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old session has a large content besides, which goes out first."""
    mem.store.move_contents(back=True)
    outside = mem._ctx.outside
    assert outside is not None
    put = outside.store.put

    def slow(key: str, data: bytes) -> None:
        monkeypatch.setattr(outside.store, "put", put)
        if when == "after the put":
            put(key, data)
        mem.forget(session=session, user_id="ana")
        if when == "before the put":
            put(key, data)

    monkeypatch.setattr(outside.store, "put", slow)
    assert mem.store.archive(session=session, user_id="ana").events == 0
    assert files(folder) == [], "no copy of it outlives the forget"
    assert mem.verify().ok


@pytest.mark.req("LG-16", "LG-14")
def test_what_is_forgotten_while_its_archive_is_written_anew_is_in_no_copy(
    mem: Memory, folder: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.store.archive(session="new", user_id="ana")
    said_then = mem.ledger.entries(user_id="ana", session_id="new")
    first, second = [entry.id for entry in said_then if entry.kind == "message"]
    outside = mem._ctx.outside
    assert outside is not None
    put = outside.store.put

    def slow(key: str, data: bytes) -> None:
        monkeypatch.setattr(outside.store, "put", put)
        mem.forget(event=second)
        put(key, data)

    monkeypatch.setattr(outside.store, "put", slow)
    mem.forget(event=first)
    mem.store.scrub()
    assert b"Noted" not in unpacked(folder)
    assert b"Storm over the new" in unpacked(folder)
    assert len(archives(folder)) == 1, "no copy is left that nobody names"
    assert mem.verify().ok


@pytest.mark.req("LG-16", "LG-14")
@pytest.mark.parametrize("what", ["missing", "altered", "locked"])
def test_a_session_whose_archive_is_lost_can_be_forgotten(opened: Opener, folder: ObjectStore, what: str) -> None:
    mem = opened(objects_key=(lambda: "5e" * 32) if what == "locked" else None)
    _talk(mem)
    mem.store.archive(session="new", user_id="ana")
    (key,) = archives(folder)
    if what == "locked":
        mem._ctx.outside.keys = None  # type: ignore[union-attr]
    elif what == "missing":
        folder.remove(key)
    else:
        folder.put(key, b"something else")
    cold(mem)
    receipt = mem.forget(session="new", user_id="ana")
    assert "left_objects" not in receipt.counts
    assert archives(folder) == []
    assert mem.store.attention(kind="scrub_due") == [] or mem.info.name == "postgres"
    cold(mem)
    if what != "locked":
        assert mem.verify().ok


# -- what goes wrong ----------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("LG-16")
@pytest.mark.parametrize("what", ["missing", "altered"])
def test_an_archive_that_is_not_what_it_was_is_named(mem: Memory, folder: ObjectStore, what: str) -> None:
    mem.store.archive(session="new", user_id="ana")
    entry = next(entry for entry in mem.ledger.entries(user_id="ana", session_id="new") if entry.kind == "message")
    (key,) = archives(folder)
    if what == "missing":
        folder.remove(key)
    else:
        folder.put(key, zlib.compress(b'{"muniment":"archive.v1","entries":{}}'))
    cold(mem)
    with pytest.raises(StoreDamaged) as caught:
        mem.ledger.content(entry.id)
    assert "its archive is missing or was altered" in caught.value.message
    assert caught.value.details["id"] == entry.id
    assert [link.reason for link in mem.verify().broken] == ["its archive is missing or was altered"]
    with pytest.raises(StoreDamaged):
        mem.store.unarchive(session="new", user_id="ana")
    assert said(mem), "other sessions are as they were"


@pytest.mark.req("LG-16", "LG-13")
def test_archives_are_encrypted_with_a_key(opened: Opener, folder: ObjectStore) -> None:
    mem = opened(objects_key=lambda: "5e" * 32)
    _talk(mem)
    mem.store.archive(before="2100-01-01T00:00:00Z")
    assert not [key for key in files(folder) if b"lighthouse" in data_of(folder, key)]
    with pytest.raises(zlib.error):
        unpacked(folder)
    cold(mem)
    assert said(mem)[0].startswith("ana keeps")
    assert mem.verify().ok
    mem._ctx.outside.keys = None  # type: ignore[union-attr]
    cold(mem)
    with pytest.raises(NoObjectsKey):
        said(mem)


@pytest.mark.req("LG-16", "LG-12")
def test_without_its_objects_the_store_says_what_it_lacks(opened: Opener) -> None:
    mem = opened()
    if mem.info.name == "memory":
        mem._ctx.outside = None
        with pytest.raises(Conflict):
            mem.store.archive(before="2100-01-01T00:00:00Z")
        return
    _talk(mem)
    mem.store.archive(session="old", user_id="ana")
    bare = opened(objects=None)
    assert said(bare, "new")
    for call, kind in (
        (lambda: said(bare), ObjectsUnavailable), (bare.verify, ObjectsUnavailable),
        (lambda: list(bare.export(user_id="ana")), ObjectsUnavailable), (bare.store.unarchive, Conflict),
    ):  # fmt: skip
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.path == "$.objects"


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, InvalidInput), ({"before": "yesterday"}, InvalidInput),
        ({"before": "2100-01-01T00:00:00Z", "session": "old"}, InvalidInput),
        ({"session": "old"}, InvalidInput), ({"session": "none"}, UnknownScope), ({"session": 3}, InvalidInput),
        ({"before": 17}, InvalidInput), ({"session": "old", "user_id": "zoe"}, UnknownScope),
    ],
)  # fmt: skip
def test_what_names_no_session_is_refused(
    folder: ObjectStore, url: str, given: dict[str, Any], kind: type[Exception]
) -> None:
    with muniment.open(objects=url) as mem:
        _talk(mem)
        with pytest.raises(kind):
            mem.store.archive(**given)
        assert archives(folder) == []
        rows = mem._ctx.engine.read("default", lambda reader: select(reader, OBJECTS))
        assert [row.use for row in rows] == ["blob"]
