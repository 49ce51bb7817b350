"""EventLogs and TraceCapsules of ended runs (RC-12, RC-27): built from the ledger, and read one by one.

They hold references and figures; of texts only one line each of the task, the answer and each step. A failure cluster
from the verifier and a bucket from the caller are used as given. Otherwise both are derived: from constraints, reason
codes and the failed call; from the domain or family, and how precisely the task was specified. Impact is never guessed:
`med` unless given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muniment.contracts.learning import (
    FoldResult,
    MemoryActionRecord,
    MemoryRecallRequest,
    MemoryRecallResponse,
    ReuseSelectMeta,
)
from muniment.contracts.runs import (
    EventLog,
    RunConfig,
    RunCost,
    SelectedRuleMirror,
    TraceCapsule,
    VerifierResult,
)
from muniment.core.canonical import canonical_text, read_canonical
from muniment.core.instants import parse_instant
from muniment.core.limits import remembered
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ITEMS
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import Level, Outcome
from muniment.learning._contrast import task_digest
from muniment.learning._episodes import asked_later, said_words
from muniment.learning._features import error_name, error_shape, scalar_text
from muniment.learning.keys import intent_key, state_key
from muniment.learning.records import Feature, IntentParts, RuleArm, RunBlocks, RunFacts, StateParts, StepFacts
from muniment.store.ledger import LedgerEntry
from muniment.verify.results import (
    DEFAULT_DOMAIN,
    bucket_key,
    failure_cluster_id,
    is_pass,
    says_nothing,
)

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader

__all__ = [
    "Finished",
    "LogWindow",
    "Recalled",
    "build_capsule",
    "build_event_log",
    "build_facts",
    "derived_bucket",
    "derived_cluster",
    "failure_sign",
    "failure_words",
    "peer_of",
    "steps_of",
    "stream_logs",
    "without_words",
]

_STAGE = "run"
_READ_CHARS_MAX = 400
_ASKED_WORDS_MIN = 4
"""A task with fewer words leaves much open."""
LINE_CHARS_MAX = 240
STEP_CHARS_MAX = 600
"""Half from a step's beginning and half from its end, where errors often are."""
STEPS_MAX = 400
TOOL_HEAVY, LONG = 0.5, 20
_CONTRACT_METHOD = "intent_state_recall_v1"
_PRAXIS_POLICY = "praxis_conditional_tactics_v1"
_NO_BLOCKS = RunBlocks.model_construct()


@dataclass(frozen=True, slots=True)
class Recalled:
    """The recall of a run: question, answer, and what was injected."""

    request: MemoryRecallRequest
    response: MemoryRecallResponse
    used_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """A run, with facts not in its entries."""

    trace_id: str
    entries: Sequence[LedgerEntry]
    result: VerifierResult | None
    """The result, if it may teach; None for an unjudged run that continues."""
    intent: IntentParts
    state: StateParts
    bucket_key: str | None = None
    cfg: RunConfig | None = None
    cost: RunCost | None = None
    blocks: RunBlocks = _NO_BLOCKS
    selected_rules: Sequence[SelectedRuleMirror] = ()
    """Rules in the run's prompt."""
    arms: Sequence[RuleArm] = ()
    """Rules that applied to it, and whether it had them."""
    own_features: Mapping[str, Any] = field(default_factory=dict)
    recalled: Recalled | None = None
    reuse: ReuseSelectMeta | None = None
    sandbox: Mapping[str, Any] | None = None
    sandbox_traces: tuple[str, ...] = ()
    verifier_ref: str | None = None
    judge: str | None = None
    """The kind of judge."""
    set_aside: Outcome | None = None
    """Its verdict, if judges of its kind may not teach."""
    builds: tuple[str, ...] = ()
    """The packets given to the run, oldest first."""
    encoder: tuple[str, int] | None = None
    """The embedder's name and dimension, if vectors were made."""

    @property
    def first_asked(self) -> LedgerEntry | None:
        return next((entry for entry in self.entries if _is_asked(entry)), None)

    @property
    def last_answered(self) -> LedgerEntry | None:
        answers = [entry for entry in self.entries if entry.kind == "message" and entry.role == "assistant"]
        return answers[-1] if answers else None

    @property
    def injection(self) -> dict[str, Any]:
        """The packet in its prompt: the one its last answer cites, else the last; with all of them if there are
        several.
        """
        if not self.builds:
            return {}
        answered = self.last_answered
        cited = None if answered is None or answered.cited is None else answered.cited.build_id
        ref = cited if cited in self.builds else self.builds[-1]
        return {"injection_ref": ref} | ({"injection_refs": list(self.builds)} if len(self.builds) > 1 else {})


