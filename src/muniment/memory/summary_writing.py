"""The caller's own summary of a session: its sources are checked, and the newest of a session holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muniment.core.scope import FOREIGN
from muniment.errors import InvalidInput, TooLarge
from muniment.memory.episodes.given_summary import GIVEN_SUMMARY, GivenSummary
from muniment.memory.patches import (
    Decided,
    Writer,
    cleaned,
    draft_patch,
    read_evidence,
    text_of,
    texts_of,
    trust_of_evidence,
    write_patches,
)
from muniment.memory.turns import SessionLine
from muniment.store.injection import reads_like_instructions
from muniment.store.items import digest_name, latest, select_items
from muniment.store.ledger import INSTRUCTION_LIKE, SESSION_SUMMARIZED

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader, Transaction
    from muniment.core.scope import Scope

__all__ = ["TEXT_CHARS_MAX", "newest_given", "summarize", "summary_lines"]

TEXT_CHARS_MAX = 8_000
"""Longer than this it is no summary. What has no room in a packet is cut there."""
SOURCES_MAX = 256


def summarize(writer: Writer, text: Any, sources: Any) -> GivenSummary:
    """Keep a summary of the run's session on this user's evidence, at least one event of it."""
    said: str = cleaned(writer.ctx, text_of(text, "$.text"))
    if not said.strip():
        raise InvalidInput("a summary should hold some words", path="$.text")
    if len(said) > TEXT_CHARS_MAX:
        hint = "say less; what it rests on can be read by its sources"
        raise TooLarge(f"{len(said)} characters are over the limit of {TEXT_CHARS_MAX}", path="$.text", hint=hint)
    named = texts_of(sources, "$.sources")
    if not named:
        raise InvalidInput(
            "a summary needs at least one source", path="$.sources", hint="name the events that it sums up"
        )
    if len(named) > SOURCES_MAX:
        raise TooLarge(f"{len(named)} sources are over the limit of {SOURCES_MAX}", path="$.sources")
    summary_id = writer.ctx.ids.new("sum")

    def decide(tx: Transaction) -> Decided:
        evidence = read_evidence(tx, writer.scope, named)
        trust = trust_of_evidence(evidence, is_supposed=True)
        reads_so = writer.ctx.policy.ledger.flag_instructions and reads_like_instructions(said)
        is_suspect = any(each.is_suspect for each in evidence) or (trust in FOREIGN and reads_so)
        flags = {"flags": [INSTRUCTION_LIKE]} if is_suspect else {}
        told = {"id": summary_id, "text": said, "sources": list(named)} | flags
        return Decided([draft_patch(SESSION_SUMMARIZED, trust, told)])

    return write_patches(writer, decide, lambda reader: _given(reader, summary_id))


def newest_given(reader: Reader, user_id: str, session_id: str) -> GivenSummary | None:
    """The summary of a session that the caller gave last, and that was not forgotten."""
    where: tuple[Condition, ...] = (
        ("kind", "=", GIVEN_SUMMARY),
        ("user_id", "=", user_id),
        ("name", "=", digest_name(session_id)),
        ("receipt_id", "=", None),
    )
    found = select_items(reader, where, order=("created_at", "id"), descending=True, limit=1)
    return GivenSummary.from_wire(found[0].plain()) if found else None


def summary_lines(reader: Reader, scope: Scope) -> tuple[SessionLine, ...]:
    """The caller's newest summary of a session as a line for its packets; nothing where there is none."""
    given = newest_given(reader, scope.user_id, scope.session_id)
    if given is None:
        return ()
    line = SessionLine(
        evidence_id=given.summary_id,
        text=given.text,
        ts=given.given_at,
        weight=0,
        trust=given.trust,
        kind="given",
        sources=given.sources,
        flags=given.flags,
    )
    return (line,)


def _given(reader: Reader, summary_id: str) -> GivenSummary:
    item = latest(reader, summary_id)
    assert item is not None  # written in this transaction
    return GivenSummary.from_wire(item.plain())
