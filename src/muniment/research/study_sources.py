"""The sources of a study: what was supplied becomes documents of its corpus, what was looked at is kept.

Both settle the status of every citation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.requests import is_listing
from muniment.errors import InvalidInput, WrongStage
from muniment.memory.corpus import Corpus
from muniment.research.citations import Look, citations_text, gather_sources, settle
from muniment.research.gates import gate_c
from muniment.research.reading.outputs import Reading, read_markdown
from muniment.research.run_records import Citation, GateResult, SourceCheck, SuppliedSource
from muniment.research.study_store import CITATIONS, New, Step, StudyView, checks_of
from muniment.research.urls import cid_of, normalize_url, try_normalize_url
from muniment.research.waves import gate_of_waves, need_gate, need_stage, without_secrets

if TYPE_CHECKING:
    from muniment.core.policy import ResearchPolicy
    from muniment.memory.document_writing import NewDocument
    from muniment.memory.documents.records import CorpusDocument
    from muniment.store.context import Context

__all__ = [
    "Shelved",
    "add_sources",
    "first_chunks",
    "gate_of_citations",
    "look_at",
    "readings_of",
    "settle_citations",
    "shelved_of",
    "sources_given",
]

_KINDS = ("page", "snippet")
_LOOKED = "looked"
"""Of a document that came from looking at its address: nobody handed it in."""


class Shelved(NamedTuple):
    """The documents that hold a source's text, pages first."""

    documents: tuple[CorpusDocument, ...]

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        return tuple(chunk_id for document in self.documents for chunk_id in document.chunk_ids)


def sources_given(given: Any) -> list[SuppliedSource]:
    """Pages and snippets as records, or as plain data."""
    if isinstance(given, SuppliedSource) or not is_listing(given):
        raise InvalidInput("sources is a list", path="$.sources", hint="wrap a single one in a list")
    found: list[SuppliedSource] = []
    for index, each in enumerate(given):
        if isinstance(each, SuppliedSource):
            found.append(each)
            continue
        if not isinstance(each, Mapping):
            raise InvalidInput(
                "a source is an object with url and text", path=f"$.sources[{index}]", hint='{"url": …, "text": …}'
            )
        found.append(SuppliedSource.of_given(dict(each), "not a valid source", path=f"$.sources[{index}]"))
    return found


def add_sources(ctx: Context, corpus: Corpus, sources: Sequence[SuppliedSource], *, looked: bool = False) -> list[str]:
    """Keep pages and snippets as documents named by their citation; answers the cids. All are read before
    the first is kept."""
    cids: list[str] = []
    read: list[NewDocument] = []
    for index, source in enumerate(sources):
        try:
            url = normalize_url(without_secrets(ctx, source.url))
        except InvalidInput as error:
            error.path = f"$.sources[{index}].url"
            raise
        cids.append(cid_of(url))
        try:
            read.append(_read(ctx, corpus, source, url, looked))
        except InvalidInput as error:
            error.path = f"$.sources[{index}]{(error.path or '$')[1:]}"
            raise
    for document in read:
        corpus._keep(document)
    return list(dict.fromkeys(cids))


def _read(ctx: Context, corpus: Corpus, source: SuppliedSource, url: str, looked: bool) -> NewDocument:
    return corpus._read(
        source.text,
        document_id=f"{cid_of(url)}:{source.kind}",
        media_type=source.media_type,
        title=None if source.title is None else source.title[: ctx.policy.corpus.title_chars_max],
        source=url,
        metadata={_LOOKED: True} if looked else None,
    )


def shelved_of(corpus: Corpus) -> dict[str, Shelved]:
    """Cid → the documents that hold its text."""
    found: dict[str, dict[str, CorpusDocument]] = {}
    for document in corpus.documents():
        cid, _, kind = document.document_id.partition(":")
        found.setdefault(cid, {})[kind] = document
    return {cid: Shelved(tuple(by_kind[kind] for kind in _KINDS if kind in by_kind)) for cid, by_kind in found.items()}


def readings_of(view: StudyView) -> Iterator[tuple[str, Reading]]:
    """The accepted outputs in the order of their perspectives, each read when its turn comes: a reading is large."""
    for result in view.manifest.results:
        if result.accepted and result.path is not None:
            yield result.perspective_id, read_markdown(view.text(result.path))


