"""RECALL over the banks a run may see: gather by text and intent, weigh, cut to a prompt, record (RC-08, RC-09)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from muniment.contracts.learning import MemoryRecallRequest, MemoryRecallResponse
from muniment.core.canonical import canonical_bytes
from muniment.core.listing import ListQuery
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES, ITEMS
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import bank_owner, owners_seen
from muniment.core.text.analyzer import analyze
from muniment.errors import Conflict, InvalidInput, InvalidRecord, TooLarge
from muniment.learning._episodes import did_words
from muniment.learning._hints import (
    BELOW_FLOOR,
    Dropped,
    Injection,
    Recallable,
    RecallQuestion,
    choose,
    hand_out,
    weigh,
)
from muniment.learning._lesson_words import EVENTS_MAX
from muniment.learning._trials import fits_any_run, is_lesson, stage_of
from muniment.learning.banks import (
    find_memory,
    list_memories,
    list_unbound,
    memory_of,
    newest_versions,
    searchable_text,
    store_of,
)
from muniment.learning.event_logs import steps_of
from muniment.learning.keys import clashes, intent_key, state_key
from muniment.learning.projection import core_name
from muniment.learning.records import IntentParts, LessonArm, LessonUse, RunLessons, StateParts, Store
from muniment.learning.uses import counted, uses_of
from muniment.memory.patches import Decided, draft_patch, write_patches
from muniment.memory.query import QUERY_CHARS_MAX
from muniment.memory.search import check_search, find_turns
from muniment.store.items import latest, latest_of_run, lock_shared, newest_items
from muniment.store.ledger import INSTRUCTION_LIKE, MEMORY_RECALLED
from muniment.store.reading import list_entries

if TYPE_CHECKING:
    from muniment.contracts.learning import MemoryHint
    from muniment.core.policy import LearnPolicy
    from muniment.core.ports.engine import Condition, Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.learning.records import MemoryKind, StepFacts, StoredMemory
    from muniment.memory.patches import Writer
    from muniment.store.context import Context

__all__ = [
    "METHOD",
    "Recall",
    "arms_told",
    "bucket_given",
    "bucket_named",
    "check_small",
    "features_given",
    "features_of",
    "intent_given",
    "last_asked",
    "latest_recall",
    "note_used",
    "recall",
    "run_lessons",
    "state_given",
]

METHOD = "intent_state_recall_v1"
_TRIES = 3
_FEATURES_MAX = 64
_GIVEN_BYTES_MAX = 8 * 1024
_ENTRIES_READ_MAX = 80
"""The number of a run's newest entries read for its steps."""
RECALLED: tuple[Store, ...] = ("ReasoningBank", "Rulebook", "ReuseBuffer")
"""The default stores of a recall; a trace capsule has no text, and is found by intent on request."""
_TEXT_KINDS: dict[str, tuple[MemoryKind, ...]] = {
    "ReasoningBank": ("reasoning",),
    "Rulebook": ("rule",),
    "ReuseBuffer": ("tactic",),  # seeds are never recalled
    "TraceCapsule": ("trace_capsule",),
}
_ALONE = (
    dict.fromkeys(
        ("before_1", "before_2", "after_1", "after_2", "kinds_before", "kinds_after", "session_date", "dense_window"),
        0.0,
    )
    | dict.fromkeys(("speaker", "role", "question", "question_only", "stretch"), 0.0)
    | {"newest": 1}
)
"""A bank is not a conversation: its records are independent, have no speaker, and do not supersede each other."""


@dataclass(frozen=True, slots=True)
class Recall:
    """The result of a recall."""

    request: MemoryRecallRequest
    response: MemoryRecallResponse
    injection: Injection
    dropped: tuple[Dropped, ...]
    """Candidates that did not fit, with reasons."""
    told_ids: tuple[str, ...] = ()
    """The records behind the hints: their own, those with the same text, and failures mentioned with them."""
    arms: tuple[LessonArm, ...] = ()
    """For each lesson that would be in the prompt, the arm drawn for this run; empty for a preview."""

    @property
    def held_out(self) -> tuple[str, ...]:
        """Lessons that fit and were left out, so that runs with and without them can be compared."""
        return tuple(arm.memory_id for arm in self.arms if arm.arm == "held_out")

    @property
    def hints(self) -> tuple[MemoryHint, ...]:
        return self.response.items

    @property
    def text(self) -> str:
        """The text for the prompt: lines within the injection budget."""
        return self.injection.text


