"""Outputs of agents: judged against their contracts, read for gaps, weighed for a second wave.

Each function of the last three parts reads a study and returns the next step, or the result of one already taken;
nothing is written here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.research import Perspective, Perspectives, PromptContract
from muniment.core.canonical import digest
from muniment.core.policy import PivotPolicy
from muniment.errors import Conflict, GateFailed, InvalidInput, NotFound, TooLarge, WrongStage
from muniment.memory.patches import cleaned
from muniment.research._markdown import (
    Reading,
    Section,
    Sentence,
    count_words,
    find_section,
    read_markdown,
    section_kind,
    sections_named,
    sentences_between,
)
from muniment.research.gates import gate_a, gate_b
from muniment.research.plan import check_plan, plan, plan_second_wave, read_plan
from muniment.research.records import (
    AgentResult,
    Breach,
    BreachKind,
    Gap,
    GateResult,
    PivotDecision,
    Priority,
    RetryDirective,
    Stage,
    ToolUse,
    WaveResult,
)
from muniment.research.store import PERSPECTIVES, NewArtifact, StudyChange, StudyView, pretty, wave_path
from muniment.research.urls import try_normalize_url, without_all_credentials

if TYPE_CHECKING:
    from muniment.core.policy import ResearchPolicy
    from muniment.store.context import Context

# -- the contract of an output (RP-02) ------------------------------------------------------------------

_KEYS_SHOWN = 10
_MESSAGES: dict[BreachKind, str] = {
    "empty_output": "The output is empty. Hand in the findings as Markdown.",
    "missing_section": "The section “{where}” is missing. Add it under a heading of its own.",
    "empty_section": "The section “{where}” is empty. Fill it; if there is nothing to report, write so.",
    "too_many_words": "The output has {found} words, not counting the list of sources; at most {limit} are allowed. "
    "Shorten it.",
    "too_many_sources": "The output names {found} different sources; at most {limit} are allowed. Keep those that "
    "support the findings.",
    "no_sources": "The output names no source by its address. Put the address of each source into the list of "
    "sources, and mark the sentences it supports.",
    "tool_budget_exceeded": "{found} calls of “{where}” were made; {limit} are allowed. Stay within the budget.",
    "tool_use_unknown": "The calls of {where} were not counted, so their budget cannot be checked. Hand in `tool_use` "
    "with the output.",
    "dangling_mark": "{found} citation marks have no entry with an address in the list of sources: {where}. Add the "
    "entries, or take the marks out.",
    "missing_change_note": "This is attempt {found}, and it does not tell what was changed. Add a change note.",
    "unchanged_output": "The output is identical to the last one. Correct what was named.",
}
_DIRECTIVE = (
    "Attempt {attempt} at “{title}” ({id}). The output was not accepted:\n\n{breaches}\n\n"
    "Hand in the whole output again, corrected, in Markdown. Leave what is right as it is, and add nothing that no "
    "source supports. Add a change note: one or two sentences on what you changed, apart from the output or as its "
    "last section, “Change note”."
)


def check_contract(
    reading: Reading,
    contract: PromptContract,
    *,
    tool_use: ToolUse | None,
    attempt: int,
    change_note: str | None,
    previous_digest: str | None,
    digest: str,
) -> list[Breach]:
    """List all contract violations of an output, in a fixed order."""
    words = output_words(reading)
    breaches: list[Breach] = []
    if words == 0:
        breaches.append(_breach("empty_output"))
    else:
        breaches += _section_breaches(reading, contract.must_include_sections)
        if words > contract.max_words:
            breaches.append(_breach("too_many_words", limit=contract.max_words, found=words))
        breaches += _source_breaches(reading, contract)
    breaches += _tool_breaches(contract.tool_budget, tool_use)
    if attempt > 1:
        noted = any(_has_content(reading, each) for each in sections_named(reading, "change note"))
        if not noted and not (change_note or "").strip():
            breaches.append(_breach("missing_change_note", found=attempt))
        if previous_digest is not None and digest == previous_digest:
            breaches.append(_breach("unchanged_output"))
    return breaches


def make_directive(perspective: Perspective, attempt: int, breaches: Sequence[Breach]) -> RetryDirective:
    """Instructions for the agent; `attempt` is the requested one."""
    listed = "\n".join(f"{number}. {breach.message}" for number, breach in enumerate(breaches, start=1))
    text = _DIRECTIVE.format(attempt=attempt, title=perspective.title, id=perspective.id, breaches=listed)
    return RetryDirective(perspective_id=perspective.id, attempt=attempt, breaches=tuple(breaches), text=text)


def output_words(reading: Reading) -> int:
    """Count the words of an output, including headings and tables, but not its sources, code and change note."""
    return sum(
        count_words(sentence.text)
        for sentence in reading.sentences
        if sentence.kind != "reference" and section_kind(sentence.section) != "change note"
    )


def output_sources(reading: Reading) -> int:
    """Count the distinct addresses of an output."""
    return len({try_normalize_url(url) or url for url in {found.url for found in reading.urls}})


def _breach(kind: BreachKind, **facts: Any) -> Breach:
    return Breach(kind=kind, message=_MESSAGES[kind].format(**facts), **facts)


def _section_breaches(reading: Reading, names: Iterable[str]) -> Iterator[Breach]:
    for name in names:
        section = find_section(reading, name)
        if section is None:
            yield _breach("missing_section", where=name)
        elif not _has_content(reading, section):
            yield _breach("empty_section", where=name)


def _has_content(reading: Reading, section: Section) -> bool:
    inside = sentences_between(reading, section.start, section.end)
    return (
        any(sentence.kind != "heading" for sentence in inside) or "```" in reading.markdown[section.start : section.end]
    )


def _source_breaches(reading: Reading, contract: PromptContract) -> Iterator[Breach]:
    sources = output_sources(reading)
    if sources > contract.max_sources:
        yield _breach("too_many_sources", limit=contract.max_sources, found=sources)
    if sources == 0 and contract.max_sources > 0:
        yield _breach("no_sources")
    marks = (mark for sentence in reading.sentences for mark in sentence.marks)
    dangling = dict.fromkeys(mark.key for mark in marks if mark.url is None and not mark.key.startswith("cid_"))
    if dangling:
        shown = ", ".join(f"[{key}]" for key in list(dangling)[:_KEYS_SHOWN])
        yield _breach(
            "dangling_mark", found=len(dangling), where=shown + (", …" if len(dangling) > _KEYS_SHOWN else "")
        )


def _tool_breaches(budget: dict[str, Any], tool_use: ToolUse | None) -> Iterator[Breach]:
    """Check tool calls. A tool missing from the counts was not called; one without a budget is unlimited."""
    limits = {
        tool: limit for tool, limit in budget.items() if isinstance(limit, int | float) and not isinstance(limit, bool)
    }
    if tool_use is None:
        if limits:
            yield _breach("tool_use_unknown", where=", ".join(limits))
        return
    for tool, limit in limits.items():
        if tool_use.get(tool, 0) > limit:
            yield _breach("tool_budget_exceeded", limit=limit, found=tool_use[tool], where=tool)


# -- gaps -----------------------------------------------------------------------------------------------

_PRIORITIES: tuple[Priority, ...] = ("P0", "P1", "P2", "P3")
_DEFAULT: Priority = "P2"
_LEVEL = (
    r"(?:P\s?(?P<p>\d)|(?P<w0>critical|urgent|关键|紧急)|(?P<w1>high|important|重要|高)"
    r"|(?P<w2>medium|moderate|中等?)|(?P<w3>low|minor|optional|次要|低))"
)
_PRIORITY = r"(?:priority|importance|severity|gaps?|优先级|重要性|缺口)"
_TAG = rf"[\[(（【]\s*(?:{_PRIORITY}\s*[:：]?\s*)?{_LEVEL}(?:\s*{_PRIORITY})?\s*[\])）】]"
_BRACKETED = re.compile(rf"(?i)\s*{_TAG}\s*[:：.\-–—]*\s*")
_ANNOUNCED = re.compile(
    rf"(?i)\s*(?:{_PRIORITY}\s*[:：]\s*)?{_LEVEL}(?:\s*{_PRIORITY})?\s*(?:[:：|]|[-–—]{{1,2}}\s|\Z)\s*"
)
_BARE = re.compile(r"\s*P(?P<p>\d)\s+")
_TRAILING = re.compile(rf"(?i)\s*{_TAG}\s*[.。]?\s*\Z")
_NOTHING = re.compile(
    r"(?i)\W*(?:(?:none|nil|n/?a|nothing|not applicable)(?: (?:were|was|to|report|known|identified|found|noted|left))*"
    r"|(?:there (?:are|were) )?no (?:\w+ ){0,3}(?:gaps?|open questions|unknowns|issues)"
    r"(?: (?:were|was|have been|identified|found|remain|remaining|noted|known))*"
    r"|(?:暂时?|目前|尚)?(?:无|没有|未发现)(?:任何|明显|重大|显著|其他|已知|的)*(?:信息|研究)?(?:缺口|空白|未解决的?问题|问题)?)\W*"
)


def read_gaps(reading: Reading, perspective_id: str) -> list[Gap]:
    """List a gap for each item, row or paragraph on gaps; untagged ones have the priority of their heading."""
    gaps: list[Gap] = []
    named = sections_named(reading, "gaps")
    own = [section for section in named if section_kind(section.title) == "gaps"] or named
    for start, end in _disjoint([(section.start, section.end) for section in own]):
        default = _DEFAULT
        for _, block in groupby(sentences_between(reading, start, end), key=lambda sentence: sentence.block):
            sentences = list(block)
            priority, text = _tagged(sentences)
            if sentences[0].kind == "heading" or not text:
                default = priority or _DEFAULT
            elif sentences[0].kind != "reference" and not _is_no_gap(text, sentences):
                gaps.append(Gap(perspective_id=perspective_id, priority=priority or default, text=text, origin="said"))
    return gaps


def _disjoint(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans without those inside another."""
    reach = -1
    for start, end in sorted(spans):
        if end > reach:
            yield max(start, reach), end
            reach = end


