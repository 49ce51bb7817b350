"""The sources of a run (RP-03, RP-08): supplied or looked up, collected from outputs, assessed, checked against claims.

An output proves nothing about its sources. A source is valid if its text was supplied, or if its address was looked up
and answered; text that cannot be an address is recorded as an invalid source. Whether a source supports a claim is
decided by the fact checker on its stored text (`SourceJudge`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import canonical_text, parse_json
from muniment.core.policy import Policy, ResearchPolicy
from muniment.core.requests import is_listing
from muniment.core.text.sentences import sentence_spans
from muniment.errors import InvalidInput, InvalidRecord, Issue, TooLarge, WrongStage
from muniment.memory.corpus import Corpus
from muniment.research._markdown import Reading, read_markdown
from muniment.research.gates import gate_c
from muniment.research.records import Citation, CitationStatus, GateResult, SourceCheck, SuppliedSource, Support
from muniment.research.store import CITATIONS, NewArtifact, StudyChange, StudyView, checks_of
from muniment.research.urls import URL_CHARS_MAX, cid_of, normalize_url, try_normalize_url, without_credentials
from muniment.research.waves import gate_of_waves, need_gate, need_stage, without_secrets
from muniment.verify.facts import Source as CheckedText
from muniment.verify.facts import SourceText, check_source
from muniment.verify.results import fact_score, unit_score

if TYPE_CHECKING:
    from muniment.contracts.runs import FGFCReport
    from muniment.memory.documents import CorpusDocument, NewDocument
    from muniment.store.context import Context

_TITLE_CHARS_MAX = 300
_KINDS = ("page", "snippet")
_LOOKED = "looked"
"""Metadata key of documents obtained by looking up their address, rather than supplied."""


# -- texts of sources -----------------------------------------------------------------------------


class SourceDocuments(NamedTuple):
    """The documents with a source's text, pages first."""

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
    """Store pages and snippets as documents named by their citation; returns the cids. All are validated before the
    first is stored.
    """
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


def documents_of(corpus: Corpus) -> dict[str, SourceDocuments]:
    """Cid → the documents with its text."""
    found: dict[str, dict[str, CorpusDocument]] = {}
    for document in corpus.documents():
        cid, _, kind = document.document_id.partition(":")
        found.setdefault(cid, {})[kind] = document
    return {
        cid: SourceDocuments(tuple(by_kind[kind] for kind in _KINDS if kind in by_kind))
        for cid, by_kind in found.items()
    }


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
    """Look up addresses, store any text found, and return the results."""
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


# -- named sources --------------------------------------------------------------------------------------


class Address(NamedTuple):
    """An address and its id."""

    cid: str
    url: str
    """Normalised if possible, else as written. The cid is its hash."""
    problem: str | None
    """The reason it is not a web address."""


class NamedSource(NamedTuple):
    """A source of the run, as named in outputs."""

    cid: str
    url: str
    url_original: str
    title: str | None
    found_by: tuple[str, ...]
    problem: str | None


class StoredSource(NamedTuple):
    """The stored text of a source."""

    text: str
    corpus_id: str
    chunk_ids: tuple[str, ...]
    added_at: str
    title: str | None = None
    supplied: bool = True
    """Supplied by somebody, rather than obtained from its address."""


def identify(url: str) -> Address:
    """The source of an address. Invalid addresses also get an id, from their own text without any password."""
    try:
        normal = normalize_url(url)
    except InvalidInput as refused:
        written = _kept(url)
        return Address(cid_of(written), written, refused.message)
    return Address(cid_of(normal), normal, None)


def _kept(url: str) -> str:
    return without_credentials(url.strip())[:URL_CHARS_MAX]


def gather_sources(readings: Iterable[tuple[str, Reading]]) -> list[NamedSource]:
    """The distinct sources named in outputs, in order of first occurrence. `readings`: perspective id and output."""
    found: dict[str, NamedSource] = {}
    for perspective_id, reading in readings:
        for written in reading.urls:
            cid, url, problem = identify(written.url)
            title = _tidy(written.title)
            known = found.get(cid) or NamedSource(cid, url, _kept(written.url), title, (), problem)
            by = known.found_by if perspective_id in known.found_by else (*known.found_by, perspective_id)
            found[cid] = known._replace(found_by=by, title=known.title or title)
    return list(found.values())


