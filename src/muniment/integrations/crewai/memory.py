"""CrewAI's `Memory` over a muniment store.

CrewAI uses a memory in three places: `recall` before a task, its two tools while it runs, `extract_memories` and
`remember_many` after it. In a task the first answer is a packet, composed for the task, with numbered sources; every
later answer is single records without numbers, so that a number in a result is unambiguous. Results of earlier tasks in
the same kickoff are left out, since CrewAI passes them on as context.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import PrivateAttr

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import InvalidInput, MunimentError
from muniment.integrations.crewai.records import NAME, Records, in_scope, record_of_hit
from muniment.integrations.messages import observe_once, once_key
from muniment.integrations.packages import missing
from muniment.integrations.session import SessionMemory

try:
    from crewai.agents.constants import FINAL_ANSWER_ACTION
    from crewai.context import capture_execution_context
    from crewai.hooks import HookAborted
    from crewai.memory.types import MemoryMatch, MemoryRecord
    from crewai.memory.unified_memory import Memory as CrewMemory
    from crewai.memory.utils import join_scope_paths
    from pydantic_core import to_jsonable_python
except ModuleNotFoundError as error:
    raise missing("crewai", "crewai", error) from error

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory
    from muniment.packets.builds import Build

__all__ = ["MunimentMemory"]

_KICKOFF_BEGAN = "crew_kickoff_started"
_TASK_BEGAN = "task_started"
_TASK = re.compile(r"Task: (.*?)\nAgent: (.*?)\nExpected result: .*?\nResult: (.*)", re.DOTALL)
_ALONE = re.compile(r"Input: (.*?)\nAgent: (.*?)\nResult: (.*)", re.DOTALL)
"""CrewAI's description of completed work: a task of a crew, and an agent's own."""
_HELD_MAX = 1_024
"""Maximum running tasks and kickoffs for which state is kept."""


class PacketMatch(MemoryMatch):
    """A whole packet as one match, whose text is shown unchanged."""

    def format(self) -> str:
        return str(self.record.content)


class _Told(NamedTuple):
    """The packet that a task got, and the words it was composed for."""

    query: str
    build: Build


class MunimentMemory(CrewMemory):
    """For `Crew(memory=…)` and `Agent(memory=…)`: the memory of one user. Uses neither a model nor an embedder."""

    _session: SessionMemory = PrivateAttr()
    _is_open: bool = PrivateAttr(default=True)
    _told: OrderedDict[str, _Told] = PrivateAttr(default_factory=OrderedDict)
    _said: OrderedDict[str, list[str]] = PrivateAttr(default_factory=OrderedDict)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str = "crew",
        tenant_id: str = DEFAULT_TENANT,
        max_tokens: int = 1024,
        on_error: Literal["open", "closed"] = "open",
        **given: Any,
    ) -> None:
        """Takes in `given` the options of CrewAI's own class, such as `root_scope` and `read_only`."""
        memory = SessionMemory(
            mem,
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            tenant_id=tenant_id,
            max_tokens=max_tokens,
            on_error=on_error,
        )
        super().__init__(storage=Records(memory), embedder=_no_vectors, **given)
        self._session = memory
        self._is_open = on_error == "open"

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> MunimentMemory:
        """Return the same memory: a crew's copy shares it."""
        return self

    @property
    def session(self) -> SessionMemory:
        """The memory of this session, with `search`, `compose`, `forget` and the like."""
        return self._session

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        depth: Literal["shallow", "deep"] = "deep",
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        """Find memories for a query: in a task first a packet, as one match, then single records, best first."""
        _ = include_private
        self.drain_writes()
        place = scope if self.root_scope is None else join_scope_paths(self.root_scope, scope)
        try:
            if depth == "deep" and place is None and not categories and source is None and _under_way(_TASK_BEGAN):
                told = self._packet(_under_way(_TASK_BEGAN), query)
                if told is not None:
                    return told
            return self._records(query, place, categories, limit, source)
        except MunimentError as error:  # CrewAI goes on without memory, unless configured otherwise
            if self._is_open:
                raise
            raise HookAborted(f"memory failed: {error.message}", source="muniment") from error

    def extract_memories(self, content: str) -> list[str]:
        """Return completed work whole: nothing is distilled."""
        return [content] if content.strip() else []

    def update(
        self,
        record_id: str,
        content: str | None = None,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
    ) -> MemoryRecord:
        """Replace a record by a new one, with a new id, and erase it."""
        old = self._storage.get_record(record_id)
        if old is None:
            raise ValueError(f"Record not found: {record_id}")  # the error of CrewAI's own class
        if self.read_only:
            return old
        asked = {"scope": scope, "categories": categories, "metadata": metadata, "importance": importance}
        changed = {key: value for key, value in asked.items() if value is not None}
        kept = old.model_dump(include={*asked, "source"}) | changed
        record = self._write([{"role": "user", "content": old.content if content is None else content}], kept)
        self._session.forget(record_id)
        return record

    def _encode_batch(
        self,
        contents: list[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Write new records: CrewAI calls it in its own thread, one batch after the other."""
        if private:
            raise InvalidInput(
                "private records are not kept", path="$.private", hint="give each user a MunimentMemory of their own"
            )
        kept = {
            "scope": join_scope_paths(root_scope, scope),
            "categories": categories or [],
            "metadata": metadata or {},
            "importance": self.default_importance if importance is None else importance,
            "source": source,
        }
        return [self._write(self._events(content), kept) for content in contents]

    # -- what is told -------------------------------------------------------------------------------------------

    def _packet(self, task: str, query: str) -> list[MemoryMatch] | None:
        """The task's packet; None if the task already has one and this is a later question."""
        with self._lock:
            told = self._told.get(task)
        if told is not None and told.query != query:
            return None
        build = told.build if told is not None else self._session.compose([*self._live(), query], query=query)
        if build is None:
            return []
        with self._lock:
            _hold(self._told, task, _Told(query, build))
        record = MemoryRecord(id=build.id, content=build.text.rstrip(), importance=1.0)
        return [PacketMatch(record=record, score=1.0, match_reasons=["packet"])] if build.text else []

    def _records(
        self, query: str, scope: str | None, categories: list[str] | None, limit: int, source: str | None
    ) -> list[MemoryMatch]:
        live = set(self._live())
        matches = []
        for hit in self._session.search(query, k=4 * limit if scope or categories or source else 2 * limit):
            record = record_of_hit(hit, self._storage)
            is_meant = in_scope(record, scope) and (not categories or set(categories) & set(record.categories))
            if is_meant and hit.text not in live and (source is None or record.source == source):
                said = {"sources": list(hit.sources)} if hit.kind == "fact" else {"id": hit.id}
                record.metadata |= said
                matches.append(MemoryMatch(record=record, score=hit.score, match_reasons=list(hit.why)))
        return matches[:limit]

    def _live(self) -> list[str]:
        """Texts recorded in the running kickoff, which CrewAI passes on as context."""
        with self._lock:
            return list(self._said.get(_under_way(_KICKOFF_BEGAN), ()))

    # -- what is written ----------------------------------------------------------------------------------------

    def _events(self, content: str) -> list[dict[str, Any]]:
        """Completed work becomes the task and its result, with its packet; anything else is a note."""
        task, kickoff = _under_way(_TASK_BEGAN), _under_way(_KICKOFF_BEGAN)
        found = _TASK.fullmatch(content) or _ALONE.fullmatch(content)
        if found is None:
            return [{"role": "assistant" if task else "user", "content": content}]
        asked, agent, said = found.groups()
        said = said.rpartition(FINAL_ANSWER_ACTION)[2].strip()  # without the preceding thoughts, as CrewAI reads it
        with self._lock:
            told = self._told.get(task)
            build = told.build.id if told is not None and told.query == asked else None
            asked = asked.strip()  # texts from a YAML file end with a line break
            _hold(self._said, kickoff, [*self._said.get(kickoff, ()), asked, said])
        question: dict[str, Any] = {"role": "user", "content": asked}
        if task:  # once, even if a guardrail repeats the task
            place = f"crewai:{self._session.run.scope.session_id}"
            question["idempotency_key"] = once_key(place, task, 0, asked)
        answer = {"role": "assistant", "content": said, "speaker": agent.strip()[:200] or None, "build": build}
        return [each for each in (question, answer) if each["content"]]

    def _write(self, events: list[dict[str, Any]], kept: dict[str, Any]) -> MemoryRecord:
        plain = {key: value for key, value in kept.items() if value is not None}
        said = {NAME: to_jsonable_python(plain, fallback=str)}
        drafts = [{key: value for key, value in event.items() if value is not None} for event in events]
        entries = observe_once(self._session.run, [{**draft, "metadata": said} for draft in drafts])
        at = datetime.fromisoformat(entries[-1].ts).replace(tzinfo=None)
        return MemoryRecord(id=entries[-1].id, content=events[-1]["content"], created_at=at, **plain)


def _under_way(kind: str) -> str:
    """The id of the starting event of the innermost running task or kickoff; empty if there is none."""
    stack = capture_execution_context().event_id_stack
    return next((event_id for event_id, began in reversed(stack) if began == kind), "")


def _hold(held: OrderedDict[str, Any], key: str, value: Any) -> None:
    if not key:
        return
    held[key] = value
    held.move_to_end(key)
    while len(held) > _HELD_MAX:
        held.popitem(last=False)


def _no_vectors(texts: list[str]) -> list[list[float]]:
    return [[] for _ in texts]
