"""A `Session` of the OpenAI Agents SDK over the ledger.

    session = MunimentSession("chat-1", mem, user_id="ana")
    config = RunConfig(call_model_input_filter=recall_filter(session))      # memory beyond the session's items
    await Runner.run(agent, "Where should we eat?", session=session, run_config=config)

The ledger is append-only. `pop_item` and `clear_session` therefore record a retraction: this session no longer shows
the items, but they stay evidence that recall may quote. With `erase=True` they forget instead: the events lose their
content for good, with everything derived from them.

Extra: `muniment[openai-agents]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.live_history import compose_beside
from muniment.integrations.messages import content_text
from muniment.integrations.packages import missing
from muniment.integrations.transcript import Conversation, Line
from muniment.packets.render import set_apart

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
    from agents.run import CallModelData, ModelInputData
except ModuleNotFoundError as error:
    raise missing("openai-agents", "openai-agents", error) from error

if TYPE_CHECKING:
    from muniment.handles.memory import Memory

__all__ = ["MunimentSession", "recall_filter"]


class MunimentSession(Conversation):
    """One conversation. A store may hold several; two handles on the same one see the same items."""

    framework = "openai_agents"
    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        mem: Memory,
        *,
        user_id: str,
        agent_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        erase: bool = False,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            mem, user_id=user_id, session_id=session_id, agent_id=agent_id, tenant_id=tenant_id, erase=erase
        )
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        items = cast("list[TResponseInputItem]", await asyncio.to_thread(self._transcript.items))
        last = resolve_session_limit(limit, self.session_settings)
        if last is None or last < 0:
            return items
        return items[-last:] if last else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await asyncio.to_thread(self._add, cast("list[Mapping[str, Any]]", items))

    async def pop_item(self) -> TResponseInputItem | None:
        return cast("TResponseInputItem | None", await asyncio.to_thread(self._transcript.pop))

    async def clear_session(self) -> None:
        await asyncio.to_thread(self._transcript.clear)

    def _add(self, items: list[Mapping[str, Any]]) -> None:
        names = _names_of_calls(items)
        if any(_is_result(item) and str(item.get("call_id")) not in names for item in items):
            names = _names_of_calls(self._transcript.items()) | names
        self._transcript.append(_line(item, names) for item in items)


def recall_filter(
    session: MunimentSession, *, max_tokens: int = 1024
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Make a `RunConfig(call_model_input_filter=…)` that puts a packet before the user's last message.

    It covers earlier sessions, and the part of this one that is not sent (`session_settings` may limit that), but
    nothing in the input itself. The messages before it stay unchanged, so that a provider's cache holds. No session
    stores it.
    """

    async def recall(data: CallModelData[Any]) -> ModelInputData:
        items = cast("list[Mapping[str, Any]]", list(data.model_data.input))
        asked = [
            at for at, item in enumerate(items) if item.get("role") == "user" and content_text(item.get("content"))
        ]
        if not asked:
            return data.model_data
        question = items[asked[-1]]
        texts = [content_text(item.get("output" if _is_result(item) else "content")) for item in items]
        query = content_text(question.get("content"))
        packet = await asyncio.to_thread(compose_beside, session.run, texts, query=query, max_tokens=max_tokens)
        if packet:
            own = question["content"]
            parts = [{"type": "input_text", "text": own}] if isinstance(own, str) else list(own)
            told = {"type": "input_text", "text": set_apart(packet)}
            items[asked[-1]] = {**question, "content": [told, *parts]}
        return ModelInputData(cast("list[TResponseInputItem]", items), data.model_data.instructions)

    return recall


def _names_of_calls(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {str(item["call_id"]): str(item["name"]) for item in items if item.get("name") and item.get("call_id")}


def _is_result(item: Mapping[str, Any]) -> bool:
    return str(item.get("type", "")).endswith("_call_output") and "output" in item


def _line(item: Mapping[str, Any], names: Mapping[str, str]) -> Line:
    place = "output" if _is_result(item) else "content"
    text_at = place if isinstance(item.get(place), str) else None
    text = content_text(item.get(place))
    if _is_result(item):
        name = names.get(str(item.get("call_id")), "tool")
        return Line(item, text, "tool", text_at, {"name": name, "ok": True})
    role = item.get("role")
    return Line(item, text, role if role in ("user", "assistant") and text else None, text_at)
