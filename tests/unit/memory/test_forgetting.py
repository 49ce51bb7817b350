"""What a forget does to memory (LG-07): values, quotes, patches go with their evidence; what else supports stays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from muniment.contracts.packet import Fact
from muniment.core.policy import FactPolicy
from muniment.errors import Forgotten, MunimentError
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.packets.gather import load_stores

Bytes = Callable[[], bytes]
Maker = Callable[..., Memory]
Everything = Callable[[Memory], str]

WORD = "Zebulonia"


def fill(run: Run, event_id: str) -> dict[str, str]:
    """Everything that can be derived from one event, each holding the word in a place of its own."""
    fact = run.remember("user.city", WORD, sources=[event_id], notes=f"{WORD}-notes", quote=WORD)
    run.memory.dispute(fact.fact_id, sources=[event_id], reason=f"{WORD}-reason")
    object_ = run.remember("user.home", {"in": [f"{WORD}-deep"]}, sources=[event_id])
    insight = run.insight("hypothesis", f"{WORD}-supposed", sources=[event_id], tests_suggested=[f"{WORD}-test"])
    run.memory.judge_insight(insight.id, "validated", sources=[event_id], reason=f"{WORD}-judged")
    promoted = run.memory.promote_insight(insight.id, key="user.guess")
    assert isinstance(promoted, Fact)
    procedure = run.procedure("travel", {"steps": [f"{WORD}-step"]}, sources=[event_id])
    waiting = run.propose("user.town", f"{WORD}-town", sources=[event_id], reason=f"{WORD}-why")
    run.memory.decide(waiting.candidate_id, True, f"{WORD}-decided")
    run.propose("user.place", f"{WORD}-place", sources=[event_id], quote=WORD, confidence=0.9)
    run.patch(decisions=[{"statement": f"go to {WORD}", "evidence_id": event_id}])
    return {
        "fact": fact.fact_id,
        "object": object_.fact_id,
        "insight": insight.id,
        "promoted": promoted.fact_id,
        "procedure": procedure.procedure_id,
    }


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_forgetting_the_event_takes_everything_derived_from_it(
    make: Maker, stored_bytes: Bytes, everything: Everything, engine: str
) -> None:
    mem = make(engine)
    run = mem.run(user_id="ana")
    run.patch(goal="plan a trip", slots={"people": 2})
    said = run.observe("user", f"I moved to {WORD} in May.")
    ids = fill(run, said.id)
    assert WORD in everything(mem)
    receipt = mem.forget(event=said.id)
    erased = {(each.kind, each.id) for each in receipt.erased}
    assert {("fact", ids["fact"]), ("fact", ids["promoted"]), ("insight", ids["insight"])} <= erased
    assert ("procedure", ids["procedure"]) in erased
    assert WORD not in everything(mem)
    assert WORD.encode() not in stored_bytes()
    assert receipt.scrubbed or engine == "postgres"
    assert run.facts(include_all=True) == run.memory.candidates() == []
    assert mem._ctx.engine.read("default", lambda reader: load_stores(reader, run.scope, FactPolicy()).insights) == ()
    assert mem._ctx.engine.read("default", lambda reader: load_stores(reader, run.scope, FactPolicy()).procedures) == ()
    state = run.working_state()
    assert (state.goal, state.slots) == ("plan a trip", {"people": 2})  # the run goes on
    assert not state.decisions
    with pytest.raises(Forgotten):
        run.memory.retract(ids["fact"])
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()
    assert WORD not in everything(mem)


@pytest.mark.req("LG-07")
def test_forgetting_the_fact_takes_its_patches_and_its_candidate(make: Maker, stored_bytes: Bytes) -> None:
    mem = make("sqlite")
    run = mem.run(user_id="ana")
    said = run.observe("user", "I moved in May.")
    plain = run.remember("user.city", WORD, sources=[said.id])
    waiting = run.propose("user.town", f"{WORD}-town", sources=[said.id])
    fact_id = run.memory.decide(waiting.candidate_id, True, f"{WORD}-decided").fact_id
    mem.forget(fact=plain.fact_id)
    mem.forget(fact=fact_id)
    assert WORD.encode() not in stored_bytes()
    assert run.facts(include_all=True) == run.memory.candidates() == []
    assert run.ledger.content(said.id) == "I moved in May."
    assert mem.store.rebuild().repaired == ()


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_fact_with_other_evidence_stays_without_what_is_lost(
    make: Maker, stored_bytes: Bytes, everything: Everything, engine: str
) -> None:
    mem = make(engine)
    run = mem.run(user_id="ana")
    one, two = run.observe("user", f"Berlin {WORD}"), run.observe("user", "Berlin again")
    first = run.remember("user.city", "Berlin", sources=[one.id], notes=f"{WORD}-notes", confidence=0.95)
    run.remember("user.city", "Berlin", sources=[two.id], confidence=0.7)
    both = run.remember("user.land", "Germany", sources=[one.id, two.id], quote=f"Berlin {WORD}")
    mem.forget(event=one.id)
    assert WORD not in everything(mem)
    assert WORD.encode() not in stored_bytes()
    left = {fact.fact_key: fact for fact in run.facts()}
    assert left["user.city"].fact_id == first.fact_id
    assert (left["user.city"].sources, left["user.city"].confidence) == ((two.id,), 0.7)
    assert left["user.city"].notes is None
    assert (left["user.land"].fact_id, left["user.land"].sources) == (both.fact_id, (two.id,))
    assert mem.store.rebuild().repaired == ()
    mem.forget(event=two.id)
    assert run.facts(include_all=True) == []
    assert "Germany" not in everything(mem)


@pytest.mark.req("LG-07", "LG-08")
def test_trust_falls_with_the_evidence_it_came_from(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said, tool = run.observe("user", "Berlin"), run.observe_tool("crm", content="Berlin")
    run.remember("user.city", "Berlin", sources=[said.id])
    run.remember("user.city", "Berlin", sources=[tool.id])
    mem.forget(event=said.id)
    (fact,) = run.facts()
    assert fact.sources == (tool.id,)
    other = run.observe("assistant", "Rome")
    assert run.remember("user.city", "Rome", sources=[other.id]).status == "active"  # no longer against a user's word


@pytest.mark.req("LG-07")
def test_what_a_forgotten_value_took_over_from_stays_history(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    one, two = run.observe("user", "Berlin"), run.observe("user", WORD)
    old = run.remember("user.city", "Berlin", sources=[one.id])
    run.remember("user.city", WORD, sources=[two.id])
    mem.forget(event=two.id)
    assert run.facts() == []  # what was superseded is not silently true again
    assert [(fact.fact_id, fact.status) for fact in run.facts(include_all=True)] == [(old.fact_id, "deprecated")]
    assert mem.store.rebuild().repaired == ()
    again = run.remember("user.city", "Berlin", sources=[one.id])
    assert [fact.fact_id for fact in run.facts()] == [again.fact_id]


@pytest.mark.req("LG-07")
def test_forgetting_a_session_takes_what_was_said_in_it(make: Maker, stored_bytes: Bytes) -> None:
    mem = make("sqlite")
    here, there = mem.run(user_id="ana", session_id="s1"), mem.run(user_id="ana", session_id="s2")
    kept = here.observe("user", "I live in Berlin")
    here.remember("user.city", "Berlin", sources=[kept.id])
    said = there.observe("user", f"I like {WORD}")
    there.remember("user.likes", WORD, sources=[said.id])
    here.remember("user.likes", f"{WORD}-too", sources=[said.id])  # a patch elsewhere, on evidence from there
    there.remember("user.street", f"{WORD}-street", sources=[kept.id])  # a patch there, on evidence from elsewhere
    there.patch(goal=WORD)
    insight = there.insight("hypothesis", WORD, expires_at="2999-01-01")
    here.memory.judge_insight(insight.id, "testing", reason=f"{WORD}-reason")
    mem.forget(session="s2", user_id="ana")
    assert WORD.encode() not in stored_bytes()
    assert [fact.value for fact in here.facts(include_all=True)] == ["Berlin"]
    assert there.working_state().goal is None
    assert there.patch(goal="on we go").goal == "on we go"
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()


@pytest.mark.req("LG-07", "MP-12")
def test_a_validation_that_lost_its_evidence_is_void(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said, shown = run.observe("user", "x"), run.observe("user", WORD)
    made = run.insight("hypothesis", "maybe", sources=[said.id])
    run.memory.judge_insight(made.id, "validated", sources=[shown.id], reason=WORD)
    mem.forget(event=shown.id)
    (found,) = mem._ctx.engine.read("default", lambda reader: load_stores(reader, run.scope, FactPolicy()).insights)
    assert found.insight.validation_state == "testing"
    with pytest.raises(MunimentError):
        run.memory.promote_insight(made.id, key="k")


def test_shared_facts_go_with_the_user_they_came_from(mem: Memory, everything: Everything) -> None:
    admin = mem.run(user_id="admin", grants=("tenant",))
    rule = admin.observe("system", f"We are in {WORD}")
    admin.remember("shop.city", WORD, sources=[rule.id], scope_level="tenant")
    bob = mem.run(user_id="bob")
    said = bob.observe("user", "x")
    derived = bob.remember("bob.zone", "UTC", sources=[said.id], depends_on=[bob.facts()[0].fact_id])
    mem.forget(user_id="admin")
    assert WORD not in everything(mem)
    (left,) = bob.facts()
    assert left.fact_id == derived.fact_id
    assert "stale_dependency" in str(left.notes)


@pytest.mark.req("LG-07")
def test_every_store_survives_export_and_import(mem: Memory, make: Maker) -> None:
    run = mem.run(user_id="ana")
    said, other = run.observe("user", f"I moved to {WORD}."), run.observe("user", "I like tea.")
    fill(run, said.id)
    run.remember("user.likes", "tea", sources=[other.id])
    lines = list(mem.export())
    copy = make()
    copy.import_(lambda: lines)
    again = copy.run(user_id="ana", session_id=run.scope.session_id, run_id=run.run_id)

    def view(which: Run) -> list[Any]:
        return [which.facts(include_all=True), which.memory.candidates(), which.working_state()]

    assert view(again) == view(run)
    assert copy.store.rebuild().repaired == ()
    copy.forget(event=said.id)
    assert [fact.value for fact in again.facts(include_all=True)] == ["tea"]


@pytest.mark.req("LG-07")
def test_nothing_is_derived_from_an_event_while_it_is_forgotten(any_mem: Memory) -> None:
    """Either the fact is there in time and goes with its source, or it comes too late and is refused."""
    run = any_mem.run(user_id="ana", session_id="s1")
    for turn in range(6):
        said = run.observe("user", f"city {turn}")
        refused: list[MunimentError] = []

        def remember(said_id: str = said.id, turn: int = turn, refused: list[MunimentError] = refused) -> None:
            other = any_mem.run(user_id="ana", session_id=f"t{turn}")
            for number in range(4):
                try:
                    other.remember(f"k{turn}.{number}", WORD, sources=[said_id])
                except Forgotten as error:
                    refused.append(error)

        thread = threading.Thread(target=remember)
        thread.start()
        any_mem.forget(event=said.id)
        thread.join()
    assert run.facts(include_all=True) == []
    assert any_mem.store.rebuild().repaired == ()
