"""The summary on the page: the same whatever is asked, with its days resolved, and no quote beside what it says."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.handles.memory import Memory

pytestmark = pytest.mark.req("TM-06")
NOW = "2026-05-01T12:00:00Z"
QUESTIONS = ("Which hotel has the roof garden?", "Who plays the cello?", "What did the baker say?", "Zzyzx?")
SAID = (
    ("user", "Never book a hotel without asking me first."),
    ("user", "The hotel at the harbour has a roof garden with forty lemon trees."),
    ("assistant", "Your cousin Marta plays the cello in the city orchestra of Porto."),
    ("user", "The baker in Rua Augusta said that the ovens will be replaced by electric ones."),
    ("assistant", "The museum of tiles closes at six, except on the first Sunday of a month."),
    ("user", "Our train to Coimbra leaves from platform four at half past eight."),
)


def filled(mem: Memory, day: str, repeats: int = 12) -> Any:
    run = mem.run(user_id="ana", session_id="s1")
    turns = [*SAID]
    turns += [("user", f"Weather note {number}: dry, {number} degrees at the pier.") for number in range(repeats)]
    run.observe_many([{"role": role, "content": text, "ts": f"{day}T09:00:00Z"} for role, text in turns])
    return run


@pytest.mark.parametrize("day", ["2026-05-01", "2026-04-20"])
@pytest.mark.parametrize("budget", [256, 400, 1024])
def test_what_is_asked_does_not_change_the_summary(any_mem: Memory, budget: int, day: str) -> None:
    run = filled(any_mem, day)
    builds = [run.compose("responder", query=query, max_tokens=budget, now=NOW) for query in QUESTIONS]
    first = builds[0]
    assert first.packet.short_term.rolling_summary
    for build in builds[1:]:
        assert build.packet.short_term.rolling_summary == first.packet.short_term.rolling_summary
        assert build.text[: build.stable_chars] == first.text[: first.stable_chars]


def test_a_quote_that_only_repeats_a_line_of_today_is_the_duplicate(any_mem: Memory) -> None:
    run = filled(any_mem, "2026-05-01")
    build = run.compose("responder", query="Which hotel may you book?", max_tokens=1024, now=NOW)
    assert f"constraint (user): {SAID[0][1]} [" in build.text
    assert build.text.count(SAID[0][1]) == 1
    summary = build.packet.short_term.rolling_summary
    name = next(cited for cited in build.marks.values() if f"{SAID[0][1]} [{cited}]" in summary)
    (omitted,) = [each for each in build.packet.explain.omitted if each.item == f"quote:{name}"]
    assert omitted.reason == "duplicate"
    assert any_mem.replay(build.id).packet_bytes == build.packet_bytes


def test_of_another_day_the_quote_stands_too_since_it_tells_the_day(any_mem: Memory) -> None:
    run = filled(any_mem, "2026-04-20")
    build = run.compose("responder", query="Which hotel has the roof garden?", max_tokens=1024, now=NOW)
    assert SAID[1][1] in [each.quote for each in build.packet.short_term.key_quotes or ()]


def test_a_longer_turn_is_quoted_beside_its_sentence(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1")
    text = "Never book a hotel without asking me first. The roof garden of the old one was lovely."
    run.observe(role="user", content=text, ts="2026-05-01T09:00:00Z")
    build = run.compose("responder", query="Which roof garden was lovely?", max_tokens=512, now=NOW)
    assert "constraint (user): Never book a hotel without asking me first. [1]" in build.text
    assert text in [each.quote for each in build.packet.short_term.key_quotes or ()]


def test_a_name_that_is_a_day_is_no_day(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1")
    run.observe(role="user", speaker="Friday", content="Never touch my files.", ts="2026-04-20T09:00:00Z")
    build = run.compose("responder", query="Anything?", max_tokens=512, now=NOW)
    assert "constraint (Friday): Never touch my files. [1]" in build.text
