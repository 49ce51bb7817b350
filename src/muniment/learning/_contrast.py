"""Features that separate passing from failing runs of one task, or of one family, with tallies.

Runs are compared only with similar ones: runs of one task if it was tried more than once, else of one family, else with
requests of the same form. A feature is reported if enough comparable runs had it and enough did not, the pass rates
differ enough within strata, most strata agree, and chance is an unlikely explanation. Since many features are examined,
the error probability is controlled for all together (Holm's step-down). Features of the same runs, or of exactly the
complement, are one question; a question with too few runs for any significant answer is not counted (Tarone).

If tasks are tried until they pass, the last try of each is the passing one, whatever was done in it: then a try is
compared with tries of other tasks after the same number of failures.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import fsum
from typing import Literal, NamedTuple

from muniment.core.canonical import digest_of
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
from muniment.core.text.patterns import lazy_pattern
from muniment.learning._features import VERDICT_GROUPS, error_shape, features_of, group_of
from muniment.learning.records import RunFacts, Tally

__all__ = ["Separation", "contrast", "task_digest", "window"]

_ALIKE = 0.9
_LOOK_CLOSER = 1.0
"""Deviations below which the exact probability is not computed: chance suffices as an explanation."""
_OPPOSED_MAX = 0.5
"""The maximum weight of opposed strata, as a share of the weight of those that agree."""
_TELLING = ("own", "first", "arg", "tool", "order", "error")
"""Of features with the same meaning, the first in this order is the most actionable."""
_WORD = lazy_pattern(r"\w+")
_UNSAID = "a run"
_STOPPED_MIN, _STOPPED_SHARE = 3, 0.9
"""Minimum number of tasks tried repeatedly until a pass, and the share of them not tried again after it."""


class Separation(NamedTuple):
    """A feature, with the comparable runs that had it and those that did not."""

    feature: str
    is_before: bool
    with_tally: Tally
    without_tally: Tally
    difference: float
    """Pass rate with it minus pass rate without it, within strata: positive if it helps, negative if it hurts."""
    probability: float
    """The probability that it is not due to chance, for this feature alone."""
    doubt: float
    """The error probability, corrected for everything examined."""
    also: tuple[str, ...]
    """Features of the same runs, or nearly."""
    bounds: Bounds
    """The 90% interval of the difference."""
    strata: int
    """The number of tasks, or families, in which it was compared."""
    compared: frozenset[str]
    """The trace ids of the runs in these strata."""
    is_needed: bool
    """Some run passed with it, or a task where it was used was never solved without it."""

    @property
    def helps(self) -> bool:
        return self.difference > 0


def contrast(runs: Sequence[RunFacts], policy: FoldPolicy) -> list[Separation]:
    """Return the features that separate, the most certain first; ties by name. Empty if all ended alike or few are
    known.
    """
    table = _tabulate(window(runs, policy))
    questions = _questions(table, policy)
    same = {gap.feature: others for gap, others in questions}
    held = [(gap, doubt) for gap, doubt in _hold_together([gap for gap, _ in questions], policy)]
    return _merge_alike(table, [_separation(table, gap, same[gap.feature], doubt) for gap, doubt in held])


def window(runs: Sequence[RunFacts], policy: FoldPolicy) -> tuple[RunFacts, ...]:
    """The newest runs, each once, oldest first, independent of input order."""
    once = {run.trace_id: run for run in sorted(runs, key=_age)}
    return tuple(sorted(once.values(), key=_age)[-policy.peers_max :])


def _age(run: RunFacts) -> tuple[str, str]:
    return run.at, run.trace_id


def task_digest(request: str) -> str | None:
    """A digest of the request's words, ignoring spacing and case; None if it has no words."""
    words = _WORD.findall(request.casefold())
    return digest_of(words)[:16] if words else None


# -- comparable runs ----------------------------------------------------------------------------------


class _Group(NamedTuple):
    """Comparable runs, as bits by position."""

    mask: int
    kind: Literal["task", "family", "rest"]


