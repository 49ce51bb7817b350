"""What a trace means: whose it is, who said it, what failed, what is said again, what was forgotten (MV-07)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from traced import TRACE, captured, chat, export, in_pieces, said, span, text, turns

from muniment import Memory
from muniment.errors import InvalidInput, InvalidRecord

HELLO = [text("user", "I live in Oslo.")]
NOTED = [text("assistant", "Noted.")]
CONVERSATION: dict[str, Any] = {"gen_ai.conversation.id": "c1", "user.id": "ana"}


def ingest(mem: Memory, *spans: dict[str, Any], **more: Any) -> Any:
    return mem.ledger.ingest_otel(export(*spans), **more)


# -- who said it ----------------------------------------------------------------------------------------------


def test_instructions_are_kept_and_never_quoted(mem: Memory) -> None:
    orders = json.dumps([{"type": "text", "content": "Always sell the yacht insurance."}])
    ingest(mem, span(1, chat(HELLO, NOTED, **CONVERSATION, **{"gen_ai.system_instructions": orders})))
    kept = [each for each in mem.ledger.entries(user_id="ana") if each.kind == "system" and each.content]
    assert [each.content for each in kept] == ["Always sell the yacht insurance."]
    packet = mem.run(user_id="ana").compose("responder", query="Which insurance should be sold?")
    assert "yacht" not in packet.text


def test_what_an_agent_is_sent_by_another_is_not_the_users(mem: Memory) -> None:
    """A sub-agent's task comes as a message of the user; it is its caller's."""
    task = [text("user", "Book the cheapest hotel; the user lives in Bergen.")]
    ingest(
        mem,
        span(1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner", **CONVERSATION}),
        span(2, chat(HELLO, NOTED, **{"gen_ai.agent.name": "planner"}), parent=1),
        span(3, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "booker"}, at=20, parent=1),
        span(4, chat(task, [text("assistant", "Booked.")], **{"gen_ai.agent.name": "booker"}), at=21, parent=3),
    )
    told = [(each.role, each.body.speaker if each.body else None, each.scope.agent_id) for each in turns(mem)]
    assert told == [
        ("user", None, "planner"),
        ("assistant", None, "planner"),
        ("assistant", "planner", "booker"),
        ("assistant", None, "booker"),
    ]


def test_so_it_is_where_the_caller_comes_in_another_batch(mem: Memory) -> None:
    ingest(mem, span(2, chat(HELLO, NOTED, **CONVERSATION, **{"gen_ai.agent.name": "planner"}), parent=1))
    task = [text("user", "The user lives in Bergen.")]
    booked = chat(task, [text("assistant", "Booked.")], **CONVERSATION, **{"gen_ai.agent.name": "booker"})
    ingest(mem, span(4, booked, at=21, parent=3))
    assert said(mem)[2] == ("assistant", "The user lives in Bergen.")


def test_an_agent_that_takes_over_repeats_the_users_words(mem: Memory) -> None:
    more = [*HELLO, *NOTED, text("user", "And I work in Bergen.")]
    ingest(
        mem,
        span(1, chat(HELLO, NOTED, **CONVERSATION, **{"gen_ai.agent.name": "front"})),
        span(2, chat(more[:2], [text("assistant", "Hi.")], **CONVERSATION, **{"gen_ai.agent.name": "back"}), at=20),
    )
    second = span(3, chat(more, NOTED, **CONVERSATION, **{"gen_ai.agent.name": "back"}), at=40, trace="cd" * 16)
    ingest(mem, second)
    assert said(mem).count(("user", "I live in Oslo.")) == 1
    assert ("user", "And I work in Bergen.") in said(mem)


# -- tools ----------------------------------------------------------------------------------------------------


def test_a_tool_that_failed_is_a_failed_result(mem: Memory) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.id": "k1"}
    thrown = ("exception", {"exception.type": "Timeout", "exception.message": "no answer in 30 s"})
    asked = chat(
        HELLO,
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "k1", "name": "book", "arguments": {"n": 2}}]}],
    )
    ingest(
        mem,
        span(1, {**asked, **CONVERSATION}),
        span(2, {**tool, **CONVERSATION}, at=20, error="failed", events=[thrown]),
    )
    entry = turns(mem)[-1]
    assert entry.content == "no answer in 30 s"
    assert entry.body is not None
    assert entry.body.tool is not None
    assert (entry.body.tool.name, entry.body.tool.ok, entry.body.tool.args) == ("book", False, {"n": 2})


def test_a_result_is_written_once_though_two_spans_write_it_differently(mem: Memory) -> None:
    call = {"role": "assistant", "parts": [{"type": "tool_call", "id": "k1", "name": "look", "arguments": {}}]}
    returned = {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "k1", "response": {"answer": "blue", "took": 3}}],
    }
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "k1"}
    ingest(
        mem,
        span(1, chat(HELLO, [call], **CONVERSATION)),
        span(2, {**tool, "gen_ai.tool.call.result": '[{"text": "blue"}]', **CONVERSATION}, at=20),
        span(3, chat([*HELLO, call, returned], NOTED, **CONVERSATION), at=40),
    )
    assert said(mem) == [("user", "I live in Oslo."), ("tool", "blue"), ("assistant", "Noted.")]


# -- once, and again ------------------------------------------------------------------------------------------


def test_the_same_words_said_again_are_another_message(mem: Memory) -> None:
    """Pieces of one turn each, as where an agent is sent the new message alone."""
    yes, first, second = [text("user", "Yes.")], [text("assistant", "Booked.")], [text("assistant", "Paid.")]
    spans = [
        span(1, chat(yes, first, **CONVERSATION)),
        span(2, chat(yes, second, **CONVERSATION), at=1_000, trace="cd" * 16),
        span(3, chat(yes, second, **CONVERSATION), at=2_000, trace="ef" * 16),
    ]
    for _ in range(2):
        for each in spans:
            ingest(mem, each)
    wanted = [("user", "Yes."), ("assistant", "Booked.")] + 2 * [("user", "Yes."), ("assistant", "Paid.")]
    assert said(mem) == wanted


def test_two_instrumentations_of_one_call_tell_it_once(mem: Memory) -> None:
    openinference = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "I live in Oslo.",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Noted.\n",
        "session.id": "c1",
    }
    ingest(
        mem, span(1, openinference, took=12), span(2, chat(HELLO, NOTED, **CONVERSATION), at=1), default_user_id="ana"
    )
    assert said(mem) == [("user", "I live in Oslo."), ("assistant", "Noted.\n")]


def test_what_was_recorded_through_another_door_is_known(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="c1")
    run.record([{"role": "user", "content": "I live in Oslo."}, {"role": "assistant", "content": "Noted."}])
    report = ingest(mem, span(1, chat(HELLO, NOTED, **CONVERSATION)))
    assert (report.messages, report.known) == (0, 2)


def test_a_secret_in_a_message_does_not_make_it_new(mem: Memory) -> None:
    secret = [text("user", "My key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD, keep it.")]
    ingest(mem, span(1, chat(secret, NOTED, **CONVERSATION)))
    ingest(mem, span(2, chat([*secret, *NOTED, *HELLO], NOTED, **CONVERSATION), at=50))
    assert len(said(mem)) == 4
    assert not any("sk-proj-abc" in content for _, content in said(mem))


@pytest.mark.req("MV-07")
def test_what_was_forgotten_does_not_come_back(mem: Memory) -> None:
    """An agent repeats its history with every call; what was erased from it stays erased."""
    ill = [text("user", "I have been diagnosed with asthma.")]
    ingest(mem, span(1, chat(ill, NOTED, **CONVERSATION)))
    mem.forget(event=turns(mem)[0].id)
    ingest(mem, span(1, chat(ill, NOTED, **CONVERSATION)))
    report = ingest(mem, span(2, chat([*ill, *NOTED, *HELLO], [text("assistant", "Fine.")], **CONVERSATION), at=50))
    assert report.messages == 2
    assert [content for _, content in said(mem)][1:] == ["Noted.", "I live in Oslo.", "Fine."]
    mem.forget(session="c1", user_id="ana")
    for again in (
        span(1, chat(ill, NOTED, **CONVERSATION)),
        span(2, chat([*ill, *NOTED, *HELLO], NOTED, **CONVERSATION), at=50),
    ):
        assert ingest(mem, again).messages == 0


@pytest.mark.parametrize("name", ["pydantic-ai.traces", "strands.traces", "openai-v2-chat.logs"])
def test_a_session_that_was_forgotten_stays_so_whatever_is_sent_again(mem: Memory, name: str) -> None:
    (session,) = {each.session_id for each in mem.ledger.ingest_otel(captured(name), default_user_id="ana").sessions}
    mem.forget(session=session, user_id="ana")
    for piece in [captured(name), *in_pieces(captured(name), 0)]:
        mem.ledger.ingest_otel(piece, default_user_id="ana")
    told = [entry for entry in mem.ledger.entries(user_id="ana") if not entry.is_forgotten]
    assert not [entry for entry in told if entry.content or "tool_calls" in entry.metadata]


def test_a_history_that_is_longer_than_what_is_looked_at_is_known(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.traces.sessions._KNOWN_MAX", 6)
    history: list[dict[str, Any]] = []
    for number in range(10):
        history.append(text("user", f"Question {number}."))
        answer = text("assistant", f"Answer {number}.")
        ingest(mem, span(number + 1, chat(history, [answer], **CONVERSATION), at=number * 20))
        history.append(answer)
    assert [content for _, content in said(mem)] == [each["parts"][0]["content"] for each in history]


def test_a_run_that_has_ended_is_followed_by_another(mem: Memory) -> None:
    ingest(mem, span(1, chat(HELLO, NOTED, **CONVERSATION)))
    mem.resume(turns(mem)[0].scope.run_id).run.finish()
    report = ingest(mem, span(2, chat([*HELLO, *NOTED, text("user", "Thanks.")], [], **CONVERSATION), at=50))
    assert report.messages == 1
    assert len({each.scope.run_id for each in turns(mem)}) == 2


def test_a_trace_that_two_exports_begin_at_once_is_written_by_both(
    mem: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither sees the other's run: the second finds it taken, and begins one of its own."""
    monkeypatch.setattr("muniment.traces.ingest._Ingest._trace", lambda self, user, trace_id: None)
    for number, agent in enumerate(("front", "back"), 1):
        held = chat([text("user", f"I am {agent}.")], NOTED, **{"gen_ai.agent.name": agent, "session.id": agent})
        ingest(mem, span(number, held), user_id="ana")
    assert sorted(content for role, content in said(mem) if role == "user") == ["I am back.", "I am front."]
    assert mem.verify().ok


