"""Uses of learned records: kept as one small item for a judged run and a kind of work, and read back in bounds.

A run that recalled is logged with what it had and what was held out (`RUN_LOGGED`, `uses`); from that entry one item
`lesson_use` is made for each kind of work that these records are of, so that the newest uses of all lessons of a
family are one query. What it recalled of other banks is told in each of those by an entry of its own (`LESSONS_USED`),
from which such an item is made there. They fall with the run and are made again by a rebuild. They hold ids and
figures, no words. Nothing here decides anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

from muniment.core.canonical import read_canonical, short_id
from muniment.core.ports.engine import Condition, Reader
from muniment.core.record import Absent, Count, Items, Number, Record
from muniment.core.scope import IdText, bank_holder
from muniment.errors import InvalidRecord
from muniment.learning.lesson_state import LessonArmName, LessonStage, LessonUse
from muniment.learning.projection import core_name, held_record, named_id, project_event_log
from muniment.learning.stored_memory import StoredMemory
from muniment.runs.fold import change_of
from muniment.store.items import Change, Item, select_items
from muniment.store.ledger import LESSONS_USED, LedgerEntry

__all__ = [
    "BankUses",
    "JudgedRun",
    "UseArm",
    "Uses",
    "by_family",
    "family_of",
    "list_uses",
    "name_in_bank",
    "project_lesson_use",
    "told_id",
    "uses_by_id",
    "uses_of",
]

Lookup = Callable[[str], Item | None]


class UseArm(Record):
    """What a run did with one record."""

    memory_id: IdText
    arm: LessonArmName
    stage: Absent[LessonStage] = None
    share: Absent[Number] = None
    """How likely it was to be handed to the run, where that was drawn."""
    trial: Absent[Count] = None
    """The number of its trial, in rows of version 0.2."""
    family: Absent[str] = None
    """What records of its kind of work are looked up by."""


class JudgedRun(Record):
    """What uses say of the run: no word of it, and not whose it is."""

    trace_id: IdText
    passed: bool
    cost: Number = 0
    at: str
    task: Absent[str] = None
    """A digest of the task, the same for runs of the same task in a tenant."""


class BankUses(Record):
    """What a judged run did with the records of one kind of work in a bank."""

    run: JudgedRun
    arms: Items[UseArm]


_UNSAID = dict(LessonUse(memory_id="m", trace_id="t", arm="had", passed=False, at=""))


def family_of(memory: StoredMemory) -> str | None:
    """What a record's kind of work is looked up by; None where it is of none."""
    key = memory.record.get("intent_key")
    return core_name(key if isinstance(key, str) else None)


# -- projection ---------------------------------------------------------------------------------------


def project_lesson_use(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """What a judged run says of what it recalled, once its log stands; and what it says of other banks, in each."""
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
    """The arms of each kind of work, as they are kept under its name."""
    grouped: defaultdict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for arm in arms:
        grouped[arm.family].append({key: value for key, value in arm.to_wire().items() if key != "family"})
    return grouped


def _project_told(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """The uses that a run told a bank which it was not learnt into; once. Its names follow from the log of the run,
    which is its one source: so an imported entry counts no run twice, and none that a forget would not reach.
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
    """The id of what a run told a bank of one kind of work."""
    return short_id("use", ["lessons", owner, trace_id, family])


def name_in_bank(owner: str, trace_id: str) -> str:
    """What a bank calls a run that was not learnt into it. Where several users read the bank it is a name that leads
    nowhere: the log of the run is in another bank.
    """
    return trace_id if bank_holder(owner) is not None else short_id("trc", [owner, trace_id])


def _change(entry: LedgerEntry, id_: str, family: str | None, body: dict[str, Any], sources: tuple[str, ...]) -> Change:
    status = "passed" if body["run"]["passed"] else "failed"
    return change_of(entry, id_, "lesson_use", status, body, sources, family)


# -- reading ------------------------------------------------------------------------------------------


def list_uses(reader: Reader, owner: str, family: str | None, newest: int) -> list[LessonUse]:
    """The uses of the records of one kind of work, oldest first: of the newest so many judged runs."""
    return [_use(body["run"] | arm) for body in _judged_runs(reader, owner, family, newest) for arm in body["arms"]]


def _judged_runs(reader: Reader, owner: str, family: str | None, newest: int) -> list[dict[str, Any]]:
    """The newest so many judged runs that recalled records of one kind of work, oldest first, as they were kept."""
    where: tuple[Condition, ...] = (("kind", "=", "lesson_use"), ("user_id", "=", owner), ("name", "=", family))
    order = ("created_at", "id", "version")
    runs: dict[str, dict[str, Any]] = {}
    for item in select_items(reader, where, order=order, descending=True, limit=newest):
        if item.body is not None and item.id not in runs:
            item.check()
            runs[item.id] = cast("dict[str, Any]", read_canonical(item.body))
    return sorted(runs.values(), key=lambda body: (body["run"]["at"], body["run"]["trace_id"]))


def _use(plain: dict[str, Any]) -> LessonUse:
    """A use as it was kept. It was checked then and is not again: a recall reads a thousand."""
    return LessonUse.unchecked(_UNSAID | plain, set(plain))


def uses_by_id(
    reader: Reader, owner: str, memories: Iterable[StoredMemory], newest: int
) -> Mapping[str, tuple[LessonUse, ...]]:
    """The uses of these records of a bank, oldest first, by id: one query for each kind of work.

    What was merged has the uses of what it was merged from.
    """
    found = uses_of(reader, owner, memories, newest)
    return {id_: each.uses for id_, each in found.items() if each.uses}


class Uses(NamedTuple):
    """The uses of a record, and how long ago each was, in judged runs of its kind of work."""

    uses: tuple[LessonUse, ...] = ()
    """Oldest first."""
    ages: tuple[int, ...] = ()
    """Of each, how many runs came after it."""
    idle: int = 0
    """Runs since it was used last, or since it came to stand where it stands."""
    written: int = 0
    """Runs since it was written."""


def uses_of(reader: Reader, owner: str, memories: Iterable[StoredMemory], newest: int) -> dict[str, Uses]:
    """What came of each of these records, by id: one query for each kind of work."""
    families: defaultdict[str | None, list[StoredMemory]] = defaultdict(list)
    for memory in memories:
        families[family_of(memory)].append(memory)
    found: dict[str, Uses] = {}
    for family, mine in families.items():
        wanted: defaultdict[str, list[str]] = defaultdict(list)
        for memory in mine:
            for id_ in (memory.id, *memory.parents):
                wanted[id_].append(memory.id)
        kept: defaultdict[str, list[LessonUse]] = defaultdict(list)
        runs: dict[str, str] = {}
        for body in _judged_runs(reader, owner, family, newest):
            for arm in body["arms"]:
                runs[body["run"]["trace_id"]] = body["run"]["at"]
                if arm["memory_id"] in wanted:  # of most, nobody asks
                    use = _use(body["run"] | arm)
                    for id_ in wanted[use.memory_id]:
                        kept[id_].append(use)
        ages = {trace_id: len(runs) - 1 - place for place, trace_id in enumerate(runs)}
        moments = sorted(runs.values())
        for memory in mine:
            uses = kept.get(memory.id, [])
            stood = memory.created_at if memory.lesson is None else memory.lesson.since
            since = max(stood, *(use.at for use in uses[-1:]), "")
            found[memory.id] = Uses(
                tuple(uses),
                tuple(ages[use.trace_id] for use in uses),
                idle=len(moments) - bisect_right(moments, since),
                written=len(moments) - bisect_right(moments, memory.created_at),
            )
    return found
