"""Reading what lies outside from within larger work: who is told what of an object that is gone, and how often a call
is begun again to have all it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Insert, Patch, Transaction
from muniment.core.ports.rows import get, select, stream
from muniment.core.ports.schema import BLOBS, ENTRIES, EXTRACTS, IDS
from muniment.errors import BlobCorrupt, MunimentError, NoObjectsKey, ObjectsRefused, ObjectsUnavailable
from muniment.handles.memory import Memory
from muniment.memory.backlog.reading import users_waiting
from muniment.memory.indexing import reindex_user
from muniment.store.bulk.gathering import Gathered
from muniment.store.objects import fetching
from muniment.store.objects.view import near, sees_through

LARGE = "The pilot counts the boats of the harbour at dusk. " * 1400


@pytest.fixture
def stowed(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "objects").mkdir()
    with muniment.open(":memory:", objects=(tmp_path / "objects").as_uri()) as mem:
        yield mem


def _events(user_id: str, first: int, end: int, large: range = range(0)) -> list[dict[str, Any]]:
    return [
        {
            "user_id": user_id,
            "session_id": "s1",
            "role": "user",
            "content": f"{number:06d} " + (LARGE if number in large else "short words here"),
        }
        for number in range(first, end)
    ]


def _unread(mem: Memory) -> None:
    assert mem._ctx.outside is not None
    mem._ctx.outside.fetched.clear()


# -- through what holds rows back ---------------------------------------------------------------------


def test_rows_that_are_held_back_change_nothing_of_what_is_seen(stowed: Memory) -> None:
    stowed.run(user_id="ana", session_id="s1").observe("user", LARGE)
    _unread(stowed)

    def work(tx: Transaction) -> None:
        out = Gathered(tx)
        assert sees_through(tx)
        assert sees_through(out)
        assert [row.data for row in select(out, BLOBS)] == [LARGE.encode()]
        out.do(Insert("ids", [("held back", "event")]))
        bare = near(out)
        assert not sees_through(bare)
        assert [row.data for row in select(bare, BLOBS)] == [None]
        assert get(bare, IDS, ("held back",)) is not None
        assert not sees_through(Gathered(bare))
        assert near(Gathered(bare)) is bare

    stowed._ctx.engine.write("default", work)


@pytest.mark.soak
@pytest.mark.parametrize("at", [3, 40])
def test_an_object_that_is_gone_is_told_as_damage_by_who_indexes(stowed: Memory, tmp_path: Path, at: int) -> None:
    """And stays the matter of the one user it belongs to."""
    stowed.store.load(_events("ana", 0, 45, range(at, at + 1)))
    for path in (tmp_path / "objects").rglob("*"):
        if path.is_file():
            path.unlink()
    _unread(stowed)
    others = [f"user{number}" for number in range(20)]
    behind = [event for user_id in others for event in _events(user_id, 0, 80)]
    stowed.store.load(_events("ana", 45, 300) + behind, index=False)
    with pytest.raises(BlobCorrupt, match=r"the object that holds the content of event .* is missing") as told:
        stowed.store.upkeep()
    assert set(told.value.details) >= {"id", "blob", "object"}
    assert stowed._ctx.engine.read("default", users_waiting) == ["ana"]


# -- how often a call is begun again ------------------------------------------------------------------


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many objects each new beginning was given."""
    counted: list[int] = []
    bring = fetching.Brought.bring

    def count(self: fetching.Brought, wanted: Any) -> None:
        counted.append(len(wanted))
        bring(self, wanted)

    monkeypatch.setattr(fetching.Brought, "bring", count)
    return counted


@pytest.mark.soak
@pytest.mark.parametrize(("sessions", "turns"), [(300, 3), (30, 70)])
def test_a_long_stream_of_archived_turns_is_begun_again_a_few_times(
    stowed: Memory, brought: list[int], sessions: int, turns: int
) -> None:
    stowed.store.load(
        {"user_id": "ana", "session_id": f"s{session}", "role": "user", "content": f"word {number} of {session}"}
        for session in range(sessions)
        for number in range(turns)
    )
    assert stowed.store.archive(before="2099-01-01T00:00:00Z").sessions == sessions
    _unread(stowed)
    stowed._ctx.engine.write("default", lambda tx: reindex_user(tx, "default", "ana"))
    assert sum(brought) >= sessions
    assert len(brought) <= 10
    assert stowed.verify().ok


