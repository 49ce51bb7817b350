"""What loads write, row by row, and what they refuse to write behind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from effort import SOAK
from muniment.core.instants import format_instant
from muniment.core.outside.spool import spool
from muniment.core.ports.engine import (
    Condition,
    Delete,
    Insert,
    Row,
    Select,
    Transaction,
)
from muniment.core.ports.schema import ENTRIES, TABLES, column_names
from muniment.errors import InvalidInput, StoreDamaged
from muniment.handles.memory import Memory
from muniment.store import load
from muniment.store.ledger import draft_of
from muniment.store.load import LoadEvent, spool_events

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


WRITTEN = {
    "users": ("user_id", "tail", "generation"),
    "sessions": ("user_id", "session_id", "head_seq", "head_recorded_at", "created_at"),
    "entries": ("user_id", "agent_id", "session_id", "seq", "n", "ts", "recorded_at", "kind", "role", "trust", "flags"),
    "blobs": ("size",),
    "items": ("version", "kind", "user_id", "agent_id", "session_id", "status", "created_at", "newest"),
    "idempotency_keys": ("user_id", "key_hash"),
}
"""Columns that hold no id, and nothing salted."""


@pytest.mark.req("BL-01")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"] if SOAK else ["sqlite"])
def test_rows_do_not_depend_on_transactions(make: Maker, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """In large transactions as in small ones: into an empty store, then behind what is there, in several loads."""
    stores = []
    for portion in (5_000, 64, 1):
        mem = make(engine, clock=lambda: datetime.fromtimestamp(1.78e9, UTC))
        monkeypatch.setattr(load, "PORTION_EVENTS", portion)
        for start, end in ((0, 300), (300, 330), (320, 350)):
            mem.store.load(_story(start, end), index=False)
            if end == 330:
                mem.store.index()
                mem.forget(user_id="u3")
        assert mem.verify().ok
        stores.append({name: _written(mem, name) for name in WRITTEN})
    assert all(stores[0].values())
    assert stores[0] == stores[1] == stores[2]


def _written(mem: Memory, name: str) -> list[Row]:
    rows = mem._ctx.engine.read("default", lambda reader: reader.do(Select(name, columns=WRITTEN[name])))
    return sorted(rows, key=repr)


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
