"""Events of Google's ADK as ledger events, with their user.

An ADK session is a run; a deleted session is an ended run, and a session created again under the same id is another
run. So checking whether a session exists takes one look at its run, whatever its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import canonical_text, digest_of
from muniment.integrations.packages import missing
from muniment.integrations.session.functions import ECHOES
from muniment.integrations.session.memory import SessionMemory, store_of
from muniment.integrations.transcript import Line, Transcript

try:
    from google.adk.events.event import Event
    from google.adk.sessions.state import State
    from google.genai import types
    from pydantic_core import to_jsonable_python
except ModuleNotFoundError as error:
    raise missing("google-adk", "google-adk", error) from error

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory

__all__ = ["BUILD", "LIVE", "SessionName", "Sessions", "event_of", "lines_of", "results_text", "text_of"]

BUILD = "muniment_build_id"
"""Metadata key of an event for the build that its model was given."""
LIVE: ContextVar[SessionName | None] = ContextVar("muniment_google_adk_live", default=None)
"""The session running in this task: ADK sends it itself, and searches memory without naming it."""
_NAME = "google_adk"
_ECHOES = ECHOES | {"load_memory"}


class SessionName(NamedTuple):
    """ADK's name of a session."""

    app_name: str
    user_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Sessions:
    """Locates the sessions of apps in a store."""

    mem: Memory
    tenant_id: str | None
    telling: Mapping[str, Any]

    @classmethod
    def of(cls, mem: Memory | AsyncMemory, tenant_id: str | None, **telling: Any) -> Sessions:
        return cls(store_of(mem), tenant_id, telling)

    def tenant(self, app_name: str) -> str:
        """The app's own tenant, or the one configured for all."""
        return app_name if self.tenant_id is None else self.tenant_id

    def user(self, app_name: str, user_id: str) -> SessionMemory:
        """A user's memory, outside any session."""
        return SessionMemory(self.mem, user_id=user_id, agent_id=app_name, tenant_id=self.tenant(app_name))

    def latest(self, name: SessionName) -> Transcript:
        """The current session of this name, or the one to create: earlier ones were deleted or erased."""
        number = 0
        while True:
            found = self.transcript(name, number)
            state = found.run.state()
            is_gone = bool(list(found.run.ledger.entries(limit=1))) if state is None else state.is_finished
            if not is_gone:
                return found
            number += 1

    def transcript(self, name: SessionName, number: int = 0) -> Transcript:
        said = f"{_NAME}/{name.app_name}" if number == 0 else f"{_NAME}/{name.app_name}/{number}"
        return Transcript(
            self.mem,
            said,
            user_id=name.user_id,
            session_id=name.session_id,
            agent_id=name.app_name,
            tenant_id=self.tenant(name.app_name),
            **self.telling,
        )


def lines_of(events: Iterable[Event]) -> list[Line]:
    """Events as lines of a transcript, each once however often it is passed. Partial streaming events are left out."""
    return [_line(event) for event in events if not event.partial]


def event_of(item: Mapping[str, Any]) -> Event:
    """The event as it was given."""
    event = item["event"]
    if "text" in item:
        event["content"]["parts"][0]["text"] = item["text"]
    return Event.model_validate(event)


def text_of(content: types.Content | None) -> str:
    """Text of a content, without thoughts."""
    parts = (content.parts if content is not None else None) or ()
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def results_text(responses: Iterable[types.FunctionResponse]) -> str:
    """Tool results, one below the other."""
    return "\n".join(canonical_text(to_jsonable_python(each.response or {}, fallback=str)) for each in responses)


def _line(event: Event) -> Line:
    dumped = event.model_dump(mode="json", exclude_none=True, fallback=str)
    actions = dumped.get("actions", {})
    delta = actions.get("state_delta", {})
    actions["state_delta"] = {key: value for key, value in delta.items() if not key.startswith(State.TEMP_PREFIX)}
    key = f"{event.id}:{digest_of(dumped)[:16]}"  # the same id with other words is another event in ADK
    ts = datetime.fromtimestamp(event.timestamp, UTC).isoformat()
    responses = event.get_function_responses()
    if responses:
        text = results_text(responses)
        names = [part.name or "tool" for part in responses]
        if all(name in _ECHOES for name in names):
            return Line({"event": dumped}, key=key, ts=ts)
        tool = {"name": ", ".join(names)[:200], "ok": True}
        return Line({"event": dumped}, text, "tool", tool=tool, key=key, ts=ts)
    text, build = text_of(event.content), (event.custom_metadata or {}).get(BUILD)
    if not text:
        return Line({"event": dumped}, key=key, ts=ts)
    parts = dumped["content"]["parts"]
    item: dict[str, Any] = {"event": dumped}
    text_at = None
    if len(parts) == 1:  # the ledger event already has the text
        parts[0].pop("text")
        item["text"], text_at = text, "text"
    role = "user" if event.author == "user" else "assistant"
    cited = build if role == "assistant" and isinstance(build, str) else None
    return Line(item, text, role, text_at, key=key, ts=ts, build=cited)