# -- arguments ----------------------------------------------------------------------------------------


def intent_given(given: Any) -> IntentParts:
    return cast("IntentParts", _parts(given, IntentParts, "$.intent"))


def state_given(given: Any) -> StateParts:
    return cast("StateParts", _parts(given, StateParts, "$.state"))


def _parts(given: Any, kind: type[IntentParts] | type[StateParts], path: str) -> IntentParts | StateParts:
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput("wanted an object of parts", path=path, hint=f"of {', '.join(kind.model_fields)}")
    plain = {key: sorted(value) if isinstance(value, set | frozenset) else value for key, value in given.items()}
    check_small(plain, path)
    hint = f"parts are {', '.join(kind.model_fields)}"
    return kind.of_given(plain, "not valid parts of a key", path=path, hint=hint)


def features_given(given: Any) -> dict[str, Any]:
    """The caller's features of a run, by name: texts, numbers, booleans."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidInput("features is an object of names and values", path="$.features")
    if len(given) > _FEATURES_MAX:
        raise InvalidInput(f"more than {_FEATURES_MAX} features", path="$.features")
    for key, value in given.items():
        if not isinstance(value, str | int | float | bool):
            raise InvalidInput("a feature is text, a number or a boolean", path=f"$.features.{key:.80}")
    check_small(dict(given), "$.features")
    return dict(given)


def bucket_given(given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise InvalidInput("a bucket key is text", path="$.bucket_key", hint="I1|general|clarity_high")
    check_small(given, "$.bucket_key")
    return given


def bucket_named(given: Any) -> str | None:
    """A valid bucket key, or None."""
    bucket = bucket_given(given)
    if bucket is not None:
        from muniment.verify.results import parse_bucket_key

        parse_bucket_key(bucket)
    return bucket


def check_small(plain: Any, path: str) -> None:
    """Check that it is JSON, and small enough for a key, feature or setting."""
    try:
        size = len(canonical_bytes(plain))
    except InvalidInput as error:
        raise InvalidInput(error.message, path=f"{path}{(error.path or '$')[1:]}") from None
    if size > _GIVEN_BYTES_MAX:
        raise TooLarge(f"{size} bytes are over the limit of {_GIVEN_BYTES_MAX}", path=path, hint="say it shortly")


def _stores(given: Any) -> tuple[Store, ...]:
    if given is None:
        return RECALLED
    known = get_args(Store)
    named = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for index, name in enumerate(named):
        if name not in known:
            raise InvalidInput(
                f"{name!r:.40} is not a store", path=f"$.sources[{index}]", hint=f"one of {', '.join(known)}"
            )
    return tuple(dict.fromkeys(cast("list[Store]", named)))


def features_of(
    intent: IntentParts, state: StateParts, bucket_key: str | None, own: Mapping[str, Any]
) -> dict[str, Any]:
    """The features that predicates may use before a run acts."""
    from muniment.verify.results import parse_bucket_key

    features: dict[str, Any] = {**intent.to_wire(), **state.to_wire()}
    if state.mode is not None:
        features["run"] = {"mode": state.mode}
    if bucket_key is not None:
        features["bucket_key"] = bucket_key
        try:
            bucket = parse_bucket_key(bucket_key)
            features |= {"impact_level": bucket.impact, "user_clarity": bucket.clarity}
        except InvalidInput:
            pass
    return features | {"x_features": dict(own), "tags": [key for key, value in own.items() if value is True]}


# -- recalling ----------------------------------------------------------------------------------------


def recall(
    writer: Writer,
    query: Any,
    *,
    intent: Any,
    state: Any,
    bucket_key: str | None,
    features: Any,
    sources: Any,
    top_k: Any,
    now: Any,
    keep: bool,
) -> Recall:
    """Query the banks; with `keep`, record the request and the result in the run."""
    ctx, scope = writer.ctx, writer.scope
    most = ctx.policy.learn.top_k if top_k is None else top_k
    query, most, moment = check_search(ctx, query, most, now)
    intended, standing = intent_given(intent), state_given(state)
    stores = _stores(sources)
    own, bucket_key = features_given(features), bucket_given(bucket_key)
    keys = (
        None if intent is None else intent_key(intended),
        None if state is None else state_key(standing),
    )
    steps = _steps_so_far(ctx, scope)
    known = features_of(intended, standing, bucket_key, own)
    asked = RecallQuestion(moment, bucket_key, keys[0], keys[1], known, "; ".join(did_words(steps)))
    for _ in range(_TRIES):
        recalled = _ask(ctx, scope, query, asked, stores, most, own, is_look=not keep)
        if not keep or _tell(writer, recalled):
            return recalled
    raise Conflict("what was recalled is being forgotten", hint="recall again")


def last_asked(ctx: Context, scope: Scope) -> str:
    """The last message of a run's user; empty if there is none."""
    asked = ListQuery(descending=True, limit=_ENTRIES_READ_MAX)
    for entry in list_entries(ctx, scope.tenant_id, scope.user_id, scope.session_id, scope.run_id, asked):
        if entry.body is not None and entry.kind == "message" and entry.role == "user":
            return (entry.content or "")[:QUERY_CHARS_MAX]
    return ""


