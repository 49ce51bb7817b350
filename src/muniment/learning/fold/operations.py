"""The five operations (RC-06): WRITE, PIN, MERGE, RETIRE, PRUNE mean the same on every store.

- WRITE makes a record or its next version, which keeps pin, parents, protection and tallies. What is retired or pruned
  takes no further version: its way back is an undo. A lesson is written as a candidate, and so it is again where it
  comes to say something else; where it stands after that is moved by what came of it (`stages`), and no plan's word.
- PIN shields from TTL, eviction and PRUNE; the shield outlives a later retirement.
- MERGE makes a new record of two or more live ones of one kind, which are retired and name it. Capsules may also merge
  into an episode. Where one of them was pinned, the new one is.
- RETIRE takes out of recall and keeps.
- PRUNE leaves a tombstone (id, digest, reason) of what was retired or expired before the plan, is not pinned and is
  past its protection.

An active rule belongs to promotion: no operation here makes one, changes one or takes one away (001 §4.6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from muniment.contracts.learning import MemoryAction
from muniment.core.canonical import digest_of
from muniment.core.instants import format_instant, parse_instant
from muniment.core.policy import LearnPolicy
from muniment.core.record import JsonObject
from muniment.core.scope import ScopeLevel
from muniment.errors import InvalidInput
from muniment.learning.fold.payloads import Payload, Refused, Status, in_step, issue_words, lineage_of, read_payload
from muniment.learning.keys import DAYS_MAX, expires_at, has_expired, parse_ttl, ttl_text
from muniment.learning.lesson_state import LessonStage, LessonState
from muniment.learning.rule_state import RuleStage
from muniment.learning.stored_memory import STORES, MemoryKind, StoredMemory, Tally

__all__ = ["ENDLESS", "ActionContext", "no_secret", "parents_of", "perform", "retired"]

TRIED: tuple[RuleStage, ...] = ("gated", "replayed", "canary", "active")
"""Stages of a rule that has been tested as it is: no plan may change it under the test."""
ENDLESS = "9999-12-31T23:59:59.999999Z"
"""The protection of what was pinned when it was retired."""


def parents_of(memory: StoredMemory) -> tuple[str, ...]:
    """What a record was merged from, and the seeds that a seed was made from: what lineage is walked by."""
    return (*memory.parents, *lineage_of(memory.kind, memory.record))


def no_secret(_value: Any) -> str | None:
    """Stands where nobody looks for secrets."""
    return None


class ActionContext(NamedTuple):
    """What an action is judged by."""

    memories: Mapping[str, StoredMemory]
    """As the actions before it leave them."""
    before: Mapping[str, StoredMemory]
    """As the plan found them."""
    payloads: Mapping[str, JsonObject]
    level: ScopeLevel
    now: str
    policy: LearnPolicy
    secret_in: Callable[[Any], str | None] = no_secret
    """What kind of secret plain data holds, if any."""
    taken: frozenset[str] = frozenset()
    """Ids that are those of something else."""
    stages: Mapping[str, LessonState] = {}
    """Where lessons go, as those who count their uses decided. What is not in it moves nowhere."""


def perform(action: MemoryAction, context: ActionContext) -> tuple[StoredMemory, ...]:
    """The new versions that an action makes; none where all is so already. What may not be done is `Refused`."""
    _check_limits(action)
    _check_secrets(action.to_wire(), "the action", context)
    return _OPERATIONS[action.op](action, context)


# -- the five -----------------------------------------------------------------------------------------


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
    """The next version of a record, out of recall. What was pinned stays shielded from PRUNE.

    `state` is where a lesson stands by that, where its uses ended it.
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
    """The payload as the stores keep it: within its limits, with its TTL, and its status in step."""
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
    """The TTL in force and the instant it ends: the action's, else the record's own, else the policy's."""
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
    """Uses add up. The runs without are the same runs for all of them, so the longest count stands for them."""
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
    """Does it move lessons, and write nothing? It names the version that stands, which is no payload."""
    is_named = action.payload_ref is not None and action.payload_ref not in context.payloads
    return is_named and bool(action.target_ids) and set(action.target_ids or ()) <= context.stages.keys()


def _lesson_state(payload: Payload, existing: StoredMemory | None, context: ActionContext) -> LessonState | None:
    """Where a lesson that is written stands; None where that stays as it is, or it is none."""
    is_lesson = payload.kind == "tactic" and any(payload.record.get(name) for name in ("lesson", "learnt"))
    if not is_lesson:
        return None
    told = context.stages.get(payload.id)
    if existing is None and told is not None:
        return told
    if existing is not None and _says_the_same(existing.record, payload.record):
        return None
    why = "it was proposed" if existing is None else "it says something else now"
    return LessonState(stage="candidate", since=context.now, why=why)


def _says_the_same(one: JsonObject, other: JsonObject) -> bool:
    """Is it the same advice? Of what was learnt by comparing, the figures in its words may move."""
    learnt, now = one.get("learnt"), other.get("learnt")
    if isinstance(learnt, dict) and isinstance(now, dict):
        return all(learnt.get(name) == now.get(name) for name in ("feature", "advice"))
    return one.get("injection") == other.get("injection") and one.get("predicates") == other.get("predicates")


_FURTHER: tuple[LessonStage, ...] = ("suspended", "candidate", "trial", "active")


def _merged_state(targets: tuple[StoredMemory, ...], now: str) -> dict[str, Any]:
    """Of lessons that are merged, the one that is least far on: what it says has been tried no more than that. The
    trials of what it was merged from were of other words: it has none of its own yet, and one that was on trial waits.
    """
    states = [memory.lesson for memory in targets if memory.lesson is not None]
    if not states:
        return {}
    least = min(states, key=lambda state: _FURTHER.index(state.stage) if state.stage in _FURTHER else 0)
    if least.stage in ("trial", "candidate"):
        return {"lesson": LessonState(stage="candidate", since=now, why="it was merged").to_wire()}
    return {"lesson": least.to_wire()}


# -- what may not be ----------------------------------------------------------------------------------


def _targets(action: MemoryAction, context: ActionContext, *, may_be_pruned: bool = False) -> tuple[StoredMemory, ...]:
    """The records an action is about, each once: known, of this store and level, and open to a plan."""
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
    """No record descends from itself, and none merges with its own ancestor."""
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
