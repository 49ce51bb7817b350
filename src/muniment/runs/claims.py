"""A run's claims, conflicts, failures, questions and next actions, and the evidence they cite.

Each change is one `state_patch` entry. Each pointer is checked against the stored bytes when it is written (CS-06).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from muniment.contracts.snapshot import EvidencePointer
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import texts
from muniment.core.ports.schema import LINKS
from muniment.core.requests import ByRule, Expect, Request, checked, is_listing, one_of
from muniment.core.scope import (
    LEDGER_CORPUS,
    ChunkSpan,
    EventSpan,
    Pointer,
    Span,
    derive_evidence_id,
    lowest_trust,
    owner_of,
    quote_hash,
)
from muniment.errors import Conflict, DuplicateId, InvalidInput, MunimentError, NotFound, QuoteMismatch
from muniment.memory.patches import Decided, Texts, Writer, draft_patch, said_of, text_of, texts_of, write_patches
from muniment.runs.fold import failure_fingerprint, name_of_words
from muniment.runs.records import RunClaim, RunConflict
from muniment.store.admission import is_id
from muniment.store.items import Item, latest, newest_items, taken_ids
from muniment.store.ledger import (
    ACTIONS_PLANNED,
    CLAIM_DEMOTED,
    CLAIM_MADE,
    CLAIM_RETRACTED,
    CLAIM_VERIFIED,
    CONFLICT_RECORDED,
    CONFLICT_SETTLED,
    FAILURE_RECORDED,
    QUESTION_CLOSED,
    QUESTION_OPENED,
    pointer_address,
)
from muniment.store.reading import pointer_of, resolve_in, source_row

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope, Trust

__all__ = [
    "close_question",
    "make_claim",
    "open_question",
    "owners_of",
    "plan_actions",
    "pointer_to",
    "pointers_of",
    "record_conflict",
    "record_failure",
    "retract_claim",
    "settle_conflict",
    "verify_claim",
]

MADE_AS = ("candidate", "verified")
_STATUS = "{given!r:.40} is not a status a claim can be made with"
_ID_HINT = "leave id out to have one minted"
_STATUS_HINT = f"one of {', '.join(MADE_AS)}; retract_claim takes one back"
_REFS = ("evidence_refs", "refuted_by", "side_a_refs", "side_b_refs")


# -- evidence -----------------------------------------------------------------------------------------

_NO_EVIDENCE = ("state_patch", "system", "step")


class Cited(NamedTuple):
    """A pointer that was checked successfully."""

    pointer: EvidencePointer
    trust: Trust
    role: str


def pointers_of(evidence: Any, path: str) -> list[Pointer]:
    """Parse a caller's evidence: event ids, pointer records or their plain forms. Done before any transaction."""
    if not is_listing(evidence):
        raise InvalidInput("evidence is a list of pointers", path=path, hint="wrap a single one in a list")
    found: list[Pointer] = []
    for index, given in enumerate(evidence):
        with _at(path, index):
            found.append(pointer_of(given))
    return found


Pointers = Annotated[list[Pointer], ByRule(pointers_of)]
"""Request field: evidence, as parsed by `pointers_of`."""


def owners_of(scope: Scope, pointers: Iterable[Pointer]) -> list[str]:
    """The owners of the cited documents; their locks keep them from being forgotten during the write."""
    corpora = {pointer.corpus_id for pointer in pointers if isinstance(pointer, ChunkSpan)}
    return [owner_of(corpus_id, user) for corpus_id in sorted(corpora) for user in (None, scope.user_id)]


def cite(reader: Reader, scope: Scope, pointers: Sequence[Pointer], path: str) -> list[Cited]:
    """Each pointer in snapshot form, with its bytes checked."""
    found: dict[str, Cited] = {}
    for index, pointer in enumerate(pointers):
        with _at(path, index):
            cited = _cite(reader, scope, pointer)
        found.setdefault(cited.pointer.evidence_id, cited)
    return list(found.values())


@contextmanager
def _at(path: str, index: int) -> Iterator[None]:
    """Add the pointer's position to errors."""
    try:
        yield
    except MunimentError as error:
        error.path = f"{path}[{index}]{(error.path or '$')[1:]}"
        raise


