"""Export a user's memory as a portable file, in constant memory: messages, imported memories, and facts with their
evidence.

The export reads one consistent view of the store and checks each entry. Forgotten content is not exported. Items
without a place in the format are counted at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from muniment.contracts.portable import (
    FORMAT,
    VERSION,
    PortableAssertion,
    PortableEnd,
    PortableFact,
    PortableHeader,
    PortableLine,
    PortableMemory,
    PortableMessage,
    PortableObjection,
    PortableSession,
    PortableSummary,
)
from muniment.core.canonical import canonical_bytes
from muniment.core.ports.engine import Condition, Count, Reader
from muniment.core.ports.rows import by_ids, stream
from muniment.core.ports.schema import ENTRIES, SESSIONS, EntryRow
from muniment.core.scope import Scope, scope_given
from muniment.errors import InvalidInput, UnknownScope
from muniment.memory._fact_records import Assertion, StoredFact
from muniment.memory.facts import facts_of_level
from muniment.moving.portable import content_hash
from muniment.store.context import Context
from muniment.store.ledger import LedgerEntry, check_content, check_header, entry_of_row
from muniment.store.reading import content_in
from muniment.store.turns import text_of

__all__ = ["export_memory"]

_LEFT_OUT = ("procedure", "insight", "candidate", "claim", "snapshot")
"""Kinds of items that the format cannot hold."""
_WINDOW = re.compile(r" \(held until [0-9-]{10}\)$")
_SAID = ("message", "tool_result", "system")


def export_memory(ctx: Context, tenant_id: str, user_id: str) -> Iterator[bytes]:
    """The lines of a user's portable file."""
    if not isinstance(user_id, str) or not user_id:
        raise InvalidInput("no user is named", path="$.user_id")
    exported_at = ctx.now()
    with ctx.engine.snapshot(tenant_id) as reader:
        yield from _Export(ctx, reader, tenant_id, user_id).lines(exported_at)


