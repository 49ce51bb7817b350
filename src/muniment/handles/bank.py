"""A bank's handle: list learned records, apply plans, tidy, select seeds. Made by `Memory.bank`.

bank = mem.bank(user_id="ana")
for lesson in bank.lessons(stage="active"):
    lesson.text, lesson.when.words, lesson.effect.difference
bank.sign_lesson(lesson.lesson_id, signed_by="rosa")
plan = bank.plan([{"op": "PIN", "target_store": "ReasoningBank", "target_ids": ["rm_1"]}])
bank.apply(plan.plan_id)
bank.undo(plan.plan_id)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

from muniment.contracts.learning import (
    ConditionalTactic,
    ReasoningBank,
    ReasoningMemory,
    ReuseBuffer,
    ReuseStateRecord,
)
from muniment.core.canonical import short_id
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.requests import Request, checked, one_of
from muniment.core.scope import BANK_PREFIX, bank_level
from muniment.errors import InvalidInput, NotFound
from muniment.learning.banks import find_memory
from muniment.learning.records import STORES, MemoryKind, Store
from muniment.learning.uses import with_counts

if TYPE_CHECKING:
    from datetime import datetime

    from muniment.contracts.learning import MemoryActionPlan, MemoryActionRecord, ReuseSelectMeta
    from muniment.contracts.rules import DistillDraft, FlowMapSnapshot
    from muniment.contracts.runs import EventLog
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.policy import FlowEstimatorKind
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.learning._lesson_writing import LessonReport
    from muniment.learning._operations import Applied
    from muniment.learning.lesson_adding import AddedLesson
    from muniment.learning.lessons import LessonBank
    from muniment.learning.plans import PlanState
    from muniment.learning.puct import PuctTerms
    from muniment.learning.records import IntentParts, Lesson, LessonDecision, LessonStage, LessonStory, StoredMemory
    from muniment.store.context import Context

__all__ = ["Bank"]

T = TypeVar("T")

_PUCT_NAME = "puct_{q}_{p}_v1"
_LIVE = ("active", "pinned", "temporary")


class BankQuery(Request):
    """The arguments of a bank's methods; each call names the part it checks."""

    store: Annotated[str | None, one_of(get_args(Store), "{given!r:.40} is not a store")] = None