def _cite(reader: Reader, scope: Scope, pointer: Pointer) -> Cited:
    row = source_row(reader, pointer, scope.user_id)
    if row.kind in _NO_EVIDENCE:
        raise InvalidInput(
            f"the event {row.id} is a {row.kind} entry, which is no evidence",
            hint="point to what was said, to a tool's result or to a chunk of a document",
        )
    resolved = resolve_in(reader, scope.tenant_id, pointer, scope.user_id)
    if not resolved.data:
        raise InvalidInput("there is nothing at the span", path="$.span", hint="point to words that are there")
    corpus_id, chunk_id = pointer_address(pointer)
    digest = quote_hash(resolved.text)
    plain = {
        "evidence_id": derive_evidence_id(corpus_id, chunk_id, resolved.span, digest),
        "chunk_id": chunk_id,
        "span": resolved.span.to_wire(),
        "corpus_id": corpus_id,
        "quote_hash": digest,
    }
    return Cited(EvidencePointer.from_wire(plain), row.trust, row.role)


def cite_again(reader: Reader, scope: Scope, pointers: Sequence[EvidencePointer], path: str) -> list[Cited]:
    """Check existing pointers again: their quotes must still be there."""
    again = cite(reader, scope, [pointer_to(pointer) for pointer in pointers], path)
    for index, (before, cited) in enumerate(zip(pointers, again, strict=True)):
        if before.evidence_id != cited.pointer.evidence_id:
            raise QuoteMismatch(
                f"the bytes at the span of {before.evidence_id} are not those that were quoted",
                path=f"{path}[{index}]",
                hint="the event was altered on disk: run `muniment verify`, and retract the claim",
                details={"evidence_id": before.evidence_id, "chunk_id": before.chunk_id},
            )
    return again


def pointer_to(pointer: EvidencePointer) -> Pointer:
    """Convert a snapshot's pointer to a resolvable one."""
    plain = pointer.to_wire()
    span = Span.from_wire(plain["span"])
    if plain.get("corpus_id", LEDGER_CORPUS) == LEDGER_CORPUS:
        return EventSpan(event_id=pointer.chunk_id, span=span)
    return ChunkSpan(corpus_id=plain["corpus_id"], chunk_id=pointer.chunk_id, span=span)


def sources_of(cited: Iterable[Cited]) -> list[str]:
    """The events and chunks cited, deduplicated."""
    return list(dict.fromkeys(each.pointer.chunk_id for each in cited))


# -- claims -------------------------------------------------------------------------------------------


class ClaimRequest(Request):
    """The fields of a claim besides its statement."""

    status: Annotated[str, one_of(MADE_AS, _STATUS, hint=_STATUS_HINT)]
    evidence: Pointers
    depends_on: Texts
    id: Annotated[str | None, Expect("wanted an id of 1 to 256 characters", is_id, hint=_ID_HINT)]


def make_claim(
    writer: Writer, statement: Any, evidence: Any, status: Any, claim_id: str | None, depends_on: Iterable[str]
) -> RunClaim:
    """Make a new claim, or return the run's existing one with the same words."""
    asked = checked(ClaimRequest, status=status, evidence=evidence, depends_on=depends_on, id=claim_id)
    said = said_of(writer, statement, "$.statement")
    pointers, basis = asked.evidence, asked.depends_on
    fresh = claim_id if claim_id is not None else writer.ctx.ids.new("clm")
    chosen: list[str] = []

    def decide(tx: Transaction) -> Decided:
        cited = cite(tx, writer.scope, pointers, "$.evidence")
        known = _record_of_words(tx, writer, "claim", said, "retracted")
        chosen[:] = [fresh if known is None else known.id]
        if known is not None:
            _check_same(known, cited, status, basis, claim_id)
            return Decided([])
        if claim_id is not None and taken_ids(tx, [claim_id]):
            raise DuplicateId(f"the id {claim_id!r:.80} is taken", path="$.id", hint=_ID_HINT)
        _check_basis(tx, writer, basis)
        if status == "verified":
            _check_verified(tx, writer, cited)
        said_of_it = {
            "id": fresh,
            "statement": said,
            "status": status,
            "evidence_refs": _wire(cited),
            "depends_on": list(basis),
            "sources": sources_of(cited),
        }
        return Decided([draft_patch(CLAIM_MADE, _trust(cited), said_of_it)])

    return write_patches(writer, decide, lambda reader: _claim(reader, writer, chosen[0])[1], _owners(writer, pointers))