class _Export:
    """One export in progress: counts of lines written, and the evidence they include."""

    def __init__(self, ctx: Context, reader: Reader, tenant_id: str, user_id: str) -> None:
        self._ctx = ctx
        self._reader = reader
        self._tenant_id = tenant_id
        self._user_id = user_id
        self._hasher = sha256()
        self._counts: Counter[str] = Counter()
        self._evidence: set[str] = set()
        self._left_out: Counter[str] = Counter()

    def lines(self, exported_at: str) -> Iterator[bytes]:
        sessions = list(
            stream(self._reader, SESSIONS, (("user_id", "=", self._user_id),), order=("user_id", "session_id"))
        )
        if not sessions:
            raise UnknownScope(f"nothing is stored for the user {self._user_id!r:.80}", path="$.user_id")
        header = PortableHeader(
            format=FORMAT, version=VERSION, user_id=self._user_id, exported_at=exported_at, generator="muniment"
        )
        yield self._line("header", header)
        for session in sorted(sessions, key=lambda each: (each.created_at, each.session_id)):
            yield from self._session(session.session_id, session.created_at)
        yield from self._facts()
        for session in sessions:
            yield from self._summary(session.session_id)
        end: dict[str, Any] = {"counts": dict(self._counts), "digest": self._hasher.hexdigest()}
        self._count_rest()
        if self._left_out:
            end["left_out"] = dict(self._left_out)
        yield self._line("end", PortableEnd(**end))

    def _line(self, name: str, record: Any) -> bytes:
        data = canonical_bytes(PortableLine(**{name: record}).to_wire()) + b"\n"
        self._hasher.update(data)
        if name not in ("header", "end"):
            self._counts[name] += 1
        return data

    # -- events ---------------------------------------------------------------------------------------

    def _session(self, session_id: str, created_at: str) -> Iterator[bytes]:
        where: tuple[Condition, ...] = (("user_id", "=", self._user_id), ("session_id", "=", session_id))
        is_opened = False
        for row in stream(self._reader, ENTRIES, where, order=("user_id", "session_id", "seq")):
            check_header(self._tenant_id, row)
            check_content(row)
            entry = self._said(row)
            if entry is None:
                continue
            if not is_opened:
                is_opened = True
                held = PortableSession(session_id=session_id, agent_id=row.agent_id, started_at=created_at)
                yield self._line("session", held)
            text = text_of(self._reader, entry)
            self._evidence.add(entry.id)
            if entry.imported is not None and entry.imported.kind == "memory":
                yield self._line("memory", _memory_of(entry, text))
            else:
                yield self._line("message", _message_of(entry, text))

    def _said(self, row: EntryRow) -> LedgerEntry | None:
        """The entry if it is part of the conversation; None for a run's internal entries."""
        if row.kind not in _SAID or row.receipt_id is not None:
            return None
        entry = entry_of_row(self._tenant_id, row)
        if entry.body is None or (entry.kind == "system" and not entry.body.content and entry.body.blob is None):
            return None
        return entry

    # -- facts ----------------------------------------------------------------------------------------

    def _facts(self) -> Iterator[bytes]:
        scope = scope_given(
            {"tenant_id": self._tenant_id, "user_id": self._user_id, "agent_id": "-", "session_id": "-", "run_id": "-"}
        )
        found = [each.fact for each in facts_of_level(self._reader, scope, "user")]
        orders = self._orders(found)
        for fact in sorted(found, key=lambda each: (min(orders[one.patch] for one in each.assertions), each.fact_id)):
            held = self._fact_of(fact, orders, scope)
            if held is None:
                self._left_out["fact"] += 1
            else:
                yield self._line("fact", held)

    def _orders(self, facts: list[StoredFact]) -> dict[str, int]:
        """The order of each patch among all that changed a fact."""
        patches = tuple({assertion.patch for fact in facts for assertion in fact.assertions})
        rows = sorted(
            by_ids(self._reader, ENTRIES, patches), key=lambda row: (row.recorded_at, row.session_id, row.seq)
        )
        return {row.id: number for number, row in enumerate(rows)}

    def _fact_of(self, fact: StoredFact, orders: dict[str, int], scope: Scope) -> PortableFact | None:
        assertions = [
            made
            for each in fact.assertions
            if (made := self._assertion_of(each, orders[each.patch], scope)) is not None
        ]
        if not assertions:
            return None
        more: dict[str, Any] = {"ended_at": fact.ended_at, "superseded_by": fact.superseded_by}
        more["is_retracted"] = fact.is_retracted or None
        more["is_preference"] = fact.is_preference or None
        objections = tuple(
            PortableObjection(**_there(sources=self._named(each.sources), reason=each.reason))
            for each in fact.objections
        )
        more["objections"] = objections or None
        return PortableFact(
            id=fact.fact_id,
            key=fact.key,
            value=fact.value,
            status=fact.status,
            assertions=tuple(assertions),
            **_there(**more),
        )

    def _assertion_of(self, each: Assertion, order: int, scope: Scope) -> PortableAssertion | None:
        sources = self._named(each.sources)
        if not sources:
            return None
        quote = None
        if each.quote is not None and each.quote.event_id in self._evidence:
            whole = content_in(self._reader, scope.tenant_id, each.quote.event_id, scope.user_id).encode()
            quote = whole[each.quote.start : each.quote.end].decode()
        more = {"valid_from": each.valid_from, "valid_to": each.valid_to, "quote": quote, "notes": each.notes}
        return PortableAssertion(
            sources=sources,
            order=order,
            since=each.since,
            confidence=each.confidence,
            trust=each.trust,
            **_there(**more),
        )

    def _named(self, sources: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(source for source in sources if source in self._evidence)

    # -- the rest -------------------------------------------------------------------------------------

    def _summary(self, session_id: str) -> Iterator[bytes]:
        from muniment.memory.sessions import newest_given

        given = newest_given(self._reader, self._user_id, session_id)
        if given is None:
            return
        sources = self._named(given.sources)
        if not sources:
            self._left_out["summary"] += 1
            return
        held = PortableSummary(session_id=session_id, text=given.text, sources=sources, given_at=given.given_at)
        yield self._line("summary", held)

    def _count_rest(self) -> None:
        for kind in _LEFT_OUT:
            where: tuple[Condition, ...] = (
                ("kind", "=", kind), ("user_id", "=", self._user_id), ("receipt_id", "=", None), ("version", "=", 1),
            )  # fmt: skip
            count = self._reader.do(Count("items", where))
            if count:
                self._left_out[kind] = count


def _there(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _message_of(entry: LedgerEntry, text: str) -> PortableMessage:
    body = entry.body
    assert body is not None
    return PortableMessage(
        id=entry.id,
        session_id=entry.scope.session_id,
        role=entry.role,
        content=text,
        sha256=content_hash(text),
        ts=entry.ts,
        trust=entry.trust,
        **_there(
            speaker=body.speaker,
            tags=body.tags,
            entities=body.entities,
            metadata=body.metadata,
            tool=None if body.tool is None else body.tool.to_wire(),
            origin=body.imported,
        ),
    )


def _memory_of(entry: LedgerEntry, text: str) -> PortableMemory:
    assert entry.imported is not None
    speaker = _WINDOW.sub("", entry.speaker or "memory")
    return PortableMemory(
        id=entry.id,
        text=text,
        sha256=content_hash(text),
        ts=entry.ts,
        origin=entry.imported,
        session_id=entry.scope.session_id,
        **_there(speaker=None if speaker == "memory" else speaker, metadata=entry.metadata or None),
    )
