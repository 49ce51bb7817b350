"""Answers as items, and checks of kept builds and of a session's marks. Loaded when a store is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from muniment.core.canonical import canonical_bytes, digest, short_id
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import MARKS, PROOFS, ProofRow
from muniment.errors import MunimentError
from muniment.runs.fold import change_of
from muniment.store.items import Change, Item, digest_name, get_version
from muniment.store.ledger import LedgerEntry

__all__ = [
    "answer_id",
    "answer_name",
    "build_fault",
    "mark_faults",
    "project_answer",
]


def answer_id(event_id: str) -> str:
    """The id of the item that records a message's citations."""
    return short_id("ans", event_id)


def answer_name(build_id: str) -> str:
    """The lookup name of the answers to one build."""
    return digest_name(build_id)


def project_answer(entry: LedgerEntry, _lookup: Callable[[str], Item | None]) -> list[Change]:
    """Record a message that names the build it answers from; ids and marks, no words."""
    cited = entry.cited
    if cited is None:
        return []
    status = "unknown_marks" if cited.unknown_marks else "cited" if cited.evidence_ids else "uncited"
    body = cited.to_wire() | {"event_id": entry.id}
    named = answer_name(cited.build_id)
    return [change_of(entry, answer_id(entry.id), "answer", status, body, (entry.id,), named)]


_OWNERS = ("user_id", "agent_id", "session_id", "run_id")


def build_fault(item: Item, sources: frozenset[str]) -> str | None:
    """The fault of a build with these stored sources; None if it is intact."""
    try:
        body = item.plain()
        request, pool = body["request"], body["pool"]
        scope = request["scope"]
        moved = [name for name in _OWNERS if scope[name] != getattr(item, name)]
        named = _named(pool)
    except (KeyError, TypeError, AttributeError):
        return "its body is not that of a build"
    except MunimentError as error:
        return error.message
    if moved:
        return f"{', '.join(moved)} not as its request says"
    name = body.get("key", {}).get("name")  # of a build made under an idempotency key
    if (item.status, item.trust, item.name, item.created_at) != ("composed", "external", name, request.get("now")):
        return "status, trust, name or time are not those of a build"
    if "packet" in body and digest(canonical_bytes(body["packet"])).hex() != body.get("packet_hash"):
        return "its packet is not what it came to"
    missing = sorted(named - sources)
    return f"its link to {missing[0]} is missing" if missing else None


def _named(pool: dict[str, Any]) -> set[str]:
    """The turns and facts that the pool quotes."""
    turns = [*(hit["turn"] for hit in pool.get("hits", ())), *pool.get("window", ())]
    named = {turn if isinstance(turn, str) else turn["id"] for turn in turns}
    return named | {fact["fact"]["fact_id"] for fact in pool.get("facts", ())}


def mark_faults(reader: Reader, where: tuple[Condition, ...] = ()) -> Iterator[tuple[str, str]]:
    """Evidence whose number differs from the one that a build of its session gave it, session by session.

    `where` are conditions on user and session. A number that an import found in use refers to something else here,
    which a local build has cited.
    """
    proofs = stream(reader, PROOFS, (("number", ">", 0), *where), order=("user_id", "session_id", "number"))
    for (user_id, session_id), links in groupby(proofs, key=lambda row: (row.user_id, row.session_id)):
        given = _given(reader, links)
        if not given:
            continue
        of_session: tuple[Condition, ...] = (("user_id", "=", user_id), ("session_id", "=", session_id))
        held = {row.number: row.evidence_id for row in stream(reader, MARKS, of_session)}
        for number, evidence in sorted(given.items()):
            if held.get(number) not in evidence:
                yield min(evidence), f"the mark {number} of the session {session_id!r:.80} was given to it"


def _given(reader: Reader, links: Iterable[ProofRow]) -> dict[int, set[str]]:
    """The numbers that a session's remaining builds gave out, with their evidence. Their proofs name them in order."""
    given: dict[int, set[str]] = {}
    for link in links:
        build = get_version(reader, link.item_id, link.version)
        if build is None or build.kind != "build" or build.body is None:
            continue
        try:
            marks = build.plain().get("marks")
        except MunimentError:  # reported with the build
            continue
        for number, evidence_id in marks.items() if isinstance(marks, dict) else ():
            if number.isdecimal() and isinstance(evidence_id, str):
                given.setdefault(int(number), set()).add(evidence_id)
    return given
