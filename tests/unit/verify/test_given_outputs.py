"""An output as a model's server gave it is read as it is, and the same as one in our own words."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.errors import InvalidInput
from muniment.verify.outputs import read_output
from products import for_each

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "tower"}'}}
OURS = [{"name": "search", "args": {"q": "tower"}}]
MESSAGE = {"role": "assistant", "content": "330 metres.", "tool_calls": [CALL]}
ANTHROPIC = [
    {"type": "text", "text": "330 metres."},
    {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "tower"}},
]
RESPONSES = [
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "tower"}'},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "330 metres."}]},
]
SHAPES: dict[str, Any] = {
    "ours": {"text": "330 metres.", "tool_calls": OURS},
    "OpenAI's calls beside a text": {"text": "330 metres.", "tool_calls": [CALL]},
    "a message": MESSAGE,
    "a message of parts": {"role": "assistant", "content": ANTHROPIC},
    "a response of Chat Completions": {"id": "x", "object": "chat.completion", "choices": [{"message": MESSAGE}]},
    "a response of Responses": {"id": "x", "object": "response", "output": RESPONSES},
    "messages": {"messages": [MESSAGE]},
}


@for_each("shape", SHAPES)
def test_one_output_in_many_shapes_is_one_output(shape: str) -> None:
    output = read_output(SHAPES[shape])
    assert output.to_wire() == {"text": "330 metres.", "tool_calls": OURS}


def test_a_list_of_messages_is_its_last_answer_with_every_call_and_whether_it_worked() -> None:
    said = [
        {"role": "user", "content": "How tall?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "330"},
        {"role": "assistant", "content": "330 metres."},
    ]
    output = read_output(said)
    assert output.to_wire() == {"text": "330 metres.", "prompt": "How tall?", "tool_calls": [{**OURS[0], "ok": True}]}


def test_what_a_server_says_of_its_usage_is_read() -> None:
    used = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    output = read_output({"choices": [{"message": {"content": "Yes."}}], "usage": used, "id": "case-1"})
    assert output.to_wire() == {
        "text": "Yes.",
        "tool_calls": [],
        "usage": {"tokens_in": 9, "tokens_out": 3},
        "id": "case-1",
    }


def test_a_text_says_nothing_of_calls_and_a_message_without_calls_says_there_were_none() -> None:
    assert read_output("Yes.").tool_calls is None
    assert read_output({"role": "assistant", "content": "Yes."}).tool_calls == ()


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (3, "$.output"),
        ({"txt": "a"}, "$.output.text"),
        ({"choices": []}, "$.output.choices"),
        ({"text": "a", "tool_calls": [{"function": {"arguments": "{}"}}]}, "$.output.tool_calls[0].function.name"),
        ({"text": "a", "tool_calls": [{"nam": "x"}]}, "$.output.tool_calls[0].name"),
        ([{"role": "robot", "content": "a"}], "$.output[0].role"),
        ({"text": "a\ud800"}, "$.output"),
    ],
)
def test_what_cannot_be_read_is_named_at_its_place(given: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_output(given)
    assert caught.value.path == path
    assert caught.value.hint
