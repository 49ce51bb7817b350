"""Loading in bulk: the bytes that event by event gives, all or nothing at the door, run again where it broke off."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from effort import SOAK
from muniment.core.outside.spool import Spool
from muniment.core.ports.engine import Count, KeyTaken
from muniment.core.ports.rows import texts
from muniment.core.ports.schema import ENTRIES
from muniment.errors import (
    DuplicateId,
    IdempotencyMismatch,
    InvalidInput,
    InvalidRecord,
    MunimentError,
    StorageBusy,
    TooLarge,
)
from muniment.handles.memory import Memory
from muniment.memory import index as indexing
from muniment.store import load as loading
from muniment.testing.hash_embedder import HashEmbedder
from products import for_each

Maker = Callable[..., Memory]
Counts = Callable[[Memory], dict[str, int]]
SCOPE = ("user_id", "agent_id", "session_id", "run_id")


class _SameIds:
    """Ids in order, and one salt for all: what is written does not depend on when a salt was drawn."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:06d}"

    def salts(self, count: int) -> list[bytes]:
        return [b"s" * 16] * count


def _noon() -> datetime:
    return datetime(2026, 5, 1, 12, tzinfo=UTC)


def _story(users: int = 7, turns: int = 130) -> list[dict[str, Any]]:
    """Events of several users, sessions, agents and runs, one after another in time, and of every form."""
    events: list[dict[str, Any]] = []
    for number in range(users * turns):
        user, at = number % users, number // users
        session = f"s{user}-{at // 70}"
        event: dict[str, Any] = {
            "user_id": f"user{user}",
            "session_id": session,
            "run_id": f"run-{session}-{at // 40}",
            "id": f"evt_{number}",
            "role": ("user", "assistant")[number % 2],
            "content": f"Turn {at} of {user}: the heron number {number} stands in the reeds near Bergen.",
            "ts": f"2026-04-{1 + at // 24:02d}T{at % 24:02d}:00:00Z",
            "idempotency_key": f"key-{number}",
        }
        if number % 41 == 0:
            event |= {"role": "tool", "tool": {"name": "look", "ok": number % 82 != 0, "args": {"at": number}}}
        elif number % 43 == 0:
            event |= {"role": "system", "content": "Be brief."}
        elif number % 47 == 0:
            event["content"] = "My key is sk-proj-abcdefghijklmnopqrstuvwx0123456789ABCDEFGHIJ, keep it."
        elif number % 301 == 5:
            event["content"] = f"A long page of {number}. " * 6000
        events.append(event)
    return events


def _in_order(events: list[dict[str, Any]], folder: Path) -> Iterator[dict[str, Any]]:
    """The order in which a load comes to them: the sessions one after another, each as it was given."""
    folder.mkdir()
    spool = Spool(folder)
    for event in events:
        spool.add(event["user_id"], event["session_id"], event)
    return (each.record for each in spool.read())


def _observed(mem: Memory, events: Iterator[dict[str, Any]]) -> None:
    for event in events:
        names = {name: event[name] for name in SCOPE if name in event}
        mem.run(**names).observe_many([{name: value for name, value in event.items() if name not in SCOPE}])


@pytest.mark.req("BL-01")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"] if SOAK else ["sqlite"])
def test_a_load_gives_the_bytes_that_event_by_event_gives(make: Maker, tmp_path: Path, engine: str) -> None:
    """Dumps are equal to the byte: chains, hashes, ids, items, links, blobs, keys; and so is what a search finds."""
    events = _story()
    at_once, one_by_one = (make(engine, ids=_SameIds(), clock=_noon) for _ in range(2))
    report = at_once.store.load(events)
    _observed(one_by_one, _in_order(events, tmp_path / "order"))
    assert (report.events, report.written, report.waiting) == (len(events), len(events), 0)
    assert report.sessions == len({event["session_id"] for event in events})
    assert list(at_once.export()) == list(one_by_one.export())
    for mem in (at_once, one_by_one):
        assert mem.verify().ok
    for user in ("user0", "user3"):
        for query in ("heron number 91", "where do herons stand", "what is my key"):
            found = [
                [(hit.id, hit.score) for hit in mem.run(user_id=user).search(query)] for mem in (at_once, one_by_one)
            ]
            assert found[0] == found[1]
            assert found[0]
        episodes = [list(mem.ledger.episodes(user_id=user)) for mem in (at_once, one_by_one)]
        assert episodes[0] == episodes[1]
        packets = [
            mem.run(user_id=user, session_id="next", run_id="r").compose("responder", query="the heron").packet
            for mem in (at_once, one_by_one)
        ]
        assert packets[0].to_wire() == packets[1].to_wire()


