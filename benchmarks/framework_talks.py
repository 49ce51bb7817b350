"""The talks of `benchmarks.integration_talks` through frameworks that stand on one seam, each by its own runner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from benchmarks.integration_talks import SYSTEM, Sent, answer_of, question_of
from muniment.handles.memory import Memory

__all__ = ["FRAMEWORK_TALKS"]


def google_adk(memory: Memory, turns: int, kept: int | None = None) -> list[Sent]:
    from google.adk.agents import Agent
    from google.adk.apps import App
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
    from google.adk.runners import Runner
    from google.genai import types

    from muniment.integrations.google_adk import MunimentPlugin, MunimentSessionService

    sent: list[Sent] = []

    class Script(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            _ = stream
            told = [
                (each.role or "", "\n".join(part.text or "" for part in each.parts or ()))
                for each in llm_request.contents
            ]
            sent.append([("system", str(llm_request.config.system_instruction)), *told])
            part = types.Part(text=answer_of(len(sent) - 1))
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    cutting = [] if kept is None else [ContextFilterPlugin(num_invocations_to_keep=kept)]
    plugins = [*cutting, MunimentPlugin(memory, tenant_id="default", max_tokens=512)]
    agent = Agent(name="warden", model=Script(model="script"), static_instruction=SYSTEM)
    runner = Runner(
        app=App(name="herons", root_agent=agent, plugins=plugins),
        session_service=MunimentSessionService(memory, tenant_id="default"),
        auto_create_session=True,
    )

    async def talk() -> None:
        for turn in range(turns):
            message = types.Content(role="user", parts=[types.Part(text=question_of(turn))])
            async for _ in runner.run_async(user_id="ana", session_id="live", new_message=message):
                pass

    asyncio.run(talk())
    return sent


def google_adk_cut(memory: Memory, turns: int) -> list[Sent]:
    return google_adk(memory, turns, 3)


def agent_framework(memory: Memory, turns: int) -> list[Sent]:
    from agent_framework import (
        Agent,
        BaseChatClient,
        ChatMiddlewareLayer,
        ChatResponse,
        FunctionInvocationLayer,
        Message,
    )

    from muniment.integrations.agent_framework import MunimentContext, MunimentHistory

    sent: list[Sent] = []

    class Script(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
        def _inner_get_response(
            self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_more: Any
        ) -> Any:
            _ = stream
            told = [(each.role, "\n".join(part.text or "" for part in each.contents)) for each in messages]
            sent.append([("system", str(options.get("instructions"))), *told])

            async def answered() -> ChatResponse[Any]:
                return ChatResponse(messages=[Message("assistant", [answer_of(len(sent) - 1)])])

            return answered()

    context = MunimentContext(memory, user_id="ana", max_tokens=512)
    providers = [MunimentHistory(memory, user_id="ana"), context]
    agent = Agent(client=Script(), instructions=SYSTEM, context_providers=providers)

    async def talk() -> None:
        for turn in range(turns):
            await agent.run(question_of(turn), session=agent.create_session(session_id="live"))

    asyncio.run(talk())
    return sent


def haystack(memory: Memory, turns: int, kept: int | None = None) -> list[Sent]:
    from haystack.dataclasses import ChatMessage

    from muniment.integrations.haystack import MunimentRecaller, MunimentStore, MunimentWriter

    given: dict[str, Any] = {"user_id": "ana", "session_id": "live", "max_tokens": 512}
    store = MunimentStore(memory)
    recaller, writer = MunimentRecaller(store, **given), MunimentWriter(store, **given)
    sent: list[Sent] = []
    messages: list[ChatMessage] = []
    for turn in range(turns):
        messages.append(ChatMessage.from_user(question_of(turn)))
        asked = [ChatMessage.from_system(SYSTEM), *(messages if kept is None else messages[-kept:])]
        told = recaller.run(messages=asked)
        sent.append([(each.role.value, "\n".join(each.texts)) for each in told["messages"]])
        reply = ChatMessage.from_assistant(answer_of(turn))
        writer.run(messages=told["messages"], replies=[reply], build_id=told["build_id"])
        messages.append(reply)
    return sent


def haystack_cut(memory: Memory, turns: int) -> list[Sent]:
    return haystack(memory, turns, 5)


FRAMEWORK_TALKS: Mapping[str, Callable[[Memory, int], list[Sent]]] = {
    "google-adk": google_adk,
    "google-adk, cut": google_adk_cut,
    "agent-framework": agent_framework,
    "haystack": haystack,
    "haystack, cut": haystack_cut,
}
"""By name; of those that end in `cut` early turns are dropped."""
