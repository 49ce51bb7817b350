"""The policy: one frozen document of numbers and switches, a section for each room, and one hash that builds refer to.

Units come last in names. `Policy` is the whole document; `policy_given` parses one from callers' input.
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
"""A key, in which `*` matches any run of characters: `user.allergy`, `user.likes.*`."""


class TrustConfidence(Record):
    """The default confidence of remembered facts by source: 0.5 unless set otherwise here."""

    user: Confidence = 0.5
    """For facts from the user."""
    assistant: Confidence = 0.5
    """For facts from the assistant."""
    tool: Confidence = 0.5
    """For facts from tool results."""
    external: Confidence = 0.5
    """For facts from external sources: pages, files, third-party mail."""
    user_quote: Confidence = 0.9
    """For facts from the user with a verified verbatim quote. The fact's notes record it."""


class FactPolicy(Record):  # MP-06, MP-09
    """Resolution of conflicting facts, and the keys of preferences."""

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
    """Keys whose facts are preferences unless the caller sets it otherwise."""
    lower_trust_disputes: bool = True
    """Evidence of lower trust than the active fact's disputes it instead of superseding it."""
    confidence: TrustConfidence = TrustConfidence.model_construct()


class PromotionPolicy(Record):  # MP-17
    """Conditions for candidates to become facts automatically. Others wait for `decide`."""

    automatic: bool = True
    """False: every candidate waits for `decide`."""
    confidence_min: Confidence = 0.8
    """Candidates below it wait."""
    trust: Items[Trust] = ("user",)
    """Evidence of any other trust waits."""
    needs_quote: bool = True
    """Require a quote that was checked against its source."""
    decline_contradictions: bool = True
    """Decline what contradicts an active fact of higher trust; otherwise it waits."""


class ExtractionPolicy(Record):  # MP-17
    """Limits on a model's input, batches and proposals."""

    roles: Items[Literal["user", "assistant", "system", "developer"]] = ("user",)
    """Roles whose messages are read for facts; all others are context at most."""
    batch_turns_max: Positive = 8
    """Turns read in one call."""
    batch_tokens_max: Positive = 2_000
    """Tokens of the turns of one call. A longer turn is read alone."""
    turn_chars_max: Positive = 16_384
    """Longer turns are read up to this length."""
    context_turns_max: Count = 4
    """Turns before the first of a batch that are shown as context and not read."""
    context_chars_max: Positive = 600
    """Longer context turns are cut to this length."""
    facts_per_turn_max: Positive = 8
    """Proposals from one turn; the excess is dropped and counted."""
    answer_tokens_max: Positive = 1_024
    """Tokens of one answer."""
    attempts_max: Positive = 3
    """Attempts of a call that fails in a transient way, or gets a malformed answer."""
    claim_s: Positive = 300
    """Seconds for which a worker holds a batch. After that another may take it over, and the first one's result is not
    written.
    """
    in_background: bool = True
    """Read turns in the background in a store that is opened with `extract=`."""
    wait_s: Annotated[Number, Field(ge=0)] = 2.0
    """Seconds after a turn before it is read in the background, so that turns that follow share its call."""
    confidence: Confidence = 0.8
    """Confidence of a proposal that passed every check."""
    keys: Items[KeyPattern] = ("user.*", "person.*.*")
    """Keys that a model may propose."""
    keys_refused: Items[KeyPattern] = (
        "*.role", "*.roles", "*.admin", "*.is_admin", "*.permission", "*.permissions", "*.trust", "*.password",
        "*.passphrase", "*.pin", "*.secret", "*.token", "*.api_key", "*.apikey", "*.credentials", "*.card_number",
        "*.iban", "*.privilege", "*.privileges", "*.access", "*.access_level", "*.clearance", "*.rights",
        "user.instruction*",
    )  # fmt: skip
    """Keys that a model may not propose: people's permissions are not theirs to state, instructions must be the user's
    own words, and secrets are never facts.
    """


class ProfilePolicy(Record):
    """Access to the profile of a user, and its share of a packet."""

    share: Share = 0.25
    """A planner's or tool's packet spends up to this share of max_tokens on it before other memory,"""
    responder_share: Share = 0.15
    """and a responder's, which may only be asked about the past, up to this one,"""
    tokens_min: Count = 64
    """but never less than this."""
    enabled: bool = True
    """False disables all profiles."""
    users_off: Items[KeyPattern] = ()
    """The ids of users without a profile; `*` matches any run of characters."""
    purposes: Items[Literal["planner", "tool", "responder"]] = ("planner", "tool", "responder")
    """The packets that may contain it."""
    tool_kinds: Items[Literal["safety", "wish", "other"]] = ("safety", "wish")
    """The statements that a tool's packet may carry: on health and safety, standing wishes, and all others. Statements
    that share a word with the call are always carried.
    """


class MemoryPolicy(Record):
    """Handling of conversation content: candidates, facts, insights, the profile."""

    extract_on_observe: bool = False
    """Extract candidates from each message as it is observed (patterns, no model)."""
    facts: FactPolicy = FactPolicy.model_construct()
    promotion: PromotionPolicy = PromotionPolicy.model_construct()
    extraction: ExtractionPolicy = ExtractionPolicy.model_construct()
    insight_confidence: Confidence = 0.3
    """The default confidence of an insight."""
    profile: ProfilePolicy = ProfilePolicy.model_construct()


