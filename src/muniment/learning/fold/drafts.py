"""Drafts of rules (RC-18): proposed, with evidence, mechanism, predicted failures and the tests they will need.

Guardrails come from failures that keep coming back, strategies from what separates passing from failing runs. A draft
is never a rule: the gate that could make one of it is another room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from muniment.contracts.learning import FoldTriggerKind
from muniment.contracts.rules import DistillDraft
from muniment.core.canonical import short_id
from muniment.core.policy import FoldPolicy
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.core.scope import Level, RuleType
from muniment.learning.fold.advice import (
    advice_of,
    conditions_of,
    got_past,
    intent_conditions,
    named_beside,
    newest_with,
    shared_error,
    sources_of,
    support_words,
)
from muniment.learning.fold.blame import blame
from muniment.learning.fold.contrast import Separation
from muniment.learning.fold.distill import ANYWHERE, BankIds, is_judged, shared_intent
from muniment.learning.fold.features import MET, features_of, group_of
from muniment.learning.fold.results import condition_words
from muniment.learning.fold.signals import derived_cluster, failure_sign, failure_words, is_telling
from muniment.learning.fold.wording import Writer
from muniment.learning.keys import intent_key
from muniment.learning.stored_memory import RunFacts
from muniment.verify.constraints import DEFAULT_REGISTRY

__all__ = ["cluster_of", "drafts"]

_TRACES_MAX = 12
_STEPS_MAX = 6
_UNNAMED = "act"
"""The step of a run that names no tool: to whoever is to follow a rule it says nothing."""
_LISTED_MAX = 4


class _Foreseen(NamedTuple):
    """A way in which a rule of this kind may fail."""

    kind: str
    description: str
    trigger: str
    severity: Level


_TOOLS = (
    _Foreseen("tool_misroute", "the tool is called where another would do", "the named tool is not available", "med"),
    _Foreseen("distribution_shift", "it was learnt from few tasks of one kind", "a task of another family", "med"),
    _Foreseen("overconstraint", "tasks that need no such call pay for one", "a task with a short answer", "low"),
)
_FORMS = (
    _Foreseen("format_leak", "the form is named and copied into the answer", "the prompt shows the form", "med"),
    _Foreseen("instruction_conflict", "the user asks for another form", "a form stated by the user", "high"),
    _Foreseen("overconstraint", "answers that need no form are forced into one", "free text is wanted", "low"),
)
_OTHERS = (
    _Foreseen("context_dilution", "one line more in a long prompt is overlooked", "many hints at once", "low"),
    _Foreseen("distribution_shift", "it was learnt from few tasks of one kind", "a task of another family", "med"),
    _Foreseen("underconstraint", "it warns of what happened and not of its cause", "the same end, another way", "med"),
)


def cluster_of(run: RunFacts) -> str | None:
    """Which failure this is; None where it is none, or nobody judged it. Runs of earlier versions have none written."""
    if run.passed or not is_judged(run):
        return None
    if run.cluster_id is not None:
        return run.cluster_id
    return derived_cluster(run.violated, run.reason_codes, run.intent, failure_sign(run.steps, None))


def drafts(
    run: RunFacts,
    runs: Sequence[RunFacts],
    separations: Sequence[Separation],
    *,
    policy: FoldPolicy,
    trigger: FoldTriggerKind | None,
    writer: Writer,
    place: BankIds = ANYWHERE,
) -> list[DistillDraft]:
    """At most `drafts_max` of each type, the best supported first. `runs` are those compared, `run` among them."""
    common: dict[str, Any] = {"policy": policy, "writer": writer, "place": place}
    guards = [
        *_cluster_drafts(run, runs, is_asked=trigger == "fail_cluster", **common),
        *_separation_drafts(run, runs, [one for one in separations if not one.helps], **common),
    ]
    strategies = _separation_drafts(run, runs, [one for one in separations if one.helps], **common)
    return [*guards[: policy.drafts_max], *strategies[: policy.drafts_max]]


# -- guardrails: failures that come back --------------------------------------------------------------


def _cluster_drafts(
    run: RunFacts, runs: Sequence[RunFacts], *, policy: FoldPolicy, is_asked: bool, writer: Writer, place: BankIds
) -> list[DistillDraft]:
    """One for the failure of this run, once it has come back often enough, or when a trigger asks."""
    cluster = cluster_of(run)
    alike = [one for one in runs if cluster is not None and cluster_of(one) == cluster]
    if not alike or (len(alike) < policy.cluster_min and not is_asked):
        return []
    titles = [*run.violated[:_LISTED_MAX], *run.reason_codes[:_LISTED_MAX]]
    sign = run.cluster_sign or failure_words(run.steps, None)
    if not titles and run.cluster_id is not None and not is_telling(sign):
        return []  # that something was wrong is no rule
    error = shared_error(alike)
    failed = sign if error is None else condition_words(error)
    title = f"Against {', '.join(titles)}" if titles else f"Against: {failed}"
    steps = _suspects(alike, writer)
    mended, past = ("", ()) if error is None else got_past(error, runs)
    told_by = (run.trace_id, *newest_with([] if error is None else [f"{MET}{error}"], alike), *past)
    warnings = _warnings(run) if titles else [] if mended else [f"Runs of this kind keep ending so: {failed}"]
    where = _at_tools(alike, steps) if titles else ""
    body = writer.join([*warnings, mended, f"Seen in {len(alike)} of {len(runs)} runs{where}"])
    evidence: JsonObject = {
        "cluster_id": cluster,
        "failing": len(alike),
        "seen": len(runs),
        "violated": list(run.violated),
        "reason_codes": list(run.reason_codes),
        **_steps_block(steps),
    }
    basis = [*run.violated, *(f"reason:{code}" for code in run.reason_codes)]
    names = sources_of([one.trace_id for one in reversed(alike)][:_TRACES_MAX], told_by, run, runs)
    plain = _draft("GuardrailRule", ["cluster", cluster], run, names, basis, place)
    plain["proposed_rule"] |= {"title": title, "body": body, "applicability": _applicability(run, None, alike)}
    plain["evidence"] = plain["evidence"] | evidence
    plain["failure_prediction"]["mechanism"] = (
        f"The same failure came back in {len(alike)} runs; naming it before the run acts keeps the agent from it"
    )
    return [DistillDraft.from_wire(plain)] if writer.clean(title) and writer.clean(body) else []


def _at_tools(runs: Sequence[RunFacts], steps: Sequence[dict[str, Any]]) -> str:
    """`, most often at book`: the tool whose calls are most to blame, where it is a tool's call at all."""
    called = {step.evidence_id for run in runs for step in run.steps if step.kind == "call" and step.action != _UNNAMED}
    blamed = Counter(step["action"] for step in steps if step["evidence_id"] in called and step["action"])
    return f", most often at {min(blamed, key=lambda tool: (-blamed[tool], tool))}" if blamed else ""


