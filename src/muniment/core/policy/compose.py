"""How packets are composed: counts, windows, shares of the budget, who may hear what (MP-03, MP-18)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from muniment.core.record import Confidence, Count, Items, Record
from muniment.core.vocabulary import Trust

__all__ = [
    "ComposePolicy",
    "PlannerFloors",
    "PurposeFloors",
    "ResponderFloors",
    "SectionFloors",
    "SectionShares",
    "ToolFloors",
]

Share = Annotated[float, Field(ge=0, le=1)]


class SectionShares(Record):
    """Caps of the sections as shares of max_tokens. They may add up to more than 1: max_tokens binds as well."""

    working_state: Share = 0.6
    """Goal, plan and slots of the run."""
    facts: Share = 0.4
    """Facts that stand."""
    procedures: Share = 0.25
    """How to go about the task."""
    short_term_summary: Share = 1.0
    """The rolling summary, quotes, recent turns and what tools answered."""
    episodes: Share = 0.35
    """Stretches of earlier sessions."""
    insights: Share = 0.15
    """Hypotheses and sketches; never in a responder's packet unless allowed below."""


class SectionFloors(Record):  # TM-04
    """Shares of max_tokens that are kept for a section until it had its turn. Together at most 1.

    What a section has no use for is not kept. A cap (`shares`, `per_section`) binds a floor too.
    """

    working_state: Share = 0.0
    """Goal, plan and slots of the run."""
    facts: Share = 0.0
    """Facts that stand."""
    procedures: Share = 0.0
    """How to go about the task."""
    short_term_summary: Share = 0.0
    """The rolling summary, quotes, recent turns and what tools answered; quotes take what nobody else needs besides."""
    episodes: Share = 0.0
    """Stretches of earlier sessions."""
    insights: Share = 0.0
    """Hypotheses and sketches."""

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        total = sum(getattr(self, section) for section in type(self).model_fields)
        if total > 1 + _ROUNDING:
            raise ValueError(f"the floors of the sections add up to {total:g}, which is more than 1")
        return self


_ROUNDING = 1e-9
"""Ten times a tenth is a little more than one."""


class PlannerFloors(SectionFloors):
    """State, facts and procedures strong; summary, quotes and episodes medium; insights are allowed."""

    working_state: Share = 0.25
    facts: Share = 0.15
    procedures: Share = 0.15
    short_term_summary: Share = 0.2
    episodes: Share = 0.08
    insights: Share = 0.08


class ToolFloors(SectionFloors):
    """State strong; facts, procedures and quotes medium; episodes weak; no insights."""

    working_state: Share = 0.25
    facts: Share = 0.1
    procedures: Share = 0.1
    short_term_summary: Share = 0.2
    episodes: Share = 0.04


class ResponderFloors(SectionFloors):
    """Summary, quotes and facts strong; state medium; a few episodes; insights only where they are allowed at all."""

    working_state: Share = 0.1
    facts: Share = 0.15
    short_term_summary: Share = 0.4
    episodes: Share = 0.06
    insights: Share = 0.08


class PurposeFloors(Record):
    """What each purpose keeps for each section: as much as the table of what a packet injects says it weighs."""

    planner: PlannerFloors = PlannerFloors.model_construct()
    """In a planner's packet."""
    tool: ToolFloors = ToolFloors.model_construct()
    """In a tool's."""
    responder: ResponderFloors = ResponderFloors.model_construct()
    """In a responder's."""


