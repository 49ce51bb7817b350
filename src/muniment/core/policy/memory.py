"""How memory is kept: what a new value does to an old one, what may be promoted without asking, when to extract."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.record import Confidence, Count, Integer, Items, NonEmpty, Record
from muniment.core.vocabulary import Trust

__all__ = ["ExtractionPolicy", "FactPolicy", "MemoryPolicy", "PromotionPolicy", "TrustConfidence"]

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
    confidence_max: Confidence = 0.7
    """The most that a model named by its address, or a function, is believed of itself: below what is promoted."""
    doubtful_confidence_max: Confidence = 0.5
    """The most for a proposal on words that suppose, that name nobody, or that are the bare value."""
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


class MemoryPolicy(Record):
    """What becomes of what is said: candidates, facts, insights."""

    extract_on_observe: bool = False
    """Look for candidates in each message as it is observed (patterns, no model)."""
    facts: FactPolicy = FactPolicy.model_construct()
    promotion: PromotionPolicy = PromotionPolicy.model_construct()
    extraction: ExtractionPolicy = ExtractionPolicy.model_construct()
    insight_confidence: Confidence = 0.3
    """The confidence of an insight that names none."""
