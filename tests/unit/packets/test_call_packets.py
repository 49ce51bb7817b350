"""Packets for agents that call tools: the right call stands there however long it is, and as often as it was made."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.packets.builds import Build

PASSENGERS = [{"first_name": "Daiki", "last_name": "Lee", "born": "1976-10-08"} for _ in range(2)]
BOOKING: dict[str, Any] = {
    "account": "lee_6144",
    "cabin": "economy",
    "destination": "DTW",
    "origin": "JFK",
    "legs": [{"date": "2031-05-17", "number": "HA088"}, {"date": "2031-05-18", "number": "HA081"}],
    "passengers": PASSENGERS,
    "payment": [{"amount": 172, "method": "gift_card_5128346"}],
}


def cited(build: Build) -> set[str]:
    return {citation.id for citation in build.packet.citations}


def asking(mem: Memory) -> Run:
    return mem.run(user_id="ana", session_id="asking")


@pytest.mark.req("TM-03")
@pytest.mark.parametrize("purpose", ["planner", "responder"])
@pytest.mark.parametrize("legs", [1, 2, 3])
def test_a_call_that_is_long_itself_is_not_left_out(mem: Memory, purpose: Any, legs: int) -> None:
    """Its call alone takes more than one quote may while others wait."""
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("user", "My account is lee_6144.")
    for _ in range(3):
        run.observe_tool("get_account", args={"account": "lee_6144"}, content=json.dumps(BOOKING, indent=1))
    args = BOOKING | {"legs": BOOKING["legs"] * legs}
    booked = run.observe_tool("book_trip", args=args, content=json.dumps({"trip": "TRIP77", **args}))
    run.observe("assistant", "The trip of lee_6144 is booked.")
    build = asking(mem).compose(purpose, query="Which call booked a trip for lee_6144?", max_tokens=512)
    assert booked.id in cited(build)
    assert build.tokens <= 512


@pytest.mark.req("TM-03")
def test_more_room_shows_no_fewer_calls(mem: Memory) -> None:
    """Long results are cut to what matches while others wait: twice the room is not spent on one of them whole."""
    run = mem.run(user_id="ana", session_id="s1")
    wanted = set()
    for day in range(1, 7):
        rows = [{"flight": f"HA{day}{number:02}", "seats": number, "price": 100 + number} for number in range(18)]
        content = json.dumps({"route": "JFK-SEA", "day": day, "flights": rows})
        wanted.add(run.observe_tool("search_flights", args={"route": "JFK-SEA", "day": day}, content=content).id)
    query = "How often was search_flights called for the route JFK-SEA?"
    less, more = (len(wanted & cited(asking(mem).compose("planner", query=query, max_tokens=n))) for n in (700, 1400))
    assert 3 <= less <= more
    assert more == len(wanted)


@pytest.mark.req("TM-03")
@pytest.mark.parametrize("times", [2, 3, 5])
def test_where_it_is_asked_how_often_each_call_is_told(mem: Memory, times: int) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    entries = [run.observe_tool("ping", args={"host": "db_main"}, content="no answer", ok=False) for _ in range(times)]
    run.observe_tool("ping", args={"host": "db_spare"}, content="answers in 3 ms")
    often = asking(mem).compose("planner", query="How often was ping called for db_main?", max_tokens=1024)
    assert {entry.id for entry in entries} <= cited(often)
    assert len(re.findall(r"ping\(host=db_main\)", often.text)) == times
    once = asking(mem).compose("planner", query="What did ping say about db_main?", max_tokens=1024)
    assert len(re.findall(r"ping\(host=db_main\)", once.text)) == 1  # the same said again is not told again


@pytest.mark.soak
@pytest.mark.req("TM-07")
@pytest.mark.parametrize(
    "query",
    [
        "How many times was ping_host called?",
        "How often did ping_host fail?",
        "What did ping_host return last?",
        "Which call of ping_host failed first?",
    ],
)
def test_what_many_calls_answer_is_not_told_as_missing(mem: Memory, query: str) -> None:
    """Each of two hundred calls that are alike has little chance to be the one; together they answer."""
    run = mem.run(user_id="ana", session_id="s1")
    for number in range(200):
        run.observe_tool("ping_host", args={"n": number}, content="pong" if number % 3 else "Error: timeout")
    build = asking(mem).compose("responder", query=query, max_tokens=512)
    assert build.found
    other = asking(mem).compose("responder", query=query.replace("ping_host", "cancel_order"), max_tokens=512)
    assert not other.found


@pytest.mark.req("TM-07")
@pytest.mark.parametrize(
    ("query", "is_found"), [("How often did I drink coffee?", True), ("How often did I drink tea?", False)]
)
def test_what_was_said_many_times_is_not_told_as_missing(mem: Memory, query: str, is_found: bool) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    for number in range(80):
        run.observe("user", f"I drank coffee at the harbour, cup {number}.")
    assert asking(mem).compose("responder", query=query, max_tokens=512).found is is_found


@pytest.mark.req("MP-05")
def test_a_heading_is_no_line_of_a_summary(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    for leg in ("First", "Second"):
        run.observe(
            "assistant",
            f"## Details of the {leg} Flight Leg\n**{leg} Flight Leg to Denver:**\nHere are the flights of May 2031:\n"
            f"The {leg} flight to Denver leaves at 11:00 in May 2031.",
        )
    run.observe("user", "Thank you, that is all for May 2031.")
    text = asking(mem).compose("planner", max_tokens=1024).text
    told = text.partition("## Episodes")[2].partition("## Said")[0]
    assert "leaves at 11:00" in told
    assert "## Details" not in told
    assert not [line for line in told.splitlines() if re.search(r":\**(?: \[\d+\])?$", line)]