@pytest.mark.soak
def test_a_long_stream_of_large_turns_is_begun_again_a_few_times(stowed: Memory, brought: list[int]) -> None:
    stowed.store.load(_events("ana", 0, 300, range(300)), index=False)
    _unread(stowed)

    def work(tx: Transaction) -> int:
        named = (get(tx, BLOBS, (row.hash,)) for entry in stream(tx, ENTRIES) for row in _blobs(tx, entry.id))
        return sum(row is not None and row.data is not None for row in named)

    assert stowed._ctx.engine.write("default", work) == 300
    assert sum(brought) >= 300
    assert len(brought) <= 10


def _blobs(tx: Transaction, entry_id: str) -> list[Any]:
    return list(select(near(tx), BLOBS, (("entry_id", "=", entry_id),)))


def test_who_meets_objects_one_by_one_is_not_begun_again_for_each(
    stowed: Memory, brought: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "RESTARTS_MAX", 5)
    stowed.store.load(_events("ana", 0, 40, range(40)), index=False)
    _unread(stowed)
    names = stowed._ctx.engine.read("default", lambda reader: [row.hash for row in select(near(reader), BLOBS)])
    begun: list[None] = []

    def work(tx: Transaction) -> int:
        begun.append(None)
        return sum(get(tx, BLOBS, (name,)).data is not None for name in names)  # type: ignore[union-attr]

    assert stowed._ctx.engine.write("default", work) == 40
    assert (len(brought), len(begun)) == (5, 6)


# -- a bucket that is down ----------------------------------------------------------------------------


class _Down:
    """An object store that answers nothing that is asked for."""

    def __init__(self, inner: Any, error: MunimentError) -> None:
        self.inner, self._error = inner, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def get(self, *_asked: Any, **_more: Any) -> Any:
        raise self._error


@contextmanager
def _down(mem: Memory, error: MunimentError) -> Iterator[None]:
    outside = mem._ctx.outside
    assert outside is not None
    _unread(mem)
    outside.store = _Down(outside.store, error)
    yield
    outside.store = outside.store.inner


def _extracts(mem: Memory) -> list[Any]:
    return mem._ctx.engine.read("default", lambda reader: sorted(select(reader, EXTRACTS)))


DOWN = [ObjectsUnavailable("down"), ObjectsRefused("not for you"), NoObjectsKey("no key")]


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("error", DOWN, ids=lambda error: error.code)
@pytest.mark.parametrize("way", ["upkeep", "rebuild", "write"])
def test_a_forget_does_not_wait_for_a_neighbour_s_content(stowed: Memory, error: MunimentError, way: str) -> None:
    """What was made of both goes, and is made again when the bucket is back."""
    stowed.store.load(_events("ana", 0, 200, range(5, 6)) + _events("zoe", 0, 70))
    before = _extracts(stowed)
    event = next(entry for entry in stowed.ledger.entries(user_id="ana", session_id="s1") if entry.seq == 12)
    with _down(stowed, error):
        receipt = stowed.forget(event=event.id)
    assert receipt.scrubbed
    assert receipt.counts["extracts"] == sum(row.user_id == "ana" for row in before)
    assert _extracts(stowed) == [row for row in before if row.user_id == "zoe"]
    if way == "upkeep":
        stowed.store.upkeep()
    elif way == "rebuild":
        stowed.store.rebuild()
    else:
        run = stowed.run(user_id="ana", session_id="s1")
        run.observe_many([{"role": "user", "content": f"More {number}."} for number in range(64)])
    made = _extracts(stowed)
    assert {row[:4] for row in made} >= {row[:4] for row in before}
    assert stowed.verify().ok
    stowed.store.rebuild()
    assert _extracts(stowed) == made


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("error", DOWN, ids=lambda error: error.code)
def test_a_forget_that_meets_a_damaged_index_does_not_wait_either(stowed: Memory, error: MunimentError) -> None:
    stowed.store.load(_events("ana", 0, 100, range(5, 6)))
    event = next(entry for entry in stowed.ledger.entries(user_id="ana", session_id="s1") if entry.seq == 12)
    stowed._ctx.engine.write(
        "default", lambda tx: tx.do(Patch("segments", (("user_id", "=", "ana"),), {"data": b"no segment"}))
    )
    stowed._ctx.clear_caches()
    with _down(stowed, error):
        receipt = stowed.forget(event=event.id)
    assert receipt.scrubbed
    assert receipt.counts["index_dropped"] == 1
    assert not stowed.verify().ok
    stowed.store.rebuild()
    assert stowed.verify().ok
