"""Nodes for a graph: one writes the state's messages into the ledger, one composes a packet for a model.

Both may run again from a checkpoint. A message is written once, however often its node runs; plain data is put into the
state. `configurable` gives the scope: `thread_id` is the session, `user_id` the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import short_id
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import InvalidInput
from muniment.integrations.live_history import left_out
from muniment.integrations.messages import content_text, once_key
from muniment.integrations.packages import missing

try:
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, convert_to_messages
    from langchain_core.runnables import RunnableConfig
except ModuleNotFoundError as error:
    raise missing("langgraph", "langgraph", error) from error

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run

__all__ = ["compose_node", "observe_node"]

Node = Callable[[Any, RunnableConfig], dict[str, Any]]


def observe_node(
    mem: Memory,
    *,
    user_id: str | None = None,
    agent_id: str = "langgraph",
    messages_key: str = "messages",
    tenant_id: str = DEFAULT_TENANT,
) -> Node:
    """Make a node that writes messages not written yet. It changes nothing in the state.

    System messages are left out: they are instructions to the model, not events.
    """

    def observe(state: Any, config: RunnableConfig) -> dict[str, Any]:
        run = _run(mem, config, user_id, agent_id, tenant_id)
        events = _events(convert_to_messages(_of(state, messages_key) or []), run.scope.session_id)
        run.observe_many(events)
        return {}

    return observe


def compose_node(
    mem: Memory,
    *,
    user_id: str | None = None,
    agent_id: str = "langgraph",
    purpose: str = "responder",
    max_tokens: int = 1024,
    messages_key: str = "messages",
    into: str = "memory",
    exclude_sent: bool = True,
    tenant_id: str = DEFAULT_TENANT,
) -> Node:
    """Make a node that composes for the user's last message, into `state[into]`: text, build_id, tokens.

    The graph itself sends the messages of the state to the model, so the packet leaves them out, but covers messages
    trimmed from the state. With `exclude_sent=False` it includes them too, for a graph that sends nothing else.
    """

    def compose(state: Any, config: RunnableConfig) -> dict[str, Any]:
        run = _run(mem, config, user_id, agent_id, tenant_id)
        messages = convert_to_messages(_of(state, messages_key) or [])
        asked = [each for each in messages if isinstance(each, HumanMessage)]
        query = content_text(asked[-1].content) if asked else ""
        sent = left_out(mem, run, [content_text(each.content) for each in messages]) if exclude_sent else {}
        build = run.compose(purpose, query=query, max_tokens=max_tokens, **sent)
        return {into: {"text": build.text, "build_id": build.id, "tokens": build.tokens}}

    return compose


def _of(state: Any, key: str) -> Any:
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def _run(mem: Memory, config: RunnableConfig, user_id: str | None, agent_id: str, tenant_id: str) -> Run:
    """The run of a thread, always the same, so that a resumed graph continues it."""
    said = config.get("configurable", {})
    user, thread = user_id or said.get("user_id"), said.get("thread_id")
    if not user or not thread:
        raise InvalidInput(
            "a memory node needs to know whose thread this is",
            path="$.configurable",
            hint='config={"configurable": {"thread_id": …, "user_id": …}}',
        )
    run_id = short_id("run", ["langgraph", tenant_id, str(user), str(thread)])
    return mem.run(user_id=str(user), agent_id=agent_id, session_id=str(thread), run_id=run_id, tenant_id=tenant_id)


def _events(messages: Sequence[BaseMessage], thread: str) -> list[dict[str, Any]]:
    calls: dict[str, Mapping[str, Any]] = {}
    events: list[dict[str, Any]] = []
    for position, message in enumerate(messages):
        text = content_text(message.content)
        key = once_key(thread, message.id, position, [message.type, text])
        if isinstance(message, AIMessage):
            calls.update({str(call["id"]): call for call in message.tool_calls})
        if isinstance(message, ToolMessage):
            call = calls.get(message.tool_call_id, {})
            name = message.name or call.get("name") or "tool"
            tool = {"name": name, "args": dict(call.get("args", {})), "ok": message.status != "error"}
            events.append({"role": "tool", "content": text, "tool": tool, "idempotency_key": key})
        elif isinstance(message, HumanMessage | AIMessage) and text:
            role = "user" if isinstance(message, HumanMessage) else "assistant"
            events.append({"role": role, "content": text, "speaker": message.name, "idempotency_key": key})
    return events
