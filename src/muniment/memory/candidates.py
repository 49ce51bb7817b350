"""Candidates (MP-17): proposed by a caller, a pattern or a model, promoted by policy or decision, always explained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.ports.engine import Condition, Reader, Transaction
from muniment.core.ports.rows import chunked, texts
from muniment.core.ports.schema import LINKS
from muniment.core.requests import Expect, Request, TextOrNone, checked
from muniment.core.scope import lowest_trust
from muniment.errors import InvalidInput, InvalidRecord, QuoteMismatch
from muniment.memory._fact_records import (
    Candidate,
    Lookup,
    QuoteRef,
    StoredCandidate,
    has_less_trust,
    item_before,
    left_of,
    next_version,
    same_value,
)
from muniment.memory.documents import view_document
from muniment.memory.facts import FactRequest, lock_fact, plan_fact, read_facts
from muniment.memory.patches import (
    Decided,
    Evidence,
    Writer,
    append_decided,
    check_open,
    cleaned,
    draft_patch,
    find_quote,
    own_item,
    read_evidence,
    text_of,
    trust_of_evidence,
    write_patches,
)
from muniment.store.items import Change, Item, Rewritten, digest_name, latest, lock_item, newest_items
from muniment.store.ledger import CANDIDATE_DECIDED, CANDIDATE_PROPOSED, EntryDraft, LedgerEntry
from muniment.store.lists.seeking import find_listed, read_listed, seek
from muniment.store.reading import content_in

if TYPE_CHECKING:
    from muniment.memory.documents import CorpusDocument, CorpusScope
    from muniment.store.context import Context

__all__ = [
    "UNFOUND",
    "Proposed",
    "candidate_without",
    "check_status",
    "decide_candidate",
    "page_candidates",
    "page_documents",
    "project_candidate",
    "propose",
    "propose_in",
    "view_candidate",
]

UNFOUND = "declined: its quote does not stand in its source"


class Proposed(NamedTuple):
    """A proposed fact and its proposer."""

    request: FactRequest
    proposed_by: str
    reason: str | None
    must_quote: bool = True
    """True if a quote missing from its source is an error; otherwise the candidate is declined."""
    against: str | None = None
    """The reason to decline regardless of policy; None if it passed its checks."""


class _Fate(NamedTuple):
    status: str
    explanation: str


def propose(writer: Writer, proposed: Proposed) -> Candidate:
    """Record a candidate and its fate; if it qualifies, it becomes a fact in the same transaction.

    A repeated proposal from the same sources returns the existing candidate.
    """
    ids = writer.ctx.ids.new("cnd"), writer.ctx.ids.new("fct")
    made: list[Candidate] = []

    def decide(tx: Transaction) -> Decided:
        made[:] = [propose_in(tx, writer, proposed, ids)]
        return Decided([])

    return write_patches(writer, decide, lambda _: made[0])


def propose_in(tx: Transaction, writer: Writer, proposed: Proposed, ids: tuple[str, str]) -> Candidate:
    """`propose`, in a transaction that holds the locks of `write_patches`; `ids` are a candidate's and a fact's."""
    lock_fact(tx, writer.scope, "user", cleaned(writer.ctx, proposed.request.key))
    evidence = read_evidence(tx, writer.scope, proposed.request.sources)
    known = _known(tx, writer, proposed.request)
    if known is None:
        append_decided(tx, writer, _decided(tx, writer, proposed, evidence, ids))
    return _view(tx, writer, known or ids[0])


def _known(tx: Transaction, writer: Writer, request: FactRequest) -> str | None:
    """The existing candidate of this value from these sources; only items resting on the first source are read."""
    key = cleaned(writer.ctx, request.key)
    value = cleaned(writer.ctx, request.value, key)
    resting = texts(tx, LINKS, "item_id", (("source_id", "in", request.sources[:1]),))
    for ids in chunked(resting):
        for _, stored in _stored(tx, writer, ("id", "in", ids), ("name", "=", digest_name(key))):
            is_same = stored.sources == request.sources and stored.valid_to == request.valid_to
            if is_same and same_value(stored.value, value):
                return stored.candidate_id
    return None


def _decided(
    tx: Transaction, writer: Writer, proposed: Proposed, evidence: Sequence[Evidence], ids: tuple[str, str]
) -> Decided:
    request, policy = proposed.request, writer.ctx.policy.memory
    trust = trust_of_evidence(evidence)
    if request.confidence is None:
        request = request.model_copy(update={"confidence": getattr(policy.facts.confidence, trust)})
    quote: QuoteRef | None = None
    try:
        quote = find_quote(tx, writer.scope, request.quote, evidence)
        fate = _fate(tx, writer, request, evidence, quote)
        if proposed.against is not None:
            fate = _Fate("declined", f"declined: {proposed.against}")
    except QuoteMismatch:
        if proposed.must_quote:
            raise
        fate = _Fate("declined", UNFOUND)
    drafts: list[EntryDraft] = []
    after, fact_id = "", None
    if fate.status == "promoted":
        planned = plan_fact(tx, writer, request, ids[1], evidence, origin=ids[0])
        fact_id, after = planned.fact_id, planned.after
        fate = _Fate("promoted", f"{fate.explanation}; as a fact it {_said(planned.outcome.effect, request)}")
        drafts = [planned.draft]
    key = cleaned(writer.ctx, request.key)
    said = {
        "id": ids[0],
        "sources": list(request.sources),
        "key": key,
        "value": cleaned(writer.ctx, request.value, key),
        "status": fate.status,
        "explanation": fate.explanation,
        "quote": None if quote is None else quote.to_wire(),
        "confidence": request.confidence,
        "reason": proposed.reason,
        "proposed_by": proposed.proposed_by,
        "fact_id": fact_id,
    }
    if request.valid_to is not None:
        said["valid_to"] = request.valid_to
    return Decided([draft_patch(CANDIDATE_PROPOSED, trust, said), *drafts], after)


def _said(effect: str, request: FactRequest) -> str:
    if effect == "reinforces" and request.valid_to is not None:
        return f"held until {request.valid_to}"
    return {"new": "is the first of its key", "history": "is of the past"}.get(effect, effect)


def _fate(
    tx: Transaction, writer: Writer, request: FactRequest, evidence: Sequence[Evidence], quote: QuoteRef | None
) -> _Fate:
    """The fate of a candidate under the policy. It names facts by id, since an explanation must not outlive their
    words.
    """
    policy, trust = writer.ctx.policy.memory.promotion, trust_of_evidence(evidence)
    key = cleaned(writer.ctx, request.key)
    value = cleaned(writer.ctx, request.value, key)
    active = [each.fact for each in read_facts(tx, writer.scope, key) if each.fact.status == "active"]
    stronger = [
        fact.fact_id for fact in active if has_less_trust(trust, fact.trust) and not same_value(fact.value, value)
    ]
    if stronger:
        said = f"it contradicts {', '.join(stronger)}, an active fact of higher trust"
        return _Fate("declined", f"declined: {said}") if policy.decline_contradictions else _waits([said])
    against: list[str] = []
    if not policy.automatic:
        against.append("the policy promotes nothing by itself")
    if cast("float", request.confidence) < policy.confidence_min:
        against.append(f"confidence {request.confidence} is under {policy.confidence_min}")
    said_with = lowest_trust(each.trust for each in evidence)  # imported entries count here by their original speaker
    if said_with not in policy.trust:
        against.append(f"evidence of trust {said_with!r} is not promoted by itself")
    if any(each.is_suspect for each in evidence):
        against.append("a source reads like instructions")
    if policy.needs_quote and quote is None:
        against.append("it has no quote that stands in its source")
    if against:
        return _waits(against)
    shown = "its quote stands in its source" if quote is not None else "no quote is needed"
    return _Fate("promoted", f"promoted: confidence {request.confidence}, trust {trust!r}, {shown}")


def _waits(reasons: list[str]) -> _Fate:
    return _Fate("proposed", f"waits for a decision: {'; '.join(reasons)}")


class DecisionRequest(Request):
    """A decision on a candidate, and its reason."""

    accept: Annotated[bool, Expect("accept should be true or false")]
    reason: TextOrNone


def decide_candidate(writer: Writer, candidate_id: str, accept: bool, reason: str | None) -> Candidate:
    """Decide a candidate that the policy left open. If accepted, it is remembered under the same rules as any fact."""
    checked(DecisionRequest, accept=accept, reason=reason)
    fact_id = writer.ctx.ids.new("fct")

    def decide(tx: Transaction) -> Decided:
        lock_item(tx, text_of(candidate_id, "$.candidate_id"))
        item = own_item(tx, writer.scope, "candidate", candidate_id, "$.candidate_id")
        check_open(item, ("proposed",), "decided")
        because = "" if reason is None else f": {reason}"
        if not accept:
            fate = {
                "id": item.id,
                "status": "declined",
                "explanation": f"declined by decision{because}",
                "fact_id": None,
            }
            return Decided([draft_patch(CANDIDATE_DECIDED, "assistant", fate)], item.created_at)
        stored = StoredCandidate.from_wire(item.plain())
        request = FactRequest(
            key=stored.key,
            value=stored.value,
            sources=stored.sources,
            confidence=stored.confidence,
            valid_to=stored.valid_to,
            quote=_quote_of(tx, writer, stored),
        )
        planned = plan_fact(
            tx, writer, request, fact_id, read_evidence(tx, writer.scope, stored.sources), origin=item.id
        )
        explanation = f"promoted by decision{because}; as a fact it {_said(planned.outcome.effect, request)}"
        fate = {"id": item.id, "status": "promoted", "explanation": explanation, "fact_id": planned.fact_id}
        drafts = [planned.draft, draft_patch(CANDIDATE_DECIDED, "assistant", fate)]
        return Decided(drafts, max(planned.after, item.created_at))

    return write_patches(writer, decide, lambda reader: _view(reader, writer, candidate_id))


# -- reading ------------------------------------------------------------------------------------------


def check_status(status: str | None) -> None:
    if status not in (None, "proposed", "promoted", "declined"):
        raise InvalidInput(f"{status!r:.40} is not a status", path="$.status", hint="proposed, promoted or declined")


def _stored(reader: Reader, writer: Writer, *more: Condition) -> list[tuple[Item, StoredCandidate]]:
    where: tuple[Condition, ...] = (("kind", "=", "candidate"), ("user_id", "=", writer.scope.user_id), *more)
    return [(item, StoredCandidate.from_wire(item.plain())) for item in newest_items(reader, where)]


def _view(reader: Reader, writer: Writer, candidate_id: str) -> Candidate:
    item = latest(reader, candidate_id)
    assert item is not None
    return view_candidate(reader, writer, StoredCandidate.from_wire(item.plain()))


def view_candidate(reader: Reader, writer: Writer, stored: StoredCandidate) -> Candidate:
    plain = stored.model_dump(exclude={"patch", "decided_by", "quote"})
    return Candidate.model_validate(plain | {"quote": _quote_of(reader, writer, stored)})


def _quote_of(reader: Reader, writer: Writer, stored: StoredCandidate) -> str | None:
    if stored.quote is None:
        return None
    whole = content_in(reader, writer.scope.tenant_id, stored.quote.event_id, writer.scope.user_id).encode()
    return whole[stored.quote.start : stored.quote.end].decode()


# -- from the ledger ----------------------------------------------------------------------------------

_PROPOSED = (
    "key", "value", "status", "explanation", "sources", "quote", "confidence", "reason", "proposed_by", "fact_id",
)  # fmt: skip


def project_candidate(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project a candidate: proposed with the fate the policy gave it, or decided later."""
    said = entry.metadata
    try:
        if said.get("event") == CANDIDATE_PROPOSED:
            return [_proposed(entry)]
        before = item_before(entry, lookup, "candidate") if said.get("event") == CANDIDATE_DECIDED else None
        if before is None:
            return []
        fate = {key: said.get(key) for key in ("status", "explanation", "fact_id")} | {"decided_by": entry.id}
        stored = StoredCandidate.from_wire(before.plain() | fate)
    except InvalidRecord:  # not written by one of our runs, so no candidate
        return []
    return [next_version(before, entry, stored.to_wire(), stored.status, before.trust, ())]


