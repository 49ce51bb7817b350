"""The numbers of ranking, as one frozen record whose hash can be cited."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.canonical import digest_of
from muniment.core.record import Integer, Items, Number, Record

__all__ = ["RecallPolicy"]

Weight = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Integer, Field(ge=1)]


class RecallPolicy(Record):
    """How candidates are scored and ordered.

    The unit of every weight is the best match in words: the turn whose words, in context, answer the query best has 1.
    Set by hand on three LoCoMo conversations and fifty LongMemEval questions. `benchmarks.learn_recall` searches
    around them with cross-validation and found nothing that holds better on folds it had not seen.
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
    number: Weight = 0.1
    """Has a number, or says how often, where that is asked for."""
    time: Weight = 0.1
    """Said within the stretch of time that the query names."""
    recency: Weight = 0.05
    """For the newest turn of the scope, falling to 0 for the oldest, where the query asks how things are now."""

    # -- vectors, where there are any --
    dense_turn: Weight = 0.15
    """For each standard deviation by which a turn's vector is nearer to the query's than the mean."""
    dense_window: Weight = 0.05
    """For each standard deviation by which the vector of a window of turns is nearer to the query's than the mean."""
    dense_light: dict[str, Share] = Field(default_factory=lambda: {"wordllama": 0.35})
    """Embedders (by the name before the `@` of their identity) whose vectors count for less, and how much of it."""
    dense_english: Items[str] = ("wordllama", "minilm")
    """Embedders that know English alone: a question in another script is asked by its words only."""

    # -- what was learnt --
    ranking: Annotated[str, Field(pattern=r"^([0-9a-f]{16,64})?$")] = "df9c268b8d39465d"
    """The digest (its first 16 signs or more) of the ranking that was learnt over the best candidates; empty: none."""

    # -- several answers --
    diversity: Weight = 0.03
    """Taken off a session's other turns for each one already taken, where the query asks for several things."""
    stretch: Weight = 0.3
    """How much of what the turns around one score is added to its own score, where the query asks for an account of
    what was said."""
    diversity_pool: Positive = 60
    """How many of the best candidates `diversity` and `stretch` are applied to."""

    # -- how likely it is evidence --
    evidence: Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")] = "87678262445a61a7"
    """The digest (its first 16 signs or more) of the calibration by which a hit's signs become a chance."""

    # -- what changed --
    newest_pool: Positive = 10
    """How many of the best candidates are compared: those that answer alike are put in order of time, the newest first.
    """
    anchor_match: Share = 0.75
    """The anchor that others are compared with is the best candidate that holds this share of the most weight of words
    that any of them holds."""
    newest_match: Share = 0.6
    """Candidates answer alike only if each holds this share of the weight of words that the anchor holds."""
    newest_overlap: Share = 0.65
    """Candidates answer alike only if this share of the words that either holds is held by both."""
    supposed_overlap: Share = 0.8
    """What takes the place of `newest_overlap` where neither the present nor a number is asked for, and it is only
    likely that things may change.
    """
    newest_score: Share = 0.3
    """Candidates answer alike only if each has this share of the anchor's score: a weak match is not lifted for being
    late."""
    newest_reach: Positive = 30
    """How many of the best candidates are searched for turns that tell of a change, or state the same attribute in
    other words.
    """
    changed_match: Share = 0.4
    """What takes the place of `newest_match` and `newest_overlap` for a turn that tells of a change."""
    changed_score: Share = 0.25
    """What takes the place of `newest_score` for a turn that tells of a change."""
    restated_match: Share = 0.95
    """What takes the place of `newest_match` and `newest_overlap` for turns of one session, of which more is asked."""
    restated_overlap: Share = 0.5
    """Turns of one session answer alike only if they have this share of the shorter one's words in common, while each
    says something of its own.
    """

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))
