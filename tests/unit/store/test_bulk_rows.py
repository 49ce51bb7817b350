"""What a load and its index write at once is, row by row and to the byte, what is written one after another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from effort import SOAK
from muniment.core.instants import format_instant
from muniment.core.outside.spool import spool
from muniment.core.outside.system import CountingIds
from muniment.core.ports.engine import (
    Condition,
    Count,
    Delete,
    Get,
    Insert,
    Lock,
    LockAll,
    Patch,
    Put,
    Row,
    Select,
    Transaction,
)
from muniment.core.ports.schema import ENTRIES, EPISODES, ITEMS, LINKS, TABLES, column_names
from muniment.errors import InvalidInput, StoreDamaged
from muniment.handles.memory import Memory
from muniment.memory.backlog import indexing
from muniment.memory.indexing import SEGMENTS, segments_of
from muniment.store import blocks
from muniment.store.bulk import writing
from muniment.store.bulk.gathering import Gathered
from muniment.store.bulk.loading import spool_events
from muniment.store.bulk.records import LoadEvent
from muniment.store.ledger.drafts import draft_of

Maker = Callable[..., Memory]
_DAY = format_instant(datetime(2026, 4, 1, tzinfo=UTC))


def _rows(mem: Memory) -> dict[str, list[Row]]:
    """Everything that the store holds of the tenant."""
    engine = mem._ctx.engine
    return {spec.name: engine.read("default", lambda reader, s=spec: reader.do(Select(s.name))) for spec in TABLES}  # type: ignore[misc]


def _story(start: int, end: int) -> list[dict[str, Any]]:
    """Events of users with one session and with many, under runs of their own and named ones, of every kind."""
    events = []
    for number in range(start, end):
        user = number % 11
        event: dict[str, Any] = {
            "user_id": f"u{user}",
            "session_id": "one" if user < 6 else f"s{number // 200}",
            "role": ("user", "assistant")[number % 2],
            "content": f"Turn {number}: I will send the {('map', 'key')[number % 2]} to Bergen on May {number % 28}.",
            "ts": f"2026-04-{1 + number % 3:02d}T{number % 24:02d}:00:00Z",
        }
        if user % 4 == 1:
            event |= {"run_id": f"run-{event['session_id']}-{user}", "agent_id": "other"}
        if number % 29 == 0:
            event |= {"role": "tool", "tool": {"name": "look", "ok": True, "args": {"at": number}}}
        elif number % 31 == 0:
            event |= {"metadata": {"event": "noticed", "at": number}, "tags": ["a", "b"]}
        elif number % 37 == 0:
            event["content"] = "Mail me at ada@example.org; my card is 4111 1111 1111 1111."
        elif number % 211 == 5:
            event["content"] = f"A long page of {number}. " * 4000
        events.append(event)
    return events


def _at_once(tx: Transaction) -> Any:
    """In the place of `Gathered`: everything goes to the store as it comes, and every question too."""

    class _Straight(Gathered):
        def do(self, op: Any) -> Any:
            if isinstance(op, LockAll):
                for parts in op.names:
                    tx.do(Lock(parts))
                return None
            return tx.do(op)

        def stream(self, select: Select) -> Any:
            return tx.stream(select)

    return _Straight(tx)


def _one_by_one(tx: Transaction, name: str, column: str, codec: Any, made: dict[str, Any]) -> None:
    """In the place of `append_blocks`: the same, place by place."""
    assert (name, column) == ("segments", "user_id")
    for user_id, block in made.items():
        blocks.append_block(tx, segments_of(user_id), codec, block)


@pytest.mark.req("BL-01")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"] if SOAK else ["sqlite"])
def test_rows_are_those_of_the_slow_way(make: Maker, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """Into an empty store, then behind what is there, in several loads: also blocks of the index that are merged."""
    stores = []
    for is_slow in (False, True):
        mem = make(engine, ids=CountingIds("same"), clock=lambda: datetime.fromtimestamp(1.78e9, UTC))
        with monkeypatch.context() as patched:
            if is_slow:
                patched.setattr(writing, "Gathered", _at_once)
                patched.setattr(indexing, "Gathered", _at_once)
                patched.setattr(indexing, "append_blocks", _one_by_one)
            for start, end in ((0, 700), (700, 760), (760, 1500), (1490, 1530)):
                mem.store.load(_story(start, end), index=end != 760)
                if end == 1500:
                    mem.forget(user_id="u3")
        assert mem.verify().ok
        stores.append(_rows(mem))
    fast, slow = stores
    assert fast.keys() == slow.keys()
    for name, rows in fast.items():
        if name not in ("proofs", "works", "replies"):
            assert rows == slow[name], name
    assert min(len(fast[name]) for name in ("entries", "segments", "extracts", "episodes", "items", "blobs")) > 0


def test_blocks_are_appended_to_many_places_as_to_each(any_mem: Memory) -> None:
    """Sixty rounds of portions of every size: the same blocks, levels and bytes."""
    from muniment.memory.recall.segments import IndexedPassage, IndexedTurn, build_segment

    engine, numbers = any_mem._ctx.engine, count()

    def turns(size: int) -> list[IndexedTurn]:
        made = [next(numbers) for _ in range(size)]
        return [
            IndexedTurn(f"e{n}", f"s{n % 3}", n, f"{n % 2:016x}", "user", n, [IndexedPassage(2, [n, n % 7])])
            for n in made
        ]

    for round_ in range(60):
        made = {
            f"u{user}": build_segment(turns(1 + (round_ * 7 + user * 5) % 40))
            for user in range(5)
            if (round_ + user) % 3
        }
        engine.write("a", lambda tx, made=made: blocks.append_blocks(tx, "segments", "user_id", SEGMENTS, made))  # type: ignore[misc]
        engine.write("b", lambda tx, made=made: _one_by_one(tx, "segments", "user_id", SEGMENTS, made))  # type: ignore[misc]
    both = [engine.read(tenant, lambda reader: reader.do(Select("segments"))) for tenant in ("a", "b")]
    assert both[0] == both[1]
    assert len({row[3] for row in both[0]}) > 1  # of several levels


def test_what_is_held_back_is_seen_by_who_asks(any_mem: Memory) -> None:
    """Each question is answered as if nothing had been held back; and what is known not to be there costs nothing."""
    asked: list[Any] = []

    def work(tx: Transaction) -> None:
        class _Counted:
            def do(self, op: Any) -> Any:
                asked.append(op)
                return tx.do(op)

            def stream(self, select: Select) -> Any:
                asked.append(select)
                return tx.stream(select)

        out = Gathered(_Counted())
        tx.do(Insert("links", [("old", "x")]))
        out.tell_absent(LINKS, ("source_id",), [("new",), ("other",)])
        out.tell_absent(EPISODES, ("user_id", "session_id"), [("u", "s")])
        out.do(Put("links", [("new", "y")]))
        assert asked == []
        assert out.do(Select("links", (("source_id", "=", "other"),))) == []
        assert list(out.stream(Select("episodes", (("session_id", "=", "s"), ("user_id", "=", "u"))))) == []
        assert out.do(Get("links", ("other", "y"))) is None
        assert asked == []
        assert out.do(Select("links", (("source_id", "=", "old"),))) == [("old", "x")]
        assert [type(op) for op in asked] == [Select]  # what is held back has nothing to do with it
        assert out.do(Select("links", (("source_id", "=", "new"),))) == [("new", "y")]
        assert [type(op) for op in asked] == [Select, Put, Select]
        out.do(Put("links", [("third", "y")]))
        assert out.do(Count("links")) == 3
        out.do(Insert("links", [("fourth", "y")]))
        out.do(Put("links", [("fourth", "y"), ("fifth", "y")]))  # of another kind: the first goes before it
        assert sorted(str(row[0]) for row in out.stream(Select("links"))) == ["fifth", "fourth", "new", "old", "third"]
        out.do(Lock(("a",)))
        del asked[:]
        out.do(LockAll([("a",), ("b",), ("b",)]))
        out.do(Lock(("b",)))
        assert asked == [LockAll([("b",)])]
        out.do(Put("episodes", [("u", "s", 1, 1, 1, _DAY, _DAY)]))
        assert out.do(Patch("episodes", (("user_id", "=", "u"), ("session_id", "=", "s")), {"turns": 4})) == 1
        out.do(Insert("ids", [("i", "event")]))
        assert tx.do(Get("ids", ("i",))) is None
        out.flush()
        assert tx.do(Get("ids", ("i",))) == ("i", "event")
        assert tx.do(Select("episodes"))[0][4] == 4

    any_mem._ctx.engine.write("default", work)
    assert ITEMS.name not in {getattr(op, "table", "") for op in asked}


def _event(number: int, **more: Any) -> dict[str, Any]:
    return {"user_id": "u", "session_id": "s", "role": "user", "content": f"Turn {number}."} | more


@pytest.mark.req("BL-03")
@pytest.mark.parametrize("damage", ["the last entry is gone", "one stands behind it", "one stands far behind it"])
def test_nothing_is_put_behind_a_session_that_does_not_end_where_it_says(any_mem: Memory, damage: str) -> None:
    engine = any_mem._ctx.engine
    any_mem.store.load([_event(number) for number in range(5)])
    last: tuple[Condition, ...] = (("user_id", "=", "u"), ("seq", "=", 6))

    def break_it(tx: Transaction) -> None:
        (row,) = tx.do(Select("entries", last, order=("user_id", "session_id", "seq")))
        if damage == "the last entry is gone":
            tx.do(Delete("entries", last))
        else:
            seq = column_names(ENTRIES).index("seq")
            further = 7 if damage == "one stands behind it" else 8
            tx.do(Insert("entries", [("other", *row[1:seq], further, *row[seq + 1 : -1], 99)]))

    engine.write("default", break_it)
    any_mem._ctx.clear_caches()
    before = _rows(any_mem)
    with pytest.raises(StoreDamaged):
        any_mem.store.load([_event(number) for number in range(5, 9)] + [_event(1, user_id="v")])
    assert _rows(any_mem) == before


@pytest.mark.req("BL-03")
@pytest.mark.parametrize("other", ["tenant", "policy"])
def test_what_was_checked_for_another_store_is_refused(make: Maker, other: str) -> None:
    mem = make("sqlite")
    policy = mem._ctx.policy.ledger
    if other == "policy":
        policy = policy.model_copy(update={"redact_secrets": False})
    draft = draft_of({"role": "user", "content": "x", "idempotency_key": "k"})
    event = LoadEvent("u", "agent", "s", None, draft, "event 0")
    with spool() as held:
        spool_events([event], policy, held, "elsewhere" if other == "tenant" else "default", lambda *_: None)
        with pytest.raises(InvalidInput, match="another tenant or under another policy"):
            mem.store.load(held)
    assert not _rows(mem)["entries"]
