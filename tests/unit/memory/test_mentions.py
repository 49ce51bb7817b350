"""Repeated mentions of a fact: one entry and its links each, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Count, Op, Row, Select
from muniment.errors import Forgotten, NotFound
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.memory._fact_records import FIRST_KEPT
from muniment.store.items import links_of

MENTIONS = 60


class Counted:
    """A transaction whose operations are noted, with the rows that each answered."""

    def __init__(self, inner: Any, noted: list[int]) -> None:
        self._inner, self._noted = inner, noted

    def do(self, op: Op[Any]) -> Any:
        answer = self._inner.do(op)
        self._noted.append(len(answer) if isinstance(answer, list) else 1)
        return answer

    def stream(self, select: Select) -> Iterator[Row]:
        rows = list(self._inner.stream(select))
        self._noted.append(len(rows))
        return iter(rows)


def rows_of(mem: Memory, table: str, **where: Any) -> int:
    conditions = tuple((name, "=", value) for name, value in where.items())
    return mem._ctx.engine.read("default", lambda reader: reader.do(Count(table, conditions)))


def links_to(mem: Memory, item_id: str) -> set[str]:
    return {link.source_id for link in mem._ctx.engine.read("default", lambda reader: links_of(reader, item_id))}


def mention(run: Run, count: int, **more: Any) -> list[str]:
    """The sources of so many mentions of one fact."""
    said = run.observe_many([{"role": "user", "content": f"My brother Tom called, day {n}."} for n in range(count)])
    for entry in said:
        run.remember("user.brother", "Tom", sources=[entry.id], **more)
    return [entry.id for entry in said]


@pytest.mark.req("MP-06")
def test_a_mention_costs_the_same_however_many_there_are(any_mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = any_mem.run(user_id="ana")
    said = run.observe_many([{"role": "user", "content": f"Tom called, day {n}."} for n in range(MENTIONS)])
    engine, costs = any_mem._ctx.engine, []
    write: Callable[..., Any] = engine.write
    for entry in said:
        noted: list[int] = []

        def counted(_: Any, tenant: str, work: Callable[[Any], Any], noted: list[int] = noted) -> Any:
            return write(tenant, lambda tx: work(Counted(tx, noted)))

        with monkeypatch.context() as patched:
            patched.setattr(type(engine), "write", counted)
            fact = run.remember("user.brother", "Tom", sources=[entry.id])
        costs.append((len(noted), sum(noted)))
    assert len(set(costs[FIRST_KEPT:])) == 1
    assert rows_of(any_mem, "items", id=fact.fact_id) == FIRST_KEPT
    assert links_to(any_mem, fact.fact_id) >= {entry.id for entry in said}
    assert fact.sources == tuple(entry.id for entry in said[:FIRST_KEPT])
    assert any_mem.verify().ok


@pytest.mark.req("MP-06")
def test_extracting_a_mention_reads_no_more_after_many(any_mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = any_mem.run(user_id="ana")
    said = run.observe_many([{"role": "user", "content": f"My name is Ana. Day {n}."} for n in range(MENTIONS)])
    engine, costs = any_mem._ctx.engine, []
    write: Callable[..., Any] = engine.write
    for entry in said:
        noted: list[int] = []

        def counted(_: Any, tenant: str, work: Callable[[Any], Any], noted: list[int] = noted) -> Any:
            return write(tenant, lambda tx: work(Counted(tx, noted)))

        with monkeypatch.context() as patched:
            patched.setattr(type(engine), "write", counted)
            (candidate,) = run.extract(event_ids=[entry.id])
        costs.append((len(noted), sum(noted)))
    assert len(set(costs[FIRST_KEPT:])) == 1
    assert run.extract(event_ids=[said[-1].id]) == [candidate]


@pytest.mark.req("MP-06")
def test_a_later_mention_that_says_more_is_kept(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    mention(run, 2 * FIRST_KEPT, confidence=0.4)
    last = run.observe("user", "Tom is my brother for sure, since May.")
    fact = run.remember(
        "user.brother", "Tom", sources=[last.id], confidence=0.9, valid_from="2020-05-01T00:00:00Z", notes="for sure"
    )
    assert (fact.confidence, fact.notes, fact.sources[-1]) == (0.9, "for sure", last.id)
    assert fact.validity is not None
    assert fact.validity.valid_from == "2020-05-01T00:00:00.000000Z"
    mention(run, FIRST_KEPT, confidence=0.5, notes="for sure")
    again = run.facts("user.brother")[0]
    assert again == fact
    any_mem.forget(event=last.id)
    after = run.facts("user.brother")[0]
    assert after.confidence == 0.5
    assert after.notes == "for sure"
    assert after.validity is None
    assert any_mem.verify().ok


@pytest.mark.req("LG-07")
def test_a_fact_stands_by_any_mention_and_goes_with_the_last(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    said = mention(run, 3 * FIRST_KEPT)
    fact_id = run.facts("user.brother")[0].fact_id
    for place, source in enumerate(said[:-1]):
        any_mem.forget(event=source)
        left = said[place + 1 :]
        assert run.facts("user.brother")[0].sources == tuple(left[:FIRST_KEPT]), place
    any_mem.forget(event=said[-1])
    assert run.facts("user.brother", include_all=True) == []
    with pytest.raises((Forgotten, NotFound)):
        run.memory.retract(fact_id)
    assert any_mem.verify().ok


@pytest.mark.req("LG-07")
def test_forgetting_a_mention_in_the_middle(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    said = mention(run, 3 * FIRST_KEPT)
    any_mem.forget(event=said[2 * FIRST_KEPT])
    assert run.facts("user.brother")[0].sources == tuple(said[:FIRST_KEPT])
    mention(run, 2)
    assert run.facts("user.brother")[0].sources == tuple(said[:FIRST_KEPT])


@pytest.mark.req("LG-07")
def test_forgetting_a_fact_takes_every_candidate_that_became_it(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    made = []
    for n in range(2 * FIRST_KEPT):
        said = run.observe("user", f"Tom called, day {n}.")
        proposed = run.propose("user.brother", "Tom", sources=[said.id])
        made.append(run.memory.decide(proposed.candidate_id, accept=True))
    ids = {each.fact_id for each in made}
    assert len(ids) == 1
    any_mem.forget(fact=ids.pop())
    assert run.memory.candidates() == []


def test_mentions_travel_in_a_dump(any_mem: Memory, tmp_path: Any) -> None:
    run = any_mem.run(user_id="ana")
    said = mention(run, 2 * FIRST_KEPT)
    with muniment.open(tmp_path / "other.db") as other:
        other.import_(list(any_mem.export()))
        here = other.run(user_id="ana")
        fact = here.facts("user.brother")[0]
        assert fact == run.facts("user.brother")[0]
        assert links_to(other, fact.fact_id) >= set(said)
        for source in said[:FIRST_KEPT]:
            other.forget(event=source)
        assert here.facts("user.brother")[0].sources == tuple(said[FIRST_KEPT:])
        assert other.verify().ok