def _tidy(title: str | None) -> str | None:
    return " ".join((title or "").split())[:_TITLE_CHARS_MAX].rstrip() or None


# -- settling -----------------------------------------------------------------------------------------


def settle(
    found: Sequence[NamedSource],
    stored: Mapping[str, StoredSource],
    checks: Mapping[str, SourceCheck],
    policy: ResearchPolicy,
) -> list[Citation]:
    """Make the citations, by cid. `checks` holds the newest look-up of each address."""
    if len(found) > policy.sources_max:
        raise TooLarge(
            f"the run names {len(found)} sources; {policy.sources_max} is the limit",
            hint="raise research.sources_max in the policy, or ask for fewer sources in the contracts",
        )
    made = (_citation(source, stored.get(source.cid), checks.get(source.cid), policy) for source in found)
    return sorted(made, key=lambda citation: citation.cid)


def _citation(
    found: NamedSource, held: StoredSource | None, check: SourceCheck | None, policy: ResearchPolicy
) -> Citation:
    status, notes = _standing(found, held, check)
    fields: dict[str, Any] = {
        "schema_version": "citation.v1",
        "cid": found.cid,
        "url": found.url,
        "url_original": found.url_original,
        "status": status,
        "title": (held and _tidy(held.title)) or found.title,
        "found_by": found.found_by,
        "snippet": held and _beginning(held.text, policy.snippet_chars_max),
        "corpus_id": held and held.corpus_id,
        "chunk_ids": held.chunk_ids if held else (),
        "checked_at": check.checked_at if check else held.added_at if held and held.supplied else None,
        "http_status": check and check.http_status,
        "notes": notes,
    }
    return Citation(**{name: value for name, value in fields.items() if value is not None})


def _standing(
    found: NamedSource, held: StoredSource | None, check: SourceCheck | None
) -> tuple[CitationStatus, str | None]:
    """The status, with a note if needed."""
    if found.problem is not None:
        return "invalid", found.problem
    if held is not None and held.supplied:
        if check is None or check.status == "valid":
            return "valid", None
        return "valid", f"its text was supplied; a look at the address found it {check.status}: {check.reason}"
    if check is None:
        return "unchecked", "it was not looked at"
    moved = check.final_url and check.final_url != found.url
    return check.status, f"{check.reason}; it led to {check.final_url}" if moved else check.reason


def _beginning(text: str, chars_max: int) -> str:
    """Verbatim: as many whole sentences as fit, else words, else characters."""
    text = text.strip()
    if len(text) <= chars_max:
        return text
    head = text[: chars_max + 1]
    *whole, _ = sentence_spans(f"{head}x")  # the unit at the cut is not whole
    ends = [end for _, end in whole if end <= chars_max]
    if ends:
        return head[: ends[-1]]
    words = head.rpartition(" ")[0].rstrip()
    return words or head[:chars_max]


def settle_citations(
    view: StudyView, corpus: Corpus, policy: ResearchPolicy, now: str
) -> tuple[StudyChange, list[Citation]]:
    """Every source of the accepted outputs with its status, from current knowledge."""
    need_stage(view, "wave1", "wave2", "citations", "summaries", "synthesis", doing="settling citations")
    waves = gate_of_waves(view, policy, now)
    if view.manifest.stage == "wave1" and view.manifest.pivot is None:
        raise WrongStage("the first wave has not been weighed yet", path="$.stage", hint="pivot() first")
    need_gate(waves)
    found = gather_sources(readings_of(view))
    named = {each.cid for each in found}
    documents = {cid: each for cid, each in documents_of(corpus).items() if cid in named}
    citations = settle(found, _stored_sources(corpus, documents), checks_of(view.ctx, view.scope), policy)
    gate = gate_of_citations(citations, found, policy, now)
    change = StudyChange(
        what=f"settled {len(citations)} citations",
        stage="citations",
        gates=[waves, gate, *(GateResult(gate=name, status="not_run") for name in ("D", "E"))],
        artifacts=[NewArtifact(CITATIONS, citations_text(citations))],
        removed=[path for path in view.artifacts if path.startswith(("summaries/", "claims/"))],
        sources=first_chunks(documents.values()),
    )
    return change, citations


def gate_of_citations(
    citations: Sequence[Citation], found: Sequence[Any], policy: ResearchPolicy, now: str
) -> GateResult:
    known = {citation.cid for citation in citations}
    return gate_c(citations, [each.cid for each in found if each.cid not in known], policy, now)


