"""A plugin of Strands: adds a packet to each question, and records the conversation.

The packet is a separate block at the end of the question's message, Strands' place for parts that differ from call to
call: its providers keep such blocks out of their caches. During tool calls it stays unchanged in its place. It is only
in the request: no history stores it. It leaves out anything in the request itself, and covers what was cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.packages import missing
from muniment.integrations.session import SessionMemory, memory_functions
from muniment.integrations.session.functions import forget_function
from muniment.integrations.session.questions import asked_of
from muniment.integrations.strands.messages import call_names, plain
from muniment.integrations.strands.sessions import MunimentSessionManager
from muniment.packets.render import DIVIDER

try:
    from strands import tool
    from strands.hooks import MessageAddedEvent
    from strands.middleware import InvokeModelStage
    from strands.plugins import Plugin
except ModuleNotFoundError as error:
    raise missing("strands-agents", "strands", error) from error

if TYPE_CHECKING:
    from strands import Agent
    from strands.middleware import InvokeModelContext

    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory
    from muniment.packets.builds import Build

__all__ = ["MunimentPlugin"]


class MunimentPlugin(Plugin):
    """For `Agent(plugins=[…])`: one session of one user, with two tools, `search_memory` and `propose_fact`."""

    name = "muniment"

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str = "strands",
        tenant_id: str = DEFAULT_TENANT,
        max_tokens: int = 1024,
        tools: bool = True,
        forget_tool: bool = False,
        on_error: Literal["open", "closed"] = "open",
    ) -> None:
        """Takes `tools=False` to give the model no tools, and `forget_tool=True` to let it erase memories at its user's
        request.
        """
        super().__init__()
        self.memory = SessionMemory(
            mem,
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            tenant_id=tenant_id,
            max_tokens=max_tokens,
            on_error=on_error,
        )
        functions = memory_functions(self.memory) if tools else []
        functions += [forget_function(self.memory)] if forget_tool else []
        self._tools = [tool(each) for each in functions]
        self._builds: WeakKeyDictionary[Any, Build] = WeakKeyDictionary()

    @property
    def last_build(self) -> Build | None:
        """The last packet of a model, over all agents with this plugin."""
        return next(reversed(list(self._builds.values())), None)

    def init_agent(self, agent: Agent) -> None:
        agent.add_middleware(InvokeModelStage.Input, self._tell)
        agent.add_hook(self._record, MessageAddedEvent)

    async def _tell(self, context: InvokeModelContext) -> InvokeModelContext:
        sent = plain(context.messages, call_names(context.messages))
        asked = asked_of(sent.messages)
        if asked is None:
            return context
        build = await self.memory.aio.compose(sent.messages)
        self._builds.pop(context.agent, None)
        if build is None:
            return context
        self._builds[context.agent] = build
        manager = self._manager(context.agent)
        if manager is not None:
            manager.told(context.agent.agent_id, build.id)
        if not build.text:
            return context
        messages, at = list(context.messages), sent.at[asked.at]
        block: Any = {"text": f"{DIVIDER}{build.text}"}
        messages[at] = {**messages[at], "content": [*messages[at]["content"], block]}
        trailing = context.dynamic_trailing_blocks + int(at == len(messages) - 1)
        return context.replace(messages=messages, dynamic_trailing_blocks=trailing)

    async def _record(self, event: MessageAddedEvent) -> None:
        """Record a message once, under the id that Strands gave it."""
        if self._manager(event.agent) is None:
            message: Any = event.message
            said = plain([message], call_names(event.agent.messages))
            ids = [f"{message['tracking_id']}:{number}" for number in range(len(said.messages))]
            build = self._builds.get(event.agent) if message["role"] == "assistant" else None
            await self.memory.aio.record(said.messages, ids=ids, build=build)

    def _manager(self, agent: Any) -> MunimentSessionManager | None:
        """The agent's session manager, if it records this very session."""
        manager = getattr(agent, "_session_manager", None)
        is_same = isinstance(manager, MunimentSessionManager) and manager.records(self.memory)
        return manager if is_same else None