def _steps_so_far(ctx: Context, scope: Scope) -> tuple[StepFacts, ...]:
    """The steps of a run so far, from its newest entries: similar runs are found by them as well as by the task."""
    asked = ListQuery(descending=True, limit=_ENTRIES_READ_MAX)
    newest = list(list_entries(ctx, scope.tenant_id, scope.user_id, scope.session_id, scope.run_id, asked))[::-1]
    return steps_of([entry for entry in newest if entry.body is not None])


def _ask(
    ctx: Context,
    scope: Scope,
    query: str,
    asked: RecallQuestion,
    stores: tuple[Store, ...],
    most: int,
    own: Mapping[str, Any],
    *,
    is_look: bool,
) -> Recall:
    policy = ctx.policy.learn
    found, waiting = ctx.engine.read(
        scope.tenant_id,
        lambda reader: _with_uses(reader, scope, gather(ctx, reader, scope, query, asked, stores), policy, asked),
    )
    run_id = None if is_look else scope.run_id
    weighed, dropped = weigh(found, asked, policy)
    chosen, left = choose(weighed)
    injection, arms, told_ids = hand_out(chosen, most, run_id, policy, ctx.counter.count)
    dropped += left
    cited = ctx.engine.read(scope.tenant_id, lambda reader: _with_evidence(reader, scope, injection.hints))
    injection = injection._replace(hints=tuple(cited))
    note = _nothing_fits(found, dropped) if not told_ids else None
    request = MemoryRecallRequest.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "request_id": ctx.ids.new("rec"),
            "query": query,
            "bucket_key": asked.bucket_key,
            "intent_key": asked.intent_key,
            "state_key": asked.state_key,
            "sources": list(stores),
            "top_k": most,
            "filters": {"features": dict(own)} if own else None,
        }
    )
    response = MemoryRecallResponse.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "request_id": request.request_id,
            "items": [hint.to_wire() for hint in injection.hints],
            "method": METHOD,
            "fallback_used": asked.is_fallback,
        }
        | ({} if note is None else {"note": note})
    )
    return Recall(request, response, injection, (*dropped, *waiting), told_ids, arms)


def _with_uses(
    reader: Reader, scope: Scope, found: Sequence[Recallable], policy: LearnPolicy, asked: RecallQuestion
) -> tuple[list[Recallable], list[Dropped]]:
    """Add the counted outcomes to the candidates; separates lessons that wait for their trial, which reach no prompt.

    Candidates for an incompatible intent are not counted, as they are dropped anyway.
    """
    waiting = {each.memory.id for each in found if is_lesson(each.memory) and stage_of(each.memory) == "candidate"}
    kept = [each for each in found if each.memory.id not in waiting]
    uses: dict[str, tuple[LessonUse, ...]] = {}
    for level in {each.memory.level for each in kept}:
        mine = [
            each.memory
            for each in kept
            if each.memory.level == level and not clashes(asked.intent_key, each.memory.record.get("intent_key"))
        ]
        uses |= uses_of(reader, bank_owner(scope, level), mine, policy.lessons.uses_max)
    standing = [each._replace(memory=counted(each.memory, uses.get(each.memory.id, ()))) for each in kept]
    return standing, [Dropped(each.memory.id, "candidate") for each in found if each.memory.id in waiting]


