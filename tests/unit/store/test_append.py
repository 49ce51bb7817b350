"""What one append writes, in how few statements, and under which numbers and ids."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import muniment
from dump_lines import dump_of
from muniment.core.ports.engine import Patch
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES, USERS, EntryRow, UserRow
from muniment.errors import DuplicateId
from muniment.handles.memory import Memory
from muniment.store import append
from muniment.store.engines.sqlite import SqliteEngine

Maker = Callable[..., Memory]


def rows_of(mem: Memory) -> tuple[dict[str, UserRow], dict[str, list[EntryRow]]]:
    """The users' rows, and their entries in the order of their numbers."""
    engine = mem._ctx.engine
    users = {row.user_id: row for row in engine.read("default", lambda reader: select(reader, USERS))}
    entries = engine.read("default", lambda reader: select(reader, ENTRIES, order=("user_id", "n")))
    return users, {user: [row for row in entries if row.user_id == user] for user in users}


def check_numbers(mem: Memory) -> dict[str, UserRow]:
    users, entries = rows_of(mem)
    assert sum(map(len, entries.values())) > 0
    for user_id, rows in entries.items():
        assert [row.n for row in rows] == list(range(1, users[user_id].tail + 1)), user_id
        for session_id in {row.session_id for row in rows}:
            seqs = [row.seq for row in rows if row.session_id == session_id]
            assert seqs == sorted(seqs), (user_id, session_id)
    return users


def fill(mem: Memory) -> None:
    for session_id in ("s1", "s2", "s1"):
        run = mem.run(user_id="ana", session_id=session_id)
        run.observe("user", "We ship on Fridays.")
        run.observe_many([{"role": "user", "content": f"Turn {number}."} for number in range(3)])
        run.remember("team.ship_day", "Friday", sources=[run.observe("user", "Fridays it is.").id])
    mem.run(user_id="bob", session_id="s1").observe("user", "Hello.", idempotency_key="once")
    mem.run(user_id="bob", session_id="s1").observe("user", "Hello.", idempotency_key="once")
    mem.corpus("notes").add("# A note\n\nOrders are looked up by number.", document_id="a")
    mem.store.load(
        [
            {"user_id": f"u{number % 3}", "session_id": f"s{number % 2}", "role": "user", "content": f"Turn {number}."}
            for number in range(40)
        ]
        + [{"user_id": "ana", "session_id": "s1", "role": "user", "content": "Loaded."}]
    )


def test_numbers_are_given_in_the_order_of_writing(any_mem: Memory) -> None:
    fill(any_mem)
    users = check_numbers(any_mem)
    assert {"ana", "bob", "u0", "u1", "u2"} < users.keys()
    assert users["bob"].tail == 2  # the run's first entry, and one message
    assert any_mem.verify().ok


def test_an_import_numbers_entries_as_it_writes_them(make: Maker) -> None:
    source, target = make("memory", seed="another"), make("sqlite")
    fill(source)
    target.run(user_id="ana", session_id="own").observe("user", "I was here before.")
    dump = dump_of(source)
    for _ in range(2):
        target.import_(dump)
    users = check_numbers(target)
    assert users["ana"].tail == check_numbers(source)["ana"].tail + 2
    assert target.verify().ok
    assert not any(b'"n":' in line for line in dump), "a dump is the same whoever numbered its entries"


def test_a_forget_keeps_numbers_and_is_counted(any_mem: Memory) -> None:
    fill(any_mem)
    before = check_numbers(any_mem)
    assert {user.generation for user in before.values()} == {0}
    said = any_mem.run(user_id="bob", session_id="s1").observe("user", "Forget this.")
    any_mem.forget(event=said.id)
    any_mem.forget(session="s2", user_id="ana")
    after = check_numbers(any_mem)
    assert {name: user.generation for name, user in after.items() if user.generation} == {"bob": 1, "ana": 1}
    assert after["ana"].tail == before["ana"].tail
    assert any_mem.verify().ok


@pytest.mark.parametrize("values", [{"tail": 1}, {"tail": 10_000}])
def test_verify_names_a_user_whose_entries_were_not_counted(any_mem: Memory, values: dict[str, int]) -> None:
    fill(any_mem)
    any_mem._ctx.engine.write("default", lambda tx: tx.do(Patch("users", (("user_id", "=", "u1"),), values)))
    assert ("user", "u1") in {(fault.kind, fault.id) for fault in any_mem.verify().differing}


# -- statements ---------------------------------------------------------------------------------------


