"""Applying and undoing plans, and the five operations (RC-06, RC-11). Pure.

A plan is applied whole or not at all, with one record per action in either case. Each action is checked against the
state left by the preceding ones. The first that FAILS aborts the plan: the others are SKIPPED with `plan_aborted`, and
nothing changes. A record's error is a stable code, followed by words: `pinned: rm_1 is pinned`.

- WRITE makes a record or its next version, which keeps pin, parents, protection and tallies. A retired or pruned record
  gets no new version except by an undo. A lesson is written as a candidate, and becomes one again if its text changes;
  it is moved by the outcomes of its runs (`stages`), never by a plan.
- PIN protects from TTL, eviction and PRUNE, even after a later retirement.
- MERGE makes a new record of two or more live ones of one kind, which are retired and refer to it. Capsules may also
  merge into an episode. If one of them was pinned, so is the new one.
- RETIRE removes a record from recall and keeps it.
- PRUNE leaves a tombstone (id, digest, reason) of a record that was retired or expired before the plan, is not pinned
  and is past its protection.

An undo restores each record a plan touched to the version before, as a new version by a plan of its own; if one has
changed since, nothing is undone. Active rules belong to promotion: no operation here makes, changes or removes one (001
§4.6).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from muniment.contracts.learning import (
    ConditionalTactic,
    MemoryAction,
    MemoryActionPlan,
    MemoryActionRecord,
    ReasoningMemory,
    ReuseStateRecord,
)
from muniment.contracts.rules import RuleRecord
from muniment.contracts.runs import TraceCapsule
from muniment.core.canonical import canonical_bytes, child_path, digest_of, short_id
from muniment.core.instants import format_instant, parse_instant
from muniment.core.policy import LearnPolicy
from muniment.core.predicates import parse
from muniment.core.record import RULECRAFT_VERSION, JsonObject, RulecraftRecord
from muniment.core.scope import ID_MAX_BYTES, ID_MAX_CHARS, ScopeLevel
from muniment.errors import InvalidInput, InvalidRecord, Issue
from muniment.learning.keys import DAYS_MAX, expires_at, has_expired, parse_ttl, ttl_text
from muniment.learning.records import (
    STORES,
    LessonStage,
    LessonState,
    MemoryKind,
    RuleStage,
    Store,
    StoredMemory,
    Tally,
)

__all__ = [
    "ENDLESS",
    "UNDONE",
    "ActionContext",
    "Applied",
    "Given",
    "Payload",
    "Refused",
    "Undone",
    "check_plan",
    "execute",
    "id_of",
    "ids_touched",
    "in_step",
    "issue_words",
    "lineage_of",
    "named_traces",
    "no_secret",
    "op_id",
    "parents_of",
    "perform",
    "read_payload",
    "retired",
    "undo_plan",
]


def no_secret(_value: Any) -> str | None:
    """A secret check that finds none."""
    return None


# -- plans -----------------------------------------------------------------------------------------


class Given(NamedTuple):
    """A plan with everything needed to apply it."""

    plan: MemoryActionPlan
    payloads: Mapping[str, JsonObject]
    """By payload_ref."""
    memories: Mapping[str, StoredMemory]
    """By id: those of `ids_touched`, with their ancestors (`parents_of`). Ids not in it do not exist."""
    level: ScopeLevel
    now: str
    policy: LearnPolicy
    dry_run: bool = False
    """For the whole call: report what would happen, and change nothing."""
    secret_in: Callable[[Any], str | None] = no_secret
    """The kind of secret in plain data, if any; the same check as the ledger's."""
    taken: frozenset[str] = frozenset()
    """Ids of `ids_touched` used by something else: in another bank, of another kind, or forgotten."""
    stages: Mapping[str, LessonState] = {}
    """The next states of lessons, from their outcomes; never read from a plan."""


class Applied(NamedTuple):
    """The result of applying a plan."""

    records: tuple[MemoryActionRecord, ...]
    """One for each action, in order."""
    changes: tuple[StoredMemory, ...]
    """New versions, in order; a record changed by two actions occurs twice."""
    aborted: bool
    would: bool
    """A dry run: actions that would be APPLIED are SKIPPED with `dry_run`, and name the record they would make."""


