"""The rules of facts on their own, at equal times above all: what a new saying does to what stands (MP-06)."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core.policy import FactPolicy
from muniment.core.scope import Trust
from muniment.memory._fact_records import (
    Assertion,
    Outcome,
    Saying,
    StoredFact,
    has_less_trust,
    is_many_valued,
    is_preference,
    names_value,
    resolve,
    same_value,
)

JANUARY, MARCH, MAY = (f"2025-0{month}-01T00:00:00.000000Z" for month in (1, 3, 5))


def fact(name: str, value: Any, since: str = MARCH, until: str | None = None, **fields: Any) -> StoredFact:
    said = Assertion(
        patch=f"patch-{name}",
        sources=(f"said-{name}",),
        trust=fields.pop("trust", "user"),
        since=since,
        confidence=0.9,
        notes=None,
        valid_from=None,
        valid_to=until,
        quote=None,
        origin=None,
    )
    given: dict[str, Any] = {"status": "active", "ended_at": None, "superseded_by": None}
    return StoredFact(
        fact_id=name,
        key="user.city",
        value=value,
        scope_level="user",
        assertions=(said,),
        is_preference=False,
        depends_on=(),
        objections=(),
        is_retracted=False,
        **{**given, **fields},
    )


def says(value: Any, since: str = MARCH, trust: Trust = "user", key: str = "user.city") -> Saying:
    return Saying(key, value, trust, since, None)


def outcome(saying: Saying, *standing: StoredFact, policy: FactPolicy | None = None) -> Outcome:
    return resolve(saying, standing, policy or FactPolicy())


@pytest.mark.req("MP-06")
def test_a_value_said_for_the_same_moment_takes_over() -> None:
    """Mutation: `<=` for `<`: what is said for the moment from which the other holds becomes history."""
    assert outcome(says("Rome"), fact("f1", "Berlin")) == Outcome(
        "supersedes", "active", ends=("f1",), ended_at=MARCH, against="f1"
    )
    assert outcome(says("Rome", JANUARY), fact("f1", "Berlin")) == Outcome(
        "history", "deprecated", ended_at=MARCH, against="f1"
    )
    assert outcome(says("Rome", MAY), fact("f1", "Berlin")).effect == "supersedes"


@pytest.mark.req("MP-06")
def test_a_fact_still_holds_at_the_moment_it_ends() -> None:
    """Mutation: `>` for `>=`: a fact that ends as the saying begins is neither the same again nor in its way."""
    ends_then = fact("f1", "Berlin", JANUARY, until=MARCH)
    assert outcome(says(" BERLIN "), ends_then) == Outcome("reinforces", "active", adds_to="f1")
    assert outcome(says("Rome", trust="tool"), ends_then) == Outcome("disputes", "disputed", against="f1")
    assert outcome(says("Berlin", MAY), ends_then).effect == "supersedes"
    assert outcome(says("Rome", MAY, trust="tool"), ends_then) == Outcome(
        "supersedes", "active", ends=("f1",), ended_at=MAY, against="f1"
    )
    after = fact("f1", "Berlin", MAY, until=JANUARY)  # ended before it began: nothing to be older than
    assert outcome(says("Rome", MARCH), after).effect == "supersedes"


@pytest.mark.req("MP-06", "X-05")
@pytest.mark.parametrize("turned", [False, True])
def test_of_facts_that_hold_from_the_same_moment_the_later_id_is_the_current_one(turned: bool) -> None:
    """Mutation: the current fact is the first of those that hold since the same moment, as they happen to be read."""
    standing = [fact("f1", "Berlin", trust="tool"), fact("f2", "Oslo")]
    if turned:
        standing.reverse()
    made = outcome(says("Rome", trust="assistant"), *standing)
    assert (made.effect, made.against) == ("disputes", "f2")
    newest = outcome(says("Rome", MAY), fact("f9", "Berlin", JANUARY), *standing)
    assert (newest.against, newest.ends) == ("f2", ("f9", *(one.fact_id for one in standing)))


@pytest.mark.req("MP-06")
def test_only_what_is_active_stands_in_the_way() -> None:
    assert outcome(says("Rome")) == Outcome("new", "active")
    assert outcome(says("Rome"), fact("f1", "Rome", status="deprecated")) == Outcome("new", "active")
    assert outcome(says("Rome", trust="tool"), fact("f1", "Berlin", status="disputed")) == Outcome("new", "active")
    assert outcome(says("Rome"), fact("f0", "Oslo"), fact("f1", "Rome")).adds_to == "f1"


@pytest.mark.req("MP-06")
def test_a_key_of_many_values_takes_one_more() -> None:
    assert outcome(says("tea", key="user.likes"), fact("f1", "jazz")) == Outcome("coexists", "active")


@pytest.mark.req("MP-06", "LG-08")
def test_a_dispute_is_added_to_its_twin_of_the_same_trust_and_value() -> None:
    """Mutation: the twin may be of another trust, of another value, or no disputed fact."""
    standing = [
        fact("f1", "Berlin"),
        fact("f2", "Rome", trust="assistant", status="disputed"),
        fact("f3", "Oslo", trust="tool", status="disputed"),
        fact("f4", "Rome", trust="tool", status="deprecated"),
        fact("f5", "rome", trust="tool", status="disputed"),
    ]
    assert outcome(says("Rome", trust="tool"), *standing) == Outcome("disputes", "disputed", adds_to="f5", against="f1")
    assert outcome(says("Rome", trust="tool"), *standing[:4]).adds_to is None
    lenient = FactPolicy(lower_trust_disputes=False)
    assert outcome(says("Rome", trust="tool"), *standing, policy=lenient).effect == "supersedes"


def test_values_are_the_same_but_for_case_width_and_white_space() -> None:
    assert same_value("New  York", " new york")
    assert same_value("Ｂｅｒｌｉｎ", "berlin")
    assert same_value({"a": 1, "b": [2]}, {"b": [2], "a": 1})
    assert not same_value("1", 1)
    assert not same_value(["Berlin"], ["berlin"])


def test_a_name_means_a_value_by_its_first_part() -> None:
    assert names_value("Portland", "Portland, Oregon")
    assert names_value("portland, oregon", "Portland")
    assert names_value("the Hague", "Hague")
    assert names_value("Hague", "The Hague, NL")
    assert not names_value("Oregon", "Portland, Oregon")
    assert not names_value("Portland, Maine", "Portland, Oregon")
    assert not names_value("1", 1)


def test_trust_has_an_order_and_keys_have_patterns() -> None:
    assert has_less_trust("tool", "user")
    assert not has_less_trust("user", "user")
    assert not has_less_trust("user", "tool")
    policy = FactPolicy(many_valued=("user.likes", "*.tags"), preferences=("user.prefers.*",))
    assert [is_many_valued(key, policy) for key in ("user.likes", "a.tags", "user.city")] == [True, True, False]
    assert [is_preference(key, policy) for key in ("user.prefers.tea", "user.likes")] == [True, False]
