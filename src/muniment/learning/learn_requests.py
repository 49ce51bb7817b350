"""A caller's description of a finished run, validated; missing parts come from the run's recall and task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, cast, get_args

from muniment.contracts.learning import FoldTrigger, FoldTriggerKind, ReuseSelectMeta
from muniment.contracts.runs import RunConfig, RunCost, VerifierResult
from muniment.core.ports.engine import Condition
from muniment.core.record import RULECRAFT_VERSION, Record
from muniment.core.requests import Request, checked, one_of
from muniment.core.scope import ScopeLevel, bank_owner, bank_scope
from muniment.errors import (
    EmbedderFailure,
    IntegrityFailure,
    InvalidInput,
    InvalidRecord,
    LearningFailed,
    MissingDependency,
    ModelFailure,
    MunimentError,
    RunFinished,
)
from muniment.learning.keys import read_intent_key, read_state_key
from muniment.learning.recalling import (
    bucket_named,
    check_small,
    features_given,
    intent_given,
    latest_recall,
    state_given,
)
from muniment.learning.records import IntentParts, RunBlocks, StateParts
from muniment.memory.patches import Decided, cleaned, draft_patch, need_grant, write_patches
from muniment.store.items import latest, select_items
from muniment.store.ledger import OUTPUT_VERIFIED

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.memory.patches import Writer
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft

__all__ = [
    "LEARNING",
    "LearnRequest",
    "Verdict",
    "is_defect",
    "keep_verdict",
    "keep_verdict_and_end",
    "learn_request",
    "learning_failed",
    "with_verdict",
]

R = TypeVar("R", bound=Record)
_GENERIC = "generic"
LEARNING: Mapping[str, Any] = {
    "intent": None,
    "state": None,
    "bucket_key": None,
    "features": None,
    "cost": None,
    "cfg": None,
    "reuse": None,
    "blocks": None,
    "level": "user",
    "lessons": None,
}
"""The optional arguments of learning from a run, with their defaults."""
_COST_MAX = 10**15
_BESIDE = (EmbedderFailure, IntegrityFailure, MissingDependency, ModelFailure)
_NO_BLOCKS = RunBlocks.model_construct()


class Verdict(NamedTuple):
    """A verifier's result that is not stored with the run yet."""

    draft: EntryDraft
    kept: Callable[[Reader], str | None]
    """Looks up the id under which the run stores it."""

    @property
    def id(self) -> str:
        assert self.draft.metadata is not None
        return str(self.draft.metadata["id"])


@dataclass(frozen=True, slots=True)
class LearnRequest:
    """Facts about a run that are not in its entries."""

    result: VerifierResult | None
    """None for a fold in the middle of an unjudged run."""
    intent: IntentParts
    state: StateParts
    level: ScopeLevel = "user"
    bucket_key: str | None = None
    trigger: FoldTrigger | None = None
    """None: the most urgent of those that apply when a run ends."""
    is_final: bool = True
    """The run has ended, or is about to: its EventLog is complete."""
    ws_id: str | None = None
    budgets: Mapping[str, float] | None = None
    blocks: RunBlocks = _NO_BLOCKS
    cfg: RunConfig | None = None
    cost: RunCost | None = None
    features: Mapping[str, Any] | None = None
    reuse: ReuseSelectMeta | None = None
    verifier_ref: str | None = None
    verdict: Verdict | None = None
    """To be written with the end of the run; None if it is stored already, or the run continues."""
    lessons: Any = None
    """The lesson writer, as given by the caller."""


class LearningRequest(Request):
    """The bank a run is learned into, and the purpose."""

    level: Annotated[str, one_of(get_args(ScopeLevel), "{given!r:.40} is not a level", hint="user, agent or tenant")]
    trigger: Annotated[str | None, one_of(get_args(FoldTriggerKind), "{given!r:.40} is not a trigger")]


