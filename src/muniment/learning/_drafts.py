"""Drafts of rules (RC-18), with evidence, mechanism, predicted failures and required tests. Pure.

Guardrails come from recurring failures, strategies from features that separate passing from failing runs. A prohibition
is only drafted for actions that no passing run took in the comparison. A draft is never in force; the gate that can
make it a rule is in another room.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from muniment.contracts.learning import FoldTriggerKind
from muniment.contracts.rules import DistillDraft
from muniment.core.canonical import short_id
from muniment.core.policy import FoldPolicy
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.core.scope import Level, RuleType
from muniment.core.text.patterns import lazy_pattern
from muniment.learning._contrast import Separation
from muniment.learning._episodes import Writer
from muniment.learning._features import error_name, features_of, group_of, is_error, scalar_text
from muniment.learning.event_logs import derived_cluster, failure_sign, failure_words
from muniment.learning.keys import BankIds, intent_key, shared_intent
from muniment.learning.records import IntentParts, RunFacts, StepFacts
from muniment.verify.constraints import DEFAULT_REGISTRY

__all__ = ["CLUSTER_MIN", "draft_rules"]

_TRACES_MAX, _STEPS_MAX, _LISTED_MAX, _CONDITIONS_MAX = 12, 6, 4, 4
CLUSTER_MIN = 3
"""Occurrences that make a failure a cluster."""
_UNNAMED = "act"
"""A step without a tool name, which is no use in a rule."""
_UNESCAPED = lazy_pattern(r'[^"\\\x00-\x1f\x7f\ud800-\udfff]{1,200}')
_IDENTIFIER = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")

_DO: Mapping[str, str] = {
    "own": "Use {0}",
    "tool": "Call {0}",
    "first": "Start with {0}",
    "order": "Call {0} right before {1}",
    "arg": "Call {0} with {1}",
}
_LEAVE: Mapping[str, str] = {
    "own": "Avoid {0}",
    "tool": "Do not call {0}",
    "first": "Do not start with {0}",
    "order": "Do not call {1} right after {0}",
    "arg": "Do not call {0} with {1}",
    "error": "Check what {0} is given before calling it",
}
_HARMLESS = ("own", "error")
"""Groups whose warning forbids no action: a caller's own setting, a failing call."""


class _Foreseen(NamedTuple):
    """A possible failure of a rule of this kind."""

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


class _Drafting(NamedTuple):
    """The folded run, the compared runs including it, and the tools for writing drafts."""

    run: RunFacts
    runs: Sequence[RunFacts]
    policy: FoldPolicy
    writer: Writer
    ids: BankIds


def draft_rules(
    run: RunFacts,
    runs: Sequence[RunFacts],
    separations: Sequence[Separation],
    *,
    policy: FoldPolicy,
    trigger: FoldTriggerKind | None,
    writer: Writer,
    ids: BankIds,
) -> list[DistillDraft]:
    """Draft at most `drafts_max` rules of each type, the best supported first. `runs` are those compared, including
    `run`.
    """
    drafting = _Drafting(run, runs, policy, writer, ids)
    guards = [
        *_cluster_drafts(drafting, is_asked=trigger == "fail_cluster"),
        *_separation_drafts(drafting, [one for one in separations if not one.helps]),
    ]
    strategies = _separation_drafts(drafting, [one for one in separations if one.helps])
    return [*guards[: policy.drafts_max], *strategies[: policy.drafts_max]]


# -- guardrails: failures that come back --------------------------------------------------------------


def _cluster_drafts(drafting: _Drafting, *, is_asked: bool) -> list[DistillDraft]:
    """Draft a guardrail for this run's failure, once it has recurred often enough, or if a trigger asks."""
    run, runs, _, writer, _ = drafting
    cluster = _cluster_of(run)
    alike = [one for one in runs if cluster is not None and _cluster_of(one) == cluster]
    if not alike or (len(alike) < CLUSTER_MIN and not is_asked):
        return []
    titles = [*run.violated[:_LISTED_MAX], *run.reason_codes[:_LISTED_MAX]]
    sign = run.cluster_sign or failure_words(run.steps, None)
    if not titles and run.cluster_id is not None and not _suspects(alike, writer):
        return []  # an unspecific failure makes no rule
    title = f"Against {', '.join(titles)}" if titles else f"Against: {sign}"
    steps = _suspects(alike, writer)
    warnings = _warnings(run) if titles else [f"Runs of this kind keep ending so: {sign}"]
    where = _at_tools(alike, steps) if titles else ""
    body = writer.join([*warnings, f"Seen in {len(alike)} of {len(runs)} runs{where}"])
    evidence: JsonObject = {
        "cluster_id": cluster,
        "failing": len(alike),
        "seen": len(runs),
        "violated": list(run.violated),
        "reason_codes": list(run.reason_codes),
        **_steps_block(steps),
    }
    basis = [*run.violated, *(f"reason:{code}" for code in run.reason_codes)]
    names = [one.trace_id for one in reversed(alike)][:_TRACES_MAX]
    names += [] if run.trace_id in names else [run.trace_id]
    plain = _draft("GuardrailRule", ["cluster", cluster], drafting, names, basis)
    plain["proposed_rule"] |= {"title": title, "body": body, "applicability": _applicability(drafting, None)}
    plain["evidence"] = plain["evidence"] | evidence
    plain["failure_prediction"]["mechanism"] = (
        f"The same failure came back in {len(alike)} runs; naming it before the run acts keeps the agent from it"
    )
    return [DistillDraft.from_wire(plain)] if writer.clean(title) and writer.clean(body) else []


