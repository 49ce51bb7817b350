"""Reading what lies outside from within larger work: who is told what of an object that is gone, and how often a call
is begun again to have all it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Insert, Transaction
from muniment.core.ports.rows import get, select, stream
from muniment.core.ports.schema import BLOBS, ENTRIES, IDS
from muniment.errors import BlobCorrupt
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
