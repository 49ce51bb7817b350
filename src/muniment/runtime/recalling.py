"""RECALL over the banks a run may see: gathered by words and intent, weighed, cut to a prompt, told (RC-08, RC-09)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

from muniment.errors import InvalidInput, InvalidRecord
from muniment.recall.hints import Asked, Dropped, Injection, Recallable, inject, weigh
from muniment.records.base import RULECRAFT_VERSION, ValidationError, issues_of
from muniment.records.learning import IntentParts, StateParts, Store
from muniment.records.memory import MemoryRecallRequest, MemoryRecallResponse
from muniment.runtime.banks import Held, find_memory, list_memories, store_of
from muniment.runtime.memory_events import MEMORY_RECALLED
from muniment.runtime.patches import Decided, draft_patch, write_patches
from muniment.runtime.project_learning import core_name
from muniment.runtime.recall_reading import latest_recall
from muniment.runtime.searching import check_search, find_turns
from muniment.semantics.banks import owners_seen
from muniment.semantics.keys import intent_key, state_key

if TYPE_CHECKING:
    from muniment.ports.engine import Reader, Transaction
    from muniment.records.learning import MemoryKind
    from muniment.records.memory import MemoryHint
    from muniment.records.scope import Scope
    from muniment.runtime.context import Context
    from muniment.runtime.patches import Desk

__all__ = ["METHOD", "Recall", "features_of", "intent_given", "recall", "state_given", "tell_used"]

METHOD = "intent_state_recall_v1"
RECALLED: tuple[Store, ...] = ("ReasoningBank", "Rulebook", "ReuseBuffer")
"""Where a recall looks unless it is told; a trace capsule holds no words, and is found by its intent when asked for."""
_TEXT_KINDS: dict[str, tuple[MemoryKind, ...]] = {
    "ReasoningBank": ("reasoning",),
    "Rulebook": ("rule",),
    "ReuseBuffer": ("tactic",),  # seeds never come through recall
    "TraceCapsule": ("trace_capsule",),
}


@dataclass(frozen=True, slots=True)
class Recall:
    """What a recall answered."""

    request: MemoryRecallRequest
    response: MemoryRecallResponse
    injection: Injection
    dropped: tuple[Dropped, ...]
    """Candidates that did not fit, and why."""

    @property
    def hints(self) -> tuple[MemoryHint, ...]:
        return self.response.items

    @property
    def text(self) -> str:
        """What goes into the prompt: lines within the injection budget."""
        return self.injection.text


# -- what callers give --------------------------------------------------------------------------------


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
    try:
        return kind.model_validate(plain)
    except ValidationError as error:
        issues = [issue._replace(path=f"{path}{issue.path[1:]}") for issue in issues_of(error, plain)]
        raise InvalidRecord(
            "not valid parts of a key", issues, hint=f"parts are {', '.join(kind.model_fields)}"
        ) from None


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
    """What predicates may be about, before a run acts."""
    from muniment.semantics.buckets import parse_bucket_key

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
    desk: Desk,
    query: Any,
    *,
    intent: Any,
    state: Any,
    bucket_key: str | None,
    features: Any,
    sources: Any,
    top_k: Any,
    now: Any,
) -> Recall:
    """Ask the banks, and write into the run what was asked and what came."""
    ctx, scope = desk.ctx, desk.scope
    policy = ctx.policy.learn
    most = policy.top_k if top_k is None else top_k
    query, moment = check_search(ctx, query, most, now)
    intended, standing = intent_given(intent), state_given(state)
    stores = _stores(sources)
    own = dict(features) if isinstance(features, Mapping) else {}
    keys = (
        None if intent is None else intent_key(intended),
        None if state is None else state_key(standing),
    )
    asked = Asked(moment, bucket_key, keys[0], keys[1], features_of(intended, standing, bucket_key, own))
    found = ctx.engine.read(scope.tenant_id, lambda reader: gather(ctx, reader, scope, query, asked, stores))
    weighed, dropped = weigh(found, asked, policy)
    injection = inject(weighed[:most], policy.injection, ctx.counter.count)
    request = MemoryRecallRequest.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "request_id": ctx.ids.new("rec"),
            "query": query,
            "bucket_key": bucket_key,
            "intent_key": keys[0],
            "state_key": keys[1],
            "sources": list(stores),
            "top_k": most,
            "filters": {"features": own} if own else None,
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
    )
    _tell(desk, request, response, injection)
    return Recall(request, response, injection, tuple(dropped))


def gather(
    ctx: Context, reader: Reader, scope: Scope, query: str, asked: Asked, stores: tuple[Store, ...]
) -> list[Recallable]:
    """Candidates: what reads like the query, and what is of the same intent, newest first; each once."""
    kinds = {kind for store in stores for kind in _TEXT_KINDS[store]}
    found: dict[str, Recallable] = {}
    most = ctx.policy.learn.gather_max
    name = core_name(asked.intent_key)
    for owner in owners_seen(scope):
        for held, similarity in _by_words(ctx, reader, scope.tenant_id, owner, query, asked.now, most):
            if held.memory.kind in kinds:
                found.setdefault(held.memory.id, Recallable(held.memory, store_of(held.memory.kind), similarity))
        if name is None:
            continue
        for kind in sorted(kinds):
            for held in list_memories(reader, owner, kind, name=name, newest=most):
                found.setdefault(held.memory.id, Recallable(held.memory, store_of(kind), 0.0))
    return list(found.values())


def _by_words(
    ctx: Context, reader: Reader, tenant_id: str, owner: str, query: str, now: str, most: int
) -> list[tuple[Held, float]]:
    """Records of a bank that a search finds, their scores as shares of the best; older wordings are passed over."""
    if not query.strip():
        return []
    turns = find_turns(ctx, reader, tenant_id, owner, query, most, now, ctx.policy.recall)
    best = max((each.ranked.score for each in turns), default=0.0)
    found: list[tuple[Held, float]] = []
    for each in turns:
        held = find_memory(reader, (owner,), str(each.turn.entry.metadata.get("id", "")))
        if held is not None and held.text_entry == each.turn.entry.id and best > 0:
            found.append((held, max(0.0, each.ranked.score / best)))
    return found


# -- what is told -------------------------------------------------------------------------------------


def _tell(desk: Desk, request: MemoryRecallRequest, response: MemoryRecallResponse, injection: Injection) -> None:
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
        "sources": [hint.memory_id for hint in injection.hints],
    }

    def decide(_tx: Transaction) -> Decided:
        return Decided([draft_patch(MEMORY_RECALLED, "assistant", said)])

    write_patches(desk, decide, lambda _reader: None)


def tell_used(desk: Desk, request_id: str, used: Iterable[str]) -> None:
    """What of a recall the agent says it really used; without a word, what was injected counts as used."""
    wanted = list(dict.fromkeys(used))

    def decide(tx: Transaction) -> Decided:
        held = latest_recall(tx, desk.scope)
        if held is None or held["request"]["request_id"] != request_id:
            raise InvalidInput("this run has no such recall", path="$.request_id")
        known = {hint["memory_id"] for hint in held["response"]["items"]}
        wrong = [each for each in wanted if each not in known]
        if wrong:
            raise InvalidInput(f"{wrong[0]!r:.60} was not recalled", path="$.used")
        return Decided([draft_patch(MEMORY_RECALLED, "assistant", {"id": request_id, "used_ids": wanted})])

    write_patches(desk, decide, lambda _reader: None)
