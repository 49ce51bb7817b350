"""Room that nothing else needs holds what the user said last, whole and dated."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.handles.memory import Memory

SAFETY = "I carry an EpiPen, sesame nearly killed me twice."


def tell(mem: Memory, *texts: str, role: Any = "user") -> list[str]:
    said = []
    for number, text in enumerate(texts):
        run = mem.run(user_id="ana", session_id=f"s{number}")
        said.append(run.observe(role, text, ts=f"2026-03-{number + 1:02d}T10:00:00Z").id)
    return said


def ask(mem: Memory, query: str, max_tokens: int = 512, purpose: Any = "responder", **more: Any) -> str:
    run = mem.run(user_id="ana", session_id="asking")
    return run.compose(purpose, query=query, max_tokens=max_tokens, **more).text


@pytest.mark.req("TM-16")
@pytest.mark.parametrize("purpose", ["responder", "planner", "tool"])
@pytest.mark.parametrize(
    "query", ["Book a Lebanese dinner for Friday", "What's on tonight?", "Danke!", "점심 뭐 먹지?", ""]
)
def test_a_short_history_is_in_the_packet_whole(mem: Memory, purpose: str, query: str) -> None:
    said = (SAFETY, "My sister Nour visits in June.", "Ich esse kein Fleisch.", "저는 서울로 이사했어요.")
    tell(mem, *said)
    text = ask(mem, query, purpose=purpose)
    assert [each for each in said if each not in text] == []


@pytest.mark.req("TM-16")
def test_the_newest_come_first_where_not_all_have_room(mem: Memory) -> None:
    remarks = [f"Remark {number}: the heron stood in the reeds near post {number * 7}." for number in range(60)]
    for number, text in enumerate(remarks):
        mem.run(user_id="ana", session_id=f"s{number}").observe("user", text, ts=f"2026-03-01T10:{number:02d}:00Z")
    text = ask(mem, "Which tie goes with a grey suit?", max_tokens=512)
    present = [number for number, remark in enumerate(remarks) if remark in text]
    assert present == list(range(present[0], 60)), "a tail of the history, without gaps"
    assert len(present) > 10


def test_what_others_said_does_not_fill_the_room(mem: Memory) -> None:
    tell(mem, "The museum opens at ten.", "Herons nest in April.", role="assistant")
    assert "museum" not in ask(mem, "Which tie goes with a grey suit?")


def test_what_is_left_out_on_purpose_does_not_come_back(mem: Memory) -> None:
    said = tell(mem, SAFETY, "My sister Nour visits in June.")
    assert "Nour" not in ask(mem, "Which tie goes with a grey suit?", exclude=[said[1]])
    inside = {"time_range": {"start": "2026-03-02T00:00:00Z", "end": "2026-03-03T00:00:00Z"}}
    text = ask(mem, "Which tie goes with a grey suit?", cues=inside)
    assert "Nour" in text
    assert "EpiPen" not in text


def test_a_turn_is_not_shown_twice(mem: Memory) -> None:
    tell(mem, SAFETY, SAFETY)
    assert ask(mem, "Which tie goes with a grey suit?").count("EpiPen") == 1
