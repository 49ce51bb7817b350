"""How memory is kept: what a new value does to an old one, what may be promoted without asking, when to extract."""

from typing import Annotated

from pydantic import Field

from muniment.core.record import Confidence, Items, NonEmpty, Record
from muniment.core.vocabulary import Trust

__all__ = ["FactPolicy", "MemoryPolicy", "PromotionPolicy", "TrustConfidence"]

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


class MemoryPolicy(Record):
    """What becomes of what is said: candidates, facts, insights."""

    extract_on_observe: bool = False
    """Look for candidates in each message as it is observed (patterns, no model)."""
    facts: FactPolicy = FactPolicy.model_construct()
    promotion: PromotionPolicy = PromotionPolicy.model_construct()
    insight_confidence: Confidence = 0.3
    """The confidence of an insight that names none."""
