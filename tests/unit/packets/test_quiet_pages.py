"""A page is not led or filled by what does not answer: tasks of other sessions, and what tools said of other things."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.handles.memory import Memory

TASKS = (
    "Please book the train to Graz on Friday.",
    "Remind me to call mum tomorrow.",
    "Réserve le train pour Graz vendredi.",
    "Send the report to Bo by Monday.",
    "Find me a cheap flight to Lisbon for the weekend of 12 June.",
    "Thank you for the suggestions.",
    "I'm curious about dark frames and bias frames.",
    "What about undergarments and socks?",
)
WISHES = ("Please keep answers short.", "From now on give prices in euros.", "I prefer aisle seats.", "Call me Al.")
SAFETY = ("I'm allergic to peanuts.", "I'm in a wheelchair, so no stairs.")


def head(text: str) -> str:
    """What leads a page: the block about the user."""
    return text.partition("## About the user\n")[2].partition("\n## ")[0]


@pytest.mark.req("TM-16")
@pytest.mark.parametrize("purpose", ["planner", "tool"])
def test_a_task_of_another_session_does_not_lead_a_packet(mem: Memory, purpose: Any) -> None:
    earlier = mem.run(user_id="ana", session_id="s1")
    for text in (*TASKS, *WISHES, *SAFETY):
        earlier.observe("user", text)
    text = mem.run(user_id="ana", session_id="s2").compose(purpose, query="Fix the build.", max_tokens=2048).text
    for each in TASKS:
        assert each not in head(text)
    assert SAFETY[0] in head(text)
    assert SAFETY[1] in head(text)
    if purpose == "planner":
        for each in WISHES:
            assert each in head(text)


@pytest.mark.req("TM-18")
@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
def test_what_tools_said_of_other_things_fills_no_episode(mem: Memory, purpose: Any) -> None:
    earlier = mem.run(user_id="ana", session_id="s1")
    earlier.observe("user", "Deploy the shop to staging.")
    for host in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta"):
        earlier.observe_tool("restart", args={"host": host}, content=f"{host} restarted in 4 seconds")
    earlier.observe("assistant", "The shop runs on staging. I recommend that you watch the dashboards for an hour.")
    family = mem.run(user_id="ana", session_id="s2")
    for text in ("My sister Lena moved to Turin in May.", "Lena is a midwife.", "My brother Jan is in Leeds."):
        family.observe("user", text)
    later = mem.run(user_id="ana", session_id="s3")
    text = later.compose(purpose, query="Where does my sister live?", max_tokens=1024).text
    assert "Turin" in text
    episodes = text.partition("## Episodes\n")[2].partition("\n## ")[0]
    assert episodes.count("restarted") <= 2
    assert "restarted" in later.compose(purpose, query="How long did the restart of beta take?", max_tokens=1024).text