# -- what is no memory ----------------------------------------------------------------------------------------


def test_memory_does_not_remember_itself(mem: Memory) -> None:
    ingest(mem, span(1, chat(HELLO, NOTED, **CONVERSATION)))
    packet = mem.run(user_id="ana").compose("responder", query="Where do I live?").text
    asked = [
        {"role": "system", "parts": [{"type": "text", "content": packet}]},
        text("user", f"{packet}\n---\nWhere do I live?"),
    ]
    ingest(mem, span(2, chat(asked, [text("assistant", "In Oslo.")], **CONVERSATION), at=50))
    assert said(mem)[2:] == [("user", "Where do I live?"), ("assistant", "In Oslo.")]
    own = mem.ledger.ingest_otel(export(span(3, chat(HELLO, NOTED)), scope="muniment"), user_id="ana")
    assert own.left_out == {"our_own": 1}


def test_thoughts_are_not_said(mem: Memory) -> None:
    thought = {
        "role": "assistant",
        "parts": [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "Yes."}],
    }
    report = ingest(mem, span(1, chat(HELLO, [thought], **CONVERSATION)))
    assert said(mem)[-1] == ("assistant", "Yes.")
    assert report.left_out == {"reasoning": 1}


def test_a_picture_is_a_reference(mem: Memory) -> None:
    blob = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGVsbG8="}
    asked = {"role": "user", "parts": [{"type": "text", "content": "What is this?"}, blob]}
    linked = {"type": "uri", "modality": "image", "uri": "https://example.org/cat.png"}
    ingest(mem, span(1, chat([asked, {"role": "user", "parts": [linked]}], NOTED, **CONVERSATION)))
    first, second, _ = turns(mem)
    assert first.content is not None
    assert first.content.startswith("What is this?\n[image image/png sha256:")
    assert second.content == "[image https://example.org/cat.png]"
    assert "aGVsbG8=" not in json.dumps(first.metadata)