@pytest.mark.req("BL-02")
def test_what_was_loaded_is_passed_over(any_mem: Memory, counts: Counts) -> None:
    events = [{name: value for name, value in event.items() if name != "idempotency_key"} for event in _story(3, 40)]
    any_mem.store.load(events[:50])
    before = counts(any_mem)
    again = any_mem.store.load(events[:50])
    assert (again.written, again.already_present, again.sessions) == (0, 50, 3)
    assert counts(any_mem) == before
    longer = any_mem.store.load(events)  # a file that has grown
    assert (longer.written, longer.already_present) == (len(events) - 50, 50)
    contents = [entry.content for entry in any_mem.ledger.entries(user_id="user1") if entry.kind == "message"]
    assert len(contents) == len(set(contents))
    assert any_mem.verify().ok


@pytest.mark.soak
@pytest.mark.req("BL-02")
@pytest.mark.parametrize("portion", range(0, 9, 2))
def test_a_load_that_breaks_off_is_run_again(any_mem: Memory, monkeypatch: pytest.MonkeyPatch, portion: int) -> None:
    """It ends before each of its transactions in turn: what was written is whole, and the second run adds the rest."""
    monkeypatch.setattr(loading, "PORTION_EVENTS", 64)
    engine, events = any_mem._ctx.engine, _story(4, 130)
    left, write = [portion], type(engine).write

    class _Lost(Exception):
        pass

    def failing(self: Any, tenant_id: str, work: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise _Lost
        return write(self, tenant_id, work)

    monkeypatch.setattr(type(engine), "write", failing)
    with pytest.raises(_Lost):
        any_mem.store.load(events)
    monkeypatch.setattr(type(engine), "write", write)
    assert not any_mem.store.tenants() or any_mem.verify().ok
    report = any_mem.store.load(events)
    assert report.written + report.already_present == len(events)
    assert report.waiting == 0
    ids = [entry.id for user in range(4) for entry in any_mem.ledger.entries(user_id=f"user{user}")]
    assert len(ids) == len(set(ids))
    assert set(ids) >= {event["id"] for event in events}
    assert any_mem.verify().ok


BAD: dict[str, tuple[Any, type[MunimentError], str]] = {
    "no object": ("x", InvalidInput, "$[3]"),
    "no user": ({"session_id": "s", "role": "user", "content": "x"}, InvalidInput, "$[3].user_id"),
    "no session": ({"user_id": "u", "role": "user", "content": "x"}, InvalidInput, "$[3].session_id"),
    "a name too long": (
        {"user_id": "u" * 300, "session_id": "s", "role": "user", "content": "x"},
        InvalidRecord,
        "$.user_id",
    ),
    "a corpus": ({"user_id": "corpus:x", "session_id": "s", "role": "user", "content": "x"}, InvalidInput, "$.user_id"),
    "no role": ({"user_id": "u", "session_id": "s", "role": "cook", "content": "x"}, InvalidRecord, "$[3].role"),
    "no content": ({"user_id": "u", "session_id": "s", "role": "user"}, InvalidRecord, "$[3].content"),
    "another word": (
        {"user_id": "u", "session_id": "s", "role": "user", "content": "x", "build": "b"},
        InvalidRecord,
        "$[3].build",
    ),
    "a run's own event": (
        {"user_id": "u", "session_id": "s", "role": "system", "content": "", "metadata": {"event": "run_started"}},
        InvalidInput,
        "$.metadata.event",
    ),
    "trust that is not its own": (
        {
            "user_id": "u",
            "session_id": "s",
            "role": "tool",
            "content": "x",
            "tool": {"name": "t", "ok": True},
            "trust": "user",
        },
        InvalidInput,
        "$.trust",
    ),
    "too long": ({"user_id": "u", "session_id": "s", "role": "user", "content": "x" * 2000}, TooLarge, "$.content"),
}


@pytest.mark.req("BL-03")
@pytest.mark.parametrize("name", BAD)
def test_one_bad_event_and_nothing_is_written(make: Maker, counts: Counts, name: str) -> None:
    event, error, path = BAD[name]
    mem = make("sqlite", policy={"ledger": {"content_bytes_max": 1000, "inline_bytes_max": 900}})
    before = counts(mem)
    with pytest.raises(error) as caught:
        mem.store.load([*_story(2, 1), {**_story(2, 1)[0], "id": "other", "idempotency_key": "k"}, event])
    issues = [issue.path for issue in getattr(caught.value, "issues", ())]
    assert path in (caught.value.path, *issues)
    assert "event 3" in caught.value.message or "[3]" in (caught.value.path or "") or "$[3]" in str(issues)
    assert counts(mem) == before


@for_each("events", ["text", b"bytes", {"role": "user"}, 7, None])
def test_what_is_no_list_of_events_is_refused(mem: Memory, events: Any) -> None:
    with pytest.raises(InvalidInput):
        mem.store.load(events)
    assert mem.store.load([]).events == 0


@pytest.mark.req("BL-03")
def test_keys_and_ids_that_were_used_for_something_else(any_mem: Memory, counts: Counts) -> None:
    events = _story(2, 5)
    any_mem.store.load(events)
    before = counts(any_mem)
    with pytest.raises(IdempotencyMismatch, match="event 0"):
        any_mem.store.load([events[0] | {"content": "another"}])
    with pytest.raises(DuplicateId, match="event 1"):
        any_mem.store.load([events[1] | {"idempotency_key": "fresh-1"}, events[1] | {"idempotency_key": "fresh-2"}])
    with pytest.raises(DuplicateId):
        any_mem.store.load([events[1] | {"idempotency_key": "fresh"}])
    assert counts(any_mem) == before
    twice = {name: value for name, value in events[0].items() if name != "id"} | {"idempotency_key": "twice"}
    assert any_mem.store.load([twice, twice]).already_present == 1
    with pytest.raises(IdempotencyMismatch):
        any_mem.store.load([twice | {"idempotency_key": "k9"}, twice | {"idempotency_key": "k9", "content": "b"}])


@pytest.mark.req("BL-03")
@pytest.mark.parametrize("portion", [1, 2, 5_000])
@pytest.mark.parametrize("other", [{"user_id": "b"}, {"session_id": "t"}, {"agent_id": "other"}], ids=str)
def test_a_run_id_stands_for_one_run_of_one_scope(
    any_mem: Memory, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], portion: int
) -> None:
    """As it does one by one, wherever a portion ends."""
    monkeypatch.setattr(loading, "PORTION_EVENTS", portion)
    first = {"user_id": "a", "session_id": "s", "run_id": "r1", "role": "user", "content": "x"}
    any_mem.run(user_id="a", session_id="s", run_id="r0").observe("user", "x")
    with pytest.raises(DuplicateId) as observed:
        any_mem.run(**{"user_id": "a", "session_id": "s", "run_id": "r0"} | other).observe("user", "y")
    with pytest.raises(DuplicateId) as loaded:
        any_mem.store.load([first, first | other | {"content": "y"}, first | {"content": "z"}])
    assert str(loaded.value) == str(observed.value).replace("r0", "r1")
    assert (loaded.value.path, loaded.value.hint) == (observed.value.path, observed.value.hint)
    assert any_mem.verify().ok
    assert any_mem.store.load([first, first | {"content": "z"}]).events == 2
    held = any_mem._ctx.engine.read("default", lambda reader: texts(reader, ENTRIES, "user_id"))
    assert set(held) == {"a"}


