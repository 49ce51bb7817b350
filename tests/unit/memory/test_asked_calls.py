"""Calls are found by what they did: marks in the index, and what questions ask of them."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core.text.analyzer import term_hash
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.memory.tool_results import (
    CALL,
    FAILED,
    asked_marks,
    asked_order,
    asks_how_often,
    call_marks,
    did,
    effect_of_name,
    effects_asked,
    identified,
    identifiers_in,
    named,
    tell_call,
)
from products import for_each

# -- what a call is marked with -----------------------------------------------------------------------


@for_each(
    ("name", "effect"),
    [
        ("update_reservation_flights", "change"),
        ("editFile", "change"),
        ("cancel_order", "end"),
        ("github.delete_branch", "end"),
        ("book_reservation", "create"),
        ("git_commit", None),  # a noun as often, and not the first word
        ("create_issue", "create"),
        ("get_updates", "read"),
        ("search_direct_flight", "read"),
        ("order", "create"),
        ("order_pizza", "create"),
        ("order_status", "read"),
        ("book_details", "read"),
        ("schedule_view", "read"),
        ("post_history", "read"),
        ("commit_log", "read"),
        ("issue_list", "read"),
        ("new_york_weather", "read"),
        ("settings_get", "read"),
        ("transfer_history", "read"),
        ("transfer_funds", "change"),
        ("update_status", "change"),
        ("set_order_status", "change"),
        ("create_list", "create"),
        ("clear_history", "end"),
        ("run_tests", None),
        ("天気", None),
    ],
)
def test_what_a_call_does_is_told_by_its_name(name: str, effect: str | None) -> None:
    marks = call_marks({"name": name, "ok": True}, "done")
    assert [mark for mark in marks if mark.startswith(did("")) and mark != did("write")] == (
        [did(effect)] if effect else []
    )
    assert (did("write") in marks) is (effect not in (None, "read"))


@for_each(
    ("ok", "text", "failed"),
    [
        (False, "fine", True),
        (True, "Error: no seats", True),
        (True, "Traceback (most recent call last)", True),
        (True, "exitcode: 1 (execution failed)", True),
        (True, "exitcode: 0 (execution succeeded)", False),
        (True, "0 errors, 3 passed", False),
        (True, "exit code 127", True),
        (True, "Exit code: -9", True),
        (True, "exit 1", True),
        (True, "exit 0", False),
        (True, "Failed: 0, passed: 12", False),
        (True, "Failed: 3, passed: 12", True),
        (True, '{"error": null, "rows": 3}', False),
        (True, '{"error":"","rows":3}', False),
        (True, '{"error": [], "rows": 3}', False),
        (True, '{"error": "no such row"}', True),
        (True, "Errors: none", False),
        (True, "error: None of the seats is free", False),  # what cannot be told is not told as a failure
        (True, "the last call failed, this one did not", False),
        (True, "", False),
    ],
)
def test_a_failure_is_known_by_the_flag_or_by_how_the_result_begins(ok: bool, text: str, failed: bool) -> None:
    assert (FAILED in call_marks({"name": "x", "ok": ok}, text)) is failed


@for_each(
    ("text", "found"),
    [
        ("retry_count of src/app/main.py", ["retry_count", "src/app/main.py", "main.py"]),
        (
            "FAILED tests/a/test_b.py::test_c_d - KeyError: 'x'",
            ["tests/a/test_b.py::test_c_d", "test_b.py", "test_c_d", "KeyError"],
        ),
        ("What did it say? Nothing. At all.", []),
        ('{"flight_number": "HAT_1"}', ["HAT_1"]),
        ("a plain sentence", []),
    ],
)
def test_identifiers_are_wholes_and_the_parts_of_paths(text: str, found: list[str]) -> None:
    assert list(identifiers_in(text)) == found


@pytest.mark.parametrize(("ok", "text"), [(False, "refused"), (True, "Error: not enough seats")])
def test_a_call_that_failed_did_nothing(ok: bool, text: str) -> None:
    marks = call_marks({"name": "update_seat", "ok": ok}, text)
    assert FAILED in marks
    assert not [mark for mark in marks if mark.startswith(did(""))]


def test_a_long_result_is_read_in_bounds() -> None:
    marks = call_marks({"name": "cat", "ok": True}, " ".join(f"name_{number}" for number in range(10_000)))
    assert len(marks) < 100
    assert len(call_marks({"name": "cat", "ok": True}, "a" * 1_000_000)) < 10
    assert len(call_marks({"name": "cat", "ok": True, "args": {"code": "x_" * 500_000}}, "")) < 400


# -- what a question asks -----------------------------------------------------------------------------


def _all(_term: int) -> int:
    return 1


@for_each(
    ("question", "mark"),
    [
        ("Which call changed reservation X1?", did("write")),
        ("Who modified settings.toml?", did("write")),
        ("When was order X17B cancelled?", did("end")),
        ("What did the deletion of the branch say?", did("end")),
        ("Which call booked the room?", did("create")),
        ("Which command failed?", FAILED),
        ("What error did the build run into?", FAILED),
        ("What did get_user_details say?", named(["get", "user", "details"])),
        ("What did the get user details tool say?", named(["get", "user", "details"])),
        ("What did the grep tool return?", named(["grep"])),
        ("What did grep say?", named(["grep"])),
        ("Which edits were made to src/a/b_c.py?", identified("src/a/b_c.py")),
    ],
)
def test_a_question_asks_for_marks(question: str, mark: str) -> None:
    assert mark in asked_marks(question, _all)


@for_each(
    "question", ["Where does Ana live?", "When did I change jobs?", "How is the weather in May?", "", "x" * 100_000]
)
def test_other_questions_ask_for_none(question: str) -> None:
    assert asked_marks(question, _all) == {}


@pytest.mark.parametrize(
    "question", ["What did update_seat say first?", "What did the update seat tool say about X17B?"]
)
def test_the_words_of_a_tools_name_say_nothing_was_done(question: str) -> None:
    marks = asked_marks(question, _all)
    assert named(["update", "seat"]) in marks
    assert did("write") not in marks


def test_a_mark_that_no_call_has_is_not_asked_for() -> None:
    held = {term_hash(CALL), term_hash(FAILED)}
    assert list(asked_marks("Which call failed to change a_b?", lambda term: int(term in held))) == [FAILED]
    assert asked_marks("Which call failed?", lambda _term: 0) == {}


def test_effects_are_told_by_stems() -> None:
    assert effects_asked(["cancellation"]) == ["end"]
    assert effects_asked(["edited", "modified"]) == ["write"]
    assert effects_asked(["found", "searched"]) == []
    assert effect_of_name(["reservation", "lookup"]) == "read"


@for_each(
    ("question", "side", "event", "speaks", "end"),
    [
        ("What did the tool say before the refund?", "before", "the refund?", None, None),
        ("After the refund, what did the user say?", "after", "the refund", "user", None),
        ("What did the agent say right after b.py was edited?", "after", "b.py was edited?", "assistant", None),
        ("What was the last result before the crash?", "before", "the crash?", None, "last"),
        ("What did grep say first?", None, "", None, "first"),
        ("What is the latest value of x?", None, "", None, "last"),
    ],
)
def test_a_question_says_which_of_several_it_asks_for(
    question: str, side: str | None, event: str, speaks: str | None, end: str | None
) -> None:
    asked = asked_order(question)
    assert asked is not None
    assert (asked.side, asked.event, asked.speaks, asked.end) == (side, event, speaks, end)


def test_it_stands_for_what_the_question_names() -> None:
    asked = asked_order("How did reservation X17 stand before it was cancelled?")
    assert asked is not None
    assert "X17" in asked.event
    assert "cancelled" in asked.event
    assert asked_order("Where does Ana live?") is None
    assert asks_how_often("how many times was it called?")
    assert not asks_how_often("how many pets?")


# -- through the public face --------------------------------------------------------------------------


def _record(run: Run, calls: list[tuple[str, dict[str, Any], str, bool]]) -> dict[str, str]:
    """Call and result by event id."""
    told = {}
    for name, args, content, ok in calls:
        entry = run.observe_tool(name, args=args, content=content, ok=ok)
        told[entry.id] = f"{tell_call({'name': name, 'args': args, 'ok': ok})} {content}"
    return told


def _agent(mem: Memory) -> tuple[Run, dict[str, str]]:
    """Two sessions on two tickets each: looked up, changed, looked up again, one failure."""
    told: dict[str, str] = {}
    for session, (one, other) in enumerate((("TK81", "TK82"), ("TK93", "TK94"))):
        run = mem.run(user_id="ana", agent_id="desk", session_id=f"s{session}")
        for ticket in (one, other):
            run.observe("user", f"Please see to ticket {ticket}.")
            told |= _record(
                run,
                [
                    ("get_ticket", {"ticket_id": ticket}, f"{ticket}: status open, owner nobody", True),
                    ("notify_owner", {"ticket_id": ticket}, "mail server refused the connection", False),
                    ("update_ticket", {"ticket_id": ticket, "status": "closed"}, f"{ticket} saved", True),
                    ("get_ticket", {"ticket_id": ticket}, f"{ticket}: status closed, owner ben", True),
                ],
            )
            run.observe("assistant", f"Ticket {ticket} is done.")
    return mem.run(user_id="ana", agent_id="desk", session_id="asking"), told


@pytest.mark.soak
@pytest.mark.req("TM-03")
@pytest.mark.parametrize("ticket", ["TK81", "TK82", "TK93", "TK94"])
@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Which call changed ticket {}?", "update_ticket(status=closed, ticket_id={})"),
        ("Which call failed for ticket {}?", "notify_owner(ticket_id={}) failed"),
        ("What did get_ticket say about {} before it was updated?", "{}: status open"),
        ("What did the get ticket tool say after {} was changed?", "{}: status closed"),
        ("What did get_ticket say last about {}?", "{}: status closed"),
        ("What did get_ticket say first about {}?", "{}: status open"),
        ("How did ticket {} stand before it was changed?", "{}: status open"),
    ],
)
def test_the_call_that_is_asked_for_stands_first(mem: Memory, ticket: str, question: str, first: str) -> None:
    run, told = _agent(mem)
    hits = run.search(question.format(ticket), k=3)
    assert first.format(ticket) in told.get(hits[0].id, "")


def test_a_hit_says_why_it_is_the_one(mem: Memory) -> None:
    run, _ = _agent(mem)
    assert "a call of the kind asked about" in run.search("Which call changed ticket TK81?", k=1)[0].why
    assert "stands where it is asked for" in run.search("What did get_ticket say last about TK81?", k=1)[0].why


def test_the_event_that_a_question_names_is_not_told_as_the_one_asked_for(mem: Memory) -> None:
    run, told = _agent(mem)
    why = {
        told.get(hit.id, ""): hit.why for hit in run.search("What did get_ticket say before TK81 was updated?", k=12)
    }
    changed = why["update_ticket(status=closed, ticket_id=TK81) TK81 saved"]
    assert "may be the event that is named" in changed
    assert "stands where it is asked for" not in changed
    looked_up = why["get_ticket(ticket_id=TK81) TK81: status open, owner nobody"]
    assert "stands where it is asked for" in looked_up


def test_where_the_user_said_nothing_no_call_is_told_as_what_they_said(mem: Memory) -> None:
    run = mem.run(user_id="ana", agent_id="desk", session_id="s0")
    _record(run, [("get_ticket", {"id": "TK81"}, "open", True), ("update_ticket", {"id": "TK81"}, "saved", True)])
    hits = run.search("What did the user say before TK81 was updated?", k=5)
    assert hits
    assert not [hit for hit in hits if "stands where it is asked for" in hit.why]
    hits = run.search("What did the agent do before TK81 was updated?", k=5)
    assert [hit.text for hit in hits if "stands where it is asked for" in hit.why] == ["open"]


@pytest.mark.parametrize("side", ["before", "after"])
def test_what_people_said_beside_a_call_is_found(mem: Memory, side: str) -> None:
    run, _ = _agent(mem)
    asked, said = {
        "before": ("What did the user say right before ticket TK93 was changed?", "Please see to ticket TK93."),
        "after": ("What did the agent say right after ticket TK93 was changed?", "Ticket TK93 is done."),
    }[side]
    assert run.search(asked, k=1)[0].text == said


def test_calls_with_other_arguments_outdate_none(mem: Memory) -> None:
    """A mark in common makes no two calls alike."""
    run, told = _agent(mem)
    for question in ("What failed?", "Which call failed?", "Which calls changed something?"):
        hits = run.search(question, k=10)
        assert not [reason for hit in hits if hit.id in told for reason in hit.why if "superseded" in reason]


def test_without_calls_order_is_as_it_was(mem: Memory) -> None:
    """Words that ask of calls change nothing where there are none."""
    run = mem.run(user_id="ana", session_id="s1")
    for text in ("We moved to Oslo.", "I changed jobs before the move.", "After that I bought a car."):
        run.observe("user", text, speaker="Ana")
    hits = run.search("What did Ana say before she changed jobs?", k=3)
    assert not [reason for hit in hits for reason in hit.why if "asked for" in reason or "marked" in hit.parts]
    assert hits[0].text == "I changed jobs before the move."
