"""The numbers of learning memory, as one frozen record. Units stand last in names."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.record import Integer, Items, NonEmpty, Number, Record
from muniment.core.vocabulary import JudgeKind

__all__ = [
    "EvictionPolicy",
    "FoldPolicy",
    "InjectionBudget",
    "LearnPolicy",
    "LessonPolicy",
    "PraxisPolicy",
    "PuctPolicy",
    "RecallWeights",
    "WritingPolicy",
]

Positive = Annotated[Integer, Field(ge=1)]
Whole = Annotated[Integer, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Weight = Annotated[Number, Field(ge=0)]


class InjectionBudget(Record):  # RC-09
    """What recalled memory may take of a prompt, rules apart."""

    hint_tokens_max: Positive = 120
    """Of one hint."""
    tactic_tokens_max: Positive = 160
    """Of one tactic."""
    total_tokens_max: Positive = 256
    """Of everything that is recalled."""


class RecallWeights(Record):
    """S = sem·similarity + tools·likeness + intent·likeness + state·compatibility + quality·quality, each from 0 to 1.

    Learnt from runs of three sets, each counting the same (`benchmarks.learn_recall_weights`, which also tells how they
    hold on families and sets they were not learnt from); `state` was the same in all of them and is set by hand.
    """

    sem: Weight = 0.31
    """Of likeness in words and meaning to the task."""
    intent: Weight = 0.62
    """Of likeness of intent."""
    tools: Weight = 1.9
    """Of likeness of the tools called; those that act and those that few runs call weigh more."""
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
    recent_max: Positive = 50
    """The newest of them are compared by themselves as well: what holds now is found though older runs outvote it."""
    support_min: Positive = 3
    """The fewest runs in which a feature was seen."""
    separation_min: Share = 0.2
    """By how much the passing rate of runs with a feature must exceed that of runs without it."""
    confidence_min: Share = 0.9
    """The least probability that the passing rate of runs with a feature does exceed the other."""
    tactics_max: Whole = 3
    """New tactics a fold may propose."""
    drafts_max: Whole = 3  # RC-18
    """Drafts of each type."""
    cluster_min: Positive = 3
    """A failure that came back so often in the window is a cluster."""
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
    """Of the runs that lessons on trial fit, so many get one of them while nothing is known; then what came of them
    lately decides, between a holdout's share and all but the holdout of trials."""
    trial_holdout_share: Share = 0.2
    """Of the runs that lessons on trial fit, so many at least get none: with few to compare with, nothing is proven."""
    suspended_share: Share = 0.1
    """Of the runs that suspended lessons fit, so many get one of them, to see whether the world came back."""
    trial_places: Whole = 2
    """Lessons of one family that are on trial at a time; the others wait."""
    trial_uses_min: Positive = 10
    """Judged runs, with it or held out, before a trial is decided."""
    trial_uses_max: Positive = 120
    """A trial that does not look like helping by then is over; one that does goes on until it is proven or no longer
    looks so."""
    trial_idle_max: Positive = 60
    """A trial ends when so many judged runs of its family came and it was among what was handed out in none."""
    suspended_uses_min: Positive = 5
    """Runs with a suspended lesson before it is decided on."""
    suspended_uses_max: Positive = 12
    """A suspended lesson that shows no good in so many runs with it is retired."""
    uses_max: Positive = 240
    """Judged runs of a family that figures are made of, newest first."""
    half_life_uses: Annotated[Number, Field(gt=0)] = 80
    """After so many uses, a use weighs half as much in the effect of a lesson."""
    half_life_runs: Annotated[Number, Field(gt=0)] = 12
    """After so many judged runs of its kind of work, an outcome counts half as much where records are chosen."""
    exploration: Share = 0.3
    """Of the ways of doing a task that passed, the one to try is drawn from so much of the doubt about each; at 0 it is
    always the one that is expected to pass most often."""
    false_max: Share = 0.1
    """Of kinds of work in which no lesson helps, so many at most ever have an active one, however long and often they
    are looked at; where some help, so many of the active ones at most are idle, on average."""
    confidence: Annotated[Number, Field(gt=0, lt=1)] = 0.97
    """Of the interval that must lie above the margin for a lesson that costs less."""
    doubt: Annotated[Number, Field(gt=0, lt=1)] = 0.9
    """Of the interval that must lie below nought for a lesson to go: it is doubted sooner than it is believed."""
    hope: Annotated[Number, Field(gt=0, lt=1)] = 0.8
    """Of the interval that it must clear when its trial is over, or to come back from suspension."""
    margin: Share = 0.1
    """A lesson that costs less may pass so much less often, at most, and still count as as good."""
    change_threshold: Annotated[Number, Field(gt=0)] = 7.0
    """The log likelihood ratio at which a lesson's own history is told to have changed. At 7, about one in twenty-five
    lessons whose rate stays the same is told so within a hundred uses."""


class PraxisPolicy(Record):
    """What version 0.1 retired tactics by. Settings and clients of then may still give it; `lessons` decides."""

    margin: Share = 0.1
    """Without effect since lessons are measured against their holdout."""
    alpha: Annotated[Number, Field(gt=0, lt=1)] = 0.05
    """Without effect."""
    fails_in_a_row_max: Positive = 6
    """Without effect."""


class WritingPolicy(Record):
    """What a model is shown when it writes lessons, how long it may take, and how long a lesson may be."""

    events_max: Positive = 16
    """Events that are shown of a run: its first, those that went wrong, its last."""
    event_chars_max: Positive = 400
    """Of one event, half from its beginning and half from its end."""
    lessons_max: Positive = 3
    """Lessons that one run may teach."""
    text_tokens_max: Positive = 60
    """Of one lesson with its condition, whoever writes it."""
    answer_tokens_max: Positive = 512
    """Of the model's answer."""
    timeout_s: Annotated[Number, Field(gt=0)] = 60
    """So long one call may take; a run is folded without it then."""
    attempts_max: Positive = 2
    """Calls for one run: once more where the answer is no list of lessons."""
    likeness_min: Share = 0.7
    """Of the words of two lessons that name the same things: so many in common, and they are one."""


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
    hopeless_rate: Share = 0.2
    """A record whose pass rate lies below this beyond doubt is not recalled."""
    quality_prior_passes: Weight = 1.0
    """Passes that a record is taken to have before it has any."""
    quality_prior_fails: Weight = 1.0
    """Fails that a record is taken to have before it has any."""
    recency_half_life_days: Annotated[Number, Field(gt=0)] = 30
    """After so many days without use, what a record's age adds has halved."""
    puct: PuctPolicy = PuctPolicy.model_construct()
    eviction: EvictionPolicy = EvictionPolicy.model_construct()
    fold: FoldPolicy = FoldPolicy.model_construct()
    lessons: LessonPolicy = LessonPolicy.model_construct()
    praxis: PraxisPolicy = PraxisPolicy.model_construct()
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
