"""Uses of learned records by judged runs: stored as one small item per run and kind of work, read back, counted.

The log of a run that recalled lists the records it had and those held out (`RUN_LOGGED`, `uses`); from that entry one
item `lesson_use` is made for each kind of work of these records, so that the newest uses of all lessons of a family are
one query. Uses of other banks' records are entries of those banks (`LESSONS_USED`). They are forgotten with the run and
restored by a rebuild. They hold ids and figures, no text. Stored records hold no counts of their own: they are added on
reading.

The effect of a lesson is the difference of its two arms' pass rates, pooled by Mantel–Haenszel weights: each task run
in both arms is a stratum of its own, all other uses of a family are one. Arms are drawn by hash, so the difference is
unbiased. The weight of a use halves with each half-life, counted in uses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple, cast

from muniment.core.canonical import read_canonical, short_id
from muniment.core.ports.engine import Condition, Reader
from muniment.core.record import Absent, Count, Items, JsonObject, Number, Record
from muniment.core.scope import IdText, bank_holder
from muniment.core.stats import Bounds, normal_quantile
from muniment.errors import InvalidRecord
from muniment.learning.projection import core_name, held_record, named_id, project_event_log
from muniment.learning.records import LessonArmName, LessonStage, LessonUse, StoredMemory, Tally
from muniment.runs.fold import change_of
from muniment.store.items import Change, Item, select_items
from muniment.store.ledger import LESSONS_USED, LedgerEntry

__all__ = [
    "BankUses",
    "Effect",
    "JudgedRun",
    "UseArm",
    "by_family",
    "counted",
    "effect_of",
    "family_of",
    "list_uses",
    "name_in_bank",
    "project_lesson_use",
    "runs_after",
    "told_id",
    "uses_of",
    "with_counts",
]

_HALF_LIFE_USES = 80.0
"""Half-life, in uses, of weights in the displayed effect."""
Lookup = Callable[[str], Item | None]


class UseArm(Record):
    """The use of one record by a run."""

    memory_id: IdText
    arm: LessonArmName
    stage: Absent[LessonStage] = None
    share: Absent[Number] = None
    """The probability that the run got it, if an arm was drawn."""
    trial: Absent[Count] = None
    """The number of its trial, in rows of version 0.2."""
    family: Absent[str] = None
    """The lookup name of its kind of work."""


class JudgedRun(Record):
    """The judged run of a use, without its text or user."""

    trace_id: IdText
    passed: bool
    cost: Number = 0
    at: str
    task: Absent[str] = None
    """A digest of the task, equal for runs of the same task in a tenant."""


class BankUses(Record):
    """The use of a bank's records of one kind of work by a judged run."""

    run: JudgedRun
    arms: Items[UseArm]


_UNSAID = dict(LessonUse(memory_id="m", trace_id="t", arm="had", passed=False, at=""))


def family_of(memory: StoredMemory) -> str | None:
    """The lookup name of a record's kind of work; None if it has none."""
    key = memory.record.get("intent_key")
    return core_name(key if isinstance(key, str) else None)


# -- projection ---------------------------------------------------------------------------------------


