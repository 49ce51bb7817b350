"""smolagents over a muniment store: callbacks that record, a model wrapper with a packet, and tools.

    memory = MunimentMemory(mem, user_id="ana", session_id="chat-1")
    agent = ToolCallingAgent(
        model=memory.recalling(model), tools=memory.tools(), step_callbacks=memory.step_callbacks
    )
    agent.run("Where should we eat?")

The task, each tool's result, and the final answer with its packet are recorded, but not the model's reasoning. The
packet is in the message of the task, before its words, only in the request. It leaves out anything the agent's own
memory sends, and stays the same from step to step.

Extra: `muniment[smolagents]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.messages import content_text
from muniment.integrations.packages import missing
from muniment.integrations.session.functions import ECHOES, memory_functions
from muniment.integrations.session.memory import SessionMemory
from muniment.packets.render import set_apart

try:
    from smolagents import ActionStep, ChatMessage, FinalAnswerStep, MessageRole, Model, TaskStep, Tool, tool
except ModuleNotFoundError as error:
    raise missing("smolagents", "smolagents", error) from error

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory

__all__ = ["MunimentMemory", "RecallingModel"]

_TASK = "New task:\n"
_OBSERVED = "Observation:\n"
"""The framework's prefixes of a task and of a tool's result."""


class MunimentMemory:
    """The memory of one session, for one agent."""

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str = "smolagents",
        tenant_id: str = DEFAULT_TENANT,
        max_tokens: int = 1024,
        on_error: Literal["open", "closed"] = "open",
    ) -> None:
        self.memory = SessionMemory(
            mem,
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            tenant_id=tenant_id,
            max_tokens=max_tokens,
            on_error=on_error,
        )
        self.last_build_id: str | None = None
        """Build of the last packet; None if the model went without memory."""
        self._task: TaskStep | None = None

    @property
    def step_callbacks(self) -> dict[Any, Callable[..., None]]:
        """For an agent's `step_callbacks=`; merge it with your own into one dict."""
        return {ActionStep: self.record_step, FinalAnswerStep: self.record_answer}

    def recalling(self, model: Model) -> RecallingModel:
        """The model with a packet before the task."""
        return RecallingModel(model, self)

    def tools(self) -> list[Tool]:
        """Tools for a model: search the user's history, and propose a fact on a quote."""
        return [tool(function) for function in memory_functions(self.memory)]

    def record_step(self, step: ActionStep, agent: Any) -> None:
        """Record the task, if it is new, and the tool results of this step."""
        tasks = [each for each in agent.memory.steps if isinstance(each, TaskStep)]
        at = f"{step.timing.start_time!r}:{step.step_number}"
        messages, ids = [], []
        if tasks and tasks[-1] is not self._task:
            self._task = tasks[-1]
            messages.append({"role": "user", "content": self._task.task})
            ids.append(f"task:{at}")
        calls = [] if step.is_final_answer else step.tool_calls or []
        if calls and step.observations:  # the framework joins all results into one text
            messages.append({"role": "assistant", "tool_calls": [call.dict() for call in calls]})
            main = next((call for call in calls if call.name not in ECHOES), calls[0])
            messages.append({"role": "tool", "tool_call_id": main.id, "content": step.observations})
            ids += [f"calls:{at}", f"observed:{at}"]
        if messages:
            self.memory.record(messages, ids=ids)

    def record_answer(self, step: FinalAnswerStep, agent: Any) -> None:
        """Record the final answer with its packet."""
        steps = [each for each in agent.memory.steps if isinstance(each, ActionStep)]
        at = repr(steps[-1].timing.start_time) if steps else ""
        answer = {"role": "assistant", "content": str(step.output)}
        self.memory.record([answer], ids=[f"answer:{at}"], build=self.last_build_id)

    def told(self, messages: Sequence[Any]) -> list[Any]:
        """Put a packet before the last task. Messages without a task are returned unchanged."""
        found = list(messages)
        asked = [at for at, each in enumerate(found) if _is_task(each)]
        if not asked:
            return found
        at = asked[-1]
        sent = [
            {"role": "user" if _is_task(each) else "assistant", "content": _said(each)} for each in found if _said(each)
        ]
        build = self.memory.compose(sent)
        self.last_build_id = None if build is None else build.id
        if build is not None and build.text:
            own = _content(found[at])
            parts = [{"type": "text", "text": own}] if isinstance(own, str) else list(own)
            content = [{"type": "text", "text": set_apart(build.text)}, *parts]
            found[at] = ChatMessage(role=MessageRole.USER, content=content)
        return found


class RecallingModel(Model):
    """Wraps a model and adds a packet to a task. Everything else is the model's own."""

    def __init__(self, model: Model, memory: MunimentMemory) -> None:
        super().__init__(model_id=getattr(model, "model_id", None))
        self._model = model
        self._memory = memory

    def generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> ChatMessage:
        return self._model.generate(self._memory.told(messages), *args, **kwargs)

    def parse_tool_calls(self, message: ChatMessage) -> ChatMessage:
        return self._model.parse_tool_calls(message)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        held = getattr(self._model, name)
        if name == "generate_stream":  # agents check whether their model has it
            return lambda messages, *args, **kwargs: held(self._memory.told(messages), *args, **kwargs)
        return held


def _content(message: Any) -> Any:
    return message.get("content") if isinstance(message, dict) else message.content


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else message.role


def _is_task(message: Any) -> bool:
    return _role(message) == MessageRole.USER and content_text(_content(message)).startswith(_TASK)


def _said(message: Any) -> str:
    """Text of a message, without the framework's prefixes."""
    return content_text(_content(message)).removeprefix(_TASK).removeprefix(_OBSERVED)