def _check_same(known: Item, cited: Sequence[Cited], status: str, basis: Sequence[str], claim_id: str | None) -> None:
    """Refuse a repeated claim that adds anything to the existing one."""
    before = RunClaim.from_wire(known.plain())
    adds = _added(before, cited) or not set(basis) <= set(before.depends_on)
    if not adds and status in ("candidate", before.status) and claim_id in (None, before.claim_id):
        return
    raise Conflict(
        f"the run claims this already, as {before.claim_id}",
        path="$.statement",
        hint="verify_claim(claim_id, evidence=…) adds evidence to it",
        details={"claim_id": before.claim_id, "status": before.status},
    )


def verify_claim(writer: Writer, claim_id: Any, evidence: Any) -> RunClaim:
    """Verify a claim on its own and additional evidence; for a verified one, add to its evidence."""
    pointers = pointers_of(evidence, "$.evidence")

    def decide(tx: Transaction) -> Decided:
        item, claim = _claim(tx, writer, claim_id)
        if claim.status == "retracted":
            raise Conflict(f"the claim {claim.claim_id} was retracted", path="$.claim_id", hint="make a new claim")
        cited = cite(tx, writer.scope, pointers, "$.evidence")
        before = cite_again(tx, writer.scope, claim.evidence_refs, "$.evidence_refs")
        _check_basis(tx, writer, claim.depends_on)
        _check_verified(tx, writer, [*before, *cited])
        if claim.status == "verified" and not _added(claim, cited):
            return Decided([])
        said = {"id": claim.claim_id, "evidence_refs": _wire(cited), "sources": sources_of(cited)}
        return Decided([draft_patch(CLAIM_VERIFIED, _trust([*before, *cited]), said)], item.created_at)

    beside = _owners(writer, pointers, "claim", claim_id)
    return write_patches(writer, decide, lambda reader: _claim(reader, writer, claim_id)[1], beside)


def _added(claim: RunClaim, cited: Sequence[Cited]) -> bool:
    held = {ref.evidence_id for ref in claim.evidence_refs}
    return any(each.pointer.evidence_id not in held for each in cited)


def retract_claim(writer: Writer, claim_id: Any, reason: Any, evidence: Any) -> RunClaim:
    """Retract a claim. Verified claims that depend on it become candidates again in the same transaction."""
    why = said_of(writer, reason, "$.reason")
    pointers = pointers_of(evidence, "$.evidence")

    def decide(tx: Transaction) -> Decided:
        item, claim = _claim(tx, writer, claim_id)
        if claim.status == "retracted":
            raise Conflict(f"the claim {claim.claim_id} was retracted already", path="$.claim_id")
        cited = cite(tx, writer.scope, pointers, "$.evidence")
        said = {
            "id": claim.claim_id,
            "reason": why,
            "evidence_refs": _wire(cited),
            "sources": sources_of(cited),
        }
        drafts = [draft_patch(CLAIM_RETRACTED, _trust(cited), said)]
        for fallen in _dependents(tx, writer, claim.claim_id):
            reason = f"it depends on {claim.claim_id}, which was retracted"
            drafts.append(draft_patch(CLAIM_DEMOTED, "assistant", {"id": fallen, "reason": reason}))
        return Decided(drafts, item.created_at)

    beside = _owners(writer, pointers, "claim", claim_id)
    return write_patches(writer, decide, lambda reader: _claim(reader, writer, claim_id)[1], beside)


def _dependents(reader: Reader, writer: Writer, claim_id: str) -> list[str]:
    """Verified claims of the run that rest on this one, directly or through others."""
    reached = {claim_id}
    frontier, fallen = [claim_id], []
    while frontier:
        resting = texts(reader, LINKS, "item_id", (("source_id", "in", tuple(frontier)),))
        frontier = []
        for id_ in sorted(set(resting) - reached):
            reached.add(id_)
            item = latest(reader, id_)
            if item is None or item.kind != "claim" or item.run_id != writer.scope.run_id or item.body is None:
                continue
            frontier.append(id_)
            if item.status == "verified":
                fallen.append(id_)
    return fallen


def _claim(reader: Reader, writer: Writer, claim_id: Any) -> tuple[Item, RunClaim]:
    item = _own(reader, writer, "claim", claim_id, "$.claim_id")
    return item, RunClaim.from_wire(item.plain())


def _record_of_words(reader: Reader, writer: Writer, kind: str, words: str, but: str | None = None) -> Item | None:
    """The record of this run with exactly these words, unless it was forgotten or has the status `but`."""
    name = name_of_words(writer.scope.run_id, words)
    where: tuple[Condition, ...] = (("kind", "=", kind), ("user_id", "=", writer.scope.user_id), ("name", "=", name))
    return next((item for item in newest_items(reader, where) if item.status != but), None)