def project_lesson_use(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project a judged run's uses, in its own bank once its log is final, and in other banks."""
    if entry.metadata.get("event") == LESSONS_USED:
        return _project_told(entry, lookup)
    said = entry.metadata.get("uses")
    changes = project_event_log(entry, lookup) if isinstance(said, list) and said else []
    if not changes or not changes[0].body["is_final"]:
        return []
    facts = changes[0].body["facts"]
    if facts.get("verdict") is None:
        return []
    try:
        arms = [UseArm.from_wire(each) for each in cast("list[Any]", said)]
    except InvalidRecord:
        return []
    said_once: dict[str, Any] = {
        "trace_id": facts["trace_id"],
        "passed": facts["passed"],
        "cost": facts.get("cost", 0),
        "at": facts["at"],
    }
    if isinstance(digest := entry.metadata.get("x_digest"), str):
        said_once["task"] = digest
    found = []
    for family, mine in by_family(arms).items():
        id_ = short_id("use", ["lessons", facts["trace_id"], family])
        found.append(_change(entry, id_, family, {"run": said_once, "arms": mine}, (entry.id,)))
    return found


def by_family(arms: Iterable[UseArm]) -> dict[str | None, list[dict[str, Any]]]:
    """The arms grouped by kind of work, as stored."""
    grouped: defaultdict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for arm in arms:
        grouped[arm.family].append({key: value for key, value in arm.to_wire().items() if key != "family"})
    return grouped


def _project_told(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project the uses of a run in a bank it was not learned into. The item's ids follow from the run's log, its only
    source, so imported entries can neither count a run twice nor escape a forget.
    """
    id_, owner = named_id(entry, LESSONS_USED, by_bank=True), entry.scope.user_id
    family, sources = entry.metadata.get("family"), entry.metadata.get("sources")
    uses = None if id_ is None or lookup(id_) is not None else held_record(entry, "uses", BankUses)
    if id_ is None or uses is None or not (family is None or isinstance(family, str)):
        return []
    trace_id = sources[0] if isinstance(sources, list) and len(sources) == 1 else None
    if not isinstance(trace_id, str) or id_ != told_id(owner, trace_id, family):
        return []
    is_whole = uses.run.trace_id == name_in_bank(owner, trace_id) and all(arm.family is None for arm in uses.arms)
    if not is_whole or len({arm.memory_id for arm in uses.arms}) < len(uses.arms):
        return []
    return [_change(entry, id_, family, uses.to_wire(), (entry.id, trace_id))]


def told_id(owner: str, trace_id: str, family: str | None) -> str:
    """The id of a run's uses in another bank, for one kind of work."""
    return short_id("use", ["lessons", owner, trace_id, family])


def name_in_bank(owner: str, trace_id: str) -> str:
    """A bank's name for a run that was not learned into it. In banks read by several users the name is opaque: the
    run's log is in another bank.
    """
    return trace_id if bank_holder(owner) is not None else short_id("trc", [owner, trace_id])


def _change(entry: LedgerEntry, id_: str, family: str | None, body: dict[str, Any], sources: tuple[str, ...]) -> Change:
    status = "passed" if body["run"]["passed"] else "failed"
    return change_of(entry, id_, "lesson_use", status, body, sources, family)


# -- reading ------------------------------------------------------------------------------------------


def list_uses(reader: Reader, owner: str, family: str | None, newest: int) -> list[LessonUse]:
    """The uses of the records of one kind of work, oldest first, limited to the newest judged runs."""
    return [_use(body["run"] | arm) for body in _judged_runs(reader, owner, family, newest) for arm in body["arms"]]


def _judged_runs(reader: Reader, owner: str, family: str | None, newest: int) -> list[dict[str, Any]]:
    """The newest judged runs that recalled records of one kind of work, oldest first, as stored."""
    where: tuple[Condition, ...] = (("kind", "=", "lesson_use"), ("user_id", "=", owner), ("name", "=", family))
    order = ("created_at", "id", "version")
    runs: dict[str, dict[str, Any]] = {}
    for item in select_items(reader, where, order=order, descending=True, limit=newest):
        if item.body is not None and item.id not in runs:
            item.check()
            runs[item.id] = cast("dict[str, Any]", read_canonical(item.body))
    return sorted(runs.values(), key=lambda body: (body["run"]["at"], body["run"]["trace_id"]))


def _use(plain: dict[str, Any]) -> LessonUse:
    """A stored use, without validation: it was validated on writing, and a recall reads thousands."""
    return LessonUse.unchecked(_UNSAID | plain, set(plain))


def uses_of(
    reader: Reader, owner: str, memories: Iterable[StoredMemory], newest: int
) -> dict[str, tuple[LessonUse, ...]]:
    """The uses of these records of a bank, oldest first, by id: one query for each kind of work.

    A merged record includes the uses of its sources.
    """
    families: defaultdict[str | None, list[StoredMemory]] = defaultdict(list)
    for memory in memories:
        families[family_of(memory)].append(memory)
    found: defaultdict[str, list[LessonUse]] = defaultdict(list)
    for family, mine in families.items():
        wanted: defaultdict[str, list[str]] = defaultdict(list)
        for memory in mine:
            for id_ in (memory.id, *memory.parents):
                wanted[id_].append(memory.id)
        for body in _judged_runs(reader, owner, family, newest):
            for arm in body["arms"]:
                for id_ in wanted.get(arm["memory_id"], ()):  # most are not needed
                    found[id_].append(_use(body["run"] | arm))
    return {id_: tuple(uses) for id_, uses in found.items()}


def runs_after(reader: Reader, owner: str, family: str | None, moment: str, newest: int) -> int:
    """The number of judged runs of a kind of work, among the newest, that ended after a moment."""
    return sum(body["run"]["at"] > moment for body in _judged_runs(reader, owner, family, newest))


# -- counting ----------------------------------------------------------------------------------------


def with_counts(reader: Reader, owner: str, memories: Iterable[StoredMemory], newest: int) -> list[StoredMemory]:
    """Add the newest uses to the records of a bank."""
    listed = list(memories)
    uses = uses_of(reader, owner, listed, newest)
    return [counted(memory, uses.get(memory.id, ())) for memory in listed]


def counted(memory: StoredMemory, uses: Sequence[LessonUse]) -> StoredMemory:
    """The record with these uses of it, oldest first, added to its tallies and figures."""
    if not uses:
        return memory
    had = [use for use in uses if use.arm == "had"]
    tally = _added(memory.with_tally, _tally_of(uses, "had"))
    update: dict[str, Any] = {"without_tally": _added(memory.without_tally, _tally_of(uses, "held_out"))}
    if had:
        last = max(had[-1].at, memory.last_used_at or "")
        update |= {
            "with_tally": tally,
            "streak": _streak(memory.streak, [use.passed for use in had]),
            "last_used_at": last,
            "record": _record(memory, tally, last),
        }
    return memory.model_copy(update=update)


def _added(tally: Tally, more: Tally) -> Tally:
    return Tally(n=tally.n + more.n, passes=tally.passes + more.passes, cost_sum=tally.cost_sum + more.cost_sum)


def _streak(before: int, outcomes: Sequence[bool]) -> int:
    """Consecutive failures up to the last outcome."""
    for place, passed in enumerate(reversed(outcomes)):
        if passed:
            return place
    return before + len(outcomes)


def _record(memory: StoredMemory, tally: Tally, at: str) -> JsonObject:
    """The record with the contract's own figures updated from the tally."""
    rate, cost = tally.passes / tally.n, tally.cost_sum / tally.n
    figures: Mapping[str, Any] = {}
    if memory.kind == "tactic":
        known = memory.record.get("metrics")
        fared = {"pass_p_hat": rate, "avg_cost": cost, "use_n": tally.n, "fail_n": tally.n - tally.passes}
        efficiency = {"efficiency_est": tally.passes / tally.cost_sum} if tally.cost_sum > 0 else {}
        figures = {"metrics": {**(known if isinstance(known, dict) else {}), **fared, **efficiency}, "last_used_at": at}
    elif memory.kind == "reasoning":
        figures = {"pass_p_hat": rate, "avg_cost": cost, "last_used_at": at}
    elif memory.kind == "seed":
        figures = {"counters": {"N": tally.n, "last_used_at": at}}
    return {**memory.record, **figures}


# -- effect ------------------------------------------------------------------------------------------

_CAUTION = 1.0
"""Pseudo-counts of passes and failures added to each arm when its variance is estimated."""


class Effect(NamedTuple):
    """The effect of a lesson: runs with it compared with runs that it fitted but was held out of."""

    had: Tally
    """All uses considered, each counted once."""
    held_out: Tally
    difference: float | None
    """Pass rate with it minus pass rate without it, discounted and pooled; None while an arm is empty."""
    spread: float
    """The standard error of the difference."""
    strata: int
    """Groups in which both arms are compared: each task run in both, and all others together."""

    def bounds(self, confidence: float) -> Bounds:
        """The interval of the difference; −1 to 1 if unknown."""
        if self.difference is None:
            return Bounds(-1.0, 1.0)
        reach = normal_quantile((1 + confidence) / 2) * self.spread
        return Bounds(max(-1.0, self.difference - reach), min(1.0, self.difference + reach))


class _Arm(NamedTuple):
    """Weighted outcomes of one arm within a stratum."""

    weight: float = 0.0
    squares: float = 0.0
    passed: float = 0.0

    def add(self, weight: float, passed: bool) -> _Arm:
        return _Arm(self.weight + weight, self.squares + weight * weight, self.passed + weight * passed)

    @property
    def rate(self) -> float:
        return self.passed / self.weight


def _tally_of(uses: Sequence[LessonUse], arm: str) -> Tally:
    """Count the uses of one arm."""
    mine = [use for use in uses if use.arm == arm]
    return Tally(n=len(mine), passes=sum(use.passed for use in mine), cost_sum=sum(use.cost for use in mine))


def effect_of(uses: Sequence[LessonUse]) -> Effect:
    """Compute the effect of a lesson from its uses, oldest first."""
    weights = [0.5 ** ((len(uses) - 1 - place) / _HALF_LIFE_USES) for place in range(len(uses))]
    difference, spread, strata = _pass_difference(uses, weights)
    return Effect(_tally_of(uses, "had"), _tally_of(uses, "held_out"), difference, spread, strata)


def _pass_difference(uses: Sequence[LessonUse], weights: Sequence[float]) -> tuple[float | None, float, int]:
    arms: defaultdict[str, set[str]] = defaultdict(set)
    for use in uses:
        arms[use.task or ""].add(use.arm)
    strata: defaultdict[str, dict[str, _Arm]] = defaultdict(lambda: {"had": _Arm(), "held_out": _Arm()})
    whole = {"had": _Arm(), "held_out": _Arm()}
    for use, weight in zip(uses, weights, strict=True):
        stratum = strata[use.task if use.task and len(arms[use.task]) == len(whole) else ""]
        stratum[use.arm] = stratum[use.arm].add(weight, use.passed)
        whole[use.arm] = whole[use.arm].add(weight, use.passed)
    noise = {name: _variance(arm) for name, arm in whole.items()}
    total = gap = variance = 0.0
    compared = 0
    for each in strata.values():
        had, held = each["had"], each["held_out"]
        if not had.weight or not held.weight:
            continue
        compared += 1
        share = had.weight * held.weight / (had.weight + held.weight)
        total += share
        gap += share * (had.rate - held.rate)
        variance += share**2 * sum(noise[name] * arm.squares / arm.weight**2 for name, arm in each.items())
    return (gap / total, sqrt(variance) / total, compared) if total else (None, 0.0, 0)


def _variance(arm: _Arm) -> float:
    """The variance of one outcome of an arm, estimated cautiously for small counts."""
    rate = (arm.passed + _CAUTION) / (arm.weight + 2 * _CAUTION)
    return rate * (1 - rate)
