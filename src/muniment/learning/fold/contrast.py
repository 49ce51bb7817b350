"""What separates the runs of one task, or of one family, that passed from those that failed: features, with tallies.

Runs are compared with their likes alone (`strata`): what differs only between tasks is an association, counted and
never told. A feature is told when it was seen, and missed, in enough comparable runs, when the pass rates lie far
enough apart within strata, when most strata agree, and when luck alone would hardly do it. Many features are looked at,
and of a hundred useless ones ten would look good at nine in ten: so the chance of being wrong is held for all of them
together (Holm's step-down, which gives away nothing against Bonferroni and needs no independence, which features of one
run never have). Features that stand in the same runs, or in exactly the others, are one question and counted as one;
what so few runs could not have told however they had ended is not counted at all (Tarone).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum
from typing import NamedTuple

from muniment.core.policy import FoldPolicy
from muniment.core.stats import (
    Bounds,
    Stratum,
    chance_of,
    difference_within,
    least_chance,
    pooled_difference,
    z_score,
)
from muniment.learning.fold.features import UNASKED_GROUPS, condition_of, features_of, group_of, outcome_of, telling
from muniment.learning.fold.strata import ABOUT, Group, strata_of
from muniment.learning.stored_memory import RunFacts, Tally

__all__ = ["Separation", "associations", "contrast", "separations_of", "window"]

_ALIKE = 0.9
_LOOK_CLOSER = 1.0
"""Deviations below which nobody need know how likely luck is: it is likely."""
_OPPOSED_MAX = 0.5
"""Of the weight of the strata that agree, what those that point the other way may have."""
_SET_BY_CALLER = "own"
"""What a caller sets is no answer to the task, so it may be compared between runs that share nothing else."""


class Separation(NamedTuple):
    """A feature with the comparable runs that had it and those that did not."""

    feature: str
    is_before: bool
    with_tally: Tally
    without_tally: Tally
    difference: float
    """Pass rate with it less pass rate without it, within strata: it helps above nought, it hurts below."""
    probability: float
    """That luck alone would not have made it, for this feature alone."""
    doubt: float
    """The chance of being wrong after all that was looked at."""
    also: tuple[str, ...] = ()
    """Features that stand in the same runs, or nearly."""
    bounds: Bounds = Bounds(-1.0, 1.0)
    """Where the difference lies, nine times in ten."""
    strata: int = 1
    """How many tasks, or families, it was compared in."""
    compared: frozenset[str] = frozenset()
    """The runs of these strata, by their traces."""
    only_task: str | None = None
    """What was asked, where a single task of several tells it."""
    is_needed: bool = False
    """Some run passed with it, or a task where it was used was never solved without it."""

    @property
    def helps(self) -> bool:
        return self.difference > 0


class _Table(NamedTuple):
    """Which run has which feature, as bits."""

    runs: tuple[RunFacts, ...]
    masks: dict[str, int]
    before: frozenset[str]
    passed: int
    groups: tuple[Group, ...]
    every: int
    """The runs that are compared."""

    def of_newest(self, count: int) -> _Table:
        """The newest runs alone. Which of them are alike, and which try of its task each is, all runs have said."""
        older = max(0, len(self.runs) - count)
        every = self.every >> older << older
        groups = tuple(group._replace(mask=group.mask & every) for group in self.groups if group.mask & every)
        masks = {name: mask & every for name, mask in self.masks.items() if mask & every}
        return self._replace(masks=masks, passed=self.passed & every, groups=groups, every=every)

    def eligible(self, name: str) -> int:
        """The runs that could have it: of what follows an answer, those that got the answer."""
        condition = condition_of(name)
        return self.every if condition is None else self.masks.get(condition, 0)

    def ended_well(self, name: str) -> int:
        """The runs that passed; of what mends a failed call, those in which the call held."""
        outcome = outcome_of(name)
        return self.passed if outcome is None else self.masks.get(outcome, 0)


class _Gap(NamedTuple):
    """A feature's counts, stratum by stratum: what is needed to see whether it is worth a closer look."""

    feature: str
    strata: tuple[Stratum, ...]
    compared: int
    """The runs of these strata."""
    difference: float

    @property
    def n(self) -> int:
        return sum(one.n for one in self.strata)

    @property
    def other_n(self) -> int:
        return sum(one.other_n for one in self.strata)

    @property
    def shown(self) -> float:
        """The difference of the counts as they will be told."""
        whole = Stratum(*(sum(column) for column in zip(*self.strata, strict=True))) if self.strata else None
        return 0.0 if whole is None else whole.difference

    @property
    def chance(self) -> float:
        """The chance that luck alone moved it so far this way."""
        if abs(z_score(self.strata)) < _LOOK_CLOSER:
            return 0.5
        return chance_of(self.strata if self.difference >= 0 else [_exchanged(one) for one in self.strata])

    def is_apart(self, policy: FoldPolicy) -> bool:
        """Far enough, as it will be told too, and in most strata the same way."""
        sign = 1 if self.difference > 0 else -1
        if min(sign * self.difference, sign * self.shown) < policy.separation_min:
            return False
        opposed = fsum(one.weight for one in self.strata if sign * one.difference < 0)
        return opposed <= _OPPOSED_MAX * fsum(one.weight for one in self.strata if sign * one.difference > 0)


