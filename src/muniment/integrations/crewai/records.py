"""A user's memory as CrewAI's records: listed, looked up and erased. A storage backend without vectors.

A record is any ledger event, under the event's id; CrewAI's other fields (scope, categories, importance) are in the
event's metadata. Deletion erases the event and everything derived from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from muniment.errors import Forgotten, NotFound
from muniment.integrations.packages import missing

try:
    from crewai.memory.types import MemoryRecord, ScopeInfo
    from crewai.memory.utils import normalize_scope_path
except ModuleNotFoundError as error:
    raise missing("crewai", "crewai", error) from error

if TYPE_CHECKING:
    from muniment.integrations.session import SessionMemory
    from muniment.memory.search import Hit
    from muniment.store.ledger import LedgerEntry

__all__ = ["NAME", "Records", "in_scope", "record_of_hit"]

NAME = "crewai"
_KEPT = ("scope", "categories", "metadata", "importance", "source")


class Records:
    """The records of one user, in all sessions."""

    def __init__(self, memory: SessionMemory) -> None:
        self.memory = memory

    def get_record(self, record_id: str) -> MemoryRecord | None:
        scope = self.memory.run.scope
        try:
            entry = self.memory.mem.ledger.get(record_id, tenant_id=scope.tenant_id)
        except (NotFound, Forgotten):
            return None
        is_own = entry.scope.user_id == scope.user_id and entry.kind == "message"
        return self._record(entry) if is_own and not entry.is_forgotten else None

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        return list(self._of(scope_prefix))[offset : offset + limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        if record_ids is not None:
            named = [record for record in map(self.get_record, record_ids) if record is not None]
        else:
            named = list(self._of(None))
        before = None if older_than is None else _naive(older_than)
        chosen = [
            record
            for record in named
            if in_scope(record, scope_prefix)
            and (not categories or set(categories) & set(record.categories))
            and (before is None or record.created_at < before)
            and all(record.metadata.get(key) == value for key, value in (metadata_filter or {}).items())
        ]
        for record in chosen:
            self.memory.forget(record.id)
        return len(chosen)

    def reset(self, scope_prefix: str | None = None) -> None:
        """Erase a scope or, without one, everything of this user."""
        if normalize_scope_path(scope_prefix or "") != "/":
            self.delete(scope_prefix)
            return
        try:
            self.memory.forget_user()
        except NotFound:
            return

    def get_scope_info(self, scope: str) -> ScopeInfo:
        records = list(self._of(scope))
        dates = sorted(record.created_at for record in records)
        return ScopeInfo(
            path=normalize_scope_path(scope),
            record_count=len(records),
            categories=sorted(_counted(records)),
            oldest_record=dates[0] if dates else None,
            newest_record=dates[-1] if dates else None,
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        front = normalize_scope_path(parent).rstrip("/") + "/"
        below = [record.scope for record in self._of(None) if record.scope.startswith(front) and record.scope != "/"]
        return sorted({front + scope[len(front) :].split("/", 1)[0] for scope in below})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        return dict(_counted(self._of(scope_prefix)))

    def count(self, scope_prefix: str | None = None) -> int:
        return sum(1 for _ in self._of(scope_prefix))

    def _of(self, scope_prefix: str | None) -> Iterator[MemoryRecord]:
        """The records of a scope, newest first."""
        scope = self.memory.run.scope
        entries = self.memory.mem.ledger.entries(
            user_id=scope.user_id, tenant_id=scope.tenant_id, kind="message", order="desc"
        )
        records = (self._record(entry) for entry in entries if not entry.is_forgotten)
        return (record for record in records if in_scope(record, scope_prefix))

    def _record(self, entry: LedgerEntry) -> MemoryRecord:
        text = self.memory.run.ledger.content(entry.id) if entry.content is None else entry.content
        return _record(entry.id, text, entry.ts, entry.metadata)


def record_of_hit(hit: Hit, records: Records) -> MemoryRecord:
    """Convert a hit to a record. A fact has no CrewAI scope, so it gets the root."""
    found = records.get_record(hit.id) if hit.kind == "event" else None
    return _record(hit.id, hit.text, hit.ts, {}) if found is None else found


def in_scope(record: MemoryRecord, scope_prefix: str | None) -> bool:
    """True if a record is in this scope or below it."""
    front, own = normalize_scope_path(scope_prefix or ""), str(record.scope)
    return front == "/" or own == front or own.startswith(f"{front}/")


def _record(id_: str, text: str, ts: str, metadata: Mapping[str, Any]) -> MemoryRecord:
    said = metadata.get(NAME)
    kept = {key: said[key] for key in _KEPT if key in said} if isinstance(said, Mapping) else {}
    at = _naive(datetime.fromisoformat(ts))
    return MemoryRecord(id=id_, content=text, created_at=at, last_accessed=at, **kept)


def _naive(at: datetime) -> datetime:
    """Convert to CrewAI's times: naive UTC."""
    return at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)


def _counted(records: Iterable[MemoryRecord]) -> Counter[str]:
    return Counter(category for record in records for category in record.categories)