# -- recall ---------------------------------------------------------------------------------------------


Weight = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]


class RecallPolicy(Record):
    """Scoring and order of candidates.

    The unit of every weight is the best match in words: the turn whose words, in context, best match the query has 1.
    Set by hand on three LoCoMo conversations and fifty LongMemEval questions.
    """

    policy_id: str = "default"
    schema_version: Literal["recall_policy.v1"] = "recall_policy.v1"

    # -- words in context --
    own: Weight = 2.0
    """Weight of a turn's own words."""
    before_1: Weight = 1.0
    """Weight of the words of the turn before: it is often the question that this one answers."""
    before_2: Weight = 0.5
    """Weight of the words of the turn two before."""
    after_1: Weight = 0.5
    """Weight of the words of the turn after."""
    after_2: Weight = 0.25
    """Weight of the words of the turn two after."""
    chat_context: Share = 0.5
    """Share of that context a turn gets in a session with an unnamed assistant, whose long answers repeat their
    questions.
    """
    chat_length: Annotated[Number, Field(gt=0)] = 120.0
    """Length in words of a turn that gets half of that. Longer turns get less."""
    session_date: Weight = 1.0
    """Weight of the session's date, as if it were in every turn."""
    saturation: Annotated[Number, Field(gt=0)] = 1.2
    """BM25's k1: how soon further repetitions of a word stop helping."""
    length: Share = 0.5
    """BM25's b: how strongly a long turn's words are discounted, 0 not at all."""
    term_repeats_max: Positive = 2
    """Maximum count of a word that is repeated in the query."""

    # -- common knowledge --
    kinds: Weight = 1.0
    """Weight of terms that may stand for a query term ("pets" → dog), against a term of the query itself."""
    kinds_damping: Share = 0.5
    """Share of `kinds` taken back where some turn already contains every word of the query."""
    kinds_before: Weight = 0.5
    """Weight of such terms in the turn before."""
    kinds_after: Weight = 0.2
    """Weight of such terms in the turn after."""

    # -- who, when, what sort of turn --
    called: Share = 0.3
    """Weight of a query word that is the name of a speaker in the scope."""
    speaker: Weight = 0.3
    """Bonus for a turn by the one person the query names."""
    company: Weight = 0.5
    """Bonus for a turn in a session where a speaker named in the query takes part, if there are other sessions."""
    role: Weight = 0.35
    """Bonus for the user's turns where users ask about themselves; for the assistant's where they ask what it wrote."""
    question: Weight = 0.04
    """Deducted from a turn that ends in a question mark: questions seldom hold the answer."""
    question_only: Weight = 0.1
    """Deducted from a turn that is only a question."""
    time: Weight = 0.1
    """Bonus for a turn within the period that the query names."""

    # -- vectors, where there are any --
    dense_turn: Weight = 0.15
    """Per standard deviation by which a turn's vector is nearer to the query's than the mean."""
    dense_window: Weight = 0.05
    """Per standard deviation by which the vector of a window of turns is nearer to the query's than the mean."""
    dense_english: Items[str] = ("e5-small",)
    """English-only embedders: queries in another script are searched by words only."""

    # -- learning --
    ranking: Annotated[str, Field(pattern=r"^([0-9a-f]{16,64})?$")] = "51d21bb46c1baee0"
    """The digest (its first 16 characters or more) of the ranking fitted over the best candidates; empty: none."""

    # -- several answers --
    stretch: Weight = 0.3
    """Share of the scores of neighbouring turns that is added to one of the best, where the query asks for an account
    of a conversation.
    """

    newest: Positive = 6
    """Number of best hits among which those with the same content are sorted newest first; 1: none."""

    # -- how likely it is evidence --
    evidence: Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")] = "8054fa64bd4e2ba4"
    """The digest (its first 16 characters or more) of the calibration from a hit's features to a probability."""

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))


# -- documents ------------------------------------------------------------------------------------------


class CorpusPolicy(Record):
    """Chunk sizes. A chunk is the unit of pointers and search: long enough to make sense alone, short enough to be
    read.
    """

    chunk_chars: Annotated[Integer, Field(ge=16)] = 1_200
    """Target size of a chunk; a paragraph over it stays whole up to the next limit."""
    chunk_chars_max: Annotated[Integer, Field(ge=16)] = 2_000
    """Hard limit of a chunk."""
    chunk_chars_min: Annotated[Integer, Field(ge=0)] = 120
    """A shorter section is joined with the next one."""
    document_bytes_max: Positive = 16 * 1024 * 1024
    """Larger documents are refused."""
    title_chars_max: Positive = 300
    """A longer title is refused; one extracted from the text is cut."""
    reason_chars_max: Positive = 2_000
    """Longest reason for retracting a document."""

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
    """Active facts."""
    procedures: Share = 0.25
    """Procedures for the task."""
    short_term_summary: Share = 1.0
    """The rolling summary, quotes, recent turns and tool results."""
    episodes: Share = 0.35
    """Stretches of earlier sessions."""
    insights: Share = 0.15
    """Hypotheses and sketches; never in a responder's packet unless allowed below."""