def _tagged(sentences: Sequence[Sentence]) -> tuple[Priority | None, str]:
    """The priority tag of a gap, and its text without the tag."""
    text = " ".join(sentence.text for sentence in sentences)
    if sentences[0].kind == "table":
        return _tagged_row([cell.strip() for cell in text.split("|")])
    leading = _BRACKETED.match(text) or _ANNOUNCED.match(text) or _BARE.match(text)
    if leading is not None:
        return _priority(leading.groupdict()), text[leading.end() :].strip()
    trailing = _TRAILING.search(text[-80:])
    if trailing is not None:
        return _priority(trailing.groupdict()), text[: len(text) - len(trailing[0])].strip()
    return None, text


def _tagged_row(cells: Sequence[str]) -> tuple[Priority | None, str]:
    """The cell that is a priority, and the longest of the others. The header row is not a gap."""
    if any(re.fullmatch(rf"(?i)\W*{_PRIORITY}\W*", cell) for cell in cells):
        return None, ""
    found = [(cell, tag) for cell in cells if (tag := _BRACKETED.fullmatch(cell) or _ANNOUNCED.fullmatch(cell))]
    others = [cell for cell in cells if not found or cell != found[0][0]]
    return _priority(found[0][1].groupdict()) if found else None, max(others, key=len, default="")


