"""Pydantic AI: history, a processor, instructions and tools, under real agents with scripted models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the pydantic-ai extra is not installed: pip install 'muniment[pydantic-ai]'")

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

import muniment
from muniment.integrations.pydantic_ai import MunimentHistory, memory_toolset, recall_instructions, recent_history


@pytest.fixture(params=["memory", "sqlite"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[muniment.Memory]:
    with muniment.open(":memory:" if request.param == "memory" else tmp_path / "a.db") as opened:
        yield opened


class Script:
    """A model that answers in turn, and keeps what it was sent."""

    def __init__(self, *answers: str | ToolCallPart) -> None:
        self.answers = list(answers)
        self.sent: list[list[ModelMessage]] = []
        self.instructions: list[str | None] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.sent.append(list(messages))
        self.instructions.append(info.instructions)
        answer = self.answers.pop(0)
        return ModelResponse(parts=[TextPart(answer) if isinstance(answer, str) else answer])


def history(mem: muniment.Memory, session: str = "s1", user: str = "ana", **more: Any) -> MunimentHistory:
    return MunimentHistory(mem, user_id=user, session_id=session, **more)


def prompts(messages: list[ModelMessage]) -> list[Any]:
    return [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]


def weather(city: str) -> dict[str, Any]:
    """How warm it is."""
    return {"city": city, "celsius": 12}


def test_messages_come_back_as_they_were(mem: muniment.Memory) -> None:
    script = Script(ToolCallPart("weather", {"city": "Berlin"}), "12 °C.", "Berlin.")
    agent = Agent(FunctionModel(script), tools=[weather], instructions="be brief", system_prompt="you are helpful")
    first = agent.run_sync("How warm is it in Berlin?")
    history(mem).append(first.new_messages())
    assert history(mem).load() == first.all_messages()
    second = agent.run_sync("Which city?", message_history=history(mem).load())
    history(mem).append(second.new_messages())
    assert history(mem).load() == second.all_messages()
    assert prompts(script.sent[-1]) == ["How warm is it in Berlin?", "Which city?"]


def test_several_parts_and_blocks(mem: muniment.Memory) -> None:
    messages: list[ModelMessage] = [
        ModelRequest(parts=[SystemPromptPart("be kind"), UserPromptPart(["one", "two"])]),
        ModelResponse(parts=[TextPart("a"), ToolCallPart("t", {"x": 1}, tool_call_id="c1"), TextPart("b")]),
        ModelRequest(parts=[ToolReturnPart("t", "result", tool_call_id="c1"), UserPromptPart("three")]),
    ]
    history(mem).append(messages)
    assert history(mem).load() == messages
    tools = [entry.tool.name for entry in mem.ledger.entries(user_id="ana") if entry.tool is not None]
    assert tools == ["t"]
    history(mem).clear()
    assert history(mem).load() == []


def test_instructions_tell_what_other_sessions_know(mem: muniment.Memory) -> None:
    history(mem).append([ModelRequest(parts=[UserPromptPart("I moved to Berlin in May.")])])
    script = Script("In Berlin.")
    later = history(mem, "s2")
    result = Agent(FunctionModel(script), instructions=recall_instructions(later.run)).run_sync("Where do I live?")
    assert "I moved to Berlin in May." in str(script.instructions[0])
    later.append(result.new_messages())
    script = Script("I do not know.")
    other = history(mem, "s3", "ben")
    Agent(FunctionModel(script), instructions=recall_instructions(other.run)).run_sync("Where do I live?")
    assert "Berlin" not in str(script.instructions[0])


def test_a_long_history_is_cut_at_a_turn_and_the_rest_composed(mem: muniment.Memory) -> None:
    kept = history(mem)
    script = Script(*(f"answer {n}" for n in range(6)))
    processor = recent_history(kept.run, messages_max=3)
    agent = Agent(FunctionModel(script), capabilities=[ProcessHistory(processor)])
    for text in ("My cat is called Toby.", "I like tea.", "It rains.", "I am tired.", "What is my cat called?"):
        result = agent.run_sync(text, message_history=kept.load())
        kept.append(result.new_messages())
    sent = script.sent[-1]
    assert prompts(sent)[:-1] == ["I am tired."]
    packet, question = prompts(sent)[-1]
    assert "My cat is called Toby." in packet.content
    assert "I am tired." not in packet.content
    assert question == "What is my cat called?"
    assert prompts(kept.load()) == [
        "My cat is called Toby.",
        "I like tea.",
        "It rains.",
        "I am tired.",
        "What is my cat called?",
    ]
    assert "Evidence from memory" not in str(kept.load())


def test_a_model_searches_and_proposes(mem: muniment.Memory) -> None:
    said = history(mem).run.observe("user", "I live in Berlin.")
    bad = ToolCallPart("propose_fact", {"key": "user.city", "value": "Rome", "source_id": said.id, "quote": "Rome"})
    good = ToolCallPart(
        "propose_fact", {"key": "user.city", "value": "Berlin", "source_id": said.id, "quote": "I live in Berlin"}
    )
    script = Script(ToolCallPart("search_memory", {"query": "where does she live"}), bad, good, "done")
    later = history(mem, "s2")
    result = Agent(FunctionModel(script), toolsets=[memory_toolset(later.run)]).run_sync("Remember where I live.")
    returned = [
        part.content for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)
    ]
    assert returned[0][0]["text"] == "I live in Berlin."
    assert returned[0][0]["id"] == said.id
    assert {made.value for made in later.run.memory.candidates()} == {"Berlin"}
    assert result.output == "done"


def test_what_is_erased_is_gone(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "b.db") as opened:
        kept = history(opened, erase=True)
        kept.append([ModelRequest(parts=[UserPromptPart("xyzzy")]), ModelResponse(parts=[TextPart("plugh")])])
        kept.clear()
        assert kept.load() == []
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"xyzzy" not in held
    assert b"plugh" not in held