def _nothing_fits(found: Sequence[Recallable], dropped: Sequence[Dropped]) -> str:
    """Explain an empty recall."""
    far = sum(each.reason == BELOW_FLOOR for each in dropped)
    if not found:
        return "nothing kept has to do with this task"
    return f"nothing kept fits this task: {len(found)} looked at, {far} too unlike it, {len(found) - far} unfit"


def gather(
    ctx: Context, reader: Reader, scope: Scope, query: str, asked: RecallQuestion, stores: tuple[Store, ...]
) -> list[Recallable]:
    """Distinct candidates: those similar to the query, those a person wrote for any work, and those with the same
    intent, newest first.

    Search results with a clashing intent are not looked up, as they will be dropped.
    """
    kinds = {kind for store in stores for kind in _TEXT_KINDS[store]}
    found: dict[str, Recallable] = {}
    clashing: dict[str, Recallable] = {}
    most = ctx.policy.learn.gather_max
    name = core_name(asked.intent_key)
    for owner in owners_seen(scope):
        worded = _by_words(ctx, reader, scope.tenant_id, owner, _searched(query, asked.did), asked.now, most)
        newest = newest_versions(reader, {each.memory.id: each.memory.version for each in worded})
        for memory, entry_id, similarity, chance in worded:
            if memory.kind not in kinds:
                continue
            if clashes(asked.intent_key, memory.record.get("intent_key")):
                clashing[memory.id] = Recallable(memory, store_of(memory.kind), similarity, chance)
                continue
            standing = memory if newest.get(memory.id) == memory.version else _standing(reader, owner, memory, entry_id)
            if standing is not None:
                found.setdefault(standing.id, Recallable(standing, store_of(standing.kind), similarity, chance))
        if "tactic" in kinds:
            alike = _runs_alike(found.values())
            for held in list_unbound(reader, owner, "tactic", most, without=found.keys()):
                likest = [alike[run] for run in held.memory.sources if run in alike]
                similarity, chance = max(likest, default=(0.0, 0.0))
                if likest or fits_any_run(held.memory):
                    found[held.memory.id] = Recallable(held.memory, store_of("tactic"), similarity, chance)
        if name is None:
            continue
        for kind in sorted(kinds):
            for held in list_memories(reader, owner, kind, name=name, newest=most, without=found.keys()):
                found[held.memory.id] = Recallable(held.memory, store_of(kind), 0.0, 0.0)
    return [*found.values(), *(each for id_, each in clashing.items() if id_ not in found)]


def _runs_alike(found: Iterable[Recallable]) -> dict[str, tuple[float, float]]:
    """The similarity of the runs found to the task, by run: a lesson without a kind of work is as similar as its source
    runs.
    """
    episodes = [each for each in found if each.memory.kind == "reasoning"]
    return {run: (each.similarity, each.chance) for each in episodes for run in each.memory.sources}


def _standing(reader: Reader, owner: str, worded: StoredMemory, entry_id: str) -> StoredMemory | None:
    """The current record; None if its text has changed, or it is gone."""
    held = find_memory(reader, (owner,), worded.id)
    return held.memory if held is not None and held.text_entry == entry_id else None


class _Worded(NamedTuple):
    """A search result in a bank: the record as then worded, the entry, and its similarity to the query."""

    memory: StoredMemory
    entry_id: str
    similarity: float
    """Its score relative to the best."""
    chance: float
    """That ratio times the probability that the bank has anything relevant; or half its coverage of the query."""


def _searched(query: str, did: str) -> str:
    """The words of the task, and of the run so far."""
    return f"{query}\n{did}"[:QUERY_CHARS_MAX] if did else query


def _by_words(
    ctx: Context, reader: Reader, tenant_id: str, owner: str, query: str, now: str, most: int
) -> list[_Worded]:
    """Search results of a bank, best first."""
    if not query.strip():
        return []
    turns = find_turns(ctx, reader, tenant_id, owner, query, most, now, ctx.policy.recall.model_copy(update=_ALONE))
    best = max((each.ranked.score for each in turns), default=0.0)
    likely = max((each.ranked.chance for each in turns), default=0.0)
    shares = [(each.turn, max(0.0, each.ranked.score / best)) for each in turns if best > 0]
    wanted = frozenset(analyze(query)) if likely < ctx.policy.learn.fit_min else frozenset()
    return [
        _Worded(memory, turn.id, share, max(likely * share, _covered(wanted, memory) / 2))
        for turn, share in shares
        if isinstance(kept := turn.metadata.get("memory"), dict) and (memory := memory_of(kept))
    ]


