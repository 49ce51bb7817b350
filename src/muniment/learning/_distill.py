"""A fold: the records that a finished run leaves for later runs, and the plan to store them (RC-10). Pure.

The plan writes the episode, a seed if the run passed, and lessons written by a model; drafts of rules come from the
contrast with peers. It activates nothing. Ids are derived from the trace and the trigger, so folding a run twice gives
the same plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from muniment.contracts.learning import (
    FoldResult,
    FoldTrigger,
    MemoryActionPlan,
    ReasoningMemory,
    ReuseStateRecord,
)
from muniment.contracts.rules import DistillDraft
from muniment.core.canonical import short_id
from muniment.core.policy import LearnPolicy
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.core.text.patterns import lazy_pattern
from muniment.learning._contrast import contrast, window
from muniment.learning._drafts import draft_rules
from muniment.learning._episodes import (
    ASKED_CHARS,
    Clean,
    Count,
    Writer,
    episode_fields,
    read_episode,
    render_steps,
    steps_told,
    transcript,
)
from muniment.learning._features import with_features
from muniment.learning._lesson_writing import LessonReport
from muniment.learning.keys import ANYWHERE, BankIds, keys_of
from muniment.learning.records import RunFacts
from muniment.verify.results import score_of

__all__ = ["Folded", "plan_fold", "with_report"]

_UNNAMED = "a tool"
_NAME = lazy_pattern(r"[\w.:/@-]{1,100}")
"""Required form of a tool name that is repeated in texts."""
_TASK_CHARS, _LATER_CHARS, _SEED_PROMPT_CHARS = 240, 80, 400
_TAGS_MAX = 24
_COST_SHARE = 0.2
"""Maximum share of a seed's reward lost to cost."""


class Folded(NamedTuple):
    """The result of a fold, with its plan."""

    result: FoldResult
    plan: MemoryActionPlan
    payloads: Mapping[str, JsonObject]
    """Records that the plan writes, by `payload_ref`."""
    drafts: tuple[DistillDraft, ...]


class _Product(NamedTuple):
    """A record to be written."""

    store: str
    id: str
    record: JsonObject
    reasons: tuple[str, ...]


def plan_fold(
    run: RunFacts,
    peers: Sequence[RunFacts],
    trigger: FoldTrigger,
    policy: LearnPolicy,
    *,
    now: str,
    count_tokens: Count,
    clean: Clean,
    lessons: Mapping[str, JsonObject] | None = None,
    ids: BankIds = ANYWHERE,
) -> Folded:
    """Distil a run. `peers` are earlier runs of its intent, `lessons` tactics written by a model about it, by id."""
    writer = Writer(count_tokens, policy.fold.summary_tokens_max, clean)
    told = _with_clean_names(run, writer)
    products = [_episode(told, policy, writer, now)]
    if (seed := _seed(told, peers, policy, writer, now)) is not None:
        products.append(seed)
    for id_, record in (lessons or {}).items():
        products.append(_Product("ReuseBuffer", id_, record, ("tactic", "lesson")))
    drafts: list[DistillDraft] = []
    counted = "not judged: nothing compared"
    if run.verdict is not None:
        judged = [one for one in (*peers, run) if one.verdict is not None]
        runs = [with_features(one) for one in window(judged, policy.fold)]
        separations = contrast(runs, policy.fold)
        counted = f"{len(runs)} runs compared, {len(separations)} features separate"
        drafts = draft_rules(run, runs, separations, policy=policy.fold, trigger=trigger.kind, writer=writer, ids=ids)
    return _folded(run, trigger, policy, now, products, drafts, counted)


def _folded(
    run: RunFacts,
    trigger: FoldTrigger,
    policy: LearnPolicy,
    now: str,
    products: Sequence[_Product],
    drafts: Sequence[DistillDraft],
    counted: str,
) -> Folded:
    fold_id = short_id("fold", [run.trace_id, trigger.kind, trigger.details])
    plan_id = short_id("plan", [fold_id])
    common: dict[str, Any] = {"schema_version": RULECRAFT_VERSION, "created_at": now, **keys_of(run)}
    writes = [
        {
            "op": "WRITE",
            "target_store": one.store,
            "target_ids": [one.id],
            "payload_ref": f"{plan_id}/{one.id}",
            "reason_keys": [*one.reasons, trigger.kind or "manual"],
            "safety": {"max_bytes": policy.record_bytes_max},
        }
        for one in products
    ]
    plan = MemoryActionPlan.from_wire(common | {"plan_id": plan_id, "fold_id": fold_id, "actions": writes})
    result = FoldResult.from_wire(
        common
        | {
            "fold_id": fold_id,
            "trigger": trigger.to_wire(),
            "trace_id": run.trace_id,
            "produced": {
                "reasoning_ids": [one.id for one in products if one.store == "ReasoningBank"],
                "rule_draft_ids": [draft.draft_id for draft in drafts],
                "reuse_state_ids": [one.id for one in products if one.store == "ReuseBuffer"],
            },
            "action_plan_id": plan_id,
            "notes": "; ".join((*_set_aside(run), counted)),
        }
    )
    return Folded(result, plan, {f"{plan_id}/{one.id}": one.record for one in products}, tuple(drafts))