def _priority(groups: dict[str, str | None]) -> Priority:
    if groups.get("p"):
        return _PRIORITIES[min(int(groups["p"] or 0), 3)]
    return next((level for level in _PRIORITIES if groups.get(f"w{level[1]}")), _DEFAULT)


def _is_no_gap(text: str, sentences: Sequence[Sentence]) -> bool:
    """Return true for "None." and for a line that only introduces a list."""
    introduces = len(sentences) == 1 and sentences[0].kind == "prose" and text.rstrip().endswith((":", "："))
    return introduces or not any(char.isalnum() for char in text) or _NOTHING.fullmatch(text) is not None


def decide_pivot(gaps: Sequence[Gap], policy: PivotPolicy, *, allowed: bool) -> PivotDecision:
    """Decide on a second wave: for one P0, for enough P1, or for many gaps of which enough are P1 or P2.

    Gaps in the same words count once, with the most serious priority.
    """
    distinct = {
        " ".join(gap.text.casefold().split()): gap for gap in sorted(gaps, key=lambda gap: gap.priority, reverse=True)
    }
    counted = Counter(gap.priority for gap in distinct.values())
    counts = {priority: counted[priority] for priority in _PRIORITIES}
    grounds = list(_grounds(counts, policy))
    if not grounds:
        shown = ", ".join(f"{counts[priority]} {priority}" for priority in _PRIORITIES)
        many = f"{policy.gaps_min} gaps of which {policy.gaps_p1_p2_min} are P1 or P2"
        reason = f"No second wave: {shown}. It takes {policy.p0_min} P0, or {policy.p1_min} P1, or {many}."
    elif allowed:
        reason = f"A second wave: {'; '.join(grounds)}."
    else:
        reason = f"No second wave, though the gaps call for one ({'; '.join(grounds)}): the run's limits allow none."
    ordered = tuple(sorted(gaps, key=lambda gap: gap.priority))
    return PivotDecision(second_wave=bool(grounds) and allowed, reason=reason, counts=counts, gaps=ordered)


