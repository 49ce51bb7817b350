"""The policy: one frozen document of numbers and switches, a section for each room, and one hash that builds refer to.

Units stand last in names. `Policy` is the whole document; `policy_given` reads one as callers give it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from muniment.core.canonical import Written, canonical_text, digest_of
from muniment.core.record import Confidence, Count, Integer, Items, NonEmpty, Number, Record
from muniment.core.scope import JudgeKind, Trust
from muniment.errors import InvalidInput, InvalidRecord, NotFound

# -- memory ---------------------------------------------------------------------------------------------


Positive = Annotated[Integer, Field(ge=1)]

KeyPattern = Annotated[NonEmpty, Field(max_length=256)]
"""A key, in which `*` stands for any run of characters: `user.allergy`, `user.likes.*`."""


class TrustConfidence(Record):
    """The confidence of what is remembered without one: 0.5, whoever said it, unless it is set otherwise here."""

    user: Confidence = 0.5
    """Of what the user said."""
    assistant: Confidence = 0.5
    """Of what the assistant said."""
    tool: Confidence = 0.5
    """Of what a tool answered."""
    external: Confidence = 0.5
    """Of what comes from outside: pages, files, mail of others."""
    user_quote: Confidence = 0.9
    """Of what the user said, where the words themselves are quoted and were found there. The fact's notes say so."""


class FactPolicy(Record):  # MP-06, MP-09
    """How facts stand beside each other, and which of them are preferences."""

    many_valued: Items[KeyPattern] = (
        "*.likes",
        "*.dislikes",
        "*.avoids",
        "*.allergy",
        "*.allergies",
        "*.language",
        "*.languages",
        "*.hobby",
        "*.hobbies",
        "*.pet",
        "*.pets",
        "*.dog",
        "*.cat",
        "*.sibling",
        "*.brother",
        "*.sister",
        "*.child",
        "*.son",
        "*.daughter",
        "*.friend",
        "*.colleague",
        "*.uncle",
        "*.aunt",
        "*.cousin",
        "*.nephew",
        "*.niece",
        "*.roommate",
        "*.neighbor",
        "*.teammate",
        "*.classmate",
        "*.parents",
        "*.children",
        "*.health",
        "*.medication",
        "*.owns",
        "*.goal",
        "*.habit",
        "*.schedule",
        "*.study",
        "*.companion",
    )
    """Keys that may have several active values at once."""
    preferences: Items[KeyPattern] = (
        "preference.*",
        "*.preference",
        "*.preference.*",
        "*.preferences.*",
        "*.likes",
        "*.dislikes",
        "*.diet",
        "*.favorite.*",
        "*.favourite.*",
    )
    """Keys whose facts are preferences, unless the caller says otherwise."""
    lower_trust_disputes: bool = True
    """Evidence of lower trust than the active fact's disputes it instead of superseding it."""
    confidence: TrustConfidence = TrustConfidence.model_construct()


class PromotionPolicy(Record):  # MP-17
    """Which candidates become facts without anyone being asked. What does not qualify waits for `decide`."""

    automatic: bool = True
    """False: every candidate waits for `decide`."""
    confidence_min: Confidence = 0.8
    """Candidates below it wait."""
    trust: Items[Trust] = ("user",)
    """Evidence of any other trust waits."""
    needs_quote: bool = True
    """A quote that was checked against its source."""
    decline_contradictions: bool = True
    """What contradicts an active fact of higher trust is declined; otherwise it waits."""


class ExtractionPolicy(Record):  # MP-17
    """What a model is given to read, how much at once, and what its proposals have to be."""

    roles: Items[Literal["user", "assistant", "system", "developer"]] = ("user",)
    """Whose messages are read for facts; all others are context at the most."""
    batch_turns_max: Positive = 8
    """Turns that are read in one call."""
    batch_tokens_max: Positive = 2_000
    """Tokens of the turns of one call. A turn that is longer is read alone."""
    turn_chars_max: Positive = 16_384
    """A longer turn is read up to here."""
    context_turns_max: Count = 4
    """Turns before the first of a batch that are shown so that it is understood, and are not read."""
    context_chars_max: Positive = 600
    """A longer turn is shown up to here as context."""
    facts_per_turn_max: Positive = 8
    """Proposals from one turn; what is over is left out and counted."""
    answer_tokens_max: Positive = 1_024
    """Tokens of one answer."""
    attempts_max: Positive = 3
    """How often a call is made that fails in a way that may pass, or that is answered with something else."""
    claim_s: Positive = 300
    """Seconds for which a batch is one worker's. One that takes longer may be taken over, and writes nothing then."""
    in_background: bool = True
    """Whether a store that is opened with `extract=` reads behind the calls that write turns."""
    wait_s: Annotated[Number, Field(ge=0)] = 2.0
    """Seconds after a turn before it is read in the background, so that turns that follow share its call."""
    confidence: Confidence = 0.8
    """Of a proposal that passed every check."""
    keys: Items[KeyPattern] = ("user.*", "person.*.*")
    """Keys that a model may propose for."""
    keys_refused: Items[KeyPattern] = (
        "*.role", "*.roles", "*.admin", "*.is_admin", "*.permission", "*.permissions", "*.trust", "*.password",
        "*.passphrase", "*.pin", "*.secret", "*.token", "*.api_key", "*.apikey", "*.credentials", "*.card_number",
        "*.iban", "*.privilege", "*.privileges", "*.access", "*.access_level", "*.clearance", "*.rights",
        "user.instruction*",
    )  # fmt: skip
    """And those it may not: what somebody may do is not theirs to say, orders are the user's own words alone, and
    secrets are nobody's fact.
    """


