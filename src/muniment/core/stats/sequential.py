"""Bounds and tests that hold however often one looks: is a candidate better than the baseline, or harmful?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log, log1p
from typing import Any, Literal, Self

from muniment.core.stats.bounds import JEFFREYS, Bounds, Prior, log_beta, log_share_above
from muniment.core.stats.counts import Tally, check_number, check_open_rate
from muniment.errors import InvalidInput

__all__ = [
    "STAKES",
    "Arm",
    "Comparison",
    "Decision",
    "RateVerdict",
    "confidence_sequence",
    "difference_sequence",
    "evidence_above",
    "evidence_below",
    "log_mean",
    "rate_test",
]

RateVerdict = Literal["above", "below", "undecided"]


def confidence_sequence(tally: Tally, alpha: float = 0.05, prior: Prior = JEFFREYS) -> Bounds:
    """The rates that the game against them has not refuted. With chance 1 − alpha the true one is among them at
    every look; it is wider than Wilson's interval, and that is the price of looking.
    """
    edge = -log(check_open_rate("alpha", alpha))
    p_hat = tally.p_hat
    if p_hat is None:
        return Bounds(0.0, 1.0)
    mixture = _log_mixture(tally, prior)

    def refuted(p: float) -> bool:
        return mixture - _log_likelihood(tally, p) >= edge

    lower = _border(refuted, 0.0, p_hat) if tally.passes else 0.0
    upper = _border(refuted, 1.0, p_hat) if tally.fails else 1.0
    return Bounds(lower, upper)


def difference_sequence(candidate: Tally, baseline: Tally, alpha: float = 0.05) -> Bounds:
    """Bounds on candidate − baseline at every look, from one confidence sequence for each arm at alpha/2."""
    mine = confidence_sequence(candidate, check_open_rate("alpha", alpha) / 2)
    other = confidence_sequence(baseline, alpha / 2)
    return Bounds(mine.lower - other.upper, mine.upper - other.lower)


def evidence_above(tally: Tally, threshold: float, prior: Prior = JEFFREYS) -> float:
    """The log of an e-value against "the rate is at most `threshold`": log 20 is evidence at 0.05, at any look."""
    check_open_rate("threshold", threshold)
    return _one_sided(tally, threshold, Prior(*prior))


def evidence_below(tally: Tally, threshold: float, prior: Prior = JEFFREYS) -> float:
    """The log of an e-value against "the rate is at least `threshold`"."""
    check_open_rate("threshold", threshold)
    return _one_sided(Tally(tally.fails, tally.n), 1 - threshold, Prior(prior[1], prior[0]))


def rate_test(tally: Tally, threshold: float, alpha: float = 0.05) -> RateVerdict:
    """Either claim is wrong with a chance of at most alpha, over all looks together."""
    edge = -log(check_open_rate("alpha", alpha))
    if evidence_above(tally, threshold) >= edge:
        return "above"
    return "below" if evidence_below(tally, threshold) >= edge else "undecided"


def _one_sided(tally: Tally, threshold: float, prior: Prior) -> float:
    """The likelihood mixed over the rates above the threshold alone, over the likelihood at the threshold.

    Each rate above it wins against the threshold, and against anything lower, no more than a fair game would.
    """
    before = log_share_above(threshold, *prior)
    after = log_share_above(threshold, prior.passes + tally.passes, prior.fails + tally.fails)
    return _log_mixture(tally, prior) + after - before - _log_likelihood(tally, threshold)


def _log_mixture(tally: Tally, prior: Prior) -> float:
    return log_beta(prior[0] + tally.passes, prior[1] + tally.fails) - log_beta(*prior)


def _log_likelihood(tally: Tally, p: float) -> float:
    return (tally.passes * log(p) if tally.passes else 0.0) + (tally.fails * log1p(-p) if tally.fails else 0.0)


def _border(refuted: Callable[[float], bool], outside: float, inside: float) -> float:
    """Where refuted turns into not refuted between an end of the unit interval and the observed rate, from outside."""
    if inside in (0.0, 1.0):  # the likelihood has no logarithm at an end: step off it
        inside = abs(inside - exp(-30))
    for _ in range(60):
        middle = (outside + inside) / 2
        if middle in (outside, inside):
            break
        outside, inside = (middle, inside) if refuted(middle) else (outside, middle)
    return outside


Arm = Literal["candidate", "baseline"]
Decision = Literal["better", "not_harmful", "harmful", "undecided"]

STAKES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""The stakes played at once, with equal shares. The best one is effect / variance of a round: .1 to .8 for an effect of
.05 at pass rates from .5 to .97."""

_START = (0.0,) * len(STAKES)
_WAITING = Tally()