def _grounds(counts: dict[Priority, int], policy: PivotPolicy) -> Iterator[str]:
    total, middle = sum(counts.values()), counts["P1"] + counts["P2"]
    if counts["P0"] >= policy.p0_min:
        yield f"{counts['P0']} gaps of P0 (at least {policy.p0_min})"
    if counts["P1"] >= policy.p1_min:
        yield f"{counts['P1']} gaps of P1 (at least {policy.p1_min})"
    if total >= policy.gaps_min and middle >= policy.gaps_p1_p2_min:
        yield f"{total} gaps, {middle} of them P1 or P2 (at least {policy.gaps_min} and {policy.gaps_p1_p2_min})"


# -- shared checks --------------------------------------------------------------------------------------


def well_formed(text: str, path: str) -> str:
    """Text that can be encoded as UTF-8, without a byte order mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("this holds a lone surrogate", path=path, hint="decode it as UTF-8") from None
    return text.removeprefix("\ufeff")


def without_secrets(ctx: Context, text: str) -> str:
    """Remove names and passwords from addresses, and redact other secrets (LG-10)."""
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


def route(view: StudyView, policy: ResearchPolicy, proposal: Any, now: str) -> StudyChange:
    """Perspectives for the question: ours, or a proposal validated by the same rules."""
    need_stage(view, "init", "wave1", doing="routing")
    if view.manifest.results or view.manifest.given_up:
        raise WrongStage("outputs have come in: the perspectives are fixed", path="$.stage")
    manifest = view.manifest
    if proposal is None:
        chosen = plan(manifest.question, policy, manifest.limits, manifest.agent_types, manifest.mode)
    else:
        chosen = read_plan(cleaned(view.ctx, proposal), policy, manifest.limits, manifest.agent_types)
    issues = check_plan(chosen, policy, manifest.limits, manifest.agent_types, 1)
    gate = gate_a(chosen, issues, now)
    need_gate(gate)
    return StudyChange(
        what="routed",
        stage="wave1",
        reason=f"{len(chosen)} perspectives",
        manifest={"standings": {each.id: "waiting" for each in chosen}},
        gates=[gate],
        artifacts=[_perspectives_file(manifest.run_id, now, chosen)],
    )


def _perspectives_file(run_id: str, now: str, chosen: Sequence[Perspective]) -> NewArtifact:
    held = Perspectives(schema_version="perspectives.v1", run_id=run_id, created_at=now, perspectives=tuple(chosen))
    return NewArtifact(PERSPECTIVES, pretty(held.to_wire()))


# -- outputs ------------------------------------------------------------------------------------------


class OutputVerdict(NamedTuple):
    """The result of an output, and the change that stores it; None if this output was stored already."""

    change: StudyChange | None
    result: WaveResult


def agent_result(given: Any, tool_use: Any, sources: Any, change_note: Any) -> AgentResult:
    """The result of an agent: Markdown, or a record; further arguments add to it."""
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


def judge_output(view: StudyView, perspective_id: Any, given: AgentResult, policy: ResearchPolicy) -> OutputVerdict:
    """Judge an output against its contract. One that breaks it is kept as evidence, and asks for another attempt."""
    need_stage(view, "wave1", "wave2", doing="an output")
    perspective = find_perspective(view, perspective_id)
    wave = wave_of(perspective)
    if (wave == 2) != (view.manifest.stage == "wave2"):
        raise WrongStage(f"{perspective.id} is of wave {wave}", path="$.perspective_id")
    text = without_secrets(view.ctx, given.markdown)
    hashed = digest(text.encode()).hex()
    last = next((each for each in view.manifest.results if each.perspective_id == perspective.id), None)
    if last is not None and last.digest == hashed and (last.accepted or _adds_nothing(given, last)):
        return OutputVerdict(None, last)  # repeated, for example after a crash
    attempt = 1 if last is None else last.attempt + (last.accepted or not _may_stay(last))
    if attempt > policy.attempts_max and last is not None and not last.accepted:
        raise Conflict(
            f"{perspective.id} has had {last.attempt} attempts",
            path="$.perspective_id",
            hint="give it up with a reason, or raise research.attempts_max",
        )
    reading = read_markdown(text)
    breaches = check_contract(
        reading,
        perspective.prompt_contract,
        tool_use=given.tool_use,
        attempt=attempt,
        change_note=given.change_note,
        previous_digest=None if last is None or _may_stay(last) else last.digest,
        digest=hashed,
    )
    return _judged(view, perspective, text, hashed, attempt, breaches, reading, given, policy)


_NOT_IN_THE_TEXT = frozenset({"missing_change_note", "tool_use_unknown"})
"""Breaches that another text would not fix."""


def _adds_nothing(given: AgentResult, last: WaveResult) -> bool:
    """Return whether it is the rejected output again, without additions."""
    lacked = {breach.kind for breach in last.breaches}
    return not (
        (given.change_note is not None and (last.attempt == 1 or "missing_change_note" in lacked))
        or (given.tool_use is not None and "tool_use_unknown" in lacked)
    )


def _may_stay(last: WaveResult) -> bool:
    """Return whether the text itself was faultless: it may then be submitted again with the missing parts."""
    return all(breach.kind in _NOT_IN_THE_TEXT for breach in last.breaches)


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
) -> OutputVerdict:
    accepted = not breaches
    wave = wave_of(perspective)
    path = wave_path(wave, perspective.id) if accepted else None
    about = {"perspective_id": perspective.id, "wave": wave, "attempt": attempt}
    if given.change_note is not None:
        about["change_note"] = without_secrets(view.ctx, given.change_note)
    plain: dict[str, Any] = {
        **{key: about[key] for key in ("perspective_id", "wave", "attempt")},
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
        plain["directive"] = make_directive(perspective, attempt + 1, breaches)
    draft = NewArtifact(path, text, "external", about, id=view.ctx.ids.new("evt"))
    result = WaveResult.model_validate(plain | {"evidence_id": draft.id})
    summary = f"{'accepted' if accepted else 'rejected'} {perspective.id}, attempt {attempt}"
    if not accepted and view.manifest.standings.get(perspective.id) == "accepted":
        return OutputVerdict(StudyChange(what=f"{summary}: the accepted output stands", artifacts=[draft]), result)
    others = [each for each in view.manifest.results if each.perspective_id != perspective.id]
    standings = dict(view.manifest.standings) | {perspective.id: "accepted" if accepted else "rejected"}
    given_up = {id_: why for id_, why in view.manifest.given_up.items() if id_ != perspective.id}
    results = tuple(sorted((*others, result), key=lambda each: _number(each.perspective_id)))
    return OutputVerdict(
        StudyChange(
            what=summary,
            manifest={"results": results, "standings": standings, "given_up": given_up},
            artifacts=[draft],
        ),
        result,
    )


def _number(perspective_id: str) -> tuple[int, str]:
    digits = perspective_id[1:]
    return (int(digits), "") if digits.isdecimal() else (10**9, perspective_id)


def give_up(view: StudyView, perspective_id: Any, reason: Any) -> StudyChange:
    """Continue without a perspective, with a reason: a gap, which gates B and D count."""
    need_stage(view, "wave1", "wave2", doing="giving up a perspective")
    perspective = find_perspective(view, perspective_id)
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInput("say why it is given up", path="$.reason")
    if view.manifest.standings.get(perspective.id) == "accepted":
        raise Conflict(f"the output of {perspective.id} was accepted", path="$.perspective_id")
    said = without_secrets(view.ctx, well_formed(reason.strip(), "$.reason"))[:_REASON_CHARS_MAX]
    return StudyChange(
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
) -> tuple[StudyChange, PivotDecision]:
    """Decide after the first wave between a second one and the sources."""
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
        return StudyChange(what="pivot: no second wave", manifest={"pivot": decision}, gates=[gate]), decision
    more = plan_second_wave(decision.gaps, view.perspectives, policy, manifest.limits, manifest.agent_types)
    standings = dict(manifest.standings) | {each.id: "waiting" for each in more}
    step = StudyChange(
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
    """The gaps reported by outputs, and those detected."""
    gaps = [gap for result in view.manifest.results if result.accepted for gap in result.gaps]
    for perspective_id, reason in view.manifest.given_up.items():
        title = find_perspective(view, perspective_id).title
        said = f"{title}: {reason}"
        gaps.append(Gap(perspective_id=perspective_id, priority="P1", text=said, origin="seen"))
    return gaps