def _warnings(run: RunFacts) -> list[str]:
    """What the broken constraints ask for, and what the reasons mean, in the registry's words."""
    warnings = []
    for key in run.violated[:_LISTED_MAX]:
        entry = DEFAULT_REGISTRY.keys.get(":".join(key.split(":", 2)[:2]))
        warnings.append(f"Keep {key}: {entry.says}" if entry is not None else f"Keep {key}")
    if not warnings:
        for code in run.reason_codes[:_LISTED_MAX]:
            says = DEFAULT_REGISTRY.reasons.get(code)
            warnings.append(f"Guard against {code}: {says}" if says is not None else f"Guard against {code}")
    return warnings


def _suspects(runs: Sequence[RunFacts], writer: Writer) -> list[dict[str, Any]]:
    """The steps most to blame, one of each run, the newest runs first."""
    found = []
    for one in [one for one in reversed(runs) if one.steps][:_STEPS_MAX]:
        suspect = blame(one)[0]
        found.append(
            {
                "trace_id": one.trace_id,
                "evidence_id": suspect.evidence_id,
                "step": suspect.step,
                "action": writer.quote(one.steps[suspect.step].action, 80),
                "score": round(suspect.score, 4),
                "why": list(suspect.why),
            }
        )
    return found


def _steps_block(steps: Sequence[dict[str, Any]]) -> JsonObject:
    return {"steps": list(steps), "evidence_ids": [step["evidence_id"] for step in steps]}


# -- both: what separates -----------------------------------------------------------------------------