class ProfilePolicy(Record):
    """Who may be given the profile of a user, and how much of it."""

    share: Share = 0.25
    """A planner's or tool's packet spends up to this share of max_tokens on it before anything else that was said,"""
    responder_share: Share = 0.15
    """and a responder's, which may only be asked about the past, up to this one,"""
    tokens_min: Count = 64
    """but never less than this."""
    enabled: bool = True
    """False: there is no profile of anybody."""
    users_off: Items[KeyPattern] = ()
    """The ids of users without a profile, `*` standing for any run of characters."""
    purposes: Items[Literal["planner", "tool", "responder"]] = ("planner", "tool", "responder")
    """The packets that it may be in."""
    tool_kinds: Items[Literal["safety", "wish", "other"]] = ("safety", "wish")
    """The statements that a tool's packet may carry: on health and safety, standing wishes, and all others. What shares
    a word with the call is carried all the same."""


class MemoryPolicy(Record):
    """What becomes of what is said: candidates, facts, insights, the profile."""

    extract_on_observe: bool = False
    """Look for candidates in each message as it is observed (patterns, no model)."""
    facts: FactPolicy = FactPolicy.model_construct()
    promotion: PromotionPolicy = PromotionPolicy.model_construct()
    extraction: ExtractionPolicy = ExtractionPolicy.model_construct()
    insight_confidence: Confidence = 0.3
    """The confidence of an insight that names none."""
    profile: ProfilePolicy = ProfilePolicy.model_construct()


# -- recall ---------------------------------------------------------------------------------------------


Weight = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]


class RecallPolicy(Record):
    """How candidates are scored and ordered.

    The unit of every weight is the best match in words: the turn whose words, in context, answer the query best has 1.
    Set by hand on three LoCoMo conversations and fifty LongMemEval questions.
    """

    policy_id: str = "default"
    schema_version: Literal["recall_policy.v1"] = "recall_policy.v1"

    # -- words in context --
    own: Weight = 2.0
    """How often a turn's own words count."""
    before_1: Weight = 1.0
    """How often the words of the turn before count: it is often the question that this one answers."""
    before_2: Weight = 0.5
    """How often the words of the turn two before count."""
    after_1: Weight = 0.5
    """How often the words of the turn after count."""
    after_2: Weight = 0.25
    """How often the words of the turn two after count."""
    chat_context: Share = 0.5
    """How much of that a turn hears in a session with a nameless assistant, whose long answers repeat what they answer.
    """
    chat_length: Annotated[Number, Field(gt=0)] = 120.0
    """Where it hears half of that: a turn of so many words. A longer one stands for itself."""
    session_date: Weight = 1.0
    """How often the date of the session counts, as if it were said in every turn."""
    saturation: Annotated[Number, Field(gt=0)] = 1.2
    """BM25's k1: how soon more of the same word stops to help."""
    length: Share = 0.5
    """BM25's b: how much a long turn's words are worth less, 0 not at all."""
    term_repeats_max: Positive = 2
    """A word that stands more often in the query counts this often."""

    # -- common knowledge --
    kinds: Weight = 1.0
    """Terms that may stand for what was asked ("pets" → dog), against a term of the query itself."""
    kinds_damping: Share = 0.5
    """How much of `kinds` is taken back where some turn already holds every word of the query."""
    kinds_before: Weight = 0.5
    """Terms that may stand for what was asked, where they stand in the turn before."""
    kinds_after: Weight = 0.2
    """Terms that may stand for what was asked, where they stand in the turn after."""

    # -- who, when, what sort of turn --
    called: Share = 0.3
    """How much a word of the query counts that is what somebody is called who speaks in the scope."""
    speaker: Weight = 0.3
    """Said by the one person whom the query names."""
    company: Weight = 0.5
    """Said in a session in which somebody speaks whom the query names, where there are others."""
    role: Weight = 0.35
    """Said by the user where the user asks about themselves; by the assistant where they ask what it said."""
    question: Weight = 0.04
    """Taken off a turn that ends in a question mark: questions seldom hold the answer."""
    question_only: Weight = 0.1
    """Taken off a turn that is nothing but a question."""
    time: Weight = 0.1
    """Said within the stretch of time that the query names."""

    # -- vectors, where there are any --
    dense_turn: Weight = 0.15
    """For each standard deviation by which a turn's vector is nearer to the query's than the mean."""
    dense_window: Weight = 0.05
    """For each standard deviation by which the vector of a window of turns is nearer to the query's than the mean."""
    dense_english: Items[str] = ("e5-small",)
    """Embedders that know English alone: a question in another script is asked by its words only."""

    # -- what was learnt --
    ranking: Annotated[str, Field(pattern=r"^([0-9a-f]{16,64})?$")] = "51d21bb46c1baee0"
    """The digest (its first 16 signs or more) of the ranking that was learnt over the best candidates; empty: none."""

    # -- several answers --
    stretch: Weight = 0.3
    """How much of what the turns around one of the best score is added to its own score, where the query asks for an
    account of what was said."""

    newest: Positive = 6
    """Of so many of the best, those that say the same are put in order of time, the newest first; 1: none."""

    # -- how likely it is evidence --
    evidence: Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")] = "8054fa64bd4e2ba4"
    """The digest (its first 16 signs or more) of the calibration by which a hit's signs become a chance."""

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))


