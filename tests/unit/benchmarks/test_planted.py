"""Planted proposals: wrong ones are refused, right ones accepted; what no check can see is shown as a quote."""

from __future__ import annotations

import pytest
from benchmarks.extraction.planted import counted, lies, plant_written, rows_of, written

from muniment.handles.memory import Memory
from planted_model import PlantedModel


@pytest.mark.req("MP-17", "TM-01")
def test_wrong_proposals_are_refused_and_right_ones_accepted() -> None:
    rows = counted(plant_written())
    right = rows.pop("right")
    assert rows.pop("all wrong")["n"] > 1000
    assert {name: row["accepted"] for name, row in rows.items() if row["accepted"]} == {}
    assert len(rows) >= 20
    assert right["accepted"] >= 0.98 * right["n"]


@pytest.mark.req("MP-17")
def test_right_proposals_become_facts_of_whoever_they_are_about(mem: Memory) -> None:
    rows = list(written())
    facts = {turn.text: [(right.key, right.value, right.quote) for right in found] for turn, found, _ in rows}
    run = mem.run(user_id="ana")
    run.observe_many(
        {"role": "user", "content": turn.text, "speaker": None if turn.who == "user" else turn.who}
        for turn, _, _ in rows
    )
    report = mem.extract_pending(model=PlantedModel(lambda text: facts[text]))
    assert (report.proposed, report.promoted, report.rejected) == (sum(map(len, facts.values())), report.proposed, {})
    held = {(fact.fact_key, str(fact.value)) for fact in run.facts(include_all=True)}
    assert held == {(key, str(value)) for found in facts.values() for key, value, _ in found}
    assert mem.verify().ok


@pytest.mark.req("TM-01")
def test_what_the_checks_cannot_see_is_shown_as_its_quote(mem: Memory) -> None:
    rows = {row["text"]: tuple(row["fact"]) for row in rows_of("lies.jsonl")}
    assert all(row["accepted"] for name, row in counted(lies()).items() if name != "all wrong")
    run = mem.run(user_id="ana")
    for number, (text, fact) in enumerate(rows.items()):
        key, value, quote = fact
        own = mem.run(user_id=f"ana{number}")
        own.observe("user", text)
        mem.extract_pending(model=PlantedModel(lambda _text, fact=fact: [fact]), user_id=f"ana{number}")  # type: ignore[misc]
        shown = mem.run(user_id=f"ana{number}").compose("responder", query=f"{key} {value}").text
        assert f'"{quote}"' in shown
        attribute = key.rpartition(".")[2]
        assert f"{attribute}: {value}" not in shown.casefold()
    assert run.facts() == []
