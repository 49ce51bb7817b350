"""Messages of the usual shapes are recorded as they are, once; what the caller sends itself is left out (TM-09)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muniment
from effort import SOAK, in_turn
from muniment.errors import InvalidInput, MessagesDiffer, MunimentError
from products import for_each

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What does settings.py say?", "name": "ana"},
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "settings.py"}'}},
            {"id": "c2", "type": "function", "function": {"name": "stat", "arguments": ""}},
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "12 bytes"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "DEBUG=True"}]},
    {"role": "assistant", "content": "It turns debugging on."},
]
RESPONSES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "input_text", "text": "What does settings.py say?"}]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path": "settings.py"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "DEBUG=True"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It turns debugging on."}]},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "What does settings.py say?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "settings.py"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "DEBUG=True"}]},
            {"type": "text", "text": "And?"},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "It turns debugging on."}]},
]


@pytest.fixture(params=["memory", "sqlite"] if SOAK else ["turn"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[muniment.Memory]:
    engine = request.param if SOAK else in_turn(request.node.nodeid, ("memory", "sqlite"))
    target = ":memory:" if engine == "memory" else str(tmp_path / "agent.db")
    with muniment.open(target) as opened:
        yield opened


def said(entries: Any) -> list[tuple[str, str]]:
    return [(entry.role, entry.content) for entry in entries if entry.kind != "system"]


def count(mem: muniment.Memory) -> int:
    return sum(1 for _ in mem.ledger.entries(user_id="ana"))


@pytest.mark.req("TM-09")
@pytest.mark.parametrize("messages", [CHAT, RESPONSES, ANTHROPIC], ids=["chat", "responses", "anthropic"])
def test_each_shape_is_recorded_as_it_is(mem: muniment.Memory, messages: list[dict[str, Any]]) -> None:
    """TM-09: what was said stands in order, a result with the name and arguments of its call."""
    entries = mem.run(user_id="ana", session_id="s").record(messages)
    assert ("user", "What does settings.py say?") in said(entries)
    assert said(entries)[-1] == ("assistant", "It turns debugging on.")
    tool = next(entry for entry in entries if entry.kind == "tool_result" and entry.content == "DEBUG=True").tool
    assert tool is not None
    assert (tool.name, tool.args, tool.ok, tool.call_id) == ("read", {"path": "settings.py"}, True, "c1")


@pytest.mark.req("TM-09")
@pytest.mark.parametrize("messages", [CHAT, RESPONSES, ANTHROPIC], ids=["chat", "responses", "anthropic"])
def test_a_list_that_grows_message_by_message_is_the_list_recorded_at_once(
    mem: muniment.Memory, messages: list[dict[str, Any]]
) -> None:
    """TM-09: only what is new is written, in whatever portions the list grows, in another run of the session too."""
    grown = []
    for end in range(1, len(messages) + 1):
        run = mem.run(user_id="ana", session_id="grown")
        grown += run.record(messages[:end])
        assert run.record(messages[:end]) == []
    whole = mem.run(user_id="ana", session_id="whole").record(messages)
    assert [(e.kind, e.role, e.content, e.tool, e.metadata) for e in grown] == [
        (e.kind, e.role, e.content, e.tool, e.metadata) for e in whole
    ]


def test_a_message_that_an_sdk_hands_back_is_the_message_it_stands_for(mem: muniment.Memory) -> None:
    class Message:
        def model_dump(self, **_: Any) -> dict[str, Any]:
            return {"role": "assistant", "content": "Hello.", "refusal": None, "annotations": []}

    run = mem.run(user_id="ana", session_id="s")
    messages: list[Any] = [{"role": "user", "content": "Hi."}, Message()]
    assert said(run.record(messages)) == [("user", "Hi."), ("assistant", "Hello.")]
    assert run.record([messages[0], {"role": "assistant", "content": "Hello."}]) == []


def test_the_same_words_twice_are_two_messages(mem: muniment.Memory) -> None:
    run = mem.run(user_id="ana", session_id="s")
    assert len(run.record([{"role": "user", "content": "yes"}, {"role": "user", "content": "yes"}])) == 2


@pytest.mark.req("TM-09")
@pytest.mark.parametrize("at", range(1, len(CHAT)))
def test_a_list_that_was_edited_says_where_and_writes_nothing(mem: muniment.Memory, at: int) -> None:
    run = mem.run(user_id="ana", session_id="s")
    run.record(CHAT)
    before = count(mem)
    edited = json.loads(json.dumps(CHAT))
    edited[at]["content"] = "something else"
    with pytest.raises(MessagesDiffer) as caught:
        run.record([*edited, {"role": "user", "content": "And now?"}])
    assert caught.value.code == "messages_differ"
    assert caught.value.path == f"$[{at}]"
    assert caught.value.details["index"] == at
    assert count(mem) == before


def test_a_list_that_was_cut_at_its_beginning_says_so(mem: muniment.Memory) -> None:
    run = mem.run(user_id="ana", session_id="s")
    run.record([{"role": "user", "content": str(number)} for number in range(4)])
    with pytest.raises(MessagesDiffer):
        run.record([{"role": "user", "content": str(number)} for number in range(1, 6)])


def test_a_prompt_may_change_and_a_packet_in_it_is_not_recorded(mem: muniment.Memory) -> None:
    """A packet is kept as a build: as an event it would copy the words of other events, past every forget."""
    run = mem.run(user_id="ana", session_id="s")
    told = mem.run(user_id="ana", session_id="before").observe("user", "I moved to Berlin in May.")
    for number, prompt in enumerate(("Be brief.", "Be kind.", "Be brief.")):
        talk = [{"role": "user", "content": f"Question {each}?"} for each in range(number + 1)]
        run.record([{"role": "system", "content": prompt}, *talk])
    entries = list(run.ledger.entries())
    assert [e.content for e in entries if e.kind == "system" and e.content] == ["Be brief.", "Be kind."]
    asking = mem.run(user_id="ana", session_id="asking")
    build = asking.compose("responder", query="Where do I live?")
    assert told.content is not None
    assert told.content in build.to_openai()[0]["content"]
    asking.record(build.to_openai())
    assert not any(told.content in (entry.content or "") for entry in asking.ledger.entries())


def test_pictures_and_files_are_references(mem: muniment.Memory) -> None:
    data = base64.b64encode(b"\x89PNG" * 1000).decode()
    content = [
        {"type": "text", "text": "Which of these?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
        {"type": "file", "file": {"file_id": "file-1", "filename": "notes.pdf"}},
        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": data}},
    ]
    (entry,) = mem.run(user_id="ana", session_id="s").record([{"role": "user", "content": content}])
    lines = (entry.content or "").splitlines()
    assert lines[0] == "Which of these?"
    assert lines[1].startswith("[image image/png sha256:")
    assert lines[2:4] == ["[image https://example.org/cat.png]", "[file notes.pdf]"]
    assert data not in json.dumps(entry.to_wire())
    assert [part["type"] for part in entry.metadata["parts"]] == [part["type"] for part in content[1:]]  # type: ignore[index,union-attr]


def test_a_failed_call_is_told_as_failed(mem: muniment.Memory) -> None:
    messages = json.loads(json.dumps(ANTHROPIC))
    messages[2]["content"][0] |= {"is_error": True, "content": "no such file"}
    entries = mem.run(user_id="ana", session_id="s").record(messages)
    tool = next(entry.tool for entry in entries if entry.tool is not None)
    assert tool is not None
    assert not tool.ok


def test_a_call_without_a_result_is_kept_and_joined_when_it_comes(mem: muniment.Memory) -> None:
    run = mem.run(user_id="ana", session_id="s")
    (call,) = run.record(CHAT[2:3])
    assert [each["name"] for each in call.metadata["tool_calls"]] == ["read", "stat"]  # type: ignore[index,union-attr,call-overload]
    assert [entry.kind for entry in run.record(CHAT[2:5])] == ["tool_result", "tool_result"]


def test_an_id_may_be_given_again_once_its_call_was_answered(mem: muniment.Memory) -> None:
    pair = [
        {"role": "assistant", "tool_calls": [{"id": "call_0", "function": {"name": "now", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_0", "content": "12:00"},
    ]
    assert len(mem.run(user_id="ana", session_id="s").record(pair * 3)) == 6


BAD: list[tuple[Any, str]] = [
    ("hello", "$"),
    ({"role": "user", "content": "hello"}, "$"),
    (7, "$"),
    ([7], "$[0]"),
    ([None], "$[0]"),
    ([{}], "$[0].role"),
    ([{"role": "wizard", "content": "x"}], "$[0].role"),
    ([{"type": "teleport"}], "$[0].type"),
    ([{"role": "user", "content": 7}], "$[0].content"),
    ([{"role": "user", "content": [7]}], "$[0].content[0]"),
    ([{"role": "user", "content": [{"text": "x"}]}], "$[0].content[0].type"),
    ([{"role": "user", "content": [{"type": "text"}]}], "$[0].content[0].text"),
    ([{"role": "user", "content": "a\ud800"}], "$[0].content"),
    ([{"role": "assistant", "tool_calls": "x"}], "$[0].tool_calls"),
    ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], "$[0].tool_calls[0]"),
    ([{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}], "$[0].tool_calls[0].id"),
    ([{"role": "tool", "content": "x"}], "$[0].tool_call_id"),
    ([{"role": "tool", "tool_call_id": "c9", "content": "x"}], "$[0].tool_call_id"),
    ([*CHAT[:4], CHAT[3]], "$[4].tool_call_id"),
    ([CHAT[2], CHAT[2]], "$[1].tool_calls[0].id"),
    ([*RESPONSES[:4], RESPONSES[3]], "$[4].call_id"),
    ([{"role": "user", "content": [{"type": "tool_result", "content": "x"}]}], "$[0].content[0].tool_use_id"),
    (
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c9", "content": "x"}]}],
        "$[0].content[0].tool_use_id",
    ),
]


@for_each(("messages", "path"), BAD, ids=[f"{at}-{path}" for at, (_, path) in enumerate(BAD)])
def test_bad_messages_are_refused_with_their_place_and_write_nothing(
    mem: muniment.Memory, messages: Any, path: str
) -> None:
    run = mem.run(user_id="ana", session_id="s")
    with pytest.raises(MunimentError) as caught:
        run.record(messages)
    assert caught.value.code in ("invalid_input", "invalid_record", "invalid_json")
    assert path in (caught.value.path, *(issue.path for issue in getattr(caught.value, "issues", ())))
    assert count(mem) == 0


def test_ten_megabytes_of_arguments_are_refused_whole(mem: muniment.Memory) -> None:
    messages = json.loads(json.dumps(CHAT))
    messages[2]["tool_calls"][0]["function"]["arguments"] = json.dumps({"path": "x" * 10_000_000})
    with pytest.raises(MunimentError) as caught:
        mem.run(user_id="ana", session_id="s").record(messages)
    assert caught.value.code == "too_large"
    assert count(mem) == 0


def test_a_forgotten_message_is_neither_written_again_nor_in_the_way(mem: muniment.Memory) -> None:
    run = mem.run(user_id="ana", session_id="s")
    entries = run.record(CHAT)
    mem.forget(event=entries[1].id)
    assert said(run.record([*CHAT, {"role": "user", "content": "Thanks."}])) == [("user", "Thanks.")]


def test_the_last_answer_keeps_what_it_cites(mem: muniment.Memory) -> None:
    mem.run(user_id="ana", session_id="before").observe("user", "I moved to Berlin in May.")
    run = mem.run(user_id="ana", session_id="s")
    talk = [{"role": "user", "content": "Where do I live?"}]
    run.record(talk)
    build = run.compose("responder", query="Where do I live?", exclude_session=True)
    mark = f"[{next(iter(build.marks))}]"
    answer = {"role": "assistant", "content": f"In Berlin {mark}."}
    (entry,) = run.record([*talk, answer], build=build)
    assert entry.cited is not None
    assert entry.cited.evidence_ids == (build.marks[mark[1:-1]],)
    assert run.record([*talk, answer]) == []


# -- what the caller sends itself ----------------------------------------------------------------------------------


@pytest.mark.req("TM-09")
def test_the_session_that_the_caller_sends_is_left_out(mem: muniment.Memory) -> None:
    """TM-09: nothing that was said in the session stands in the packet; what was remembered of it does."""
    mem.run(user_id="ana", session_id="before").observe("user", "I moved to Berlin in May.")
    run = mem.run(user_id="ana", session_id="now")
    said_now = run.observe("user", "I live in Berlin with Kim. Which restaurants in Berlin are open?")
    run.remember("user.partner", "Kim", sources=[said_now.id])
    query = "Which restaurants in Berlin are open?"
    for purpose in ("planner", "tool", "responder"):
        both = run.compose(purpose, query=query)
        own = run.compose(purpose, query=query, exclude_session=True)
        assert "with Kim. Which" in both.text
        assert "with Kim. Which" not in own.text
        assert "I moved to Berlin in May." in own.text
        assert "Partner: Kim" in own.text
        assert own.packet.explain.filters["exclude_session"] is True
        assert mem.replay(own.id).packet_bytes == own.packet_bytes


def test_events_can_be_left_out_by_their_ids(mem: muniment.Memory) -> None:
    run = mem.run(user_id="ana", session_id="now")
    first = run.observe("user", "I moved to Berlin in May.")
    run.observe("user", "Berlin is expensive.")
    build = run.compose("responder", query="Berlin", exclude=[first.id])
    assert first.id not in build.marks.values()
    assert "Berlin is expensive." in build.text
    omitted = {each.item: each.reason for each in build.packet.explain.omitted}
    assert omitted[f"quote:{first.id}"] == "excluded"
    assert mem.replay(build.id).packet_bytes == build.packet_bytes


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"exclude": "evt_1"}, "$.exclude"),
        ({"exclude": 7}, "$.exclude"),
        ({"exclude": [7]}, "$.exclude[0]"),
        ({"exclude_session": "yes"}, "$.exclude_session"),
    ],
)
def test_what_is_to_be_left_out_is_checked(mem: muniment.Memory, given: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        mem.run(user_id="ana", session_id="now").compose("responder", query="Berlin", **given)
    assert caught.value.path == path


def test_an_answer_that_broke_off_says_so(mem: muniment.Memory) -> None:
    """As Responses items say of themselves; whole ones say nothing."""
    run = mem.run(user_id="ana", session_id="s1")
    cut = {"role": "assistant", "content": "In Ber", "status": "incomplete"}
    whole = {"type": "message", "role": "assistant", "content": "In Berlin.", "status": "completed"}
    first, second = run.record([cut, whole])
    assert (first.metadata, second.metadata) == ({"incomplete": True}, {})
    assert run.record([cut, whole]) == []
