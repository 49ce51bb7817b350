"""A memory store for Strands' own `MemoryManager`: users' messages, found and cited.

The manager decides when it is searched and where the results go; it passes each message after an invocation, and no
model distils anything. A search leaves out the running session, which the agent sends itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import digest_of
from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.messages import observe_once, once_key
from muniment.integrations.packages import missing
from muniment.integrations.session import SessionMemory
from muniment.integrations.strands.messages import call_names, plain

try:
    from strands.memory import ExtractionConfig, InvocationTrigger, MemoryEntry, MemoryStore
except ModuleNotFoundError as error:
    raise missing("strands-agents", "strands", error) from error

if TYPE_CHECKING:
    from strands.memory import AddMessagesContext, SearchOptions

    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory
    from muniment.memory.search import Hit

__all__ = ["MunimentMemoryStore"]


class MunimentMemoryStore(MemoryStore):
    """For `MemoryManager(stores=[…])`: one session of one user. Writes and searches raise their errors."""

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        session_id: str | None = None,
        name: str = "muniment",
        description: str | None = "What this user said in all conversations, with sources.",
        agent_id: str = "strands",
        tenant_id: str = DEFAULT_TENANT,
        max_search_results: int | None = None,
        writable: bool = True,
    ) -> None:
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = ExtractionConfig(trigger=InvocationTrigger()) if writable else None
        self.memory = SessionMemory(
            mem, user_id=user_id, session_id=session_id, agent_id=agent_id, tenant_id=tenant_id, on_error="closed"
        )
        self._agents = 0

    async def initialize(self) -> None:
        """Start an agent, whose messages are numbered anew."""
        self._agents += 1

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        wanted = (options or {}).get("max_search_results") or self.max_search_results or 3
        return await asyncio.to_thread(self._found, query, wanted)

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> str:
        """Add an agent's note, once however often it is passed. Returns the id of the event."""
        return await asyncio.to_thread(self._noted, content, metadata)

    async def add_messages(self, messages: Sequence[Any], context: AddMessagesContext | None = None) -> None:
        numbers = context.sequence_numbers if context is not None else None
        place = f"{self.memory.run.scope.run_id}:{self._agents}"
        said = plain(messages, call_names(messages))
        nth = [said.at[:number].count(at) for number, at in enumerate(said.at)]
        ids = None if numbers is None else [f"{place}:{numbers[at]}:{n}" for n, at in zip(nth, said.at, strict=True)]
        await self.memory.aio.record(said.messages, ids=ids)

    def _found(self, query: str, wanted: int) -> list[MemoryEntry]:
        under_way = self.memory.run.scope.session_id
        hits = self.memory.search(query, k=3 * wanted)
        return [_entry(hit) for hit in hits if hit.kind == "fact" or hit.session_id != under_way][:wanted]

    def _noted(self, content: str, metadata: dict[str, Any] | None) -> str:
        run = self.memory.run
        key = once_key(f"strands:{run.scope.session_id}", digest_of(content)[:40], 0, metadata)
        event = {"role": "assistant", "content": content, "idempotency_key": key}
        entries = observe_once(run, [event | ({"metadata": {"strands": metadata}} if metadata else {})])
        return entries[0].id if entries else ""


def _entry(hit: Hit) -> MemoryEntry:
    said = {"id": hit.id, "when": hit.ts, "score": hit.score, "sources": list(hit.sources)}
    return MemoryEntry(content=hit.text, metadata=said)
