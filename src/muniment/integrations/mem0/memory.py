"""The calls, over the public face of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.outside.system import system_clock
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import Forgotten, NotFound
from muniment.integrations.mem0.filters import matches
from muniment.integrations.mem0.shapes import (
    OWN,
    OWNERLESS,
    added,
    change,
    date_of,
    events_of,
    memory_id_of,
    metadata_of,
    own_data,
    owner_of,
    split_filters,
    updates_of,
)

if TYPE_CHECKING:
    from muniment.core.ports.outside import Clock
    from muniment.handles import memory as runtime
    from muniment.handles.run import Run
    from muniment.memory.extraction.model import Model
    from muniment.store.ledger.records import LedgerEntry

__all__ = ["AsyncMemory", "Memory"]

_AGENT = "mem0"
_MINTED = "ses_"
"""How a session begins that nobody named."""
_HITS_MAX = 1000
_UNSET: Any = object()


class Memory:
    """mem0's calls. `model` proposes facts beside the patterns; see `muniment.memory.extraction.model.Model`."""

    def __init__(
        self,
        mem: runtime.Memory,
        *,
        model: Model | None = None,
        tenant_id: str = DEFAULT_TENANT,
        clock: Clock = system_clock,
    ) -> None:
        self._mem = mem
        self._model = model
        self._tenant_id = tenant_id
        self._clock = clock

    def add(
        self,
        messages: str | Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Record what was said. `run_id` is the session; `timestamp` is when it was. Answers `results` and `facts`."""
        if memory_type is not None or prompt is not None:
            raise ValueError("memory_type and prompt mean nothing here: use run.procedure(…), or a model of your own")
        run = self._run({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        own: dict[str, Any] = {} if infer else {"infer": False}
        own |= {"expiration_date": date_of(expiration_date)} if expiration_date is not None else {}
        said = {**(metadata or {}), **({OWN: own} if own else {})}
        entries = run.observe_many(events_of(messages, said, timestamp))
        results = [added(entry) for entry in entries]
        if not infer or not entries:
            return {"results": results, "facts": []}
        found = run.extract([entry.id for entry in entries], model=self._model)
        facts = [{"id": each.fact_id, "key": each.key, "value": each.value} for each in found if each.fact_id]
        return {"results": results, "facts": facts}

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """The best memories for a query. Whose they are is said by `filters`, or as in older versions by name."""
        del rerank  # what is found is ranked already
        entities, wanted = split_filters(filters, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        top = top_k if limit is None else limit
        results: list[dict[str, Any]] = []
        for hit in self._run(entities).search(query, k=min(_HITS_MAX, 4 * top + 20), now=reference_date):
            if hit.kind != "event" or (threshold is not None and hit.score < threshold) or len(results) >= top:
                continue
            entry = self._mem.ledger.get(hit.id, tenant_id=self._tenant_id)
            shown = self._shown_if(entry, entities, wanted, show_expired)
            if shown is not None:
                more = {"score_details": dict(hit.parts), "why": list(hit.why)} if explain else {}
                results.append({**shown, "score": float(hit.score), **more})
        return {"results": results}

    def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """All memories of someone, oldest first."""
        entities, wanted = split_filters(filters, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        found = (self._shown_if(entry, entities, wanted, show_expired) for entry in self._entries(entities))
        shown = sorted((each for each in found if each is not None), key=lambda each: (each["created_at"], each["id"]))
        return {"results": shown[: top_k if limit is None else limit]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        revisions = self._revisions(memory_id)
        return self._memory_json(revisions) if revisions else None

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Give a memory another text or metadata, under its id. Facts are looked for in it as when it was added."""
        if text is None and data is None and metadata is None and expiration_date is _UNSET:
            raise ValueError("At least one of text, metadata, or expiration_date must be provided.")
        revisions = self._known(memory_id)
        first, last = revisions[0], revisions[-1]
        own = {**own_data(last), "memory_id": memory_id}
        if expiration_date is not _UNSET:
            own["expiration_date"] = None if expiration_date is None else date_of(expiration_date)
        chosen = text if text is not None else data
        run = self._mem.run(
            user_id=first.scope.user_id,
            agent_id=first.scope.agent_id,
            session_id=updates_of(memory_id),
            tenant_id=self._tenant_id,
        )
        entry = run.observe(
            first.role,
            self._text(last) if chosen is None else chosen,
            speaker=first.speaker,
            metadata={**metadata_of(last), **(metadata or {}), OWN: own},
        )
        if chosen is not None and own.get("infer", True):
            run.extract([entry.id], model=self._model)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Erase a memory with all it was before, and what was derived from it. There is a receipt for each event."""
        receipts = [self._mem.forget(event=each.id, tenant_id=self._tenant_id) for each in self._known(memory_id)]
        return {"message": "Memory deleted successfully!", "receipt_id": receipts[0].receipt_id}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Erase the memories of someone; with a user alone, everything there is of that user."""
        entities = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        if not any(entities.values()):
            raise ValueError("At least one filter is required to delete all memories.")
        if user_id and not agent_id and not run_id:
            try:
                self._mem.forget(user_id=user_id, tenant_id=self._tenant_id)
            except NotFound:
                return {"message": "Memories deleted successfully!"}
        else:
            for entry in list(self._entries(entities)):
                if self._shown_if(entry, entities, {}, True) is not None:
                    self.delete(memory_id_of(entry))
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What a memory was and became, oldest first; of an erased one, that it was erased."""
        try:
            entry = self._mem.ledger.get(memory_id, tenant_id=self._tenant_id)
        except NotFound:
            return []
        if entry.is_forgotten:
            return [change(memory_id, entry, "DELETE", None, None, entry.ts) | {"receipt_id": entry.receipt_id}]
        rows, before = [], None
        for each in self._revisions(memory_id):
            text = self._text(each)
            rows.append(change(memory_id, each, "ADD" if before is None else "UPDATE", before, text, entry.ts))
            before = text
        return rows

    # -- entries --------------------------------------------------------------------------------------

    def _run(self, entities: Mapping[str, str | None]) -> Run:
        return self._mem.run(
            user_id=owner_of(entities),
            agent_id=entities.get("agent_id") or _AGENT,
            session_id=entities.get("run_id") or None,
            tenant_id=self._tenant_id,
        )

    def _entries(self, entities: Mapping[str, str | None]) -> Iterator[LedgerEntry]:
        entries = self._mem.ledger.entries(user_id=owner_of(entities), tenant_id=self._tenant_id)
        return (entry for entry in entries if entry.kind == "message" and not entry.is_forgotten)

    def _revisions(self, memory_id: str) -> list[LedgerEntry]:
        """A memory's event and those that took its place, oldest first; none where there is no such memory."""
        try:
            first = self._mem.ledger.get(memory_id, tenant_id=self._tenant_id)
        except (NotFound, Forgotten):
            return []
        if first.is_forgotten or first.kind != "message" or memory_id_of(first) != memory_id:
            return []
        later = self._mem.ledger.entries(
            user_id=first.scope.user_id, session_id=updates_of(memory_id), tenant_id=self._tenant_id
        )
        return [first, *(each for each in later if each.kind == "message" and not each.is_forgotten)]

    def _known(self, memory_id: str) -> list[LedgerEntry]:
        revisions = self._revisions(memory_id)
        if not revisions:
            raise ValueError(f"Memory with id {memory_id} not found")
        return revisions

    def _shown_if(
        self, entry: LedgerEntry, entities: Mapping[str, str | None], wanted: Mapping[str, Any], show_expired: bool
    ) -> dict[str, Any] | None:
        """A memory as it is answered; None where this event is not its present one, or is not asked for."""
        revisions = self._revisions(memory_id_of(entry))
        if not revisions or revisions[-1].id != entry.id:
            return None
        shown = self._memory_json(revisions)
        asked = {name: value for name, value in entities.items() if value}
        if any(shown.get(name) != value for name, value in asked.items()):
            return None
        if not show_expired and self._is_expired(shown.get("expiration_date")):
            return None
        return shown if matches(shown.get("metadata") or {}, wanted) else None

    def _memory_json(self, revisions: list[LedgerEntry]) -> dict[str, Any]:
        """A memory in the form that mem0 answers."""
        first, last = revisions[0], revisions[-1]
        shown: dict[str, Any] = {
            "id": first.id,
            "memory": self._text(last),
            "hash": last.content_hash,
            "metadata": metadata_of(last) or None,
            "score": None,
            "created_at": first.ts,
            "updated_at": last.recorded_at,
            "role": first.role,
        }
        user, session = first.scope.user_id, first.scope.session_id
        optional = {
            "user_id": None if user.startswith(OWNERLESS) else user,
            "run_id": None if session.startswith(_MINTED) else session,
            "agent_id": None if first.scope.agent_id == _AGENT else first.scope.agent_id,
            "actor_id": first.speaker,
            "expiration_date": own_data(last).get("expiration_date"),
        }
        return shown | {name: value for name, value in optional.items() if value is not None}

    def _text(self, entry: LedgerEntry) -> str:
        known = entry.content
        return known if known is not None else self._mem.ledger.content(entry.id, tenant_id=self._tenant_id)

    def _is_expired(self, date: str | None) -> bool:
        return date is not None and self._clock().date().isoformat() > date


def _awaiting(name: str) -> Callable[..., Any]:
    async def call(self: AsyncMemory, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(getattr(self._sync, name), *args, **kwargs)

    call.__name__ = name
    return call


class AsyncMemory:
    """`Memory` with `await`: each call runs in a worker thread."""

    def __init__(self, mem: runtime.Memory, **parts: Any) -> None:
        self._sync = Memory(mem, **parts)

    add, search, get_all, get = map(_awaiting, ("add", "search", "get_all", "get"))
    update, delete, delete_all, history = map(_awaiting, ("update", "delete", "delete_all", "history"))
