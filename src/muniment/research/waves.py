"""What happens to a study before its sources are settled: perspectives, outputs judged, gaps, the second wave.

Each function looks at a study and answers the step to take, or the result of one that was taken already; nothing is
written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.research import Perspective, Perspectives
from muniment.core.canonical import digest
from muniment.errors import Conflict, GateFailed, InvalidInput, NotFound, TooLarge, WrongStage
from muniment.memory.patches import cleaned
from muniment.research.contract import directive, judge, language_of, output_sources, output_words
from muniment.research.gaps import decide_pivot, read_gaps
from muniment.research.gates import gate_a, gate_b
from muniment.research.questions.perspectives import check_plan, plan, plan_second_wave, read_plan
from muniment.research.questions.question import analyse
from muniment.research.reading.outputs import Reading, read_markdown
from muniment.research.run_records import AgentResult, Gap, GateResult, PivotDecision, Stage, WaveResult
from muniment.research.study_store import PERSPECTIVES, New, Step, StudyView, pretty, wave_path
from muniment.research.urls import without_all_credentials

if TYPE_CHECKING:
    from muniment.core.policy import ResearchPolicy
    from muniment.store.context import Context

__all__ = [
    "Judged",
    "agent_result",
    "check_size",
    "decide_second_wave",
    "find_perspective",
    "gate_of_waves",
    "give_up",
    "judge_output",
    "need_gate",
    "need_stage",
    "route",
    "wave_of",
    "well_formed",
    "without_secrets",
]


def well_formed(text: str, path: str) -> str:
    """Text that can be written as UTF-8, without the mark that some editors put in front of it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("this holds a lone surrogate", path=path, hint="decode it as UTF-8") from None
    return text.removeprefix("\ufeff")


def without_secrets(ctx: Context, text: str) -> str:
    """Addresses lose the name and password they carry and stay addresses; the rest is redacted (LG-10)."""
    cleared: str = cleaned(ctx, without_all_credentials(text))
    return cleared


def need_stage(view: StudyView, *stages: Stage, doing: str) -> None:
    stage = view.manifest.stage
    if stage not in stages:
        raise WrongStage(
            f"{doing} is for a run at {' or '.join(stages)}, and {view.manifest.run_id} is at {stage}",
            path="$.stage",
            details={"stage": stage, "wanted": list(stages), "revision": view.revision},
        )


def need_gate(gate: GateResult) -> None:
    if gate.status != "pass":
        why = "; ".join(gate.reasons) or "it was not run"
        raise GateFailed(f"gate {gate.gate} does not hold: {why}", path="$.gates", details=gate.to_wire())


def wave_of(perspective: Perspective) -> int:
    return 2 if (perspective.model_extra or {}).get("wave") == 2 else 1


def find_perspective(view: StudyView, perspective_id: Any) -> Perspective:
    for perspective in view.perspectives:
        if perspective.id == perspective_id:
            return perspective
    known = ", ".join(each.id for each in view.perspectives) or "none yet: route first"
    raise NotFound(
        f"no perspective {perspective_id!r:.60} in this run", path="$.perspective_id", hint=f"there are {known}"
    )


# -- routing ------------------------------------------------------------------------------------------


def route(view: StudyView, policy: ResearchPolicy, proposal: Any, now: str) -> Step:
    """Perspectives for the question: ours, or a proposal held to the same rules."""
    need_stage(view, "init", "wave1", doing="routing")
    if view.manifest.results or view.manifest.given_up:
        raise WrongStage("outputs have come in: the perspectives stand", path="$.stage")
    manifest = view.manifest
    if proposal is None:
        chosen = plan(
            manifest.question, analyse(manifest.question), policy, manifest.limits, manifest.agent_types, manifest.mode
        )
    else:
        chosen = read_plan(cleaned(view.ctx, proposal), policy, manifest.limits, manifest.agent_types)
    issues = check_plan(chosen, policy, manifest.limits, manifest.agent_types, 1)
    gate = gate_a(chosen, issues, now)
    need_gate(gate)
    return Step(
        what="routed",
        stage="wave1",
        reason=f"{len(chosen)} perspectives",
        manifest={"standings": {each.id: "waiting" for each in chosen}},
        gates=[gate],
        artifacts=[_perspectives_file(manifest.run_id, now, chosen)],
    )


def _perspectives_file(run_id: str, now: str, chosen: Sequence[Perspective]) -> New:
    held = Perspectives(schema_version="perspectives.v1", run_id=run_id, created_at=now, perspectives=tuple(chosen))
    return New(PERSPECTIVES, pretty(held.to_wire()))


# -- outputs ------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """An output judged: the step that keeps it (None where this very output stands already), and the result."""

    step: Step | None
    result: WaveResult