def _covered(wanted: frozenset[str], memory: StoredMemory) -> float:
    """The share of the query that a record covers. If every run had the same request, its words do not discriminate, so
    no record is likely; yet all fit.
    """
    return len(wanted.intersection(analyze(searchable_text(memory)))) / len(wanted) if wanted else 0.0


# -- results ------------------------------------------------------------------------------------------


def _tell(writer: Writer, recalled: Recall) -> bool:
    """Write a recall into the run; returns False if part of it was forgotten meanwhile."""
    request, response, injection = recalled.request, recalled.response, recalled.injection
    said = {
        "id": request.request_id,
        "request": request.to_wire(),
        "response": response.to_wire(),
        "injected": {
            "text": injection.text,
            "tokens": injection.tokens,
            "overflow": [dict(each) for each in injection.overflow],
        },
        "used_ids": list(injection.used_ids),
        "arms": [arm.to_wire() for arm in recalled.arms],
        "sources": list(recalled.told_ids),
    }

    owners = owners_seen(writer.scope)
    still_stands: list[bool] = []

    def decide(tx: Transaction) -> Decided:
        held = [find_memory(tx, owners, id_) for id_ in recalled.told_ids]
        if any(each is not None and each.memory.level != "user" for each in held):
            lock_shared(tx)
            held = [find_memory(tx, owners, id_) for id_ in recalled.told_ids]
        still_stands.append(None not in held)
        shared = [each.memory.id for each in held if each is not None and each.memory.level != "user"]
        told = said | {"shared_sources": shared}
        return Decided([draft_patch(MEMORY_RECALLED, "assistant", told)] if still_stands[-1] else [])

    write_patches(writer, decide, lambda _reader: None)
    return still_stands[-1]


def note_used(writer: Writer, request_id: str, used: Iterable[str]) -> None:
    """Record which memories of a recall the agent reports as used. Without such a report, all injected ones count as
    used.
    """
    wanted = list(dict.fromkeys(used))

    def decide(tx: Transaction) -> Decided:
        held = latest_recall(tx, writer.scope)
        if held is None or held["request"]["request_id"] != request_id:
            raise InvalidInput("this run has no such recall", path="$.request_id")
        known = {hint["memory_id"] for hint in held["response"]["items"]}
        wrong = [each for each in wanted if each not in known]
        if wrong:
            raise InvalidInput(f"{wrong[0]!r:.60} was not recalled", path="$.used")
        return Decided([draft_patch(MEMORY_RECALLED, "assistant", {"id": request_id, "used_ids": wanted})])

    write_patches(writer, decide, lambda _reader: None)


# -- evidence -----------------------------------------------------------------------------------------
# Every line of a prompt is cited. A lesson that names events is cited by these, all others by their source runs: of
# each the last tool answer, or a message if no tool was called. Passing and failing runs alternate. Only events of the
# requesting user are named, none forgotten, none worded like instructions.


_LOOKED_AT = 4
"""The number of a run's newest answers checked for one that may be cited."""
_KINDS = ("tool_result", "step", "message")
"""Kinds of evidence for a run, best first."""


class _Log(NamedTuple):
    id: str
    run_id: str | None
    status: str
    created_at: str
    receipt_id: str | None


class _Event(NamedTuple):
    id: str
    flags: str
    receipt_id: str | None


def _with_evidence(reader: Reader, scope: Scope, hints: Sequence[MemoryHint]) -> list[MemoryHint]:
    """The hints; those in the prompt with the events that support them."""
    bare = [hint for hint in hints if _injected(hint) and not (hint.model_extra or {}).get("evidence_ids")]
    logs = _logs(reader, [trace for hint in bare for trace in hint.trace_ids or ()])
    events: dict[str, str | None] = {}
    found = []
    for hint in hints:
        cited = list(_cited(reader, scope, hint, logs, events)) if hint in bare else []
        found.append(type(hint).from_wire(hint.to_wire() | {"evidence_ids": cited}) if cited else hint)
    return found