def with_report(result: FoldResult, report: LessonReport) -> FoldResult:
    """Add the outcome and cost of a model's lessons to the result: counts and codes, no text."""
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
    """A note that the judge's verdict was not learned from."""
    if run.set_aside is None:
        return []
    what = "nothing is learnt from its outcome" if run.verdict is not None else "it taught nothing"
    return [f"{run.set_aside} by {run.judge}, a judge that may not teach: {what}"]


# -- the episode --------------------------------------------------------------------------------------


def _episode(run: RunFacts, policy: LearnPolicy, writer: Writer, now: str) -> _Product:
    """The run as a reusable unit: request, outcome and reasons, steps; and the text for search."""
    request = " – ".join(
        filter(None, (writer.quote(run.x_summary, ASKED_CHARS), writer.quote(run.x_later, _LATER_CHARS)))
    )
    fields = episode_fields(run, writer.clean, request)
    told = read_episode(fields)
    assert told is not None
    is_judged = run.verdict is not None
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "memory_id": short_id("mem", ["episode", run.trace_id]),
        "kind": "episode",
        "created_at": now,
        **keys_of(run),
        "status": "active" if is_judged else "temporary",
        "ttl": policy.reasoning_ttl,
        "summary": told.text,
        "tags": _tags(run),
        "trace_ids": [run.trace_id],
        "avg_cost": run.cost,
        **fields,
    }
    if is_judged:
        plain["pass_p_hat"] = float(run.passed)
    if searched := transcript(run, writer.clean):
        plain["transcript"] = searched
    record = ReasoningMemory.from_wire(plain)
    return _Product("ReasoningBank", record.memory_id, record.to_wire(), ("episode",))


def _with_clean_names(run: RunFacts, writer: Writer) -> RunFacts:
    """Remove names of tools or codes that may not be quoted. A name with spaces or punctuation could inject arbitrary
    text into the line that quotes it.
    """
    names = {*(step.action for step in run.steps), *run.reason_codes, *run.violated}
    unfit = {step.action for step in run.steps if step.kind == "call" and _NAME.fullmatch(step.action) is None}
    if not unfit and writer.clean("\n".join(sorted(names))):
        return run
    unfit |= {name for name in names if not writer.clean(name)}
    steps = [step.model_copy(update={"action": _UNNAMED}) if step.action in unfit else step for step in run.steps]
    codes = {"reason_codes": run.reason_codes, "violated": run.violated}
    kept = {key: tuple(name for name in named if name not in unfit) for key, named in codes.items()}
    return run.model_copy(update={"steps": tuple(steps), **kept})


def _tags(run: RunFacts) -> list[str]:
    ending = "unjudged" if run.verdict is None else "pass" if run.passed else "fail"
    tools = sorted({f"tool:{step.action}" for step in run.steps if step.kind == "call"})
    reasons = sorted({f"reason:{code}" for code in run.reason_codes})
    return [ending, *reasons, *tools][:_TAGS_MAX]


# -- the seed -----------------------------------------------------------------------------------------


def _seed(run: RunFacts, peers: Sequence[RunFacts], policy: LearnPolicy, writer: Writer, now: str) -> _Product | None:
    """A passing run as a starting state; None for any other."""
    if not run.passed or run.verdict is None:
        return None
    outcome = run.outcome or "UNKNOWN"
    reasons = ", ".join([*run.violated[:3], *run.reason_codes[:3]])
    steps, is_cut = steps_told(run, writer.clean)
    sentences = (
        f"Asked: {writer.quote(run.x_summary, _TASK_CHARS) or 'not quoted'}",
        f"Passed: {reasons}" if reasons else "Passed",
        f"Did: {render_steps(steps, is_cut=is_cut)}" if steps else "Called nothing",
        f"Cost {run.cost:g}",
    )
    reward = score_of(run.verdict, outcome)
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "state_id": short_id("seed", [run.trace_id]),
        "created_at": now,
        "seed_summary": writer.join(sentences),
        "source_trace_ids": [run.trace_id],
        "verifier": {"verdict": run.verdict, "outcome": outcome, "score": reward},
        "reward": {"total": reward - _COST_SHARE * _cost_share(run, peers), "pass": reward, "cost": run.cost},
        "counters": {"N": 0},
        "ttl": policy.seed_ttl,
        "tags": _tags(run),
        **keys_of(run),
    }
    answer = writer.quote(run.y_summary, _SEED_PROMPT_CHARS)
    if answer and not answer.endswith("…"):
        plain["seed_prompt"] = answer
    if run.outcome in ("OK", "FAIL"):
        plain["exec_ok"] = run.outcome == "OK"
    if run.seed_id is not None:
        plain["lineage"] = {"parent_state_id": run.seed_id, "parent_ids": [run.seed_id]}
    record = ReuseStateRecord.from_wire(plain)
    return _Product("ReuseBuffer", record.state_id, record.to_wire(), ("seed",))


def _cost_share(run: RunFacts, peers: Sequence[RunFacts]) -> float:
    """The cost of a run, from 0 to 1: one half at the mean cost of passing runs."""
    costs = [one.cost for one in peers if one.passed and one.cost > 0]
    usual = median(sorted(costs)) if costs else run.cost
    return run.cost / (run.cost + usual) if run.cost > 0 else 0.0