def _own(reader: Reader, writer: Writer, kind: str, id_: Any, path: str) -> Item:
    """A record of this run; raises for a forgotten one."""
    item = latest(reader, text_of(id_, path))
    if item is None or item.kind != kind or item.run_id != writer.scope.run_id or item.user_id != writer.scope.user_id:
        raise NotFound(f"no {kind} {id_!r:.80} in this run", path=path, hint=f"run.{kind}s() lists those there are")
    item.plain()
    return item


def _check_basis(reader: Reader, writer: Writer, basis: Sequence[str]) -> None:
    for index, id_ in enumerate(basis):
        path = f"$.depends_on[{index}]"
        if _own(reader, writer, "claim", id_, path).status == "retracted":
            raise Conflict(f"the claim {id_} was retracted", path=path, hint="rest it on a claim that stands")


def _check_verified(reader: Reader, writer: Writer, cited: Sequence[Cited]) -> None:
    """A verified claim needs valid evidence (CS-06) beyond the agent's own word."""
    if not cited:
        raise InvalidInput(
            "a verified claim needs evidence",
            path="$.evidence",
            hint="give at least one pointer: an event id, or {event_id, quote}",
        )
    if not writer.ctx.policy.compaction.own_words_verify and all(each.role == "assistant" for each in cited):
        raise InvalidInput(
            "what the agent said itself does not verify a claim",
            path="$.evidence",
            hint="point to the user, a tool's result or a document",
        )
    _check_standing(reader, writer, cited)


def _check_standing(reader: Reader, writer: Writer, cited: Sequence[Cited]) -> None:
    from muniment.memory.corpus import standing_of

    standing = standing_of(reader, writer.scope.tenant_id, sources_of(cited))
    for index, each in enumerate(cited):
        if standing.get(each.pointer.chunk_id) == "retracted":
            raise Conflict(
                f"the document of chunk {each.pointer.chunk_id} was retracted",
                path=f"$.evidence[{index}]",
                hint="cite a source that stands",
            )


# -- conflicts, failures, questions -------------------------------------------------------------------


def record_conflict(writer: Writer, description: Any, side_a: Any, side_b: Any, claims: Iterable[str]) -> RunConflict:
    """Record a conflict between two sides, each with its evidence (CS-07)."""
    said = said_of(writer, description, "$.description")
    given = {"side_a": pointers_of(side_a, "$.side_a"), "side_b": pointers_of(side_b, "$.side_b")}
    between = texts_of(claims, "$.claims")
    fresh = writer.ctx.ids.new("cfl")

    def decide(tx: Transaction) -> Decided:
        sides = {name: cite(tx, writer.scope, pointers, f"$.{name}") for name, pointers in given.items()}
        for name, cited in sides.items():
            if not cited:
                raise InvalidInput(
                    "a conflict needs evidence on both sides", path=f"$.{name}", hint="two on one side do not do"
                )
        for index, claim_id in enumerate(between):
            _own(tx, writer, "claim", claim_id, f"$.claims[{index}]")
        both = [*sides["side_a"], *sides["side_b"]]
        said_of_it = {
            "id": fresh,
            "description": said,
            "side_a_refs": _wire(sides["side_a"]),
            "side_b_refs": _wire(sides["side_b"]),
            "claim_ids": list(between),
            "sources": sources_of(both),
        }
        return Decided([draft_patch(CONFLICT_RECORDED, _trust(both), said_of_it)])

    beside = _owners(writer, [*given["side_a"], *given["side_b"]])
    return write_patches(writer, decide, lambda reader: _conflict(reader, writer, fresh)[1], beside)


def settle_conflict(writer: Writer, conflict_id: Any, resolution: Any) -> RunConflict:
    said = said_of(writer, resolution, "$.resolution")

    def decide(tx: Transaction) -> Decided:
        item, conflict = _conflict(tx, writer, conflict_id)
        if conflict.status == "settled":
            raise Conflict(f"the conflict {conflict.conflict_id} is settled already", path="$.conflict_id")
        patch = draft_patch(CONFLICT_SETTLED, "assistant", {"id": conflict.conflict_id, "resolution": said})
        return Decided([patch], item.created_at)

    beside = _owners(writer, (), "conflict", conflict_id)
    return write_patches(writer, decide, lambda reader: _conflict(reader, writer, conflict_id)[1], beside)


