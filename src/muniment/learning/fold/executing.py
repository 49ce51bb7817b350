"""A plan carried out (RC-11): all of it or nothing, with one record for each action whatever comes of it. Pure.

Each action is judged against the state as the actions before it leave it. The first that FAILS aborts the plan: the
others are SKIPPED with `plan_aborted`, and nothing changes. A record's error is a stable code, followed by words where
they say more: `pinned: rm_1 is pinned`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from muniment.contracts.learning import MemoryAction, MemoryActionPlan, MemoryActionRecord
from muniment.core.canonical import short_id
from muniment.core.instants import parse_instant
from muniment.core.policy import LearnPolicy
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.core.scope import ID_MAX_BYTES, ID_MAX_CHARS, ScopeLevel
from muniment.errors import InvalidInput, InvalidRecord, Issue
from muniment.learning.fold.operations import ActionContext, no_secret, perform
from muniment.learning.fold.payloads import Refused, id_of, lineage_of
from muniment.learning.lesson_state import LessonState
from muniment.learning.stored_memory import StoredMemory

__all__ = ["Applied", "Given", "action_record", "check_plan", "execute", "ids_touched", "op_id"]


class Given(NamedTuple):
    """A plan, and all that it is judged by."""

    plan: MemoryActionPlan
    payloads: Mapping[str, JsonObject]
    """By payload_ref."""
    memories: Mapping[str, StoredMemory]
    """By id: those of `ids_touched`, with their ancestors (`parents_of`). What is not in it does not exist."""
    level: ScopeLevel
    now: str
    policy: LearnPolicy
    dry_run: bool = False
    """Of the whole call: tell what would happen, and change nothing."""
    secret_in: Callable[[Any], str | None] = no_secret
    """What kind of secret plain data holds, if any: the ledger's own look."""
    taken: frozenset[str] = frozenset()
    """Ids of `ids_touched` that are those of something else: of another bank or kind, or of what was forgotten."""
    stages: Mapping[str, LessonState] = {}
    """Where lessons go by what came of them. It is never read from a plan."""


class Applied(NamedTuple):
    """What came of a plan."""

    records: tuple[MemoryActionRecord, ...]
    """One for each action, in order."""
    changes: tuple[StoredMemory, ...]
    """New versions, in order; a record that two actions change stands there twice."""
    aborted: bool
    would: bool
    """Nothing was done: what would have been APPLIED is SKIPPED with `dry_run`, and names what it would make."""


def check_plan(plain: Any) -> MemoryActionPlan:
    """A plan from plain data; raises `InvalidRecord` with every issue found: unknown stores and operations too."""
    plan = MemoryActionPlan.from_wire(plain)
    issues = []
    if not _is_id(plan.plan_id):
        issues.append(Issue("$.plan_id", f"wanted 1 to {ID_MAX_CHARS} characters, none of them a control character"))
    try:
        parse_instant(plan.created_at, path="$.created_at")
    except InvalidInput as error:
        issues.append(Issue("$.created_at", error.message))
    if issues:
        raise InvalidRecord("not a valid MemoryActionPlan", issues)
    return plan


def _is_id(text: str) -> bool:
    sized = 0 < len(text) <= ID_MAX_CHARS and len(text.encode("utf-8", "replace")) <= ID_MAX_BYTES
    return sized and not any(char < " " or char == "\x7f" for char in text)


def ids_touched(plan: MemoryActionPlan, payloads: Mapping[str, JsonObject]) -> tuple[str, ...]:
    """The ids that a plan names or would make: what must be looked up, ancestors apart, before it is executed."""
    names: dict[str, None] = {}
    for action in plan.actions:
        names.update(dict.fromkeys(action.target_ids or ()))
        plain = payloads.get(action.payload_ref) if action.payload_ref is not None else None
        made = None if plain is None else id_of(plain)
        if plain is not None and made is not None:
            names.update(dict.fromkeys((made, *lineage_of("seed", plain))))
    return tuple(names)


def op_id(plan_id: str, index: int) -> str:
    """The id of a plan's action, the same whenever and wherever the plan is applied."""
    return short_id("op", [plan_id, index])


def execute(given: Given) -> Applied:
    """What a plan does to the stores. Safety rules hold whatever it says (`operations`)."""
    actions = given.plan.actions
    if len(actions) > given.policy.plan_actions_max:
        return _aborted(given, 0, f"too_many_actions: {len(actions)} of at most {given.policy.plan_actions_max}")
    changed: dict[str, StoredMemory] = {}
    memories = ChainMap(changed, dict(given.memories))
    context = ActionContext(
        memories,
        given.memories,
        given.payloads,
        given.level,
        given.now,
        given.policy,
        given.secret_in,
        given.taken,
        given.stages,
    )
    records: list[MemoryActionRecord] = []
    changes: list[StoredMemory] = []
    for index, action in enumerate(actions):
        try:
            made = perform(action, context)
        except Refused as refusal:
            return _aborted(given, index, str(refusal))
        rehearsed = action.safety is not None and action.safety.dry_run is True
        if not rehearsed:
            changed.update({memory.id: memory for memory in made})
            changes.extend(made)
        records.append(_done(given, index, made, dry_run=rehearsed or given.dry_run))
    return Applied(tuple(records), () if given.dry_run else tuple(changes), aborted=False, would=given.dry_run)


def _done(given: Given, index: int, made: tuple[StoredMemory, ...], *, dry_run: bool) -> MemoryActionRecord:
    produced = tuple(memory.id for memory in made)
    if not made:
        return _record(given, index, "SKIPPED", error="already")
    if dry_run:
        return _record(given, index, "SKIPPED", error="dry_run", produced=produced)
    return _record(given, index, "APPLIED", produced=produced)


def _aborted(given: Given, failed: int, error: str) -> Applied:
    records = tuple(
        _record(given, index, "FAILED", error=error)
        if index == failed
        else _record(given, index, "SKIPPED", error="plan_aborted")
        for index in range(len(given.plan.actions))
    )
    return Applied(records, (), aborted=True, would=given.dry_run)


def _record(
    given: Given,
    index: int,
    status: Literal["APPLIED", "SKIPPED", "FAILED"],
    *,
    error: str | None = None,
    produced: tuple[str, ...] = (),
) -> MemoryActionRecord:
    return action_record(given.plan, index, given.now, status, error=error, produced=produced)


def action_record(
    plan: MemoryActionPlan,
    index: int,
    now: str,
    status: Literal["APPLIED", "SKIPPED", "FAILED"],
    *,
    error: str | None = None,
    produced: tuple[str, ...] = (),
) -> MemoryActionRecord:
    """The record of a plan's action; what there is nothing to say of is absent."""
    action: MemoryAction = plan.actions[index]
    said = {
        "fold_id": plan.fold_id,
        "target_ids": action.target_ids,
        "produced_ids": produced or None,
        "reason_keys": action.reason_keys,
        "error": error,
    }
    return MemoryActionRecord.model_validate(
        {
            "schema_version": RULECRAFT_VERSION,
            "op_id": op_id(plan.plan_id, index),
            "created_at": now,
            "plan_id": plan.plan_id,
            "op": action.op,
            "status": status,
            "target_store": action.target_store,
        }
        | {name: value for name, value in said.items() if value is not None}
    )