@pytest.mark.req("BL-03")
def test_an_event_cannot_have_the_id_of_its_run(any_mem: Memory, counts: Counts) -> None:
    any_mem.run(user_id="b").observe("user", "There is a tenant.")
    before = counts(any_mem)
    event = {"user_id": "a", "session_id": "s", "run_id": "r1", "role": "user", "content": "x"}
    with pytest.raises(DuplicateId, match="event 1: the id 'r1' is taken"):
        any_mem.store.load([event, event | {"id": "r1"}])
    assert counts(any_mem) == before


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_load_that_loses_races_goes_on(any_mem: Memory, monkeypatch: pytest.MonkeyPatch, lost: int) -> None:
    tries = _lose_races(any_mem, monkeypatch, lost, "entries")
    assert any_mem.store.load(_story(2, 5), index=False).written == 10
    assert len(tries) == lost + 1
    assert any_mem.verify().ok


@pytest.mark.parametrize(("table", "error"), [("entries", StorageBusy), ("idempotency_keys", StorageBusy)])
def test_a_load_that_loses_every_race_says_so(
    any_mem: Memory, monkeypatch: pytest.MonkeyPatch, table: str, error: type[MunimentError]
) -> None:
    tries = _lose_races(any_mem, monkeypatch, 100, table)
    with pytest.raises(error) as told:
        any_mem.store.load(_story(2, 5), index=False)
    assert told.value.hint
    assert len(tries) < 10


