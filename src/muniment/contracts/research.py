"""Research runs (003): the router's perspectives and the bounded summary pack that synthesis reads.

The pack's confidence runs from 0 to 100, unlike every other (X-07).
"""

from typing import Literal

from muniment.core.record import Absent, Confidence100, Items, JsonObject, Number, OpenRecord

__all__ = ["KeyClaim", "Perspective", "Perspectives", "PromptContract", "SummaryEntry", "SummaryPack"]


class PromptContract(OpenRecord):  # RP-02
    """The limits a perspective's output is checked against."""

    max_words: Number
    max_sources: Number
    tool_budget: JsonObject
    must_include_sections: Items[str]


class Perspective(OpenRecord):
    """One angle of the research, and who takes it. Which agents exist is not the contract's to say."""

    id: str
    title: str
    track: Literal["standard", "independent", "contrarian"]
    agent_type: str
    prompt_contract: PromptContract
    expected_platforms: Absent[Items[str]] = None


class Perspectives(OpenRecord):  # RP-01
    """perspectives.json: who looks at the question from where, and what each is asked for."""

    schema_version: Literal["perspectives.v1"]
    run_id: str
    created_at: str
    perspectives: Items[Perspective]


class KeyClaim(OpenRecord):
    """An atomic claim with the citations that bear it."""

    claim: str
    citation_cids: Items[str]
    confidence: Confidence100


class SummaryEntry(OpenRecord):
    """One perspective's summary, by path, and its key claims."""

    perspective_id: str
    source_artifact: str
    summary_md: str
    key_claims: Items[KeyClaim]


class SummaryPack(OpenRecord):  # RP-04, RP-05
    """summary-pack.json: all that a synthesis reads. Limits are in KB on disk; tokens are an estimate."""

    schema_version: Literal["summary_pack.v1"]
    run_id: str
    generated_at: str
    limits: JsonObject
    summaries: Items[SummaryEntry]
    total_estimated_tokens: Number
