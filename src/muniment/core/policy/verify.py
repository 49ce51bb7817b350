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

    number_absent: Weight = 1.101
    """A number that the source does not have."""
    unit_changed: Weight = 1.0
    """A number with another unit."""
    number_elsewhere: Weight = 0.731
    """A number that the source has for something else."""
    date_absent: Weight = 0.92
    """A date that the source does not have."""
    name_absent: Weight = 0.56
    """A name that the source does not have."""
    name_elsewhere: Weight = 1.171
    """A name that the source has in another place."""
    negation_added: Weight = 0.66
    """A denial that the source does not make."""
    negation_dropped: Weight = 1.025
    """A denial of the source that is missing."""
    opposed: Weight = 1.049
    """A word whose opposite the source has."""
    certainty: Weight = 0.676
    """Said with more or less certainty than in the source."""
    roles_swapped: Weight = 1.0
    """Who did it and whom it was done to have changed places."""
    link_changed: Weight = 1.008
    """The claim names another cause, order or condition than the source."""
    no_antecedent: Weight = 1.414
    """A pronoun that can stand for nobody."""
    wrong_gender: Weight = 1.078
    """A pronoun of another gender than the one it stands for."""
    words_absent: Weight = 0.551
    """Words in a row that the source does not have."""
    subject_unmatched: Weight = 1.0
    """Someone else than in the source is said to do or be it."""
    object_unmatched: Weight = 1.0
    """It is said of someone or something else than in the source."""
    place_unmatched: Weight = 1.0
    """Another place than in the source."""
    time_unmatched: Weight = 1.0
    """Another time than in the source."""
    number_unmatched: Weight = 1.0
    """Another number than in the source, or one of something else."""
    verb_unmatched: Weight = 1.0
    """Something else than in the source is said to be done."""
    polarity_changed: Weight = 1.0
    """Denied where the source does not deny it, or the other way round."""
    word_unmatched: Weight = 1.0
    """Another word where the source has one, or its opposite."""


class NearnessWeights(Record):
    """What nearness of wording adds, in log-odds for each 1 of it. Little: it decides between equals."""

    cover: Weight = 0.1504
    """The weight of the words that the best sentence and its neighbours hold."""
    pairs: Weight = 0.1116
    """Neighbouring words that are neighbours in the source too."""
    ties: Weight = 0.1666
    """How near words that stand close in the claim come to each other in the source."""
    words: Weight = 0.0954
    """The share of words that the source holds."""
    pronouns: Weight = 0.0244
    """Taken off for each pronoun of the third person."""


class SlotLimits(Record):
    """From which log-odds on a slot counts as swapped. Lower: fewer false claims pass, more true ones fail."""

    name: Number = 0.75
    """Who, whom and where."""
    number: Number = 0.25
    """How many."""
    time: Number = 0.25
    """When."""
    verb: Number = 1.5
    """What is done."""
    word: Number = 0.0
    """What else is said."""


class FactCheckPolicy(Record):
    """How the fact checker weighs what it finds.

    Learned by `benchmarks.learn_facts` on 357 pairs of BUMP and four domains of SummEdits, with what it found on folds
    that it had not seen in benchmarks/results/fact_check_policy.json. Kinds of doubt too rare there keep about 1.
    """

    policy_id: str = "default"
    schema_version: Literal["fact_check_policy.v1"] = "fact_check_policy.v1"

    base: Number = 0.2474
    """Log-odds of a claim against which nothing speaks and whose wording is not near at all."""
    sharpness: Weight = 3.0
    """Stretches the log-odds: it changes no order, and puts what is supported near 1 and what is not near 0."""
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