def _strata(runs: Sequence[RunFacts]) -> list[_Group]:
    tasks = [_task_of(run) or run.trace_id for run in runs]
    sizes = Counter(tasks)
    retried = _stop_at_a_pass(runs, tasks)
    made: Counter[str] = Counter()
    members: defaultdict[tuple[str, str, int], int] = defaultdict(int)
    for place, (run, task) in enumerate(zip(runs, tasks, strict=True)):
        kind, key = ("task", task) if sizes[task] > 1 and not retried else _family_of(run)
        members[kind, key, run.attempt or (made[task] if retried else 0)] |= 1 << place
        made[task] += 1
    found: list[_Group] = []
    rest: defaultdict[int, int] = defaultdict(int)
    for (kind, _, attempt), mask in members.items():
        if kind == "task":
            found.append(_Group(mask, "task"))
        elif kind == "family" or mask.bit_count() > 1:
            found.append(_Group(mask, "family"))
        else:
            rest[attempt] |= mask
    return [*found, *(_Group(mask, "rest") for mask in rest.values())]


def _task_of(run: RunFacts) -> str | None:
    """The task of a run; None if its text is not kept."""
    if run.task is not None:
        return run.task
    return None if run.x_summary in (run.intent.task_family, _UNSAID) else task_digest(run.x_summary)


def _family_of(run: RunFacts) -> tuple[str, str]:
    if run.intent.task_family is not None:
        return "family", run.intent.task_family
    return "form", error_shape(run.x_summary)


def _stop_at_a_pass(runs: Sequence[RunFacts], tasks: Sequence[str]) -> bool:
    """Return whether tasks appear to be tried until they pass: almost none was tried again afterwards."""
    outcomes: defaultdict[str, list[bool]] = defaultdict(list)
    for run, task in zip(runs, tasks, strict=True):
        outcomes[task].append(run.passed)
    solved = [tries for tries in outcomes.values() if any(tries) and len(tries) > 1]
    ended = sum(not any(tries[:-1]) for tries in solved)
    return ended >= _STOPPED_MIN and ended >= _STOPPED_SHARE * len(solved)


# -- counting -----------------------------------------------------------------------------------------


class _Table(NamedTuple):
    """The features of each run, as bits."""

    runs: tuple[RunFacts, ...]
    masks: dict[str, int]
    before: frozenset[str]
    passed: int
    groups: tuple[_Group, ...]

    @property
    def every(self) -> int:
        return (1 << len(self.runs)) - 1


class _Gap(NamedTuple):
    """Counts of a feature by stratum."""

    feature: str
    strata: tuple[Stratum, ...]
    compared: int
    """The runs of these strata."""
    difference: float

    @property
    def support(self) -> int:
        """Number of runs on the smaller side."""
        return min(sum(one.n for one in self.strata), sum(one.other_n for one in self.strata))

    @property
    def chance(self) -> float:
        """The probability of a deviation at least this large by chance, in this direction."""
        if abs(z_score(self.strata)) < _LOOK_CLOSER:
            return 0.5
        exchanged = [Stratum(one.other_n, one.other_passes, one.n, one.passes) for one in self.strata]
        return chance_of(self.strata if self.difference >= 0 else exchanged)

    def is_apart(self, policy: FoldPolicy) -> bool:
        """Return whether the difference is large enough, also in the raw counts, with the same sign in most strata."""
        sign = 1 if self.difference > 0 else -1
        shown = Stratum(*(sum(column) for column in zip(*self.strata, strict=True))).difference if self.strata else 0.0
        if min(sign * self.difference, sign * shown) < policy.separation_min:
            return False
        opposed = fsum(one.weight for one in self.strata if sign * one.difference < 0)
        return opposed <= _OPPOSED_MAX * fsum(one.weight for one in self.strata if sign * one.difference > 0)


def _tabulate(runs: tuple[RunFacts, ...]) -> _Table:
    masks: defaultdict[str, int] = defaultdict(int)
    before: set[str] = set()
    for place, run in enumerate(runs):
        for feature in features_of(run):
            masks[feature.name] |= 1 << place
            if feature.before:
                before.add(feature.name)
    passed = sum(1 << place for place, run in enumerate(runs) if run.passed)
    return _Table(runs, dict(masks), frozenset(before), passed, tuple(_strata(runs)))


