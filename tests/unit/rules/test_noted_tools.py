"""Tools that an agent records as the guides say are the tools of its answer where a rule is tried (RC-18, RC-19)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from rule_drafts import draft

from muniment.store.ledger import EntryDraft
from muniment.verify.outputs import Output

TASK = "Look it up."
CHAT = [
    {"role": "user", "content": TASK},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "it"}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
    {"role": "assistant", "content": "done"},
]  # fmt: skip
RESPONSES = [
    {"type": "message", "role": "user", "content": TASK},
    {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "it"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "found"},
]
ANTHROPIC = [
    {"role": "user", "content": TASK},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "it"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "found"}]},
]


def _by_observe_tool(run: Any) -> None:
    run.observe_tool("search", args={"q": "it"}, content="found")


def _by_call_id(run: Any) -> None:
    calls = [{"id": "c1", "name": "search", "args": {"q": "it"}}]
    run.observe("assistant", "let me look", metadata={"tool_calls": calls})
    run.observe_tool("search", call_id="c1", content="found")


def _by_observe_many(run: Any) -> None:
    run.observe_many(
        [{"role": "tool", "content": "found", "tool": {"name": "search", "args": {"q": "it"}, "ok": True}}]
    )


def _by_draft(run: Any) -> None:
    tool = {"name": "search", "args": {"q": "it"}, "ok": True}
    run.observe_many([EntryDraft.from_wire({"kind": "tool_result", "role": "tool", "content": "found", "tool": tool})])


def _by_messages(messages: list[Any]) -> Callable[[Any], None]:
    def noted(run: Any) -> None:
        for end in range(1, len(messages) + 1):  # the list grows, and is recorded each time
            run.record(messages[:end])

    return noted


WAYS: dict[str, Callable[[Any], None]] = {
    "observe_tool": _by_observe_tool,
    "observe_tool by call id": _by_call_id,
    "observe_many": _by_observe_many,
    "observe_many of drafts": _by_draft,
    "record, chat completions": _by_messages(CHAT),
    "record, responses": _by_messages(RESPONSES),
    "record, anthropic": _by_messages(ANTHROPIC),
}


class Seen:
    """A verifier that keeps what it was shown."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []

    def __call__(self, output: Output, task: str) -> bool:
        self.outputs.append(output)
        return [call.name for call in output.tool_calls or ()] == ["search"] and output.text == "done"


def _taught(mem: Any, agent: Callable[..., Any], verifier: Seen) -> tuple[Any, str]:
    """A rule with tools to be tested, after runs of a runner."""
    lazy = {"n": 0}

    def sometimes(task: Any) -> Any:
        lazy["n"] += 1
        return agent(task) if lazy["n"] % 2 else "not found"

    runner = mem.runner(sometimes, verifier, {"recall": False}, user_id="ana", agent_id="clerk")
    done = [runner.run(f"{TASK} {number}", intent={"task_family": "look"}) for number in range(24)]
    given = draft("d1", body="Call search.", task_family="look")
    given["source_trace_ids"] = given["evidence"]["trace_ids"] = [each.learned.event_log.trace_id for each in done[:3]]
    book = mem.rulebook(user_id="ana")
    return book, str(book.submit(given).id)


@pytest.mark.soak
@pytest.mark.req("RC-18", "RC-19")
@pytest.mark.parametrize("way", WAYS)
def test_tools_recorded_as_documented_are_read_at_the_gate_and_in_replay(make, way) -> None:
    def agent(task: Any) -> str:
        WAYS[way](task.run)
        return "done"

    seen = Seen()
    book, rule_id = _taught(make("memory"), agent, seen)
    spec = {"test_id": "mine", "test_type": "regression", "x_ref": "mine", "prompt": TASK}
    wanted = {"type": "tool_called", "args": {"tool": "search", "args": {"q": "it"}}}
    book.add_tests(rule_id, [spec | {"assert": wanted}])
    seen.outputs.clear()
    report = book.advance(agent, seen)
    gate, replay = book.reports(rule_id)[:2]
    assert gate.passed, [check for check in gate.checks if not check.ok]
    assert next(each for each in gate.outcomes if each.test_id == "mine").ok
    assert replay.with_passes == replay.pairs > 0
    calls = [call for output in seen.outputs for call in output.tool_calls or ()]
    assert {(call.name, json.dumps(call.args)) for call in calls} == {("search", '{"q": "it"}')}
    assert report.rules[0].after == "canary"


@pytest.mark.req("RC-19")
def test_what_an_answer_says_of_its_tools_itself_counts_where_nothing_was_noted(make) -> None:
    def agent(task: Any) -> dict[str, Any]:
        return {"text": "done", "tool_calls": [{"name": "search"}]}

    seen = Seen()
    book, rule_id = _taught(make("memory"), agent, seen)
    assert book.advance(agent, seen).rules[0].rule_id == rule_id
    assert book.reports(rule_id)[0].passed


@pytest.mark.req("RC-19")
def test_an_agent_that_notes_tools_and_called_none_called_none(make) -> None:
    def agent(task: Any) -> str:
        if "quiet" not in task.task:
            _by_observe_tool(task.run)
        return "done"

    book, rule_id = _taught(make("memory"), agent, Seen())
    spec = {"test_id": "mine", "test_type": "regression", "x_ref": "mine", "prompt": "quiet, please"}
    book.add_tests(rule_id, [spec | {"assert": {"type": "tool_not_called", "args": {"tool": "pay"}}}])
    outcome = next(each for each in book.gate(rule_id, agent).outcomes if each.test_id == "mine")
    assert outcome.ok, outcome.message