class SectionFloors(Record):  # TM-04
    """Shares of max_tokens reserved for a section until it is filled. Together at most 1.

    Unused reserves are released. A cap (`shares`, `per_section`) binds a floor too.
    """

    working_state: Share = 0.0
    """Goal, plan and slots of the run."""
    facts: Share = 0.0
    """Active facts."""
    procedures: Share = 0.0
    """Procedures for the task."""
    short_term_summary: Share = 0.0
    """The rolling summary, quotes, recent turns and tool results; quotes also take what other sections leave."""
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
    """Summary, quotes and facts strong; state medium; a few episodes; insights only where allowed."""

    working_state: Share = 0.1
    facts: Share = 0.15
    short_term_summary: Share = 0.4
    episodes: Share = 0.06
    insights: Share = 0.08


class PurposeFloors(Record):
    """Floors of each section by purpose, following the weights of the packet's injection table."""

    planner: PlannerFloors = PlannerFloors.model_construct()
    """In a planner's packet."""
    tool: ToolFloors = ToolFloors.model_construct()
    """In a tool's packet."""
    responder: ResponderFloors = ResponderFloors.model_construct()
    """In a responder's packet."""


class ComposePolicy(Record):  # MP-18
    """Packet limits. Counts bound content that does not match the query; tokens bound the rest."""

    max_tokens: Annotated[int, Field(ge=256)] = 2048
    """The default budget of a packet's text."""
    shares: SectionShares = SectionShares.model_construct()
    floors: PurposeFloors = PurposeFloors.model_construct()
    floor_tokens_min: Count = 48
    """Smaller floors are not reserved: they would hold next to nothing, and take the place of a quote."""
    claims_max: Count = 24
    """The run's verified claims: those that match the question, then the newest."""
    questions_max: Count = 8
    """Open questions of the run, the latest."""
    conflicts_max: Count = 6
    """Unsettled conflicts of the run, the latest."""
    failures_max: Count = 6
    """Failures of the run: its own reports first, then failed tool calls."""
    instructions_max: Count = 24
    """Standing instructions of the user: the latest,"""
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
    """The latest turns of the session, quoted in full."""
    tool_evidence_max: Count = 3
    """Tool results of the session included as evidence."""
    candidates_max: Count = 100
    """Turns that a search may contribute to one packet."""
    raw_days: Count = 7
    """Younger episodes are included raw."""
    phase_days: Count = 30
    """Younger episodes become phase summaries; older ones milestones."""
    milestone_days: Count = 90
    """Older episodes are included only on a cue."""
    raw_lines: Count = 6
    """Sentences of a raw episode."""
    phase_lines: Count = 3
    """Sentences of a phase summary."""
    milestone_lines: Count = 1
    """Sentences of a milestone."""
    recency_half_life_days: Annotated[float, Field(gt=0)] = 14.0
    """Days after which an episode's recency_score has halved."""
    unmatched_share: Share = 0.15
    """Share of max_tokens that unmatched facts and recent turns may take before matches to the query."""
    settled_share: Share = 0.12
    """Share of max_tokens that the session's settled points (constraints, decisions, commitments) may take first."""
    quote_share: Share = 0.35
    """Maximum share of max_tokens of one quote; a longer one is cut to the sentences that match best."""
    cut_tokens_min: Count = 16
    """With less room than this a text is left out rather than cut."""
    short_tokens: Annotated[int, Field(ge=1)] = 64
    """Turns of about this many tokens are ordered by likelihood alone. A longer one is worth less for its room,"""
    length_discount: Share = 0.75
    """by its length to this power: at 1 one of twice the tokens needs twice the chance, at 0 length does not count."""
    evidence_share: Share = 0.01
    """Quotes worth less than this share of the best one are left out even if there is room,"""
    evidence_min: Share = 0.0005
    """and so are those that are less likely evidence than this."""
    found_min: Share = 0.08
    """A quote with at least this probability of being evidence counts as an answer found,"""
    match_min: Share = 0.5
    """or a fact, or a line of the run's state, with this share of the query."""
    confidence_min: Confidence = 0.2
    """Facts with less confidence are left out."""
    near_duplicate: Share = 0.9
    """Overlap of words (Jaccard) from which a second text counts as a duplicate."""
    barred_trust_responder: Items[Trust] = ()
    """Evidence of these sources is kept out of a responder's packet,"""
    barred_trust_planner: Items[Trust] = ()
    """out of a planner's,"""
    barred_trust_tool: Items[Trust] = ()
    """out of a tool's."""
    quote_instruction_like: bool = False
    """Allow quoting text from a tool or outside that reads like instructions. Otherwise it is omitted, and the packet
    notes it.
    """
    allow_validated_insights_in_responder: bool = False  # MP-12
    """Allow validated insights in a responder's packet. Others are never included."""


# -- compaction -----------------------------------------------------------------------------------------


