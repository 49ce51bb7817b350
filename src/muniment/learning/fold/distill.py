"""What a finished run leaves for the next: an episode, tactics where runs of one intent differ, a seed.

Everything told is counted: a tactic says how often it passed with and without. Ids are derived, so that folding again
gives the next version of the same record and never a second one beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from statistics import median
from typing import Any, NamedTuple

from muniment.contracts.learning import ConditionalTactic, ReasoningMemory, ReuseStateRecord
from muniment.core.canonical import short_id
from muniment.core.policy import LearnPolicy
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.core.text.patterns import lazy_pattern
from muniment.learning._episodes import (
    ASKED_CHARS,
    episode_fields,
    read_episode,
    render_steps,
    steps_told,
    transcript,
)
from muniment.learning.fold.advice import Advice, advice_of, conditions_of, named_beside, sources_of, support_words
from muniment.learning.fold.contrast import Separation
from muniment.learning.fold.features import features_of, steps_with
from muniment.learning.fold.wording import Writer
from muniment.learning.keys import intent_key, state_key
from muniment.learning.stored_memory import IntentParts, RunFacts, StoredMemory, Tally
from muniment.verify.results import score_of

__all__ = [
    "ANYWHERE",
    "BankIds",
    "Distilling",
    "episode",
    "episode_id",
    "is_judged",
    "keys_of",
    "learnt_of",
    "seed",
    "seed_id",
    "shared_intent",
    "shared_keys_of",
    "tactic",
    "tactic_id",
    "with_clean_names",
]

_UNNAMED = "a tool"
_NAME = lazy_pattern(r"[\w.:/@-]{1,100}")
"""What a tool may be called, to be told by its name."""
_TASK_CHARS = 240
_LATER_CHARS = 80
_TAGS_MAX = 24
_TRACES_MAX = 12
_EVENTS_MAX = 4
_ALSO_MAX = 4
_SEED_PROMPT_CHARS = 400
_COST_SHARE = 0.2
"""How much of a seed's reward its cost can take."""


class BankIds(NamedTuple):
    """The bank a fold is for: what two banks learn alike is two records."""

    name: str = ""
    erased: frozenset[str] = frozenset()
    """Ids of what was forgotten there, which are not used again."""

    def id_of(self, prefix: str, parts: Sequence[Any]) -> str:
        """The id of what is learnt from several runs: the first of its kind that is not erased."""
        ids = (short_id(prefix, [self.name, *parts, *([number] if number else [])]) for number in count())
        return next(id_ for id_ in ids if id_ not in self.erased)


ANYWHERE = BankIds()


class Distilling(NamedTuple):
    """What all of them need."""

    policy: LearnPolicy
    now: str
    writer: Writer
    place: BankIds = ANYWHERE


def is_judged(run: RunFacts) -> bool:
    """A verifier has spoken: before that a run neither passed nor failed."""
    return run.verdict is not None


def keys_of(run: RunFacts) -> dict[str, str]:
    """The keys a record of this run is found by; a part that says nothing makes none."""
    keys = {"bucket_key": run.bucket_key}
    if any(value is not None for _, value in run.intent):
        keys["intent_key"] = intent_key(run.intent)
    if any(value is not None for _, value in run.state):
        keys["state_key"] = state_key(run.state)
    return {name: key for name, key in keys.items() if key is not None}


def shared_intent(run: RunFacts) -> IntentParts:
    """What it has in common with the runs it is compared with: domain and family; tools and form may differ."""
    known = {"domain_tag": run.intent.domain_tag, "task_family": run.intent.task_family}
    return IntentParts.model_validate({name: value for name, value in known.items() if value is not None})


def shared_keys_of(run: RunFacts) -> dict[str, str]:
    """The keys of what was learnt by comparing: it holds for all runs that were compared."""
    return keys_of(run.model_copy(update={"intent": shared_intent(run)}))


# -- episodes -----------------------------------------------------------------------------------------


def episode_id(run: RunFacts) -> str:
    return short_id("mem", ["episode", run.trace_id])