Capitals = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The state of a comparison: a value, of constant size, that `add` turns into the next one.

    `worse`, `not_harmful` and `better` hold the log capital at each stake; the peaks are the highest each game has
    stood, since what was once refuted stays refuted.
    """

    margin: float = 0.05
    alpha: float = 0.05
    candidate: Tally = _WAITING
    baseline: Tally = _WAITING
    candidate_waiting: Tally = _WAITING
    baseline_waiting: Tally = _WAITING
    rounds: int = 0
    worse: Capitals = _START
    not_harmful: Capitals = _START
    better: Capitals = _START
    worse_peak: float = 0.0
    not_harmful_peak: float = 0.0
    better_peak: float = 0.0

    def __post_init__(self) -> None:
        check_open_rate("margin", self.margin)
        check_open_rate("alpha", self.alpha)

    def add(self, arm: Arm, passed: bool) -> Comparison:
        """One outcome more. The arm must not be chosen by looking at the outcome."""
        if arm == "candidate":
            seen = replace(
                self, candidate=self.candidate.add(passed), candidate_waiting=self.candidate_waiting.add(passed)
            )
        elif arm == "baseline":
            seen = replace(self, baseline=self.baseline.add(passed), baseline_waiting=self.baseline_waiting.add(passed))
        else:
            raise InvalidInput(f"{arm!r} is not an arm", hint="candidate or baseline")
        mine, other = seen.candidate_waiting.p_hat, seen.baseline_waiting.p_hat
        return seen if mine is None or other is None else seen._played(mine - other)

    def add_pair(self, candidate: bool, baseline: bool) -> Comparison:
        """Two matched outcomes: the same task with and without."""
        return self.add_matched(_WAITING.add(candidate), _WAITING.add(baseline))

    def add_matched(self, candidate: Tally, baseline: Tally) -> Comparison:
        """All outcomes of one task, with and without: one round, however many they are, for they are of one task.

        How often it was tried must not be chosen by looking at the outcomes. More tries make the round less of a draw.
        """
        mine, other = candidate.p_hat, baseline.p_hat
        if mine is None or other is None:
            raise InvalidInput("a task that was tried on one side only is no pair")
        done = self._played(mine - other)
        return replace(
            done,
            candidate=self.candidate.merge(candidate),
            baseline=self.baseline.merge(baseline),
            candidate_waiting=self.candidate_waiting,
            baseline_waiting=self.baseline_waiting,
        )

    def followed_by(self, other: Comparison) -> Comparison:
        """Both as one comparison, as it stands now: other outcomes of the same question, by the same margin and alpha.

        Capitals multiply. Where each stood highest is not known of the two together, so that what they show now counts.
        """
        if (self.margin, self.alpha) != (other.margin, other.alpha):
            raise InvalidInput("comparisons of another margin or alpha are not joined")
        worse, not_harmful, better = (
            tuple(mine + theirs for mine, theirs in zip(getattr(self, name), getattr(other, name), strict=True))
            for name in _GAMES
        )
        return replace(
            other,
            candidate=self.candidate.merge(other.candidate),
            baseline=self.baseline.merge(other.baseline),
            rounds=self.rounds + other.rounds,
            worse=worse,
            not_harmful=not_harmful,
            better=better,
            worse_peak=max(0.0, log_mean(worse)),
            not_harmful_peak=max(0.0, log_mean(not_harmful)),
            better_peak=max(0.0, log_mean(better)),
        )

    @property
    def effect(self) -> float | None:
        """Candidate − baseline as observed; None where an arm is empty."""
        mine, other = self.candidate.p_hat, self.baseline.p_hat
        return None if mine is None or other is None else mine - other

    @property
    def claims(self) -> tuple[str, ...]:
        """What has been shown so far."""
        edge = -log(self.alpha)
        peaks = {"worse": self.worse_peak, "not_harmful": self.not_harmful_peak, "better": self.better_peak}
        return tuple(name for name, peak in peaks.items() if peak >= edge)

    @property
    def decision(self) -> Decision:
        """`harmful` where it is worse and a harm of the margin is not excluded; `better` where that alone is shown.

        A candidate that is worse, but by less than the margin, is `not_harmful` in the end.
        """
        claims = self.claims
        if "not_harmful" in claims:
            return "better" if "better" in claims and "worse" not in claims else "not_harmful"
        return "harmful" if "worse" in claims else "undecided"

    def _played(self, gap: float) -> Comparison:
        worse = _grown(self.worse, -gap)
        not_harmful = _grown(self.not_harmful, gap + self.margin)
        better = _grown(self.better, gap)
        return replace(
            self,
            candidate_waiting=_WAITING,
            baseline_waiting=_WAITING,
            rounds=self.rounds + 1,
            worse=worse,
            not_harmful=not_harmful,
            better=better,
            worse_peak=max(self.worse_peak, log_mean(worse)),
            not_harmful_peak=max(self.not_harmful_peak, log_mean(not_harmful)),
            better_peak=max(self.better_peak, log_mean(better)),
        )

    def to_wire(self) -> dict[str, Any]:
        """Plain JSON data, all of the state."""
        wire: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            wire[name] = value.to_wire() if isinstance(value, Tally) else list(value) if name in _GAMES else value
        return wire

    @classmethod
    def from_wire(cls, wire: Any) -> Self:
        if not isinstance(wire, dict) or wire.keys() != cls.__dataclass_fields__.keys():
            raise InvalidInput("not a comparison", hint="what Comparison.to_wire() wrote")
        parts: dict[str, Any] = {}
        for name, value in wire.items():
            if name in _TALLIES:
                parts[name] = Tally.from_wire(value)
            elif name in _GAMES:
                parts[name] = _capitals(name, value)
            else:
                parts[name] = value if name == "rounds" else check_number(name, value)
        if type(parts["rounds"]) is not int or parts["rounds"] < 0:
            raise InvalidInput(f"{parts['rounds']!r} rounds", hint="a whole number, 0 or more")
        return cls(**parts)


_TALLIES = ("candidate", "baseline", "candidate_waiting", "baseline_waiting")
_GAMES = ("worse", "not_harmful", "better")


def _grown(capitals: Capitals, gain: float) -> Capitals:
    return tuple([capital + log1p(stake * gain) for capital, stake in zip(capitals, STAKES, strict=True)])


def log_mean(capitals: Capitals) -> float:
    """The logarithm of the mean of capitals that are given by theirs."""
    highest = max(capitals)
    return highest + log(sum([exp(capital - highest) for capital in capitals]) / len(capitals))


def _capitals(name: str, value: Any) -> Capitals:
    if not isinstance(value, list | tuple) or len(value) != len(STAKES):
        raise InvalidInput(f"{name} holds {len(STAKES)} capitals", hint="what Comparison.to_wire() wrote")
    return tuple(check_number(name, capital) for capital in value)