class CompactionPolicy(Record):
    """When and how a run's log is compacted. The defaults are the contract's; change them only on rates measured by
    `drift`.
    """

    auto: bool = True
    """Compact when a step makes it due. Otherwise only `run.log.compact()` does."""
    event_threshold: Positive = 18
    """Counted events since the last snapshot that trigger one."""
    step_fallback: Positive = 8
    """Steps since the last snapshot that trigger one."""
    own_words_verify: bool = False
    """Allow the agent's own words to verify a claim."""
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
    """Deductions for each kind of doubt, in log-odds of being supported."""

    number_absent: Weight = 1.7758
    """A number that is missing from the source."""
    unit_changed: Weight = 0.2927
    """A number with another unit."""
    number_elsewhere: Weight = 0.2927
    """A number that the source gives for something else."""
    date_absent: Weight = 0.2927
    """A date that is missing from the source."""
    name_absent: Weight = 0.653
    """A name that is missing from the source."""
    name_elsewhere: Weight = 0.2927
    """A name that the source has in another place."""
    negation_added: Weight = 0.2927
    """A negation that is missing from the source."""
    negation_dropped: Weight = 0.2927
    """A negation of the source that is missing from the claim."""
    opposed: Weight = 1.4045
    """A word whose opposite is in the source."""
    certainty: Weight = 0.2927
    """Stated with more or less certainty than in the source."""
    roles_swapped: Weight = 0.2927
    """Agent and patient are swapped."""
    link_changed: Weight = 0.2927
    """The claim names another cause, order or condition than the source."""
    no_antecedent: Weight = 0.2927
    """A pronoun without a possible antecedent."""
    wrong_gender: Weight = 0.2927
    """A pronoun whose gender differs from its antecedent's."""
    words_absent: Weight = 0.2927
    """Consecutive words that are missing from the source."""
    subject_unmatched: Weight = 0.05
    """A different subject than in the source."""
    object_unmatched: Weight = 0.05
    """A different object than in the source."""
    place_unmatched: Weight = 0.05
    """Another place than in the source."""
    time_unmatched: Weight = 0.05
    """Another time than in the source."""
    number_unmatched: Weight = 0.1525
    """Another number than in the source, or a number of something else."""
    verb_unmatched: Weight = 0.1227
    """A different action than in the source."""
    polarity_changed: Weight = 0.05
    """Negated where the source is not, or the other way round."""
    word_unmatched: Weight = 0.05
    """Another word where the source has one, or its opposite."""


class WordingWeights(Record):
    """The probability that the source covers a claim's subject: log-odds for each 1 of similarity in wording."""

    base: Number = -1.1223
    """Log-odds of a claim with no similarity in wording."""
    ties: Weight = 1.7804
    """The closeness in the source of words that are near each other in the claim (its square root)."""
    anchors: Weight = 0.6873
    """The share of words near one of their neighbours in the source too, up to a half."""
    window: Weight = 1.9031
    """The share of words within one stretch of the source."""


class ChangeWeights(Record):
    """The probability that the claim changes nothing in the source, apart from what `doubts` deducts."""

    base: Number = 3.2455
    """Log-odds of a claim without any doubt."""
    swapped: Weight = 1.6024
    """Deducted as the most doubtful slot reaches its limit and passes it: 0 to 1."""
    swapped_far: Weight = 0.4174
    """Deducted for each 1 of log-odds by which it passes the limit."""


class SlotLimits(Record):
    """Log-odds above which a slot counts as swapped. Lower: fewer false claims pass, more true ones fail."""

    name: Number = 1.0
    """People, things and places."""
    number: Number = 2.25
    """Numbers."""
    time: Number = 1.75
    """Times."""
    verb: Number = 1.0
    """Actions."""
    word: Number = 0.75
    """Other words."""


class FactCheckPolicy(Record):
    """The fact checker's weights.

    Fitted by `benchmarks.learn_facts` on three sets of cited answers licensed for it. Provenance is in
    benchmarks/results/fact_check_policy.json, results on eight other sets in verify_support.json there.
    """

    policy_id: str = "default"
    schema_version: Literal["fact_check_policy.v1"] = "fact_check_policy.v1"

    wording: WordingWeights = WordingWeights.model_construct()
    change: ChangeWeights = ChangeWeights.model_construct()
    doubts: DoubtWeights = DoubtWeights.model_construct()
    doubts_max: Positive = 2
    """Further doubts of one kind in one output do not count."""
    slope: Weight = 0.8912
    """Multiplier of the log-odds of both probabilities together, …"""
    shift: Number = 0.19
    """… and the offset added to them, so that the support is a probability."""
    slots: SlotLimits = SlotLimits.model_construct()
    cover_min: Share = 0.25
    """A claim has no evidence if the best sentence and its neighbours hold a smaller share of it."""
    absent_share: Share = 0.5
    """A claim has no evidence if this share of its words is unknown to the source."""
    evidence_max: Positive = 3
    """Sentences that are cited for a claim, at most."""
    evidence_gain_min: Share = 0.15
    """A further sentence is cited only if it holds this share of the weight of the claim's words that earlier ones
    lack.
    """
    quote_words_max: Annotated[Integer, Field(ge=1, le=25)] = 25
    """Words of a quote cited as evidence, at most."""

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))


# -- learning -------------------------------------------------------------------------------------------

Whole = Annotated[Integer, Field(ge=0)]


class InjectionBudget(Record):  # RC-09
    """Limits on recalled memory in a prompt, rules apart."""

    hint_tokens_max: Positive = 120
    """Tokens of one hint."""
    tactic_tokens_max: Positive = 160
    """Tokens of one tactic."""
    total_tokens_max: Positive = 256
    """Tokens of everything recalled."""


class RecallWeights(Record):
    """S = sem·similarity + intent·likeness + state·compatibility + quality·quality, each from 0 to 1."""

    sem: Weight = 0.31
    """Similarity to the task in words and meaning."""
    intent: Weight = 0.62
    """Similarity of intent."""
    state: Weight = 0.3
    """Match with the conditions of the run."""
    quality: Weight = 0.97
    """Frequency of passes after its use."""