def _lose_races(mem: Memory, monkeypatch: pytest.MonkeyPatch, lost: int, table: str) -> list[str]:
    """Somebody else is quicker, so many times."""
    engine, tries = mem._ctx.engine, list[str]()
    write = type(engine).write

    def losing(self: Any, tenant_id: str, work: Any) -> Any:
        tries.append(tenant_id)
        if len(tries) <= lost:
            raise KeyTaken(table)
        return write(self, tenant_id, work)

    monkeypatch.setattr(type(engine), "write", losing)
    return tries


@pytest.mark.req("BL-04")
def test_a_load_that_is_not_indexed_is_read_found_and_composed_all_the_same(any_mem: Memory) -> None:
    events = _story(2, 130)
    report = any_mem.store.load(events, index=False)
    assert report.waiting > len(events)  # the runs say that they began
    assert any_mem.store.overview().unindexed == report.waiting
    run = any_mem.run(user_id="user1", session_id="s1-0")

    def asked() -> list[Any]:
        build = run.compose("planner", query="Where is the heron?", now="2026-06-01T00:00:00Z")
        found = run.search("heron number 91", k=20, now="2026-06-01T00:00:00Z")
        return [found, build.text, build.pool.summary, list(any_mem.ledger.episodes(user_id="user1"))]

    before = asked()
    assert before[0]
    assert any_mem.verify().ok
    assert any_mem.store.index() == sum(event["role"] != "system" for event in events)
    assert any_mem.store.index() == 0
    assert any_mem.store.overview().unindexed == 0
    any_mem._ctx.clear_caches()
    assert asked() == before
    assert any_mem.verify().ok
    any_mem.store.rebuild()
    assert asked() == before


@pytest.mark.req("BL-04")
def test_a_forget_reaches_what_waits(any_mem: Memory) -> None:
    events = _story(2, 60)
    any_mem.store.load(events, index=False)
    any_mem.forget(event="evt_7")
    any_mem.forget(user_id="user0")
    any_mem.store.index()
    assert any_mem.run(user_id="user0").search("heron") == []
    assert "evt_7" not in [hit.id for hit in any_mem.run(user_id="user1").search("heron", k=100)]
    assert any_mem.verify().ok
    again = any_mem.store.load(events)
    assert (again.written, again.forgotten) == (0, 61)  # and it does not come back with the file


@pytest.mark.req("BL-05")
def test_an_indexer_that_was_held_up_writes_nothing(any_mem: Memory) -> None:
    """It has read a piece; others index, forget and go on; then it comes back."""
    ctx = any_mem._ctx
    any_mem.store.load(_story(2, 60), index=False)
    held = ctx.engine.read("default", partial(indexing._read_piece, "default", "user0", 40))
    any_mem.forget(event="evt_0")
    late = ctx.engine.read("default", partial(indexing._read_piece, "default", "user0", 40))
    any_mem.store.index()
    for piece in (held, late):
        assert piece.turns
        assert not ctx.engine.write("default", partial(indexing._write_piece, piece))
    assert any_mem.verify().ok


@pytest.mark.soak
@pytest.mark.req("BL-05")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_several_index_at_once(make: Maker, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """Each turn is indexed once, whoever does it, and nobody waits for one who does nothing."""
    monkeypatch.setattr(indexing, "PIECE_ENTRIES", 40)
    mem = make(engine)
    events = _story(12, 40)
    mem.store.load(events, index=False)
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: mem.store.index(), range(3)))
    assert sum(done) == sum(event["role"] != "system" for event in events)
    assert mem.store.overview().unindexed == 0
    assert mem.verify().ok


