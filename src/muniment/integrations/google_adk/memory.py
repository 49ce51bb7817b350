"""A memory service of Google's ADK: past sessions of users, found and cited.

With `MunimentSessionService` on the same store everything is in memory at once, and adding a session writes nothing
more; with any other session service, adding it records the new events. A search leaves out the running session, which
ADK sends itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from muniment.integrations.google_adk.events import LIVE, SessionName, Sessions, lines_of, text_of
from muniment.integrations.packages import missing

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.genai import types
except ModuleNotFoundError as error:
    raise missing("google-adk", "google-adk", error) from error

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory
    from muniment.memory.search import Hit

__all__ = ["MunimentMemoryService"]

_LOOSE = "added to memory"
"""Session of entries added without one."""


class MunimentMemoryService(BaseMemoryService):
    """For `Runner(memory_service=…)`: searched by the tools `load_memory` and `preload_memory`."""

    def __init__(self, mem: Memory | AsyncMemory, *, tenant_id: str | None = None, hits_max: int = 10) -> None:
        self._sessions = Sessions.of(mem, tenant_id)
        self._hits_max = hits_max

    async def add_session_to_memory(self, session: Session) -> None:
        name = SessionName(session.app_name, session.user_id, session.id)
        await asyncio.to_thread(self._add, name, session.events)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        _ = custom_metadata
        await asyncio.to_thread(self._add, SessionName(app_name, user_id, session_id or _LOOSE), events)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories, recorded as said by their author and found like any message."""
        _ = custom_metadata
        session = self._sessions.transcript(SessionName(app_name, user_id, _LOOSE)).memory
        events: list[dict[str, Any]] = []
        for each in memories:
            role = "assistant" if each.content.role == "model" else "user"
            event = {"role": role, "content": text_of(each.content), "speaker": each.author, "ts": each.timestamp}
            events.append({key: value for key, value in event.items() if value is not None})
        await asyncio.to_thread(session.run.observe_many, events)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        live, user = LIVE.get(), self._sessions.user(app_name, user_id)
        under_way = live.session_id if live is not None and live[:2] == (app_name, user_id) else None
        hits = await user.aio.search(query, k=self._hits_max * (1 if under_way is None else 3))
        found = [_entry(hit) for hit in hits if hit.kind == "fact" or hit.session_id != under_way]
        return SearchMemoryResponse(memories=found[: self._hits_max])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Erase one memory of this user, by the id of a search result, with everything derived from it."""
        if memory_id:
            await self._sessions.user(app_name, user_id).aio.forget(memory_id)

    def _add(self, name: SessionName, events: Sequence[Event]) -> None:
        self._sessions.latest(name).append(lines_of(event for event in events if event.content))


def _entry(hit: Hit) -> MemoryEntry:
    said = {"score": hit.score, "kind": hit.kind, "sources": list(hit.sources), "session_id": hit.session_id}
    return MemoryEntry(
        id=hit.id,
        content=types.Content(role="model" if hit.role == "assistant" else "user", parts=[types.Part(text=hit.text)]),
        author=hit.speaker or hit.role,
        timestamp=hit.ts,
        custom_metadata={key: value for key, value in said.items() if value is not None},
    )