class ComposePolicy(Record):  # MP-18
    """Counts bound what has no match with the query; tokens bound the rest."""

    max_tokens: Annotated[int, Field(ge=256)] = 2048
    """The whole budget of a packet's text, where the caller names none."""
    shares: SectionShares = SectionShares.model_construct()
    floors: PurposeFloors = PurposeFloors.model_construct()
    floor_tokens_min: Count = 48
    """A floor of fewer tokens is not kept: it would hold next to nothing, and take the place of a quote."""
    claims_max: Count = 24
    """What the run has verified so far: those that match the question, then the newest."""
    questions_max: Count = 8
    """Questions of the run that are open, the latest."""
    conflicts_max: Count = 6
    """Conflicts of the run that are not settled, the latest."""
    failures_max: Count = 6
    """What was tried in the run and failed: what it told of itself first, then what tools answered."""
    instructions_max: Count = 24
    """What the user asked for once and for all: the latest,"""
    instruction_share: Share = 0.2
    """within this share of max_tokens."""
    facts_max: Count = 30
    """Facts."""
    procedures_max: Count = 5
    """Procedures."""
    episodes_max: Count = 20
    """Episodes."""
    episode_window_days: Count = 30
    """Episodes older than this need a match with the query, or a cue."""
    insights_max: Count = 10
    """Insights."""
    quotes_max: Count = 10
    """Quotes, where there is no query to match."""
    window_turns: Count = 5
    """The latest turns of the session that stand as they are."""
    tool_evidence_max: Count = 3
    """Tool results of the session that stand as evidence."""
    candidates_max: Count = 100
    """Turns that a search may hand to one packet."""
    raw_days: Count = 7
    """Episodes younger than this stand raw."""
    phase_days: Count = 30
    """Younger than this as a phase summary; older as a milestone."""
    milestone_days: Count = 90
    """Older than this only on a cue."""
    raw_lines: Count = 6
    """Sentences of a raw episode; then of a phase summary and of a milestone."""
    phase_lines: Count = 3
    """Of a phase summary."""
    milestone_lines: Count = 1
    """Of a milestone."""
    recency_half_life_days: Annotated[float, Field(gt=0)] = 14.0
    """After so many days an episode's recency_score has halved."""
    unmatched_share: Share = 0.15
    """Facts, and recent turns, with no match may take this share of max_tokens before what matches the query."""
    summary_share: Share = 0.12
    """The rolling summary may take this share of max_tokens before quotes do."""
    settled_share: Share = 0.12
    """Of the summary, what was settled (constraints, decisions, commitments) may take this share besides, and first."""
    quote_share: Share = 0.35
    """One quote takes no more than this share of max_tokens; a longer one is cut to the sentences that match best."""
    cut_tokens_min: Count = 16
    """With less room than this nothing is cut to fit: it is left out."""
    short_tokens: Annotated[int, Field(ge=1)] = 64
    """Of turns of about so many tokens the likeliest comes first. A longer one is worth less for its room,"""
    length_discount: Share = 0.75
    """by its length to this power: at 1 one of twice the tokens needs twice the chance, at 0 length does not count."""
    evidence_share: Share = 0.01
    """Quotes that are worth less than this share of the best one are left out, though there is room; half of
    it where several things are asked for,"""
    evidence_min: Share = 0.0005
    """and so are those that are less likely evidence than this."""
    found_min: Share = 0.095
    """Something on the question is held to be found where a quote is evidence with this chance or more,"""
    match_min: Share = 0.5
    """or where a fact, or a line of the run's state, has this share of what is asked for."""
    nearest_max: Count = 12
    """Where nothing was found, so many of the nearest quotes stand all the same."""
    confidence_min: Confidence = 0.2
    """Facts below are left out."""
    near_duplicate: Share = 0.9
    """Overlap of words (Jaccard) from which a second text is a duplicate."""
    barred_trust_responder: Items[Trust] = ()
    """Evidence of these sources is kept out of a responder's packet,"""
    barred_trust_planner: Items[Trust] = ()
    """out of a planner's,"""
    barred_trust_tool: Items[Trust] = ()
    """out of a tool's."""
    quote_instruction_like: bool = False
    """May text that reads like instructions, from a tool or outside, be quoted? It is omitted and said so otherwise."""
    allow_validated_insights_in_responder: bool = False  # MP-12
    """May a responder's packet hold insights that were validated? Others never stand there."""