def agent_result(given: Any, tool_use: Any, sources: Any, change_note: Any) -> AgentResult:
    """What an agent handed back: Markdown, or a record; further arguments add to it."""
    if isinstance(given, AgentResult):
        plain = given.to_wire()
    elif isinstance(given, str):
        plain = {"markdown": given}
    elif isinstance(given, Mapping):
        plain = dict(given)
    else:
        raise InvalidInput(
            f"an output is Markdown or an object with markdown, not {type(given).__name__}", path="$.output"
        )
    more = {"tool_use": tool_use, "sources": sources, "change_note": change_note}
    plain |= {key: _json_value(value) for key, value in more.items() if value is not None}
    result = AgentResult.of_given(plain, "not a valid agent result")
    return result.model_copy(update={"markdown": well_formed(result.markdown, "$.output")})


def _json_value(value: Any) -> Any:
    """A mapping or a sequence as plain JSON data."""
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def check_size(markdown: str, policy: ResearchPolicy) -> None:
    size = len(markdown) if len(markdown) > policy.output_bytes_max else len(markdown.encode())
    if size > policy.output_bytes_max:
        raise TooLarge(
            f"an output of {size} bytes or more is over the limit of {policy.output_bytes_max}",
            path="$.output",
            hint="an agent's output is a page of findings; raise research.output_bytes_max only if it must be more",
        )


def judge_output(view: StudyView, perspective_id: Any, given: AgentResult, policy: ResearchPolicy) -> Judged:
    """Judge an output against its contract. One that breaks it is kept as evidence, and asks for another attempt."""
    need_stage(view, "wave1", "wave2", doing="an output")
    perspective = find_perspective(view, perspective_id)
    wave = wave_of(perspective)
    if (wave == 2) != (view.manifest.stage == "wave2"):
        raise WrongStage(f"{perspective.id} is of wave {wave}", path="$.perspective_id")
    text = without_secrets(view.ctx, given.markdown)
    hashed = digest(text.encode()).hex()
    last = next((each for each in view.manifest.results if each.perspective_id == perspective.id), None)
    if last is not None and last.digest == hashed and (last.accepted or _says_no_more(given, last)):
        return Judged(None, last)  # the same call again, after a crash say
    attempt = 1 if last is None else last.attempt + (last.accepted or not _may_stay(last))
    if attempt > policy.attempts_max and last is not None and not last.accepted:
        raise Conflict(
            f"{perspective.id} has had {last.attempt} attempts",
            path="$.perspective_id",
            hint="give it up with a reason, or raise research.attempts_max",
        )
    reading = read_markdown(text)
    breaches = judge(
        reading,
        perspective.prompt_contract,
        tool_use=given.tool_use,
        attempt=attempt,
        change_note=given.change_note,
        previous_digest=None if last is None or _may_stay(last) else last.digest,
        digest=hashed,
    )
    return _judged(view, perspective, text, hashed, attempt, breaches, reading, given, policy)


_BESIDE_THE_TEXT = frozenset({"missing_change_note", "tool_use_unknown"})
"""Breaches that another text would not mend."""


def _says_no_more(given: AgentResult, last: WaveResult) -> bool:
    """Is it the rejected output again, with nothing new beside it?"""
    lacked = {breach.kind for breach in last.breaches}
    return not (
        (given.change_note is not None and (last.attempt == 1 or "missing_change_note" in lacked))
        or (given.tool_use is not None and "tool_use_unknown" in lacked)
    )


def _may_stay(last: WaveResult) -> bool:
    """Was nothing wrong with the text itself? Then it may be handed in again, with what was missing beside it."""
    return all(breach.kind in _BESIDE_THE_TEXT for breach in last.breaches)


