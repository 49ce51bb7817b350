"""Is a candidate better than the baseline, or harmful? Decided run by run, as early as honesty allows (RC-16).

Outcomes come in one at a time, in any proportion. As soon as both arms have one waiting they make a *round*: the
candidate's share of passes less the baseline's, D in [-1, 1], whose mean is the effect. Three games are played
on the rounds, each against one null hypothesis m and at several stakes at once: `1 + stake · (D - m)` multiplies the
capital (or `1 - …` for a bet on less). Under its hypothesis no game is expected to gain, so

    worse        refutes "the effect is 0 or more"
    not_harmful  refutes "the effect is -margin or less"
    better       refutes "the effect is 0 or less"

are each wrong with a chance of at most alpha, however often one looks and whenever one stops; pass rates may drift,
as long as they drift for both arms. A round of matched runs (the same task with and without) is `add_pair`: what
makes a task hard cancels, and far fewer are needed.

Shares of 1,000 seeded streams (alpha .05, margin .05, alternating arms, at most 3,000 outcomes an arm) in which each is
claimed at some look (`harmful`: before `not_harmful`), the median number of outcomes an arm, and what a single
look at a fixed size would take (one-sided .05, power .8):

    pass rate   effect   harmful   not_harmful   better     median, of the claim in its column     fixed size
    .50         -.10     .997      .003          .000       321  harmful                           303
    .50         -.05     .887      .029          .002       1312 harmful                           1231
    .50          .00     .043      .911          .039       1219 not_harmful
    .80         -.20     1.000     .000          .000       79   harmful                           62
    .80         -.10     .994      .006          .000       258  harmful                           229
    .80         -.05     .951      .038          .005       865  harmful                           860
    .80          .00     .017      .986          .037       766  not_harmful
    .80         +.05     .000      1.000         .995       179  not_harmful, 709 better           712
    .80         +.10     .000      1.000         1.000      81   not_harmful, 168 better           155
    .95         -.05     .977      .027          .000       367  harmful                           341
    .95          .00     .013      1.000         .023       298  not_harmful

A canary of 5 % (19 baseline outcomes a round) finds -.05 at .80 after 441 outcomes of the candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log, log1p
from typing import Any, Literal, Self

from muniment.core.stats.counts import Tally
from muniment.core.stats.inputs import check_number, check_open_rate
from muniment.errors import InvalidInput

__all__ = ["STAKES", "Arm", "Comparison", "Decision"]

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
        paired = replace(self, candidate_waiting=_WAITING, baseline_waiting=_WAITING)
        done = paired.add("candidate", candidate).add("baseline", baseline)
        return replace(done, candidate_waiting=self.candidate_waiting, baseline_waiting=self.baseline_waiting)

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
            worse_peak=max(self.worse_peak, _log_mean(worse)),
            not_harmful_peak=max(self.not_harmful_peak, _log_mean(not_harmful)),
            better_peak=max(self.better_peak, _log_mean(better)),
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


def _log_mean(capitals: Capitals) -> float:
    highest = max(capitals)
    return highest + log(sum([exp(capital - highest) for capital in capitals]) / len(capitals))


def _capitals(name: str, value: Any) -> Capitals:
    if not isinstance(value, list | tuple) or len(value) != len(STAKES):
        raise InvalidInput(f"{name} holds {len(STAKES)} capitals", hint="what Comparison.to_wire() wrote")
    return tuple(check_number(name, capital) for capital in value)