def _exchanged(one: Stratum) -> Stratum:
    return Stratum(one.other_n, one.other_passes, one.n, one.passes)


def window(runs: Sequence[RunFacts], policy: FoldPolicy) -> tuple[RunFacts, ...]:
    """The newest runs, each once, oldest first: the order they came in makes no difference."""
    once = {run.trace_id: run for run in sorted(runs, key=_age)}
    return tuple(sorted(once.values(), key=_age)[-policy.peers_max :])


def contrast(runs: Sequence[RunFacts], policy: FoldPolicy, *, newest: int | None = None) -> list[Separation]:
    """What separates, the surest first; ties by name. Nothing where all passed, all failed or few are known.

    `newest`: only so many of the newest runs are compared.
    """
    return _separating(_looked_at(runs, policy, newest), policy)


def associations(runs: Sequence[RunFacts], separations: Sequence[Separation], policy: FoldPolicy) -> list[Separation]:
    """What would separate if all runs were alike, and does not among runs that are: a statistic, and no advice.

    `separations` are what a contrast of the same runs told.
    """
    table = _tabulate(window(runs, policy), policy)
    if len(table.groups) == 1 and table.groups[0].kind != "rest":
        return []
    within = {name for one in separations for name in (one.feature, *one.also)}
    pooled = _separating(table._replace(groups=(Group(table.every, "family"),)), policy)
    return [one for one in pooled if not within & {one.feature, *one.also}]


def separations_of(
    names: Iterable[str], runs: Sequence[RunFacts], policy: FoldPolicy, *, newest: int | None = None
) -> dict[str, Separation]:
    """How features that were named beforehand separate; nothing is corrected. Those of thin support are left out."""
    table = _looked_at(runs, policy, newest)
    gaps = [_gap(table, name) for name in sorted(set(names))]
    return {gap.feature: _separation(table, gap, (), gap.chance) for gap in gaps if _has_support(gap, policy)}


def _looked_at(runs: Sequence[RunFacts], policy: FoldPolicy, newest: int | None) -> _Table:
    table = _tabulate(window(runs, policy), policy)
    return table if newest is None else table.of_newest(newest)


def _separating(table: _Table, policy: FoldPolicy) -> list[Separation]:
    questions = _questions(table, policy)
    tested = [gap for gap, _ in questions if _has_support(gap, policy)]
    same = {gap.feature: others for gap, others in questions}
    held = [(_narrowed(table, gap), doubt) for gap, doubt in _hold_together(tested, policy)]
    separations = [_separation(table, gap, same[gap.feature], doubt) for gap, doubt in held if gap.is_apart(policy)]
    return _merge_alike(table, separations)


def _age(run: RunFacts) -> tuple[str, str]:
    return run.at, run.trace_id


def _tabulate(runs: tuple[RunFacts, ...], policy: FoldPolicy) -> _Table:
    masks: dict[str, int] = {}
    is_before: dict[str, bool] = {}
    marks: list[list[str]] = []
    for place, run in enumerate(runs):
        bit = 1 << place
        named: list[str] = []
        for feature in features_of(run):
            name = feature.name
            if name.startswith(ABOUT):
                named.append(name)
            elif name in masks:
                masks[name] |= bit
            else:
                masks[name] = bit
                is_before[name] = feature.before
        marks.append(named)
    is_cut = len(runs) >= policy.peers_max
    before = frozenset(name for name in masks if is_before[name])
    passed = sum(1 << place for place, run in enumerate(runs) if run.passed)
    groups = tuple(strata_of(runs, marks, is_cut=is_cut))
    return _Table(runs, masks, before, passed, groups, every=(1 << len(runs)) - 1)


def _questions(table: _Table, policy: FoldPolicy) -> list[tuple[_Gap, tuple[str, ...]]]:
    """Features that stand in the same runs or in exactly the others, together: the most telling, and the others.

    Those that too few runs have, or lack, are left out at once: there are many.
    """
    has_rest = any(group.kind == "rest" for group in table.groups)
    groups: dict[tuple[int, int, int, bool], list[str]] = {}
    for name, mask in table.masks.items():
        if group_of(name) in UNASKED_GROUPS or name in table.before or mask.bit_count() < policy.support_min:
            continue
        eligible = table.eligible(name)
        lacking = eligible & ~mask
        if lacking.bit_count() >= policy.support_min:
            takes_rest = has_rest and _takes_rest(table, name)
            question = eligible, table.ended_well(name), min(mask, lacking), takes_rest
            groups.setdefault(question, []).append(name)
    found = []
    for names in groups.values():
        gap = _gap(table, names[0])
        sides = {table.masks[name]: name for name in names}
        gaps = {mask: gap if mask == table.masks[names[0]] else _gap(table, name) for mask, name in sides.items()}
        named = sorted((gaps[table.masks[name]]._replace(feature=name) for name in names), key=_rank)
        found.append((named[0], tuple(one.feature for one in named[1:])))
    return found


