"""Turns that are kept in memory: read once, never shown after they were forgotten, whoever forgot them."""

from __future__ import annotations

from pathlib import Path

import pytest

import muniment
from muniment.core.ports.engine import Patch
from muniment.errors import StoreDamaged
from muniment.handles.memory import Memory
from muniment.memory.turn_reading import TurnCache
from muniment.memory.turns import ReadTurn

SECRET = "The spare key lies under the third flower pot."


@pytest.mark.req("LG-07")
def test_what_another_process_forgot_is_not_shown_from_memory(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as here, muniment.open(tmp_path / "a.db") as there:
        run = here.run(user_id="ana", session_id="s1")
        said = run.observe("user", SECRET)
        run.observe("assistant", "Understood, the flower pot.")
        assert run.search("spare key")[0].id == said.id
        assert SECRET in run.compose("planner", query="spare key").text
        there.forget(event=said.id)
        assert said.id not in [hit.id for hit in run.search("spare key flower pot")]
        for query in ("spare key flower pot", ""):
            build = run.compose("planner", query=query)
            assert SECRET.encode() not in build.packet_bytes
            assert SECRET not in build.pool.to_bytes().decode()


@pytest.mark.req("LG-07")
def test_a_forget_leaves_no_turn_in_memory(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", SECRET)
    run.compose("planner", query="spare key")
    assert mem._ctx.cache(TurnCache).get("default", [said.id])
    assert mem._ctx.cache(TurnCache)._gleaned
    mem.forget(event=said.id)
    assert not mem._ctx.cache(TurnCache).get("default", [said.id])
    assert not mem._ctx.cache(TurnCache)._gleaned


def test_a_turn_that_is_written_later_is_found(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("user", "I keep two goldfish.")
    run.compose("planner", query="goldfish")
    later = run.observe("user", "I keep three goldfish and a newt.")
    build = run.compose("planner", query="goldfish")
    assert later.id in {hit.turn.id for hit in build.pool.hits}
    assert later.id == build.pool.window[-1].id


def test_a_tenant_reads_only_its_own(mem: Memory) -> None:
    said = mem.run(user_id="ana", session_id="s1", tenant_id="acme").observe("user", SECRET)
    mem.run(user_id="ana", session_id="s1", tenant_id="acme").search("spare key")
    assert mem._ctx.cache(TurnCache).get("acme", [said.id])
    assert not mem._ctx.cache(TurnCache).get("default", [said.id])


def test_a_long_turn_is_whole_in_a_search_and_cut_in_a_pool(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    text = "The lighthouse is on the cliff. " + "Nothing else is here. " * 1000
    run.observe("user", text)
    for _ in range(2):
        assert run.search("lighthouse")[0].text == text
        (hit,) = run.compose("planner", query="lighthouse").pool.hits
        assert text.startswith(hit.turn.text)
        assert len(hit.turn.text) == 8_000


def test_a_damaged_row_is_an_error_of_ours(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", "hello")
    mem._ctx.engine.write(
        "default", lambda tx: tx.do(Patch("entries", (("id", "=", said.id),), {"body": '{"content":'}))
    )
    with pytest.raises(StoreDamaged, match=said.id):
        mem.ledger.get(said.id)


def test_what_is_read_in_a_turn_is_read_once(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    said = run.observe("assistant", "I'll book the table for Friday. The dog sleeps under the oak.")
    run.compose("planner", query="dog")
    read = mem._ctx.cache(TurnCache).get("default", [said.id])[said.id].read
    assert isinstance(read, ReadTurn)
    assert [sentence.text for sentence in read.sentences] == [
        "I'll book the table for Friday.",
        "The dog sleeps under the oak.",
    ]
    assert read.sentences is mem._ctx.cache(TurnCache).get("default", [said.id])[said.id].read.sentences
