"""A session manager of Strands: an agent's messages and state, stored in the ledger and restored from it.

Each message is a separate event, so that recall finds it and it can be forgotten; a restored conversation has a note in
its place. Of the agent's state, the latest version counts. If a guardrail redacts a message, the original is erased.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import digest_of
from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.packages import missing
from muniment.integrations.session.functions import ECHO, ECHOES
from muniment.integrations.strands.messages import call_names, result_text, results_of, text_of
from muniment.integrations.transcript import Line, Transcript

try:
    from strands.session.repository_session_manager import RepositorySessionManager
    from strands.session.session_repository import SessionRepository
    from strands.types.session import Session, SessionAgent, SessionMessage
except ModuleNotFoundError as error:
    raise missing("strands-agents", "strands", error) from error

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory
    from muniment.integrations.session import SessionMemory

__all__ = ["MunimentSessionManager"]

_NAME = "strands"


class MunimentSessionManager(RepositorySessionManager):
    """For `Agent(session_manager=…)`: one session of one user, continued by any agent created with it."""

    def __init__(
        self,
        session_id: str,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        agent_id: str = "strands",
        tenant_id: str = DEFAULT_TENANT,
    ) -> None:
        transcript = Transcript(
            mem, _NAME, user_id=user_id, session_id=session_id, agent_id=agent_id, tenant_id=tenant_id
        )
        self._repository = _Repository(transcript)
        super().__init__(session_id, self._repository)

    @property
    def memory(self) -> SessionMemory:
        """The memory of this session, with `search`, `compose`, `forget` and the like."""
        return self._repository.transcript.memory

    def records(self, memory: SessionMemory) -> bool:
        """True if this manager records that session."""
        own, other = self.memory.run.scope, memory.run.scope
        named = ("tenant_id", "user_id", "session_id")
        return memory.mem is self.memory.mem and all(getattr(own, each) == getattr(other, each) for each in named)

    def told(self, agent_id: str, build_id: str) -> None:
        """Note the packet of this agent's next answer."""
        self._repository.builds[agent_id] = build_id


class _Repository(SessionRepository):  # made for one session, whose id each call repeats
    """One session as lines of a transcript: the session, states of agents, messages."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.builds: dict[str, str] = {}
        self._calls: dict[str, str] = {}

    def create_session(self, session: Session, **_: Any) -> Session:
        self.transcript.append([Line({"session": session.to_dict()})])
        return session

    def read_session(self, session_id: str, **_: Any) -> Session | None:  # noqa: ARG002
        return self._latest("session", Session)

    def create_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:  # noqa: ARG002
        self.transcript.append([Line({"agent": session_agent.to_dict(), "agent_id": session_agent.agent_id})])

    def read_agent(self, session_id: str, agent_id: str, **_: Any) -> SessionAgent | None:  # noqa: ARG002
        return self._latest("agent", SessionAgent, agent_id=agent_id)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        self.create_agent(session_id, session_agent)

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any) -> None:  # noqa: ARG002
        self.transcript.append([self._line(agent_id, session_message)])

    def read_message(self, session_id: str, agent_id: str, message_id: int, **_: Any) -> SessionMessage | None:
        found = self.list_messages(session_id, agent_id)
        return next((each for each in found if each.message_id == message_id), None)

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any) -> None:  # noqa: ARG002
        """Replace a message and erase the original, as messages change when nobody should read them any more."""
        memory, at = self.transcript.memory, session_message.message_id
        for entry_id, item in self._items("message"):
            if item["agent_id"] == agent_id and item["message_id"] == at:
                memory.forget(entry_id)
        redacted = SessionMessage(session_message.to_message(), at, created_at=session_message.created_at)
        self.transcript.append([self._line(agent_id, redacted)])

    def list_messages(
        self,
        session_id: str,  # noqa: ARG002
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **_: Any,
    ) -> list[SessionMessage]:
        """The messages in order, with a note in place of a forgotten one: models need alternating roles."""
        held = {item["message_id"]: item for _, item in self._items("message") if item["agent_id"] == agent_id}
        found: list[SessionMessage] = []
        for at in reversed(range(1 + max(held, default=-1))):
            found.append(_message(held[at]) if at in held else _forgotten(at, before=found[-1]))
        return found[::-1][offset:][:limit]

    def _line(self, agent_id: str, kept: SessionMessage) -> Line:
        """A message as an event. If it is a single text, the event holds the text and the item the rest."""
        dumped = kept.to_dict()
        message = kept.to_message()
        self._calls |= call_names([message])
        item = {"agent_id": agent_id, "message_id": kept.message_id, "message": dumped}
        key = f"{agent_id}:{kept.message_id}:{digest_of(dumped['message'])[:16]}"
        results = results_of(message)
        if results:
            names = [self._calls.get(each["toolUseId"], "tool") for each in results]
            texts = [ECHO if name in ECHOES else result_text(each) for name, each in zip(names, results, strict=True)]
            ok = all(each.get("status") != "error" for each in results)
            return Line(item, "\n".join(texts), "tool", tool={"name": ", ".join(names)[:200], "ok": ok}, key=key)
        text = text_of(message)
        if not text:
            return Line(item, key=key)
        build = self.builds.get(agent_id) if message["role"] == "assistant" else None
        if [*message["content"]] == [{"text": text}]:
            dumped["message"]["content"] = []
            return Line({**item, "text": text}, text, message["role"], "text", key=key, build=build)
        return Line(item, text, message["role"], key=key, build=build)

    def _latest(self, kind: str, made: Any, **named: str) -> Any:
        found = [item for _, item in self._items(kind) if all(item[key] == value for key, value in named.items())]
        return made.from_dict(found[-1][kind]) if found else None

    def _items(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        return ((entry_id, item) for entry_id, item in self.transcript.named_items() if kind in item)


def _message(item: Mapping[str, Any]) -> SessionMessage:
    """Rebuild the message from its item."""
    dumped = dict(item["message"])
    if "text" in item:
        dumped["message"] = {**dumped["message"], "content": [{"text": item["text"]}]}
    return SessionMessage.from_dict(dumped)


def _forgotten(at: int, before: SessionMessage) -> SessionMessage:
    """The note in place of a forgotten message."""
    role: Any = "assistant" if before.to_message()["role"] == "user" else "user"
    return SessionMessage({"role": role, "content": [{"text": "(forgotten)"}]}, at)