def _cluster_of(run: RunFacts) -> str | None:
    """The failure cluster of a run; None if it passed or was not judged."""
    if run.passed or run.verdict is None:
        return None
    if run.cluster_id is not None:
        return run.cluster_id
    return derived_cluster(run.violated, run.reason_codes, run.intent, failure_sign(run.steps, None))


def _at_tools(runs: Sequence[RunFacts], steps: Sequence[Mapping[str, Any]]) -> str:
    """`, most often at book`: the tool whose calls failed most often, if any."""
    called = {step.evidence_id for run in runs for step in run.steps if step.kind == "call" and step.action != _UNNAMED}
    blamed = Counter(step["action"] for step in steps if step["evidence_id"] in called and step["action"])
    return f", most often at {min(blamed, key=lambda tool: (-blamed[tool], tool))}" if blamed else ""


def _warnings(run: RunFacts) -> list[str]:
    """The broken constraints and the reasons, in the registry's words."""
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
    """The last failed call of each run, newest runs first: the first place for a reviewer to look."""
    found = []
    for one in reversed(runs):
        place = next((at for at in reversed(range(len(one.steps))) if _failed(one.steps[at])), None)
        if place is not None:
            step = one.steps[place]
            found.append(
                {
                    "trace_id": one.trace_id,
                    "evidence_id": step.evidence_id,
                    "step": place,
                    "action": writer.quote(step.action, 80),
                    "why": [error_name(step) or "failed"],
                }
            )
    return found[:_STEPS_MAX]


def _failed(step: StepFacts) -> bool:
    return step.kind == "call" and is_error(step)


def _steps_block(steps: Sequence[Mapping[str, Any]]) -> JsonObject:
    return {"steps": [dict(step) for step in steps], "evidence_ids": [step["evidence_id"] for step in steps]}


# -- both: features that separate ---------------------------------------------------------------------


