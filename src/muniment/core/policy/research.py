"""The numbers of research runs, as one frozen record. Units stand last in names; KB = 1024 bytes (RP-05)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from muniment.core.record import Integer, Items, NonEmpty, Number, Record

__all__ = [
    "ContractDefaults",
    "PivotPolicy",
    "RankWeights",
    "ResearchLimits",
    "ResearchPolicy",
    "TrackShares",
]

Positive = Annotated[Integer, Field(ge=1)]
Whole = Annotated[Integer, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Weight = Annotated[Number, Field(ge=0)]
Kilobytes = Annotated[Number, Field(gt=0, le=1024 * 1024)]


class ResearchLimits(Record):
    """What a run is bounded by: said when it starts, kept in its manifest, repeated word for word in its pack."""

    max_summary_kb: Kilobytes = 5
    """One summary, in KB on disk."""
    max_total_summary_kb: Kilobytes = 60
    """All summaries together, in KB on disk."""
    max_key_claims: Positive = 12
    """In one summary."""
    max_wave1_agents: Positive = 6
    """Perspectives of the first wave."""
    max_wave2_agents: Whole = 6
    """Perspectives of the second; 0 is no second wave."""
    max_review_rounds: Positive = 4
    """How often a draft may be checked."""

    @property
    def summary_bytes_max(self) -> int:
        return int(self.max_summary_kb * 1024)

    @property
    def total_bytes_max(self) -> int:
        return int(self.max_total_summary_kb * 1024)


class TrackShares(Record):
    """How perspectives are dealt to tracks, by largest remainder; ties go to the track named first."""

    standard: Weight = 50
    """Perspectives that go by the usual sources."""
    independent: Weight = 25
    """Perspectives that go by sources of their own."""
    contrarian: Weight = 25
    """Perspectives that look for what speaks against it."""

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.standard + self.independent + self.contrarian > 0:
            raise ValueError("at least one track should have a share")
        return self


class ContractDefaults(Record):
    """What a perspective's prompt contract says unless somebody says otherwise."""

    max_words: Positive = 900
    """Words of an output."""
    max_sources: Positive = 12
    """Sources of an output."""
    search_calls: Whole = 4
    """Searches that an agent may make."""
    fetch_calls: Whole = 6
    """Pages that an agent may fetch."""
    must_include_sections: Items[NonEmpty] = ("Findings", "Sources", "Gaps")
    """Headings that an output must have."""


class PivotPolicy(Record):
    """When a second wave is worth it: one P0, or so many P1, or so many gaps of which so many are P1 or P2."""

    p0_min: Positive = 1
    """Gaps of priority P0 that are enough."""
    p1_min: Positive = 2
    """Gaps of priority P1 that are enough."""
    gaps_min: Positive = 4
    """Gaps that are enough, whatever their priority, if `gaps_p1_p2_min` of them are P1 or P2."""
    gaps_p1_p2_min: Positive = 3
    """Gaps of priority P1 or P2 that must be among the `gaps_min`."""


class RankWeights(Record):
    """What makes a sentence worth its bytes in a summary."""

    support: Weight = 1.0
    """How well its source supports it, 0 to 1."""
    coverage: Weight = 0.6
    """How much it says of what the question and the perspective ask, and of what other findings turn around."""
    novelty: Weight = 0.8
    """How little of it is said by the sentences that are in already."""
    figure: Weight = 0.15
    """It gives a figure."""


class ResearchPolicy(Record):
    """How research runs are routed, checked and bounded."""

    policy_id: str = "default"
    schema_version: Literal["research_policy.v1"] = "research_policy.v1"

    limits: ResearchLimits = ResearchLimits.model_construct()
    tracks: TrackShares = TrackShares.model_construct()
    contract: ContractDefaults = ContractDefaults.model_construct()
    pivot: PivotPolicy = PivotPolicy.model_construct()
    rank: RankWeights = RankWeights.model_construct()
    agent_types: Items[NonEmpty] = ("ClaudeResearcher", "GeminiResearcher", "PerplexityResearcher", "GrokResearcher")
    """The agents that exist, unless the run says which."""
    perspectives_min: Positive = 3
    """A plain question gets so many; one with more to it gets more, up to the limits."""

    output_bytes_max: Positive = 4 * 1024 * 1024
    """An agent's output over this is refused before it is read."""
    attempts_max: Positive = 3
    """After so many outputs that break the contract, a perspective takes no more: it is given up, or the run is."""
    sources_max: Positive = 2_000
    """Different sources in one run."""
    snippet_chars_max: Positive = 600
    """Of a source's text in citations.jsonl."""
    claims_checked_max: Positive = 400
    """Sentences of one output that are checked against their sources; the first by rank."""
    claim_chars_max: Positive = 600
    """A longer sentence is no key claim."""
    claim_words_min: Positive = 4
    """A shorter one says too little (a Han or kana character counts as half a word)."""
    claim_cids_max: Positive = 5
    """Citations that stand beside one claim."""
    near_duplicate: Share = 0.9
    """Overlap of words (Jaccard) from which a claim says what another says already."""
    gaps_max: Positive = 20
    """Gaps that are kept of one output."""
    flagged_max: Positive = 12
    """Claims of one perspective that are listed as not supported; the rest are counted."""
    unchecked_confidence: Annotated[Integer, Field(ge=0, le=100)] = 25
    """Of a claim whose source may be cited but has no text to check against."""
    support_min: Share = 0.5
    """Confidence (0 to 1) below which a claim is not supported. Every claim that the checker calls supported has one
    half: more than 0.5 asks for nearer wording."""

    validated_share_min: Share = 0.9
    """Gate C: citations that are valid or paywalled."""
    invalid_share_max: Share = 0.1
    """Gate C: citations that are invalid."""
    accepted_share_min: Share = 0.5
    """Gate B: perspectives whose output was accepted; each of the others must be given up with a reason."""
    summarised_share_min: Share = 0.9
    """Gate D: perspectives with a summary."""
    report_sections: Items[NonEmpty] = ("Summary", "Findings", "Limitations", "Sources")
    """Gate E: what a report must have, unless the check is told otherwise."""
