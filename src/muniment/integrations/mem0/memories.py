"""Memories of a store: written, read, changed and erased through its public face alone.

So a store behind `muniment.connect` works as well. Callers validate arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.errors import Forgotten, ModelFailure, NotFound, UnknownScope
from muniment.integrations.mem0.exceptions import LLMError, MemoryNotFoundError, UnsupportedError, ValidationError
from muniment.integrations.mem0.filters import Group, matches
from muniment.integrations.mem0.marks import fields_of
from muniment.integrations.mem0.shapes import (
    AGENT,
    added,
    change,
    fact_id_of,
    fact_json,
    fact_text,
    memory_id_of,
    memory_json,
    metadata_of,
    own_data,
    owner_of,
    updates_of,
)
from muniment.integrations.mem0.validation import OWN, UNSET
from muniment.memory._index import FIELDS_KEY

if TYPE_CHECKING:
    from muniment.contracts.packet import Fact
    from muniment.core.ports.models import Clock
    from muniment.handles import memory as runtime
    from muniment.handles.run import Run
    from muniment.store.ledger import LedgerEntry

__all__ = ["Memories", "Shown", "not_found"]

_INFER = "infer"
_NOTED = "noted"
"""Marks an update as a note about the memory, which changes nothing of it."""


class Shown(NamedTuple):
    """A memory in its returned shape, with its present event."""

    memory: dict[str, Any]
    event_id: str


class Memories:
    """The memories of one tenant. Holds no state of its own; as thread-safe as the store."""

    def __init__(self, mem: runtime.Memory, model: Any, tenant_id: str, clock: Clock) -> None:
        self.mem = mem
        self.tenant_id = tenant_id
        self._model = model
        self._clock = clock

    def run(self, owner: str, agent_id: str | None = None, session_id: str | None = None) -> Run:
        return self.mem.run(user_id=owner, agent_id=agent_id or AGENT, session_id=session_id, tenant_id=self.tenant_id)

    # -- writing --------------------------------------------------------------------------------------

    def add(
        self,
        messages: Iterable[Mapping[str, Any]],
        entities: Mapping[str, str],
        metadata: Mapping[str, Any],
        *,
        expires: str | None = None,
        timestamp: Any = None,
        infer: bool = True,
    ) -> dict[str, Any]:
        """Record messages; return them as memories, with the facts found in them."""
        run = self.run(owner_of(entities), entities.get("agent_id"), entities.get("run_id"))
        own: dict[str, Any] = {} if infer else {_INFER: False}
        own |= {"expiration_date": expires} if expires is not None else {}
        drafts = []
        for each in messages:
            known = {**entities, "metadata": metadata, "actor_id": each["speaker"]}
            drafts.append(
                {
                    **each,
                    "metadata": {**metadata, **({OWN: own} if own else {}), FIELDS_KEY: fields_of(known)},
                    **({} if timestamp is None else {"ts": timestamp}),
                }
            )
        entries = run.observe_many(drafts)
        results = [added(entry, self.text(entry)) for entry in entries]
        return {"results": results, "facts": self._extracted(run, entries) if infer else []}

    def _extracted(self, run: Run, entries: list[LedgerEntry]) -> list[dict[str, Any]]:
        if not entries:
            return []
        try:
            found = run.extract([entry.id for entry in entries], model=self._model)
        except ModelFailure as error:
            said = {"results": [added(entry, self.text(entry)) for entry in entries]}
            raise LLMError(f"LLM extraction failed: {error.message}", None, said, error.hint) from error
        return [
            {"id": f"{each.fact_id}@{each.sources[0]}", "key": each.key, "value": each.value}
            for each in found
            if each.fact_id
        ]

    def update(
        self,
        memory_id: str,
        text: str | None,
        metadata: Mapping[str, Any] | None,
        expires: Any = UNSET,
        *,
        noted: Mapping[str, Any] | None = None,
    ) -> None:
        """Change a memory's text or metadata under the same id; `noted` is stored with them."""
        shown, last, first = self.known(memory_id)
        own = {key: value for key, value in own_data(last).items() if key != _NOTED}
        own |= {"memory_id": memory_id, "created_at": shown["created_at"]}
        own["run_id"] = own.get("run_id", first.scope.session_id)
        own |= {} if noted is None else {**noted, _NOTED: True}
        if expires is not UNSET:
            own["expiration_date"] = expires
        kept = {**metadata_of(last), **(metadata or {})}
        fields = fields_of({**shown, "metadata": kept}, is_update=True)
        run = self.run(last.scope.user_id, last.scope.agent_id, updates_of(memory_id))
        entry = run.observe(
            last.role,
            shown["memory"] if text is None else text,
            speaker=last.speaker,
            metadata={**kept, OWN: own, FIELDS_KEY: fields},
        )
        if text is not None and own.get(_INFER, True):
            self._extracted(run, [entry])

    def delete(self, memory_id: str) -> str:
        """Erase a memory with its earlier versions, or a fact; return the receipt."""
        named = fact_id_of(memory_id)
        if named is not None:
            fact = self._fact(*named)
            if fact is None:
                raise not_found(memory_id)
            return self.mem.forget(fact=named[0], tenant_id=self.tenant_id).receipt_id
        revisions = self.revisions(memory_id)
        if not revisions:
            raise not_found(memory_id)
        receipts = [self.mem.forget(event=each.id, tenant_id=self.tenant_id) for each in revisions]
        return receipts[0].receipt_id

    def delete_all(self, tree: Group, owner: str, *, is_whole: bool) -> int | None:
        """Erase an owner's memories that match a filter, or the whole owner; return the number of memories, if
        counted.
        """
        if is_whole:
            try:
                self.mem.forget(user_id=owner, tenant_id=self.tenant_id)
            except NotFound:
                return 0
            return None
        found = [shown.memory["id"] for shown in self.walk(owner, tree, show_expired=True)]
        for memory_id in found:
            self.delete(memory_id)
        return len(found)

    def reset(self) -> None:
        """Erase the tenant."""
        try:
            self.mem.forget(tenant=self.tenant_id)
        except UnknownScope:
            return  # nothing to erase

    # -- reading --------------------------------------------------------------------------------------

    def owners(self) -> Iterator[str]:
        return (each.user_id for each in self.mem.store.users(tenant_id=self.tenant_id))

    def has_owner(self, owner: str) -> bool:
        """True if an owner has anything stored."""
        named = self.mem.store.users(q=owner, tenant_id=self.tenant_id)
        return any(each.user_id == owner for each in named)

    def entry(self, event_id: str) -> LedgerEntry | None:
        """An existing event, forgotten or not."""
        try:
            return self.mem.ledger.get(event_id, tenant_id=self.tenant_id)
        except (NotFound, Forgotten):
            return None

    def text(self, entry: LedgerEntry) -> str:
        known = entry.content
        return known if known is not None else self.mem.ledger.content(entry.id, tenant_id=self.tenant_id)

    def revisions(self, memory_id: str) -> list[LedgerEntry]:
        """A memory's event and its replacements, oldest first; none if there is no such memory."""
        first = self.entry(memory_id)
        if first is None or not _is_memory(first) or memory_id_of(first) != memory_id:
            return []
        later = self.mem.ledger.entries(
            user_id=first.scope.user_id, session_id=updates_of(memory_id), tenant_id=self.tenant_id
        )
        return [first, *(each for each in later if _is_memory(each))]

    def _newest(self, memory_id: str, owner: str) -> LedgerEntry | None:
        """The latest replacement of a memory's event; None if there is none."""
        updates = self.mem.ledger.entries(
            user_id=owner, session_id=updates_of(memory_id), order="desc", kind="message", tenant_id=self.tenant_id
        )
        return next((each for each in updates if _is_memory(each)), None)

    def known(self, memory_id: str) -> tuple[dict[str, Any], LedgerEntry, LedgerEntry]:
        """A memory in its current state, its present event and its first."""
        if isinstance(memory_id, str) and fact_id_of(memory_id) is not None:
            raise UnsupportedError(
                f"{memory_id} is a fact, which stands on what was said and is not edited",
                suggestion="update the memory it rests on (metadata.muniment.sources), or add what is right",
                path="$.memory_id",
            )
        revisions = self.revisions(memory_id)
        if not revisions:
            raise not_found(memory_id, "Please provide a valid 'memory_id'")
        first, last = revisions[0], revisions[-1]
        return memory_json(last, self.text(last), first), last, first

    def get(self, memory_id: Any) -> dict[str, Any] | None:
        """Return a memory or a fact by its id."""
        if not isinstance(memory_id, str):
            raise ValidationError("memory_id must be a string", path="$.memory_id")
        named = fact_id_of(memory_id)
        if named is not None:
            fact = self._fact(*named)
            return None if fact is None else self.fact_shown(fact, named[1])
        revisions = self.revisions(memory_id)
        return memory_json(revisions[-1], self.text(revisions[-1]), revisions[0]) if revisions else None

    def shown_if(self, entry: LedgerEntry, tree: Group, *, show_expired: bool) -> Shown | None:
        """A memory in its returned shape; None if this event is not its present one, or does not match."""
        if not _is_memory(entry):
            return None
        own, memory_id = own_data(entry), memory_id_of(entry)
        first = None
        if memory_id != entry.id and "created_at" not in own:  # an update from an earlier version
            first = self.entry(memory_id)
        shown = memory_json(entry, self.text(entry), first)
        if not matches(tree, shown) or (self._is_expired(shown) and not show_expired):
            return None
        newest = self._newest(memory_id, entry.scope.user_id)
        is_present = newest is None if memory_id == entry.id else newest is not None and newest.id == entry.id
        return Shown(shown, entry.id) if is_present else None

    def walk(self, owner: str, tree: Group, *, show_expired: bool) -> Iterator[Shown]:
        """An owner's memories that match a filter, session by session; iterating to the end reads the whole ledger."""
        for entry in self.mem.ledger.entries(user_id=owner, kind="message", tenant_id=self.tenant_id):
            shown = self.shown_if(entry, tree, show_expired=show_expired)
            if shown is not None:
                yield shown

    def _is_expired(self, shown: Mapping[str, Any]) -> bool:
        day = shown.get("expiration_date")
        return day is not None and self._clock().date().isoformat() > day

    # -- facts ----------------------------------------------------------------------------------------

    def facts(self, owner: str) -> list[Fact]:
        """The current facts of an owner."""
        return [fact for fact in self.run(owner).facts() if fact.status == "active"]

    def _fact(self, fact_id: str, event_id: str) -> Fact | None:
        source = self.entry(event_id)
        if source is None:
            return None
        try:
            found = self.run(source.scope.user_id).facts(around=fact_id, limit=1, include_all=True)
        except NotFound:
            return None
        return next((fact for fact in found if fact.fact_id == fact_id), None)

    def fact_shown(
        self, fact: Fact, event_id: str | None = None, tree: Group | None = None, *, show_expired: bool = True
    ) -> dict[str, Any] | None:
        """A fact in the shape of a memory; None if its evidence does not match."""
        for source_id in (event_id,) if event_id is not None else fact.sources:
            entry = self.entry(source_id)
            if entry is None:
                continue
            text = "" if entry.is_forgotten else self.text(entry)
            shown = fact_json(fact, memory_json(entry, text), source_id)
            is_asked = tree is None or matches(tree, shown)
            if is_asked and (show_expired or not self._is_expired(shown)):
                return shown
        return None

    # -- history --------------------------------------------------------------------------------------

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """All versions of a memory, oldest first; for an erased one, only its erasure."""
        named = fact_id_of(memory_id)
        if named is not None:
            return self._fact_history(memory_id, *named)
        entry = self.entry(memory_id)
        if entry is None:
            return []
        if entry.is_forgotten:
            return [change(memory_id, entry, "DELETE", None, None, entry.ts) | {"receipt_id": entry.receipt_id}]
        rows: list[dict[str, Any]] = []
        before = None
        for each in self.revisions(memory_id):
            text = self.text(each)
            if not rows or _NOTED not in own_data(each):
                rows.append(change(memory_id, each, "UPDATE" if rows else "ADD", before, text, entry.ts))
            before = text
        return rows

    def _fact_history(self, memory_id: str, fact_id: str, event_id: str) -> list[dict[str, Any]]:
        source = self.entry(event_id)
        if source is None:
            return []
        fact = self._fact(fact_id, event_id)
        if fact is None:
            return [change(memory_id, source, "DELETE", None, None, source.ts)]
        rows = [change(memory_id, source, "ADD", None, fact_text(fact), source.ts)]
        if fact.status != "active":
            history = self.run(source.scope.user_id).memory.fact_history(fact.fact_key)
            later = next((each for each in history if each.status == "active"), None)
            by = None if later is None else self.entry(later.sources[0])
            event = "DELETE" if later is None else "UPDATE"
            after = None if later is None else fact_text(later)
            rows.append(change(memory_id, by or source, event, fact_text(fact), after, source.ts))
        return rows


def not_found(memory_id: Any, more: str | None = None) -> MemoryNotFoundError:
    said = f"Memory with id {memory_id} not found"
    return MemoryNotFoundError(said if more is None else f"{said}. {more}", path="$.memory_id")


def _is_memory(entry: LedgerEntry) -> bool:
    return entry.kind == "message" and not entry.is_forgotten