def first_chunks(sources: Iterable[SourceDocuments]) -> list[str]:
    """One chunk of each document, as a document is forgotten whole."""
    return [document.chunk_ids[0] for each in sources for document in each.documents if document.chunk_ids]


def _stored_sources(corpus: Corpus, documents: Mapping[str, SourceDocuments]) -> dict[str, StoredSource]:
    stored: dict[str, StoredSource] = {}
    for cid, held in documents.items():
        document = held.documents[-1]  # a snippet, if there is one, was chosen by somebody
        stored[cid] = StoredSource(
            title=document.title,
            text="" if not document.chunk_ids else corpus.chunk(document.chunk_ids[0]).text,
            corpus_id=corpus.corpus_id,
            chunk_ids=held.chunk_ids,
            added_at=document.added_at,
            supplied=any(_LOOKED not in each.metadata for each in held.documents),
        )
    return stored


def readings_of(view: StudyView) -> Iterator[tuple[str, Reading]]:
    """The accepted outputs in the order of their perspectives, parsed lazily because readings are large."""
    for result in view.manifest.results:
        if result.accepted and result.path is not None:
            yield result.perspective_id, read_markdown(view.text(result.path))


# -- citations.jsonl ----------------------------------------------------------------------------------


def citations_text(citations: Iterable[Citation]) -> str:
    """Canonical JSON lines, sorted by cid."""
    ordered = sorted(citations, key=lambda citation: citation.cid)
    return "".join(f"{canonical_text(citation.to_wire())}\n" for citation in ordered)


def read_citations(text: str) -> list[Citation]:
    """Parse the output of `citations_text`. Raises `InvalidRecord` naming the first line that differs from its
    format.
    """
    lines = text.split("\n")
    citations = [_read_line(number, line) for number, line in enumerate(lines[:-1], start=1)]
    if lines[-1]:
        raise _bad_line(len(lines), [Issue("$", "the file is cut off within this line", "truncated")])
    for number, (before, after) in enumerate(pairwise(citations), start=2):
        if before.cid >= after.cid:
            problem = "is listed twice" if before.cid == after.cid else "is not in the order of the ids"
            raise _bad_line(number, [Issue("$.cid", f"the source {problem}", "order")])
    return citations


def _read_line(number: int, line: str) -> Citation:
    try:
        citation = Citation.from_wire(parse_json(line))
    except InvalidRecord as error:
        raise _bad_line(number, error.issues) from None
    except InvalidInput as error:
        raise _bad_line(number, [Issue(error.path or "$", error.message, error.code)]) from None
    if citation.cid != cid_of(citation.url):
        raise _bad_line(number, [Issue("$.cid", "it is not the hash of the address", "cid")])
    if canonical_text(citation.to_wire()) != line:
        raise _bad_line(number, [Issue("$", "it is not written as canonical JSON", "canonical")])
    return citation


def _bad_line(number: int, issues: Sequence[Issue]) -> InvalidRecord:
    return InvalidRecord(
        f"citations.jsonl, line {number}: {issues[0].message}", issues, hint="write the file anew from the store"
    )


# -- support ---------------------------------------------------------------------------------------------

_PACK = "pack-"
"""Prefix of names of texts that are claims of the pack, not chunks."""
_ORDER = ("REFUTED", "NOT_ENOUGH_INFO", "SUPPORTED")
"""Verdicts, the worst first."""
HELD_CHARS_MAX = 128 * 1024
"""Maximum characters of sources held in parsed form, which takes over a hundred bytes for each."""


class Judgement(NamedTuple):
    """One claim against one source."""

    support: Support
    """`supported`, `refuted`, `not_supported`, or `unchecked` if the source has no text."""
    confidence: int
    """0 to 100."""
    reason: str
    evidence_id: str | None = None
    """The chunk that supports it best."""
    quote: str | None = None


Judge = Callable[[str, Sequence[str]], Mapping[str, Judgement]]
"""(claim, cids) → cid → judgement; the cids must be known to the run and citable."""


class _Page(NamedTuple):
    """The stored text of a citation, also as parsed by the checker."""

    texts: tuple[SourceText, ...]
    source: CheckedText

    @property
    def chars(self) -> int:
        return sum(len(text.text) for text in self.texts)