def settle_citations(view: StudyView, corpus: Corpus, policy: ResearchPolicy, now: str) -> tuple[Step, list[Citation]]:
    """Every source of the accepted outputs with its status, from what is known of it now."""
    need_stage(view, "wave1", "wave2", "citations", "summaries", "synthesis", doing="settling citations")
    waves = gate_of_waves(view, policy, now)
    if view.manifest.stage == "wave1" and view.manifest.pivot is None:
        raise WrongStage("the first wave has not been weighed yet", path="$.stage", hint="pivot() first")
    need_gate(waves)
    found = gather_sources(readings_of(view))
    named = {each.cid for each in found}
    shelves = {cid: each for cid, each in shelved_of(corpus).items() if cid in named}
    citations = settle(found, _looks(corpus, shelves), checks_of(view.ctx, view.scope), policy)
    gate = gate_of_citations(citations, found, policy, now)
    step = Step(
        what=f"settled {len(citations)} citations",
        stage="citations",
        gates=[waves, gate, *(GateResult(gate=name, status="not_run") for name in ("D", "E"))],
        artifacts=[New(CITATIONS, citations_text(citations))],
        removed=[path for path in view.artifacts if path.startswith(("summaries/", "claims/"))],
        sources=first_chunks(shelves.values()),
    )
    return step, citations


def gate_of_citations(
    citations: Sequence[Citation], found: Sequence[Any], policy: ResearchPolicy, now: str
) -> GateResult:
    known = {citation.cid for citation in citations}
    return gate_c(citations, [each.cid for each in found if each.cid not in known], policy, now)


def first_chunks(shelved: Iterable[Shelved]) -> list[str]:
    """One chunk of each document stands for it: a document is forgotten whole."""
    return [document.chunk_ids[0] for each in shelved for document in each.documents if document.chunk_ids]


def _looks(corpus: Corpus, shelves: Mapping[str, Shelved]) -> dict[str, Look]:
    """What is stored of each source."""
    looks: dict[str, Look] = {}
    for cid, shelved in shelves.items():
        document = shelved.documents[-1]  # a snippet, where there is one, is what somebody picked
        text = "" if not document.chunk_ids else corpus.chunk(document.chunk_ids[0]).text
        looks[cid] = Look(
            title=document.title,
            text=text,
            corpus_id=corpus.corpus_id,
            chunk_ids=shelved.chunk_ids,
            added_at=document.added_at,
            supplied=any(_LOOKED not in each.metadata for each in shelved.documents),
        )
    return looks


def _check_of(ctx: Context, url: str, looked: Any, now: str) -> SourceCheck:
    plain: dict[str, Any] = {
        "cid": cid_of(url),
        "url": url,
        "status": looked.status,
        "reason": without_secrets(ctx, looked.reason),
        "checked_at": now,
    }
    if looked.http_status is not None:
        plain["http_status"] = looked.http_status
    final = None if looked.final_url is None else try_normalize_url(without_secrets(ctx, looked.final_url))
    if final is not None and final != url:
        plain["final_url"] = final
    return SourceCheck.model_validate(plain)


def look_at(view: StudyView, corpus: Corpus, checker: Any, urls: Sequence[str], now: str) -> list[SourceCheck]:
    """Look at addresses, keep the text of those that answered with some, and say what came of each."""
    checks: list[SourceCheck] = []
    pages: list[SuppliedSource] = []
    answered = list(checker.check_many(list(urls)))
    if len(answered) != len(urls):
        raise InvalidInput(f"{len(answered)} answers for {len(urls)} addresses", path="$.checker")
    for written, looked in zip(urls, answered, strict=True):
        url = normalize_url(without_secrets(view.ctx, written))
        checks.append(_check_of(view.ctx, url, looked, now))
        if looked.status == "valid" and looked.text and looked.text.strip():
            pages.append(
                SuppliedSource(
                    url=url, text=looked.text, kind="page", title=looked.title or None, media_type=looked.media_type
                )
            )
    add_sources(view.ctx, corpus, pages, looked=True)
    return checks