# -- documents ------------------------------------------------------------------------------------------


class CorpusPolicy(Record):
    """A chunk is what a pointer names and a search answers: long enough to stand alone, short enough to be read."""

    chunk_chars: Annotated[Integer, Field(ge=16)] = 1_200
    """What a chunk should have, at most; a paragraph over it stays whole up to the next."""
    chunk_chars_max: Annotated[Integer, Field(ge=16)] = 2_000
    """What no chunk exceeds."""
    chunk_chars_min: Annotated[Integer, Field(ge=0)] = 120
    """A section below it is joined with the next one."""
    document_bytes_max: Positive = 16 * 1024 * 1024
    """A document over this is refused."""
    title_chars_max: Positive = 300
    """A longer title is refused; one that was found in the text is cut."""
    reason_chars_max: Positive = 2_000
    """Why a document was retracted."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.chunk_chars_min <= self.chunk_chars <= self.chunk_chars_max:
            raise ValueError("chunk_chars should lie between chunk_chars_min and chunk_chars_max")
        return self


# -- compose --------------------------------------------------------------------------------------------


class SectionShares(Record):
    """Caps of the sections as shares of max_tokens. They may add up to more than 1: max_tokens binds as well."""

    working_state: Share = 0.85
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
    settled_share: Share = 0.12
    """What was settled in the session (constraints, decisions, commitments) may take this share of max_tokens first."""
    quote_share: Share = 0.35
    """One quote takes no more than this share of max_tokens; a longer one is cut to the sentences that match best."""
    cut_tokens_min: Count = 16
    """With less room than this nothing is cut to fit: it is left out."""
    short_tokens: Annotated[int, Field(ge=1)] = 64
    """Of turns of about so many tokens the likeliest comes first. A longer one is worth less for its room,"""
    length_discount: Share = 0.75
    """by its length to this power: at 1 one of twice the tokens needs twice the chance, at 0 length does not count."""
    evidence_share: Share = 0.01
    """Quotes that are worth less than this share of the best one are left out, though there is room,"""
    evidence_min: Share = 0.0005
    """and so are those that are less likely evidence than this."""
    found_min: Share = 0.08
    """Something on the question is held to be found where a quote is evidence with this chance or more,"""
    match_min: Share = 0.5
    """or where a fact, or a line of the run's state, has this share of what is asked for."""
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


# -- compaction -----------------------------------------------------------------------------------------


class CompactionPolicy(Record):
    """The defaults are those of the contract; the rates that `drift` measures are what justifies changing them."""

    auto: bool = True
    """Compact when a step makes it due. Otherwise only `run.log.compact()` does."""
    event_threshold: Positive = 18
    """Counted events since the last snapshot that make one due."""
    step_fallback: Positive = 8
    """Steps since the last snapshot that make one due."""
    own_words_verify: bool = False
    """May what the agent itself said verify a claim?"""
    claim_chars_max: Positive = 2_000  # CS-03
    """The longest statement, description or reason: a snapshot holds pointers, not texts."""
    seen_max: Positive = 256
    """Chunks a snapshot lists as seen: the most recent ones."""
    manifests_max: Positive = 18
    """Context manifests a snapshot names: the latest ones."""
    next_actions_max: Annotated[Integer, Field(ge=1, le=3)] = 3
    """Next actions that a snapshot may name."""
    loop_actions: Annotated[Integer, Field(ge=2)] = 3
    """Identical actions in a row that make a loop."""
    stall_steps: Annotated[Integer, Field(ge=1)] = 3
    """Steps without new evidence and without progress on a claim that make a stall."""


# -- verify ---------------------------------------------------------------------------------------------