def _injected(hint: MemoryHint) -> bool:
    return (hint.model_extra or {}).get("injected") is True


def _logs(reader: Reader, traces: Sequence[str]) -> dict[str, _Log]:
    if not traces:
        return {}
    where: tuple[Condition, ...] = (("id", "in", tuple(dict.fromkeys(traces))), ("kind", "=", "event_log"))
    rows = select(reader, ITEMS, where, into=_Log, order=("id", "version"))
    return {row.id: row for row in rows if row.receipt_id is None}


def _cited(
    reader: Reader, scope: Scope, hint: MemoryHint, logs: dict[str, _Log], events: dict[str, str | None]
) -> Iterable[str]:
    """One event of each run, up to a maximum number of runs."""
    known = [logs[trace] for trace in hint.trace_ids or () if trace in logs]
    sides = ([log for log in known if (log.status == "passed") is passed] for passed in (True, False))
    named = 0
    for log in (log for pair in zip_longest(*sides) for log in pair if log is not None and log.run_id is not None):
        run_id = str(log.run_id)
        if run_id not in events:
            events[run_id] = _event_of(reader, scope.user_id, run_id)
        if (event := events[run_id]) is not None:
            yield event
            named += 1
        if named == EVENTS_MAX:
            return


def _event_of(reader: Reader, user_id: str, run_id: str) -> str | None:
    for kind in _KINDS:
        where: tuple[Condition, ...] = (("run_id", "=", run_id), ("user_id", "=", user_id), ("kind", "=", kind))
        rows = select(reader, ENTRIES, where, into=_Event, order=("seq", "id"), descending=True, limit=_LOOKED_AT)
        for row in rows:
            if row.receipt_id is None and INSTRUCTION_LIKE not in row.flags.split(","):
                return row.id
    return None


# -- reading a recall back ----------------------------------------------------------------------------


def latest_recall(reader: Reader, scope: Scope) -> dict[str, Any] | None:
    item = latest_of_run(reader, "recall", scope.user_id, scope.run_id)
    return None if item is None else item.plain()


def arms_told(told: Mapping[str, Any] | None) -> tuple[LessonArm, ...]:
    """The arms drawn by a recall. Invalid ones are skipped, as imported entries are untrusted."""
    said = (told or {}).get("arms")
    found = (_arm(each) for each in said) if isinstance(said, list) else ()
    return tuple(arm for arm in found if arm is not None)


def _arm(said: Any) -> LessonArm | None:
    try:
        return LessonArm.from_wire(said)
    except InvalidRecord:
        return None


def run_lessons(reader: Reader, scope: Scope) -> RunLessons:
    """The lessons a run had, those held out, and those learned from it. They may no longer exist."""
    told = latest_recall(reader, scope) or {}
    arms = arms_told(told)
    return RunLessons(
        had=tuple(arm.memory_id for arm in arms if arm.arm == "had") if "arms" in told else _had_before(told),
        held_out=tuple(arm.memory_id for arm in arms if arm.arm == "held_out"),
        made=tuple(_made(reader, scope)),
    )


def _had_before(told: dict[str, Any]) -> tuple[str, ...]:
    """For recalls that drew no arms: everything injected."""
    hints = told.get("response", {}).get("items", ())
    return tuple(hint["memory_id"] for hint in hints if hint.get("source") == "ReuseBuffer" and hint.get("injected"))


def _made(reader: Reader, scope: Scope) -> list[str]:
    """The tactics first written by the plan of the run's fold."""
    owners = owners_seen(scope)
    where: tuple[Condition, ...] = (("kind", "=", "event_log"), ("run_id", "=", scope.run_id))
    found: list[str] = []
    for log in newest_items(reader, where):
        fold = log.plain()["event_log"].get("memory_fold") or {}
        plan = latest(reader, fold.get("action_plan_id") or "") if log.user_id in owners else None
        if plan is None or plan.kind != "plan" or plan.body is None:
            continue
        for id_, before, _ in plan.plain().get("touched", ()):
            item = latest(reader, id_) if before == 0 else None
            found += [id_] if item is not None and item.kind == "tactic" and item.body is not None else []
    return found