def _proposed(entry: LedgerEntry) -> Change:
    said = entry.metadata
    here = {"candidate_id": said.get("id"), "patch": entry.id, "trust": entry.trust, "decided_by": None}
    until = {"valid_to": said["valid_to"]} if "valid_to" in said else {}
    stored = StoredCandidate.from_wire(
        {key: said.get(key) for key in _PROPOSED} | here | until | {"proposed_at": entry.recorded_at}
    )
    return Change(
        id=stored.candidate_id,
        kind="candidate",
        status=stored.status,
        body=stored.to_wire(),
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=(*stored.sources, entry.id),
        name=digest_name(stored.key),
        user_id=entry.scope.user_id,
    )


def candidate_without(item: Item, lost: frozenset[str]) -> Rewritten | None:
    """A candidate without some of its sources. It survives with one of them; a decision's reason is lost with the
    decision.
    """
    stored = StoredCandidate.from_wire(item.plain())
    left = left_of(stored.sources, lost)
    if not left or stored.patch in lost:
        return None
    if stored.decided_by in lost:
        stored = stored.model_copy(update={"explanation": "the decision was forgotten", "decided_by": None})
    quote = None if stored.quote is None or stored.quote.event_id in lost else stored.quote
    kept = stored.model_copy(update={"sources": left, "quote": quote})
    return Rewritten(kept.to_wire(), item.status, item.trust)


