"""A conversation in a framework's own form, stored as events of one session.

Each item is one event: a message or tool result as such, so that recall finds it, anything else as a `system` entry.
The item is only in that event's metadata, so that forgetting the event forgets the item. The ledger is append-only:
removing or clearing items adds a retraction entry and hides them, but they stay evidence. With `erase` they are
forgotten instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from muniment.core.canonical import short_id
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import NotFound
from muniment.integrations.messages import observe_once, once_key
from muniment.integrations.session.memory import SessionMemory, store_of

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.store.ledger import LedgerEntry

__all__ = ["Conversation", "Line", "Transcript"]


class Line(NamedTuple):
    """An item and its form as an event."""

    item: Mapping[str, Any]
    text: str = ""
    role: str | None = None
    """user, assistant or tool; None if it is not part of the conversation."""
    text_at: str | None = None
    """Path of the text in the item, if it is there as a whole; it is restored from the event on reading."""
    tool: Mapping[str, Any] | None = None
    key: str | None = None
    """The framework's own id, under which it is written once."""
    ts: str | None = None
    """Its time, if the framework gives one."""
    build: str | None = None
    """For an answer, the build it was given."""


class Transcript:
    """The items of one session, under a name that separates frameworks. All handles on one see the same items."""

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        name: str,
        *,
        user_id: str,
        session_id: str,
        agent_id: str,
        tenant_id: str = DEFAULT_TENANT,
        erase: bool = False,
        **telling: Any,
    ) -> None:
        """Takes in `telling` the options of the session's memory: `max_tokens`, `on_error`, `recent`."""
        self._mem = store_of(mem)
        self._name = name
        self._user_id = user_id
        self._session_id = session_id
        self._tenant_id = tenant_id
        self._erase = erase
        self._lock = RLock()
        self.memory = SessionMemory(
            mem,
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            tenant_id=tenant_id,
            run_id=short_id("run", [name, tenant_id, user_id, session_id]),
            **telling,
        )

    @property
    def run(self) -> Run:
        """The run of the items, always the same."""
        return self.memory.run

    def items(self) -> list[dict[str, Any]]:
        """Current items in order, each as it was given."""
        return [item for _, item in self.named_items()]

    def named_items(self) -> list[tuple[str, dict[str, Any]]]:
        """Current items, each with the id of its event."""
        return [(entry.id, self._item(entry)) for entry in self._standing()]

    def append(self, lines: Iterable[Line]) -> list[LedgerEntry]:
        """Write items; return their entries, including those written before under the same key."""
        events = [self._event(line) for line in lines]
        return observe_once(self.run, events)

    def pop(self) -> dict[str, Any] | None:
        """Retract the last item; return it, or None if there is none."""
        with self._lock:
            standing = self._standing()
            if not standing:
                return None
            last = standing[-1]
            item = self._item(last)
            if self._erase:
                self._mem.forget(event=last.id, tenant_id=self._tenant_id)
            else:
                self.run.observe("system", "", metadata={"event": f"{self._name}.item_popped", "item": last.id})
            return item

    def clear(self) -> None:
        """Retract all items. An erasure also removes everything else in the session."""
        with self._lock:
            if not self._erase:
                if self._standing():
                    self.run.observe("system", "", metadata={"event": f"{self._name}.cleared"})
                return
            try:
                self._mem.forget(session=self._session_id, user_id=self._user_id, tenant_id=self._tenant_id)
            except NotFound:
                return

    def _standing(self) -> list[LedgerEntry]:
        """Entries of the items without popped, cleared or forgotten ones."""
        standing: dict[str, LedgerEntry] = {}
        entries = self._mem.ledger.entries(
            user_id=self._user_id, session_id=self._session_id, tenant_id=self._tenant_id
        )
        for entry in entries:
            event = entry.metadata.get("event")
            if event == f"{self._name}.cleared":
                standing.clear()
            elif event == f"{self._name}.item_popped":
                standing.pop(str(entry.metadata["item"]), None)
            elif self._name in entry.metadata:
                standing[entry.id] = entry
        return list(standing.values())

    def _event(self, line: Line) -> dict[str, Any]:
        kept = {key: value for key, value in line.item.items() if key != line.text_at}
        said = {"item": kept} if line.text_at is None else {"item": kept, "text_at": line.text_at}
        event: dict[str, Any] = {"content": line.text, "metadata": {self._name: said}}
        if line.key is not None:
            event["idempotency_key"] = once_key(f"{self._name}:{self._session_id}", line.key, 0, None)
        if line.ts is not None:
            event["ts"] = line.ts
        if line.role is None:
            return {"kind": "system", "role": "system", **event}
        if line.build is not None:
            event["build"] = line.build
        return {"role": line.role, **event, **({} if line.tool is None else {"tool": dict(line.tool)})}

    def _item(self, entry: LedgerEntry) -> dict[str, Any]:
        said = cast("dict[str, Any]", entry.metadata[self._name])
        item = dict(said["item"])
        if "text_at" in said:
            text = entry.content
            item[said["text_at"]] = self.run.ledger.content(entry.id) if text is None else text
        return item


class Conversation:
    """Base of a framework's conversation class: a transcript, and the run of its items."""

    framework: ClassVar[str]
    """Name of its items; with dashes, the default agent."""

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        session_id: str,
        agent_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        erase: bool = False,
    ) -> None:
        self._transcript = Transcript(
            mem,
            self.framework,
            user_id=user_id,
            session_id=session_id,
            agent_id=self.framework.replace("_", "-") if agent_id is None else agent_id,
            tenant_id=tenant_id,
            erase=erase,
        )

    @property
    def run(self) -> Run:
        """The run of its items, for `compose`, `search`, `remember` and the like."""
        return self._transcript.run

    @property
    def memory(self) -> SessionMemory:
        """The memory of this session, for what is known beyond it and for forgetting parts of it."""
        return self._transcript.memory
