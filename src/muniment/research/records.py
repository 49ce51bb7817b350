"""Stored records of a research run: manifest, wave results, citations, gates, and the check of a draft.

The two contracts, perspectives.json and summary-pack.json, are in `contracts.research`. A *breach* is a violation of an
agent's contract by its output; a *gap* is an open question; a *finding* is a fault of a draft report.
"""

from typing import Annotated, Literal

from pydantic import Field

from muniment.contracts.research import SummaryPack
from muniment.core.policy import ResearchLimits
from muniment.core.record import Absent, Confidence100, Count, Items, JsonObject, NonEmpty, Number, Record
from muniment.core.scope import IdText, Span

Mode = Literal["quick", "standard", "deep"]
"""Maximum number of perspectives for a question: half of the limit, as many as the question suggests, the limit."""
Stage = Literal["init", "wave1", "wave2", "citations", "summaries", "synthesis", "done"]
STAGES: tuple[Stage, ...] = ("init", "wave1", "wave2", "citations", "summaries", "synthesis", "done")
GateId = Literal["A", "B", "C", "D", "E"]
GATES: tuple[GateId, ...] = ("A", "B", "C", "D", "E")
"""Plan · wave outputs · citations · bounded pack · report."""

CitationStatus = Literal["valid", "paywalled", "blocked", "invalid", "unchecked"]
CITABLE: frozenset[CitationStatus] = frozenset({"valid", "paywalled"})
"""Only these may be cited (RP-03)."""
Support = Literal["supported", "refuted", "not_supported", "unchecked", "uncited"]
"""Result of the check of a claim against its sources. `unchecked`: they may be cited, but have no text."""
Priority = Literal["P0", "P1", "P2", "P3"]
Standing = Literal["waiting", "accepted", "rejected", "given_up"]


# -- waves --------------------------------------------------------------------------------------------

ToolUse = dict[NonEmpty, Count]
"""Calls by the names that the contract's tool_budget uses: search_calls, fetch_calls, …"""


class SuppliedSource(Record):
    """The text somebody actually read at an address: a page or a part of it. It makes the citation valid."""

    url: NonEmpty
    text: NonEmpty
    kind: Literal["page", "snippet"] = "page"
    title: NonEmpty | None = None
    media_type: Literal["text/plain", "text/markdown", "text/html"] = "text/plain"


class AgentResult(Record):
    """An agent's output for a perspective: Markdown, with the tools and sources it used as far as known."""

    markdown: str
    tool_use: Absent[ToolUse] = None
    """Absent if not counted: then a tool budget cannot be checked."""
    sources: Items[SuppliedSource] = ()
    change_note: NonEmpty | None = None
    """The changes since the last attempt; required for a retry."""


BreachKind = Literal[
    "empty_output",
    "missing_section",
    "empty_section",
    "too_many_words",
    "too_many_sources",
    "no_sources",
    "tool_budget_exceeded",
    "tool_use_unknown",
    "dangling_mark",
    "missing_change_note",
    "unchanged_output",
]


class Breach(Record):  # RP-02
    """A violation of the contract by an output."""

    kind: BreachKind
    message: NonEmpty
    limit: Absent[Number] = None
    found: Absent[Number] = None
    where: Absent[str] = None
    """The section, tool or mark."""


class RetryDirective(Record):
    """Instructions for an agent that has to try again."""

    perspective_id: IdText
    attempt: Count
    """The number of the requested attempt."""
    breaches: Items[Breach]
    text: NonEmpty
    """Ready to be sent; they ask for a change note."""


class Gap(Record):
    """Something reported as missing by an output, or found to be missing."""

    perspective_id: IdText
    priority: Priority
    text: NonEmpty
    origin: Literal["said", "seen"]
    """Reported in the section on gaps, or detected: a perspective that was given up."""


class PivotDecision(Record):
    """The decision on a second wave, with the reason."""

    second_wave: bool
    reason: NonEmpty
    counts: dict[Priority, Count]
    gaps: Items[Gap]


class WaveResult(Record):
    """An attempt at a perspective, with its assessment."""

    perspective_id: IdText
    wave: Annotated[Count, Field(ge=1, le=2)]
    attempt: Annotated[Count, Field(ge=1)]
    accepted: bool
    breaches: Items[Breach]
    words: Count
    sources: Count
    digest: str
    """SHA-256 (hex) of the output."""
    evidence_id: IdText
    """The event that contains the output."""
    path: Absent[str] = None
    """Its path in the run directory, once accepted."""
    gaps: Items[Gap] = ()
    directive: Absent[RetryDirective] = None


# -- citations and claims -----------------------------------------------------------------------------


class SourceCheck(Record):
    """The result of looking up an address."""

    cid: IdText
    url: NonEmpty
    status: CitationStatus
    http_status: Absent[Count] = None
    reason: NonEmpty
    final_url: Absent[NonEmpty] = None
    checked_at: str