class DoubtWeights(Record):
    """What each kind of doubt takes off, in log-odds of being supported."""

    number_absent: Weight = 1.7758
    """A number that the source does not have."""
    unit_changed: Weight = 0.2927
    """A number with another unit."""
    number_elsewhere: Weight = 0.2927
    """A number that the source has for something else."""
    date_absent: Weight = 0.2927
    """A date that the source does not have."""
    name_absent: Weight = 0.653
    """A name that the source does not have."""
    name_elsewhere: Weight = 0.2927
    """A name that the source has in another place."""
    negation_added: Weight = 0.2927
    """A denial that the source does not make."""
    negation_dropped: Weight = 0.2927
    """A denial of the source that is missing."""
    opposed: Weight = 1.4045
    """A word whose opposite the source has."""
    certainty: Weight = 0.2927
    """Said with more or less certainty than in the source."""
    roles_swapped: Weight = 0.2927
    """Who did it and whom it was done to have changed places."""
    link_changed: Weight = 0.2927
    """The claim names another cause, order or condition than the source."""
    no_antecedent: Weight = 0.2927
    """A pronoun that can stand for nobody."""
    wrong_gender: Weight = 0.2927
    """A pronoun of another gender than the one it stands for."""
    words_absent: Weight = 0.2927
    """Words in a row that the source does not have."""
    subject_unmatched: Weight = 0.05
    """Someone else than in the source is said to do or be it."""
    object_unmatched: Weight = 0.05
    """It is said of someone or something else than in the source."""
    place_unmatched: Weight = 0.05
    """Another place than in the source."""
    time_unmatched: Weight = 0.05
    """Another time than in the source."""
    number_unmatched: Weight = 0.1525
    """Another number than in the source, or one of something else."""
    verb_unmatched: Weight = 0.1227
    """Something else than in the source is said to be done."""
    polarity_changed: Weight = 0.05
    """Denied where the source does not deny it, or the other way round."""
    word_unmatched: Weight = 0.05
    """Another word where the source has one, or its opposite."""


class WordingWeights(Record):
    """The chance that the source speaks of what a claim says: log-odds for each 1 of nearness in wording."""

    base: Number = -1.1223
    """Of a claim whose wording is not near at all."""
    ties: Weight = 1.7804
    """How near words that stand close in the claim come to each other in the source (its square root)."""
    anchors: Weight = 0.6873
    """The share of words that stand near one of their neighbours in the source too, up to a half."""
    window: Weight = 1.9031
    """The share of words that one stretch of the source holds."""


class ChangeWeights(Record):
    """The chance that nothing of what the source says was changed, besides what `doubts` take off."""

    base: Number = 3.2455
    """Log-odds of a claim against which nothing speaks."""
    swapped: Weight = 1.6024
    """Taken off as the most doubtful slot comes to its limit and passes it: 0 to 1."""
    swapped_far: Weight = 0.4174
    """Taken off for each 1 of log-odds by which it passes the limit."""


class SlotLimits(Record):
    """From which log-odds on a slot counts as swapped. Lower: fewer false claims pass, more true ones fail."""

    name: Number = 1.0
    """Who, whom and where."""
    number: Number = 2.25
    """How many."""
    time: Number = 1.75
    """When."""
    verb: Number = 1.0
    """What is done."""
    word: Number = 0.75
    """What else is said."""


class FactCheckPolicy(Record):
    """How the fact checker weighs what it finds.

    Fitted by `benchmarks.learn_facts` on three sets of cited answers that may be used for it. Provenance is in
    benchmarks/results/fact_check_policy.json, what it is worth on eight other sets in verify_support.json there.
    """

    policy_id: str = "default"
    schema_version: Literal["fact_check_policy.v1"] = "fact_check_policy.v1"

    wording: WordingWeights = WordingWeights.model_construct()
    change: ChangeWeights = ChangeWeights.model_construct()
    doubts: DoubtWeights = DoubtWeights.model_construct()
    doubts_max: Positive = 2
    """More doubts of one kind in one output do not count."""
    slope: Weight = 0.8912
    """What the log-odds of both chances together are multiplied with, …"""
    shift: Number = 0.19
    """… and what is added to them, so that the support is a chance."""
    slots: SlotLimits = SlotLimits.model_construct()
    cover_min: Share = 0.25
    """A claim of which the best sentence and its neighbours hold less has no evidence."""
    absent_share: Share = 0.5
    """A claim of whose words this share is unknown to the source has no evidence."""
    evidence_max: Positive = 3
    """Sentences that are cited for a claim, at most."""
    evidence_gain_min: Share = 0.15
    """A further sentence is cited only if it holds this share of the weight of the claim's words that those before
    lack.
    """
    quote_words_max: Annotated[Integer, Field(ge=1, le=25)] = 25
    """Words of a quote that is cited as evidence, at most."""

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))


# -- learning -------------------------------------------------------------------------------------------

Whole = Annotated[Integer, Field(ge=0)]


class InjectionBudget(Record):  # RC-09
    """What recalled memory may take of a prompt, rules apart."""

    hint_tokens_max: Positive = 120
    """Of one hint."""
    tactic_tokens_max: Positive = 160
    """Of one tactic."""
    total_tokens_max: Positive = 256
    """Of everything that is recalled."""