class PuctPolicy(Record):  # RC-21
    """Selection of seeds: Q + c·P·√T/(1+N)."""

    c: Weight = 1.0
    """Weight of exploration."""
    q_method: Literal["max_reward", "mean_reward"] = "max_reward"
    """Q: the best reward of a seed, or the mean."""
    p_method: Literal["rank_prior", "uniform"] = "rank_prior"
    """P: by the rank of the rewards, or the same for all."""
    alpha: Weight = 0.5
    """Exponent of the rank prior P ∝ exp(−α·rank)."""


class EvictionPolicy(Record):
    """The size of each store, and what is evicted first when it is full."""

    method: Literal["lru", "score_decay", "hybrid"] = "hybrid"
    """Longest unused first, lowest decayed score first, or both."""
    half_life_days: Annotated[Number, Field(gt=0)] = 14
    """Half-life of a score, under score_decay."""
    reasoning_max: Positive = 10_000
    """Episodes and tactics of the bank."""
    tactics_max: Positive = 2_000
    """Conditional tactics."""
    seeds_max: Positive = 1_000
    """Seeds."""
    capsules_max: Positive = 100_000
    """Logs of runs."""


class FoldPolicy(Record):
    """When a contrast between passing and failing runs is worth recording."""

    peers_max: Positive = 200
    """Runs of the same intent that are examined, newest first."""
    support_min: Positive = 3
    """The fewest runs in which a feature was seen."""
    separation_min: Share = 0.2
    """Minimum excess of the passing rate of runs with a feature over that of runs without it."""
    confidence_min: Share = 0.9
    """The least probability that the passing rate of runs with a feature does exceed the other."""
    drafts_max: Whole = 3  # RC-18
    """Drafts of each type."""
    working_set_bytes_max: Positive = 8 * 1024
    """A working set over this is folded (ws_overflow)."""
    summary_tokens_max: Positive = 110
    """Tokens of an episode or tactic, so that it can be recalled whole."""
    protect_days: Whole = 1
    """Minimum age of a record before it may be pruned."""


class LessonPolicy(Record):
    """The life of a lesson in numbers: the runs that receive it, and the evidence that changes its status."""

    holdout_share: Share = 0.1
    """Share of matching runs that do without an active lesson, so that its effect is measured throughout its life."""
    trial_share: Share = 0.5
    """Share of matching runs that receive a lesson on trial."""
    suspended_share: Share = 0.1
    """Share of matching runs that receive a suspended lesson, to see whether conditions have changed back."""
    margin: Annotated[Number, Field(gt=0, lt=1)] = 0.05
    """An effect of this much or more counts as harmful."""
    alpha: Annotated[Number, Field(gt=0, lt=1)] = 0.05
    """Probability of a wrong conclusion about a lesson, however often the comparison is checked."""
    uses_max: Positive = 240
    """Judged runs of a family that statistics use, newest first."""


class WritingPolicy(Record):
    """Limits on a model that writes lessons: its input, its time, and the length of a lesson."""

    answer_tokens_max: Positive = 512
    """Tokens of the model's answer."""
    timeout_s: Annotated[Number, Field(gt=0)] = 60
    """Timeout of one call; a run is folded without it then."""
    attempts_max: Positive = 2
    """Calls for one run: a second where the answer is not a list of lessons."""


class LearnPolicy(Record):
    """Folding of runs into memory, recall, and eviction."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["learn_policy.v1"] = "learn_policy.v1"

    judges: Items[JudgeKind] = ("external_process",)
    """Kinds of judge whose verdict on a sandboxed run is learned from. The code under test can forge the others'."""
    injection: InjectionBudget = InjectionBudget.model_construct()
    weights: RecallWeights = RecallWeights.model_construct()
    top_k: Positive = 5
    """Maximum number of hints in one recall."""
    gather_max: Positive = 64
    """Candidates of one source before the filter."""
    fit_min: Share = 0.25
    """Minimum similarity to the task, over words, tools and intent, for recall; 0 disables it."""
    puct: PuctPolicy = PuctPolicy.model_construct()
    eviction: EvictionPolicy = EvictionPolicy.model_construct()
    fold: FoldPolicy = FoldPolicy.model_construct()
    lessons: LessonPolicy = LessonPolicy.model_construct()
    writing: WritingPolicy = WritingPolicy.model_construct()
    reasoning_ttl: NonEmpty = "days:90"
    """Lifetime of an unused episode: `session`, `hours:6`, `days:90`."""
    tactic_ttl: NonEmpty = "days:60"
    """Lifetime of an unused tactic."""
    seed_ttl: NonEmpty = "days:30"
    """Lifetime of an unused seed."""
    working_set_ttl: NonEmpty = "session"
    """Lifetime of a working set."""
    record_bytes_max: Positive = 16 * 1024
    """Larger records are refused."""
    plan_actions_max: Positive = 1_000
    """Actions of one plan."""


# -- rules ----------------------------------------------------------------------------------------------

OpenShare = Annotated[Number, Field(gt=0, lt=1)]


class SelectPolicy(Record):  # RC-15
    """Selection of rules for a run."""

    max_rules: Positive = 8
    """Rules of one run."""
    tokens_max: Positive = 512
    """Tokens of all rules in one prompt; they are counted apart from recalled memory."""
    near_duplicate: Share = 0.95
    """Word similarity (cosine) from which two rules count as one."""
    debias: bool = False
    """Weigh by 1/(p + 0.05), clipped, so that rarely passing rules are tried too. For coverage, never an objective."""
    novelty_weight: Weight = 0
    """Bonus for hardly used rules."""


