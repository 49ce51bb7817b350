"""What is loaded in bulk, event by event, and what a load reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import canonical_text, read_canonical, salted_digest
from muniment.core.record import Count, Record
from muniment.store.ledger.records import EntryDraft

if TYPE_CHECKING:
    from muniment.core.scope import Trust
    from muniment.store.ledger.admission import Admitted
    from muniment.store.ledger.records import EntryKind, Role

__all__ = ["Checked", "LoadEvent", "LoadReport", "checked_of"]


class LoadEvent(NamedTuple):
    """An event with the names it goes under."""

    user_id: str
    agent_id: str
    session_id: str
    run_id: str | None
    """None for a run of the load's own, one for each session and agent."""
    draft: EntryDraft
    where: str
    """Where it stands in what was given, for errors."""


class Checked(NamedTuple):
    """An event that was let in: all that is written of it but its id, its salt and its place. A spool has it as a plain
    tuple. Its request holds what the caller gave, before anything was redacted."""

    id: str | None
    """None for one that is minted."""
    kind: EntryKind
    role: Role
    ts: str | None
    trust: Trust
    flags: tuple[str, ...]
    body_text: str
    """Canonical; of one with a blob, without its name."""
    blob: bytes | None
    event: Any
    """Which event its metadata name; None of most."""
    key: tuple[bytes, bytes] | None
    """The hash of its idempotency key, and the request's bytes."""

    @property
    def size(self) -> int:
        return len(self.body_text) + (0 if self.blob is None else len(self.blob))

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = read_canonical(self.body_text)
        return body

    def placed(self, salt: bytes) -> tuple[Checked, bytes]:
        """With its blob named in its body by the salted hash, and that name."""
        assert self.blob is not None
        name = salted_digest(salt, self.blob)
        body = self.body | {"blob": name.hex(), "bytes": len(self.blob)}
        return self._replace(body_text=canonical_text(body)), name


def checked_of(admitted: Admitted, key: tuple[bytes, bytes] | None = None) -> Checked:
    """What is kept of a draft that was let in."""
    draft, metadata = admitted.draft, admitted.draft.metadata
    return Checked(
        draft.id,
        draft.kind,
        draft.role,
        admitted.ts,
        admitted.trust,
        admitted.flags,
        admitted.body_text if admitted.blob is None else canonical_text(admitted.body),
        admitted.blob,
        metadata.get("event") if metadata else None,
        key,
    )


class LoadReport(Record):
    """What a load wrote, and what was there already."""

    events: Count
    """As many as were given."""
    written: Count
    already_present: Count
    """Were written earlier under the same key."""
    forgotten: Count
    """Were written earlier under the same key and forgotten since: they are not written again."""
    sessions: Count
    """Sessions that events were written to."""
    indexed: Count
    """Turns that were put into the index, of this load or of one before that was broken off."""
    waiting: Count
    """Events of the tenant that are not in the index yet."""
