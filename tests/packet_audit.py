"""Do the reports of a packet add up?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from muniment.contracts.packet import MemoryPacket
from muniment.contracts.semantics import evidence_ids
from muniment.packets.compose import OVERHEAD
from muniment.packets.explain import (
    BUDGET_REASONS,
    REASONS,
    UNGATHERED_REASONS,
    candidates_of,
    names_of,
    selected_name,
)
from muniment.packets.page import SECTIONS, state_units, summary_evidence
from muniment.packets.pool import Pool

__all__ = ["audit"]


def audit(pool: Pool, packet: MemoryPacket) -> list[str]:
    """Everything that does not add up; empty for a sound packet."""
    known = {name: (kind, each) for name, kind, each in candidates_of(pool, packet.meta.purpose)}
    selected = [known[name] for name in map(selected_name, packet.explain.selected) if name in known]
    return [
        *_fates(pool, packet),
        *_contents(packet, selected),
        *_budget(packet),
        *_citations(packet, _summed_up(pool, packet)),
        *_quotes(pool, packet),
        *_counts(pool, packet),
    ]


def _fates(pool: Pool, packet: MemoryPacket) -> Iterator[str]:
    """MP-15: every candidate exactly once, selected or omitted, nothing else, each for a known reason."""
    fates = Counter(selected_name(line) for line in packet.explain.selected)
    fates.update(each.item for each in packet.explain.omitted)
    wanted = Counter(name for name, _, _ in candidates_of(pool, packet.meta.purpose))
    for name in wanted | fates:
        if wanted[name] != 1 or fates[name] != 1:
            yield f"{name}: {wanted[name]} times in the pool, {fates[name]} times explained"
    for each in packet.explain.omitted:
        if each.reason not in REASONS:
            yield f"{each.item}: omitted for the unknown reason {each.reason!r}"


def _contents(packet: MemoryPacket, selected_items: list[tuple[str, str]]) -> Iterator[str]:
    """What is in the packet is what was selected."""
    short, long, insight = packet.short_term, packet.long_term, packet.insight
    held = Counter(("state", str(unit.part)) for unit in state_units(short.working_state, packet.meta.purpose))
    held.update(("fact", each.fact_id) for each in long.facts)
    held.update(("procedure", each.procedure_id) for each in long.procedures)
    # Stretches of one long result are several quotes of one event.
    held.update(("quote", name) for name in dict.fromkeys(each.evidence_id for each in short.key_quotes or ()))
    held.update(("turn", name) for name in dict.fromkeys(each.evidence_id for each in short.conversation_window or ()))
    held.update(("tool", each.ref) for each in short.last_tool_evidence or ())
    held.update(("episode", each.episode_id) for each in long.episodes)
    held.update(("insight", each.id) for each in (*insight.hypotheses, *insight.strategy_sketches, *insight.patterns))
    shown_as = {"profile": "quote"}
    selected = Counter(
        (shown_as.get(kind, kind), name) for kind, name in selected_items if kind not in ("summary", "loop")
    )
    for each in held | selected:
        if held[each] != selected[each]:
            yield f"{':'.join(each)}: {held[each]} times in the packet, {selected[each]} times selected"
    loops = sum(kind == "loop" for kind, _ in selected_items)
    if loops != len(short.open_loops or ()):
        yield f"open_loops: {len(short.open_loops or ())} in the packet, {loops} selected"


def _budget(packet: MemoryPacket) -> Iterator[str]:
    """MP-14: sections add up to the whole, no cap is passed, omissions are those that explain has."""
    report, budget = packet.budget_report, packet.meta.budget
    if set(report.section_usage) != {*SECTIONS, OVERHEAD}:
        yield f"section_usage has the keys {sorted(report.section_usage)}"
    if sum(report.section_usage.values()) != report.used_tokens_est:
        yield f"the sections add up to {sum(report.section_usage.values())}, used is {report.used_tokens_est}"
    if report.used_tokens_est > budget.max_tokens or report.max_tokens != budget.max_tokens:
        yield f"{report.used_tokens_est} tokens used of {budget.max_tokens}"
    for section in SECTIONS:
        used, cap = report.section_usage.get(section, 0), getattr(budget.per_section, section)
        if used > cap:
            yield f"{section}: {used} tokens used of {cap}"
    wanted = [(each.item, each.reason) for each in packet.explain.omitted if each.reason in BUDGET_REASONS]
    if wanted != [(each.item, each.reason) for each in report.omissions or ()]:
        yield "budget_report.omissions is not what explain.omitted says"
    selected = set(map(selected_name, packet.explain.selected))
    for step in report.degradations:
        if not any(f": {name}, " in step.reason for name in selected):
            yield f"a degradation of something that is not selected: {step.reason}"


def _counts(pool: Pool, packet: MemoryPacket) -> Iterator[str]:
    """TM-04: of each kind, what the store holds is what was gathered and what was not, each for a known reason."""
    gathered = {
        "turns": len({hit.turn.id for hit in pool.hits}),
        "sessions": len({episode.session_id for episode in pool.episodes}),
        "window": len(pool.window),
        "tools": len(pool.tools),
        "facts": len(pool.facts),
        "procedures": len(pool.procedures),
        "insights": len(pool.insights),
    }
    for each in pool.not_gathered:
        counts = list(each.reasons.values())
        if each.gathered != gathered.get(each.kind, each.gathered):
            yield f"{each.kind}: {gathered[each.kind]} in the pool, {each.gathered} counted as gathered"
        if each.held is not None and each.held != each.gathered + sum(count or 0 for count in counts):
            yield f"{each.kind}: {each.held} held, {each.gathered} gathered, {counts} not"
        if (each.held is None) != (None in counts):
            yield f"{each.kind}: an unknown number that is told as known"
        if unknown := each.reasons.keys() - UNGATHERED_REASONS:
            yield f"{each.kind}: not gathered for the unknown reasons {sorted(unknown)}"
    told = packet.explain.filters.get("not_gathered")
    if told != {each.kind: each.to_report() for each in pool.not_gathered}:
        yield "explain.filters.not_gathered is not what was counted"


def _summed_up(pool: Pool, packet: MemoryPacket) -> set[str]:
    """What the lines of the summary that were selected rest on."""
    selected = set(map(selected_name, packet.explain.selected))
    names = names_of("summary", (line.evidence_id for line in pool.summary))
    lines = zip(names, pool.summary, strict=True)
    return {evidence_id for name, line in lines if name in selected for evidence_id in summary_evidence(line)}


def _citations(packet: MemoryPacket, summed_up: set[str]) -> Iterator[str]:
    """MP-13: as many citations as ids that are named, no more and no less."""
    named = {name for _, name in evidence_ids(packet.to_wire())} | summed_up
    cited = Counter(each.id for each in packet.citations)
    for name in sorted(named ^ cited.keys()):
        yield f"{name}: named but not cited" if name in named else f"{name}: cited but not named"
    for name, count in cited.items():
        if count > 1:
            yield f"{name}: cited {count} times"


def _quotes(pool: Pool, packet: MemoryPacket) -> Iterator[str]:
    """MP-05: every quote stands in the turn it names, word for word."""
    texts: dict[str, list[str]] = {}
    for turn in (*pool.window, *(each.turn for each in (*pool.hits, *pool.profile))):
        texts.setdefault(turn.id, []).append(turn.text)
    said = [(each.evidence_id, each.quote) for each in packet.short_term.key_quotes or ()]
    said += [(each.evidence_id, each.content) for each in packet.short_term.conversation_window or ()]
    for evidence_id, quote in said:
        if not quote or not any(quote in text for text in texts.get(evidence_id, ())):
            yield f"{evidence_id}: {quote!r:.60} is not what it says"