def check_plan(plain: Any) -> MemoryActionPlan:
    """Read a plan from plain data. Raises `InvalidRecord` listing all issues, including unknown stores and
    operations.
    """
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
    """The ids that a plan names or would create, to be looked up before it is executed; without ancestors."""
    names: dict[str, None] = {}
    for action in plan.actions:
        names.update(dict.fromkeys(action.target_ids or ()))
        plain = payloads.get(action.payload_ref) if action.payload_ref is not None else None
        made = None if plain is None else id_of(plain)
        if plain is not None and made is not None:
            names.update(dict.fromkeys((made, *lineage_of("seed", plain))))
    return tuple(names)


def op_id(plan_id: str, index: int) -> str:
    """The id of a plan's action: deterministic."""
    return short_id("op", [plan_id, index])


def execute(given: Given) -> Applied:
    """Compute the changes a plan makes. Safety rules apply whatever it says (`operations`)."""
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
    """The record of a plan's action, without empty fields."""
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


# -- the five operations ---------------------------------------------------------------------------

TRIED: tuple[RuleStage, ...] = ("gated", "replayed", "canary", "active")
"""Stages of a rule tested in its current form: no plan may change it now."""
ENDLESS = "9999-12-31T23:59:59.999999Z"
"""Protection of a record that was pinned when retired."""


def parents_of(memory: StoredMemory) -> tuple[str, ...]:
    """The records it was merged from, or the seeds that a seed was made from; defines lineage."""
    return (*memory.parents, *lineage_of(memory.kind, memory.record))


class ActionContext(NamedTuple):
    """The context in which an action is applied."""

    memories: Mapping[str, StoredMemory]
    """After the preceding actions."""
    before: Mapping[str, StoredMemory]
    """Before the plan."""
    payloads: Mapping[str, JsonObject]
    level: ScopeLevel
    now: str
    policy: LearnPolicy
    secret_in: Callable[[Any], str | None] = no_secret
    """The kind of secret in plain data, if any."""
    taken: frozenset[str] = frozenset()
    """Ids used by something else."""
    stages: Mapping[str, LessonState] = {}
    """The next states of lessons, computed from their uses. Lessons not in it do not move."""


def perform(action: MemoryAction, context: ActionContext) -> tuple[StoredMemory, ...]:
    """The new versions made by an action; empty if nothing changes. Raises `Refused` if it is not permitted."""
    _check_limits(action)
    _check_secrets(action.to_wire(), "the action", context)
    return _OPERATIONS[action.op](action, context)


def _write(action: MemoryAction, context: ActionContext) -> tuple[StoredMemory, ...]:
    if _is_step(action, context):
        return tuple(
            memory.model_copy(
                update={
                    "version": memory.version + 1,
                    "lesson": context.stages[memory.id],
                    "reason_keys": action.reason_keys or (),
                }
            )
            for memory in _targets(action, context)
        )
    payload = _payload(action, STORES[action.target_store], context)
    if action.target_ids and set(action.target_ids) != {payload.id}:
        raise Refused("wrong_target", f"the payload is {payload.id}, which the targets should name alone")
    existing = context.memories.get(payload.id)
    if existing is not None:
        _check_place(existing, (payload.kind,), context)
        _check_kept(existing)
    _check_ancestors(payload, (), context)
    fields: dict[str, Any] = {"created_at": context.now, "protected_until": _protected_until(context)}
    pinned = False
    if existing is not None:
        pinned = existing.status == "pinned"
        fields = {name: getattr(existing, name) for name in existing.model_fields_set}
    state = _lesson_state(payload, existing, context)
    fields = {**fields, "lesson": state.to_wire()} if state is not None else fields
    sources = existing.sources if existing is not None else ()
    return (_kept(action, payload, context, fields=fields, sources=sources, pinned=pinned),)


def _pin(action: MemoryAction, context: ActionContext) -> tuple[StoredMemory, ...]:
    made = []
    for memory in _targets(action, context):
        if memory.status == "retired":
            raise Refused("retired", f"{memory.id} is retired")
        if memory.status != "pinned":
            made.append(_next(memory, action, status="pinned", record=in_step(memory.kind, memory.record, "pinned")))
    return tuple(made)