# -- facts --------------------------------------------------------------------------------------------


def build_facts(run: Finished, features: Sequence[Feature] = ()) -> RunFacts:
    """The run as input of a fold."""
    asked, answered = run.first_asked, run.last_answered
    plain: dict[str, Any] = {
        "trace_id": run.trace_id,
        "x_summary": _line(asked) or run.intent.task_family or "a run",
        "intent": run.intent,
        "state": run.state,
        "passed": False,
        "cost": _cost_figure(run_cost(run)),
        "steps": steps_of(run.entries),
        "features": tuple(features),
        "own_features": dict(run.own_features),
        "given_features": _given(run),
        "used_ids": run.recalled.used_ids if run.recalled is not None else (),
        "at": run.entries[-1].ts if run.entries else "",
    }
    if asked is not None and (task := task_digest(asked.content or "")) is not None:
        plain |= {"task": task}
    if run.blocks.attempt is not None:
        plain["attempt"] = run.blocks.attempt
    if run.bucket_key is not None:
        plain["bucket_key"] = run.bucket_key
    else:
        plain["bucket_derived"] = derived_bucket(run.intent, _line(asked))
    if run.reuse is not None and run.reuse.selected_state_id is not None:
        plain["seed_id"] = run.reuse.selected_state_id
    if run.result is not None and not says_nothing(run.result.verdict, run.result.outcome, run.result.reason_codes):
        plain |= {
            "verdict": run.result.verdict,
            "outcome": run.result.outcome,
            "passed": is_pass(run.result.verdict, run.result.outcome),
            "reason_codes": run.result.reason_codes or (),
            "violated": run.result.violated_constraints or (),
        }
        plain |= _cluster(run.result, run.intent, plain["steps"])
    plain |= _judge(run)
    if answered is not None and _line(answered):
        plain["y_summary"] = _line(answered)
    plain |= _said(run)
    return RunFacts.model_validate(plain)


def _said(run: Finished) -> dict[str, Any]:
    """The user's words: search terms for the run, and requests after the first message."""
    texts = [entry.content or "" for entry in run.entries if _is_asked(entry)]
    found = {"said": said_words(texts), "x_later": asked_later(texts, LINE_CHARS_MAX)}
    return {name: text for name, text in found.items() if text}


def _cluster(result: VerifierResult, intent: IntentParts, steps: Sequence[StepFacts]) -> dict[str, Any]:
    """The failure cluster, from the verifier or else derived; empty for a pass."""
    if result.failure_cluster_id is not None:
        return {"cluster_id": result.failure_cluster_id}
    if is_pass(result.verdict, result.outcome):
        return {}
    violated, codes = result.violated_constraints or (), result.reason_codes or ()
    sign = failure_sign(steps, result.notes)
    found = {"cluster_id": derived_cluster(violated, codes, intent, sign)}
    return found if violated or codes else found | {"cluster_sign": failure_words(steps, result.notes)}


def _judge(run: Finished) -> dict[str, Any]:
    """The kind of judge, and any verdict of it that was set aside."""
    known = {"judge": run.judge, "set_aside": run.set_aside}
    return {key: value for key, value in known.items() if value is not None}


def _given(run: Finished) -> dict[str, Any]:
    """Facts known before the run acted: the keys it recalled by."""
    filters = None if run.recalled is None else run.recalled.request.filters
    known = (filters or {}).get("features")
    return dict(known) if isinstance(known, dict) else {}


