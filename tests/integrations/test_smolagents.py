"""smolagents with the real package: its agents with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.connected import over_http

pytest.importorskip("smolagents", reason="the smolagents extra is not installed: pip install 'muniment[smolagents]'")

from smolagents import ChatMessage, CodeAgent, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
)
from smolagents.monitoring import LogLevel

import muniment
from muniment.integrations.smolagents import MunimentMemory

pytestmark = pytest.mark.filterwarnings("ignore")

BERLIN = "I moved to Berlin in May."


class Script(Model):
    """A model that says what it is told to, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(model_id="script")
        self.answers = list(answers)
        self.asked: list[list[ChatMessage]] = []

    def generate(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
        self.asked.append(list(messages))
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            return ChatMessage(role=MessageRole.ASSISTANT, content=answer)
        name, arguments = answer
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(function=function, id=f"call_{len(self.asked)}", type="function")
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


def final(text: str) -> tuple[str, dict[str, Any]]:
    return "final_answer", {"answer": text}


@tool
def weather(city: str) -> str:
    """How warm it is.

    Args:
        city: Where.
    """
    return f"12 °C in {city}"


@pytest.fixture(params=["memory", "http"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[muniment.Memory]:
    with ExitStack() as stack:
        opened = stack.enter_context(muniment.open(":memory:"))
        yield opened if request.param == "memory" else over_http(opened, tmp_path, stack)


def agent_of(
    mem: Any, model: Any, session: str, *, user: str = "ana", kind: Any = ToolCallingAgent, **more: Any
) -> Any:
    given = {name: more.pop(name) for name in ("on_error",) if name in more}
    memory = MunimentMemory(mem, user_id=user, session_id=session, **given)
    tools = [weather, *memory.tools()]
    return kind(
        tools=tools,
        model=memory.recalling(model),
        step_callbacks=memory.step_callbacks,
        verbosity_level=LogLevel.OFF,
        **more,
    )


def told(messages: list[ChatMessage]) -> str:
    parts = [each.content if isinstance(each.content, list) else [{"text": each.content}] for each in messages]
    return "\n".join(part.get("text") or "" for content in parts for part in content)


def turns(mem: muniment.Memory, session: str, user: str = "ana") -> list[str]:
    entries = mem.ledger.entries(user_id=user, session_id=session)
    return [entry.content or "" for entry in entries if entry.kind in ("message", "tool_result")]


def test_a_later_session_is_told_and_the_answer_leads_back(mem: muniment.Memory) -> None:
    model = Script(final("Noted."), final("In Berlin [1]."), final("You asked."), final("No idea."))
    agent_of(mem, model, "s1").run(BERLIN)
    agent = agent_of(mem, model, "s2")
    assert agent.run("Where do I live?") == "In Berlin [1]."
    whole = told(model.asked[-1])
    assert whole.count(BERLIN) == whole.count("Where do I live?") == 1
    assert whole.index(BERLIN) < whole.index("New task:\nWhere do I live?")
    (entry,) = [e for e in mem.ledger.entries(user_id="ana", session_id="s2") if e.content == "In Berlin [1]."]
    (why,) = mem.why(entry.id)
    assert [mem.ledger.content(id_) for id_ in why.evidence_ids] == [BERLIN]
    assert BERLIN not in str(agent.memory.steps), "the agent's own memory keeps no packet"
    before = model.asked[-1]
    agent.run("What did I ask about my home?", reset=False)
    whole = told(model.asked[-1])
    assert whole.count("Where do I live?") == 1, "nothing of the session twice"
    assert told(model.asked[-1]).startswith(told(before[:1])), "a cache keeps what was sent"
    assert turns(mem, "s2") == [
        "Where do I live?", "In Berlin [1].", "What did I ask about my home?", "You asked.",
    ]  # fmt: skip
    agent_of(mem, model, "s1", user="ben").run("Where do I live?")
    assert "Berlin" not in told(model.asked[-1])


def test_a_task_keeps_its_packet_from_step_to_step(mem: muniment.Memory) -> None:
    model = Script(final("Noted."), ("weather", {"city": "Berlin"}), ("weather", {"city": "Rome"}), final("12 °C."))
    agent_of(mem, model, "old").run(BERLIN)
    agent_of(mem, model, "s1").run("How warm is it where I live?")
    first, *rest = model.asked[1:]
    assert BERLIN in told(first)
    assert len(rest) == 2
    for request in rest:
        assert told(request).startswith(told(first))
        assert told(request).count(BERLIN) == 1
    assert turns(mem, "s1") == ["How warm is it where I live?", "12 °C in Berlin", "12 °C in Rome", "12 °C."]
    tools = [entry.tool for entry in mem.ledger.entries(user_id="ana", session_id="s1") if entry.tool]
    assert [(each.name, each.args) for each in tools] == [("weather", {"city": c}) for c in ("Berlin", "Rome")]


def test_what_tools_answered_is_not_told_while_it_is_sent(mem: muniment.Memory) -> None:
    model = Script(("weather", {"city": "Berlin"}), final("Cold."), final("12."))
    agent = agent_of(mem, model, "s1")
    agent.run("How warm is it?")
    agent.run("What did the weather tool say about 12 °C in Berlin?", reset=False)
    whole = told(model.asked[-1])
    assert whole.count("12 °C in Berlin") == 2, "as it was observed, and in the question"


def test_a_code_agent_and_a_run_that_forgets_its_steps() -> None:
    code = "<code>\nprint(weather('Berlin'))\n</code>"
    model = Script(code, "<code>\nfinal_answer('12 °C.')\n</code>", "<code>\nfinal_answer('Berlin.')\n</code>")
    with muniment.open(":memory:") as mem:
        agent = agent_of(mem, model, "s1", kind=CodeAgent)
        agent.run("How warm is it in Berlin?")
        said = turns(mem, "s1")
        assert said[0] == "How warm is it in Berlin?"
        assert "12 °C in Berlin" in said[1]
        assert said[-1] == "12 °C."
        agent.run("Which city did I name?")
        assert "How warm is it in Berlin?" in told(model.asked[-1]), "what is no longer sent is told"


def _streamed(call: ChatMessageToolCall) -> ChatMessageToolCallFunction:
    return ChatMessageToolCallFunction(name=call.function.name, arguments=json.dumps(call.function.arguments))


def test_a_model_that_streams() -> None:
    class Streaming(Script):
        def generate_stream(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> Any:
            made = self.generate(messages)
            for at, call in enumerate(made.tool_calls or []):
                yield ChatMessageStreamDelta(
                    content="",
                    tool_calls=[
                        ChatMessageToolCallStreamDelta(index=at, id=call.id, type="function", function=_streamed(call))
                    ],
                )

    with muniment.open(":memory:") as mem:
        mem.run(user_id="ana", session_id="old").observe("user", BERLIN)
        model = Streaming(final("In Berlin."))
        agent = agent_of(mem, model, "s1", stream_outputs=True)
        assert hasattr(agent.model, "generate_stream")
        assert not hasattr(MunimentMemory(mem, user_id="ana").recalling(Script()), "generate_stream")
        steps = list(agent.run("Where do I live?", stream=True))
        assert steps[-1].output == "In Berlin."
        assert BERLIN in told(model.asked[-1])


def test_tools_search_propose_and_what_is_forgotten_is_gone() -> None:
    with muniment.open(":memory:") as mem:
        memory = MunimentMemory(mem, user_id="ana", session_id="s1")
        (said,) = memory.memory.record([{"role": "user", "content": BERLIN}])
        model = Script(("search_memory", {"query": "where does she live"}), final("In Berlin."))
        agent_of(mem, model, "s2").run("Look it up.")
        assert said.id in told(model.asked[-1])
        search, propose = memory.tools()
        made = propose(key="user.city", value="Berlin", source_id=said.id, quote="moved to Berlin")
        assert made["status"] == "proposed"
        memory.memory.forget(said.id)
        assert BERLIN not in str(search(query="Berlin"))


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_where_memory_fails(on_error: Any) -> None:
    mem = muniment.open(":memory:")
    model = Script(final("Hello."))
    agent = agent_of(mem, model, "s1", on_error=on_error)
    mem.close()
    if on_error == "open":
        assert agent.run("Hi.") == "Hello."
        return
    with pytest.raises(Exception, match="closed"):
        agent.run("Hi.")
    assert model.asked == []