# -- candidates ----------------------------------------------------------------------------------------
#
# Candidates of a user, and documents of a corpus, paged in the order in which they were first written.


def page_candidates(writer: Writer, status: str | None, asked: ListQuery) -> Iterator[Placed[Candidate]]:
    """This user's candidates, optionally of one status."""
    check_status(status)

    def make(reader: Reader, items: Sequence[Item]) -> list[Candidate | None]:
        return [view_candidate(reader, writer, StoredCandidate.from_wire(item.plain())) for item in items]

    user_id = writer.scope.user_id
    reading = read_listed("candidate", user_id, make, asked, status)
    return seek(writer.ctx, writer.scope.tenant_id, reading, asked, find_listed(("candidate",), user_id, make))


def page_documents(
    ctx: Context, corpus: CorpusScope, asked: ListQuery, *, include_all: bool
) -> Iterator[Placed[CorpusDocument]]:
    """The live documents of a corpus, or every revision that was not forgotten."""

    def make(reader: Reader, items: Sequence[Item]) -> list[CorpusDocument | None]:
        viewed = [view_document(reader, corpus, item) for item in items]
        return [each if matches(asked.q, each.document_id, each.title) else None for each in viewed]

    reading = read_listed("document", corpus.owner, make, asked, None if include_all else "live")
    return seek(ctx, corpus.tenant_id, reading, asked)