def without_words(facts: RunFacts) -> RunFacts:
    """The facts without any text, for storage above the user's own level."""
    steps = [{key: value for key, value in step.to_wire().items() if key not in _WORDS} for step in facts.steps]
    kept = {key: value for key, value in facts.to_wire().items() if key not in _SAID}
    named = facts.intent.task_family or "a run"
    features = [each.to_wire() for each in facts.features if not each.name.startswith(_VALUES)]
    labels = {name: _labels(getattr(facts, name)) for name in ("own_features", "given_features")}
    return RunFacts.from_wire(kept | labels | {"x_summary": named, "steps": steps, "features": features})


def _labels(said: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's labels that are short enough to be features."""
    return {name: value for name, value in said.items() if scalar_text(value) is not None}


_SAID = ("said", "x_later", "y_summary", "steps", "cluster_sign", "task")
_WORDS = ("text", "detail")
_VALUES = ("arg:",)
"""Features that hold values of a call: often the user's own words."""


def steps_of(entries: Sequence[LedgerEntry]) -> tuple[StepFacts, ...]:
    """The steps recorded in these entries."""
    return tuple(_step(entry) for entry in entries if _is_step(entry))[:STEPS_MAX]


def _is_asked(entry: LedgerEntry) -> bool:
    return entry.kind == "message" and entry.role == "user"


def _is_step(entry: LedgerEntry) -> bool:
    is_said = entry.kind == "message" and entry.role == "assistant"
    is_act = entry.kind == "step" and entry.step is not None and entry.step.action is not None
    return entry.body is not None and (entry.kind == "tool_result" or is_said or is_act)


def _step(entry: LedgerEntry) -> StepFacts:
    is_said = entry.kind == "message"
    plain: dict[str, Any] = {"evidence_id": entry.id, "action": "say", "kind": "say" if is_said else "call"}
    if entry.tool is not None:
        plain |= {"action": entry.tool.name, "ok": entry.tool.ok}
        if entry.tool.args:
            plain["detail"] = _ends(canonical_text(entry.tool.args))
    elif entry.step is not None and entry.step.action is not None:
        action = entry.step.action
        named = action.get("tool")
        plain["action"] = named if isinstance(named, str) and named else "act"
        plain["detail"] = _ends(canonical_text(action))
    said = _ends(" ".join((entry.content or "").split()))
    if said:
        plain["text"] = said
    return StepFacts.model_validate(plain)


def _ends(text: str) -> str:
    """A text, reduced to its beginning and end if it is long."""
    half = STEP_CHARS_MAX // 2
    return text if len(text) <= STEP_CHARS_MAX else f"{text[:half]} … {text[-half:]}"


def _line(entry: LedgerEntry | None) -> str:
    content = None if entry is None else entry.content
    return " ".join((content or "")[: 4 * LINE_CHARS_MAX].split())[:LINE_CHARS_MAX]


# -- cost ---------------------------------------------------------------------------------------------


def run_cost(run: Finished) -> RunCost:
    """The cost of the run: as reported by the caller, else from its entries."""
    stated = {} if run.cost is None else {key: value for key, value in run.cost.to_wire().items() if value is not None}
    return RunCost.from_wire(_counted(run.entries) | stated)


def _lesson_cost(fold: FoldResult | None) -> dict[str, Any]:
    """The cost of the model that wrote lessons; separate from the agent's cost, by which runs are compared."""
    told = None if fold is None else (fold.model_extra or {}).get("lessons")
    if not isinstance(told, Mapping):
        return {}
    return {f"lesson_{name}": told[name] for name in ("calls", "tokens_in", "tokens_out")}


def _counted(entries: Sequence[LedgerEntry]) -> dict[str, Any]:
    counted: dict[str, Any] = {"tool_calls": sum(entry.kind == "tool_result" for entry in entries)}
    tokens = [entry.step.tokens for entry in entries if entry.step is not None and entry.step.tokens is not None]
    if tokens:
        counted["tokens_out"] = sum(tokens)
    if len(entries) > 1:
        spent = parse_instant(entries[-1].ts) - parse_instant(entries[0].ts)
        counted["latency_ms"] = max(0, round(spent.total_seconds() * 1000))
    return counted


def _cost_figure(cost: RunCost) -> float:
    """One figure to compare runs by: tokens if known, else tool calls."""
    tokens = (cost.tokens_in or 0) + (cost.tokens_out or 0)
    return float(tokens or cost.tool_calls or 0)


# -- the two records ----------------------------------------------------------------------------------


def build_event_log(
    run: Finished, fold: FoldResult | None = None, records: Sequence[MemoryActionRecord] = ()
) -> EventLog:
    """The summary of the run, without blocks it did not use."""
    asked, answered = run.first_asked, run.last_answered
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "trace_id": run.trace_id,
        "x_ref": asked.id if asked is not None else run.trace_id,
        "selected_rules": [each.to_wire() for each in run.selected_rules],
        "run": _run_block(run),
        "verifier": _verifier_block(run.result) | _judge(run),
        "outputs": {"y_ref": answered.id if answered is not None else None} | _blocks(run, _OUTPUTS),
        "cost": run_cost(run).to_wire() | _lesson_cost(fold),
        "flow_tags": _flow_tags(run),
        **_blocks(run, _OWN_BLOCKS),
        **_experiment(run),
        **run.injection,
    }
    plain["bucket_key"] = run.bucket_key or derived_bucket(run.intent, _line(asked))
    plain |= _memory_blocks(run)
    if run.reuse is not None:
        plain["reuse_select"] = {key: value for key, value in run.reuse.to_wire().items() if key != "schema_version"}
    if run.sandbox is not None:
        plain["sandbox"] = dict(run.sandbox)
    if run.encoder is not None:
        plain["repr"] = {"encoder_id": run.encoder[0], "dim": run.encoder[1]}
    if fold is not None:
        plain |= _fold_blocks(fold, records)
    return EventLog.from_wire(plain)


