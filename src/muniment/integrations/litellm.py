"""A callback for LiteLLM: records its async calls and adds a packet, using the core of `muniment.wrap`.

    litellm.callbacks = [MunimentLogger(mem, user_id="ana")]
    await litellm.acompletion(model=…, messages=messages, metadata={"user_id": "ana", "session_id": "s1"})

It works in LiteLLM's Router and proxy server too, which use the same calls. The user is `metadata.user_id`, the `user`
of the call or that of the callback; the session is `metadata.session_id`, or else found as in the proxy. A call that
names no user bypasses memory. LiteLLM has no hook that changes a sync call, so `litellm.completion` bypasses memory as
well.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import InvalidInput, MunimentError
from muniment.integrations.packages import missing
from muniment.integrations.proxy.callers import Allowed, Defaults, caller_of
from muniment.integrations.proxy.sessions import KnownSessions
from muniment.integrations.session.memory import check_max_tokens
from muniment.integrations.wrapping.answers import part_of
from muniment.integrations.wrapping.conversation import Call, Conversation, SentPackets, Telling
from muniment.integrations.wrapping.dialects import CHAT, RESPONSES, Dialect

try:
    from litellm.integrations.custom_logger import CustomLogger
except ModuleNotFoundError as error:
    raise missing("litellm", "litellm", error) from error

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.integrations.wrapping.placing import Place

__all__ = ["MunimentLogger"]

_DIALECTS: Mapping[str, Dialect] = {"acompletion": CHAT, "aresponses": RESPONSES}
_UNDER_WAY_MAX = 4_096


class _UnderWay(NamedTuple):
    conversation: Conversation
    call: Call


class MunimentLogger(CustomLogger):
    """Records LiteLLM's requests and answers, and puts a packet before the question."""

    def __init__(
        self,
        mem: Memory,
        *,
        user_id: str = "",
        agent_id: str = "agent",
        tenant_id: str = DEFAULT_TENANT,
        max_tokens: int | None = None,
        place: Place = "question",
        on_error: Literal["open", "closed"] = "open",
    ) -> None:
        """`on_error="open"`: if memory fails, a warning is logged and the call goes on without it; `"closed"`: the
        error is raised before anything is sent.
        """
        super().__init__()
        if on_error not in ("open", "closed"):
            raise InvalidInput("on_error should be 'open' or 'closed'", path="$.on_error")
        self._mem = mem
        self._defaults = Defaults(tenant_id, user_id, agent_id)
        check_max_tokens(max_tokens)
        self._telling = Telling(max_tokens, place=place, fails_open=on_error == "open")
        self._sent = SentPackets()
        self._sessions = KnownSessions()
        self._under_way: OrderedDict[str, _UnderWay] = OrderedDict()
        self._lock = threading.Lock()

    # -- before -----------------------------------------------------------------------------------------------

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Add a packet to the call. LiteLLM runs this right before each request to a deployment, retries included."""
        dialect = _DIALECTS.get(str(getattr(call_type, "value", call_type)))
        if dialect is None:
            return None
        return await asyncio.to_thread(self._begin, dialect, kwargs)

    def _begin(self, dialect: Dialect, kwargs: dict[str, Any]) -> dict[str, Any] | None:
        conversation = self._conversation(dialect, kwargs)
        if conversation is None:
            return None
        call = conversation.begin(dialect, kwargs)
        with self._lock:
            self._under_way[str(kwargs.get("litellm_call_id"))] = _UnderWay(conversation, call)
            while len(self._under_way) > _UNDER_WAY_MAX:
                self._under_way.popitem(last=False)
        return call.sent

    def _conversation(self, dialect: Dialect, kwargs: Mapping[str, Any]) -> Conversation | None:
        """The user's conversation and session; None if the call bypasses memory."""
        try:
            whose = caller_of({}, _named(kwargs), Allowed(), self._defaults)
            messages = dialect.messages(kwargs)
            if whose is None or messages is None:
                return None
            whose = self._sessions.placed(whose, messages, dialect.goes_on_from(kwargs))
        except MunimentError:
            if self._telling.fails_open:
                return None
            raise
        return Conversation(self._mem, whose, self._telling, self._sent)

    # -- after ------------------------------------------------------------------------------------------------

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Record the answer; LiteLLM has assembled a streamed one."""
        _ = (start_time, end_time)
        with self._lock:
            found = self._under_way.pop(str(kwargs.get("litellm_call_id")), None)
        if found is not None:
            answer = kwargs.get("async_complete_streaming_response") or response_obj
            said = found.call.dialect.answer(part_of(answer, "response", answer))
            await asyncio.to_thread(self._keep, found, said, part_of(answer, "id"))

    def _keep(self, found: _UnderWay, said: list[Any], answer_id: Any) -> None:
        found.conversation.keep(found.call, said, is_quiet=True)
        response_id = answer_id if found.call.dialect is RESPONSES and isinstance(answer_id, str) else ""
        if found.call.is_recorded:
            self._sessions.note(found.conversation, found.call, said, response_id)

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Record the question of a failed call, once even if it is retried."""
        _ = (response_obj, start_time, end_time)
        with self._lock:
            self._under_way.pop(str(kwargs.get("litellm_call_id")), None)


def _named(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Names in a call's metadata, which LiteLLM's proxy server puts in one of two places."""
    found: dict[str, Any] = {}
    for name in ("litellm_metadata", "metadata"):
        held = kwargs.get(name)
        if isinstance(held, Mapping):
            found |= {key: held[key] for key in ("user_id", "session_id") if isinstance(held.get(key), str)}
    return {"metadata": found, "user": kwargs.get("user"), "safety_identifier": kwargs.get("safety_identifier")}