@pytest.mark.req("BL-05")
def test_what_is_forgotten_between_reading_and_writing_is_not_indexed(any_mem: Memory) -> None:
    ctx = any_mem._ctx
    any_mem.store.load(_story(1, 60), index=False)
    piece = ctx.engine.read("default", partial(indexing._read_piece, "default", "user0", 4096))
    any_mem.forget(event="evt_8")
    assert not ctx.engine.write("default", partial(indexing._write_piece, piece))
    any_mem.store.index()
    assert "evt_8" not in [hit.id for hit in any_mem.run(user_id="user0").search("heron", k=100)]
    assert any_mem.verify().ok


@pytest.mark.soak
def test_a_long_stretch_is_indexed_in_pieces(any_mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "PIECE_ENTRIES", 37)
    events = _story(1, 130)
    any_mem.store.load(events, index=False)
    told: list[int] = []
    any_mem.store.index(progress=told.append)
    assert len(told) > 3
    assert max(told) <= 37
    assert any_mem.verify().ok


def test_a_rebuild_takes_what_waits(any_mem: Memory) -> None:
    any_mem.store.load(_story(2, 60), index=False)
    any_mem.store.rebuild()
    assert any_mem.store.overview().unindexed == 0
    assert any_mem.run(user_id="user1").search("heron")
    assert any_mem.verify().ok


def test_vectors_come_with_the_index(make: Maker) -> None:
    mem, other = make("sqlite"), make("sqlite")
    for each in (mem, other):
        each._ctx.embedder = HashEmbedder()
    events = [event for event in _story(2, 40) if len(event["content"]) < 500]
    mem.store.load(events)
    for event in events:
        names = {name: event[name] for name in SCOPE if name in event}
        other.run(**names).observe_many([{name: value for name, value in event.items() if name not in SCOPE}])
    other.store.index()
    found = [
        [(hit.id, hit.parts) for hit in each.run(user_id="user1").search("a bird in Bergen")] for each in (mem, other)
    ]
    assert found[0] == found[1]


def test_a_store_that_does_not_index_has_nothing_waiting(make: Maker) -> None:
    mem = make("sqlite", policy={"ledger": {"index_turns": False}})
    assert mem.store.load(_story(1, 60)).waiting == 0


def test_a_load_is_told_of(mem: Memory) -> None:
    told: dict[str, int] = {}

    def tell(phase: str, count: int) -> None:
        told[phase] = told.get(phase, 0) + count

    events = _story(2, 60)
    mem.store.load(events, progress=tell)
    assert told["checked"] == told["written"] == len(events)
    assert told["indexed"] >= len(events)


def test_another_tenant_sees_nothing_of_a_load(any_mem: Memory) -> None:
    any_mem.store.load(_story(1, 20), tenant_id="acme")
    assert any_mem.run(user_id="user0", tenant_id="globex").search("heron") == []
    assert any_mem._ctx.engine.read("globex", lambda reader: reader.do(Count("entries"))) == 0


@pytest.mark.parametrize("sorted_bytes_max", [1, 2_000, 10_000_000])
def test_a_spool_gives_back_what_belongs_together(tmp_path: Path, sorted_bytes_max: int) -> None:
    """However little may be sorted in memory: nothing lost, sessions whole where they can be, their order kept."""
    spool = Spool(tmp_path, sorted_bytes_max=sorted_bytes_max)
    given = [(f"u{n % 50}", f"s{n % 7}", n) for n in range(5_000)]
    for owner, name, record in given:
        spool.add(owner, name, record)
    assert spool.count == 5_000
    found = [tuple(each) for each in spool.read()]
    assert sorted(found, key=lambda each: each[2]) == given
    by_session: dict[tuple[str, str], list[int]] = {}
    for owner, name, record in found:
        by_session.setdefault((owner, name), []).append(record)
    assert all(numbers == sorted(numbers) for numbers in by_session.values())
    if sorted_bytes_max > 1:
        changes = sum(a[:2] != b[:2] for a, b in pairwise(found))
        assert changes == len(by_session) - 1
    assert list(tmp_path.iterdir()) == []


def test_bad_json_in_a_spool_is_no_concern_of_its(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.add("u\n", "sé", json.dumps({"a": "\u2028"}))
    with suppress(StopIteration):
        assert next(spool.read()).owner == "u\n"