def _verifier_block(result: VerifierResult | None) -> dict[str, Any]:
    if result is None:
        return {"verifier_id": "none", "verdict": "PARTIAL", "outcome": "UNKNOWN"}
    return {"verifier_id": result.verifier_id, "verdict": result.verdict, "outcome": result.outcome}


def _run_block(run: Finished) -> dict[str, Any]:
    block: dict[str, Any] = {"mode": run.blocks.mode, **_blocks(run, ("attempt", "task"))}
    return block if run.cfg is None else block | {"cfg": run.cfg.to_wire()}


_OUTPUTS = ("rollout_summary", "sot_signals", "synth_inputs")
_OWN_BLOCKS = ("sot_profile", "sot_max_turns", "rollout_select", "tree_search", "policy_signals")
_TRIED = ("canary", "baseline", "holdout")
"""Arms of a comparison; an active rule is compared with nothing."""


def _blocks(run: Finished, names: Sequence[str]) -> dict[str, Any]:
    """The blocks reported by the caller, without unused ones."""
    blocks = run.blocks.to_wire()
    return {name: blocks[name] for name in names if name in blocks}


def _experiment(run: Finished) -> dict[str, Any]:
    """The group of attempts the run belongs to, and the rules it tried or left out."""
    experiment = {} if run.blocks.experiment is None else run.blocks.experiment.to_wire()
    arms = [each.to_wire() for each in run.arms if each.arm in _TRIED]
    if arms:
        experiment |= {"kind": "rule_evolve", "arms": arms}
    return {"experiment": experiment} if experiment else {}


def _flow_tags(run: Finished) -> list[str]:
    steps = [entry for entry in run.entries if _is_step(entry)]
    tools = sum(entry.kind == "tool_result" for entry in steps)
    tags = ["tool-heavy"] if steps and tools >= TOOL_HEAVY * len(steps) else []
    tags += ["planner-heavy"] if any(entry.kind == "step" for entry in run.entries) else []
    tags += ["long"] if len(steps) >= LONG else []
    return list(dict.fromkeys([*tags, *run.blocks.flow_tags]))