class Citation(Record):  # RP-03
    """A line of citations.jsonl: one source of the run."""

    schema_version: Literal["citation.v1"] = "citation.v1"
    cid: IdText
    url: NonEmpty
    """Normalised; the cid is its hash."""
    url_original: NonEmpty
    """As it was first written."""
    status: CitationStatus
    title: Absent[NonEmpty] = None
    found_by: Items[IdText]
    """Perspectives, in order."""
    snippet: Absent[str] = None
    """Verbatim from the stored page or snippet."""
    corpus_id: Absent[str] = None
    chunk_ids: Items[IdText] = ()
    """The chunks with its text in the corpus of the run."""
    checked_at: Absent[str] = None
    http_status: Absent[Count] = None
    notes: Absent[str] = None


class CheckedClaim(Record):  # RP-08
    """A claim of an output with its citations, after the check."""

    perspective_id: IdText
    claim: NonEmpty
    section: str
    span: Span
    """Half-open UTF-8 bytes of the output."""
    cited: Items[IdText]
    """Its citations in the output, whether or not they support it."""
    citation_cids: Items[IdText]
    """Its citations that may be cited and support it."""
    support: Support
    confidence: Confidence100
    reason: NonEmpty
    evidence_id: Absent[IdText] = None
    """The chunk that supports it best."""
    quote: Absent[str] = None


# -- manifest, gates ----------------------------------------------------------------------------------


class Artifact(Record):
    """A file of the run directory, and the event with the same bytes."""

    path: NonEmpty
    digest: str
    bytes: Count
    evidence_id: IdText


class StageMove(Record):
    """A line of the stage history."""

    stage: Stage
    at: str
    revision: Count
    reason: NonEmpty
    inputs: dict[str, str]
    """Path → SHA-256 (hex) of the inputs of the move."""


class GateResult(Record):
    gate: GateId
    status: Literal["not_run", "pass", "fail"]
    metrics: JsonObject = Field(default_factory=dict)
    reasons: Items[str] = ()
    """Reasons for failing, one per condition, each with a remedy."""
    checked_at: Absent[str] = None
    inputs: dict[str, str] = Field(default_factory=dict)


class GatesFile(Record):
    """gates.json"""

    schema_version: Literal["gates.v1"] = "gates.v1"
    run_id: IdText
    revision: Count
    gates: Items[GateResult]


class ResearchManifest(Record):  # RP-07
    """manifest.json: the run and its state. `revision` increases by one with every change."""

    schema_version: Literal["research_manifest.v1"] = "research_manifest.v1"
    run_id: IdText
    revision: Annotated[Count, Field(ge=1)]
    question: NonEmpty
    mode: Mode
    language: Literal["en", "zh"]
    stage: Stage
    limits: ResearchLimits
    policy_digest: str
    agent_types: Items[NonEmpty]
    created_at: str
    updated_at: str
    corpus_id: str
    standings: dict[str, Standing] = Field(default_factory=dict)
    """Perspective id → its state."""
    results: Items[WaveResult] = ()
    """The last attempt of each perspective."""
    given_up: dict[str, str] = Field(default_factory=dict)
    """Perspective id → reason."""
    pivot: Absent[PivotDecision] = None
    reviews: Count = 0
    """Drafts checked."""
    artifacts: Items[Artifact] = ()
    """All files except manifest.json and audit.jsonl, by path."""
    history: Items[StageMove] = ()


# -- synthesis ----------------------------------------------------------------------------------------


def _source_line(source: JsonObject) -> str:
    title = f" - {source['title']}" if source.get("title") else ""
    return f"- [{source.get('short') or source.get('cid')}] {source.get('url')}{title}"


class SynthesisInput(Record):  # RP-06
    """The complete input of a synthesis: the pack, and its summaries by path."""

    pack: SummaryPack
    summaries: dict[str, str]

    @property
    def text(self) -> str:
        """The question, the summaries and the sources they cite, ready for a prompt."""
        extra = self.pack.model_extra or {}
        parts = [f"Question: {extra['question']}"] if isinstance(extra.get("question"), str) else []
        parts += [self.summaries[entry.summary_md].strip() for entry in self.pack.summaries]
        sources = [_source_line(each) for each in extra.get("sources", ()) if isinstance(each, dict)]
        return "\n\n".join([*parts, *(["# Sources\n\n" + "\n".join(sources)] if sources else [])]) + "\n"


DraftProblem = Literal[
    "uncited_figure",
    "unknown_citation",
    "invalid_citation",
    "unsupported_citation",
    "missing_section",
    "empty_report",
]


class DraftFinding(Record):
    """A fault of a draft, with its position (half-open UTF-8 bytes)."""

    problem: DraftProblem
    message: NonEmpty
    span: Absent[Span] = None
    text: Absent[str] = None
    citation: Absent[str] = None


class DraftCheck(Record):
    """The result of checking a draft (Gate E)."""

    passed: bool
    findings: Items[DraftFinding]
    metrics: JsonObject
    digest: str
    """SHA-256 (hex) of the draft."""
    review: Annotated[Count, Field(ge=1)]
    """The number of the review round."""
