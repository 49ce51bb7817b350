"""Every store is a projection of the ledger: dropped, it comes back to the byte; random lives included."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import ComposePolicy, FactPolicy, Policy
from muniment.core.ports.engine import Delete, Reader, Row, Select, Transaction
from muniment.errors import Conflict, Forgotten, NotFound
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.memory.evidence import NOTHING, read_wanted
from muniment.packets._run_section import gather_run
from muniment.packets.gather import load_stores
from muniment.store.engines.sqlite import SqliteEngine

Maker = Callable[..., Memory]
KINDS = ("working_state", "fact", "procedure", "insight", "candidate", "run")


def items(mem: Memory) -> list[Row]:
    def read(reader: Reader) -> list[Row]:
        rows = reader.do(Select("items", where=(("kind", "in", KINDS),)))
        return rows + reader.do(Select("links"))

    return mem._ctx.engine.read("default", read)


def drop(tx: Transaction) -> None:
    for kind in KINDS:
        tx.do(Delete("items", (("kind", "=", kind),)))
    tx.do(Delete("links", (("source_id", ">", ""),)))


def live(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1", grants=("agent", "tenant"))
    one, two = run.observe("user", "I live in Berlin. I love tea."), run.observe("user", "I moved to Rome.")
    run.patch(goal="x", slots={"a": 1}, decisions=[{"statement": "y", "evidence_id": one.id}])
    run.patch(slots={"a": None, "b": [2]})
    city = run.remember("user.city", "Berlin", sources=[one.id], quote="Berlin", notes="n")
    run.remember("user.city", "Rome", sources=[two.id], valid_to="2999-01-01")
    run.remember("user.zone", "CET", sources=[one.id], depends_on=[city.fact_id])
    run.remember("tone", "formal", sources=[one.id], scope_level="agent")
    shared = run.remember("open", True, sources=[one.id], scope_level="tenant")
    run.memory.dispute(shared.fact_id, sources=[two.id], reason="r")
    run.extract()
    waiting = run.propose("user.job", "cook", sources=[one.id])
    run.memory.decide(waiting.candidate_id, True, "ok")
    made = run.insight("hypothesis", "h", sources=[one.id])
    other = mem.run(user_id="ana", session_id="s0")
    other.memory.judge_insight(made.id, "validated", sources=[two.id])
    other.memory.promote_insight(made.id, task_type="t")
    procedure = run.procedure("t", {"s": 1})
    run.memory.use_procedures([procedure.procedure_id])
    run.memory.retire_procedure(procedure.procedure_id)
    run.finish()


@pytest.mark.req("MP-06", "MP-04")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_everything_comes_back_from_the_ledger(make: Maker, engine: str) -> None:
    mem = make(engine)
    live(mem)
    before = items(mem)
    assert mem.store.rebuild().repaired == ()
    mem._ctx.engine.write("default", drop)
    report = mem.store.rebuild()
    assert len(report.repaired) == report.items > 10
    assert items(mem) == before


def test_the_same_life_gives_the_same_bytes_on_every_engine(make: Maker) -> None:
    stores = [make(engine) for engine in ("memory", "sqlite")]
    for mem in stores:
        live(mem)
    assert items(stores[0]) == items(stores[1])


def test_a_clock_that_is_behind_does_not_disturb_a_rebuild(make: Maker) -> None:
    """Two processes, one clock some seconds behind: what builds on an item is recorded after it."""
    moments = [datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]
    reading = iter([0, 0, 0, 1, 1, 1, 0, 1, 0, 1, *[1] * 50])
    mem = make(clock=lambda: moments[next(reading)])
    ahead, behind = mem.run(user_id="ana", session_id="s2"), mem.run(user_id="ana", session_id="s1")
    one = ahead.observe("user", "a", ts="2026-01-01")
    ahead.remember("k", 1, sources=[one.id])
    two = behind.observe("user", "b", ts="2026-01-01")
    for value in (2, 3, 4):
        behind.remember("k", value, sources=[two.id])
        ahead.remember("k", value * 10, sources=[one.id])
    before = items(mem)
    assert mem.store.rebuild().repaired == ()
    assert items(mem) == before


VALUES = st.sampled_from(["a", "b", "c"])
KEYS = st.sampled_from(["k1", "k2", "user.likes"])
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("remember"), KEYS, VALUES, st.integers(0, 5), st.sampled_from([None, "2025-01-01", "2027-01-01"])
        ),
        st.tuples(st.just("propose"), KEYS, VALUES, st.integers(0, 5)),
        st.tuples(st.just("dispute"), st.integers(0, 9)),
        st.tuples(st.just("retract"), st.integers(0, 9)),
        st.tuples(st.just("patch"), VALUES, st.sampled_from([None, 0, 1, 2])),
        st.tuples(st.just("forget"), st.integers(0, 5)),
    ),
    max_size=25,
)


@pytest.mark.req("MP-06", "MP-07")
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_random_lives(steps: list[tuple[Any, ...]]) -> None:
    """One active fact for each plain key, every source alive and the user's own, and the ledger says it all."""
    context = new_context(
        engine=SqliteEngine(":memory:"),
        policy=Policy(),
        clock=TickingClock(step=timedelta(seconds=7)),
        ids=CountingIds(),
    )
    mem = Memory(context)
    runs = [mem.run(user_id="ana", session_id=f"s{index}") for index in range(2)]
    said = [runs[index % 2].observe("user", "a b c") for index in range(4)]
    said += [runs[0].observe_tool("t", content="a b c"), runs[1].observe("assistant", "a b c")]
    for number, step in enumerate(steps):
        run = runs[number % 2]
        try:
            act(mem, run, said, step)
        except (Conflict, Forgotten, NotFound):  # what the state of the store forbids; nothing else may be raised
            continue
    facts = runs[0].facts(include_all=True)
    for key in ("k1", "k2"):
        assert sum(fact.fact_key == key and fact.status == "active" for fact in facts) <= 1
    for fact in facts:
        assert fact.sources
        for source in fact.sources:
            assert runs[0].ledger.get(source).body is not None
    assert mem.store.rebuild().repaired == ()
    assert mem.verify().ok
    mem.close()


