"""`run.facts()`, lists, search and packets agree on which facts hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.handles.run import Run
from products import for_each

LEVELS = ("user", "agent", "tenant")
PAST, FUTURE = "2001-01-01T00:00:00Z", "2030-01-01T00:00:00Z"


def read_everywhere(run: Run, query: str) -> dict[str, set[tuple[str, str]]]:
    """By who reads, the keys and values of the facts that hold."""
    packet = run.compose("planner", query=query, max_tokens=4096).packet
    hits = [hit for hit in run.search(query, k=50) if hit.kind == "fact"]
    facts = {fact.fact_id: fact for fact in run.facts(include_all=True)}
    return {
        "facts": {(fact.fact_key, fact.value) for fact in run.facts()},
        "list": {(fact.fact_key, fact.value) for fact in run.facts(limit=50)},
        "search": {(facts[hit.id].fact_key, facts[hit.id].value) for hit in hits},
        "packet": {(fact.fact_key, fact.value) for fact in packet.long_term.facts},
    }


def remember(run: Run, key: str, value: str, **more: Any) -> Any:
    said = run.observe("user", f"The office says {value}.")
    return run.remember(key, value, sources=[said.id], **more)


def of_levels(run: Run) -> None:
    remember(run, "office.city", "Oslo", scope_level="tenant")
    remember(run, "office.city", "Bonn", scope_level="user")


def of_agent(run: Run) -> None:
    remember(run, "office.city", "Oslo", scope_level="tenant")
    remember(run, "office.city", "Rome", scope_level="agent")


def many_valued(run: Run) -> None:
    for level, value in zip(LEVELS, ("nuts", "milk", "eggs"), strict=True):
        remember(run, "office.allergy", value, scope_level=level)


def not_yet_valid(run: Run) -> None:
    remember(run, "office.city", "Oslo", valid_from=FUTURE)


def not_yet_valid_over_tenant(run: Run) -> None:
    remember(run, "office.city", "Oslo", scope_level="tenant")
    remember(run, "office.city", "Bonn", valid_from=FUTURE)


def ended(run: Run) -> None:
    remember(run, "office.city", "Oslo", valid_from=PAST, valid_to="2002-01-01T00:00:00Z")


def superseded(run: Run) -> None:
    for value in ("Oslo", "Bonn", "Rome"):
        remember(run, "office.city", value)


def retracted_over_tenant(run: Run) -> None:
    remember(run, "office.city", "Oslo", scope_level="tenant")
    run.memory.retract(remember(run, "office.city", "Bonn").fact_id)


def disputed(run: Run) -> None:
    run.memory.dispute(remember(run, "office.city", "Bonn").fact_id)


CASES: dict[Callable[[Run], None], set[tuple[str, str]]] = {
    of_levels: {("office.city", "Bonn")},
    of_agent: {("office.city", "Rome")},
    many_valued: {("office.allergy", value) for value in ("nuts", "milk", "eggs")},
    not_yet_valid: set(),
    not_yet_valid_over_tenant: {("office.city", "Oslo")},
    ended: set(),
    superseded: {("office.city", "Rome")},
    retracted_over_tenant: {("office.city", "Oslo")},
    disputed: set(),
}


@pytest.mark.req("MP-07", "MP-08")
@for_each("write,held", CASES.items(), [write.__name__ for write in CASES])
def test_every_reader_sees_the_facts_in_force(
    any_mem: Memory, write: Callable[[Run], None], held: set[tuple[str, str]]
) -> None:
    run = any_mem.run(user_id="ana", agent_id="support", tenant_id=write.__name__, grants=("agent", "tenant"))
    write(run)
    read = read_everywhere(run, "Which city and which allergy has the office?")
    assert read == dict.fromkeys(read, held)