class RuleStatsPolicy(Record):  # RC-16
    """When a rule's statistics are meaningful."""

    thin_n: Positive = 6
    """With fewer judged runs the result is `unknown`."""


class LintPolicy(Record):
    """Limits on a rule's text."""

    body_tokens_max: Positive = 160
    """Tokens of a rule's text."""
    forbidden: Items[NonEmpty] = ()
    """Patterns (literal, any case) that no rule may contain, in addition to the built-in ones."""


class GatePolicy(Record):  # RC-18
    """Evidence a rule needs before it is tried."""

    regressions_min: Positive = 1
    """Regression tests."""
    cluster_counterexamples_min: Positive = 1
    """Counterexamples from the failures it targets."""
    boundary_counterexamples_min: Positive = 1
    """Counterexamples from just outside its scope."""
    micro_min: Positive = 5
    """Micro-regressions: one constraint each."""
    tries: Positive = 5
    """Runs of each test on the agent; most of the answers must pass."""
    test_timeout_s: Annotated[Number, Field(gt=0)] = 60
    """Timeout of one answer of the agent."""
    replay_pairs_min: Whole = 5
    """Earlier tasks tried with and without the rule. 0: replay may be left out."""


class CanaryPolicy(Record):
    """Trial of a rule on real runs, and the conditions of a conclusion."""

    share: OpenShare = 0.05
    """Initial share of runs in a trial."""
    share_max: OpenShare = 0.5
    """Largest share of runs in a trial."""
    margin: OpenShare = 0.05
    """An effect of this much or more counts as harmful."""
    alpha: OpenShare = 0.05
    """Probability of a wrong conclusion from a trial, however often it is checked."""
    runs_max: Positive = 20_000
    """A trial without a conclusion after this many runs ends: the rule goes back to temporary, with a report."""
    needs: Literal["better", "not_harmful"] = "better"
    """Required result of a trial. Excluding harm takes fewer runs, and is wrong for one harmful rule in twenty."""
    counts_replay: bool = True
    """Continue a trial from the evidence of its replay: the same comparison, the same alpha, and the trial's own runs
    decide whether that holds. False: evidence from before the trial does not count.
    """
    runs_min: Positive = 8
    """For a trial that continues from a replay: minimum runs with the rule, and without, before it may promote."""
    holdout_share: Annotated[Number, Field(ge=0, lt=1)] = 0.05
    """Share of runs that leave an active strategy out, so that its effect stays measured. Guardrails are never left
    out.
    """


class AdvancePolicy(Record):
    """Limits on one call of `advance`."""

    calls_max: Positive = 400
    """Calls of the agent in one `advance`, for all rules together; the default of its argument."""
    tasks_max: Positive = 40
    """Earlier tasks that a rule is replayed on, each with it and without; the default of its argument."""
    replay_tries: Positive = 2
    """Runs of each task with the rule, and without. Agents are random: a single run of a task means little."""


class PromotePolicy(Record):
    """Permission to activate a rule."""

    signature: Literal["required", "policy"] = "required"
    """`policy`: the numbers alone suffice, and the report names this policy."""
    retire_signature: Literal["required", "policy"] = "policy"
    """`policy`: a rule that is shown to be harmful is retired without a signature."""
    user_ttl: NonEmpty = "days:30"
    """Default lifetime of rules that a person submits."""
    user_rules_max: Positive = 100
    """Rules of one user."""


class RulePolicy(Record):
    """Selection, statistics, tests, trials and withdrawal of rules."""

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
    """Effort spent on a task before it is tried, and after."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["route_policy.v2"] = "route_policy.v2"
    k_probe: Positive = 3
    """Attempts of a probe."""
    k_full_min: Positive = 6
    """Attempts of a full search."""
    k_full_max: Positive = 8
    """Attempts of a full search at high impact."""
    easy_rate: Share = 0.85
    """No effort is added beforehand from this pass rate on; where the impact is high, p_lb95 is compared."""
    thin_n: Positive = 6
    """With fewer judged runs the result is `unknown`."""
    repairs_max: Whole = 1
    """Attempts to repair an answer of the wrong form."""
    runs_max: Positive = 5_000
    """Runs that a decision reads, newest first."""


# -- rollouts -------------------------------------------------------------------------------------------


class RolloutPolicy(Record):  # RC-20
    """Variation of attempts at one task, and the input of a synthesis. The route policy sets their number."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["rollout_policy.v1"] = "rollout_policy.v1"

    top_m: Positive = 3
    """Summaries that a synthesis reads."""
    summary_tokens_max: Annotated[Integer, Field(ge=256, le=512)] = 512
    """Tokens of the summary of one attempt."""
    temperatures: Items[Weight] = (0.7, 0.3, 1.0, 0.5)
    """Temperatures of the attempts, used cyclically."""
    sot_turns_max: Annotated[Integer, Field(ge=2, le=3)] = 3
    """Turns of that talk."""
    output_bytes_max: Positive = 4 * 1024 * 1024
    """Larger answers are refused before they are sent or stored."""


# -- tree search ----------------------------------------------------------------------------------------

Seconds = Annotated[Number, Field(gt=0)]

TreeAlgo = Literal["puct_guided_tree_v1", "beam_guided_tree_v1"]


