"""The numbers of fact checking, as one frozen record whose hash can be cited."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.records.base import Integer, Number, Record
from muniment.text.hashing import digest_of

__all__ = ["DoubtWeights", "FactCheckPolicy", "NearnessWeights"]

Weight = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Integer, Field(ge=1)]


class DoubtWeights(Record):
    """What each kind of doubt takes off, in log-odds of being supported."""

    number_absent: Weight = 1.101
    unit_changed: Weight = 1.0
    number_elsewhere: Weight = 0.731
    date_absent: Weight = 0.92
    name_absent: Weight = 0.56
    name_elsewhere: Weight = 1.171
    negation_added: Weight = 0.66
    negation_dropped: Weight = 1.025
    opposed: Weight = 1.049
    certainty: Weight = 0.676
    roles_swapped: Weight = 1.0
    link_changed: Weight = 1.008
    no_antecedent: Weight = 1.414
    wrong_gender: Weight = 1.078
    words_absent: Weight = 0.551


class NearnessWeights(Record):
    """What nearness of wording adds, in log-odds for each 1 of it. Little: it decides between equals."""

    cover: Weight = 0.1504
    pairs: Weight = 0.1116
    ties: Weight = 0.1666
    words: Weight = 0.0954
    pronouns: Weight = 0.0244
    """Taken off for each pronoun of the third person."""


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
    cover_min: Share = 0.25
    """A claim of which the best sentence and its neighbours hold less has no evidence."""
    absent_share: Share = 0.5
    """A claim of whose words this share is unknown to the source has no evidence."""
    evidence_max: Positive = 3
    """So many sentences are cited for a claim …"""
    evidence_gain_min: Share = 0.15
    """… each after the first only if it holds this share of the weight of the claim's words that those before lack."""
    quote_words_max: Annotated[Integer, Field(ge=1, le=25)] = 25

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))
