"""How far to go with a task (RC-20): probe, then more, then a synthesis; and when to stop.

A goal says in which waves attempts are made. After each wave `next_step` says what comes next, and why. What presses on
cost takes the synthesis first and then attempts; those of the probe stay where the impact is high.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from muniment.contracts.runs import RunCost, VerifierResult
from muniment.core.policy import RoutePolicy
from muniment.core.record import Absent, Integer, Record
from muniment.core.scope import Level, RunMode
from muniment.core.stats import wilson_bounds
from muniment.rules.rollouts.best_attempt import is_confirmed
from muniment.rules.rollouts.synthesis import needs_repair
from muniment.rules.routing.records import Tier
from muniment.verify.results import is_pass

__all__ = ["Caps", "Goal", "Known", "Made", "Spent", "Step", "Wave", "cut_step", "goal_of", "next_step"]

Positive = Annotated[Integer, Field(ge=1)]
Action = Literal["attempt", "repair", "synth", "stop", "escalate"]


class Caps(Record):
    """What all attempts at a task together may take. What is absent is not capped."""

    tokens_max: Absent[Positive] = None
    tool_calls_max: Absent[Positive] = None
    latency_ms_max: Absent[Positive] = None
    """Of the attempts added up, whether or not they ran side by side."""
    attempts_max: Absent[Positive] = None
    """Repairs and the synthesis are attempts too."""

    @property
    def on_cost(self) -> bool:
        """Is anything capped that is only known when an attempt is over? Then one is made after the other."""
        return any(limit is not None for limit in (self.tokens_max, self.tool_calls_max, self.latency_ms_max))


class Spent(NamedTuple):
    """What attempts took."""

    attempts: int = 0
    tokens: int = 0
    tool_calls: int = 0
    latency_ms: int = 0

    def add(self, cost: RunCost) -> Spent:
        tokens = (cost.tokens_in or 0) + (cost.tokens_out or 0)
        return Spent(
            self.attempts + 1,
            self.tokens + tokens,
            self.tool_calls + (cost.tool_calls or 0),
            self.latency_ms + (cost.latency_ms or 0),
        )


class Known(NamedTuple):
    """How earlier runs of the same bucket fared."""

    passes: int
    n: int


class Wave(NamedTuple):
    """Attempts of one mode; `total` is how many there are to be when it is over, with those of the waves before."""

    mode: RunMode
    total: int
    tier: Tier = "hot"


class Goal(NamedTuple):
    """How far a task may be taken."""

    waves: tuple[Wave, ...]
    impact: Level = "med"
    early: bool = True
    """A confirmed pass ends it; not where attempts are made to be compared."""
    synth: bool = False
    repairs: int = 0
    hopeless: bool = False
    """Earlier runs of the kind all but never passed."""


class Made(NamedTuple):
    """What was tried so far."""

    attempts: Sequence[VerifierResult] = ()
    repairs: Sequence[VerifierResult] = ()
    has_synth: bool = False
    spent: Spent = Spent()


class Step(NamedTuple):
    """What comes next, and why: as a stable code, and in words."""

    action: Action
    code: str
    words: str
    mode: RunMode = "main"
    k: int = 0
    tier: Tier = "hot"


def goal_of(
    mode: str, policy: RoutePolicy, impact: Level = "med", k: int | None = None, known: Known | None = None
) -> Goal:
    """How far a mode goes; of what is known of the bucket, an easy or a hopeless one is tried once."""
    if mode in ("main", "sot", "tree"):
        return Goal((Wave(mode, 1),), impact)  # type: ignore[arg-type]
    if mode == "matts":  # made to be compared, so none is left out
        return Goal((Wave("matts", k or policy.k_probe, "probe"),), impact, early=False, repairs=policy.repairs_max)
    zone = None if known is None else _zone(known, policy)
    if zone is not None and k is None:
        return Goal((Wave("main", 1),), impact, repairs=policy.repairs_max, hopeless=zone == "deadzone")
    full = policy.k_full_max if impact == "high" else policy.k_full_min
    probe = Wave("kroll", min(policy.k_probe, full), "probe")
    waves = (probe, Wave("kroll", full, "full")) if k is None else (Wave("kroll", k, "probe"),)
    if mode == "auto":
        waves = (Wave("main", 1), *waves)
    return Goal(waves, impact, early=mode != "kroll" or k is None, synth=mode != "kroll", repairs=policy.repairs_max)


def next_step(goal: Goal, made: Made, caps: Caps, policy: RoutePolicy) -> Step:
    """What to do after the attempts so far."""
    results = [*made.attempts, *made.repairs]
    count = len(made.attempts)
    if goal.early and any(map(is_confirmed, results)):
        return Step("stop", "confirmed", "an attempt passed, and its outcome is confirmed")
    if made.has_synth:
        return Step("stop", "synthesised", "the synthesis was verified")
    wave = next((each for each in goal.waves if each.total > count), None)
    is_between = count in {each.total for each in goal.waves}
    passed = any(is_pass(each.verdict, each.outcome) for each in results)
    if is_between and not passed and len(made.repairs) < goal.repairs and any(map(needs_repair, made.attempts)):
        words = "it failed by its form: that is mended before anything is tried anew"
        return cut_step(Step("repair", "form", words, k=1), made, goal, caps, policy)
    if goal.hopeless and count and not passed:
        return Step("escalate", "deadzone", "runs of this kind all but never pass: decompose the task, or escalate")
    passes = sum(is_pass(each.verdict, each.outcome) for each in made.attempts)
    if _zone(Known(passes, count), policy) == "deadzone":
        return Step("escalate", "deadzone", f"{count} attempts, and no more would do: decompose the task, or escalate")
    if wave is not None:
        words = f"attempts {count + 1} to {wave.total}"
        step = Step("attempt", wave.mode, words, wave.mode, wave.total - count, wave.tier)
        return cut_step(step, made, goal, caps, policy)
    if goal.synth and count > 1:
        step = Step("synth", "synth", "none is confirmed: they are put together", "synth", 1, "full")
        return cut_step(step, made, goal, caps, policy)
    return Step("stop", "done", "all attempts were made")


def cut_step(step: Step, made: Made, goal: Goal, caps: Caps, policy: RoutePolicy) -> Step:
    """A step as far as its cost allows. What an attempt takes is known when it is over, so under a cap on cost they are
    made one by one; those of the probe are made at any cost where the impact is high."""
    spent, k = made.spent, step.k
    if caps.attempts_max is not None:
        k = min(k, caps.attempts_max - spent.attempts)
    if k > 0 and caps.on_cost:
        is_kept = step.action == "attempt" and goal.impact == "high" and len(made.attempts) < policy.k_probe
        k = int(is_kept or _fits(spent, caps))
    if k > 0:
        return step._replace(k=k)
    return Step("stop", "capped", f"after {spent.attempts} attempts nothing is left for this: {step.words}")


def _zone(known: Known, policy: RoutePolicy) -> Literal["easy", "deadzone"] | None:
    """The zone of a bucket, or of the attempts at one task, read as a router reads it."""
    if known.n < policy.deadzone_k:
        return None
    bounds = wilson_bounds(known.passes, known.n)
    is_dead = bounds.lower < policy.deadzone_rate and bounds.upper < policy.deadzone_upper
    return "deadzone" if is_dead else "easy" if bounds.lower >= policy.easy_rate else None


def _fits(spent: Spent, caps: Caps) -> bool:
    """Is there room for one more like those before it?"""
    limits = (
        (spent.tokens, caps.tokens_max),
        (spent.tool_calls, caps.tool_calls_max),
        (spent.latency_ms, caps.latency_ms_max),
    )
    return all(limit is None or _one_more(used, spent.attempts) <= limit for used, limit in limits)


def _one_more(used: int, attempts: int) -> float:
    return used + used / attempts if attempts else 0.0