def _questions(table: _Table, policy: FoldPolicy) -> list[tuple[_Gap, tuple[str, ...]]]:
    """Group features of the same runs, or of exactly the complement: the most actionable, and the others."""
    groups: defaultdict[tuple[int, bool], list[str]] = defaultdict(list)
    for name, mask in table.masks.items():
        lacking = table.every & ~mask
        is_thin = min(mask.bit_count(), lacking.bit_count()) < policy.support_min
        if group_of(name) not in VERDICT_GROUPS and name not in table.before and not is_thin:
            groups[min(mask, lacking), group_of(name) == "own"].append(name)
    found = []
    for names in groups.values():
        gaps = sorted((_gap(table, name) for name in names), key=_rank)
        if gaps[0].support >= policy.support_min:
            mask = table.masks[gaps[0].feature]
            same = tuple(one.feature for one in gaps[1:] if table.masks[one.feature] == mask)
            found.append((gaps[0], same))
    return found


def _rank(gap: _Gap) -> tuple[bool, int, int, str]:
    """Sort key: helpful before harmful, then by how actionable; shorter names first."""
    group = group_of(gap.feature)
    place = _TELLING.index(group) if group in _TELLING else len(_TELLING)
    return gap.difference < 0, place, len(gap.feature), gap.feature


def _gap(table: _Table, name: str) -> _Gap:
    mask = table.masks[name]
    strata, compared = [], 0
    for group, kind in table.groups:
        having, lacking = group & mask, group & ~mask
        if not having or not lacking or (kind == "rest" and group_of(name) != "own"):
            continue  # a caller's setting does not depend on the task, so it can be compared across tasks
        passes = (having & table.passed).bit_count(), (lacking & table.passed).bit_count()
        strata.append(Stratum(having.bit_count(), passes[0], lacking.bit_count(), passes[1]))
        compared |= group
    return _Gap(name, tuple(strata), compared, pooled_difference(strata))


def _hold_together(tested: Sequence[_Gap], policy: FoldPolicy) -> list[tuple[_Gap, float]]:
    """Holm's correction: the k-th most certain of m is multiplied by m − k + 1, and by two for the two directions."""
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
    """The questions that could reach significance if only they are asked; their margins show which cannot."""
    least = sorted((least_chance(gap.strata), place) for place, gap in enumerate(tested))
    kept = 0
    while kept < len(least) and 2 * least[kept][0] * (kept + 1) <= doubt_max:
        kept += 1
    return [tested[place] for _, place in least[:kept]]


def _separation(table: _Table, gap: _Gap, same: tuple[str, ...], doubt: float) -> Separation:
    mask = table.masks[gap.feature]
    return Separation(
        feature=gap.feature,
        is_before=gap.feature in table.before,
        with_tally=_tally(table, gap.compared & mask),
        without_tally=_tally(table, gap.compared & ~mask),
        difference=gap.difference,
        probability=1 - gap.chance,
        doubt=doubt,
        also=same,
        bounds=difference_within(gap.strata),
        strata=len(gap.strata),
        compared=frozenset(run.trace_id for run in _runs_in(table, gap.compared)),
        is_needed=_is_needed(table, mask),
    )


def _is_needed(table: _Table, mask: int) -> bool:
    """Return whether a solution may need it, as far as known: then it is never forbidden."""
    if mask & table.passed:
        return True
    return any(group & mask and not group & table.passed for group, _ in table.groups)


def _runs_in(table: _Table, mask: int) -> list[RunFacts]:
    return [run for place, run in enumerate(table.runs) if mask >> place & 1]


def _tally(table: _Table, mask: int) -> Tally:
    runs = _runs_in(table, mask)
    return Tally(n=len(runs), passes=(mask & table.passed).bit_count(), cost_sum=fsum(run.cost for run in runs))


def _merge_alike(table: _Table, separations: Sequence[Separation]) -> list[Separation]:
    """Of features in nearly the same runs keep the one that separates best, and list the others with it."""
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