def _rank(gap: _Gap) -> tuple[bool, int, int, str]:
    """What helps before what hurts, then by what it tells; shorter names first."""
    return gap.difference < 0, telling(gap.feature), len(gap.feature), gap.feature


def _gap(table: _Table, name: str) -> _Gap:
    mask, eligible = table.masks.get(name, 0), table.eligible(name)
    takes_rest, passed = _takes_rest(table, name), table.ended_well(name)
    strata, compared = [], 0
    for group, kind in table.groups:
        inside = group & eligible
        having = inside & mask
        if having in (0, inside) or (kind == "rest" and not takes_rest):
            continue
        lacking = inside & ~mask
        passes = (having & passed).bit_count(), (lacking & passed).bit_count()
        strata.append(Stratum(having.bit_count(), passes[0], lacking.bit_count(), passes[1]))
        compared |= inside
    return _Gap(name, tuple(strata), compared, pooled_difference(strata))


def _takes_rest(table: _Table, name: str) -> bool:
    """What was so before the run began does not answer to its task; and what met the same error is alike enough."""
    return group_of(name) in (_SET_BY_CALLER, "mend") or name in table.before


def _has_support(gap: _Gap, policy: FoldPolicy) -> bool:
    return min(gap.n, gap.other_n) >= policy.support_min


def _hold_together(tested: Sequence[_Gap], policy: FoldPolicy) -> list[tuple[_Gap, float]]:
    """Holm: the k-th surest of m is asked m − k + 1 times as much, and twice that for the two directions.

    What lies too close together is counted in m and never told, so nobody need know how sure it is.
    """
    asked = _askable(tested, 1 - policy.confidence_min)
    apart = [(gap.chance, gap) for gap in asked if gap.is_apart(policy)]
    holding: list[tuple[_Gap, float]] = []
    doubt = 0.0
    for place, (chance, gap) in enumerate(sorted(apart, key=lambda one: (one[0], *_rank(one[1])))):
        doubt = max(doubt, min(1.0, 2 * chance * (len(asked) - place)))
        if doubt > 1 - policy.confidence_min:
            break
        holding.append((gap, doubt))
    return holding


def _askable(tested: Sequence[_Gap], doubt_max: float) -> list[_Gap]:
    """The questions that could be answered if they alone are asked; who could not is known from the margins."""
    least = sorted((least_chance(gap.strata), place) for place, gap in enumerate(tested))
    kept = 0
    while kept < len(least) and 2 * least[kept][0] * (kept + 1) <= doubt_max:
        kept += 1
    return [tested[place] for _, place in least[:kept]]


def _separation(table: _Table, gap: _Gap, same: Sequence[str], doubt: float) -> Separation:
    """What a feature that separates passing from failing runs is known by."""
    mask, passed = table.masks.get(gap.feature, 0), table.ended_well(gap.feature)
    return Separation(
        feature=gap.feature,
        is_before=gap.feature in table.before,
        with_tally=_tally(table, gap.compared & mask, passed),
        without_tally=_tally(table, gap.compared & ~mask, passed),
        difference=gap.difference,
        probability=1 - gap.chance,
        doubt=doubt,
        also=tuple(other for other in same if table.masks[other] == mask),
        bounds=difference_within(gap.strata),
        strata=len(gap.strata),
        compared=frozenset(run.trace_id for run in _runs_in(table, gap.compared)),
        only_task=_only_task(table, gap),
        is_needed=_is_needed(table, mask),
    )


def _narrowed(table: _Table, gap: _Gap) -> _Gap:
    """The counts of one task alone, where there are several and a single one of them has both arms and both ends."""
    passed = table.ended_well(gap.feature)
    telling_ = [
        group
        for group in table.groups
        if 0 < (group.mask & gap.compared & passed).bit_count() < (group.mask & gap.compared).bit_count()
    ]
    if len(table.groups) == 1 or len(telling_) != 1 or telling_[0].kind != "task":
        return gap
    return _gap(table._replace(groups=(telling_[0],)), gap.feature)


def _only_task(table: _Table, gap: _Gap) -> str | None:
    """What was asked, where there are several tasks and one alone is compared in."""
    of = [group for group in table.groups if group.mask & gap.compared]
    if len(table.groups) == 1 or len(of) != 1 or of[0].kind != "task":
        return None
    return _runs_in(table, gap.compared)[-1].x_summary


def _is_needed(table: _Table, mask: int) -> bool:
    """Whether a solution may need it, for all that is known: then it is never forbidden."""
    if mask & table.passed:
        return True
    return any(group & mask and not group & table.passed for group, _ in table.groups)


def _runs_in(table: _Table, mask: int) -> list[RunFacts]:
    return [run for place, run in enumerate(table.runs) if mask >> place & 1]


def _tally(table: _Table, mask: int, passed: int) -> Tally:
    runs = _runs_in(table, mask)
    return Tally(n=len(runs), passes=(mask & passed).bit_count(), cost_sum=fsum(run.cost for run in runs))


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
