"""Adding documents to a corpus and retracting them. Whoever does so holds the lock of the corpus, as a forget does.

A revision is one session with one run, written in one transaction: the run's start, what is told of the document, its
chunks in order, the run's end. What a later revision or a retraction changes is told by an entry as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from muniment.core.canonical import canonical_text, short_id
from muniment.core.ports.engine import KeyTaken, Reader, Transaction
from muniment.core.scope import Scope, Span
from muniment.errors import DuplicateId
from muniment.memory.document_reading import (
    CorpusScope,
    find_newest,
    next_revision,
    revisions_named,
    revisions_of,
    view_document,
    view_session,
)
from muniment.memory.documents.records import CorpusDocument
from muniment.memory.patches import check_open, draft_patch
from muniment.store.admission import admit
from muniment.store.append import Batch, append_batches, append_in, opening_draft, prepare_batch
from muniment.store.context import Context
from muniment.store.items import Item, digest_name, lock_memory
from muniment.store.ledger import DOCUMENT_ADDED, DOCUMENT_RETRACTED, RUN_FINISHED, EntryDraft, ToolCall

if TYPE_CHECKING:
    from muniment.memory.documents.document import Passage
    from muniment.store.admission import Admitted

__all__ = ["TOOL", "NewDocument", "add_document", "add_documents", "retract_document"]

R = TypeVar("R")

TOOL = "corpus"
"""The tool that chunks come from, and the agent of their runs."""
_COMPARED = ("digest", "media_type", "title", "source", "metadata")


class NewDocument(NamedTuple):
    """A document that is to be added: read, checked, redacted."""

    document_id: str
    is_anonymous: bool
    """The caller gave no id: the same text is the same document."""
    said: dict[str, Any]
    """What is told of it: what is compared, and its size."""
    ts: str | None
    passages: Sequence[Passage]

    def is_same(self, item: Item) -> bool:
        """Is this the very document that stands there?"""
        kept = item.plain()
        return item.status == "live" and all(self.said.get(key) == kept.get(key) for key in _COMPARED)


class _Plan(NamedTuple):
    """The place of a new document among those that are there."""

    same: Item | None
    """The very document, where it is there already."""
    revision: int
    supersedes: Item | None


Added = tuple[CorpusScope, NewDocument]
"""A document and where it goes."""


def add_document(ctx: Context, corpus: CorpusScope, new: NewDocument) -> CorpusDocument:
    """Add the document, or answer the one that is there already."""

    (document,) = _add(ctx, [(corpus, new)], view_session)
    return document


def add_documents(ctx: Context, added: Sequence[Added], look: Callable[[Reader, CorpusScope, str], R]) -> list[R]:
    """Add documents of one tenant, of one corpus or of several and each once, in one transaction.

    Answers what `look` sees of each in that transaction, by its session.
    """
    _check_once(added)
    return _add(ctx, added, look)


def _check_once(added: Sequence[Added]) -> None:
    """Refuse two texts for one document in one call: nobody could say which is the later."""
    seen: dict[tuple[CorpusScope, str], int] = {}
    for index, (corpus, new) in enumerate(added):
        is_same = canonical_text([new.said.get(key) for key in _COMPARED]) if new.is_anonymous else new.document_id
        first = seen.setdefault((corpus, is_same), index)
        if first != index:
            what = "the same text" if new.is_anonymous else f"the document {new.document_id!r:.80}"
            raise DuplicateId(
                f"{what} is given twice for the corpus {corpus.corpus_id!r}, at {first} and {index}",
                path=f"$[{index}].document_id",
                hint="give each document once",
            )


def _add(ctx: Context, added: Sequence[Added], look: Callable[[Reader, CorpusScope, str], R]) -> list[R]:
    """What takes time is done before the transaction. Answers what `look` sees of each session when it is there."""
    tenant_id = added[0][0].tenant_id
    while True:
        plans = ctx.engine.read(tenant_id, lambda reader: _plans(reader, added))
        found = _add_as(ctx, added, plans, look)
        if found is not None:
            return found


def _plans(reader: Reader, added: Sequence[Added]) -> list[_Plan]:
    """The place of each document, corpus by corpus."""
    named: dict[CorpusScope, list[str]] = {}
    for corpus, new in added:
        if not new.is_anonymous:
            named.setdefault(corpus, []).append(new.document_id)
    found = {corpus: revisions_of(reader, corpus, ids) for corpus, ids in named.items()}
    return [
        _plan_anonymous(reader, corpus, new) if new.is_anonymous else _plan_named(reader, corpus, new, found[corpus])
        for corpus, new in added
    ]


def _plan_anonymous(reader: Reader, corpus: CorpusScope, new: NewDocument) -> _Plan:
    """The plan for a document that came without an id: the one that says the same, or a new document."""
    alike = revisions_named(reader, corpus, digest_name(new.said["digest"]))
    return _Plan(next(filter(new.is_same, alike), None), 1, None)


def _plan_named(reader: Reader, corpus: CorpusScope, new: NewDocument, found: Mapping[str, dict[int, Item]]) -> _Plan:
    """The plan for a document that came with an id: the revision it becomes, or the one it equals."""
    revisions = found[new.document_id]
    last = revisions[max(revisions)] if revisions else None
    if last is not None and new.is_same(last):
        return _Plan(last, max(revisions), None)
    revision = next_revision(reader, corpus, new.document_id, max(revisions, default=0))
    return _Plan(None, revision, last if last is not None and last.status == "live" else None)


def _add_as(
    ctx: Context, added: Sequence[Added], plans: Sequence[_Plan], look: Callable[[Reader, CorpusScope, str], R]
) -> list[R] | None:
    """Write what was planned; None where a corpus has changed meanwhile and it has to be planned again."""
    sessions: list[str] = []
    batches: list[Batch] = []
    opening = _opening(ctx)
    for (corpus, new), plan in zip(added, plans, strict=True):
        if plan.same is not None:
            sessions.append(plan.same.id)
            continue
        session_id = corpus.session_id(new.document_id, plan.revision)
        scope = _scope(corpus, session_id, short_id("run", [corpus.tenant_id, session_id]))
        after = "" if plan.supersedes is None else plan.supersedes.created_at
        sessions.append(session_id)
        batches.append(prepare_batch(ctx, scope, _drafts(corpus, new, plan, session_id), opening, after=after))

    def work(tx: Transaction) -> list[R] | None:
        lock_memory(tx, *(corpus.owner for corpus, _ in added))
        if _plans(tx, added) != plans:
            return None
        append_batches(ctx, tx, batches)
        return seen(tx)

    def seen(reader: Reader) -> list[R]:
        return [look(reader, corpus, session_id) for (corpus, _), session_id in zip(added, sessions, strict=True)]

    tenant_id = added[0][0].tenant_id
    if not batches:
        return ctx.engine.read(tenant_id, seen)
    try:
        return ctx.write(tenant_id, work)
    except KeyTaken:
        named = f"the document {added[0][1].document_id!r:.80} needs" if len(added) == 1 else "these documents need"
        raise DuplicateId(
            f"an id that {named} is taken", path="$.document_id", hint="add it under another id"
        ) from None


def _scope(corpus: CorpusScope, session_id: str, run_id: str) -> Scope:
    return Scope(
        tenant_id=corpus.tenant_id,
        user_id=corpus.owner,
        agent_id=TOOL,
        session_id=session_id,
        run_id=run_id,
    )


def _opening(ctx: Context) -> Admitted:
    return admit(opening_draft({"task_type": TOOL}), ctx.policy.ledger)


_END = EntryDraft(
    kind="system",
    role="system",
    content="",
    metadata={"event": RUN_FINISHED, "stop_reason": "OBJECTIVE_ACHIEVED"},
)


def _drafts(corpus: CorpusScope, new: NewDocument, plan: _Plan, session_id: str) -> list[EntryDraft]:
    told = {"id": session_id, "document_id": new.document_id, "revision": plan.revision} | new.said
    told["is_anonymous"] = new.is_anonymous
    if plan.supersedes is not None:
        told["supersedes"] = plan.supersedes.id
    added = draft_patch(DOCUMENT_ADDED, "external", told).model_copy(update={"ts": new.ts})
    chunks = [_chunk_draft(corpus, new, plan.revision, index) for index in range(len(new.passages))]
    return [added, *chunks, _END]


def _chunk_draft(corpus: CorpusScope, new: NewDocument, revision: int, index: int) -> EntryDraft:
    passage = new.passages[index]
    span = Span(start=passage.start, end=passage.end)
    return EntryDraft(
        kind="tool_result",
        role="tool",
        content=passage.text,
        speaker=new.said.get("title"),
        ts=new.ts,
        id=corpus.chunk_id(new.document_id, revision, span),
        metadata={
            "document_id": new.document_id,
            "revision": revision,
            "index": index,
            "start": span.start,
            "end": span.end,
            "headings": list(passage.headings),
        },
        tool=ToolCall(name=TOOL, ok=True),
        trust="external",
    )


def retract_document(ctx: Context, corpus: CorpusScope, document_id: str, reason: str) -> CorpusDocument:
    """Take a live document back: it stays what pointers point to, and is found no more."""
    run_id = ctx.ids.new("run")

    def work(tx: Transaction) -> CorpusDocument:
        lock_memory(tx, corpus.owner)
        item = find_newest(tx, corpus, document_id)
        check_open(item, ("live",), "retracted")
        told = draft_patch(DOCUMENT_RETRACTED, "external", {"id": item.id, "reason": reason})
        append_in(ctx, tx, _scope(corpus, item.id, run_id), [told, _END], _opening(ctx), item.created_at)
        return view_document(tx, corpus, find_newest(tx, corpus, document_id))

    return ctx.write(corpus.tenant_id, work)
