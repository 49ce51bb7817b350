"""Every entry has a number among its user's: 1 to the tail that the user's row counts, however it was written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dump_lines import dump_of
from muniment.core.ports.engine import Patch
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES, USERS, EntryRow, UserRow
from muniment.handles.memory import Memory

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
