"""What separates the runs of one intent that passed from those that failed: features, with tallies and a probability.

A feature is told when it was seen, and missed, in enough runs, when the pass rates lie far enough apart, and when the
posteriors say that this is no chance. Many features are looked at, and of a hundred useless ones ten would look good at
nine in ten: so the chance of being wrong is held for all of them together (Holm's step-down, which gives away nothing
against Bonferroni and needs no independence, which features of one run never have). Features that stand in the same
runs, or in exactly the others, are one question and counted as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, fsum, log
from typing import NamedTuple

from muniment.core.policy.learning import FoldPolicy
from muniment.core.stats.bounds import Beta, log_beta
from muniment.learning.fold.features import VERDICT_GROUPS, features_of, group_of, telling
from muniment.learning.stored_memory import RunFacts, Tally

__all__ = ["Separation", "contrast", "separations_of", "window"]

_ALIKE = 0.9


class Separation(NamedTuple):
    """A feature with the runs that had it and those that did not."""

    feature: str
    is_before: bool
    with_tally: Tally
    without_tally: Tally
    difference: float
    """Pass rate with it less pass rate without it: it helps above nought, it hurts below."""
    probability: float
    """That the difference has this sign, for this feature alone."""
    doubt: float
    """The chance of being wrong after all that was looked at."""
    also: tuple[str, ...] = ()
    """Features that stand in the same runs, or nearly."""

    @property
    def helps(self) -> bool:
        return self.difference > 0


class _Table(NamedTuple):
    """Which run has which feature, as bits."""

    runs: tuple[RunFacts, ...]
    masks: dict[str, int]
    before: frozenset[str]
    passed: int

    @property
    def every(self) -> int:
        return (1 << len(self.runs)) - 1


class _Gap(NamedTuple):
    """A feature's counts: what is needed to see whether it is worth a closer look."""

    feature: str
    n: int
    passes: int
    other_n: int
    other_passes: int

    @property
    def difference(self) -> float:
        return self.passes / self.n - self.other_passes / self.other_n if self.n and self.other_n else 0.0

    @property
    def chance(self) -> float:
        """The probability that the difference has the other sign."""
        mine = Beta(self.passes + 1, self.n - self.passes + 1)
        other = Beta(self.other_passes + 1, self.other_n - self.other_passes + 1)
        return _chance_above(other, mine) if self.difference >= 0 else _chance_above(mine, other)


def window(runs: Sequence[RunFacts], policy: FoldPolicy) -> tuple[RunFacts, ...]:
    """The newest runs, each once, oldest first: the order they came in makes no difference."""
    once = {run.trace_id: run for run in sorted(runs, key=_age)}
    return tuple(sorted(once.values(), key=_age)[-policy.peers_max :])


def contrast(runs: Sequence[RunFacts], policy: FoldPolicy) -> list[Separation]:
    """What separates, the surest first; ties by name. Nothing where all passed, all failed or few are known."""
    table = _tabulate(window(runs, policy))
    questions = _questions(table)
    tested = [gap for gap in (_gap(table, names[0]) for names in questions) if _has_support(gap, policy)]
    same = {names[0]: names[1:] for names in questions}
    separations = [_separation(table, gap, same[gap.feature], doubt) for gap, doubt in _hold_together(tested, policy)]
    return _merge_alike(table, separations)


def separations_of(names: Iterable[str], runs: Sequence[RunFacts], policy: FoldPolicy) -> dict[str, Separation]:
    """How features that were named beforehand separate; nothing is corrected. Those of thin support are left out."""
    table = _tabulate(window(runs, policy))
    gaps = [_gap(table, name) for name in sorted(set(names))]
    return {gap.feature: _separation(table, gap, (), gap.chance) for gap in gaps if _has_support(gap, policy)}


def _age(run: RunFacts) -> tuple[str, str]:
    return run.at, run.trace_id


def _tabulate(runs: tuple[RunFacts, ...]) -> _Table:
    masks: dict[str, int] = {}
    is_before: dict[str, bool] = {}
    for place, run in enumerate(runs):
        bit = 1 << place
        for feature in features_of(run):
            name = feature.name
            if name in masks:
                masks[name] |= bit
            else:
                masks[name] = bit
                is_before[name] = feature.before
    asked = {name: mask for name, mask in masks.items() if group_of(name) not in VERDICT_GROUPS}
    before = frozenset(name for name in asked if is_before[name])
    passed = sum(1 << place for place, run in enumerate(runs) if run.passed)
    return _Table(runs, asked, before, passed)


