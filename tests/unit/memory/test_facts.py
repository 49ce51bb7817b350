"""Facts (MP-06…MP-09): the rules table, scope levels, dependencies, time, concurrency."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from muniment.contracts.packet import Fact
from muniment.core.outside.system import CountingIds
from muniment.core.policy import FactPolicy
from muniment.errors import Conflict, Forbidden, Forgotten, MunimentError, NotFound, QuoteMismatch
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.memory.evidence import NOTHING
from products import for_each

Counts = Callable[[Memory], dict[str, int]]


def statuses(run: Run, key: str) -> list[tuple[Any, str]]:
    return [(fact.value, fact.status) for fact in run.memory.fact_history(key)]


def active(run: Run, key: str) -> list[Any]:
    return [fact.value for fact in run.facts(key, include_all=True) if fact.status == "active"]


# -- the rules ----------------------------------------------------------------------------------------


@pytest.mark.req("MP-06")
def test_a_newer_value_supersedes(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    one, two = run.observe("user", "I live in Berlin."), run.observe("user", "I moved to Munich.")
    berlin = run.remember("user.city", "Berlin", sources=[one.id])
    assert berlin.status == "active"
    assert berlin.sources == (one.id,)
    assert berlin.scope_level == "user"
    munich = run.remember("user.city", "Munich", sources=[two.id], confidence=0.7)
    assert munich.confidence == 0.7
    assert [fact.value for fact in run.facts("user.city")] == ["Munich"]
    old = run.memory.fact_history("user.city")[0]
    assert (old.fact_id, old.status) == (berlin.fact_id, "deprecated")
    assert old.validity is not None
    assert old.validity.valid_to == two.ts


@pytest.mark.req("MP-06")
def test_the_same_value_reinforces(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    one, two = run.observe("user", "Berlin"), run.observe("user", "still in berlin")
    first = run.remember("user.city", "Berlin", sources=[one.id], confidence=0.5)
    again = run.remember("user.city", " berlin ", sources=[two.id], confidence=0.8)
    assert again.fact_id == first.fact_id
    assert again.sources == (one.id, two.id)
    assert again.confidence == 0.8
    assert again.value == "Berlin"
    weaker = run.remember("user.city", "Berlin", sources=[two.id], confidence=0.1)
    assert weaker.confidence == 0.8
    assert len(run.facts(include_all=True)) == 1


@pytest.mark.req("MP-06")
def test_many_valued_keys_coexist(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "jazz and tea")
    jazz = run.remember("user.likes", "jazz", sources=[said.id])
    run.remember("user.likes", "tea", sources=[said.id])
    assert run.remember("user.likes", "jazz", sources=[said.id]).fact_id == jazz.fact_id
    assert sorted(active(run, "user.likes")) == ["jazz", "tea"]


@pytest.mark.req("MP-06", "LG-08")
def test_evidence_of_lower_trust_disputes_and_does_not_win(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "I live in Berlin.")
    tool = run.observe_tool("crm", content="city: Rome")
    run.remember("user.city", "Berlin", sources=[said.id])
    rome = run.remember("user.city", "Rome", sources=[tool.id], confidence=1)
    assert rome.status == "disputed"
    assert active(run, "user.city") == ["Berlin"]
    again = run.remember("user.city", "Rome", sources=[run.observe_tool("crm", content="Rome!").id])
    assert again.fact_id == rome.fact_id  # not disputed twice
    mixed = run.remember("user.city", "Oslo", sources=[said.id, tool.id])
    assert mixed.status == "disputed"  # the lowest of its sources counts
    now = run.observe("user", "I live in Rome now.")
    assert run.remember("user.city", "Rome", sources=[now.id]).status == "active"
    assert active(run, "user.city") == ["Rome"]


@pytest.mark.req("LG-08")
def test_evidence_of_lower_trust_neither_raises_nor_lowers_a_fact(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "I live in Berlin.")
    tool = run.observe_tool("crm", content="city: Berlin")
    run.remember("user.city", "Berlin", sources=[said.id], confidence=0.6)
    same = run.remember("user.city", "Berlin", sources=[tool.id], confidence=1.0)
    assert same.sources == (said.id,)
    assert same.confidence == 0.6
    other = run.observe_tool("crm", content="city: Rome")
    assert run.remember("user.city", "Rome", sources=[other.id]).status == "disputed"


@pytest.mark.req("LG-08")
def test_better_evidence_lifts_a_fact(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    tool = run.observe_tool("crm", content="city: Berlin")
    said = run.observe("user", "I live in Berlin.")
    first = run.remember("user.city", "Berlin", sources=[tool.id])
    lifted = run.remember("user.city", "Berlin", sources=[said.id], quote="I live in Berlin")
    assert (lifted.fact_id, lifted.sources, lifted.confidence) == (first.fact_id, (said.id,), 0.9)


@pytest.mark.req("MP-06")
def test_what_was_before_is_history(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "Berlin since May; before that, Rome")
    run.remember("user.city", "Berlin", sources=[said.id], valid_from="2025-05-01")
    rome = run.remember("user.city", "Rome", sources=[said.id], valid_from="2020-01-01")
    assert rome.status == "deprecated"
    assert rome.validity is not None
    assert rome.validity.valid_to == "2025-05-01T00:00:00.000000Z"
    assert statuses(run, "user.city") == [("Rome", "deprecated"), ("Berlin", "active")]
    old = run.observe("user", "I live in Paris", ts="2019-01-01")
    assert run.remember("user.city", "Paris", sources=[old.id]).status == "deprecated"


def test_what_has_ended_does_not_stand_in_the_way(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "until June I lived in Berlin", ts="2025-01-01")
    run.remember("user.city", "Berlin", sources=[said.id], valid_from="2020-01-01", valid_to="2025-06-01")
    tool = run.observe_tool("crm", content="Rome", ts="2025-09-01")
    assert run.remember("user.city", "Rome", sources=[tool.id]).status == "active"
    assert active(run, "user.city") == ["Rome"]


@pytest.mark.req("MP-07")
def test_by_default_what_is_active_and_valid_now(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "x")
    run.remember("a", 1, sources=[said.id])
    run.remember("b", 1, sources=[said.id], valid_to="2020-01-01")
    run.remember("c", 1, sources=[said.id], valid_from="2999-01-01")
    disputed = run.remember("d", 1, sources=[said.id])
    run.memory.dispute(disputed.fact_id, sources=[said.id], reason="she said otherwise")
    retracted = run.remember("e", 1, sources=[said.id])
    assert run.memory.retract(retracted.fact_id).status == "deprecated"
    assert [fact.fact_key for fact in run.facts()] == ["a"]
    assert [fact.fact_key for fact in run.facts(include_all=True)] == ["a", "b", "c", "d", "e"]


def test_as_of_reading(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    one = run.observe("user", "Berlin", ts="2021-01-01")
    two = run.observe("user", "Munich", ts="2023-01-01")
    run.remember("user.city", "Berlin", sources=[one.id])
    run.remember("user.city", "Munich", sources=[two.id])
    at: dict[str, list[Any]] = {
        moment: [fact.value for fact in run.facts("user.city", at=moment)]
        for moment in ("2020-06-01", "2022-06-01", "2023-01-01", "2024-06-01")
    }
    assert at == {"2020-06-01": [], "2022-06-01": ["Berlin"], "2023-01-01": ["Munich"], "2024-06-01": ["Munich"]}


@pytest.mark.req("MP-06")
def test_a_disputed_fact_gives_way_to_a_new_one(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "x")
    fact = run.remember("user.city", "Berlin", sources=[said.id])
    assert run.memory.dispute(fact.fact_id, sources=[said.id]).status == "disputed"
    assert run.remember("user.city", "Berlin", sources=[said.id]).fact_id != fact.fact_id
    assert active(run, "user.city") == ["Berlin"]
    run.memory.retract(fact.fact_id)
    with pytest.raises(Conflict):
        run.memory.dispute(fact.fact_id)
    with pytest.raises(Conflict):
        run.memory.retract(fact.fact_id)


def test_values_of_any_shape(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "x")
    for index, value in enumerate([None, True, 0, 1.5, "", "text", [1, [2]], {"a": {"b": None}}, 10**30]):
        assert run.remember(f"k{index}", value, sources=[said.id]).value == value
    one = run.remember("o", {"a": 1, "b": 2}, sources=[said.id])
    assert run.remember("o", {"b": 2, "a": 1.0}, sources=[said.id]).fact_id == one.fact_id


@pytest.mark.req("MP-09")
def test_which_facts_are_preferences(mem: Memory) -> None:
    from muniment.packets.gather import load_stores

    run = mem.run(user_id="ana")
    said = run.observe("user", "x")
    run.remember("user.diet", "vegan", sources=[said.id])
    run.remember("user.city", "Berlin", sources=[said.id])
    run.remember("user.theme", "dark", sources=[said.id], is_preference=True)
    run.remember("user.likes", "tea", sources=[said.id], is_preference=False)
    found = mem._ctx.engine.read("default", lambda reader: load_stores(reader, run.scope, FactPolicy(), NOTHING).facts)
    assert {each.fact.fact_key: each.is_preference for each in found} == {
        "user.diet": True,
        "user.city": False,
        "user.theme": True,
        "user.likes": False,
    }


# -- levels -------------------------------------------------------------------------------------------


@pytest.mark.req("MP-08", "LG-02")
def test_levels_are_inherited_downward_only_and_need_a_grant(any_mem: Memory) -> None:
    admin = any_mem.run(user_id="admin", agent_id="support", grants=("agent", "tenant"))
    rule = admin.observe("system", "We close at six. Support speaks formally.")
    admin.remember("shop.closes", "18:00", sources=[rule.id], scope_level="tenant")
    admin.remember("tone", "formal", sources=[rule.id], scope_level="agent")
    ana = any_mem.run(user_id="ana", agent_id="support")
    assert {fact.fact_key: fact.value for fact in ana.facts()} == {"shop.closes": "18:00", "tone": "formal"}
    sales = any_mem.run(user_id="ana", agent_id="sales")
    assert [fact.fact_key for fact in sales.facts()] == ["shop.closes"]
    assert any_mem.run(user_id="eve", tenant_id="acme", agent_id="support").facts() == []
    said = ana.observe("user", "casual please")
    ana.remember("tone", "casual", sources=[said.id])
    assert [fact.value for fact in ana.facts("tone")] == ["casual"]
    assert sorted(str(fact.value) for fact in ana.facts("tone", include_all=True)) == ["casual", "formal"]
    assert [fact.value for fact in any_mem.run(user_id="bob", agent_id="support").facts("tone")] == ["formal"]


@pytest.mark.req("MP-08")
def test_without_a_grant_nothing_above_the_user_is_written(mem: Memory, counts: Counts) -> None:
    admin = mem.run(user_id="admin", grants=("tenant",))
    rule = admin.observe("system", "We close at six.")
    fact = admin.remember("shop.closes", "18:00", sources=[rule.id], scope_level="tenant")
    ana = mem.run(user_id="ana")
    said = ana.observe("user", "No, at seven!")
    before = counts(mem)
    for level in ("agent", "tenant"):
        with pytest.raises(Forbidden) as caught:
            ana.remember("shop.closes", "19:00", sources=[said.id], scope_level=level)  # type: ignore[arg-type]
        assert caught.value.status == 403
    for attack in (ana.memory.dispute, ana.memory.retract):
        with pytest.raises(Forbidden):
            attack(fact.fact_id)
    with pytest.raises(Forbidden):
        admin.remember("x", 1, sources=[rule.id], scope_level="agent")
    assert counts(mem) == before
    for bad in ("tenant", ("root",), (1,), 5):
        with pytest.raises(MunimentError):
            mem.run(user_id="ana", grants=bad)  # type: ignore[arg-type]


@pytest.mark.req("LG-02")
def test_nothing_crosses_users(any_mem: Memory, counts: Counts) -> None:
    ana, bob = any_mem.run(user_id="ana"), any_mem.run(user_id="bob")
    said = ana.observe("user", "I live in Berlin")
    fact = ana.remember("user.city", "Berlin", sources=[said.id])
    bob.observe("user", "hello")
    before = counts(any_mem)
    assert bob.facts(include_all=True) == bob.memory.fact_history("user.city") == []
    for attempt in (
        lambda: bob.remember("user.city", "Rome", sources=[said.id]),
        lambda: bob.memory.dispute(fact.fact_id),
        lambda: bob.memory.retract(fact.fact_id),
        lambda: bob.propose("k", "v", sources=[said.id]),
        lambda: bob.extract([said.id]),
    ):
        with pytest.raises(NotFound):
            attempt()
    mine = bob.observe("user", "x")
    with pytest.raises(NotFound):
        bob.remember("k", "v", sources=[mine.id], depends_on=[fact.fact_id])
    assert counts(any_mem)["default.items"] == before["default.items"]


# -- dependencies -------------------------------------------------------------------------------------


@pytest.mark.req("MP-06")
def test_what_depends_on_a_fallen_fact_is_flagged(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    one, two = run.observe("user", "I live in Berlin"), run.observe("user", "I moved to Rome")
    city = run.remember("user.city", "Berlin", sources=[one.id])
    zone = run.remember("user.zone", "CET", sources=[one.id], depends_on=[city.fact_id])
    hours = run.remember("user.hours", "9-17", sources=[one.id], depends_on=[zone.fact_id], notes="local time")
    assert zone.notes is None
    run.remember("user.city", "Rome", sources=[two.id])
    flagged = {fact.fact_key: fact.notes for fact in run.facts()}
    assert "stale_dependency" in str(flagged["user.zone"])
    assert city.fact_id in str(flagged["user.zone"])
    assert str(flagged["user.hours"]).startswith("local time; stale_dependency")  # and so on down
    assert flagged["user.city"] is None
    assert hours.fact_id
    with pytest.raises(NotFound):
        run.remember("k", 1, sources=[one.id], depends_on=["fct_none"])


def test_a_shared_fact_cannot_rest_on_a_private_one(mem: Memory) -> None:
    run = mem.run(user_id="ana", grants=("tenant",))
    said = run.observe("user", "x")
    mine = run.remember("a", 1, sources=[said.id])
    shared = run.remember("b", 1, sources=[said.id], scope_level="tenant")
    run.remember("c", 1, sources=[said.id], depends_on=[shared.fact_id])
    with pytest.raises(MunimentError):
        run.remember("d", 1, sources=[said.id], scope_level="tenant", depends_on=[mine.fact_id])


# -- concurrency --------------------------------------------------------------------------------------


@pytest.mark.req("MP-06")
def test_one_active_fact_however_many_write_at_once(any_mem: Memory) -> None:
    runs = [any_mem.run(user_id="ana", session_id=f"s{index}") for index in range(6)]
    said = [run.observe("user", f"city {index}") for index, run in enumerate(runs)]
    failures: list[BaseException] = []

    def write(index: int) -> None:
        try:
            for turn in range(3):
                runs[index].remember(
                    "user.city", f"city {index} {turn}", sources=[said[index].id], valid_from="2026-01-02"
                )
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=write, args=(index,)) for index in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(active(runs[0], "user.city")) == 1
    assert len(runs[0].facts(include_all=True)) == 18
    assert any_mem.store.rebuild().repaired == ()


# -- bad input ----------------------------------------------------------------------------------------


@for_each(
    ("wrong", "path"),
    [
        ({"sources": []}, "$.sources"),
        ({"sources": "SAID"}, "$.sources"),
        ({"sources": ["evt_none"]}, "$.sources[0]"),
        ({"sources": [7]}, "$.sources[0]"),
        ({"sources": None}, "$.sources"),
        ({"value": float("nan")}, "$.value"),
        ({"value": object()}, "$.value"),
        ({"value": {1: 2}}, "$.value"),
        ({"key": ""}, "$.key"),
        ({"key": 3}, "$.key"),
        ({"key": "a\nb"}, "$.key"),
        ({"key": "k" * 300}, "$.key"),
        ({"confidence": 1.5}, "$.confidence"),
        ({"confidence": float("nan")}, "$.confidence"),
        ({"confidence": "high"}, "$.confidence"),
        ({"confidence": True}, "$.confidence"),
        ({"scope_level": "galaxy"}, "$.scope_level"),
        ({"valid_from": "2026-01-02", "valid_to": "2026-01-01"}, "$.valid_to"),
        ({"valid_from": "soon"}, "$.valid_from"),
        ({"valid_to": 5}, "$.valid_to"),
        ({"notes": 5}, "$.notes"),
        ({"depends_on": "fct"}, "$.depends_on"),
        ({"quote": "not in there"}, "$.quote"),
        ({"quote": ""}, "$.quote"),
        ({"is_preference": "yes"}, "$.is_preference"),
    ],
)
def test_bad_facts_are_typed_errors_and_write_nothing(
    mem: Memory, counts: Counts, wrong: dict[str, Any], path: str
) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "I live in Berlin")
    before = counts(mem)
    given: dict[str, Any] = {"key": "user.city", "value": "Berlin", "sources": [said.id]} | wrong
    key, value = given.pop("key"), given.pop("value")
    with pytest.raises(MunimentError) as caught:
        run.remember(key, value, **given)
    assert str(caught.value.path).startswith(path)
    assert counts(mem) == before


def test_bad_objections(mem: Memory, counts: Counts) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "x")
    fact = run.remember("k", 1, sources=[said.id])
    insight = run.insight("hypothesis", "x")
    before = counts(mem)
    for call in (
        lambda: run.memory.dispute("fct_none"),
        lambda: run.memory.dispute(insight.id),
        lambda: run.memory.dispute(fact.fact_id, sources=["evt_none"]),
        lambda: run.memory.dispute(fact.fact_id, reason=3),  # type: ignore[arg-type]
        lambda: run.memory.retract(None),  # type: ignore[arg-type]
        lambda: run.facts(3),  # type: ignore[arg-type]
        lambda: run.facts(at="then"),
        lambda: run.memory.fact_history(""),
    ):
        with pytest.raises(MunimentError):
            call()
    assert counts(mem) == before


def test_sources_are_evidence_that_is_still_there(mem: Memory, counts: Counts) -> None:
    run = mem.run(user_id="ana")
    said, gone = run.observe("user", "x"), run.observe("user", "y")
    run.remember("k", 1, sources=[said.id])
    patch = next(entry for entry in run.ledger.entries() if entry.kind == "state_patch")
    mem.forget(event=gone.id)
    before = counts(mem)
    with pytest.raises(Forgotten):
        run.remember("k", 2, sources=[gone.id])
    with pytest.raises(MunimentError):
        run.remember("k", 2, sources=[patch.id])
    assert counts(mem) == before


def test_a_quote_is_checked_wherever_the_source_lies(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    long = run.observe("user", "x" * 70_000 + " I live in Zürich " + "y" * 70_000)
    assert run.remember("user.city", "Zürich", sources=[long.id], quote="I live in Zürich").status == "active"
    with pytest.raises(QuoteMismatch):
        run.remember("user.city", "Zürich", sources=[long.id], quote="I live in Zurich")


def test_secrets_do_not_become_facts(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "hello")
    assert "hunter2" not in str(run.remember("user.password", "hunter2", sources=[said.id]).value)
    key = "sk-" + "a1B2" * 12
    fact: Fact = run.remember("user.note", f"my key is {key}", sources=[said.id])
    assert key not in str(fact.value)
    assert run.remember("user.note", f"my key is {key}", sources=[said.id]).fact_id == fact.fact_id


class CardIds(CountingIds):
    """Ids that read like card numbers, as one in some hundred of the real ones does in part."""

    def new(self, prefix: str) -> str:
        return f"{prefix}_{self._next():08x}a4111111111111111"


@pytest.mark.req("LG-10", "X-09")
def test_ids_are_never_taken_for_secrets(make: Callable[..., Memory]) -> None:
    mem = make(ids=CardIds())
    run = mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", "I am vegetarian")
    fact = run.remember(
        "user.diet", "vegetarian", sources=[said.id], quote="vegetarian", notes="card 4111 1111 1111 1111"
    )
    assert fact.sources == (said.id,)
    assert fact.notes == "card [redacted:card_number]"
    run.remember("user.diet", "vegan", sources=[said.id], depends_on=[fact.fact_id])
    state = run.patch(decisions=[{"statement": "pay with 4111 1111 1111 1111", "evidence_id": said.id}])
    assert state.to_wire()["decisions"] == [{"statement": "pay with [redacted:card_number]", "evidence_id": said.id}]
    made = run.insight("hypothesis", "x 4111 1111 1111 1111", sources=[said.id])
    assert (made.statement, made.sources) == ("x [redacted:card_number]", (said.id,))
    run.memory.judge_insight(made.id, "validated", sources=[said.id])
    promoted = run.memory.promote_insight(made.id, task_type="t")
    assert promoted.sources == (said.id,)
    run.memory.use_procedures([promoted.procedure_id])  # type: ignore[union-attr]
    waiting = run.propose("user.job", "cook", sources=[said.id], reason="4111 1111 1111 1111")
    assert waiting.reason == "[redacted:card_number]"
    assert run.memory.decide(waiting.candidate_id, True).fact_id is not None
    assert mem.store.rebuild().repaired == ()


def test_the_rules_are_the_policys(make: Callable[..., Memory]) -> None:
    rules = {"many_valued": ["team.*"], "preferences": ["team.tone"], "lower_trust_disputes": False}
    mem = make(policy={"memory": {"facts": rules | {"confidence": {"user": 0.7}}}})
    run = mem.run(user_id="ana")
    said, tool = run.observe("user", "x"), run.observe_tool("t", content="x")
    run.remember("team.member", "ana", sources=[said.id])
    run.remember("team.member", "bob", sources=[said.id])
    assert sorted(active(run, "team.member")) == ["ana", "bob"]
    run.remember("user.likes", "tea", sources=[said.id])
    assert run.remember("user.likes", "jazz", sources=[tool.id]).status == "active"
    assert active(run, "user.likes") == ["jazz"]
    assert run.remember("a", 1, sources=[said.id]).confidence == 0.7


@pytest.mark.req("MP-06")
def test_what_is_remembered_without_a_confidence_is_half_sure_whoever_said_it(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    evidence = {
        "user": run.observe("user", "I live in Turin."),
        "assistant": run.observe("assistant", "You live in Turin."),
        "tool": run.observe_tool("crm", content="Turin"),
        "external": run.observe_tool("web", content="Turin", trust="external"),
    }
    for who, said in evidence.items():
        fact = run.remember(f"of.{who}", "Turin", sources=[said.id])
        assert (fact.confidence, fact.notes) == (0.5, None)
    assert run.remember("of.zero", "Turin", sources=[evidence["user"].id], confidence=0).confidence == 0


@pytest.mark.req("MP-06")
def test_the_users_own_words_quoted_are_surer_by_policy_and_the_fact_says_so(make: Callable[..., Memory]) -> None:
    run = make().run(user_id="ana")
    said, tool = run.observe("user", "I live in Turin."), run.observe_tool("crm", content="lives in Turin")
    quoted = run.remember("user.city", "Turin", sources=[said.id], quote="I live in Turin")
    assert quoted.confidence == 0.9
    assert quoted.notes is not None
    assert "policy" in quoted.notes
    own = run.remember("user.home", "Turin", sources=[said.id], quote="I live in Turin", notes="asked twice")
    assert (own.confidence, own.notes) == (0.9, "asked twice")
    told = run.remember("user.town", "Turin", sources=[said.id], quote="I live in Turin", confidence=0.4)
    assert (told.confidence, told.notes) == (0.4, None)
    assert run.remember("user.place", "Turin", sources=[tool.id], quote="in Turin").confidence == 0.5
    mixed = run.remember("user.base", "Turin", sources=[said.id, tool.id], quote="I live in Turin")
    assert mixed.confidence == 0.5
    plain = make(policy={"memory": {"facts": {"confidence": {"user_quote": 0.5}}}}).run(user_id="ana")
    said = plain.observe("user", "I live in Turin.")
    fact = plain.remember("user.city", "Turin", sources=[said.id], quote="I live in Turin")
    assert (fact.confidence, fact.notes) == (0.5, None)


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [60, 88, 95, 120, 126, 200])
def test_what_is_remembered_can_be_composed(mem: Memory, levels: int) -> None:
    """Too deep is refused at the door; what gets in never keeps a user from a packet."""
    run = mem.run(user_id="ana")
    event = run.observe("user", "The plan has layers.")
    with contextlib.suppress(MunimentError):
        run.remember("user.plan", nested(levels), sources=[event.id])
    with contextlib.suppress(MunimentError):
        run.patch(slots={"plan": nested(levels)})
    with contextlib.suppress(MunimentError):
        run.procedure("booking", {"steps": nested(levels)})
    build = run.compose("planner", query="plan layers", task_type="booking")
    assert mem.replay(build.id).packet_bytes == build.packet_bytes
    assert bool(build.packet.long_term.facts) == (levels <= 95)


@pytest.mark.parametrize("cues", [{"x": {1: 2}}, {1: 2}, {"x": {None: "sk-1"}}])
def test_cues_with_keys_that_are_no_text_are_refused(mem: Memory, cues: Any) -> None:
    with pytest.raises(MunimentError):
        mem.run(user_id="ana").compose("responder", query="x", cues=cues)