class RecallWeights(Record):
    """S = sem·similarity + intent·likeness + state·compatibility + quality·quality, each from 0 to 1."""

    sem: Weight = 0.31
    """Of likeness in words and meaning to the task."""
    intent: Weight = 0.62
    """Of likeness of intent."""
    state: Weight = 0.3
    """Of fitting the conditions of the run."""
    quality: Weight = 0.97
    """Of how often it led to a pass."""


class PuctPolicy(Record):  # RC-21
    """How a seed is chosen: Q + c·P·√T/(1+N)."""

    c: Weight = 1.0
    """How much is explored."""
    q_method: Literal["max_reward", "mean_reward"] = "max_reward"
    """Q: the best reward of a seed, or the mean."""
    p_method: Literal["rank_prior", "uniform"] = "rank_prior"
    """P: by the rank of the rewards, or the same for all."""
    alpha: Weight = 0.5
    """Of the rank prior P ∝ exp(−α·rank)."""


class EvictionPolicy(Record):
    """How large each store may be, and what goes first when it is full."""

    method: Literal["lru", "score_decay", "hybrid"] = "hybrid"
    """Longest unused first, lowest decayed score first, or both."""
    half_life_days: Annotated[Number, Field(gt=0)] = 14
    """Of a score, under score_decay."""
    reasoning_max: Positive = 10_000
    """Episodes and tactics of the bank."""
    tactics_max: Positive = 2_000
    """Conditional tactics."""
    seeds_max: Positive = 1_000
    """Seeds."""
    capsules_max: Positive = 100_000
    """Logs of runs."""


class FoldPolicy(Record):
    """When a contrast between passing and failing runs is worth telling."""

    peers_max: Positive = 200
    """Runs of the same intent that are looked at, newest first."""
    support_min: Positive = 3
    """The fewest runs in which a feature was seen."""
    separation_min: Share = 0.2
    """By how much the passing rate of runs with a feature must exceed that of runs without it."""
    confidence_min: Share = 0.9
    """The least probability that the passing rate of runs with a feature does exceed the other."""
    drafts_max: Whole = 3  # RC-18
    """Drafts of each type."""
    working_set_bytes_max: Positive = 8 * 1024
    """A working set over this is folded (ws_overflow)."""
    summary_tokens_max: Positive = 110
    """Of an episode or tactic, so that it can be recalled whole."""
    protect_days: Whole = 1
    """A record is not pruned before it is so old."""


class LessonPolicy(Record):
    """Who is handed a lesson, and when what came of it moves it: the life of a lesson, in numbers."""

    holdout_share: Share = 0.1
    """Of the runs that an active lesson fits, so many do without it, so that it is measured as long as it lives."""
    trial_share: Share = 0.5
    """The share of the runs that a lesson on trial fits which are handed it."""
    suspended_share: Share = 0.1
    """The share of the runs that a suspended lesson fits which are handed it, to see whether the world came back."""
    margin: Annotated[Number, Field(gt=0, lt=1)] = 0.05
    """Harmful means an effect of this much or more."""
    alpha: Annotated[Number, Field(gt=0, lt=1)] = 0.05
    """How often a comparison may speak wrongly of a lesson, however often it is looked at."""
    uses_max: Positive = 240
    """Judged runs of a family that figures are made of, newest first."""


class WritingPolicy(Record):
    """What a model is shown when it writes lessons, how long it may take, and how long a lesson may be."""

    answer_tokens_max: Positive = 512
    """Of the model's answer."""
    timeout_s: Annotated[Number, Field(gt=0)] = 60
    """So long one call may take; a run is folded without it then."""
    attempts_max: Positive = 2
    """Calls for one run: once more where the answer is no list of lessons."""


class LearnPolicy(Record):
    """How runs are folded into memory, recalled, and let go."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["learn_policy.v1"] = "learn_policy.v1"

    judges: Items[JudgeKind] = ("external_process",)
    """Kinds of judge whose word on a run in a sandbox is learnt from. The code under test can forge the others'."""
    injection: InjectionBudget = InjectionBudget.model_construct()
    weights: RecallWeights = RecallWeights.model_construct()
    top_k: Positive = 5
    """Hints that one recall answers, at most."""
    gather_max: Positive = 64
    """Candidates of one source before the filter."""
    fit_min: Share = 0.25
    """What is less like the task than this, in words, tools and intent alike, is not recalled; 0: everything may be."""
    puct: PuctPolicy = PuctPolicy.model_construct()
    eviction: EvictionPolicy = EvictionPolicy.model_construct()
    fold: FoldPolicy = FoldPolicy.model_construct()
    lessons: LessonPolicy = LessonPolicy.model_construct()
    writing: WritingPolicy = WritingPolicy.model_construct()
    reasoning_ttl: NonEmpty = "days:90"
    """How long an episode is kept unless it is used: `session`, `hours:6`, `days:90`."""
    tactic_ttl: NonEmpty = "days:60"
    """A tactic."""
    seed_ttl: NonEmpty = "days:30"
    """A seed."""
    working_set_ttl: NonEmpty = "session"
    """A working set."""
    record_bytes_max: Positive = 16 * 1024
    """A record over this is refused."""
    plan_actions_max: Positive = 1_000
    """Actions of one plan."""