def learn_request(
    writer: Writer,
    verifier_result: Any,
    *,
    is_final: bool,
    is_ending: bool,
    ws_id: str | None,
    intent: Any,
    state: Any,
    bucket_key: Any,
    features: Any,
    cost: Any,
    cfg: Any,
    reuse: Any,
    blocks: Any,
    level: ScopeLevel,
    trigger: Any,
    lessons: Any,
    task_type: str,
) -> LearnRequest:
    """Build the request from validated parts.

    The result is stored with the run if it was not yet; for an ending run, in the transaction that ends it.
    """
    result = None if verifier_result is None else _result(writer, verifier_result)
    if result is None and is_final:
        raise InvalidInput("a run is learnt from by what a verifier said of it", path="$.verifier_result")
    checked(LearningRequest, level=level, trigger=trigger)
    need_grant(writer, level)
    bank_scope(writer.scope.tenant_id, bank_owner(writer.scope, level))  # a bucket of this name may have one
    bucket_named(bucket_key)
    intended, standing, bucket = _keys(writer, intent, state, bucket_key, task_type)
    model = _lessons(writer, lessons)
    held, verdict = _verdict(writer, result)
    waits = is_ending and model is None and _is_open(writer)  # a model may take long, and the result must not be lost
    return LearnRequest(
        result=result,
        intent=intended,
        state=standing,
        level=level,
        bucket_key=bucket,
        trigger=None if trigger is None else FoldTrigger(kind=trigger),
        is_final=is_final,
        ws_id=ws_id,
        budgets=_budgets(writer),
        cfg=None if cfg is None else _small(writer, cfg, RunConfig, "$.cfg"),
        cost=None if cost is None else _cost(writer, cost),
        features=cast("dict[str, Any]", cleaned(writer.ctx, features_given(features))),
        reuse=None if reuse is None else _small(writer, reuse, ReuseSelectMeta, "$.reuse"),
        blocks=_blocks(writer, blocks, level),
        verifier_ref=held if verdict is None or waits else keep_verdict(writer, verdict),
        verdict=verdict if waits else None,
        lessons=model,
    )


def _record(given: Any, kind: type[R], path: str) -> R:
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f"wanted a {kind.__name__}", path=path)
    plain = dict(given)
    if "schema_version" in kind.model_fields:
        plain.setdefault("schema_version", RULECRAFT_VERSION)
    try:
        return kind.from_wire(plain)
    except InvalidRecord as error:
        raise error.within(path) from None


def _lessons(writer: Writer, given: Any) -> Any:
    """The lesson writer: the caller's, else the store's. Validated here."""
    from muniment.learning.lesson_asking import lesson_writer

    named = writer.ctx.lessons if given is None else given
    return lesson_writer(named, writer.ctx.policy.learn.writing)


def _result(writer: Writer, given: Any) -> VerifierResult:
    """The verifier's result. Its codes go into a bank, which has no secret check on entry (LG-10)."""
    result = _record(given, VerifierResult, "$.verifier_result")
    codes = {"reason_codes": result.reason_codes, "violated_constraints": result.violated_constraints}
    check_small(
        {name: list(each) for name, each in codes.items() if each} | {"verifier_id": result.verifier_id},
        "$.verifier_result",
    )
    clean = {name: tuple(cleaned(writer.ctx, each)) for name, each in codes.items() if each}
    return result.model_copy(update=clean | {"verifier_id": cleaned(writer.ctx, result.verifier_id)})


def _small(writer: Writer, given: Any, kind: type[R], path: str) -> R:
    """A record of limited size, without secrets."""
    read = _record(given, kind, path)
    check_small(read.to_wire(), path)
    return kind.from_wire(cleaned(writer.ctx, read.to_wire()))


def _blocks(writer: Writer, given: Any, level: ScopeLevel) -> RunBlocks:
    """Blocks of the run's EventLog: of limited size, without secrets, and above the user's level without text."""
    if given is None:
        return RunBlocks()
    plain = _record(given, RunBlocks, "$.blocks").to_wire()
    for name, block in plain.items():
        check_small(block, f"$.blocks.{name}")
    if level != "user":
        plain.pop("rollout_summary", None)
    return RunBlocks.from_wire(cleaned(writer.ctx, plain))


def _cost(writer: Writer, given: Any) -> RunCost:
    cost = _small(writer, given, RunCost, "$.cost")
    for name in RunCost.model_fields:
        value = getattr(cost, name)
        if value is not None and not 0 <= value <= _COST_MAX:
            raise InvalidInput(f"{name} should be from 0 to {_COST_MAX}", path=f"$.cost.{name}")
    return cost