def episode(run: RunFacts, distilling: Distilling) -> ReasoningMemory:
    """The run as a reusable unit: what was asked, how it ended and why, what was done; and what a search reads."""
    writer = distilling.writer
    request = " – ".join(
        filter(None, (writer.quote(run.x_summary, ASKED_CHARS), writer.quote(run.x_later, _LATER_CHARS)))
    )
    fields = episode_fields(run, writer.clean, request)
    told = read_episode(fields)
    assert told is not None
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "memory_id": episode_id(run),
        "kind": "episode",
        "created_at": distilling.now,
        **keys_of(run),
        "status": "active" if is_judged(run) else "temporary",
        "ttl": distilling.policy.reasoning_ttl,
        "summary": told.text,
        "tags": _tags(run),
        "trace_ids": [run.trace_id],
        "avg_cost": run.cost,
        **fields,
    }
    if is_judged(run):
        plain["pass_p_hat"] = float(run.passed)
    if searched := transcript(run, writer.clean):
        plain["transcript"] = searched
    return ReasoningMemory.from_wire(plain)


def with_clean_names(run: RunFacts, writer: Writer) -> RunFacts:
    """The run, where tools or codes have names that may not be quoted, without those names. A name with spaces or
    signs of a sentence could say anything in the line that names it.
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


def _ending(run: RunFacts) -> str:
    if not is_judged(run):
        return "Not judged yet"
    word = "Passed" if run.passed else "Failed"
    reasons = [*run.violated[:3], *run.reason_codes[:3]]
    return f"{word}: {', '.join(reasons)}" if reasons else word


def _tags(run: RunFacts) -> list[str]:
    ending = ("pass" if run.passed else "fail") if is_judged(run) else "unjudged"
    tools = sorted({f"tool:{step.action}" for step in run.steps if step.kind == "call"})
    reasons = sorted({f"reason:{code}" for code in run.reason_codes})
    return [ending, *reasons, *tools][:_TAGS_MAX]


# -- tactics ------------------------------------------------------------------------------------------


def tactic_id(run: RunFacts, feature: str, *, helps: bool, place: BankIds) -> str:
    """One for each bank, intent, feature and direction."""
    return place.id_of("tac", [intent_key(shared_intent(run)), feature, "do" if helps else "avoid"])


def tactic(
    separation: Separation, run: RunFacts, runs: Sequence[RunFacts], distilling: Distilling, old: StoredMemory | None
) -> ConditionalTactic | None:
    """The separation as a tactic, or as the next version of the one there is; None where nobody could act on it.

    None as well where what there is says the same with about the same figures: a version a run would only be noise.
    """
    if old is not None and not _has_moved(old, separation):
        return None
    writer = distilling.writer
    advice = advice_of(separation, runs, writer.quote)
    if advice is None:
        return None
    said = f"{advice.line}: {support_words(separation)}"
    content = writer.join([said, advice.passing])
    if not writer.clean(content) or not content.startswith(f"{said}."):
        return None
    sources = sorted(sources_of(_both_sides(separation, runs), advice.told_by, run, runs))
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "tactic_id": tactic_id(run, separation.feature, helps=separation.helps, place=distilling.place),
        "created_at": distilling.now if old is None else old.record.get("created_at", distilling.now),
        **shared_keys_of(run),
        "status": "active",
        "ttl": distilling.policy.tactic_ttl,
        "summary": content,
        "injection": {"mode": "inline", "content": content},
        "evidence": {"trace_ids": sources},
        "metrics": _metrics(separation, old),
        "learnt": _learnt(separation, filter(writer.clean, named_beside(separation.also, sources, runs, _ALSO_MAX))),
        "lesson": _lesson(separation, advice, run),
    }
    if conditions := conditions_of(separation, run, runs):
        plain["predicates"] = conditions
    return ConditionalTactic.from_wire(plain)


def learnt_of(memory: StoredMemory) -> dict[str, Any]:
    """What a tactic was learnt from: feature, direction and both tallies; empty for one of another making."""
    learnt = memory.record.get("learnt")
    return dict(learnt) if isinstance(learnt, dict) and isinstance(learnt.get("feature"), str) else {}


def _learnt(separation: Separation, also: Iterable[str]) -> JsonObject:
    return {
        "feature": separation.feature,
        "advice": "do" if separation.helps else "avoid",
        "also": list(also),
        "with": separation.with_tally.to_wire(),
        "without": separation.without_tally.to_wire(),
        "difference": round(separation.difference, 4),
        "low": round(separation.bounds.lower, 4),
        "high": round(separation.bounds.upper, 4),
        "strata": separation.strata,
        "probability": round(separation.probability, 6),
        "doubt": round(separation.doubt, 6),
    }


def _lesson(separation: Separation, advice: Advice, run: RunFacts) -> JsonObject:
    """Who wrote it, when it holds, and the events of this run that it rests on."""
    cited = steps_with(separation.feature, run.steps) if run.trace_id in separation.compared else []
    found: JsonObject = {"origin": "contrast", "event_ids": [step.evidence_id for step in cited[:_EVENTS_MAX]]}
    return found | ({"when": advice.when} if advice.when else {})


def _has_moved(old: StoredMemory, separation: Separation) -> bool:
    """Half as many runs again, or a pass rate that moved by a tenth."""
    learnt = learnt_of(old)
    before = [Tally.from_wire(learnt[side]) for side in ("with", "without") if side in learnt]
    now = [separation.with_tally, separation.without_tally]
    if len(before) < len(now):
        return True
    grown = sum(tally.n for tally in now) >= 1.5 * sum(tally.n for tally in before)
    return grown or any(abs(_rate(mine) - _rate(theirs)) >= 0.1 for mine, theirs in zip(now, before, strict=True))


def _rate(tally: Tally) -> float:
    return tally.passes / tally.n if tally.n else 0.0


def _metrics(separation: Separation, old: StoredMemory | None) -> JsonObject:
    """The metrics of a tactic: as learnt until it has been used, then as it fared."""
    known = old.record.get("metrics") if old is not None else None
    if isinstance(known, dict) and known.get("use_n"):
        return known
    tally = separation.with_tally
    spent = (
        {"avg_cost": tally.cost_sum / tally.n, "efficiency_est": tally.passes / tally.cost_sum}
        if tally.cost_sum
        else {}
    )
    return {"pass_p_hat": _rate(tally), "use_n": 0, "fail_n": 0, **spent}


def _both_sides(separation: Separation, runs: Sequence[RunFacts]) -> list[str]:
    """The newest comparable runs with the feature and without it, as many of each as there is room for."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for one in reversed([one for one in runs if one.trace_id in separation.compared]):
        sides[any(feature.name == separation.feature for feature in features_of(one))].append(one.trace_id)
    half = _TRACES_MAX // 2
    return [*sides[True][:half], *sides[False][:half]]