class TreePolicy(Record):
    """Search of a space of states, and its limits."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["tree_policy.v2"] = "tree_policy.v2"
    algo: TreeAlgo = "puct_guided_tree_v1"
    """Best first by PUCT, or a beam."""
    beam_width: Positive = 2
    """States that a beam keeps at each depth."""
    nodes_max: Positive = 1_000
    """States that are expanded."""
    depth_max: Positive = 64
    """Maximum depth of the search."""
    frontier_max: Positive = 10_000
    """Waiting states; beyond this the least promising are dropped, and the search reports it."""
    calls_max: Positive = 50_000
    """Calls of expand, score and verify together."""
    cost_max: Weight | None = None
    """Cost limit, in the problem's own unit."""
    call_timeout_s: Seconds = 60
    """Timeout of one call of expand, score or verify."""
    time_max_s: Seconds | None = None
    """Timeout of the whole search."""


# -- flow map -------------------------------------------------------------------------------------------

AboveZero = Annotated[Number, Field(gt=0)]

FlowEstimatorKind = Literal["aggregate_v1", "logit_field_v1"]


class FlowMapPolicy(Record):  # RC-23
    """Estimation of a map from logs."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["flow_policy.v2"] = "flow_policy.v2"
    estimator: FlowEstimatorKind = "aggregate_v1"
    """Counts alone, or a field learned from features of the runs."""


# -- patterning -----------------------------------------------------------------------------------------


class PatterningPolicy(Record):  # RC-24
    """Measurement and inversion of a response, and the conditions for applying a plan."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["patterning_policy.v1"] = "patterning_policy.v1"
    epsilon: OpenShare = 0.05
    """Share of the data moved to a probe, from all others in proportion, to measure the response."""
    difference: Literal["central", "one_sided"] = "central"
    """`central` also moves the share away, where the probe has it, which cancels curvature at twice the evaluations."""
    repeats: Positive = 1
    """Seeds of each evaluation; fewer than two give no estimate of the noise."""
    ridge_share: Weight = 1e-4
    """Minimum ridge, as a share of the square of the largest singular value. The measured noise is added."""
    condition_max: Annotated[Number, Field(ge=1)] = 100
    """Largest ratio of singular values; beyond it a response is ill-conditioned."""
    ill_conditioned: Literal["refuse", "plan"] = "refuse"
    """`refuse`: a typed error. `plan`: a plan that keeps the base weights, explains why, and can never be applied."""
    step_max: Annotated[Number, Field(gt=0, le=1)] = 0.25
    """Largest change of a weight in one plan, as a response is local. A longer step is scaled down as a whole."""
    regress_max: Weight = 0.01
    """Largest allowed regression of an observable: a rate in absolute terms, a cost relative to its base."""
    judged_by: Literal["mean", "bound"] = "mean"
    """`bound`: the worse end of the 95 % interval over the seeds must be within that too."""
    rollback_on_regress: bool = True
    """Roll the plan back automatically if a replay or canary regresses; otherwise it is marked as failed."""
    evaluation_timeout_s: Annotated[Number, Field(gt=0)] | None = None
    """Timeout of one evaluation on an executor. None: no limit."""


# -- research -------------------------------------------------------------------------------------------

Kilobytes = Annotated[Number, Field(gt=0, le=1024 * 1024)]


class ResearchLimits(Record):
    """Limits of a run: set when it starts, kept in its manifest, repeated word for word in its pack."""

    max_summary_kb: Kilobytes = 5
    """Size of one summary, in KB on disk."""
    max_total_summary_kb: Kilobytes = 60
    """Size of all summaries together, in KB on disk."""
    max_key_claims: Positive = 12
    """Key claims in one summary."""
    max_wave1_agents: Positive = 6
    """Perspectives of the first wave."""
    max_wave2_agents: Whole = 6
    """Perspectives of the second wave; 0 for no second wave."""
    max_review_rounds: Positive = 4
    """Maximum number of checks of a draft."""

    @property
    def summary_bytes_max(self) -> int:
        return int(self.max_summary_kb * 1024)

    @property
    def total_bytes_max(self) -> int:
        return int(self.max_total_summary_kb * 1024)


class TrackShares(Record):
    """Distribution of perspectives over tracks, by largest remainder; ties go to the track listed first."""

    standard: Weight = 50
    """Perspectives that use the usual sources."""
    independent: Weight = 25
    """Perspectives that use independent sources."""
    contrarian: Weight = 25
    """Perspectives that look for counterevidence."""

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.standard + self.independent + self.contrarian > 0:
            raise ValueError("at least one track should have a share")
        return self


class ContractDefaults(Record):
    """Defaults of a perspective's prompt contract."""

    max_words: Positive = 900
    """Words of an output."""
    max_sources: Positive = 12
    """Sources of an output."""
    search_calls: Whole = 4
    """Searches that an agent may make."""
    fetch_calls: Whole = 6
    """Pages that an agent may fetch."""
    must_include_sections: Items[NonEmpty] = ("Findings", "Sources", "Gaps")
    """Required headings of an output."""


class PivotPolicy(Record):
    """When a second wave is worth it: enough P0 gaps, P1 gaps, or gaps with enough P1 or P2 among them."""

    p0_min: Positive = 1
    """Gaps of priority P0 that suffice."""
    p1_min: Positive = 2
    """Gaps of priority P1 that suffice."""
    gaps_min: Positive = 4
    """Gaps of any priority that suffice if `gaps_p1_p2_min` of them are P1 or P2."""
    gaps_p1_p2_min: Positive = 3
    """Gaps of priority P1 or P2 that must be among the `gaps_min`."""


