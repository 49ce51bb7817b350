"""A fold: one finished run compared with its peers, what it leaves distilled, and the plan that would keep it (RC-10).

Nothing is kept here. The plan writes the episode and, of a passing run, a seed; it writes tactics that separate and
retires those whose contrast has turned; it prunes nothing and activates nothing. Ids come from the trace and the
trigger, so that folding the same run twice gives the same plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.contracts.learning import (
    ConditionalTactic,
    FoldResult,
    FoldTrigger,
    MemoryAction,
    MemoryActionPlan,
    ReasoningMemory,
    ReuseStateRecord,
)
from muniment.contracts.rules import DistillDraft
from muniment.core.canonical import short_id
from muniment.core.policy import FoldPolicy, LearnPolicy
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.learning._trials import is_tried
from muniment.learning.fold.contrast import Separation, associations, contrast, separations_of, window
from muniment.learning.fold.distill import (
    ANYWHERE,
    BankIds,
    Distilling,
    episode,
    is_judged,
    keys_of,
    learnt_of,
    seed,
    shared_keys_of,
    tactic,
    tactic_id,
    with_clean_names,
)
from muniment.learning.fold.drafts import drafts
from muniment.learning.fold.features import with_features
from muniment.learning.fold.wording import Clean, Count, Writer
from muniment.learning.proposals.keeping import Keeping, KeptLesson, contradicted, keep_lessons
from muniment.learning.proposals.likes import CheckedLesson
from muniment.learning.proposals.records import LessonReport
from muniment.learning.stored_memory import RunFacts, StoredMemory

__all__ = ["Folded", "fold", "with_lessons"]

_GONE = ("retired", "pruned")


class Folded(NamedTuple):
    """What a fold found, and what it would do about it."""

    result: FoldResult
    plan: MemoryActionPlan
    payloads: Mapping[str, JsonObject]
    """By `payload_ref`: the records that the plan writes."""
    drafts: tuple[DistillDraft, ...]
    lessons: tuple[KeptLesson, ...] = ()
    """What becomes of the lessons that a model wrote, in their order."""


class _Product(NamedTuple):
    """A record to be written."""

    store: str
    id: str
    record: JsonObject
    reasons: tuple[str, ...]


def fold(
    run: RunFacts,
    peers: Sequence[RunFacts],
    existing: Sequence[StoredMemory],
    trigger: FoldTrigger,
    policy: LearnPolicy,
    *,
    now: str,
    count_tokens: Count,
    clean: Clean,
    written: Sequence[CheckedLesson] = (),
    tools: Collection[str] = (),
    place: BankIds = ANYWHERE,
) -> Folded:
    """What the run leaves for the next. `peers` are earlier runs of its intent, `existing` what is kept for it.

    The ids of what is learnt from several runs are of the `place`. `written` are lessons that a model wrote of it.
    """
    writer = Writer(count_tokens, policy.fold.summary_tokens_max, clean)
    distilling = Distilling(policy, now, writer, place)
    runs = [with_features(one) for one in window([one for one in (*peers, run) if is_judged(one)], policy.fold)]
    separations, recent = _contrasts(runs, policy.fold) if is_judged(run) else ([], [])
    kept = {memory.id: memory for memory in existing}
    made = [
        *_own_products(run, peers, distilling),
        *_tactic_products(run, runs[-policy.fold.recent_max :], recent, distilling, kept),
        *_tactic_products(run, runs, separations, distilling, kept),
    ]
    lessons = _keep_written(written, made, kept, distilling, tools)
    made = _with_lessons(made, lessons)
    products = [one for one in made if one.id not in kept or kept[one.id].status not in _GONE]
    turned = _turned(run, runs, policy, kept)
    proposed = (
        drafts(run, runs, separations, policy=policy.fold, trigger=trigger.kind, writer=writer, place=place)
        if is_judged(run)
        else []
    )
    counted = (
        f"{len(runs)} runs compared, {len(separations) + len(recent)} features separate, {len(turned)} tactics turned"
    )
    if between := len(associations(runs, separations, policy.fold)) if is_judged(run) else 0:
        counted = f"{counted}, {between} features differ between tasks only"
    folded = _folded(run, trigger, distilling, products, turned, proposed, counted)
    against = contradicted(kept.values(), run) if is_judged(run) else []
    return _with_contradicted(folded, against)._replace(lessons=tuple(lessons))


def _contrasts(runs: Sequence[RunFacts], policy: FoldPolicy) -> tuple[list[Separation], list[Separation]]:
    """What separates among all the runs and not the other way round among the newest; and, where they are many, what
    separates among the newest and is not told by all. Two looks share the chance of being wrong.
    """
    if len(runs) <= policy.recent_max:
        return contrast(runs, policy), []
    halved = policy.model_copy(update={"confidence_min": (1 + policy.confidence_min) / 2})
    whole = contrast(runs, halved)
    now = separations_of([one.feature for one in whole], runs, policy, newest=policy.recent_max) if whole else {}
    stands = [one for one in whole if one.feature not in now or now[one.feature].helps == one.helps]
    told = {one.feature for one in stands}
    return stands, [one for one in contrast(runs, halved, newest=policy.recent_max) if one.feature not in told]


def _own_products(run: RunFacts, peers: Sequence[RunFacts], distilling: Distilling) -> list[_Product]:
    run = with_clean_names(run, distilling.writer)
    found = [_product(episode(run, distilling), ("episode",))]
    made = seed(run, peers, distilling)
    return found if made is None else [*found, _product(made, ("seed",))]


def _tactic_products(
    run: RunFacts,
    runs: Sequence[RunFacts],
    separations: Sequence[Separation],
    distilling: Distilling,
    kept: Mapping[str, StoredMemory],
) -> list[_Product]:
    """New tactics up to the limit, and new versions of those there are."""
    found: list[_Product] = []
    new = 0
    for one in separations:
        old = kept.get(tactic_id(run, one.feature, helps=one.helps, place=distilling.place))
        if old is None and new >= distilling.policy.fold.tactics_max:
            continue
        made = tactic(one, run, runs, distilling, old)
        if made is not None:
            found.append(_product(made, ("tactic", "contrast" if old is None else "contrast_moved")))
            new += old is None
    return found


def _keep_written(
    written: Sequence[CheckedLesson],
    made: Sequence[_Product],
    kept: Mapping[str, StoredMemory],
    distilling: Distilling,
    tools: Collection[str],
) -> list[KeptLesson]:
    """What becomes of lessons beside what there is, and beside the tactics of the same fold."""
    policy = distilling.policy
    keeping = Keeping(distilling.place, distilling.now, policy.tactic_ttl, policy.writing.likeness_min, tools)
    return keep_lessons(written, kept, {one.id: one.record for one in made if "tactic_id" in one.record}, keeping)


def _with_lessons(made: Sequence[_Product], lessons: Sequence[KeptLesson]) -> list[_Product]:
    """The records to be written, with those of lessons: in place of one that says the same, or after the others."""
    records = {lesson.id: lesson.record for lesson in lessons if lesson.record is not None}
    first = [one._replace(record=records.pop(one.id, one.record)) for one in made]
    return [*first, *(_Product("ReuseBuffer", id_, record, ("tactic", "lesson")) for id_, record in records.items())]


def _with_contradicted(folded: Folded, against: Sequence[str]) -> Folded:
    """The fold, whose plan retires the warnings of a model that the run did not heed, and passed."""
    retires = [
        MemoryAction.from_wire(
            {"op": "RETIRE", "target_store": "ReuseBuffer", "target_ids": [id_], "reason_keys": ["forbids_solution"]}
        )
        for id_ in against
    ]
    actions = (*folded.plan.actions, *retires)
    return folded._replace(plan=folded.plan.model_copy(update={"actions": actions})) if retires else folded


def _turned(
    run: RunFacts, runs: Sequence[RunFacts], policy: LearnPolicy, kept: Mapping[str, StoredMemory]
) -> list[str]:
    """Tactics of this intent whose feature now points the other way. Each was named beforehand: nothing to correct.

    Only those that nobody was handed yet, and those of before lessons had a life: what was tried is judged by that.
    """
    ours = {
        memory.id: learnt
        for memory in kept.values()
        if memory.kind == "tactic"
        and memory.status not in _GONE
        and not is_tried(memory)
        and (learnt := learnt_of(memory))
        if memory.record.get("intent_key") == shared_keys_of(run).get("intent_key")
    }
    found = separations_of([learnt["feature"] for learnt in ours.values()], runs, policy.fold) if ours else {}
    return sorted(name for name, learnt in ours.items() if _points_away(found.get(learnt["feature"]), learnt, policy))


def _points_away(found: Separation | None, learnt: Mapping[str, Any], policy: LearnPolicy) -> bool:
    if found is None or found.difference == 0 or found.probability < policy.fold.confidence_min:
        return False
    return found.helps != (learnt.get("advice") == "do")


def _product(record: ReasoningMemory | ReuseStateRecord | ConditionalTactic, reasons: tuple[str, ...]) -> _Product:
    match record:
        case ReasoningMemory():
            return _Product("ReasoningBank", record.memory_id, record.to_wire(), reasons)
        case ReuseStateRecord():
            return _Product("ReuseBuffer", record.state_id, record.to_wire(), reasons)
        case ConditionalTactic():
            return _Product("ReuseBuffer", record.tactic_id, record.to_wire(), reasons)


# -- the two records ----------------------------------------------------------------------------------


def _folded(
    run: RunFacts,
    trigger: FoldTrigger,
    distilling: Distilling,
    products: Sequence[_Product],
    turned: Sequence[str],
    proposed: Sequence[DistillDraft],
    counted: str,
) -> Folded:
    fold_id = short_id("fold", [run.trace_id, trigger.kind, trigger.details])
    plan_id = short_id("plan", [fold_id])
    common: dict[str, Any] = {"schema_version": RULECRAFT_VERSION, "created_at": distilling.now, **keys_of(run)}
    limits: JsonObject = {"max_bytes": distilling.policy.record_bytes_max}
    writes = [
        {
            "op": "WRITE",
            "target_store": one.store,
            "target_ids": [one.id],
            "payload_ref": _payload_ref(plan_id, one.id),
            "reason_keys": [*one.reasons, trigger.kind or "manual"],
            "safety": limits,
        }
        for one in products
    ]
    retires = [
        {"op": "RETIRE", "target_store": "ReuseBuffer", "target_ids": [name], "reason_keys": ["contrast_turned"]}
        for name in turned
    ]
    plan = MemoryActionPlan.from_wire(common | {"plan_id": plan_id, "fold_id": fold_id, "actions": [*writes, *retires]})
    result = FoldResult.from_wire(
        common
        | {
            "fold_id": fold_id,
            "trigger": trigger.to_wire(),
            "trace_id": run.trace_id,
            "produced": {
                "reasoning_ids": [one.id for one in products if one.store == "ReasoningBank"],
                "rule_draft_ids": [draft.draft_id for draft in proposed],
                "reuse_state_ids": [one.id for one in products if one.store == "ReuseBuffer"],
            },
            "action_plan_id": plan_id,
            "notes": "; ".join((*_set_aside(run), counted)),
        }
    )
    payloads = {_payload_ref(plan_id, one.id): one.record for one in products}
    return Folded(result, plan, payloads, tuple(proposed))


def with_lessons(result: FoldResult, report: LessonReport) -> FoldResult:
    """The fold's result, with what a model's lessons came to and took: counts and codes, without a word of them."""
    fates = Counter(each.fate for each in report.proposals)
    refused = Counter(each.code or "" for each in report.proposals if each.fate == "refused")
    refused.update({"malformed": report.malformed} if report.malformed else {})
    told: dict[str, Any] = {
        "report_id": report.report_id,
        "writer": report.writer,
        "calls": report.calls,
        "tokens_in": report.tokens_in,
        "tokens_out": report.tokens_out,
        "written": fates["written"],
        "merged": fates["merged"],
        "refused": dict(sorted(refused.items())),
    }
    said = [f"{count} {fate}" for fate, count in sorted(fates.items()) if fate != "refused"]
    said += [f"{count} refused ({code})" for code, count in sorted(refused.items())]
    if report.failed is not None:
        told["failed"] = report.failed
        said = [f"failed ({report.failed}: {report.why})"]
    took = f"{report.calls} call{'' if report.calls == 1 else 's'}, {report.tokens_in} + {report.tokens_out} tokens"
    words = f"lessons by {report.writer}: {', '.join(said) or 'none'}; {took}"
    plain = result.to_wire()
    return FoldResult.from_wire(plain | {"lessons": told, "notes": "; ".join(filter(None, (result.notes, words)))})


def _set_aside(run: RunFacts) -> list[str]:
    """That the word of a judge was not learnt from."""
    if run.set_aside is None:
        return []
    what = "nothing is learnt from its outcome" if run.verdict is not None else "it taught nothing"
    return [f"{run.set_aside} by {run.judge}, a judge that may not teach: {what}"]


def _payload_ref(plan_id: str, record_id: str) -> str:
    return f"{plan_id}/{record_id}"
