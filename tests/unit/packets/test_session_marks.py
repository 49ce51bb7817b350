"""Marks keep their numbers through a session: in every packet, for composers side by side, again when replayed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from makers import make_fact, make_hit, make_pool, make_request

from muniment.core.outside.token_counters import load_token_counter
from muniment.core.policy import ComposePolicy
from muniment.handles.memory import Memory
from muniment.packets.builds import Build
from muniment.packets.compose import Composed, compose
from muniment.packets.pool import KnownMarks
from muniment.packets.render import render
from packet_audit import audit
from products import for_each
from strategies import CountBy

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
TOLD = (
    "I moved to Berlin in May.",
    "My sister Nora plays the cello.",
    "The boiler was repaired by Mr Lang.",
    "Our cat is called Pepper.",
    "I am allergic to walnuts.",
    "The lease ends next autumn.",
)
ASKED = (
    "Where do I live?",
    "Who plays the cello?",
    "What is the cat called?",
    "boiler repair",
    "walnuts and the lease",
)


def told(mem: Memory, session_id: str = "s1") -> Any:
    earlier = mem.run(user_id="ana", session_id="s0")
    for text in TOLD:
        earlier.observe("user", text)
    return mem.run(user_id="ana", session_id=session_id)


def numbers(build: Build) -> dict[str, str]:
    return {name: number for number, name in build.marks.items()}


@pytest.mark.req("TM-08")
def test_what_was_cited_once_keeps_its_number_for_the_session(mem: Memory) -> None:
    run = told(mem)
    builds = [run.compose("responder", query=query, max_tokens=256, now=NOW) for query in ASKED]
    known: dict[str, str] = {}
    for build in builds:
        given = numbers(build)
        assert all(known.get(name, number) == number for name, number in given.items())
        new = sorted(int(number) for name, number in given.items() if name not in known)
        assert new == list(range(len(known) + 1, len(known) + 1 + len(new)))
        known |= given
    assert len(known) == len(TOLD)
    other = mem.run(user_id="ana", session_id="s2").compose("responder", query=ASKED[-1], max_tokens=256, now=NOW)
    assert min(map(int, other.marks)) == 1  # another session begins again


@pytest.mark.req("TM-08", "MP-16")
def test_a_replay_and_the_packet_alone_give_the_same_numbers(mem: Memory) -> None:
    run = told(mem)
    purposes = ("planner", "responder")
    builds = [run.compose(each, query=query, max_tokens=256, now=NOW) for query in ASKED for each in purposes]
    for build in builds:
        again = mem.replay(build.id)
        assert (again.text, again.marks, again.packet_bytes) == (build.text, build.marks, build.packet_bytes)
        assert again.stable_chars == build.stable_chars
        rendered = render(build.packet)
        assert (rendered.text, rendered.marks, rendered.stable_chars) == (build.text, build.marks, build.stable_chars)
        assert build.resolve(f"So it is [{min(map(int, build.marks))}].").unknown_marks == ()


@pytest.mark.req("TM-08")
def test_composers_side_by_side_agree(mem: Memory) -> None:
    run = told(mem)

    def composed(at: int) -> Build:
        return run.compose("responder", query=ASKED[at % len(ASKED)], max_tokens=256, now=NOW)

    with ThreadPoolExecutor(8) as threads:
        builds = list(threads.map(composed, range(24)))
    agreed: dict[str, str] = {}
    for build in builds:
        for number, name in build.marks.items():
            assert agreed.setdefault(number, name) == name
        assert mem.replay(build.id).text == build.text
    assert len(set(agreed.values())) == len(agreed) == len(TOLD)
    assert sorted(map(int, agreed)) == list(range(1, len(agreed) + 1))


@pytest.mark.req("TM-08", "LG-07")
def test_the_number_of_what_was_forgotten_is_nobodys(mem: Memory) -> None:
    run = told(mem)
    first = run.compose("responder", query="cello cat", max_tokens=256, now=NOW)
    gone = first.marks["1"]
    mem.forget(event=gone)
    run.observe("user", "The cat has a cello case to sleep in.")
    again = run.compose("responder", query="cello cat", max_tokens=256, now=NOW)
    assert gone not in again.marks.values()
    assert "1" not in again.marks
    kept = numbers(first)
    assert all(kept.get(name, number) == number for name, number in numbers(again).items())
    assert again.resolve("It sings [1].").unknown_marks == ("[1]",)


def composed(next_number: int, known: dict[str, int], counter: Any, max_tokens: int = 512) -> Composed:
    request = make_request("responder", max_tokens=max_tokens).model_copy(
        update={"marks": KnownMarks(numbers=known, next_number=next_number)}
    )
    hits = [make_hit(f"e{n}", f"Stop number {n} of the tour was town {n * 7}.", 90 - n) for n in range(60)]
    facts = [make_fact(f"f{n}", f"trip.stop_{n}", f"town {n}", sources=[f"e{n}"]) for n in range(3)]
    pool = make_pool(hits=hits, facts=facts)
    made = compose(request, pool, ComposePolicy(), counter, "digest")
    assert audit(pool, made.packet) == []
    assert render(made.packet).text == made.text
    return made


@pytest.mark.req("TM-08", "MP-14")
@for_each("next_number", [1, 95, 996, 9_996, 99_998, 123_456_789])
@for_each("counter", [load_token_counter(), load_token_counter("estimate_v1"), CountBy()])
def test_long_marks_are_priced_as_they_are(next_number: int, counter: Any) -> None:
    """A line is never taken back for its mark's length: the page is as full as with short marks, and no fuller."""
    made = composed(next_number, {"e1": 7} if next_number > 7 else {}, counter)
    assert made.tokens == counter.count(made.text) <= 512
    details = [each.model_extra or {} for each in made.packet.explain.omitted]
    assert made.tokens > 440
    if counter.is_exact:
        assert not any("as a whole" in str(each) for each in details)
    if next_number > 7:
        assert made.marks["7"] == "e1"
        assert min(int(number) for number in made.marks if number != "7") == next_number


@pytest.mark.req("TM-08")
@for_each("held", [None, [], "1", {"x": "e1"}, {"0": "e1"}, {"01": "e1"}, {"1": 2}, {"1": "e1", "2": "e1"}])
def test_a_table_of_marks_that_is_none_is_not_used(held: Any) -> None:
    wire = composed(1, {}, CountBy()).packet.to_wire()
    plain = render(wire)
    wire["explain"]["determinism"]["marks"] = held
    assert render(wire).text == plain.text