def _keys(
    writer: Writer, intent: Any, state: Any, bucket_key: str | None, task_type: str
) -> tuple[IntentParts, StateParts, str | None]:
    """The given keys; else the ones the run recalled by; else those of its task."""
    scope = writer.scope
    asked = writer.ctx.engine.read(scope.tenant_id, lambda reader: latest_recall(reader, scope))
    request = {} if asked is None else asked["request"]
    intended, standing = intent_given(intent), state_given(state)
    if intent is None:
        held = request.get("intent_key")
        family = None if task_type == _GENERIC else task_type
        known = read_intent_key(held) if held else None
        intended = known or (IntentParts() if family is None else IntentParts(task_family=family))
    if state is None and request.get("state_key"):
        standing = read_state_key(request["state_key"]) or standing
    intended = IntentParts.model_validate(cleaned(writer.ctx, intended.to_wire()))
    standing = StateParts.model_validate(cleaned(writer.ctx, standing.to_wire()))
    return intended, standing, bucket_key or request.get("bucket_key")


def _budgets(writer: Writer) -> dict[str, float] | None:
    """The budgets of the run, if given."""
    scope = writer.scope
    item = writer.ctx.engine.read(scope.tenant_id, lambda reader: latest(reader, scope.run_id))
    held = None if item is None or item.body is None else item.plain().get("budgets")
    return held if isinstance(held, dict) else None


def with_verdict(ctx: Context, scope: Scope, asked: LearnRequest) -> LearnRequest:
    """Fill in the id of the verifier's result by its current state: stored, about to be, or too late."""
    verdict = asked.verdict
    if verdict is None:
        return asked
    kept, run = ctx.engine.read(scope.tenant_id, lambda reader: (verdict.kept(reader), latest(reader, scope.run_id)))
    if kept is not None or run is None or run.status != "open":
        return replace(asked, verifier_ref=kept, verdict=None)
    return replace(asked, verifier_ref=verdict.id)


def _verdict(writer: Writer, result: VerifierResult | None) -> tuple[str | None, Verdict | None]:
    """The id under which the run stores a result; if it does not, the result to be stored."""
    if result is None:
        return None, None
    kept = partial(_kept, writer, result)
    held = writer.ctx.engine.read(writer.scope.tenant_id, kept)
    if held is not None:
        return held, None
    said = {"id": writer.ctx.ids.new("vrf"), "result": result.to_wire(), "sources": []}
    return None, Verdict(draft_patch(OUTPUT_VERIFIED, "assistant", said), kept)


def _is_open(writer: Writer) -> bool:
    """Return whether the run has begun and not ended."""
    run = writer.ctx.engine.read(writer.scope.tenant_id, lambda reader: latest(reader, writer.scope.run_id))
    return run is not None and run.status == "open"


def keep_verdict(writer: Writer, verdict: Verdict) -> str | None:
    """Store a result with its run and return its id; None if the run has ended."""

    def decide(tx: Transaction) -> Decided:  # another process may have stored it meanwhile
        return Decided([verdict.draft] if verdict.kept(tx) is None else [])

    try:
        return write_patches(writer, decide, verdict.kept)
    except RunFinished:  # it has ended: only the EventLog records the outcome
        return None


def is_defect(error: BaseException) -> bool:
    """Return whether a fold failed for a cause outside the caller's control: a bug, a plug-in, an external server,
    damaged data.
    """
    return not isinstance(error, MunimentError) or isinstance(error, _BESIDE)


def learning_failed(error: BaseException, run_id: str, words: str) -> LearningFailed:
    """The error for a run that could not be learned from: the run and the exception type, but not its message, which
    may contain anybody's words.
    """
    raised = error.code if isinstance(error, MunimentError) else type(error).__name__
    return LearningFailed(f"the run {run_id} {words}: {raised} was raised", details={"run_id": run_id, "cause": raised})


def keep_verdict_and_end(writer: Writer, verdict: Verdict | None, ending: EntryDraft) -> None:
    """Store a result with its run, unless stored, and end the run: for runs that cannot be learned from. A run that has
    ended meanwhile is left unchanged.
    """

    def decide(tx: Transaction) -> Decided:
        judged = [] if verdict is None or verdict.kept(tx) is not None else [verdict.draft]
        return Decided([*judged, ending])

    with suppress(RunFinished):
        write_patches(writer, decide, lambda _reader: None)


def _kept(writer: Writer, result: VerifierResult, reader: Reader) -> str | None:
    """The id under which the run stores this result (as admitted, without secrets), if any."""
    scope, wanted = writer.scope, cleaned(writer.ctx, result.to_wire())
    where: tuple[Condition, ...] = (("kind", "=", "verification"), ("run_id", "=", scope.run_id))
    for item in select_items(reader, where):
        is_own = item.body is not None and item.user_id == scope.user_id
        if is_own and cleaned(writer.ctx, item.plain()["result"]) == wanted:
            return item.id
    return None