def _merge(action: MemoryAction, context: ActionContext) -> tuple[StoredMemory, ...]:
    targets = _targets(action, context)
    kind = targets[0].kind
    for memory in targets:
        if memory.kind != kind:
            raise Refused("mixed_kinds", f"{targets[0].id} is a {kind} and {memory.id} a {memory.kind}")
        if memory.status == "retired" or has_expired(memory, context.now):
            raise Refused("not_live", f"{memory.id} is retired or has expired")
    if len(targets) < 2:
        raise Refused("too_few", "a merge takes two records or more")
    payload = _payload(action, ("trace_capsule", "reasoning") if kind == "trace_capsule" else (kind,), context)
    if kind == "trace_capsule" and payload.kind == "reasoning" and payload.record["kind"] != "episode":
        raise Refused("wrong_kind", "capsules merge into a capsule or an episode")
    _check_ancestors(payload, targets, context)
    if payload.id in context.memories:
        raise Refused("exists", f"{payload.id} is there already; what a merge makes has an id of its own")
    protections = [_protected_until(context), *(memory.protected_until for memory in targets if memory.protected_until)]
    fields = (
        _merged_tallies(targets)
        | _merged_state(targets, context.now)
        | {
            "created_at": context.now,
            "protected_until": max(protections, key=parse_instant),
            "parents": [memory.id for memory in targets],
        }
    )
    sources = [name for memory in targets for name in memory.sources]
    pinned = any(memory.status == "pinned" for memory in targets)
    result = _kept(action, payload, context, fields=fields, sources=sources, pinned=pinned)
    reasons = action.reason_keys or ("merged",)
    gone = (retired(memory, reasons, merged_into=payload.id, now=context.now) for memory in targets)
    return (result, *gone)


def _retire(action: MemoryAction, context: ActionContext) -> tuple[StoredMemory, ...]:
    ends = {id_: state for id_, state in context.stages.items() if state.stage == "retired"}
    return tuple(
        retired(memory, action.reason_keys or (), now=context.now, state=ends.get(memory.id))
        for memory in _targets(action, context)
        if memory.status != "retired"
    )


def _prune(action: MemoryAction, context: ActionContext) -> tuple[StoredMemory, ...]:
    made = []
    for memory in _targets(action, context, may_be_pruned=True):
        if memory.status == "pruned":
            continue
        _check_prunable(memory, context)
        reason = list(action.reason_keys or ("pruned",))
        stone: JsonObject = {"id": memory.id, "digest": digest_of(memory.record), "reason": [*reason]}
        made.append(_next(memory, action, status="pruned", record=stone))
    return tuple(made)


_OPERATIONS: dict[str, Callable[[MemoryAction, ActionContext], tuple[StoredMemory, ...]]] = {
    "WRITE": _write,
    "PIN": _pin,
    "MERGE": _merge,
    "RETIRE": _retire,
    "PRUNE": _prune,
}


# -- versions -----------------------------------------------------------------------------------------


def retired(
    memory: StoredMemory,
    reason_keys: Iterable[str],
    *,
    merged_into: str | None = None,
    now: str | None = None,
    state: LessonState | None = None,
) -> StoredMemory:
    """The next version of a record, out of recall. If it was pinned it stays protected from PRUNE.

    `state` is the resulting state of a lesson that is ended because of its uses.
    """
    reasons = tuple(reason_keys)
    update: dict[str, Any] = {
        "version": memory.version + 1,
        "status": "retired",
        "record": in_step(memory.kind, memory.record, "retired"),
        "reason_keys": reasons,
    }
    if state is not None:
        update["lesson"] = state
    elif memory.lesson is not None:
        moment = {} if now is None else {"since": now}
        update["lesson"] = memory.lesson.model_copy(update={"stage": "retired", "why": " ".join(reasons), **moment})
    if memory.status == "pinned":
        update["protected_until"] = ENDLESS
    if merged_into is not None:
        update["merged_into"] = merged_into
    return memory.model_copy(update=update)


def _next(memory: StoredMemory, action: MemoryAction, *, status: Status, record: JsonObject) -> StoredMemory:
    reasons = action.reason_keys or ()
    version = memory.version + 1
    return memory.model_copy(update={"version": version, "status": status, "record": record, "reason_keys": reasons})


