"""The numbers of fact checking, as one frozen record whose hash can be cited."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.canonical import digest_of
from muniment.core.record import Integer, Number, Record

__all__ = ["DoubtWeights", "FactCheckPolicy", "NearnessWeights", "SlotLimits"]

Weight = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Integer, Field(ge=1)]


class DoubtWeights(Record):
    """What each kind of doubt takes off, in log-odds of being supported."""

    number_absent: Weight = 0.7667
    """A number that the source does not have."""
    unit_changed: Weight = 1.1078
    """A number with another unit."""
    number_elsewhere: Weight = 0.05
    """A number that the source has for something else."""
    date_absent: Weight = 0.5358
    """A date that the source does not have."""
    name_absent: Weight = 0.2814
    """A name that the source does not have."""
    name_elsewhere: Weight = 0.7505
    """A name that the source has in another place."""
    negation_added: Weight = 0.05
    """A denial that the source does not make."""
    negation_dropped: Weight = 0.2243
    """A denial of the source that is missing."""
    opposed: Weight = 0.7036
    """A word whose opposite the source has."""
    certainty: Weight = 0.05
    """Said with more or less certainty than in the source."""
    roles_swapped: Weight = 0.05
    """Who did it and whom it was done to have changed places."""
    link_changed: Weight = 2.0665
    """The claim names another cause, order or condition than the source."""
    no_antecedent: Weight = 0.3084
    """A pronoun that can stand for nobody."""
    wrong_gender: Weight = 0.4836
    """A pronoun of another gender than the one it stands for."""
    words_absent: Weight = 0.05
    """Words in a row that the source does not have."""
    subject_unmatched: Weight = 0.1046
    """Someone else than in the source is said to do or be it."""
    object_unmatched: Weight = 0.05
    """It is said of someone or something else than in the source."""
    place_unmatched: Weight = 0.3487
    """Another place than in the source."""
    time_unmatched: Weight = 0.05
    """Another time than in the source."""
    number_unmatched: Weight = 0.3265
    """Another number than in the source, or one of something else."""
    verb_unmatched: Weight = 0.2279
    """Something else than in the source is said to be done."""
    polarity_changed: Weight = 0.05
    """Denied where the source does not deny it, or the other way round."""
    word_unmatched: Weight = 0.2003
    """Another word where the source has one, or its opposite."""


class NearnessWeights(Record):
    """What nearness of wording adds, in log-odds for each 1 of it, and what it makes doubts weigh."""

    ties: Weight = 1.0013
    """How near words that stand close in the claim come to each other in the source (its square root)."""
    anchors: Weight = 1.1304
    """The share of words that stand near one of their neighbours in the source too, up to a half."""
    window: Weight = 0.9609
    """The share of words that one stretch of the source holds (its square)."""
    doubted: Weight = 0.148
    """Taken off for each doubt, as far as one place of the source covers the claim: then it is no other subject."""
    contradicted: Weight = 0.3479
    """Taken off for each contradiction, as far as the source holds the claim's words."""
    swapped: Weight = 0.4914
    """Taken off as far as the most doubtful slot is likely to be swapped."""
    unmatched: Weight = 0.0567
    """Taken off for the share of the slots that the source does not bear."""


class SlotLimits(Record):
    """From which log-odds on a slot of a claim counts as swapped. Lower: fewer false claims pass, more true ones fail."""

    name: Number = 0.25
    """Who, whom and where."""
    number: Number = 0.25
    """How many."""
    time: Number = 1.75
    """When."""
    verb: Number = 1.5
    """What is done."""
    word: Number = 1.5
    """What else is said."""


class FactCheckPolicy(Record):
    """How the fact checker weighs what it finds.

    Learned by `benchmarks.learn_facts` on 357 pairs of BUMP and four domains of SummEdits, with what it found on folds
    that it had not seen in benchmarks/results/fact_check_policy.json. Kinds of doubt too rare there keep about 1.
    """

    policy_id: str = "default"
    schema_version: Literal["fact_check_policy.v1"] = "fact_check_policy.v1"

    base: Number = -0.9512
    """Log-odds of a claim against which nothing speaks and whose wording is not near at all."""
    doubts: DoubtWeights = DoubtWeights.model_construct()
    doubts_max: Positive = 2
    """More doubts of one kind in one output do not count."""
    nearness: NearnessWeights = NearnessWeights.model_construct()
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
