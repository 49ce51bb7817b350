"""What a forget asks of the store: operations and rows are counted, not time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muniment.core.ports.engine import Op, Row, Select, Transaction
from muniment.handles.memory import Memory
from muniment.store.ledger import Receipt
from muniment.store.scrub import count_due, due_receipts

pytestmark = pytest.mark.req("LG-07")

OPS_MAX = 65
"""Of both transactions together, locks included."""


class Counted:
    """A transaction or a view whose operations are noted, with how many rows each answered."""

    def __init__(self, inner: Any, noted: list[tuple[str, str, int]]) -> None:
        self._inner, self._noted = inner, noted

    def do(self, op: Op[Any]) -> Any:
        answer = self._inner.do(op)
        count = len(answer) if isinstance(answer, list) else 1
        self._noted.append((type(op).__name__, getattr(op, "table", ""), count))
        return answer

    def stream(self, select: Select) -> Iterator[Row]:
        rows = list(self._inner.stream(select))
        self._noted.append(("Select", select.table, len(rows)))
        return iter(rows)


def noted(mem: Memory, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """The operations of the writes that `work` makes."""
    found: list[tuple[str, str, int]] = []
    engine = mem._ctx.engine
    write = engine.write

    def counted(tenant_id: str, inside: Callable[[Transaction], Any]) -> Any:
        return write(tenant_id, lambda tx: inside(Counted(tx, found)))  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(type(engine), "write", lambda _, tenant_id, inside: counted(tenant_id, inside))
        work()
    return found


def fill(mem: Memory, user: str, turns: int = 45) -> list[str]:
    run = mem.run(user_id=user, session_id="s1")
    said = run.observe_many([{"role": "user", "content": f"{user} saw heron number {n}."} for n in range(turns)])
    run.remember("user.bird", "heron", sources=[said[-1].id])
    run.compose("planner", query="heron")
    return [entry.id for entry in said]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_forget_of_one_event_asks_the_same_however_much_others_have(
    make: Callable[..., Memory], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same tenant: other users, their documents and the receipts of earlier forgets."""
    any_mem = make(engine)
    own = [fill(any_mem, "ana"), fill(any_mem, "eve")]
    any_mem.forget(event=fill(any_mem, "zoe", 2)[0])  # the first receipt of a tenant begins a chain
    alone = noted(any_mem, lambda: any_mem.forget(event=own[0][-1]), monkeypatch)
    for number in range(8):
        other = fill(any_mem, f"other{number}")
        any_mem.corpus("notes", user_id=f"other{number}").add("Notes of herons.", document_id="notes")
        any_mem.forget(event=other[7])
    among = noted(any_mem, lambda: any_mem.forget(event=own[1][-1]), monkeypatch)
    assert len(alone) <= OPS_MAX
    assert among == alone
    assert not [op for op in among if op[1] == "sessions"], "the names of documents are of no use to it"


def test_waiting_receipts_are_found_among_any_number_of_others(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1")
    receipts: list[Receipt] = []
    for number in range(6):
        receipts.append(any_mem.forget(event=run.observe("user", f"number {number}").id))
    any_mem.store.scrub()
    engine = any_mem._ctx.engine
    found: list[tuple[str, str, int]] = []
    assert engine.read("default", lambda reader: due_receipts(Counted(reader, found))) == {}  # type: ignore[arg-type]
    assert engine.read("default", lambda reader: count_due(Counted(reader, found))) == 0  # type: ignore[arg-type]
    assert found == [("Select", "items", 0), ("Count", "items", 1)]


def test_answers_kept_for_other_users_stay(any_mem: Memory) -> None:
    from muniment.core.ports.rows import insert, select
    from muniment.core.ports.schema import REPLIES, WORKS
    from muniment.testing.engine_contract import row_with

    ids = {user: fill(any_mem, user, 5) for user in ("ana", "bob")}
    engine = any_mem._ctx.engine

    def plant(tx: Transaction) -> None:
        for number, user in enumerate(("ana", "bob", "")):
            reply = row_with("replies", number, user_id=user, body=b"said", salt=b"s" * 16)
            work = row_with("works", number, user_id=user or None, answer="said", salt=b"w" * 16)
            insert(tx, REPLIES, [reply])  # type: ignore[list-item]
            insert(tx, WORKS, [work])  # type: ignore[list-item]

    def left() -> tuple[set[str], set[str | None]]:
        replies = engine.read("default", lambda reader: select(reader, REPLIES))
        works = engine.read("default", lambda reader: select(reader, WORKS))
        return {row.user_id for row in replies}, {row.user_id for row in works if row.answer is not None}

    engine.write("default", plant)
    any_mem.forget(event=ids["ana"][1])
    assert left() == ({"bob"}, {"bob"})
    shared = any_mem.run(user_id="bob", session_id="s1", grants=("tenant",)).remember(
        "team.bird", "heron", sources=[ids["bob"][2]], scope_level="tenant"
    )
    engine.write("default", lambda tx: insert(tx, REPLIES, [row_with("replies", 9, user_id="eve", salt=b"s" * 16)]))  # type: ignore[list-item]
    any_mem.forget(fact=shared.fact_id)
    assert left() == (set(), set()), "what is shared may have been told to anybody"


@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgres"])
def test_what_covers_a_run_falls_with_any_event_of_it(make: Callable[..., Memory], engine: str) -> None:
    """A large event, whose text lies in a blob; of a run that has patches of its own, which stay."""
    mem = make(engine)
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    said = run.observe("user", "The heron stood there. " * 5000)
    other = run.observe("user", "The walrus did not.")
    run.remember("user.bird", "heron", sources=[said.id, other.id])
    run.finish(verifier_result={"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}, intent={"domain_tag": "zoo"})
    erased = {gone.kind for gone in mem.forget(event=said.id).erased}
    assert {"event", "event_log"} <= erased
    assert [fact.sources for fact in run.facts()] == [(other.id,)]
    again = mem.forget(user_id="ana")
    assert "left_damaged" not in again.counts
    assert mem.verify().ok