def statements_of(mem: Memory, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    """The statements that a call sends to its engine, without those that begin and end its transaction."""
    heard: list[str] = []
    engine = mem._ctx.engine
    if isinstance(engine, SqliteEngine):
        connection: Any = engine._connections._writer  # type: ignore[attr-defined]
        connection.set_trace_callback(heard.append)
        act()
        connection.set_trace_callback(None)
    else:
        with monkeypatch.context() as patched:
            execute = psycopg.Cursor.execute

            def listening(self: Any, query: Any, params: Any = None, **more: Any) -> Any:
                heard.append(query.decode() if isinstance(query, bytes) else str(query))
                return execute(self, query, params, **more)

            patched.setattr(psycopg.Cursor, "execute", listening)
            act()
    around = ("BEGIN", "COMMIT", "SELECT set_config", "SET ", "PRAGMA")
    return [each for each in heard if not each.lstrip().startswith(around)]


@pytest.mark.parametrize(("engine", "most"), [("sqlite", 4), ("postgres", 5)])
def test_an_event_takes_few_statements(make: Maker, monkeypatch: pytest.MonkeyPatch, engine: str, most: int) -> None:
    """Into a session and a run that exist: one event, many at once, and one under an idempotency key."""
    mem = make(engine)
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("user", "The first.", idempotency_key="k0")
    one = statements_of(mem, monkeypatch, lambda: run.observe("user", "The next."))
    assert len(one) <= most, one
    several = [{"role": "user", "content": f"Turn {number}."} for number in range(3)]
    many = statements_of(mem, monkeypatch, lambda: run.observe_many(several))
    assert len(many) <= most + 2 * (engine == "sqlite"), many  # SQLite traces a row of an executemany as a statement
    keyed = statements_of(mem, monkeypatch, lambda: run.observe("user", "Under a key.", idempotency_key="k1"))
    assert len(keyed) <= most + 2 + (engine == "postgres"), keyed  # the key is looked up and kept; a server locks it
    assert check_numbers(mem)["ana"].tail == 7


# -- chains -------------------------------------------------------------------------------------------


def test_two_handles_extend_one_session_in_turn(tmp_path: Any) -> None:
    """Each knows an end of the session that the other has moved on."""
    with muniment.open(tmp_path / "s.db") as one, muniment.open(tmp_path / "s.db") as other:
        runs = [mem.run(user_id="ana", session_id="s1", run_id="r1") for mem in (one, other)]
        told = [run.observe("user", f"Turn {number}.") for number in range(4) for run in (*runs, runs[number % 2])]
        assert [entry.seq for entry in told] == list(range(2, 14))
        assert one.verify().ok
        check_numbers(one)


def test_what_is_rolled_back_is_not_built_on(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    first = run.observe("user", "It stays.")
    with monkeypatch.context() as patched:
        patched.setattr(append, "_project", _fail)
        with pytest.raises(_Stop):
            run.observe("user", "It is rolled back.")
    second = run.observe("user", "It follows the first.")
    assert (second.seq, second.prev_hash) == (first.seq + 1, first.hash)
    assert mem.verify().ok


class _Stop(Exception):
    pass


def _fail(*_: Any) -> None:
    raise _Stop


# -- ids ----------------------------------------------------------------------------------------------


@pytest.mark.req("X-09")
def test_an_event_and_an_item_never_have_one_id(any_mem: Memory, counts: Callable[[Memory], dict[str, int]]) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", run_id="r1")
    said = run.observe("user", "Said under an id.", id="e1")
    run.log.claim("It was said.", evidence=[said.id], id="c1")
    before = counts(any_mem)
    elsewhere = any_mem.run(user_id="bob", session_id="s9")
    for taken in ("e1", "c1", "r1"):
        with pytest.raises(DuplicateId):
            elsewhere.observe("user", "Another.", id=taken)
    with pytest.raises(DuplicateId):
        elsewhere.observe_many([{"role": "user", "content": "x", "id": "fresh"}] * 2)
    with pytest.raises(DuplicateId):
        elsewhere.observe_many([{"role": "user", "content": "x"}, {"role": "user", "content": "y", "id": "c1"}])
    with pytest.raises(DuplicateId):
        run.log.claim("Another.", evidence=[said.id], id="e1")
    with pytest.raises(DuplicateId):
        any_mem.run(user_id="bob", session_id="s9", run_id="e1").observe("user", "x")
    with pytest.raises(DuplicateId):
        any_mem.store.load([{"user_id": "bob", "session_id": "s", "role": "user", "content": "x", "id": "c1"}])
    assert counts(any_mem) == before
    any_mem.run(tenant_id="acme", user_id="bob", session_id="s9").observe("user", "Of another tenant.", id="e1")


@pytest.mark.req("X-09")
def test_an_id_stays_taken_after_a_forget(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", run_id="r1")
    run.log.claim("It was said.", evidence=[run.observe("user", "Forget me.", id="e1").id], id="c1")
    any_mem.forget(user_id="ana")
    for taken in ("e1", "c1", "r1"):
        with pytest.raises(DuplicateId):
            any_mem.run(user_id="bob", session_id="s1").observe("user", "Another.", id=taken)


@pytest.mark.req("X-09")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_of_writers_that_choose_one_id_one_gets_it(make: Maker, engine: str) -> None:
    """As an event and as a run, in several sessions at once."""
    mem = make(engine)
    for number in range(4):
        outcomes: list[str] = []
        start = threading.Barrier(4)

        def write(place: int, number: int = number, start: Any = start, outcomes: list[str] = outcomes) -> None:
            run_id = f"x{number}" if place % 2 else None
            run = mem.run(user_id=f"u{place}", session_id=f"s{number}", run_id=run_id)
            start.wait()
            try:
                run.observe("user", "x", id=None if place % 2 else f"x{number}")
                outcomes.append("written")
            except DuplicateId:
                outcomes.append("taken")

        threads = [threading.Thread(target=write, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(outcomes) == ["taken", "taken", "taken", "written"]
    assert mem.verify().ok