def _conflict(reader: Reader, writer: Writer, conflict_id: Any) -> tuple[Item, RunConflict]:
    item = _own(reader, writer, "conflict", conflict_id, "$.conflict_id")
    return item, RunConflict.from_wire(item.plain())


def record_failure(writer: Writer, category: Any, where: Any, why: Any, evidence: Any) -> str:
    """Record a failure; return the fingerprint under which the run's log counts it."""
    named = {"category": category, "where": where, "why": why}
    said = {name: said_of(writer, value, f"$.{name}") for name, value in named.items()}
    pointers = pointers_of(evidence, "$.evidence")
    fingerprint = failure_fingerprint(**said)
    fresh = writer.ctx.ids.new("flr")

    def decide(tx: Transaction) -> Decided:
        cited = cite(tx, writer.scope, pointers, "$.evidence")
        said_of_it = {"id": fresh, "fingerprint": fingerprint, "sources": sources_of(cited)} | said
        return Decided([draft_patch(FAILURE_RECORDED, _trust(cited), said_of_it)])

    return write_patches(writer, decide, lambda _reader: fingerprint, _owners(writer, pointers))


def open_question(writer: Writer, text: Any) -> str:
    """Record an open question; return its id. Asking it twice gives one question."""
    said = said_of(writer, text, "$.text")
    fresh = writer.ctx.ids.new("qst")
    chosen: list[str] = []

    def decide(tx: Transaction) -> Decided:
        known = _record_of_words(tx, writer, "question", said)
        chosen[:] = [fresh if known is None else known.id]
        if known is not None and known.status == "open":
            return Decided([])
        after = "" if known is None else known.created_at
        return Decided([draft_patch(QUESTION_OPENED, "assistant", {"id": chosen[0], "text": said})], after)

    return write_patches(writer, decide, lambda _reader: chosen[0])


def close_question(writer: Writer, question: Any, answer: Any) -> str:
    """Close a question, given by id or words."""
    named = said_of(writer, question, "$.question")
    said = {} if answer is None else {"answer": said_of(writer, answer, "$.answer")}
    chosen: list[str] = []

    def decide(tx: Transaction) -> Decided:
        known = _record_of_words(tx, writer, "question", named)
        item = known or _own(tx, writer, "question", named, "$.question")
        if item.status != "open":
            raise Conflict(f"the question {item.id} is closed already", path="$.question")
        chosen[:] = [item.id]
        return Decided([draft_patch(QUESTION_CLOSED, "assistant", {"id": item.id} | said)], item.created_at)

    return write_patches(writer, decide, lambda _reader: chosen[0])


def plan_actions(writer: Writer, actions: Any) -> tuple[str, ...]:
    """Plan at most three next actions, replacing the previous plan."""
    planned = texts_of(actions, "$.actions")
    limit = writer.ctx.policy.compaction.next_actions_max
    if len(planned) > limit:
        raise InvalidInput(
            f"{len(planned)} next actions are over the limit of {limit}", path="$.actions", hint="name the first ones"
        )
    said = tuple(said_of(writer, each, f"$.actions[{at}]") for at, each in enumerate(planned))
    draft = draft_patch(ACTIONS_PLANNED, "assistant", {"actions": list(said)})
    return write_patches(writer, lambda _tx: Decided([draft]), lambda _reader: said)


def _owners(writer: Writer, pointers: Iterable[Pointer], kind: str = "", id_: Any = None) -> list[str]:
    """The owners of documents cited by these pointers and by the changed record; locked against a concurrent forget."""
    cited = list(pointers)
    if isinstance(id_, str):
        item = writer.ctx.engine.read(writer.scope.tenant_id, lambda reader: latest(reader, id_))
        is_own = item is not None and item.kind == kind and item.user_id == writer.scope.user_id
        if item is not None and is_own and item.body is not None:
            refs = [ref for name in _REFS for ref in item.plain().get(name) or ()]
            cited += [pointer_to(EvidencePointer.from_wire(ref)) for ref in refs]
    return owners_of(writer.scope, cited)


# -- shared -------------------------------------------------------------------------------------------


def _wire(cited: Iterable[Cited]) -> list[dict[str, Any]]:
    return [each.pointer.to_wire() for each in cited]


def _trust(cited: Iterable[Cited]) -> Trust:
    """The lowest trust of the evidence; without any, that of the agent's own word."""
    trusts = [each.trust for each in cited]
    return lowest_trust(trusts) if trusts else "assistant"
