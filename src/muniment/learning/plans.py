"""Plans on learned memory: made, applied whole or not at all, recorded, undone (RC-11). One transaction each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muniment.contracts.learning import MemoryActionPlan, MemoryActionRecord
from muniment.core.canonical import canonical_bytes, short_id
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import bank_level, bank_owner
from muniment.errors import Conflict, DuplicateId, InvalidInput, NotFound
from muniment.learning._operations import (
    Applied,
    Given,
    check_plan,
    execute,
    id_of,
    ids_touched,
    named_traces,
    no_secret,
    parents_of,
    undo_plan,
)
from muniment.learning.banks import Held, find_memory, lock_bank, memory_drafts, write_bank
from muniment.learning.records import StoredMemory
from muniment.memory.patches import draft_patch
from muniment.store.admission import is_id
from muniment.store.items import Item, get_version, latest, taken_ids
from muniment.store.ledger import PLAN_ENDED, PLAN_MADE
from muniment.store.secrets import find_secret

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope, ScopeLevel
    from muniment.learning.records import LessonState
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft

__all__ = [
    "PlanState",
    "applied_draft",
    "apply_plan",
    "ended_draft",
    "get_plan",
    "made_draft",
    "make_plan",
    "plan_in",
    "plan_of",
    "run_plan",
    "undo",
    "version_of",
]

_ANCESTORS_MAX = 10_000


class PlanState(NamedTuple):
    """The current state of a plan."""

    plan: MemoryActionPlan
    status: str
    """made, applied, aborted, undone"""
    records: tuple[MemoryActionRecord, ...]
    touched: tuple[tuple[str, int, int], ...]
    """Record id, the version the plan found (0: none), and the version it left."""
    payloads: Mapping[str, Any]
    owner: str
    undone_by: str | None


# -- reading ------------------------------------------------------------------------------------------


def find_plan(reader: Reader, owners: Sequence[str], plan_id: Any) -> PlanState:
    item = latest(reader, plan_id) if isinstance(plan_id, str) else None
    if item is None or item.kind != "plan" or item.user_id not in owners:
        raise NotFound(f"no plan {plan_id!r:.80} in this scope", path="$.plan_id")
    return plan_of(item)


def plan_of(item: Item) -> PlanState:
    body = item.plain()
    return PlanState(
        plan=MemoryActionPlan.from_wire(body["plan"]),
        status=item.status,
        records=tuple(MemoryActionRecord.from_wire(each) for each in body.get("records", ())),
        touched=tuple((id_, before, after) for id_, before, after in body.get("touched", ())),
        payloads=body.get("payloads", {}),
        owner=item.user_id or "",
        undone_by=body.get("undone_by"),
    )


def get_plan(ctx: Context, tenant_id: str, owners: Sequence[str], plan_id: str) -> PlanState:
    return ctx.engine.read(tenant_id, lambda reader: find_plan(reader, owners, plan_id))


# -- making -------------------------------------------------------------------------------------------


def make_plan(
    ctx: Context, scope: Scope, level: ScopeLevel, given: Any, payloads: Any, *, sources: Iterable[str] = ()
) -> MemoryActionPlan:
    """Store a plan, given as a record, as plain data, or as a list of actions. An action's `payload` is stored under a
    ref.

    It is forgotten with its `sources`, and with the sources of its payloads.
    """
    plain, kept = _with_payloads(ctx, given, payloads)
    plan = check_plan(plain)
    _check_payloads(kept)
    _refuse_secrets(ctx, plan, kept)
    owner = bank_owner(scope, level)

    def work(tx: Transaction) -> MemoryActionPlan:
        lock_bank(tx, owner)
        found = latest(tx, plan.plan_id)
        if found is not None:
            return _same_plan(found, owner, plan, kept)
        write_bank(ctx, tx, scope.tenant_id, owner, [made_draft(plan, kept, sources=sources)])
        return plan

    return ctx.write(scope.tenant_id, work)


def _same_plan(found: Item, owner: str, plan: MemoryActionPlan, payloads: Mapping[str, Any]) -> MemoryActionPlan:
    """The existing plan, if identical to this one."""
    if found.kind != "plan" or found.user_id != owner:
        hint = "leave plan_id out to have one minted"
        raise DuplicateId(f"the id {plan.plan_id!r:.80} is taken", path="$.plan_id", hint=hint)
    state = plan_of(found)
    if state.plan != plan or dict(state.payloads) != dict(payloads):
        raise Conflict(
            f"the plan {plan.plan_id!r:.80} was made with other actions", path="$.plan_id", hint="give it another id"
        )
    return state.plan


def _with_payloads(ctx: Context, given: Any, payloads: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if isinstance(given, MemoryActionPlan):
        plain: dict[str, Any] = given.to_wire()
    elif isinstance(given, Mapping):
        plain = dict(given)
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        plain = {"actions": list(given)}
    else:
        raise InvalidInput("a plan is a MemoryActionPlan or a list of actions", path="$.plan")
    if not isinstance(payloads or {}, Mapping):
        raise InvalidInput("payloads is an object by payload_ref", path="$.payloads")
    kept: dict[str, Any] = dict(payloads or {})
    if isinstance(plain.get("actions"), list | tuple):
        plain["actions"] = [_referred(each, kept) for each in plain["actions"]]
    plain.setdefault("schema_version", RULECRAFT_VERSION)
    plain.setdefault("created_at", ctx.now())
    plain.setdefault("plan_id", ctx.ids.new("plan"))
    return plain, kept


def _referred(action: Any, kept: dict[str, Any]) -> Any:
    """An action with its payload moved out, under a derived name."""
    if not isinstance(action, Mapping) or "payload" not in action:
        return action
    payload = action["payload"]
    plain = payload.to_wire() if hasattr(payload, "to_wire") else payload
    ref = short_id("pay", plain)
    kept[ref] = plain
    return {key: value for key, value in action.items() if key != "payload"} | {"payload_ref": ref}


def _check_payloads(payloads: Mapping[Any, Any]) -> None:
    """Check that they are JSON by name; their content is validated when the plan is applied."""
    if not all(isinstance(ref, str) for ref in payloads):
        raise InvalidInput("payloads is an object by payload_ref", path="$.payloads")
    try:
        canonical_bytes(dict(payloads))
    except InvalidInput as error:
        raise InvalidInput(error.message, path=f"$.payloads{(error.path or '$')[1:]}") from None


def _refuse_secrets(ctx: Context, plan: MemoryActionPlan, payloads: Mapping[str, Any]) -> None:
    """Refuse a plan with a secret, as plans are stored as they were made (LG-10)."""
    if not ctx.policy.ledger.redact_secrets:
        return
    named = [("$.plan", plan.to_wire()), *((f"$.payloads.{ref:.80}", each) for ref, each in payloads.items())]
    for path, plain in named:
        kind = find_secret(plain)
        if kind is not None:
            raise InvalidInput(f"the plan holds a secret ({kind})", path=path, hint="leave it out")


def made_draft(
    plan: MemoryActionPlan, payloads: Mapping[str, Any], *, sources: Iterable[str] = (), **more: Any
) -> EntryDraft:
    """The entry of a plan. It contains its payloads, and is forgotten with their sources."""
    named = [*sources]
    for payload in payloads.values():
        named += [*named_traces(payload), id_of(payload) or ""]
    named += [id_ for action in plan.actions if action.op == "MERGE" for id_ in action.target_ids or ()]
    said = {"id": plan.plan_id, "plan": plan.to_wire(), "payloads": dict(payloads)} | more
    if named := [each for each in dict.fromkeys(named) if is_id(each)]:
        said["sources"] = named
    return draft_patch(PLAN_MADE, "assistant", said)


def applied_draft(
    plan: MemoryActionPlan, payloads: Mapping[str, Any], ran: Ran, *, sources: Iterable[str] = ()
) -> EntryDraft:
    """A single entry for a plan made and applied in one transaction.

    Payloads that were written as records, in the versions in `touched`, are not stored again; those of an aborted plan
    are stored only here.
    """
    status = "aborted" if ran.applied.aborted else "applied"
    draft = made_draft(plan, payloads, sources=sources, status=status, **_outcome(ran.applied, ran.touched))
    if ran.applied.aborted:
        return draft
    return draft.model_copy(update={"metadata": {**(draft.metadata or {}), "payloads": {}}})


def ended_draft(
    plan_id: str, status: str, applied: Applied | None, touched: Sequence[Sequence[Any]], **more: Any
) -> EntryDraft:
    said: dict[str, Any] = {"id": plan_id, "status": status} | more
    if applied is not None:
        said |= _outcome(applied, touched)
    return draft_patch(PLAN_ENDED, "assistant", said)


def _outcome(applied: Applied, touched: Sequence[Sequence[Any]]) -> dict[str, Any]:
    return {
        "records": [record.to_wire() for record in applied.records],
        "touched": [list(each) for each in touched],
    }


# -- applying -----------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """The writes that result from applying a plan."""

    applied: Applied
    before: dict[str, StoredMemory | None]
    touched: list[tuple[str, int, int]]
    drafts: list[EntryDraft]
    """New versions of records; empty if the plan was aborted."""


def run_plan(
    ctx: Context,
    reader: Reader,
    owner: str,
    plan: MemoryActionPlan,
    payloads: Mapping[str, Any],
    now: str,
    *,
    dry_run: bool = False,
    stages: Mapping[str, LessonState] | None = None,
) -> Ran:
    """Compute a plan's effect on the current store, without writing; `stages` are the lessons' next states."""
    touching = ids_touched(plan, payloads)
    memories = _memories(reader, owner, touching)
    given = Given(
        plan=plan,
        payloads=payloads,
        memories=memories,
        level=bank_level(owner),
        now=now,
        policy=ctx.policy.learn,
        dry_run=dry_run,
        secret_in=find_secret if ctx.policy.ledger.redact_secrets else no_secret,
        taken=_taken(reader, set(touching) - memories.keys()),
        stages=stages or {},
    )
    applied = execute(given)
    before = {memory.id: memories.get(memory.id) for memory in applied.changes}
    last = {memory.id: memory.version for memory in applied.changes}
    found = {id_: 0 if held is None else held.version for id_, held in before.items()}
    touched = [(id_, found[id_], version) for id_, version in sorted(last.items())]
    return Ran(applied, before, touched, memory_drafts(applied.changes, before))


def _memories(reader: Reader, owner: str, ids: Iterable[str]) -> dict[str, StoredMemory]:
    """The records of a bank by id, with all their ancestors."""
    found: dict[str, StoredMemory] = {}
    waiting = list(ids)
    while waiting and len(found) < _ANCESTORS_MAX:
        id_ = waiting.pop()
        if id_ in found or not is_id(id_):
            continue
        held: Held | None = find_memory(reader, (owner,), id_)
        if held is not None:
            found[id_] = held.memory
            waiting += parents_of(held.memory)
    return found


def _taken(reader: Reader, ids: Iterable[str]) -> frozenset[str]:
    """The ids that are no records of the bank but used by something else, now or before it was forgotten."""
    return frozenset(taken_ids(reader, [id_ for id_ in ids if is_id(id_)]))


def apply_plan(ctx: Context, tenant_id: str, owners: Sequence[str], plan_id: str, *, dry_run: bool) -> Applied:
    """Apply a plan. For a plan already applied or aborted, returns its records."""
    now = ctx.now()

    def work(tx: Transaction) -> Applied:
        state = find_plan(tx, owners, plan_id)
        lock_bank(tx, state.owner)
        state = find_plan(tx, owners, plan_id)  # read again under the lock
        if state.status != "made" and not dry_run:
            return Applied(state.records, (), aborted=state.status == "aborted", would=False)
        ran = run_plan(ctx, tx, state.owner, state.plan, state.payloads, now, dry_run=dry_run)
        if not dry_run:
            status = "aborted" if ran.applied.aborted else "applied"
            ended = ended_draft(plan_id, status, ran.applied, ran.touched)
            write_bank(ctx, tx, tenant_id, state.owner, [*ran.drafts, ended])
        return ran.applied

    return ctx.write(tenant_id, work)


def plan_in(
    ctx: Context, reader: Reader, owner: str, actions: Sequence[Mapping[str, Any]], *, sources: Iterable[str] = ()
) -> tuple[str, list[EntryDraft]]:
    """Make and apply a plan in the caller's transaction; returns its id and the entries to write.

    The caller must hold the bank's lock. A plan that cannot be applied is refused as a whole.
    """
    plain, kept = _with_payloads(ctx, actions, None)
    plan = check_plan(plain)
    _refuse_secrets(ctx, plan, kept)
    ran = run_plan(ctx, reader, owner, plan, kept, ctx.now())
    if ran.applied.aborted:
        why = next((record.error for record in ran.applied.records if record.error), "it was refused")
        raise Conflict(f"it was changed meanwhile: {why}", hint="read it again")
    return plan.plan_id, [*ran.drafts, applied_draft(plan, kept, ran, sources=sources)]


def undo(ctx: Context, tenant_id: str, owners: Sequence[str], plan_id: str) -> tuple[MemoryActionRecord, ...]:
    """Undo an applied plan: each record returns to its previous version. Refused as a whole if one has changed
    since.
    """
    now = ctx.now()

    def work(tx: Transaction) -> tuple[MemoryActionRecord, ...]:
        state = find_plan(tx, owners, plan_id)
        lock_bank(tx, state.owner)
        state = find_plan(tx, owners, plan_id)
        if state.undone_by is not None:
            return find_plan(tx, owners, state.undone_by).records
        if state.status != "applied":
            raise Conflict(f"the plan {plan_id} is {state.status}: there is nothing to undo", path="$.plan_id")
        undone = undo_plan(
            state.plan,
            {id_: version_of(tx, id_, found) for id_, found, _ in state.touched},
            {id_: cast("StoredMemory", version_of(tx, id_, left)) for id_, _, left in state.touched},
            current=_memories(tx, state.owner, [id_ for id_, _, _ in state.touched]),
            now=now,
        )
        failed = [record for record in undone.records if record.status == "FAILED"]
        if undone.refused:
            raise Conflict(
                f"cannot be undone: {'; '.join(filter(None, (record.error for record in failed[:5])))}",
                path="$.plan_id",
                hint="make a plan that says what should be now",
                details={"plan_id": plan_id, "changed": list(undone.refused)},
            )
        current = _memories(tx, state.owner, [memory.id for memory in undone.changes])
        touched = [(memory.id, current[memory.id].version, memory.version) for memory in undone.changes]
        applied = Applied(undone.records, undone.changes, aborted=False, would=False)
        drafts = [
            made_draft(undone.plan, {}, undoes=plan_id),
            *memory_drafts(undone.changes, dict(current)),
            ended_draft(undone.plan.plan_id, "applied", applied, touched),
            ended_draft(plan_id, "undone", None, (), undone_by=undone.plan.plan_id),
        ]
        write_bank(ctx, tx, tenant_id, state.owner, drafts)
        return undone.records

    return ctx.write(tenant_id, work)


def version_of(reader: Reader, memory_id: str, version: int) -> StoredMemory | None:
    if version == 0:
        return None
    item = get_version(reader, memory_id, version)
    if item is None:
        raise NotFound(f"version {version} of {memory_id} is gone", path="$.plan_id")
    return StoredMemory.from_wire(item.plain()["memory"])