def _kept(
    action: MemoryAction,
    payload: Payload,
    context: ActionContext,
    *,
    fields: Mapping[str, Any],
    sources: Iterable[str],
    pinned: bool,
) -> StoredMemory:
    """The payload as stored: within limits, with its TTL, and a consistent status."""
    _check_size(action, payload, context)
    status = _written_status(payload, pinned=pinned)
    ttl, until = _ttl(action, payload, context)
    made = dict(fields) | {
        "id": payload.id,
        "kind": payload.kind,
        "level": context.level,
        "version": fields.get("version", 0) + 1,
        "record": in_step(payload.kind, payload.record, status, ttl),
        "status": status,
        "sources": list(dict.fromkeys((*sources, *payload.sources))),
        "reason_keys": list(action.reason_keys or ()),
    }
    made.pop("expires_at", None)
    if until is not None:
        made["expires_at"] = until
    try:
        return StoredMemory.from_wire(made)
    except InvalidInput as error:
        raise Refused("invalid_record", issue_words(error)) from None


def _written_status(payload: Payload, *, pinned: bool) -> Status:
    if pinned and payload.status in ("active", "temporary", "pinned"):
        return "pinned"
    if payload.status not in ("active", "temporary"):
        raise Refused("wrong_status", f"no {payload.status} record is written; PIN and RETIRE change what is kept")
    return payload.status


def _ttl(action: MemoryAction, payload: Payload, context: ActionContext) -> tuple[str | None, str | None]:
    """The TTL in force and when it ends: from the action, else the record, else the policy."""
    policy = context.policy
    usual = {"reasoning": policy.reasoning_ttl, "tactic": policy.tactic_ttl, "seed": policy.seed_ttl}
    days = action.safety.ttl_days if action.safety is not None else None
    text = f"days:{days}" if days is not None else payload.ttl or usual.get(payload.kind)
    if text is None:
        return None, None
    try:
        ttl = parse_ttl(text)
        until = expires_at(ttl, context.now)
    except InvalidInput as error:
        raise Refused("invalid_ttl", error.message) from None
    if until is None:
        raise Refused("invalid_ttl", "'session' is no TTL of what outlives sessions")
    return ttl_text(ttl), until


def _protected_until(context: ActionContext) -> str:
    try:
        return format_instant(parse_instant(context.now) + timedelta(days=context.policy.fold.protect_days))
    except OverflowError:
        return ENDLESS


def _merged_tallies(targets: tuple[StoredMemory, ...]) -> dict[str, Any]:
    """Sum the uses. The runs without are the same for all of them, so the longest count is used."""
    used = [memory.with_tally for memory in targets]
    merged: dict[str, Any] = {
        "with_tally": Tally(
            n=sum(tally.n for tally in used),
            passes=sum(tally.passes for tally in used),
            cost_sum=sum(tally.cost_sum for tally in used),
        ),
        "without_tally": max((memory.without_tally for memory in targets), key=lambda tally: tally.n),
    }
    last = [memory.last_used_at for memory in targets if memory.last_used_at is not None]
    return merged | {"last_used_at": max(last, key=parse_instant)} if last else merged


# -- lessons ------------------------------------------------------------------------------------------


def _is_step(action: MemoryAction, context: ActionContext) -> bool:
    """Return whether the action only moves lessons: it names the current version, which is no payload."""
    is_named = action.payload_ref is not None and action.payload_ref not in context.payloads
    return is_named and bool(action.target_ids) and set(action.target_ids or ()) <= context.stages.keys()


def _lesson_state(payload: Payload, existing: StoredMemory | None, context: ActionContext) -> LessonState | None:
    """The new state of a written lesson; None if it keeps its state, or is no lesson."""
    if payload.kind != "tactic" or not payload.record.get("lesson"):
        return None
    told = context.stages.get(payload.id)
    if existing is None and told is not None:
        return told
    if existing is not None and _says_the_same(existing.record, payload.record):
        return None
    why = "it was proposed" if existing is None else "it says something else now"
    return LessonState(stage="candidate", since=context.now, why=why)


