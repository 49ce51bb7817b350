"""The numbers of fact checking, as one frozen record whose hash can be cited."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.canonical import digest_of
from muniment.core.record import Integer, Number, Record

__all__ = ["ChangeWeights", "DoubtWeights", "FactCheckPolicy", "SlotLimits", "WordingWeights"]

Weight = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Integer, Field(ge=1)]


class DoubtWeights(Record):
    """What each kind of doubt takes off, in log-odds of being supported."""

    number_absent: Weight = 1.2343
    """A number that the source does not have."""
    unit_changed: Weight = 0.3212
    """A number with another unit."""
    number_elsewhere: Weight = 0.3212
    """A number that the source has for something else."""
    date_absent: Weight = 0.3212
    """A date that the source does not have."""
    name_absent: Weight = 0.6703
    """A name that the source does not have."""
    name_elsewhere: Weight = 0.3212
    """A name that the source has in another place."""
    negation_added: Weight = 0.3212
    """A denial that the source does not make."""
    negation_dropped: Weight = 0.3212
    """A denial of the source that is missing."""
    opposed: Weight = 1.6472
    """A word whose opposite the source has."""
    certainty: Weight = 0.3212
    """Said with more or less certainty than in the source."""
    roles_swapped: Weight = 0.3212
    """Who did it and whom it was done to have changed places."""
    link_changed: Weight = 3.6144
    """The claim names another cause, order or condition than the source."""
    no_antecedent: Weight = 0.3828
    """A pronoun that can stand for nobody."""
    wrong_gender: Weight = 1.4166
    """A pronoun of another gender than the one it stands for."""
    words_absent: Weight = 0.3212
    """Words in a row that the source does not have."""
    subject_unmatched: Weight = 0.05
    """Someone else than in the source is said to do or be it."""
    object_unmatched: Weight = 0.05
    """It is said of someone or something else than in the source."""
    place_unmatched: Weight = 0.205
    """Another place than in the source."""
    time_unmatched: Weight = 0.05
    """Another time than in the source."""
    number_unmatched: Weight = 0.1154
    """Another number than in the source, or one of something else."""
    verb_unmatched: Weight = 0.05
    """Something else than in the source is said to be done."""
    polarity_changed: Weight = 0.05
    """Denied where the source does not deny it, or the other way round."""
    word_unmatched: Weight = 0.05
    """Another word where the source has one, or its opposite."""


class WordingWeights(Record):
    """The chance that the source speaks of what a claim says: log-odds for each 1 of nearness in wording."""

    base: Number = -1.8364
    """Of a claim whose wording is not near at all."""
    ties: Weight = 2.1327
    """How near words that stand close in the claim come to each other in the source (its square root)."""
    anchors: Weight = 0.7214
    """The share of words that stand near one of their neighbours in the source too, up to a half."""
    window: Weight = 1.8035
    """The share of words that one stretch of the source holds."""


class ChangeWeights(Record):
    """The chance that nothing of what the source says was changed, besides what `doubts` take off."""

    base: Number = 2.2464
    """Log-odds of a claim against which nothing speaks."""
    swapped: Weight = 1.1792
    """Taken off as the most doubtful slot comes to its limit and passes it: 0 to 1."""
    swapped_far: Weight = 0.3622
    """Taken off for each 1 of log-odds by which it passes the limit."""


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

    Learned by `benchmarks.learn_facts` on six sets of cited answers, BUMP and four domains of SummEdits. Provenance is
    in benchmarks/results/fact_check_policy.json, what it is worth on sets left out in verify_support.json there.
    """

    policy_id: str = "default"
    schema_version: Literal["fact_check_policy.v1"] = "fact_check_policy.v1"

    wording: WordingWeights = WordingWeights.model_construct()
    change: ChangeWeights = ChangeWeights.model_construct()
    doubts: DoubtWeights = DoubtWeights.model_construct()
    doubts_max: Positive = 2
    """More doubts of one kind in one output do not count."""
    slope: Weight = 0.9694
    """What the log-odds of both chances together are multiplied with, …"""
    shift: Number = 0.0202
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