def _memory_blocks(run: Finished) -> dict[str, Any]:
    """Blocks on recall, and on the tactics among it."""
    if run.recalled is None:
        return {}
    request, response, used = run.recalled.request, run.recalled.response, set(run.recalled.used_ids)
    hints = response.items
    blocks: dict[str, Any] = {
        "memory_recall": {
            "enabled": True,
            "method": response.method or _CONTRACT_METHOD,
            "intent_key": request.intent_key,
            "state_key": request.state_key,
            "sources": sorted({hint.source for hint in hints}),
            "retrieved_ids": [hint.memory_id for hint in hints],
            "used_ids": [hint.memory_id for hint in hints if hint.memory_id in used],
            "top_scores": [hint.score for hint in hints if hint.score is not None],
            "notes": "fallback: no keys, similarity alone" if response.fallback_used else None,
        }
    }
    tactics = [hint for hint in hints if hint.source == "ReuseBuffer"]
    if tactics:
        blocks["praxis"] = {
            "enabled": True,
            "policy": _PRAXIS_POLICY,
            "retrieved_tactic_ids": [hint.memory_id for hint in tactics],
            "used_tactic_ids": [hint.memory_id for hint in tactics if hint.memory_id in used],
            "top_scores": [hint.score for hint in tactics if hint.score is not None],
        }
    return blocks


def _fold_blocks(fold: FoldResult, records: Sequence[MemoryActionRecord]) -> dict[str, Any]:
    op_ids = [record.op_id for record in records]
    return {
        "memory_fold": {
            "enabled": True,
            "fold_id": fold.fold_id,
            "trigger_kind": fold.trigger.kind,
            "ws_id": fold.ws_id,
            "produced_reasoning_ids": fold.produced.reasoning_ids,
            "produced_rule_draft_ids": fold.produced.rule_draft_ids,
            "produced_reuse_state_ids": fold.produced.reuse_state_ids,
            "action_plan_id": fold.action_plan_id,
            "action_record_ids": op_ids,
            "notes": fold.notes,
        },
        "memory_actions": {"enabled": True, "plan_id": fold.action_plan_id, "op_ids": op_ids},
    }


def build_capsule(run: Finished, now: str) -> TraceCapsule:
    """References to the originals of the run, without text."""
    asked, answered = run.first_asked, run.last_answered
    used = run.recalled.used_ids if run.recalled is not None else ()
    return TraceCapsule.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "trace_id": run.trace_id,
            "created_at": now,
            "bucket_key": run.bucket_key or derived_bucket(run.intent, _line(asked)),
            "intent_key": intent_key(run.intent),
            "state_key": state_key(run.state),
            "refs": {
                "x_ref": None if asked is None else asked.id,
                **run.injection,
                "tool_trace_refs": list(run.sandbox_traces) or None,
                "y_ref": None if answered is None else answered.id,
                "verifier_ref": run.verifier_ref,
            },
            "used_memory_ids": list(used) or None,
            "used_rule_ids": [each.rule_id for each in run.selected_rules if each.rule_id is not None] or None,
        }
    )


# -- failures and buckets -----------------------------------------------------------------------------


def derived_cluster(violated: Sequence[str], reason_codes: Sequence[str], intent: IntentParts, sign: str) -> str:
    """The cluster of a failed run: from constraints and reasons if there are any, else from the failure's sign and the
    kind of work.
    """
    if violated or reason_codes:
        return failure_cluster_id(_STAGE, violated, reason_codes)
    work = f"work:{intent.domain_tag or ''}|{intent.task_family or ''}"
    return failure_cluster_id(_STAGE, (), [f"sign:{sign}", work])