def _judged(
    view: StudyView,
    perspective: Perspective,
    text: str,
    hashed: str,
    attempt: int,
    breaches: Sequence[Any],
    reading: Reading,
    given: AgentResult,
    policy: ResearchPolicy,
) -> Judged:
    accepted = not breaches
    wave = wave_of(perspective)
    path = wave_path(wave, perspective.id) if accepted else None
    told = {"perspective_id": perspective.id, "wave": wave, "attempt": attempt}
    if given.change_note is not None:
        told["change_note"] = without_secrets(view.ctx, given.change_note)
    plain: dict[str, Any] = {
        **{key: told[key] for key in ("perspective_id", "wave", "attempt")},
        "accepted": accepted,
        "breaches": tuple(breaches),
        "words": output_words(reading),
        "sources": output_sources(reading),
        "digest": hashed,
        "evidence_id": "",
        "gaps": tuple(read_gaps(reading, perspective.id)[: policy.gaps_max]),
    }
    if path is not None:
        plain["path"] = path
    else:
        plain["directive"] = directive(perspective, attempt + 1, breaches, language=language_of(reading))
    draft = New(path, text, "external", told, id=view.ctx.ids.new("evt"))
    result = WaveResult.model_validate(plain | {"evidence_id": draft.id})
    told_of = f"{'accepted' if accepted else 'rejected'} {perspective.id}, attempt {attempt}"
    if not accepted and view.manifest.standings.get(perspective.id) == "accepted":
        return Judged(Step(what=f"{told_of}: the accepted output stands", artifacts=[draft]), result)
    others = [each for each in view.manifest.results if each.perspective_id != perspective.id]
    standings = dict(view.manifest.standings) | {perspective.id: "accepted" if accepted else "rejected"}
    given_up = {id_: why for id_, why in view.manifest.given_up.items() if id_ != perspective.id}
    results = tuple(sorted((*others, result), key=lambda each: _number(each.perspective_id)))
    return Judged(
        Step(
            what=told_of,
            manifest={"results": results, "standings": standings, "given_up": given_up},
            artifacts=[draft],
        ),
        result,
    )


def _number(perspective_id: str) -> tuple[int, str]:
    digits = perspective_id[1:]
    return (int(digits), "") if digits.isdecimal() else (10**9, perspective_id)


def give_up(view: StudyView, perspective_id: Any, reason: Any) -> Step:
    """Go on without a perspective, and say why: a gap, which gates B and D count."""
    need_stage(view, "wave1", "wave2", doing="giving up a perspective")
    perspective = find_perspective(view, perspective_id)
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInput("say why it is given up", path="$.reason")
    if view.manifest.standings.get(perspective.id) == "accepted":
        raise Conflict(f"the output of {perspective.id} was accepted", path="$.perspective_id")
    said = without_secrets(view.ctx, well_formed(reason.strip(), "$.reason"))[:_REASON_CHARS_MAX]
    return Step(
        what=f"gave up {perspective.id}",
        manifest={
            "given_up": dict(view.manifest.given_up) | {perspective.id: said},
            "standings": dict(view.manifest.standings) | {perspective.id: "given_up"},
        },
    )


_REASON_CHARS_MAX = 500


# -- the pivot ----------------------------------------------------------------------------------------


def decide_second_wave(
    view: StudyView, policy: ResearchPolicy, asked: bool | None, now: str
) -> tuple[Step, PivotDecision]:
    """Decide after the first wave whether there is a second one, or the sources come next."""
    need_stage(view, "wave1", doing="the pivot")
    if asked is not None and not isinstance(asked, bool):
        raise InvalidInput(f"wanted yes or no (a bool), not {type(asked).__name__}", path="$.second_wave")
    gate = gate_of_waves(view, policy, now)
    need_gate(gate)
    manifest = view.manifest
    allowed = manifest.limits.max_wave2_agents > 0
    decision = decide_pivot(gaps_of(view), policy.pivot, allowed=allowed)
    if asked is not None and asked != decision.second_wave:
        if asked and not allowed:
            raise InvalidInput("this run's limits allow no second wave", path="$.second_wave")
        if asked and not decision.gaps:
            raise InvalidInput("no gap says what a second wave should look for", path="$.second_wave")
        reason = f"asked for; the rule says otherwise: {decision.reason}"
        decision = decision.model_copy(update={"second_wave": asked, "reason": reason})
    if not decision.second_wave:
        return Step(what="pivot: no second wave", manifest={"pivot": decision}, gates=[gate]), decision
    more = plan_second_wave(decision.gaps, view.perspectives, policy, manifest.limits, manifest.agent_types)
    standings = dict(manifest.standings) | {each.id: "waiting" for each in more}
    step = Step(
        what=f"pivot: second wave of {len(more)}",
        stage="wave2",
        reason=decision.reason,
        manifest={"pivot": decision, "standings": standings},
        gates=[gate],
        artifacts=[_perspectives_file(manifest.run_id, now, (*view.perspectives, *more))],
    )
    return step, decision


def gate_of_waves(view: StudyView, policy: ResearchPolicy, now: str) -> GateResult:
    manifest = view.manifest
    return gate_b(view.perspectives, manifest.standings, manifest.results, manifest.given_up, policy, now)


def gaps_of(view: StudyView) -> list[Gap]:
    """What the outputs say is missing, and what we see is."""
    gaps = [gap for result in view.manifest.results if result.accepted for gap in result.gaps]
    for perspective_id, reason in view.manifest.given_up.items():
        title = find_perspective(view, perspective_id).title
        said = f"{title}: {reason}"
        gaps.append(Gap(perspective_id=perspective_id, priority="P1", text=said, origin="seen"))
    return gaps