# -- rules ----------------------------------------------------------------------------------------------

OpenShare = Annotated[Number, Field(gt=0, lt=1)]


class SelectPolicy(Record):  # RC-15
    """How rules are chosen for a run."""

    max_rules: Positive = 8
    """Rules of one run."""
    tokens_max: Positive = 512
    """Of all rules in one prompt; they are counted apart from recalled memory."""
    near_duplicate: Share = 0.95
    """Two rules whose words are so alike (cosine) are one."""
    debias: bool = False
    """Weigh by 1/(p + 0.05), clipped, so that rules that seldom pass are tried too. Coverage, never an objective."""
    novelty_weight: Weight = 0
    """Of rules that have hardly been used."""


class RuleStatsPolicy(Record):  # RC-16
    """When numbers are worth reading."""

    thin_n: Positive = 6
    """Fewer judged runs say nothing: `unknown`."""


class LintPolicy(Record):
    """What a rule's text may be."""

    body_tokens_max: Positive = 160
    """Of a rule's text."""
    forbidden: Items[NonEmpty] = ()
    """Patterns (literal, any case) that no rule may hold, beside those that are always refused."""


class GatePolicy(Record):  # RC-18
    """What a rule must show before anybody tries it."""

    regressions_min: Positive = 1
    """Regression tests."""
    cluster_counterexamples_min: Positive = 1
    """Counterexamples from the failures it is for."""
    boundary_counterexamples_min: Positive = 1
    """Counterexamples from just beyond where it applies."""
    micro_min: Positive = 5
    """Micro-regressions: one constraint each."""
    tries: Positive = 5
    """How often each test is asked of the agent; most of the answers must pass."""
    test_timeout_s: Annotated[Number, Field(gt=0)] = 60
    """Of one answer of the agent."""
    replay_pairs_min: Whole = 5
    """Earlier tasks tried with and without. 0: replay may be left out."""


class CanaryPolicy(Record):
    """How a rule is tried on real runs, and when the trial speaks."""

    share: OpenShare = 0.05
    """The share of runs that a trial begins with."""
    share_max: OpenShare = 0.5
    """The largest share that a trial may be given."""
    margin: OpenShare = 0.05
    """Harmful means an effect of this much or more."""
    alpha: OpenShare = 0.05
    """How often a trial may speak wrongly, however often it is looked at."""
    runs_max: Positive = 20_000
    """A trial that has said nothing after so many runs ends: the rule goes back to temporary, with a report."""
    needs: Literal["better", "not_harmful"] = "better"
    """What a trial must show. That a harm is excluded is shown sooner, and wrongly of one harmful rule in twenty."""
    counts_replay: bool = True
    """A trial goes on from what its replay showed: the same comparison, the same alpha, and the trial's own runs decide
    whether that holds. False: what was shown before the trial does not count."""
    runs_min: Positive = 8
    """Of a trial that goes on from a replay: runs with the rule, and runs without, before it may promote."""
    holdout_share: Annotated[Number, Field(ge=0, lt=1)] = 0.05
    """Of runs that leave an active strategy out, so that its worth stays known. Guardrails are never left out."""


class AdvancePolicy(Record):
    """How far `advance` goes in one call."""

    calls_max: Positive = 400
    """Calls of the agent in one call of it, for all rules together, unless the caller says."""
    tasks_max: Positive = 40
    """Earlier tasks that a rule is replayed on, each with it and without, unless the caller says."""
    replay_tries: Positive = 2
    """How often each of them is asked with the rule, and as often without. Agents draw lots: asked once, a task says
    little."""


class PromotePolicy(Record):
    """Who may make a rule active."""

    signature: Literal["required", "policy"] = "required"
    """`policy`: the numbers alone may, and the report names this policy."""
    retire_signature: Literal["required", "policy"] = "policy"
    """A rule that is shown to be harmful goes without waiting for anybody."""
    user_ttl: NonEmpty = "days:30"
    """Of rules that a person submits, unless they say."""
    user_rules_max: Positive = 100
    """Rules of one user."""


class RulePolicy(Record):
    """How rules are chosen, counted, tested, tried and taken back."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["rule_policy.v1"] = "rule_policy.v1"
    select: SelectPolicy = SelectPolicy.model_construct()
    stats: RuleStatsPolicy = RuleStatsPolicy.model_construct()
    lint: LintPolicy = LintPolicy.model_construct()
    gate: GatePolicy = GatePolicy.model_construct()
    canary: CanaryPolicy = CanaryPolicy.model_construct()
    advance: AdvancePolicy = AdvancePolicy.model_construct()
    promote: PromotePolicy = PromotePolicy.model_construct()


# -- routing --------------------------------------------------------------------------------------------


class RoutePolicy(Record):  # RC-20, RC-26
    """How much is spent on a task before it is tried, and after."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["route_policy.v2"] = "route_policy.v2"
    k_probe: Positive = 3
    """Attempts of a probe."""
    k_full_min: Positive = 6
    """Attempts of a full search."""
    k_full_max: Positive = 8
    """Attempts of a full search at high impact."""
    easy_rate: Share = 0.85
    """From this pass rate on nothing is scaled beforehand; read as p_lb95 where the impact is high."""
    thin_n: Positive = 6
    """Fewer judged runs say nothing: `unknown`."""
    repairs_max: Whole = 1
    """Attempts to repair an answer whose form is wrong."""
    runs_max: Positive = 5_000
    """Runs that a decision reads, newest first."""


