"""AutoGen's memory protocol with the real package: its assistant with a client that replays answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip(
    "autogen_agentchat", reason="no autogen here: pip install -e '.[autogen]' in an environment of its own"
)

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.memory import MemoryContent
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

import muniment
from muniment.integrations.autogen import MunimentMemory

pytestmark = pytest.mark.filterwarnings("ignore")

BERLIN = "I moved to Berlin in May."
USAGE = RequestUsage(prompt_tokens=0, completion_tokens=0)


class Script(ChatCompletionClient):
    """A client that says what it is told to, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[list[Any]] = []

    async def create(self, messages: Any, **_given: Any) -> CreateResult:
        self.asked.append(list(messages))
        answer = self.answers.pop(0)
        reason: Any = "stop" if isinstance(answer, str) else "function_calls"
        return CreateResult(finish_reason=reason, content=answer, usage=USAGE, cached=False)

    def create_stream(self, *_args: Any, **_given: Any) -> Any:
        raise AssertionError("not streamed here")

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return USAGE

    def total_usage(self) -> RequestUsage:
        return USAGE

    def count_tokens(self, *_args: Any, **_given: Any) -> int:
        return 0

    def remaining_tokens(self, *_args: Any, **_given: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=False, family="script", structured_output=False
        )


def told(messages: list[Any]) -> str:
    return "\n".join(str(each.content) for each in messages)


def turns(mem: muniment.Memory, session: str) -> list[str]:
    entries = mem.ledger.entries(user_id="ana", session_id=session)
    return [entry.content or "" for entry in entries if entry.kind in ("message", "tool_result")]


async def weather(city: str) -> str:
    """How warm it is."""
    return f"12 °C in {city}"


def test_a_later_session_is_told_and_the_answer_leads_back() -> None:
    async def work() -> None:
        with muniment.open(":memory:") as mem:
            call = [FunctionCall(id="c1", name="weather", arguments='{"city": "Berlin"}')]
            client = Script("Noted.", call, "12 °C in Berlin [1].", "You asked.", "No idea.")

            def agent_of(session: str, user: str = "ana") -> tuple[AssistantAgent, MunimentMemory]:
                memory = MunimentMemory(mem, user_id=user, session_id=session)
                agent = AssistantAgent("helper", client, memory=[memory], tools=[weather], reflect_on_tool_use=True)
                return agent, memory

            agent, memory = agent_of("s1")
            await agent.run(task=BERLIN)
            await memory.record(agent.model_context)
            assert turns(mem, "s1") == [BERLIN, "Noted."]
            agent, memory = agent_of("s2")
            await agent.run(task="How warm is it where I live?")
            assert told(client.asked[-1]).count(BERLIN) == 1
            await agent.run(task="What did I ask?")
            whole = told(client.asked[-1])
            assert whole.count("How warm is it where I live?") == 1, "nothing of the session twice"
            assert whole.count("Evidence from memory") == 1, "one packet, in place of the one before"
            await memory.record(agent.model_context)
            said = [
                "How warm is it where I live?",
                "12 °C in Berlin",
                "12 °C in Berlin [1].",
                "What did I ask?",
                "You asked.",
            ]
            assert turns(mem, "s2") == said
            (entry,) = [e for e in mem.ledger.entries(user_id="ana", session_id="s2") if e.content == said[2]]
            (why,) = mem.why(entry.id)
            assert [mem.ledger.content(id_) for id_ in why.evidence_ids] == [BERLIN]
            bens, _ = agent_of("s1", "ben")
            await bens.run(task="Where do I live?")
            assert "Berlin" not in told(client.asked[-1])

    asyncio.run(work())


def test_memory_is_queried_added_to_and_cleared() -> None:
    async def work() -> None:
        with muniment.open(":memory:") as mem:
            memory = MunimentMemory(mem, user_id="ana", session_id="s1")
            await memory.add(MemoryContent(content=BERLIN, mime_type="text/plain", metadata={"k": 1}))
            (hit,) = (await memory.query("where does she live", k=3)).results
            assert hit.content == BERLIN
            assert hit.metadata is not None
            assert 0 < hit.metadata["score"] <= 1
            await memory.clear()
            assert (await memory.query("where does she live")).results == []

    asyncio.run(work())


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_where_memory_fails(on_error: Any) -> None:
    async def work() -> None:
        mem = muniment.open(":memory:")
        client = Script("Hello.")
        agent = AssistantAgent("helper", client, memory=[MunimentMemory(mem, user_id="ana", on_error=on_error)])
        mem.close()
        if on_error == "open":
            assert (await agent.run(task="Hi.")).messages[-1].content == "Hello."  # type: ignore[union-attr]
            return
        with pytest.raises(muniment.errors.Closed):
            await agent.run(task="Hi.")

    asyncio.run(work())
