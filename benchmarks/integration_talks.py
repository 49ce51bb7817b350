"""Ten turns through each integration, with a model that answers by a script: what is sent to it, request by request.

A request is a list of (who, text), in the order in which the provider reads it. Used by `benchmarks.integration_tokens`
and by the tests.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from muniment.handles.memory import Memory

__all__ = ["BIRDS", "PLACES", "SYSTEM", "TALKS", "Sent", "answer_of", "question_of"]

Sent = list[tuple[str, str]]
"""One request: who, and the text; a text of several parts is one line each."""
SYSTEM = "You are a warden of herons. Be brief."
PLACES = ("harbour", "mill", "orchard", "quarry", "chapel", "meadow", "bridge", "station", "bakery", "lighthouse")
BIRDS = ("Toby", "Mira", "Otto", "Lena", "Hugo", "Nora", "Emil", "Ruth", "Karl", "Ines")


def question_of(turn: int) -> str:
    """What the user says in a turn: something that later turns ask about, so that a packet would like to tell it."""
    before = BIRDS[turn - 1] if turn else "any of them"
    return f"My heron {BIRDS[turn]} sleeps near the {PLACES[turn]}. Where does the heron {before} sleep?"


def answer_of(turn: int) -> str:
    where = f"the heron {BIRDS[turn - 1]} sleeps by the {PLACES[turn - 1]}" if turn else "I know of no other heron yet"
    return f"As you told me in turn {turn}, {where}."


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or part.get("content") or "") for part in content or ())


# -- Pydantic AI --------------------------------------------------------------------------------------


def _pydantic(memory: Memory, turns: int, make_agent: Callable[[Any, Any], Any]) -> list[Sent]:
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from muniment.integrations.pydantic_ai import MunimentHistory

    sent: list[Sent] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        request: Sent = [("system", info.instructions or SYSTEM)]
        for message in messages:
            for part in message.parts:
                content = getattr(part, "content", "")
                parts = [content] if isinstance(content, str) else [getattr(each, "content", each) for each in content]
                request.append((part.part_kind, "\n".join(map(str, parts))))
        sent.append(request)
        return ModelResponse(parts=[TextPart(answer_of(len(sent) - 1))])

    history = MunimentHistory(memory, user_id="ana", session_id="live")
    agent = make_agent(FunctionModel(model), history.run)
    for turn in range(turns):
        answered = asyncio.run(agent.run(question_of(turn), message_history=history.load()))
        history.append(answered.new_messages())
    return sent


def pydantic_instructions(memory: Memory, turns: int) -> list[Sent]:
    from pydantic_ai import Agent

    from muniment.integrations.pydantic_ai import recall_instructions

    return _pydantic(
        memory, turns, lambda model, run: Agent(model, instructions=[SYSTEM, recall_instructions(run, max_tokens=512)])
    )


def pydantic_history(memory: Memory, turns: int, messages_max: int = 40) -> list[Sent]:
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import ProcessHistory

    from muniment.integrations.pydantic_ai import recent_history

    def agent(model: Any, run: Any) -> Any:
        processor = recent_history(run, messages_max=messages_max, max_tokens=512)
        return Agent(model, instructions=SYSTEM, capabilities=[ProcessHistory(processor)])

    return _pydantic(memory, turns, agent)


def pydantic_history_cut(memory: Memory, turns: int) -> list[Sent]:
    return pydantic_history(memory, turns, 6)


# -- LlamaIndex ---------------------------------------------------------------------------------------


def llama_memory(memory: Memory, turns: int, messages_max: int = 40) -> list[Sent]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from llama_index.core.base.llms.types import ChatMessage

        from muniment.integrations.llama_index import MunimentMemory

    held = MunimentMemory.from_defaults(
        mem=memory, user_id="ana", session_id="live", max_tokens=512, messages_max=messages_max
    )
    sent: list[Sent] = []
    for turn in range(turns):
        held.put(ChatMessage(role="user", content=question_of(turn)))
        got = held.get(question_of(turn))
        texts = [(each.role.value, "\n".join(block.text for block in each.blocks)) for each in got]  # type: ignore[union-attr]
        sent.append([("system", SYSTEM), *texts])
        held.put(ChatMessage(role="assistant", content=answer_of(turn)))
    return sent


def llama_memory_cut(memory: Memory, turns: int) -> list[Sent]:
    return llama_memory(memory, turns, 6)


def llama_block(memory: Memory, turns: int) -> list[Sent]:
    """LlamaIndex's own memory, which drops what does not fit and hands it to the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from llama_index.core.base.llms.types import ChatMessage
        from llama_index.core.memory import InsertMethod
        from llama_index.core.memory import Memory as TheirMemory

        from muniment.integrations.llama_index import MunimentMemoryBlock

    async def talk() -> list[Sent]:
        block = MunimentMemoryBlock(mem=memory, user_id="ana", session_id="live", max_tokens=512)
        held = TheirMemory.from_defaults(
            session_id="live",
            memory_blocks=[block],
            insert_method=InsertMethod.USER,
            token_limit=400,
            chat_history_token_ratio=0.4,
            token_flush_size=60,
            tokenizer_fn=str.split,
        )
        sent: list[Sent] = []
        for turn in range(turns):
            await held.aput(ChatMessage(role="user", content=question_of(turn)))
            got = await held.aget()
            texts = [(each.role.value, "\n".join(block.text for block in each.blocks)) for each in got]  # type: ignore[union-attr]
            sent.append([("system", SYSTEM), *texts])
            await held.aput(ChatMessage(role="assistant", content=answer_of(turn)))
        engine = held.sql_store._async_engine  # type: ignore[attr-defined]
        await engine.dispose()
        return sent

    return asyncio.run(talk())