# -- seeds --------------------------------------------------------------------------------------------


def seed_id(run: RunFacts) -> str:
    return short_id("seed", [run.trace_id])


def seed(run: RunFacts, peers: Sequence[RunFacts], distilling: Distilling) -> ReuseStateRecord | None:
    """A passing run as a state to start again from; None for any other."""
    if not run.passed or run.verdict is None:
        return None
    writer = distilling.writer
    asked = f"Asked: {writer.quote(run.x_summary, _TASK_CHARS) or 'not quoted'}"
    outcome = run.outcome or "UNKNOWN"
    steps, is_cut = steps_told(run, writer.clean)
    did = f"Did: {render_steps(steps, is_cut=is_cut)}" if steps else "Called nothing"
    reward = score_of(run.verdict, outcome)
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "state_id": seed_id(run),
        "created_at": distilling.now,
        "seed_summary": writer.join((asked, _ending(run), did, f"Cost {run.cost:g}")),
        "source_trace_ids": [run.trace_id],
        "verifier": {"verdict": run.verdict, "outcome": outcome, "score": reward},
        "reward": {"total": reward - _COST_SHARE * _cost_share(run, peers), "pass": reward, "cost": run.cost},
        "counters": {"N": 0},
        "ttl": distilling.policy.seed_ttl,
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
    return ReuseStateRecord.from_wire(plain)


def _cost_share(run: RunFacts, peers: Sequence[RunFacts]) -> float:
    """What a run cost, from 0 to 1: a half where it cost what passing runs cost."""
    costs = [one.cost for one in peers if one.passed and one.cost > 0]
    usual = median(sorted(costs)) if costs else run.cost
    return run.cost / (run.cost + usual) if run.cost > 0 else 0.0
