"""A stored build is served as it was kept, whatever the composer of today would make of it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import muniment
from muniment.handles.memory import Memory
from muniment.packets import builds
from muniment.packets.builds import Build
from muniment.packets.pool import read_kept
from muniment.store.items import latest

PURPOSES = ("planner", "tool", "responder")


def compose(mem: Memory, purpose: Any) -> Build:
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("user", "Ana lives in Porto. See you next Friday.", ts="2026-03-02T10:00:00Z")
    run.observe_tool("cancel_order", args={"order": "ORD123"}, content="Error: pending", ok=False)
    run.observe_tool("cancel_order", args={"order": "ORD123"}, content='{"status": "cancelled"}')
    asking = mem.run(user_id="ana", session_id="asking")
    return asking.compose(purpose, query="Which call cancelled order ORD123, and where does Ana live?", max_tokens=512)


@pytest.mark.req("MP-16")
@pytest.mark.parametrize("purpose", PURPOSES)
def test_replay_composes_nothing(mem: Memory, monkeypatch: pytest.MonkeyPatch, purpose: str) -> None:
    made = compose(mem, purpose)
    monkeypatch.setattr(builds, "compose", None)
    again = mem.replay(made.id)
    assert (again.packet_bytes, again.text, again.marks) == (made.packet_bytes, made.text, made.marks)
    assert (again.tokens, again.stable_chars, again.to_openai()) == (made.tokens, made.stable_chars, made.to_openai())
    assert again.pool == made.pool


@pytest.mark.req("MP-16")
def test_a_pool_of_an_earlier_composer_is_read_without_what_is_no_longer_known(mem: Memory) -> None:
    pool = compose(mem, "planner").pool
    kept = pool.to_kept()
    for hit in kept["hits"]:
        hit["superseded"] = [{"by": "evt_1"}]
    turns = {turn.id: turn for turn in (*pool.window, *(hit.turn for hit in pool.hits))}
    assert read_kept(kept, turns) == pool


def test_a_build_keeps_the_ids_of_turns_and_not_their_words(mem: Memory) -> None:
    """A long result of a tool is the exception: the query decided which parts of it are candidates."""
    run = mem.run(user_id="bo", session_id="s1")
    words = [f"Crate {number} holds {number * 7919} bolts." for number in range(80)]
    run.observe_many([{"role": "user", "content": text} for text in words])
    long = "\n".join(f"line {number}: bolt {number * 31}" for number in range(4_000))
    run.observe_tool("list_crates", args={"of": "bolts"}, content=long)
    made = run.compose("planner", query="Which crate holds bolts, and what did list_crates say of bolt 31?")
    assert len(made.pool.hits) > 40
    item = mem._ctx.engine.read("default", lambda reader: latest(reader, made.id))
    assert item is not None
    kept = json.dumps(item.plain()["pool"]["hits"]) + json.dumps(item.plain()["pool"]["window"])
    assert not [text for text in words if text in kept]
    assert mem.replay(made.id).pool == made.pool
    assert any(hit.turn.excerpt is not None for hit in made.pool.hits)


def test_a_build_of_a_long_history_takes_few_bytes(tmp_path: Path) -> None:
    """Every turn is another text, so that nothing but leaving it out keeps the build small."""
    rng = Random(7)
    with muniment.open(tmp_path / "store.db") as mem:
        run = mem.run(user_id="bo", session_id="s1")
        run.observe_many([{"role": "user", "content": f"bolts {rng.randbytes(300).hex()}"} for _ in range(200)])
        before = _bytes_of(mem, tmp_path)
        for number in range(20):
            run.compose("planner", query=f"Which bolts are in crate {number}?", max_tokens=1024)
        assert (_bytes_of(mem, tmp_path) - before) / 20 < 16_384


def _bytes_of(mem: Memory, folder: Path) -> int:
    mem.store.scrub()
    return sum(path.stat().st_size for path in folder.iterdir())


def test_the_result_of_a_failed_call_is_superseded_by_the_call_made_again(mem: Memory) -> None:
    build = compose(mem, "planner")
    (line,) = [line for line in build.text.splitlines() if "Error: pending" in line]
    assert "(superseded by [" in line
    (note,) = [note.to_wire() for note in build.packet.explain.conflicts]
    assert note["type"] == "superseded_evidence"
    assert {note["evidence_id"], note["superseded_by"]} <= {each.turn.id for each in build.pool.hits}


def test_no_note_says_that_a_persons_own_words_are_outdated(mem: Memory) -> None:
    """Shared words and sentence patterns do not decide that: both values are shown, dated."""
    told = [("s1", "I live in Lisbon."), ("s2", "I moved to Berlin."), ("s3", "Sorry, I live in Munich, not Berlin.")]
    for day, (session, text) in enumerate(told, 1):
        mem.run(user_id="mia", session_id=session).observe("user", text, ts=f"2026-03-0{day}T10:00:00Z")
    text = mem.run(user_id="mia", session_id="asks").compose("responder", query="Where do I live?").text
    assert "(superseded" not in text
    assert all(said in text for _, said in told)