class SourceJudge:
    """Judges claims against the texts of their citations.

    A claim that no single source supports may be supported by several together: a sentence with two marks often takes
    half from each. In that case all that contribute evidence support it.

    Pages are loaded on demand, and the most recently used are held, up to `HELD_CHARS_MAX` characters: callers should
    ask source by source so that each page is loaded once.
    """

    def __init__(
        self,
        corpus: Corpus,
        documents: Mapping[str, SourceDocuments],
        policy: Policy,
        packed: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._corpus = corpus
        self._documents = documents
        self._policy = policy
        self._packed = packed or {}
        """Cid → claims already checked against it, which may be repeated."""
        self._held: OrderedDict[str, _Page] = OrderedDict()

    @property
    def held_chars(self) -> int:
        """Characters of the pages currently held."""
        return sum(page.chars for page in self._held.values())

    def __call__(self, claim: str, cids: Sequence[str]) -> dict[str, Judgement]:
        pages = {cid: page for cid in cids if (page := self._page(cid)) is not None}
        judged = {cid: self._judge(claim, pages.get(cid)) for cid in cids}
        if len(pages) > 1 and not any(judged[cid].support in ("supported", "refuted") for cid in pages):
            judged |= self._judge_together(claim, pages)
        return judged

    def _judge(self, claim: str, page: _Page | None) -> Judgement:
        if page is None:
            reason = "its source may be cited, but no text of it is stored to check against"
            return Judgement("unchecked", self._policy.research.unchecked_confidence, reason)
        return self._judgement(self._check(claim, page.source))

    def _check(self, claim: str, source: CheckedText) -> FGFCReport:
        return check_source(claim, source, policy=self._policy.verify)

    def _judge_together(self, claim: str, pages: Mapping[str, _Page]) -> dict[str, Judgement]:
        """By source, the judgement on a claim that several sources support together; empty if they do not."""
        checked = self._check(claim, CheckedText([text for page in pages.values() for text in page.texts]))
        judgement = self._judgement(checked)
        if judgement.support != "supported":
            return {}
        named = {_document(evidence.ref) for unit in checked.units or () for evidence in unit.evidence or ()}
        bearing = [cid for cid, page in pages.items() if named & {text.id for text in page.texts}]
        reason = f"supported by {len(bearing)} sources together: {judgement.reason}"
        return {cid: judgement._replace(reason=reason) for cid in bearing}

    def _judgement(self, checked: FGFCReport) -> Judgement:
        """Convert a report to a judgement: the worst unit decides; the confidence is the score of the whole claim."""
        if not checked.units:
            return Judgement("not_supported", 0, "there is nothing in it that could be checked")
        worst = min(checked.units, key=lambda unit: (_ORDER.index(unit.verdict or _ORDER[1]), unit_score(unit)))
        confidence = round(100 * fact_score(checked))
        best = (worst.evidence or (None,))[0]
        name = None if best is None else _document(best.ref)
        where = None if name is None or name.startswith(_PACK) else name
        quote = None if best is None else best.quote
        why = worst.justification or ""
        if worst.verdict == "REFUTED":
            return Judgement("refuted", confidence, f"the source speaks against it: {why}", where, quote)
        if worst.verdict != "SUPPORTED":
            return Judgement("not_supported", confidence, f"the source does not support it: {why}", where, quote)
        if confidence < 100 * self._policy.research.support_min:
            reason = f"the source supports it too weakly ({confidence} of 100)"
            return Judgement("not_supported", confidence, reason, where, quote)
        return Judgement("supported", confidence, why, where, quote)

    def _page(self, cid: str) -> _Page | None:
        held = self._held.get(cid)
        if held is not None:
            self._held.move_to_end(cid)
            return held
        documents = self._documents.get(cid)
        chunk_ids = () if documents is None else documents.chunk_ids
        texts = [SourceText(chunk_id, self._corpus.chunk(chunk_id).text, "artifact") for chunk_id in chunk_ids]
        if not texts:
            return None
        texts += [SourceText(f"{_PACK}{cid}", claim, "artifact") for claim in self._packed.get(cid, ())]
        page = self._held[cid] = _Page(tuple(texts), CheckedText(texts))
        while len(self._held) > 1 and self.held_chars > HELD_CHARS_MAX:
            self._held.popitem(last=False)
        return page


def _document(ref: str | None) -> str | None:
    """The text that a reference of the checker names."""
    return None if ref is None else ref.partition(":")[2].rpartition("#")[0]
