"""A query reads the facts that it may need, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Delete, Insert, Op, Row, Select
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ITEM_TERMS
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.memory.fact_rows import HELD_MAX

WORDS = tuple(f"w{letter}rd" for letter in "aeioubcdfgh")


def fill(run: Run, first: int, last: int, **more: Any) -> None:
    said = run.observe("user", "Here is what I know.")
    for n in range(first, last):
        run.remember(f"thing.n{n}.{WORDS[n % 11]}", f"{WORDS[n // 11 % 11]} number{n}", sources=[said.id], **more)


def rows_read(mem: Memory, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """The rows of items and terms that `work` reads."""
    count = 0
    engine = mem._ctx.engine
    read = engine.read

    class Counted:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def do(self, op: Op[Any]) -> Any:
            return self._count(op, self._inner.do(op))

        def stream(self, select: Select) -> Iterator[Row]:
            return iter(self._count(select, list(self._inner.stream(select))))

        def _count(self, op: Any, answer: Any) -> Any:
            nonlocal count
            if getattr(op, "table", "") in ("items", "item_terms"):
                count += len(answer) if isinstance(answer, list) else 1
            return answer

    with monkeypatch.context() as patched:
        patched.setattr(type(engine), "read", lambda _, tenant, inside: read(tenant, lambda tx: inside(Counted(tx))))
        work()
    return count


def terms(mem: Memory, item_id: str | None = None) -> list[Any]:
    where = () if item_id is None else (("item_id", "=", item_id),)
    return mem._ctx.engine.read("default", lambda reader: select(reader, ITEM_TERMS, where))  # type: ignore[arg-type]


def found(run: Run, query: str) -> list[str]:
    return [hit.text for hit in run.search(query, k=200) if hit.kind == "fact"]


def told(run: Run, query: str) -> set[str]:
    return {fact.fact_key for fact in run.compose("planner", query=query, max_tokens=4096).packet.long_term.facts}


@pytest.mark.req("MP-18")
def test_what_a_query_reads_does_not_grow_with_the_facts(any_mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = any_mem.run(user_id="ana")
    query = "Where is the ward, and number57?"
    reads = []
    for first, last in ((0, 300), (300, 900)):
        fill(run, first, last)
        search = rows_read(any_mem, lambda: run.search(query), monkeypatch)
        reads.append((search, rows_read(any_mem, lambda: run.compose("planner", query=query), monkeypatch)))
        assert any("number57" in text for text in found(run, query))
        assert any(key.startswith("thing.n57.") for key in told(run, query))
    assert max(max(each) for each in reads) < 200


@pytest.mark.req("MP-07")
def test_an_old_fact_is_found_among_many_and_holds_as_before(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", grants=("tenant",))
    said = run.observe("user", "My cello is in Lyon. Answer in French.")
    old = run.remember("user.instrument", "cello", sources=[said.id])
    run.remember("user.instruction.language", "answer in French", sources=[said.id])
    run.remember("office.city", "Oslo", sources=[said.id], scope_level="tenant")
    run.remember("office.city", "Bonn", sources=[said.id])
    fill(run, 0, 3 * HELD_MAX)
    fill(run, 0, 2 * HELD_MAX, scope_level="tenant")
    assert found(run, "Which instrument, the cello?") == ["user.instrument: cello"]
    assert found(run, "In which city is the office?") == ["office.city: Bonn"]
    packet = run.compose("planner", query="In which city is the office?", max_tokens=4096)
    assert "answer in French" in packet.text
    assert {fact.value for fact in packet.packet.long_term.facts if fact.fact_key == "office.city"} == {"Bonn"}
    drum = run.remember("user.instrument", "drum", sources=[run.observe("user", "A drum now.").id])
    assert found(run, "Which instrument, the cello?") == ["user.instrument: drum"]
    assert terms(any_mem, old.fact_id) == []
    run.memory.retract(drum.fact_id)
    assert found(run, "Which instrument, the cello?") == []
    assert any_mem.verify().ok


@pytest.mark.req("LG-07")
def test_terms_are_forgotten_with_their_fact(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    one, two = run.observe("user", "My cello is old."), run.observe("user", "I own a cello.")
    fact = run.remember("user.instrument", "cello", sources=[one.id])
    run.remember("user.instrument", "cello", sources=[two.id])
    made = terms(any_mem, fact.fact_id)
    assert made
    any_mem.forget(event=one.id)
    assert terms(any_mem, fact.fact_id) == made
    any_mem.forget(event=two.id)
    assert terms(any_mem) == []
    assert any_mem.verify().ok


@pytest.mark.req("LG-05")
def test_terms_travel_and_are_made_again(any_mem: Memory, tmp_path: Path) -> None:
    run = any_mem.run(user_id="ana")
    fill(run, 0, 2 * HELD_MAX)
    with muniment.open(tmp_path / "other.db") as other:
        other.import_(list(any_mem.export()))
        assert terms(other) == terms(any_mem)
        assert other.verify().ok
    query = "number3 ward"
    before = found(run, query)
    fact_id = run.facts()[0].fact_id
    made = terms(any_mem, fact_id)
    for changes in (
        [Delete("item_terms", (("item_id", "=", fact_id),))],
        [Delete("item_terms", (("item_id", "=", fact_id), ("term", "=", made[0].term)))],
        [Insert("item_terms", [made[0]._replace(term=7)])],
        [Insert("item_terms", [made[0]._replace(owner="bob")])],
        [Insert("item_terms", [made[0]._replace(item_id="fct_other")])],
        [Insert("item_terms", [made[0]._replace(item_id="aaa")])],
    ):
        any_mem._ctx.engine.write("default", lambda tx, changes=changes: [tx.do(change) for change in changes])
        assert {each.kind for each in any_mem.verify().differing} == {"terms"}, changes
        any_mem.store.rebuild()
        assert any_mem.verify().ok
        assert found(run, query) == before
