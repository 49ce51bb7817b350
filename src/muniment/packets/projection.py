"""Answers, from the messages that were observed with the build they were given. Pure."""

from __future__ import annotations

from collections.abc import Callable

from muniment.core.canonical import short_id
from muniment.runs.fold import change_of
from muniment.store.items import Change, Item, digest_name
from muniment.store.ledger import LedgerEntry

__all__ = ["answer_id", "answer_name", "project_answer"]


def answer_id(event_id: str) -> str:
    """The item that says what one message cites."""
    return short_id("ans", event_id)


def answer_name(build_id: str) -> str:
    """What the answers to one build are looked up by."""
    return digest_name(build_id)


def project_answer(entry: LedgerEntry, _lookup: Callable[[str], Item | None]) -> list[Change]:
    """A message that says which build it answers from; ids and marks, no words."""
    cited = entry.cited
    if cited is None:
        return []
    status = "unknown_marks" if cited.unknown_marks else "cited" if cited.evidence_ids else "uncited"
    body = cited.to_wire() | {"event_id": entry.id}
    named = answer_name(cited.build_id)
    return [change_of(entry, answer_id(entry.id), "answer", status, body, (entry.id,), named)]