def _says_the_same(one: JsonObject, other: JsonObject) -> bool:
    return one.get("injection") == other.get("injection") and one.get("predicates") == other.get("predicates")


_FURTHER: tuple[LessonStage, ...] = ("suspended", "candidate", "trial", "active")


def _merged_state(targets: tuple[StoredMemory, ...], now: str) -> dict[str, Any]:
    """The least advanced state of the merged lessons, as the new text was tried no more than that. Their trials were of
    other texts: the merged lesson has none yet, and waits if one was on trial.
    """
    states = [memory.lesson for memory in targets if memory.lesson is not None]
    if not states:
        return {}
    least = min(states, key=lambda state: _FURTHER.index(state.stage) if state.stage in _FURTHER else 0)
    if least.stage in ("trial", "candidate"):
        return {"lesson": LessonState(stage="candidate", since=now, why="it was merged").to_wire()}
    return {"lesson": least.to_wire()}


# -- forbidden changes --------------------------------------------------------------------------------


def _targets(action: MemoryAction, context: ActionContext, *, may_be_pruned: bool = False) -> tuple[StoredMemory, ...]:
    """The distinct records of an action: existing, of this store and level, and open to plans."""
    if not action.target_ids:
        raise Refused("no_target", f"{action.op} names no record")
    found = []
    for name in dict.fromkeys(action.target_ids):
        memory = context.memories.get(name)
        if memory is None:
            raise Refused("unknown_id", f"{name} is not there")
        _check_place(memory, STORES[action.target_store], context)
        if memory.status == "pruned" and not may_be_pruned:
            raise Refused("pruned", f"{name} was pruned")
        found.append(memory)
    return tuple(found)


def _check_place(memory: StoredMemory, kinds: tuple[MemoryKind, ...], context: ActionContext) -> None:
    if memory.kind not in kinds:
        raise Refused("wrong_kind", f"{memory.id} is a {memory.kind}, not a {' or '.join(kinds)}")
    if memory.level != context.level:
        raise Refused("wrong_level", f"{memory.id} belongs to the {memory.level}, the plan to the {context.level}")
    if memory.kind == "rule" and memory.record.get("status") == "active":
        raise Refused("active_rule", f"{memory.id} is active; only promotion changes it")
    if memory.layer == "user":
        raise Refused("users_rule", f"{memory.id} was written by a person; the rulebook adds and retires those")
    if memory.stage in TRIED:
        raise Refused("in_promotion", f"{memory.id} is {memory.stage}; only promotion changes it")


def _check_kept(memory: StoredMemory) -> None:
    if memory.status == "pruned":
        raise Refused("pruned", f"{memory.id} was pruned; write under another id")
    if memory.status == "retired":
        raise Refused("retired", f"{memory.id} is retired; an undo brings it back, or write under another id")


def _check_prunable(memory: StoredMemory, context: ActionContext) -> None:
    if memory.status == "pinned":
        raise Refused("pinned", f"{memory.id} is pinned")
    if memory.protected_until is not None and parse_instant(context.now) < parse_instant(memory.protected_until):
        raise Refused("protected", f"{memory.id} is protected until {memory.protected_until}")
    for version in (memory, context.before.get(memory.id)):
        if version is None or not (version.status == "retired" or has_expired(version, context.now)):
            raise Refused("not_retired", f"{memory.id} was not retired before this plan")


def _check_ancestors(payload: Payload, targets: tuple[StoredMemory, ...], context: ActionContext) -> None:
    """Check that no record descends from itself or merges with its own ancestor."""
    named = lineage_of(payload.kind, payload.record)
    if payload.id in _with_ancestors((*named, *(memory.id for memory in targets)), context.memories):
        raise Refused("lineage_cycle", f"{payload.id} would descend from itself")
    for memory in targets:
        above = _with_ancestors(parents_of(memory), context.memories)
        found = next((other.id for other in targets if other.id in above), None)
        if found is not None:
            raise Refused("lineage_cycle", f"{found} is an ancestor of {memory.id}")


def _with_ancestors(names: Iterable[str], memories: Mapping[str, StoredMemory]) -> set[str]:
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            memory = memories.get(name)
            waiting.extend(() if memory is None else parents_of(memory))
    return seen


