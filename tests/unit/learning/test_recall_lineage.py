"""What a recall was made from: one row for the records of the user's own bank, a link for each that is shared."""

from __future__ import annotations

from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Delete, Get, Reader, Select
from muniment.handles.memory import Memory
from muniment.store.items import links_from, links_of, put_links

PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
INTENT = {"domain_tag": "travel", "task_family": "booking"}
SECRET = "Find a table at the Blue Heron, and keep it quiet."


def _learn(mem: Memory, said: str, user_id: str = "ana", *, level: Any = "user") -> muniment.Run:
    run = mem.run(user_id=user_id, agent_id="agent", grants=("agent",))
    run.observe("user", said)
    run.observe_tool("look", content="12 tables", args={"row": 1})
    run.observe("assistant", "Booked it.")
    run.finish(verifier_result=PASS, intent=INTENT, features={"strategy": "careful"}, level=level)
    return run


def _recalled(mem: Memory, user_id: str = "ana") -> str:
    run = mem.run(user_id=user_id, agent_id="agent")
    run.observe("user", "Find a table.")
    told = run.learning.recall("Find a table: look", intent=INTENT, state={"mode": "main"})
    return str(told.request.request_id)


def _rows(mem: Memory, item_id: str) -> tuple[Any, set[str]]:
    def look(reader: Reader) -> tuple[Any, set[str]]:
        links = reader.do(Select("links", (("item_id", "=", item_id),)))
        return reader.do(Get("lineages", (item_id,))), {str(row[0]) for row in links}

    return mem._ctx.engine.read("default", look)


def _sources(mem: Memory, item_id: str) -> set[str]:
    return {link.source_id for link in mem._ctx.engine.read("default", lambda reader: links_of(reader, item_id))}


def _made_from(mem: Memory, source_id: str) -> set[str]:
    def look(reader: Reader) -> set[str]:
        return {link.item_id for link in links_from(reader, [source_id], ["ana", "ben"])}

    return mem._ctx.engine.read("default", look)


@pytest.mark.soak
def test_records_of_the_own_bank_stand_in_one_row(any_mem: Memory) -> None:
    for number in range(4):
        _learn(any_mem, f"Find a table for {number}.")
    rec = _recalled(any_mem)
    lineage, linked = _rows(any_mem, rec)
    own = str(lineage[2]).split("\n")
    assert lineage[:2] == (rec, "ana")
    assert len(own) == 4
    assert all(each.startswith("mem_") for each in own)
    assert len(linked) == 1
    assert not linked.intersection(own)
    assert _sources(any_mem, rec) == {*own, *linked}
    assert all(_made_from(any_mem, each) >= {rec} for each in own)


def test_a_record_that_others_share_has_a_link(mem: Memory) -> None:
    _learn(mem, "Find a table for two.", "cem", level="agent")
    (shared,) = (record.id for record in mem.bank(agent_id="agent").records(kind="reasoning"))
    _learn(mem, "Find a table for two.")
    recs = [_recalled(mem), _recalled(mem, "ben")]
    for rec in recs:
        lineage, linked = _rows(mem, rec)
        assert shared in linked
        assert lineage is None or shared not in str(lineage[2])
    assert _rows(mem, recs[0])[0] is not None
    assert _rows(mem, recs[1])[0] is None
    assert _made_from(mem, shared) >= set(recs)


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("form", ["a row for all", "a row for each"])
def test_a_forget_reaches_recalls_of_either_form(any_mem: Memory, form: str) -> None:
    _learn(any_mem, SECRET)
    said = next(entry for entry in any_mem.ledger.entries(user_id="ana") if entry.role == "user")
    kept = _learn(any_mem, "Find a table for nine.", "ben")
    rec, other = _recalled(any_mem), _recalled(any_mem, "ben")
    if form == "a row for each":  # as stores have them that were made before
        own = str(_rows(any_mem, rec)[0][2]).split("\n")
        any_mem._ctx.engine.write(
            "default", lambda tx: (put_links(tx, rec, own), tx.do(Delete("lineages", (("item_id", "=", rec),))))
        )
    receipt = any_mem.forget(event=said.id)
    erased = {each.id for each in receipt.erased}
    assert rec in erased
    assert not {other, kept.run_id} & erased
    assert "Blue Heron" not in "".join(map(str, any_mem.export()))
    assert any_mem.verify().ok


def test_a_lineage_that_was_deleted_is_told_of_and_made_again(any_mem: Memory) -> None:
    for number in range(3):
        _learn(any_mem, f"Find a table for {number}.")
    rec = _recalled(any_mem)
    before = _rows(any_mem, rec)
    any_mem._ctx.engine.write("default", lambda tx: tx.do(Delete("lineages", (("item_id", "=", rec),))))
    report = any_mem.verify()
    assert not report.ok
    assert any("its link to mem_" in str(each) for each in report.to_wire().values())
    any_mem.store.rebuild()
    assert _rows(any_mem, rec) == before
    assert any_mem.verify().ok


def test_what_is_said_of_a_recall_later_takes_nothing_from_its_row(mem: Memory) -> None:
    for number in range(3):
        _learn(mem, f"Find a table for {number}.")
    run = mem.run(user_id="ana", agent_id="agent")
    told = run.learning.recall("Find a table", intent=INTENT, state={"mode": "main"})
    rec = str(told.request.request_id)
    before = _sources(mem, rec)
    run.learning.used(told.request.request_id, [told.response.items[0].memory_id])
    assert before < _sources(mem, rec)


@pytest.mark.req("LG-05")
def test_an_export_tells_of_them_as_links(mem: Memory) -> None:
    for number in range(3):
        _learn(mem, f"Find a table for {number}.")
    rec = _recalled(mem)
    lines = list(mem.export())
    with muniment.open(":memory:") as other:
        other.import_(lambda: lines)
        assert _sources(other, rec) == _sources(mem, rec)
        assert list(other.export())[1:-1] == lines[1:-1]
        assert other.verify().ok