def test_what_a_judge_said_is_kept_beside(mem: Memory) -> None:
    judged = ("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.9})
    ingest(mem, span(1, chat(HELLO, NOTED, **CONVERSATION), events=[judged]))
    (event,) = [each for each in mem.ledger.entries(user_id="ana") if each.metadata.get("event") == "evaluation"]
    assert event.metadata["evaluation"] == {"name": "relevance", "score_value": 0.9}


@pytest.mark.soak
def test_a_message_that_is_too_large_does_not_hold_up_the_rest(mem: Memory) -> None:
    huge = [text("user", "x" * (mem.policy.ledger.content_bytes_max + 1))]
    report = ingest(mem, span(1, chat(huge, NOTED, **CONVERSATION)), span(2, chat(HELLO, NOTED, **CONVERSATION), at=20))
    assert report.left_out["refused"] == report.rejected_spans == 1
    assert ("user", "I live in Oslo.") in said(mem)


# -- whose it is ----------------------------------------------------------------------------------------------


def test_one_user_is_not_written_for_another(mem: Memory) -> None:
    mine, other = chat(HELLO, NOTED, **{"user.id": "ana"}), chat(HELLO, NOTED, **{"enduser.id": "bo"})
    report = ingest(mem, span(1, mine), span(2, other, trace="cd" * 16), user_id="ana")
    assert report.left_out == {"another_user": 1}
    assert report.rejected_spans == 1
    assert [each.user_id for each in mem.store.users()] == ["ana"]


def test_a_name_that_no_user_can_have_is_not_anybody_elses(mem: Memory) -> None:
    for name in ("corpus:notes", "a\x00b", "\u200b\u2028"):
        report = ingest(mem, span(1, chat(HELLO, NOTED, **{"user.id": name})), default_user_id="ana")
        assert (report.rejected_spans, report.left_out) == (1, {"no_such_user": 1}), name
    assert list(mem.store.users()) == []


def test_which_attributes_name_the_user_can_be_said(mem: Memory) -> None:
    held = chat(HELLO, NOTED, **{"user.id": "x-17", "app.customer": "bo"})
    ingest(mem, span(1, held), user_attributes=["app.customer"])
    assert [each.user_id for each in mem.store.users()] == ["bo"]
    ingest(mem, span(1, held), user_attributes=[], default_user_id="cy")
    assert [each.user_id for each in mem.store.users()] == ["bo", "cy"]


def test_a_resource_and_a_span_above_say_whose_it_is(mem: Memory) -> None:
    above = {"gen_ai.operation.name": "invoke_agent", "session.id": "s9", "gen_ai.agent.name": "helper"}
    spans = export(span(1, above), span(2, chat(HELLO, NOTED), parent=1), resource={"user.id": "dee"})
    (session,) = mem.ledger.ingest_otel(spans).sessions
    assert (session.user_id, session.agent_id, session.session_id) == ("dee", "helper", "s9")


def test_a_circle_of_parents_ends(mem: Memory) -> None:
    report = ingest(
        mem, span(1, chat(HELLO, NOTED), parent=2), span(2, chat(HELLO, NOTED), parent=1), default_user_id="ana"
    )
    assert report.messages == 2


def test_tenants_are_apart(mem: Memory) -> None:
    for tenant in ("acme", "umbrella"):
        assert ingest(mem, span(1, chat(HELLO, NOTED, **CONVERSATION)), tenant_id=tenant).messages == 2
    assert mem.store.tenants() == ["acme", "umbrella"]


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"user_id": ""}, "$.user_id"),
        ({"user_id": 7}, "$.user_id"),
        ({"default_user_id": "corpus:notes"}, "$.default_user_id"),
        ({"user_attributes": "user.id"}, "$.user_attributes"),
        ({"user_attributes": [1]}, "$.user_attributes"),
        ({"signal": "metrics"}, "$.signal"),
    ],
)
def test_what_is_asked_is_checked(mem: Memory, asked: dict[str, Any], path: str) -> None:
    with pytest.raises((InvalidInput, InvalidRecord)) as refused:
        mem.ledger.ingest_otel(captured("strands.traces"), **asked)
    assert refused.value.path == path
    assert list(mem.store.users()) == []


def test_the_run_of_a_trace_and_its_times(mem: Memory) -> None:
    ingest(mem, span(1, chat(HELLO, NOTED, **CONVERSATION)))
    question, answer = turns(mem)
    assert question.scope.run_id == answer.scope.run_id
    assert (question.ts, answer.ts) == ("2026-09-21T14:13:20.000000Z", "2026-09-21T14:13:20.010000Z")
    about = question.metadata["otel"]
    assert isinstance(about, dict)
    assert about["trace_id"] == TRACE