def _payload(action: MemoryAction, kinds: tuple[MemoryKind, ...], context: ActionContext) -> Payload:
    if action.payload_ref is None:
        raise Refused("no_payload", f"{action.op} names no payload")
    if action.payload_ref not in context.payloads:
        raise Refused("unknown_payload", f"{action.payload_ref} is not there")
    payload = read_payload(context.payloads[action.payload_ref], kinds)
    if payload.id in context.taken:
        raise Refused("taken", f"{payload.id} is the id of something else; write under another")
    _check_secrets(payload.record, f"the payload of {payload.id}", context)
    return payload


def _check_limits(action: MemoryAction) -> None:
    safety = action.safety
    if safety is not None and safety.ttl_days is not None and not 1 <= safety.ttl_days <= DAYS_MAX:
        raise Refused("invalid_ttl", f"ttl_days should be from 1 to {DAYS_MAX}")
    if safety is not None and safety.max_bytes is not None and safety.max_bytes < 1:
        raise Refused("invalid_max_bytes", "max_bytes should be 1 or more")


def _check_size(action: MemoryAction, payload: Payload, context: ActionContext) -> None:
    own = action.safety.max_bytes if action.safety is not None else None
    limit = context.policy.record_bytes_max if own is None else min(own, context.policy.record_bytes_max)
    if payload.size_bytes > limit:
        raise Refused("too_large", f"{payload.id} has {payload.size_bytes} bytes of at most {limit}")


def _check_secrets(value: Any, what: str, context: ActionContext) -> None:
    kind = context.secret_in(value)
    if kind is not None:
        raise Refused("secret", f"{what} holds a secret ({kind})")


# -- payloads --------------------------------------------------------------------------------------

Status = Literal["active", "pinned", "temporary", "retired", "pruned"]

_IDS: dict[MemoryKind, str] = {
    "reasoning": "memory_id",
    "rule": "rule_id",
    "seed": "state_id",
    "tactic": "tactic_id",
    "trace_capsule": "trace_id",
}
_RECORDS: dict[MemoryKind, type[RulecraftRecord]] = {
    "reasoning": ReasoningMemory,
    "rule": RuleRecord,
    "seed": ReuseStateRecord,
    "tactic": ConditionalTactic,
    "trace_capsule": TraceCapsule,
}
_STATUS_WORDS: dict[MemoryKind, tuple[Status, ...]] = {
    "reasoning": ("active", "pinned", "temporary", "retired"),
    "rule": ("temporary", "active", "retired"),
    "tactic": ("active", "pinned", "retired"),
}
"""Record kinds with a status, and its values; a pinned rule stays `temporary` in its record."""
_WITH_TTL: tuple[MemoryKind, ...] = ("reasoning", "seed", "tactic")
_ISSUES_SHOWN = 3