class Bank:
    """The learned memory of a user, an agent or a tenant. Thread-safe."""

    def __init__(self, ctx: Context, scope: Scope, owner: str) -> None:
        self._ctx = ctx
        self._scope = scope
        self._owner = owner

    def __repr__(self) -> str:
        return f"<Bank {self.name} of {self._scope.tenant_id}>"

    @property
    def name(self) -> str:
        """The bank's owner: `user:ana`, `agent:solver`, `tenant`."""
        return self._owner.removeprefix(BANK_PREFIX)

    # -- reading --------------------------------------------------------------------------------------

    def records(
        self,
        store: Store | None = None,
        *,
        kind: MemoryKind | None = None,
        include_all: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[StoredMemory]:
        """The learned records, oldest first; with `include_all`, retired and pruned ones too."""
        from muniment.core.listing import list_query, read_listing
        from muniment.learning.lessons import page_memories

        kinds = kinds_asked(store, kind)

        def read(asked: ListQuery) -> Iterator[Placed[StoredMemory]]:
            return page_memories(self._ctx, self._scope.tenant_id, self._owner, kinds, asked, include_all=include_all)

        return read_listing("records", (str, str), read, list_query(limit=limit), cursor)

    def get(self, memory_id: str) -> StoredMemory:
        """A record of this bank, in any status."""
        found = None
        if isinstance(memory_id, str):
            found = self._ctx.engine.read(self._scope.tenant_id, lambda reader: self._find(reader, memory_id))
        if found is None:
            raise NotFound(f"no learned record {memory_id!r:.80} in this bank", path="$.memory_id")
        return found

    def _find(self, reader: Reader, memory_id: str) -> StoredMemory | None:
        held = find_memory(reader, (self._owner,), memory_id)
        return None if held is None else with_counts(reader, self._owner, [held.memory], self._uses_max)[0]

    @property
    def _uses_max(self) -> int:
        return self._ctx.policy.learn.lessons.uses_max

    def reasoning_bank(self) -> ReasoningBank:
        """The bank's episodes and tactics as a contract document."""
        items = [ReasoningMemory.from_wire(memory.record) for memory in self.records(kind="reasoning")]
        policy = self._ctx.policy.learn
        return ReasoningBank(
            schema_version=RULECRAFT_VERSION,
            bank_id=self._id("bank"),
            policy=policy.policy_id,
            max_items=policy.eviction.reasoning_max,
            items=tuple(items),
        )

    def reuse_buffer(self) -> ReuseBuffer:
        """Seeds and tactics as a contract document."""
        seeds = [ReuseStateRecord.from_wire(memory.record) for memory in self.records(kind="seed")]
        tactics = [ConditionalTactic.from_wire(memory.record) for memory in self.records(kind="tactic")]
        policy = self._ctx.policy.learn
        plain = {
            "schema_version": RULECRAFT_VERSION,
            "buffer_id": self._id("buf"),
            "policy_id": policy.policy_id,
            "max_size": policy.eviction.seeds_max + policy.eviction.tactics_max,
            "eviction": policy.eviction.method,
            "seed_entries": [seed.to_wire() for seed in seeds],
            "tactic_entries": [tactic.to_wire() for tactic in tactics],
            "stats": {"seed_size": len(seeds), "tactic_size": len(tactics)},
        }
        return ReuseBuffer.from_wire(plain)

    def _id(self, prefix: str) -> str:
        return short_id(prefix, [self._scope.tenant_id, self._owner])

    def event_logs(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[EventLog]:
        """The logs of the runs learned from, newest first."""
        from muniment.contracts.runs import EventLog

        return self._bodies("event_log", lambda body: EventLog.from_wire(body["event_log"]), "desc", limit, cursor)

    def _bodies(
        self, kind: str, made: Callable[[dict[str, Any]], T], order: str, limit: int | None, cursor: str | None
    ) -> Listing[T]:
        from muniment.core.listing import Placed, list_query, read_listing
        from muniment.learning.lessons import page_bodies

        def read(asked: ListQuery) -> Iterator[Placed[T]]:
            for each in page_bodies(self._ctx, self._scope.tenant_id, self._owner, kind, asked):
                yield Placed(each.place, None if each.value is None else made(each.value))

        return read_listing(f"{kind}s", (str, str), read, list_query(order=order, limit=limit), cursor)

    def flow_map(
        self,
        *,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        bucket_key: str | None = None,
        estimator: FlowEstimatorKind | None = None,
    ) -> FlowMapSnapshot:
        """Where logged runs in a window go wrong, and what interventions gain.

        For one bucket, or all. Logs are streamed, so memory use does not grow with their number.
        """
        from muniment.rules.flow_map import flow_map

        return flow_map(
            self._ctx,
            self._scope.tenant_id,
            self._owner,
            since=since,
            until=until,
            bucket_key=bucket_key,
            estimator=estimator,
        )

    def drafts(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[DistillDraft]:
        """The rules drafted by folds, oldest first. A draft has no effect until it passes its tests."""
        from muniment.contracts.rules import DistillDraft

        return self._bodies("draft", lambda body: DistillDraft.from_wire(body["draft"]), "asc", limit, cursor)

    # -- lessons --------------------------------------------------------------------------------------

    def lessons(
        self,
        *,
        stage: LessonStage | None = None,
        order: Literal["asc", "desc"] = "asc",
        since: Any = None,
        until: Any = None,
        q: str | None = None,
        around: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Lesson]:
        """The lessons of one stage, or all but the retired ones, with their effects, oldest or newest first (`desc`).

        `q` matches words of the text, the condition or the id; `since` and `until` bound when it was learned; `around`
        is a lesson's id.
        """
        from muniment.core.listing import list_query, read_listing
        from muniment.learning.lessons import page_lessons

        def read(asked: ListQuery) -> Iterator[Placed[Lesson]]:
            return page_lessons(self._lessons, stage, asked)

        asked = list_query(order=order, since=since, until=until, q=q, around=around, limit=limit)
        return read_listing("lessons", (str, str), read, asked, cursor)

    def lesson(self, lesson_id: str) -> LessonStory:
        """A lesson's history: every change with its reason, its source runs, and the runs with and without it."""
        from muniment.learning.lessons import get_lesson

        return get_lesson(self._lessons, lesson_id)

    def sign_lesson(self, lesson_id: str, *, signed_by: str) -> LessonDecision:
        """Sign a lesson: it becomes active and stays active, and is still measured. `undo` reverts the plan.

        A lesson that is kept only as a rule is promoted, once its rulebook has enough evidence.
        """
        from muniment.handles.bank_lessons import sign_lesson

        return sign_lesson(self._ctx, self._scope, self._owner, lesson_id, signed_by=signed_by)

    def drop_lesson(self, lesson_id: str, *, reason: str, signed_by: str | None = None) -> LessonDecision:
        """Withdraw a lesson from all runs. `undo` reverts the plan; `rollback` restores a rule retired with it."""
        from muniment.handles.bank_lessons import drop_lesson

        return drop_lesson(self._ctx, self._scope, self._owner, lesson_id, reason=reason, signed_by=signed_by)

    @property
    def _lessons(self) -> LessonBank:
        from muniment.handles.bank_lessons import lesson_bank

        return lesson_bank(self._ctx, self._scope.tenant_id, self._owner)

    # -- hand-written lessons -------------------------------------------------------------------------

    def add_lesson(
        self,
        text: str,
        *,
        evidence: Iterable[str] = (),
        when: str | None = None,
        intent: IntentParts | Mapping[str, Any] | None = None,
        bucket_key: str | None = None,
    ) -> AddedLesson:
        """Add a hand-written lesson: a sentence, the events or runs that show it, and when it applies, in words or as a
        predicate. It is tried like any other lesson; adding it twice has no further effect.

        Names in the text must occur in its evidence; without evidence, its trial alone decides. It is kept for
        `intent`, or else for the kind of work of the runs it cites. An invalid lesson raises `LessonRefused`.
        """
        from muniment.learning.lesson_adding import add_lesson

        place = self._ctx, self._scope, self._owner
        return add_lesson(*place, text, evidence=evidence, when=when, intent=intent, bucket_key=bucket_key)

    def lesson_reports(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[LessonReport]:
        """A model's reports on runs, newest first: what it proposed, what was refused and why, and what was
        accepted.
        """
        from muniment.learning._lesson_writing import LessonReport

        return self._bodies("lesson_report", lambda body: LessonReport.from_wire(body["report"]), "desc", limit, cursor)

    # -- changing -------------------------------------------------------------------------------------

    def plan(
        self, plan: MemoryActionPlan | Mapping[str, Any] | Iterable[Any], *, payloads: Mapping[str, Any] | None = None
    ) -> MemoryActionPlan:
        """Store a plan without applying it. An action may carry its own `payload`."""
        from muniment.learning.plans import make_plan

        return make_plan(self._ctx, self._scope, bank_level(self._owner), plan, payloads)

    def apply(self, plan_id: str, *, dry_run: bool = False) -> Applied:
        """Apply a plan, all of it or nothing; every action leaves a record. Applying twice has no further effect."""
        from muniment.learning.plans import apply_plan
        from muniment.learning.tidying import bank_length, tidy_sometimes

        tenant_id = self._scope.tenant_id
        since = bank_length(self._ctx, tenant_id, self._owner)
        applied = apply_plan(self._ctx, tenant_id, (self._owner,), plan_id, dry_run=dry_run)
        tidy_sometimes(self._ctx, tenant_id, self._owner, since=since)
        return applied

    def undo(self, plan_id: str) -> tuple[MemoryActionRecord, ...]:
        """Revert an applied plan, unless a record it touched has changed since."""
        from muniment.learning.plans import undo

        return undo(self._ctx, self._scope.tenant_id, (self._owner,), plan_id)

    def plans(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[PlanState]:
        """The plans of this bank with their records, oldest first."""
        from muniment.core.listing import list_query, read_listing
        from muniment.learning.lessons import page_plans

        def read(asked: ListQuery) -> Iterator[Placed[PlanState]]:
            return page_plans(self._ctx, self._scope.tenant_id, self._owner, asked)

        return read_listing("plans", (str, str), read, list_query(limit=limit), cursor)

    def get_plan(self, plan_id: str) -> PlanState:
        """A plan of this bank with its current state and the records of its actions."""
        from muniment.learning.plans import get_plan

        return get_plan(self._ctx, self._scope.tenant_id, (self._owner,), plan_id)

    def tidy(self) -> tuple[MemoryActionRecord, ...]:
        """Retire expired records and those over their store's limit, in a separate plan; returns its records."""
        from muniment.learning.tidying import tidy

        return tidy(self._ctx, self._scope.tenant_id, self._owner)

    # -- reuse ----------------------------------------------------------------------------------------

    def select_seed(
        self, *, bucket_key: str | None = None, tags: Sequence[str] = ()
    ) -> tuple[ReuseSelectMeta, tuple[PuctTerms, ...]]:
        """Select the seed to start from by PUCT, within a bucket or all, with every term of every seed."""
        from muniment.learning.keys import has_expired
        from muniment.learning.puct import SeedState, select_seed
        from muniment.learning.recalling import bucket_given
        from muniment.memory.patches import texts_of

        bucket_key, tags = bucket_given(bucket_key), texts_of(tags, "$.tags")
        now, policy = self._ctx.now(), self._ctx.policy.learn.puct
        seeds = [
            SeedState(ReuseStateRecord.from_wire(memory.record), _rewards(memory), memory.with_tally.n)
            for memory in self.records(kind="seed")
            if not has_expired(memory, now) and _fits(memory, bucket_key, tags)
        ]
        return select_seed(seeds, policy, _PUCT_NAME.format(q=policy.q_method, p=policy.p_method))


def kinds_asked(store: Any, kind: Any) -> list[MemoryKind]:
    """The requested record kinds, checked."""
    checked(BankQuery, store=store)
    wanted = [each for stored, kinds in STORES.items() if store in (None, stored) for each in kinds]
    if kind is not None and kind not in wanted:
        raise InvalidInput(f"{kind!r:.40} is not a kind of it", path="$.kind", hint=f"one of {', '.join(wanted)}")
    return wanted if kind is None else [kind]


def _fits(memory: StoredMemory, bucket_key: str | None, tags: Sequence[str]) -> bool:
    """True if the seed fits this bucket (one without a bucket fits all) and has all these tags."""
    held = memory.record.get("tags")
    own = {each for each in held if isinstance(each, str)} if isinstance(held, list) else set()
    return (bucket_key is None or memory.record.get("bucket_key") in (None, bucket_key)) and set(tags) <= own


def _rewards(memory: StoredMemory) -> tuple[float, ...]:
    """The rewards of the runs started from the seed; a pass counts 1."""
    tally = memory.with_tally
    return (1.0,) * tally.passes + (0.0,) * (tally.n - tally.passes)