# -- OpenAI Agents ------------------------------------------------------------------------------------


def openai_agents(memory: Memory, turns: int, limit: int | None = None) -> list[Sent]:
    from agents import Agent, ModelResponse, RunConfig, Runner, Usage
    from agents.models.interface import Model
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    from muniment.integrations.openai_agents import MunimentSession, recall_filter

    sent: list[Sent] = []

    class Script(Model):
        async def get_response(self, system_instructions: Any, input: Any, *_args: Any, **_more: Any) -> ModelResponse:
            items = [(item.get("role", "tool"), _flat(item.get("content"))) for item in input]
            sent.append([("system", str(system_instructions)), *items])
            part = ResponseOutputText(type="output_text", text=answer_of(len(sent) - 1), annotations=[])
            said = ResponseOutputMessage(id="msg", type="message", role="assistant", status="completed", content=[part])
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, *_args: Any, **_more: Any) -> Any:
            raise NotImplementedError

    settings = None if limit is None else {"limit": limit}
    session = MunimentSession("live", memory, user_id="ana", session_settings=settings)
    config = RunConfig(tracing_disabled=True, call_model_input_filter=recall_filter(session, max_tokens=512))
    agent = Agent(name="warden", model=Script(), instructions=SYSTEM)

    async def talk() -> None:
        for turn in range(turns):
            await Runner.run(agent, question_of(turn), session=session, run_config=config)

    asyncio.run(talk())
    return sent


def openai_agents_cut(memory: Memory, turns: int) -> list[Sent]:
    return openai_agents(memory, turns, 6)


# -- wrapped clients ----------------------------------------------------------------------------------


class _Fake(BaseHTTPRequestHandler):
    """Both APIs, with answers by the script."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        text = answer_of(len(self.asked) - 1)
        if "chat/completions" in self.path:
            message = {"role": "assistant", "content": text}
            answer: dict[str, Any] = {
                "id": "c", "object": "chat.completion", "created": 0, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            }  # fmt: skip
        else:
            answer = {
                "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 1, "output_tokens": 1},
            }  # fmt: skip
        plain = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(plain)))
        self.end_headers()
        self.wfile.write(plain)

    def log_message(self, *_args: Any) -> None: ...


@contextmanager
def _fake() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    asked: list[dict[str, Any]] = []
    handler = type("Handler", (_Fake,), {"asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wrapped_openai(memory: Memory, turns: int, kept: int | None = None) -> list[Sent]:
    from openai import OpenAI

    import muniment

    with _fake() as (url, asked):
        client = muniment.wrap(
            OpenAI(base_url=f"{url}/v1", api_key="-"), memory, user_id="ana", session_id="live", max_tokens=512
        )
        messages: list[dict[str, str]] = []
        for turn in range(turns):
            messages.append({"role": "user", "content": question_of(turn)})
            given = [{"role": "system", "content": SYSTEM}, *(messages if kept is None else messages[-kept:])]
            client.chat.completions.create(model="m", messages=given)
            messages.append({"role": "assistant", "content": answer_of(turn)})
        return [[(each["role"], _flat(each["content"])) for each in body["messages"]] for body in asked]


def wrapped_openai_cut(memory: Memory, turns: int) -> list[Sent]:
    return wrapped_openai(memory, turns, 5)


def wrapped_anthropic(memory: Memory, turns: int) -> list[Sent]:
    from anthropic import Anthropic

    import muniment

    with _fake() as (url, asked):
        client = muniment.wrap(
            Anthropic(base_url=url, api_key="-"), memory, user_id="ana", session_id="live", max_tokens=512
        )
        messages: list[dict[str, str]] = []
        for turn in range(turns):
            messages.append({"role": "user", "content": question_of(turn)})
            client.messages.create(model="m", max_tokens=64, system=SYSTEM, messages=messages)
            messages.append({"role": "assistant", "content": answer_of(turn)})
        return [
            [("system", _flat(body["system"])), *((each["role"], _flat(each["content"])) for each in body["messages"])]
            for body in asked
        ]


TALKS: Mapping[str, Callable[[Memory, int], list[Sent]]] = {
    "pydantic-ai instructions": pydantic_instructions,
    "pydantic-ai history": pydantic_history,
    "pydantic-ai history, cut": pydantic_history_cut,
    "llama-index memory": llama_memory,
    "llama-index memory, cut": llama_memory_cut,
    "llama-index block, cut": llama_block,
    "openai-agents session": openai_agents,
    "openai-agents session, cut": openai_agents_cut,
    "wrapped OpenAI": wrapped_openai,
    "wrapped OpenAI, cut": wrapped_openai_cut,
    "wrapped Anthropic": wrapped_anthropic,
}
"""By name; of those that end in `cut` the framework drops early turns."""