# -- rollouts -------------------------------------------------------------------------------------------


class RolloutPolicy(Record):  # RC-20
    """How attempts at one task differ, and what is read of them. How many there are is the route policy's."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["rollout_policy.v1"] = "rollout_policy.v1"

    top_m: Positive = 3
    """Summaries that a synthesis reads."""
    summary_tokens_max: Annotated[Integer, Field(ge=256, le=512)] = 512
    """Of the summary of one attempt."""
    temperatures: Items[Weight] = (0.7, 0.3, 1.0, 0.5)
    """Of the attempts, in turn."""
    sot_turns_max: Annotated[Integer, Field(ge=2, le=3)] = 3
    """Turns of that talk."""
    output_bytes_max: Positive = 4 * 1024 * 1024
    """An answer over this is refused where it was made, before it is sent or stored."""


# -- tree search ----------------------------------------------------------------------------------------

Seconds = Annotated[Number, Field(gt=0)]

TreeAlgo = Literal["puct_guided_tree_v1", "beam_guided_tree_v1"]


class TreePolicy(Record):
    """How a space of states is searched, and how far."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["tree_policy.v2"] = "tree_policy.v2"
    algo: TreeAlgo = "puct_guided_tree_v1"
    """Best first by PUCT, or a beam."""
    beam_width: Positive = 2
    """States that a beam keeps at each depth."""
    nodes_max: Positive = 1_000
    """States that are expanded."""
    depth_max: Positive = 64
    """How deep the search goes."""
    frontier_max: Positive = 10_000
    """States that wait; over this the least promising go, and the search says so."""
    calls_max: Positive = 50_000
    """Of expand, score and verify together."""
    cost_max: Weight | None = None
    """In the problem's own unit."""
    call_timeout_s: Seconds = 60
    """Of one call of expand, score or verify."""
    time_max_s: Seconds | None = None
    """Of the whole search."""


# -- flow map -------------------------------------------------------------------------------------------

AboveZero = Annotated[Number, Field(gt=0)]

FlowEstimatorKind = Literal["aggregate_v1", "logit_field_v1"]


class FlowMapPolicy(Record):  # RC-23
    """How logs are made into a map."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["flow_policy.v2"] = "flow_policy.v2"
    estimator: FlowEstimatorKind = "aggregate_v1"
    """Counts alone, or a field learned from features of the runs."""


# -- patterning -----------------------------------------------------------------------------------------


class PatterningPolicy(Record):  # RC-24
    """How a response is measured and turned round, and when a plan may be applied."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["patterning_policy.v1"] = "patterning_policy.v1"
    epsilon: OpenShare = 0.05
    """The share of the data that is moved to a probe, from all others in proportion, to see what follows."""
    difference: Literal["central", "one_sided"] = "central"
    """`central` also moves the share away, where the probe has it, and so cancels curvature: twice the evaluations."""
    repeats: Positive = 1
    """Each evaluation with so many seeds; without at least two nothing is known of the noise."""
    ridge_share: Weight = 1e-4
    """Of the square of the largest singular value: the least that is added. The measured noise comes on top."""
    condition_max: Annotated[Number, Field(ge=1)] = 100
    """A response whose singular values differ by more is ill-conditioned."""
    ill_conditioned: Literal["refuse", "plan"] = "refuse"
    """`refuse`: a typed error. `plan`: a plan that keeps the base weights, says why, and can never be applied."""
    step_max: Annotated[Number, Field(gt=0, le=1)] = 0.25
    """No weight moves by more in one plan: a response is local. A longer step is shortened as a whole."""
    regress_max: Weight = 0.01
    """An observable may get so much worse: a rate as it stands, a cost as a share of what it was."""
    judged_by: Literal["mean", "bound"] = "mean"
    """`bound`: also the worse end of the 95 % interval over the seeds must be within that."""
    rollback_on_regress: bool = True
    """A replay or canary that regresses rolls the plan back by itself; otherwise it has failed."""
    evaluation_timeout_s: Annotated[Number, Field(gt=0)] | None = None
    """Of one evaluation on an executor. None: as long as it takes."""


# -- research -------------------------------------------------------------------------------------------

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


