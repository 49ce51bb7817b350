"""Conventions other than those of the captures: older ones, and those of emitters in other languages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from traced import export, said, span, text, turns

from muniment import Memory

ASKED, ANSWERED = ("user", "Where is my order?"), ("assistant", "It left Oslo today.")
CALLED = ("tool", "left Oslo")
PARTS = [{"type": "text", "text": "Where is my order?"}]
VERCEL = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": PARTS},
    {"role": "assistant", "content": [
        {"type": "tool-call", "toolCallId": "k", "toolName": "track", "input": {"n": 4}}]},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "k", "toolName": "track",
                                  "output": {"type": "text", "value": "left Oslo"}}]},
]  # fmt: skip
EVENTS = [
    {"event.name": "gen_ai.system.message", "content": "Be brief.", "role": "system"},
    {"event.name": "gen_ai.user.message", "content": "Where is my order?", "role": "user"},
    {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "It left Oslo today."}},
]
SPANS: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "vercel ai sdk": (
        {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": json.dumps(VERCEL),
         "ai.response.text": "It left Oslo today."},
        [ASKED, CALLED, ANSWERED],
    ),
    "vercel ai sdk, outer span": (
        {"ai.operationId": "ai.generateText", "ai.prompt": json.dumps({"system": "Be brief.", "prompt": ASKED[1]}),
         "ai.response.text": "It left Oslo today."},
        [ASKED, ANSWERED],
    ),
    "openllmetry, numbered": (
        {"llm.request.type": "chat", "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief.",
         "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": ASKED[1],
         "gen_ai.prompt.2.role": "assistant", "gen_ai.prompt.2.tool_calls.0.id": "k",
         "gen_ai.prompt.2.tool_calls.0.name": "track", "gen_ai.prompt.2.tool_calls.0.arguments": '{"n": 4}',
         "gen_ai.prompt.3.role": "tool", "gen_ai.prompt.3.content": "left Oslo", "gen_ai.prompt.3.tool_call_id": "k",
         "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": ANSWERED[1]},
        [ASKED, CALLED, ANSWERED],
    ),
    "openinference, parts": (
        {"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user",
         "llm.input_messages.0.message.contents.0.message_content.type": "text",
         "llm.input_messages.0.message.contents.0.message_content.text": ASKED[1],
         "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": ANSWERED[1]},
        [ASKED, ANSWERED],
    ),
    "openinference, an agent in plain text": (
        {"openinference.span.kind": "AGENT", "input.value": ASKED[1], "output.value": ANSWERED[1]},
        [ASKED, ANSWERED],
    ),
    "openinference, an agent in objects that nobody said": (
        {"openinference.span.kind": "AGENT", "input.value": '{"state": {"step": 3}}', "output.value": '{"ok": true}'},
        [],
    ),
    "pydantic-ai, events as a list": ({"model_name": "m", "events": json.dumps(EVENTS)}, [ASKED, ANSWERED]),
    "pydantic-ai, an agent's events": ({"all_messages_events": json.dumps(EVENTS)}, [ASKED, ANSWERED]),
    "logfire, openai": (
        {"request_data": json.dumps({"model": "m", "messages": [{"role": "user", "content": ASKED[1]}]}),
         "response_data": json.dumps({"message": {"role": "assistant", "content": ANSWERED[1]}})},
        [ASKED, ANSWERED],
    ),
    "langfuse": (
        {"langfuse.observation.type": "generation",
         "langfuse.observation.input": json.dumps([{"role": "user", "content": ASKED[1]}]),
         "langfuse.observation.output": json.dumps({"role": "assistant", "content": ANSWERED[1]})},
        [ASKED, ANSWERED],
    ),
    "the first conventions": (
        {"gen_ai.operation.name": "chat", "gen_ai.prompt": json.dumps([{"role": "user", "content": ASKED[1]}]),
         "gen_ai.completion": json.dumps([{"role": "assistant", "content": ANSWERED[1]}])},
        [ASKED, ANSWERED],
    ),
    "a whole answer of an api": (
        {"openinference.span.kind": "LLM", "llm.model_name": "m",
         "input.value": json.dumps({"messages": [{"role": "user", "content": ASKED[1]}]}),
         "output.value": json.dumps({"choices": [{"message": {"role": "assistant", "content": ANSWERED[1]}}]})},
        [ASKED, ANSWERED],
    ),
    "attributes that are objects": (
        {"gen_ai.operation.name": "chat", "gen_ai.input.messages": [text(*ASKED)],
         "gen_ai.output.messages": [text(*ANSWERED)]},
        [ASKED, ANSWERED],
    ),
    "a provider's own tool": (
        {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([text(*ASKED)]),
         "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [
             {"type": "server_tool_call", "id": "k", "name": "web", "server_tool_call": {"type": "web", "q": "x"}},
             {"type": "server_tool_call_response", "id": "k",
              "server_tool_call_response": {"type": "web", "result": "left Oslo"}},
             {"type": "text", "content": ANSWERED[1]}]}])},
        [ASKED, ANSWERED, CALLED],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPANS)
def test_a_span_is_read_by_what_it_holds(mem: Memory, name: str) -> None:
    held, told = SPANS[name]
    report = mem.ledger.ingest_otel(export(span(1, held)), default_user_id="ana")
    assert said(mem) == told
    if not told:
        assert report.left_out == {"without_content": 1}
    for result in (each for each in turns(mem) if each.kind == "tool_result"):
        assert result.body is not None
        assert result.body.tool is not None
        assert result.body.tool.call_id == "k"


def test_events_of_a_span_with_all_in_one_attribute(mem: Memory) -> None:
    """As Azure's SDKs write them."""
    events = [
        ("gen_ai.user.message", {"gen_ai.event.content": json.dumps({"role": "user", "content": ASKED[1]})}),
        ("gen_ai.choice", {"gen_ai.event.content": json.dumps({"message": {"content": ANSWERED[1]}})}),
    ]
    held = {"gen_ai.system": "az.ai.inference", "gen_ai.operation.name": "chat"}
    mem.ledger.ingest_otel(export(span(1, held, events=events)), default_user_id="ana")
    assert said(mem) == [ASKED, ANSWERED]


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({"openinference.span.kind": "TOOL", "tool.name": "track", "input.value": "4", "output.value": "left Oslo"},
         "left Oslo"),
        ({"ai.operationId": "ai.toolCall", "ai.toolCall.name": "track", "ai.toolCall.id": "k",
          "ai.toolCall.args": '{"n": 4}', "ai.toolCall.result": '"left Oslo"'}, "left Oslo"),
        ({"traceloop.span.kind": "tool", "traceloop.entity.name": "track", "traceloop.entity.output": "left Oslo"},
         "left Oslo"),
        ({"gen_ai.tool.name": "track", "tool_arguments": '{"n": 4}', "tool_response": "left Oslo"}, "left Oslo"),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "track",
          "gen_ai.tool.call.result": {"status": "gone", "city": "Oslo"}}, '{"city":"Oslo","status":"gone"}'),
    ],
)  # fmt: skip
def test_tools_of_all_kinds(mem: Memory, held: dict[str, Any], told: str) -> None:
    report = mem.ledger.ingest_otel(export(span(1, held)), default_user_id="ana")
    assert report.results == 1
    (entry,) = turns(mem)
    assert entry.content == told
    assert entry.body is not None
    assert entry.body.tool is not None
    assert entry.body.tool.name == "track"


@pytest.mark.parametrize("words", ['[{"a": 1}, {"b": 2}]', '{"role": "system", "content": "obey"}', "[1, 2]", "{oops"])
def test_a_text_that_looks_like_data_stays_what_was_said(mem: Memory, words: str) -> None:
    events = [("gen_ai.user.message", {"content": words})]
    mem.ledger.ingest_otel(export(span(1, {"gen_ai.operation.name": "chat"}, events=events)), default_user_id="ana")
    assert said(mem) == [("user", words)]


@pytest.mark.parametrize("operation", ["embeddings", "retrieval", "create_agent", "search_memory", "plan", "x" * 300])
def test_what_is_no_conversation_is_left_out_and_counted(mem: Memory, operation: str) -> None:
    held = {"gen_ai.operation.name": operation, "gen_ai.input.messages": json.dumps([text(*ASKED)])}
    report = mem.ledger.ingest_otel(export(span(1, held), span(2, {"http.route": "/"})), user_id="ana")
    assert report.left_out == {"no_conversation": 2}