def _separation_drafts(drafting: _Drafting, separations: Sequence[Separation]) -> list[DistillDraft]:
    """Draft advice for or against a feature. Gate, replay and trial demand more than a contrast of few runs
    can show.
    """
    run, runs, policy, writer, _ = drafting
    made: list[DistillDraft] = []
    for one in separations:
        if len(made) == policy.drafts_max:
            break
        line = _advice(one)
        if line is None or not writer.clean(line):
            continue
        support = _support_words(one)
        having = [peer for peer in runs if peer.trace_id in one.compared and _has(peer, one.feature)]
        telling = [peer for peer in having if peer.passed == one.helps]
        type_: RuleType = "StrategyRule" if one.helps else "GuardrailRule"
        names = [peer.trace_id for peer in reversed(telling)][:_TRACES_MAX] or [run.trace_id]
        if not any(peer.bucket_key == run.bucket_key for peer in telling):
            names.append(run.trace_id)  # a draft bound to a bucket names a run of it
        known = set().union(*({f.name for f in features_of(peer)} for peer in runs if peer.trace_id in names))
        plain = _draft(type_, ["feature", one.feature], drafting, list(dict.fromkeys(names)), [one.feature, *one.also])
        plain["proposed_rule"] |= {
            "title": line,
            "body": writer.join([f"{line}: {support}"]),
            "applicability": _applicability(drafting, one),
        }
        plain["evidence"] = plain["evidence"] | {
            "feature": one.feature,
            "also": [feature for feature in one.also if feature in known][:_LISTED_MAX],
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


def _has(run: RunFacts, name: str) -> bool:
    return any(feature.name == name for feature in features_of(run))


def _advice(separation: Separation) -> str | None:
    """One sentence of advice; None if it is not actionable, or a solution may need what it forbids."""
    group, rest = group_of(separation.feature), separation.feature.partition(":")[2]
    if separation.is_before or (not separation.helps and separation.is_needed and group not in _HARMLESS):
        return None
    line = (_DO if separation.helps else _LEAVE).get(group)
    if line is None or not rest:
        return None
    if group == "order":
        return line.format(*rest.split(">", 1))
    if group == "arg":
        tool, _, said = rest.partition("=")
        tool, _, name = tool.rpartition(".")
        return line.format(tool, f"{name}={said}")
    return line.format(rest)


def _support_words(separation: Separation) -> str:
    """`passed 8 of 9 with it, 2 of 9 without`, among the compared runs."""
    mine, other = separation.with_tally, separation.without_tally
    said = f"passed {mine.passes} of {mine.n} with it, {other.passes} of {other.n} without"
    return f"{said}, on the same tasks" if separation.strata > 1 else said


# -- common to all drafts -----------------------------------------------------------------------------


def _draft(
    type_: RuleType, basis: Sequence[Any], drafting: _Drafting, trace_ids: Sequence[str], features: Sequence[str]
) -> dict[str, Any]:
    draft_id = drafting.ids.id_of("draft", [type_, intent_key(shared_intent(drafting.run.intent)), *basis])
    kinds = sorted({_kind_of(feature) for feature in features})
    foreseen = _FORMS if "format" in kinds else _TOOLS if "tool" in kinds else _OTHERS
    packs = {"format": "FORMAT", "tool": "TOOL", "budget": "BUDGET"}
    return {
        "schema_version": RULECRAFT_VERSION,
        "draft_id": draft_id,
        "source_trace_ids": list(trace_ids),
        "proposed_rule": {"type": type_},
        "evidence": {"trace_ids": list(trace_ids)},
        "failure_prediction": {
            "dependencies": kinds or ["memory"],
            "predicted_failures": [
                {"id": one.kind, "description": one.description, "triggers": [one.trigger], "severity": one.severity}
                for one in foreseen
            ],
        },
        "micro_regression_packs": sorted({packs[kind] for kind in kinds if kind in packs}) or ["FORMAT"],
        "tests": {
            "regression_tests": [short_id("test", [draft_id, "regression"])],
            "counterexample_tests": [short_id("test", [draft_id, kind]) for kind in ("cluster", "boundary")],
        },
    }


def _kind_of(feature: str) -> str:
    """The part of a run that a feature or a constraint key concerns."""
    group = group_of(feature)
    if group in ("FORMAT", "SCHEMA", "CONTENT"):
        return "format"
    if feature.startswith(("TOOL:BUDGET", "POLICY:BUDGET")):
        return "budget"
    if group in ("TOOL", "tool", "first", "order", "arg", "error"):
        return "tool"
    return {"own": "strategy", "reason": "verifier", "POLICY": "policy"}.get(group, "memory")


def _applicability(drafting: _Drafting, separation: Separation | None) -> JsonObject:
    run = drafting.run
    known = _named({"domain_tag": run.intent.domain_tag, "task_family": run.intent.task_family})
    conditions = _intent_conditions(run.intent)
    if separation is not None:
        conditions += _given_conditions(separation, drafting.runs)
    if conditions:
        known["predicates"] = list(conditions)
    return known | _named({"bucket_keys": None if run.bucket_key is None else [run.bucket_key]})


def _named(parts: Mapping[str, Any]) -> JsonObject:
    return {name: value for name, value in parts.items() if value is not None}


def _intent_conditions(intent: IntentParts) -> list[str]:
    """Conditions on the kind of work, as far as known."""
    known = (("domain_tag", intent.domain_tag), ("task_family", intent.task_family))
    return [text for name, value in known if value is not None and (text := _equals(name, value)) is not None]


def _given_conditions(separation: Separation, runs: Sequence[RunFacts]) -> list[str]:
    """Conditions given by the callers of the runs that show the effect, and not of all runs."""
    given = {
        f"given:{name}={scalar_text(value)}": (name, value)
        for run in runs
        for name, value in run.given_features.items()
    }
    if not given:
        return []
    names: dict[str, set[str]] = {run.trace_id: {feature.name for feature in features_of(run)} for run in runs}
    telling = [
        names[run.trace_id]
        for run in runs
        if run.passed == separation.helps and separation.feature in names[run.trace_id]
    ]
    shared = set.intersection(*telling) if telling else set()
    special = {name for name in shared if name in given and not all(name in each for each in names.values())}
    wanted = sorted(special)[:_CONDITIONS_MAX]
    return [text for name in wanted if (text := _condition(*given[name]))]


def _condition(name: str, value: Any) -> str | None:
    """`x_features.size == "large"`; None for a name that a predicate cannot express, or a number unlikely to recur."""
    if _IDENTIFIER.fullmatch(name) is None or isinstance(value, float):
        return None
    return _equals(f"x_features.{name}", value)


def _equals(path: str, value: str | int | bool) -> str | None:
    """The condition as a predicate; None for a text that is long or needs escaping."""
    if isinstance(value, str) and _UNESCAPED.fullmatch(value) is None:
        return None
    return f"{path} == {json.dumps(value, ensure_ascii=False)}"