class ResearchPolicy(Record):
    """Routing, checks and limits of research runs."""

    policy_id: str = "default"
    schema_version: Literal["research_policy.v1"] = "research_policy.v1"

    limits: ResearchLimits = ResearchLimits.model_construct()
    tracks: TrackShares = TrackShares.model_construct()
    contract: ContractDefaults = ContractDefaults.model_construct()
    pivot: PivotPolicy = PivotPolicy.model_construct()
    agent_types: Items[NonEmpty] = ("ClaudeResearcher", "GeminiResearcher", "PerplexityResearcher", "GrokResearcher")
    """The available agents; the default of a run."""
    perspectives_min: Positive = 3
    """Perspectives of a one-sentence question; each further sentence adds one, up to the limits."""

    output_bytes_max: Positive = 4 * 1024 * 1024
    """Larger outputs of an agent are refused before they are read."""
    attempts_max: Positive = 3
    """Outputs in breach of the contract after which a perspective accepts no more: it is dropped, or the run is."""
    sources_max: Positive = 2_000
    """Different sources in one run."""
    snippet_chars_max: Positive = 600
    """Characters of a source's text in citations.jsonl."""
    claims_checked_max: Positive = 400
    """Sentences of one output checked against their sources; the first by rank."""
    claim_chars_max: Positive = 600
    """Longer sentences cannot be key claims."""
    claim_words_min: Positive = 4
    """Words of the shortest key claim (a Han or kana character counts as half a word)."""
    claim_cids_max: Positive = 5
    """Citations of one claim."""
    near_duplicate: Share = 0.9
    """Overlap of words (Jaccard) from which a claim repeats another."""
    gaps_max: Positive = 20
    """Gaps that are kept of one output."""
    flagged_max: Positive = 12
    """Claims of one perspective that are listed as not supported; the rest are counted."""
    unchecked_confidence: Annotated[Integer, Field(ge=0, le=100)] = 25
    """Confidence of a claim whose source may be cited but has no text to check against."""
    support_min: Share = 0.5
    """Confidence (0 to 1) below which a claim is not supported. Every claim that the checker calls supported has one
    half: more than 0.5 requires closer wording.
    """

    validated_share_min: Share = 0.9
    """Gate C: citations that are valid or paywalled."""
    invalid_share_max: Share = 0.1
    """Gate C: citations that are invalid."""
    accepted_share_min: Share = 0.5
    """Gate B: share of perspectives whose output was accepted; each of the others must be dropped with a reason."""
    summarised_share_min: Share = 0.9
    """Gate D: perspectives with a summary."""
    report_sections: Items[NonEmpty] = ("Summary", "Findings", "Limitations", "Sources")
    """Gate E: default sections of a report."""


# -- policy ---------------------------------------------------------------------------------------------


class LedgerPolicy(Record):
    """Checks, limits and indexing at admission to the ledger."""

    redact_secrets: bool = True  # LG-10
    """Replace keys, tokens and card numbers before anything is hashed or stored."""
    flag_instructions: bool = True  # LG-08
    """Flag text from tools and outside that reads like instructions."""
    inline_bytes_max: Positive = 64 * 1024  # LG-09
    """Larger content is stored in a blob."""
    content_bytes_max: Positive = 32 * 1024 * 1024
    """Larger content is refused."""
    body_bytes_max: Positive = 1024 * 1024
    """Metadata, tags, entities and tool arguments together, as canonical JSON."""
    analysis_chars_max: Positive = 64 * 1024
    """Characters of an event that are analysed for sentences, dates, names and facts. The rest is stored and found by
    its words.
    """
    analysis_pieces_max: Positive = 4_096
    """Sentences, clauses and lines of an event that are analysed; the rest is stored and found by its words."""
    batch_entries_max: Positive = 100_000
    """Entries in one `observe_many`, which is one transaction."""
    index_turns: bool = True
    """Index messages and tool results as they are written, so that `search` finds them."""
    embed_in_background: bool = True
    """Make vectors in a background thread of the writing process, if it has an embedder; else upkeep does."""
    clock_back_ms_max: Annotated[Integer, Field(ge=0)] = 300_000
    """Clock steps back within a session beyond this are refused; smaller ones are held."""


class Policy(Record):
    """All tunable settings. `policy_id` names it, `digest` pins it."""

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
        """Load a policy that another version wrote, without settings that this version lacks."""
        return cls.from_wire(_known_settings(cls, value))

    @cached_property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))

    @cached_property
    def written(self) -> Written:
        """`to_wire` as canonical JSON, stored with every build."""
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
    """Return a policy unchanged, or build one from an object with the differences from the default."""
    if isinstance(given, Policy):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f"a policy is an object, not {type(given).__name__}", path="$.policy", hint=_POLICY_HINT)
    try:
        return Policy.from_wire(dict(given))
    except InvalidRecord as error:
        raise error.within("$.policy") from None


def policy_named(own: Policy, given: str | Policy | Mapping[str, Any]) -> Policy:
    """Return the store's own policy if `given` is its id; else the policy that `given` is or describes."""
    if not isinstance(given, str):
        return policy_given(given)
    if given not in ("default", own.policy_id):
        raise NotFound(f"no policy {given!r:.60} is known here", path="$.policy", hint=_POLICY_HINT)
    return own