def _separation_drafts(
    run: RunFacts,
    runs: Sequence[RunFacts],
    separations: Sequence[Separation],
    *,
    policy: FoldPolicy,
    writer: Writer,
    place: BankIds,
) -> list[DistillDraft]:
    """What separates: do this, or leave that.

    It need be no surer than a tactic: gate, replay and trial ask for more than a contrast of few runs can show, and
    what is drafted late is of no use to anybody for long.
    """
    made: list[DistillDraft] = []
    for one in separations:
        if len(made) == policy.drafts_max:
            break
        advice = advice_of(one, runs, writer.quote)
        if advice is None or not writer.clean(advice.line):
            continue
        line, support = advice.line, support_words(one)
        compared = [peer for peer in runs if peer.trace_id in one.compared]
        having = [peer for peer in compared if any(feature.name == one.feature for feature in features_of(peer))]
        telling = [peer for peer in having if peer.passed == one.helps]
        type_: RuleType = "StrategyRule" if one.helps else "GuardrailRule"
        names = sources_of([peer.trace_id for peer in reversed(telling)][:_TRACES_MAX], advice.told_by, run, runs)
        plain = _draft(type_, ["feature", one.feature], run, names, [one.feature, *one.also], place)
        plain["proposed_rule"] |= {
            "title": line,
            "body": writer.join([f"{line}: {support}", advice.passing]),
            "applicability": _applicability(run, one, runs),
        }
        plain["evidence"] = plain["evidence"] | {
            "feature": one.feature,
            "also": named_beside(one.also, names, runs, _LISTED_MAX),
            "with": one.with_tally.to_wire(),
            "without": one.without_tally.to_wire(),
            "difference": round(one.difference, 4),
            "low": round(one.bounds.lower, 4),
            "high": round(one.bounds.upper, 4),
            "strata": one.strata,
            "probability": round(one.probability, 6),
            "doubt": round(one.doubt, 6),
            **_steps_block([] if one.helps else _suspects(telling[-_STEPS_MAX:], writer)),
        }
        plain["failure_prediction"]["mechanism"] = (
            f"Runs that are alike otherwise differ in it and in how they end: {support}"
        )
        made.append(DistillDraft.from_wire(plain))
    return made


# -- what all drafts have -----------------------------------------------------------------------------


def _draft(
    type_: RuleType,
    basis: Sequence[Any],
    run: RunFacts,
    trace_ids: Sequence[str],
    features: Sequence[str],
    place: BankIds,
) -> dict[str, Any]:
    draft_id = place.id_of("draft", [type_, intent_key(shared_intent(run)), *basis])
    sources = list(trace_ids)
    foreseen = _foreseen(features)
    return {
        "schema_version": RULECRAFT_VERSION,
        "draft_id": draft_id,
        "source_trace_ids": sources,
        "proposed_rule": {"type": type_},
        "evidence": {"trace_ids": sources},
        "failure_prediction": {
            "dependencies": _dependencies(features),
            "predicted_failures": [
                {"id": one.kind, "description": one.description, "triggers": [one.trigger], "severity": one.severity}
                for one in foreseen
            ],
        },
        "micro_regression_packs": _packs(features),
        "tests": {
            "regression_tests": [short_id("test", [draft_id, "regression"])],
            "counterexample_tests": [short_id("test", [draft_id, kind]) for kind in ("cluster", "boundary")],
        },
    }


def _applicability(run: RunFacts, separation: Separation | None, runs: Sequence[RunFacts]) -> JsonObject:
    known: JsonObject = {
        name: value
        for name, value in (("domain_tag", run.intent.domain_tag), ("task_family", run.intent.task_family))
        if value is not None
    }
    conditions = intent_conditions(run.intent) if separation is None else conditions_of(separation, run, runs)
    if conditions:
        known["predicates"] = list(conditions)
    if run.bucket_key is not None:
        known["bucket_keys"] = [run.bucket_key]
    return known


def _foreseen(features: Iterable[str]) -> tuple[_Foreseen, ...]:
    groups = {_kind_of(feature) for feature in features}
    if "format" in groups:
        return _FORMS
    return _TOOLS if "tool" in groups else _OTHERS


def _dependencies(features: Iterable[str]) -> list[str]:
    """What the draft leans on: the tools, the form, the caller's own settings."""
    return sorted({_kind_of(feature) for feature in features}) or ["memory"]


def _packs(features: Iterable[str]) -> list[str]:
    names = {"format": "FORMAT", "tool": "TOOL", "budget": "BUDGET"}
    found = {names[kind] for kind in map(_kind_of, features) if kind in names}
    return sorted(found) or ["FORMAT"]


def _kind_of(feature: str) -> str:
    """What a feature or a constraint key is about."""
    group = group_of(feature)
    if group in ("FORMAT", "SCHEMA", "CONTENT"):
        return "format"
    if feature.startswith(("TOOL:BUDGET", "POLICY:BUDGET")) or group == "steps":
        return "budget"
    if group in (
        "TOOL",
        "tool",
        "first",
        "order",
        "args",
        "arg",
        "then",
        "edit",
        "mend",
        "error",
        "recovered",
        "repeat",
    ):
        return "tool"
    return {"own": "strategy", "check": "verifier", "reason": "verifier", "POLICY": "policy"}.get(group, "memory")
