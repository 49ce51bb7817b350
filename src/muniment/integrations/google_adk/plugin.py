"""A plugin of Google's ADK: puts a packet before each question, and records the conversation.

The packet is in the message of the user's question, before its words, so that a provider's cache keeps the preceding
part; it stays the same during tool calls. It is only in the request: no session stores it. It leaves out anything in
the request itself, and covers what was cut from it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from muniment.integrations.google_adk.events import BUILD, SessionName, Sessions, lines_of, results_text, text_of
from muniment.integrations.packages import missing
from muniment.integrations.session.in_view import SentPackets
from muniment.integrations.session.memory import Failing
from muniment.packets.render import set_apart

try:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.genai import types
except ModuleNotFoundError as error:
    raise missing("google-adk", "google-adk", error) from error

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory

__all__ = ["MunimentPlugin"]

_QUOTED = re.compile(r"\[[^\]]+\] said:\s*(?:<<<\w+>>>\n)?(.*?)(?:\n<<<\w+>>>)?", re.DOTALL)
"""ADK's way to show an agent another agent's words."""


class MunimentPlugin(BasePlugin):
    """For `App(plugins=[…])` or `Runner(plugins=[…])`, with any session service."""

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        tenant_id: str | None = None,
        max_tokens: int = 1024,
        on_error: Literal["open", "closed"] = "open",
    ) -> None:
        super().__init__(name="muniment")
        self._sessions = Sessions.of(mem, tenant_id, max_tokens=max_tokens, on_error=on_error, sent=SentPackets())
        self._is_open = on_error == "open"
        self._builds = SentPackets()

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        contents = llm_request.contents
        at = _question(contents, text_of(callback_context.user_content))
        if at is None:
            return None
        session = callback_context.session
        name = SessionName(session.app_name, session.user_id, session.id)
        sent = [*_messages(contents[: at + 1]), *_messages(contents[at + 1 :], is_answer=True)]
        with Failing("no packet was composed", is_open=self._is_open):
            build = await asyncio.to_thread(lambda: self._sessions.latest(name).memory.compose(sent))
            if build is not None:
                self._builds.keep((callback_context.invocation_id,), build)
            if build is not None and build.text:
                told = types.Part(text=set_apart(build.text))
                contents[at] = contents[at].model_copy(update={"parts": [told, *(contents[at].parts or ())]})
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Note the build on the answer: the event stores it, and marks are resolved with it."""
        sent = self._builds.find((callback_context.invocation_id,))
        if sent is not None:
            llm_response.custom_metadata = {**(llm_response.custom_metadata or {}), BUILD: sent.build_id}
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Record the invocation's events, unless the session service did."""
        session = invocation_context.session
        new = [event for event in session.events if event.invocation_id == invocation_context.invocation_id]
        name = SessionName(session.app_name, session.user_id, session.id)
        with Failing("an invocation was not recorded", is_open=self._is_open):
            lines = lines_of(event for event in new if event.content)
            await asyncio.to_thread(lambda: self._sessions.latest(name).append(lines))


def _question(contents: Sequence[types.Content], asked: str) -> int | None:
    """Index of the user's message in the request."""
    spoken = [at for at, content in enumerate(contents) if content.role == "user" and text_of(content)]
    return next((at for at in reversed(spoken) if text_of(contents[at]) == asked), spoken[-1] if spoken else None)


def _messages(contents: Sequence[types.Content], *, is_answer: bool = False) -> list[dict[str, Any]]:
    """The request's messages, text by text, as they are recorded. Nothing after the question counts as asked."""
    sent = []
    for content in contents:
        parts = content.parts or ()
        results = [part.function_response for part in parts if part.function_response]
        text = results_text(results) or text_of(content)
        role = "user" if content.role == "user" and not results and not is_answer else "assistant"
        quoted = [found.group(1) for part in parts if part.text and (found := _QUOTED.fullmatch(part.text))]
        sent += [{"role": "assistant", "content": each} for each in quoted if each]
        sent += [{"role": role, "content": text}] if text else []
    return sent