class Refused(Exception):
    """An action that is not permitted. Its text, a stable code and words, becomes the record's error."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(f"{code}: {words}")
        self.code = code


class Payload(NamedTuple):
    """A validated record, with the fields the stores need."""

    id: str
    kind: MemoryKind
    record: JsonObject
    status: Status
    ttl: str | None
    sources: tuple[str, ...]
    """Trace ids of its source runs."""
    size_bytes: int
    """Size of its canonical form, as given."""


def read_payload(plain: Any, kinds: Collection[MemoryKind]) -> Payload:
    """Read a record of one of these kinds. Raises `Refused` if it is invalid."""
    kind = _kind_of(plain)
    if kind not in kinds:
        raise Refused("wrong_kind", f"the payload is a {kind} and should be a {' or '.join(kinds)}")
    try:
        record = _RECORDS[kind].from_wire(plain)
        size = len(canonical_bytes(plain))
    except InvalidInput as error:
        raise Refused("invalid_record", issue_words(error)) from None
    wire = record.to_wire()
    if kind == "rule" and wire["status"] == "active":
        raise Refused("activation", f"{_id(wire, kind)} would be an active rule; only promotion makes those")
    _check_predicates(record)
    status: Status = wire["status"] if kind in _STATUS_WORDS else "active"
    ttl = wire.get("ttl") if kind in _WITH_TTL else None
    return Payload(_id(wire, kind), kind, wire, status, ttl, _sources(record), size)


def id_of(plain: Any) -> str | None:
    """The id in a payload, if valid."""
    kinds = _kinds_named(plain) if isinstance(plain, Mapping) else []
    name = plain[_IDS[kinds[0]]] if len(kinds) == 1 else None
    return name if isinstance(name, str) else None


def in_step(kind: MemoryKind, record: JsonObject, status: Status, ttl: str | None = None) -> JsonObject:
    """The record with the surrounding status and TTL, if its contract has fields for them."""
    if status in _STATUS_WORDS.get(kind, ()):
        record = record | {"status": status}
    if ttl is not None and kind in _WITH_TTL:
        record = record | {"ttl": ttl}
    return record


def lineage_of(kind: MemoryKind, record: JsonObject) -> tuple[str, ...]:
    """The seeds that a seed names as its sources."""
    lineage = record.get("lineage") if kind == "seed" else None
    if not isinstance(lineage, Mapping):
        return ()
    parents = lineage.get("parent_ids")
    named = [lineage.get("parent_state_id"), *(parents if isinstance(parents, list | tuple) else ())]
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str)))


def named_traces(plain: Any) -> tuple[str, ...]:
    """The source runs named by a payload, valid or not."""
    if not isinstance(plain, Mapping):
        return ()
    evidence = plain.get("evidence")
    listed = [plain.get("trace_ids"), plain.get("source_trace_ids"), [plain.get("trace_id")]]
    listed.append(evidence.get("trace_ids") if isinstance(evidence, Mapping) else None)
    named = [each for traces in listed if isinstance(traces, list | tuple) for each in traces]
    return tuple(dict.fromkeys(each for each in named if isinstance(each, str)))


def issue_words(error: InvalidInput) -> str:
    """The problem in one line: the first few issues by path, or the error's own words."""
    issues: Iterable[Issue] = error.issues if isinstance(error, InvalidRecord) else ()
    shown = [f"{issue.path} {issue.message}" for issue in issues]
    if not shown:
        return str(error)
    more = len(shown) - _ISSUES_SHOWN
    return "; ".join(shown[:_ISSUES_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _kind_of(plain: Any) -> MemoryKind:
    if not isinstance(plain, Mapping):
        raise Refused("invalid_record", "$ wanted an object")
    named = _kinds_named(plain)
    if len(named) > 1:
        raise Refused("mixed_kinds", f"the payload is at once a {' and a '.join(named)}")
    if not named:
        raise Refused("unknown_kind", f"the payload has none of {', '.join(_IDS.values())}")
    return named[0]


def _kinds_named(plain: Mapping[str, Any]) -> list[MemoryKind]:
    """The kinds whose id the payload names. A trace id means a capsule only if it is the only id: other records may
    also name a trace.
    """
    found = [kind for kind, name in _IDS.items() if name in plain]
    return found if len(found) < 2 else [kind for kind in found if kind != "trace_capsule"]


def _id(wire: JsonObject, kind: MemoryKind) -> str:
    return str(wire[_IDS[kind]])


def _sources(record: RulecraftRecord) -> tuple[str, ...]:
    traces: Iterable[str] | None = None
    if isinstance(record, ReasoningMemory):
        traces = record.trace_ids
    elif isinstance(record, ReuseStateRecord):
        traces = record.source_trace_ids
    elif isinstance(record, TraceCapsule):
        traces = (record.trace_id,)
    elif isinstance(record, ConditionalTactic | RuleRecord):
        traces = record.evidence.trace_ids if record.evidence is not None else None
    return tuple(dict.fromkeys(traces or ()))


def _check_predicates(record: RulecraftRecord) -> None:
    """Reject conditions that do not parse or type-check when written, rather than when read (RC-13)."""
    predicates: Iterable[str] | None = None
    path = "$.predicates"
    if isinstance(record, ConditionalTactic):
        predicates = record.predicates
    elif isinstance(record, RuleRecord):
        predicates, path = record.applicability.predicates, "$.applicability.predicates"
    for index, text in enumerate(predicates or ()):
        try:
            parse(text, path=child_path(path, index))
        except InvalidInput as error:
            raise Refused("invalid_predicate", issue_words(error)) from None


# -- undoing ---------------------------------------------------------------------------------------

UNDONE = "undone"
"""Reason for records restored or retired by an undo; the plan's id follows it."""

_OBSERVED = ("with_tally", "without_tally", "streak", "last_used_at")
_STORE_OF: dict[MemoryKind, Store] = {kind: store for store, kinds in STORES.items() for kind in kinds}


class Undone(NamedTuple):
    """The result of an undo: a plan, its records, and the new versions."""

    plan: MemoryActionPlan
    records: tuple[MemoryActionRecord, ...]
    changes: tuple[StoredMemory, ...]
    refused: tuple[str, ...]
    """The ids that prevented the undo."""


def undo_plan(
    plan: MemoryActionPlan,
    before: Mapping[str, StoredMemory | None],
    after: Mapping[str, StoredMemory],
    *,
    current: Mapping[str, StoredMemory],
    now: str,
) -> Undone:
    """Undo an applied plan: `before` and `after` are the versions it found and left, `current` the present ones.

    Idempotent: records already in the undone state are SKIPPED with `already`.
    """
    ids = sorted(after)
    undo = _undo_plan(plan, [(after[name], before.get(name)) for name in ids], now)
    reasons = (UNDONE, plan.plan_id)
    problems = {name: _problem(before.get(name), after[name], current.get(name), reasons) for name in ids}
    refused = tuple(name for name in ids if problems[name] not in (None, "already"))
    records, changes = [], []
    for index, name in enumerate(ids):
        problem = problems[name]
        if name in refused:
            records.append(action_record(undo, index, now, "FAILED", error=problem))
        elif refused:
            records.append(action_record(undo, index, now, "SKIPPED", error="plan_aborted"))
        elif problem is not None:
            records.append(action_record(undo, index, now, "SKIPPED", error=problem))
        else:
            changes.append(_restored(before.get(name), current[name], reasons))
            records.append(action_record(undo, index, now, "APPLIED", produced=(name,)))
    return Undone(undo, tuple(records), tuple(changes), refused)


def _problem(
    before: StoredMemory | None, after: StoredMemory, current: StoredMemory | None, reasons: tuple[str, str]
) -> str | None:
    if current is None:
        return f"changed: {after.id} is no longer there"
    if current.version == after.version + 1 and current.reason_keys == reasons:
        return "already"
    if current.version != after.version:
        return f"changed: {after.id} is at version {current.version}, the plan left it at {after.version}"
    if before is not None and before.kind == "rule" and before.record.get("status") == "active":
        return f"active_rule: {after.id} was active; only promotion brings that back"
    return None


def _restored(before: StoredMemory | None, current: StoredMemory, reasons: tuple[str, str]) -> StoredMemory:
    """The version before, on top of the current one; a record that did not exist before is retired, and unpinned."""
    if before is None:
        return retired(current.model_copy(update={"status": "active"}), reasons)
    observed = {name: getattr(current, name) for name in _OBSERVED if name in current.model_fields_set}
    return before.model_copy(update=observed | {"version": current.version + 1, "reason_keys": reasons})


def _undo_plan(
    plan: MemoryActionPlan, touched: list[tuple[StoredMemory, StoredMemory | None]], now: str
) -> MemoryActionPlan:
    said = {
        name: value for name in ("fold_id", "bucket_key", "intent_key", "state_key") if (value := getattr(plan, name))
    }
    return MemoryActionPlan.model_validate(
        {
            "schema_version": RULECRAFT_VERSION,
            "plan_id": short_id("plan", [UNDONE, plan.plan_id]),
            "created_at": now,
            "actions": [_undo_action(left, found, plan.plan_id) for left, found in touched],
        }
        | said
    )


def _undo_action(left: StoredMemory, found: StoredMemory | None, plan_id: str) -> MemoryAction:
    action = {
        "op": "RETIRE" if found is None else "WRITE",
        "target_store": _STORE_OF[left.kind],
        "target_ids": [left.id],
        "reason_keys": [UNDONE, plan_id],
    }
    if found is not None:
        action["payload_ref"] = f"{found.id}@{found.version}"
    return MemoryAction.model_validate(action)
