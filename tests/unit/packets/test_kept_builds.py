"""A stored build is served as it was kept, whatever the composer of today would make of it."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.packets import builds
from muniment.packets.builds import Build
from muniment.packets.pool import read_pool

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
    wire = pool.to_wire()
    for hit in wire["hits"]:
        hit["superseded"] = [{"by": "evt_1"}]
    assert read_pool(wire) == pool


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