class ResearchPolicy(Record):
    """How research runs are routed, checked and bounded."""

    policy_id: str = "default"
    schema_version: Literal["research_policy.v1"] = "research_policy.v1"

    limits: ResearchLimits = ResearchLimits.model_construct()
    tracks: TrackShares = TrackShares.model_construct()
    contract: ContractDefaults = ContractDefaults.model_construct()
    pivot: PivotPolicy = PivotPolicy.model_construct()
    agent_types: Items[NonEmpty] = ("ClaudeResearcher", "GeminiResearcher", "PerplexityResearcher", "GrokResearcher")
    """The agents that exist, unless the run says which."""
    perspectives_min: Positive = 3
    """A question of one sentence gets so many; each further sentence gets one more, up to the limits."""

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


# -- policy ---------------------------------------------------------------------------------------------


class LedgerPolicy(Record):
    """What the door of the ledger does."""

    redact_secrets: bool = True  # LG-10
    """Replace keys, tokens and card numbers before anything is hashed or stored."""
    flag_instructions: bool = True  # LG-08
    """Flag text from tools and outside that reads like instructions."""
    inline_bytes_max: Positive = 64 * 1024  # LG-09
    """Content over this lies in a blob."""
    content_bytes_max: Positive = 32 * 1024 * 1024
    """Content over this is refused."""
    body_bytes_max: Positive = 1024 * 1024
    """Metadata, tags, entities and tool arguments together, as canonical JSON."""
    analysis_chars_max: Positive = 64 * 1024
    """Characters of an event that are analysed for sentences, dates, names and facts. What stands behind them is stored
    and found by its words."""
    analysis_pieces_max: Positive = 4_096
    """Sentences, clauses and lines of an event that are analysed; the rest is stored and found by its words."""
    batch_entries_max: Positive = 100_000
    """Entries in one `observe_many`, which is one transaction."""
    index_turns: bool = True
    """Index messages and tool results as they are written, so that `search` finds them."""
    embed_in_background: bool = True
    """Make vectors in a thread of the process that writes, where it has an embedder; without it upkeep makes them."""
    clock_back_ms_max: Annotated[Integer, Field(ge=0)] = 300_000
    """How far the clock may step back within a session before we refuse; less is held."""


class Policy(Record):
    """Everything that can be tuned. `policy_id` names it, `digest` pins it."""

    policy_id: str = "default"
    schema_version: Literal["policy.v1"] = "policy.v1"
    ledger: LedgerPolicy = LedgerPolicy.model_construct()
    memory: MemoryPolicy = MemoryPolicy.model_construct()
    recall: RecallPolicy = RecallPolicy.model_construct()
    compose: ComposePolicy = ComposePolicy.model_construct()
    corpus: CorpusPolicy = CorpusPolicy.model_construct()
    compaction: CompactionPolicy = CompactionPolicy.model_construct()
    verify: FactCheckPolicy = FactCheckPolicy.model_construct()
    research: ResearchPolicy = ResearchPolicy.model_construct()
    learn: LearnPolicy = LearnPolicy.model_construct()
    rules: RulePolicy = RulePolicy.model_construct()
    rollout: RolloutPolicy = RolloutPolicy.model_construct()
    route: RoutePolicy = RoutePolicy.model_construct()
    flow: FlowMapPolicy = FlowMapPolicy.model_construct()
    tree: TreePolicy = TreePolicy.model_construct()
    patterning: PatterningPolicy = PatterningPolicy.model_construct()

    @classmethod
    def from_earlier(cls, value: dict[str, Any]) -> Self:
        """A policy as some version wrote it, less the settings that this one does not have."""
        return cls.from_wire(_known_settings(cls, value))

    @cached_property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))

    @cached_property
    def written(self) -> Written:
        """`to_wire` as canonical JSON: it is stored with every build."""
        return Written(canonical_text(self.to_wire()))


def _known_settings(record: type[Record], value: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name in value.keys() & record.model_fields.keys():
        kind, setting = record.model_fields[name].annotation, value[name]
        if isinstance(kind, type) and issubclass(kind, Record) and isinstance(setting, dict):
            setting = _known_settings(kind, setting)
        known[name] = setting
    return known


# -- given ----------------------------------------------------------------------------------------------


_POLICY_HINT = "give a muniment.Policy, or an object of what differs from the default"


def policy_given(given: Policy | Mapping[str, Any]) -> Policy:
    """A policy as it is, or of an object that names what differs from the default."""
    if isinstance(given, Policy):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f"a policy is an object, not {type(given).__name__}", path="$.policy", hint=_POLICY_HINT)
    try:
        return Policy.from_wire(dict(given))
    except InvalidRecord as error:
        raise error.within("$.policy") from None


def policy_named(own: Policy, given: str | Policy | Mapping[str, Any]) -> Policy:
    """The store's own policy, where `given` is its id; else the policy that `given` is or describes."""
    if not isinstance(given, str):
        return policy_given(given)
    if given not in ("default", own.policy_id):
        raise NotFound(f"no policy {given!r:.60} is known here", path="$.policy", hint=_POLICY_HINT)
    return own