def _questions(table: _Table) -> list[list[str]]:
    """Features that stand in the same runs or in exactly the others, together; the most telling first."""
    groups: dict[int, list[str]] = {}
    for name, mask in table.masks.items():
        groups.setdefault(min(mask, table.every & ~mask), []).append(name)
    return [sorted(names, key=lambda name: _rank(table, name)) for names in groups.values()]


def _rank(table: _Table, name: str) -> tuple[bool, int, int, str]:
    """What helps before what hurts, then by what it tells; shorter names first."""
    return _gap(table, name).difference < 0, telling(name), len(name), name


def _gap(table: _Table, name: str) -> _Gap:
    mask = table.masks.get(name, 0)
    passes = (mask & table.passed).bit_count()
    n, every = mask.bit_count(), len(table.runs)
    return _Gap(name, n, passes, every - n, table.passed.bit_count() - passes)


def _has_support(gap: _Gap, policy: FoldPolicy) -> bool:
    return min(gap.n, gap.other_n) >= policy.support_min


def _chance_above(mine: Beta, other: Beta) -> float:
    """The exact probability that a rate drawn from `mine` is above one drawn from `other`.

    The prior is flat, so all shapes are whole numbers and the integral is a sum of `mine.a` terms, each the one before
    times a ratio: a hundred features cost less than one quadrature, and the smallest chances keep their digits.
    """
    tails = mine.b + other.b
    term = log_beta(other.a, tails) - log_beta(other.a, other.b)
    terms = [term]
    for place in range(int(mine.a) - 1):
        term += log((other.a + place) * (mine.b + place) / ((other.a + place + tails) * (place + 1)))
        terms.append(term)
    return min(1.0, fsum(map(exp, terms)))


def _hold_together(tested: Sequence[_Gap], policy: FoldPolicy) -> list[tuple[_Gap, float]]:
    """Holm: the k-th surest of m is asked m − k + 1 times as much, and twice that for the two directions.

    What lies too close together is counted in m and never told, so nobody need know how sure it is.
    """
    apart = [(gap.chance, gap) for gap in tested if abs(gap.difference) >= policy.separation_min]
    holding: list[tuple[_Gap, float]] = []
    doubt = 0.0
    for place, (chance, gap) in enumerate(sorted(apart, key=lambda one: (one[0], -abs(one[1].difference), one[1]))):
        doubt = max(doubt, min(1.0, 2 * chance * (len(tested) - place)))
        if doubt > 1 - policy.confidence_min:
            break
        holding.append((gap, doubt))
    return holding


def _separation(table: _Table, gap: _Gap, same: Sequence[str], doubt: float) -> Separation:
    """What a feature that separates passing from failing runs is known by."""
    mask = table.masks[gap.feature]
    return Separation(
        feature=gap.feature,
        is_before=gap.feature in table.before,
        with_tally=_tally(table, mask),
        without_tally=_tally(table, table.every & ~mask),
        difference=gap.difference,
        probability=1 - gap.chance,
        doubt=doubt,
        also=tuple(other for other in same if table.masks[other] == mask),
    )


def _tally(table: _Table, mask: int) -> Tally:
    runs = [run for place, run in enumerate(table.runs) if mask >> place & 1]
    return Tally(n=len(runs), passes=sum(run.passed for run in runs), cost_sum=fsum(run.cost for run in runs))


def _merge_alike(table: _Table, separations: Sequence[Separation]) -> list[Separation]:
    """Of features in nearly the same runs, the one that separates best; the others are named beside it."""
    kept: list[Separation] = []
    for one in separations:
        mask = table.masks[one.feature]
        for place, other in enumerate(kept):
            theirs = table.masks[other.feature]
            alike = (mask & theirs).bit_count() / (mask | theirs).bit_count()
            if other.helps == one.helps and alike >= _ALIKE:
                kept[place] = other._replace(also=(*other.also, one.feature, *one.also))
                break
        else:
            kept.append(one)
    return kept