def failure_sign(steps: Sequence[StepFacts], notes: str | None) -> str:
    """A normalised description of a failure, equal for similar ones. Used to distinguish clusters and never shown: it
    contains a tool's own words.
    """
    calls = [step for step in steps if step.kind == "call"]
    broken = next((step for step in reversed(calls) if step.ok is False), None)
    if broken is not None:
        kind = error_name(broken) or error_shape(broken.text or "")
        return f"{broken.action} failed: {kind}" if kind else f"{broken.action} failed"
    noted = error_shape(notes or "")
    if noted:
        return noted
    return f"wrong after {calls[-1].action}" if calls else "wrong answer"


def failure_words(steps: Sequence[StepFacts], notes: str | None) -> str:
    """The description that may be shown: the kind of error of a failed call, or the verifier's words."""
    broken = next((step for step in reversed(steps) if step.kind == "call" and step.ok is False), None)
    if broken is None:
        return failure_sign(steps, notes)
    kind = error_name(broken)
    return f"{broken.action} fails with {kind}" if kind else f"{broken.action} fails"


def derived_bucket(intent: IntentParts, asked: str) -> str:
    """The bucket of a run for which the caller named none."""
    domain = intent.domain_tag or intent.task_family or DEFAULT_DOMAIN
    return bucket_key("med", domain, _clarity(intent, asked))


def _clarity(intent: IntentParts, asked: str) -> Level:
    """High if answer form or constraints were specified beforehand; low if hardly anything was."""
    if intent.output_format or intent.constraint_profile:
        return "high"
    words = len(asked[:_READ_CHARS_MAX].split()) if asked.isascii() else len(asked)
    return "low" if words < _ASKED_WORDS_MIN else "med"


# -- reading logs back --------------------------------------------------------------------------------


_ENDED = ("passed", "failed")
"""Statuses of a log whose run has ended. A run has one such version."""


class LogWindow(NamedTuple):
    """A selection of a bank's logs: learned from `start` until before `end`, of one bucket, of one kind of work."""

    owner: str
    start: str | None = None
    end: str | None = None
    bucket_key: str | None = None
    name: str | None = None
    newest: int | None = None
    """At most this many, newest first, counted before filtering by bucket."""


class _Log(NamedTuple):
    created_at: str
    body: str | None


def stream_logs(
    reader: Reader, window: LogWindow, *, newest_first: bool = True
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the time each was learned, and its body. Buckets are matched by text search, so others may be included."""
    where: tuple[Condition, ...] = (
        ("kind", "=", "event_log"),
        ("user_id", "=", window.owner),
        ("status", "in", _ENDED),
        ("created_at", ">=", window.start or ""),  # always included: an index then returns rows in this order, unsorted
    )
    if window.name is not None:
        where = (*where, ("name", "=", window.name))
    if window.end is not None:
        where = (*where, ("created_at", "<", window.end))
    needle = None if window.bucket_key is None else canonical_text(window.bucket_key)
    order = ("created_at", "id", "version")
    for at, text in stream(reader, ITEMS, where, into=_Log, order=order, descending=newest_first, limit=window.newest):
        if text is not None and (needle is None or needle in text):  # neither forgotten, nor read in vain
            yield at, cast("dict[str, Any]", read_canonical(text))


_UNSAID = dict(RunFacts(trace_id="unsaid", x_summary="", passed=False, at=""))


def peer_of(kept: Mapping[str, Any]) -> RunFacts:
    """A stored run, without validation: it was validated on writing, and a fold reads hundreds."""
    said = {key: tuple(value) if isinstance(value, list) else value for key, value in kept.items()}
    said["features"] = tuple(_feature(each["name"], each.get("before", False)) for each in kept.get("features", ()))
    said["intent"] = IntentParts.from_wire(kept.get("intent", {}))
    said["state"] = StateParts.from_wire(kept.get("state", {}))
    return RunFacts.unchecked(_UNSAID | said, set(kept))


@remembered(1 << 14)
def _feature(name: str, before: bool) -> Feature:
    """A feature. Cached, as runs of one kind share most of theirs."""
    return Feature(name=name, before=before)