def act(mem: Memory, run: Any, said: list[Any], step: tuple[Any, ...]) -> None:
    match step:
        case ("remember", key, value, source, since):
            run.remember(key, value, sources=[said[source].id], valid_from=since)
        case ("propose", key, value, source):
            run.propose(key, value, sources=[said[source].id], quote=value, confidence=0.9)
        case ("dispute" | "retract" as name, index):
            facts = run.facts(include_all=True)
            if facts:
                getattr(run.memory, name)(facts[index % len(facts)].fact_id)
        case ("patch", value, version):
            run.patch(goal=value, expected_version=version)
        case ("forget", index):
            mem.forget(event=said[index].id)


@pytest.mark.req("MP-08")
def test_facts_are_pooled_with_their_match(mem: Memory) -> None:
    run = mem.run(user_id="ana", grants=("tenant",))
    nothing = mem._ctx.engine.read("default", lambda reader: gather_run(reader, run.scope, NOTHING, ComposePolicy()))
    assert nothing == (None, (), None, (), frozenset())
    said = run.observe("user", "x")
    run.remember("user.city", "Berlin", sources=[said.id])
    run.remember("user.diet", {"kind": "vegetarian food"}, sources=[said.id])
    run.remember("shop.city", "Rome", sources=[said.id], scope_level="tenant")
    wanted = read_wanted("vegetarian food near her city")

    def read(reader: Reader) -> list[tuple[str, float]]:
        return [
            (each.fact.fact_key, float(each.score))
            for each in load_stores(reader, run.scope, FactPolicy(), wanted).facts
        ]

    found = mem._ctx.engine.read("default", read)
    assert found[0][0] == "user.diet"
    assert found[0][1] > found[1][1] > 0
    bob = mem.run(user_id="bob")
    pooled = mem._ctx.engine.read("default", lambda reader: load_stores(reader, bob.scope, FactPolicy(), NOTHING).facts)
    assert [(each.fact.fact_key, each.score) for each in pooled] == [("shop.city", 0)]
