"""An answer's marks meant something on the page it was given for; on a later one none can be misread (TM-10)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from muniment.contracts.semantics import check_packet
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.packets.builds import Build
from muniment.packets.render import render
from packet_audit import audit

SAID = {
    "home": "I live in Lisbon near the river.",
    "dog": "My dog Rex is a beagle.",
    "code": "In my list [1] is the first item, a[2] the second, [3] the third.",
}


def answered(mem: Memory, session_id: str = "one") -> tuple[dict[str, str], str, str]:
    """What was said, and an answer that cites it: the ids by name, the answer's id, its words."""
    run = mem.run(user_id="ana", session_id=session_id)
    ids = {name: run.observe("user", text).id for name, text in SAID.items()}
    build = run.compose("responder", query="Where is my home in Lisbon, and which dog is Rex the beagle?")
    marks = {name: f"[{number}]" for number, id_ in build.marks.items() for name, held in ids.items() if held == id_}
    text = f"Your home is Lisbon {marks['home']}. Rex is a beagle. {marks['dog']} `x{marks['home']}` is code [99]."
    return ids, run.observe("assistant", text, build=build).id, text


def checked(mem: Memory, run: Run, purpose: Any, query: str, **more: Any) -> Build:
    build = run.compose(purpose, query=query, **more)
    assert render(build.packet).text == build.text
    assert mem.replay(build.id).packet_bytes == build.packet_bytes
    assert audit(build.pool, build.packet) == []
    assert check_packet(build.packet.to_wire()) == []
    return build


def cited_in(build: Build, line: str) -> list[str]:
    """The events that the marks of a line, without the one it begins with and without code, name on this page."""
    text = re.sub(r"`[^`]*`", "", line.partition(" ")[2])
    return [build.marks[number] for number in re.findall(r"\[(\d+)\]", text)]


@pytest.mark.soak
@pytest.mark.req("TM-10", "MP-05")
@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
@pytest.mark.parametrize("query", ["Rex the beagle", "my home in Lisbon", "Lisbon Rex beagle home river dog"])
@pytest.mark.parametrize("max_tokens", [256, 1024])
@pytest.mark.parametrize("before", [0, 5])
def test_a_quoted_answer_cites_what_it_cited_by_the_marks_of_this_page(
    make: Callable[..., Memory], purpose: Any, query: str, max_tokens: int, before: int
) -> None:
    mem = make("memory")
    ids, answer_id, text = answered(mem)
    later = mem.run(user_id="ana", session_id="two")
    for number in range(before):
        later.observe("user", f"Remark {number}: the weather of day {number} was fine.")
        later.compose("planner", query=f"weather of day {number}")
    build = checked(mem, later, purpose, query, max_tokens=max_tokens)
    numbers = {id_: number for number, id_ in build.marks.items()}
    shown = [line for line in build.text.splitlines() if line.startswith(f"[{numbers.get(answer_id)}] assistant: ")]
    assert len(shown) == 1
    held = {quote.evidence_id for quote in build.packet.short_term.key_quotes or ()}
    assert cited_in(build, shown[0]) == [ids[name] for name in ("home", "dog") if ids[name] in held]
    assert "[99]" not in build.text
    quotes = {quote.evidence_id: quote.quote for quote in build.packet.short_term.key_quotes or ()}
    assert quotes[answer_id] in text, "the packet has the words as they were said"


@pytest.mark.req("TM-10")
@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
def test_a_mark_of_evidence_that_is_not_there_is_left_out(mem: Memory, purpose: Any) -> None:
    ids, answer_id, _ = answered(mem)
    later = mem.run(user_id="ana", session_id="two")
    build = checked(mem, later, purpose, "Rex the beagle of Lisbon", exclude=[ids["home"]])
    numbers = {id_: number for number, id_ in build.marks.items()}
    [line] = [line for line in build.text.splitlines() if line.startswith(f"[{numbers[answer_id]}]")]
    assert "Your home is Lisbon. Rex is a beagle." in line
    assert cited_in(build, line) == [ids["dog"]]


@pytest.mark.req("TM-10")
@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
def test_brackets_that_somebody_wrote_themselves_stay(mem: Memory, purpose: Any) -> None:
    answered(mem)
    run = mem.run(user_id="ana", session_id="two")
    run.observe("assistant", "The items of the list are [1] plums and [2] tea; see list[3].")
    build = checked(mem, run, purpose, "first item of the list: plums, tea")
    assert SAID["code"] in build.text
    assert "[1] plums and [2] tea; see list[3]." in build.text


@pytest.mark.req("TM-10")
@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
def test_summary_episodes_and_questions_tell_an_answer_without_its_marks(mem: Memory, purpose: Any) -> None:
    run = mem.run(user_id="ana", session_id="one")
    run.observe("user", SAID["dog"])
    build = run.compose("responder", query="Which dog is Rex, the beagle?")
    assert build.marks
    said = [
        "We will take Rex to the vet on Friday at nine [1].",
        "The vet in Porto keeps 12 beagles in the garden. [1]",
        "Does Rex need a new passport for Spain [1]?",
    ]
    for text in said:
        run.observe("assistant", text, build=build)
    for number in range(0 if purpose == "responder" else 9):
        run.observe("assistant", f"Note {number}: the boat number {number} is blue.")
    pages = [checked(mem, mem.run(user_id="ana", session_id=name), purpose, "").text for name in ("one", "two")]
    told = [line for page in pages for line in page.splitlines() if "vet" in line or "passport" in line]
    told = [line for line in told if not line.startswith("[")]
    assert told
    for line in told:
        assert re.findall(r".\[\d+\]", line) == re.findall(r" \[\d+\]$", line) != [], line
