"""Compose a packet: offer candidates in order of value, allocate the budget, and lay the packet out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

from pydantic_core import to_json

from muniment.contracts.packet import (
    BudgetReport,
    Citation,
    ConflictNote,
    ConversationTurn,
    Explain,
    Insight,
    InsightItem,
    KeyQuote,
    LongTerm,
    MemoryPacket,
    OpenLoop,
    PacketBudget,
    PacketMeta,
    PacketScope,
    ShortTerm,
    ToolEvidence,
    UsagePolicy,
)
from muniment.core.canonical import Written, canonical_bytes
from muniment.core.policy import ComposePolicy
from muniment.core.ports.models import TokenCounter, adds_lines, weighing
from muniment.core.record import JsonObject, JsonValue, Record
from muniment.memory._fact_records import is_instruction
from muniment.memory.evidence import match_text, read_wanted
from muniment.memory.tool_results import asks_how_often
from muniment.memory.turns import told_text
from muniment.packets.admission import Admission, emitted_ts
from muniment.packets.allocate import (
    TYPICAL_MARK,
    AllocatedLine,
    Allocation,
    Floors,
    Limits,
    Offer,
    Pricer,
    ShownTurn,
    allocate,
    floors_of,
)
from muniment.packets.conversation import (
    SETTLED,
    WINDOW,
    ShownLine,
    cued_turns,
    offer_loops,
    offer_profile,
    offer_quotes,
    offer_summary,
    offer_tools,
    offer_window,
)
from muniment.packets.explain import Explanation
from muniment.packets.layout import (
    ANSWER_MARKS,
    EXCERPTS,
    MARKS,
    PROFILE,
    Page,
    Sheet,
    excerpt_note,
    joined,
    lay_out,
    sheet_of,
)
from muniment.packets.page import (
    BLOCK_NAMES,
    BLOCKS,
    SECTIONS,
    SUPERSEDED,
    BlockName,
    Section,
    StateUnit,
    preamble,
    state_evidence,
    state_line,
    summary_evidence,
    today_line,
)
from muniment.packets.pool import ComposeRequest, FactCandidate, KnownMarks, Pool
from muniment.packets.sections import (
    INSTRUCTIONS,
    UNMATCHED,
    allows_insights,
    offer_episodes,
    offer_facts,
    offer_insights,
    offer_procedures,
    offer_state,
    state_of,
)

__all__ = [
    "OVERHEAD",
    "SORT_KEYS",
    "Composed",
    "Usage",
    "compose",
    "found_chance",
    "is_found",
    "measure",
    "write_packet",
]

_STANDING: tuple[BlockName, ...] = ("loops", "summary", "tools", "window")
_MEANT = frozenset(("goal", "objective", "done_definition", "plan", "next_actions", "risks", "hints"))
"""State parts about intentions rather than facts: they count only if they match the whole question."""


def found_chance(admission: Admission) -> float:
    """The probability that a quotable turn is evidence for the query: that of the likeliest."""
    likeliest = sorted(admission.pool.hits, key=lambda hit: -hit.score)
    return next((hit.score for hit in likeliest if admission.bars_turn(hit.turn) is None), 0.0)


def is_found(admission: Admission, allocation: Allocation) -> bool:
    """True if a turn is evidence with `found_min` or more, if a fact or a line of the run's state has `match_min` of
    the query or, for a query that names nothing, if the packet is not empty.
    """
    policy = admission.policy
    if not admission.is_asked:
        return bool(allocation.lines)
    if found_chance(admission) >= policy.found_min:
        return True
    wanted = read_wanted(admission.request.query)
    if asks_how_often(admission.request.query.casefold()):  # many occurrences share the probability, so each has little
        texts = [(hit.score, told_text(hit.turn, hit.turn.text)) for hit in admission.pool.hits]
        alike = [score for score, text in texts if match_text(wanted, text).score >= policy.match_min]
        if math.fsum(alike) >= policy.found_min:
            return True
    facts = allocation.in_block("instructions", "facts")
    if any(line.item.score >= policy.match_min for line in facts):
        return True
    state: Iterable[StateUnit] = [line.item for line in allocation.in_block("task", "state")]
    if not admission.terms:
        return bool(state or allocation.in_block(*_STANDING))
    lines = [(state_line(unit, lambda _: ""), 1.0 if unit.part in _MEANT else policy.match_min) for unit in state]
    given = [line.item.line for line in allocation.in_block("summary")]
    lines += [(line.text, policy.match_min) for line in given if line.kind == "given"]
    return any(match_text(wanted, text).score >= share for text, share in lines)


OVERHEAD = "overhead"
"""The key of `section_usage` for text outside all sections: the preamble, the date, and separators."""
SORT_KEYS: JsonObject = {
    "instructions": ["recorded_at", "fact_id"],
    "facts": ["cue", "query_match", "confidence", "recorded_at", "fact_id"],
    "procedures": ["priority", "usage", "recorded_at", "procedure_id"],
    "quotes": ["cue", "worth", "id"],
    "episodes": ["cue", "query_match", "recency_score", "episode_id"],
    "insights": ["validated", "confidence", "recorded_at", "id"],
}


@dataclass(frozen=True, slots=True)
class Composed:
    """A packet, its page, the page's token counts, and the targets of its marks."""

    wire: dict[str, Any] = field(repr=False)
    """The packet as plain data."""
    text: str
    tokens: int
    marks: dict[str, str]
    stable_chars: int = 0
    """The length of the text's stable prefix."""

    @property
    def packet(self) -> MemoryPacket:
        """The packet as a record, validated on each call."""
        return MemoryPacket.from_wire(self.wire)


def compose(
    request: ComposeRequest, pool: Pool, policy: ComposePolicy, counter: TokenCounter, policy_digest: str
) -> Composed:
    """Compose a packet from gathered candidates. The same arguments give the same bytes."""
    admission = Admission(request, pool, policy)
    notes = Explanation()
    offers = _offers(admission, notes)
    pricer = Pricer(counter, request.budget.max_tokens, 1 if request.marks is None else request.marks.next_number)
    limits, floors = _limits(admission, pricer)
    while True:  # once, unless the counter's line counts do not add up
        allocation = allocate(offers, limits, pricer)
        packet = _Draft(admission, allocation, notes.conflicts).packet(
            _filters(admission, floors), _determinism(admission, policy_digest, counter)
        )
        page = lay_out(_with_marks(sheet_of(packet), request.marks))
        usage = measure(page, counter)
        tighter = _tightened(limits, usage, request.budget)
        if tighter is None:
            break
        limits = tighter
    _explain(notes, allocation)
    return Composed(_finished(packet, page, usage, notes), page.text, usage.total, page.marks, page.stable_chars)


def write_packet(wire: dict[str, Any]) -> bytes:
    """A composed packet as canonical JSON.

    Its long lists hold texts, and objects of texts and integers with sorted keys, for which every writer produces the
    same bytes, so the fastest one is used.
    """
    short, report, explain = dict(wire["short_term"]), dict(wire["budget_report"]), dict(wire["explain"])
    for part, names in (
        (short, ("key_quotes", "conversation_window")),
        (report, ("omissions",)),
        (explain, ("selected", "omitted")),
    ):
        part.update({name: _written(part[name]) for name in names if name in part})
    written = {"short_term": short, "budget_report": report, "explain": explain}
    return canonical_bytes({**wire, **written, "citations": _written(wire["citations"])})


def _written(rows: Sequence[Any]) -> Written:
    return Written(to_json(rows).decode())


# -- order of value, and limits -------------------------------------------------------------------------


def _offers(admission: Admission, notes: Explanation) -> list[Offer]:
    """All offers for the packet, in allocation order.

    Those with a share of their own are offered again after the rest, without it, so that no room is left unused.
    """
    facts = offer_facts(admission, notes)
    summary = offer_summary(admission, notes)
    loops, tools = offer_loops(admission, notes), offer_tools(admission, notes)
    window = offer_window(admission, notes)
    quotes = offer_quotes(admission, notes)
    episodes = offer_episodes(admission, notes, cued_turns(admission))
    shared = [*facts.instructions, *summary, *window, *quotes.found, *facts.unmatched]
    return [
        *offer_state(admission, notes),
        *facts.instructions,
        *summary,
        *offer_profile(admission, notes),
        *facts.matched,
        *offer_procedures(admission, notes),
        *window,
        *([*tools, *loops] if admission.purpose == "tool" else [*loops, *tools]),
        *facts.unmatched,
        *quotes.found,
        *offer_insights(admission, notes),
        *quotes.own,
        *episodes,
        *(offer._replace(most=None, pot=None) for offer in shared),
    ]


def _limits(admission: Admission, pricer: Pricer) -> tuple[Limits, Floors]:
    policy, request = admission.policy, admission.request
    budget = request.budget
    today = today_line(request.local_now)
    has_instructions = any(is_instruction(each.fact) for each in admission.pool.facts)
    opening = (*preamble(has_instructions=has_instructions), *(() if today is None else (today,)))
    spent = pricer.tokens(sum(map(pricer.price, opening)))
    floors = floors_of(policy, request.purpose, budget, budget.max_tokens - spent)
    is_matched = bool(admission.pool.hits) and bool(request.query.strip())
    shares = {
        INSTRUCTIONS: policy.instruction_share,
        UNMATCHED: policy.unmatched_share if is_matched else 1.0,
        WINDOW: policy.unmatched_share if is_matched else 1.0,
        SETTLED: policy.settled_share if request.query.strip() else 1.0,
    }
    return Limits(
        total=budget.max_tokens,
        sections={section: getattr(budget.per_section, section) for section in SECTIONS},
        floors=floors.kept,
        pots={name: int(share * budget.max_tokens) for name, share in shares.items()},
        cut_min=policy.cut_tokens_min,
        near_duplicate=policy.near_duplicate,
        opening=opening,
    ), floors


def _tightened(limits: Limits, usage: Usage, budget: PacketBudget) -> Limits | None:
    """Narrower limits if the page or a section exceeds its budget; None if it fits."""
    for section in SECTIONS:
        excess = usage.alone[section] - getattr(budget.per_section, section)
        if excess > 0:
            left = limits.sections[section] - max(excess, limits.sections[section] // 8)
            return limits._replace(sections={**limits.sections, section: max(0, left)})
    excess = usage.total - budget.max_tokens
    return limits._replace(total=limits.total - max(excess, limits.total // 8)) if excess > 0 else None


# -- counting a page ----------------------------------------------------------------------------------

_MARK = re.compile(r"\[[1-9][0-9]{0,2}\]")


class Usage:
    """The token counts of a page: sections and overhead add up to `total`, the count of the whole text."""

    def __init__(self, alone: dict[Section, int], whole: int) -> None:
        self.alone = alone
        """Each section counted alone, for comparison with its cap."""
        self.total = whole
        self.sections = _shrunk(alone, whole)
        self.overhead = whole - sum(self.sections.values())

    def to_report(self) -> dict[str, int]:
        return {**{str(section): count for section, count in self.sections.items()}, OVERHEAD: self.overhead}


def _shrunk(alone: dict[Section, int], whole: int) -> dict[Section, int]:
    """Scale parts that add up to more than the whole, due to estimates or merges across boundaries."""
    parts = sum(alone.values())
    if parts <= whole:
        return alone
    shared = {section: count * whole // parts for section, count in alone.items()}
    rest = whole - sum(shared.values())
    for section in sorted(alone, key=lambda each: -alone[each]):  # at most one each, for rounding
        if rest and shared[section] < alone[section]:
            shared[section] += 1
            rest -= 1
    return shared


def measure(page: Page, counter: TokenCounter) -> Usage:
    """Count each section and the whole of a page. An empty text costs nothing."""
    if all(map(_starts_apart, chain.from_iterable(page.lines.values()))):
        if adds_lines(counter):
            alone = {section: _sum_of(page.lines[section], counter.count_many) for section in SECTIONS}
            return Usage(alone, sum(alone.values()) + _sum_of(page.opening, counter.count_many))
        if (scales := weighing(counter)) is not None:
            weights = {section: _sum_of(page.lines[section], scales.weigh_many) for section in SECTIONS}
            whole = sum(weights.values()) + _sum_of(page.opening, scales.weigh_many)
            alone = {section: scales.tokens_of_weight(weight) for section, weight in weights.items()}
            return Usage(alone, scales.tokens_of_weight(whole))
    texts = [joined(page.lines[section]) for section in SECTIONS]
    held = [text for text in (*texts, page.text) if text]
    counts = dict(zip(held, counter.count_many(held), strict=True))
    return Usage(
        {section: counts.get(text, 0) for section, text in zip(SECTIONS, texts, strict=True)},
        counts.get(page.text, 0),
    )


def _starts_apart(line: str) -> bool:
    """True if no tokenizer can merge this line's start with the preceding line break."""
    return line != "" and line[0] != "/" and not line[0].isspace()


def _sum_of(lines: Sequence[str], count_many: Callable[[Sequence[str]], list[int]]) -> int:
    """The sum over a page's lines, most of them already priced: all marks cost the same."""
    return sum(count_many([f"{_unmarked(line)}\n" for line in lines]))


def _unmarked(line: str) -> str:
    return _MARK.sub(TYPICAL_MARK, line) if "[" in line else line


# -- the packet ---------------------------------------------------------------------------------------

R = TypeVar("R", bound=Record)


def _made(kind: type[R], **given: Any) -> R:
    """Build a record of valid values; omitted fields are absent."""
    return kind.unchecked({name: given.get(name) for name in kind.model_fields}, set(given))


class _Draft:
    """Converts an allocation into a packet without explanation and counts."""

    def __init__(self, admission: Admission, allocation: Allocation, conflicts: Sequence[JsonObject]) -> None:
        self._admission, self._conflicts = admission, conflicts
        self._blocks: dict[BlockName, list[AllocatedLine]] = {
            block.name: allocation.in_block(block.name) for block in BLOCKS
        }
        self._found = is_found(admission, allocation)

    def packet(self, filters: JsonObject, determinism: JsonObject) -> MemoryPacket:
        admission = self._admission
        policy = admission.policy
        evidence: JsonObject = {
            "chance": found_chance(admission),
            "evidence_min": policy.evidence_min,
            "evidence_share": policy.evidence_share,
            "found": self._found,
            "found_min": policy.found_min,
        }
        cited = self._cited()
        answers: JsonObject = {name: dict(admission.answers[name]) for name in cited if name in admission.answers}
        if answers:
            determinism = {**determinism, ANSWER_MARKS: answers}
        return _made(
            MemoryPacket,
            meta=_meta(admission.request),
            short_term=self._short_term(),
            long_term=self._long_term(),
            insight=self._insight(),
            citations=self._citations(cited),
            budget_report=_made(BudgetReport, max_tokens=admission.request.budget.max_tokens),
            explain=_made(
                Explain,
                selected=(),
                omitted=(),
                filters={**filters, "evidence": evidence, **self._profile(), **self._excerpts()},
                conflicts=tuple(ConflictNote.from_wire(note) for note in self._notes()),
                determinism=determinism,
            ),
        )

    def _items(self, *blocks: BlockName) -> list[Any]:
        return [line.item for block in blocks for line in self._blocks[block]]

    def _short_term(self) -> ShortTerm:
        """Empty lists are omitted, as the document allows."""
        lists: dict[str, list[Any]] = {
            "key_quotes": [
                each for shown in self._items("profile", "quotes") for each in _quotes(KeyQuote, "quote", shown)
            ],
            "conversation_window": [
                each for shown in self._items("window") for each in _quotes(ConversationTurn, "content", shown)
            ],
            "open_loops": self._items("loops"),
            "last_tool_evidence": self._items("tools"),
        }
        return _made(
            ShortTerm,
            working_state=state_of(self._admission.pool.working_state, self._items("task", "state")),
            rolling_summary="\n".join(shown.written for shown in self._items("summary")),
            **{name: tuple(items) for name, items in lists.items() if items},
        )

    def _long_term(self) -> LongTerm:
        facts = self._items("instructions", "facts")
        preferences = tuple(each.fact for each in facts if each.is_preference)
        return _made(
            LongTerm,
            facts=tuple(each.fact for each in facts),
            procedures=tuple(self._items("procedures")),
            episodes=tuple(self._items("episodes")),
            **({"preferences": preferences} if preferences else {}),
        )

    def _insight(self) -> Insight:
        items: list[InsightItem] = self._items("insights")
        of_type = {
            name: tuple(item for item in items if item.type == kind)
            for name, kind in (("hypotheses", "hypothesis"), ("strategy_sketches", "strategy"), ("patterns", "pattern"))
        }
        allowed = _made(UsagePolicy, allow_in_responder=allows_insights(self._admission))
        return _made(Insight, usage_policy=allowed, **of_type)

    # -- citations and notes --------------------------------------------------------------------------

    def _cited(self) -> dict[str, None]:
        """The evidence ids that the packet names, in page order."""
        return dict.fromkeys(
            name for block in BLOCKS for line in self._blocks[block.name] for name in _evidence_of(line)
        )

    def _citations(self, cited: Iterable[str]) -> tuple[Citation, ...]:
        """Citations of exactly the evidence that remains after trimming (MP-13)."""
        pool = self._admission.pool
        times = {line.evidence_id: line.ts for episode in pool.episodes for line in episode.lines}
        times |= {line.evidence_id: line.ts for line in pool.summary}
        times |= {tool.ref: tool.ts for tool in pool.tools}
        return tuple([self._citation(name, times) for name in cited])

    def _citation(self, name: str, times: Mapping[str, str]) -> Citation:
        admission = self._admission
        kind, ts, who = "event", times.get(name), admission.who(name)
        if (turn := admission.turns.get(name)) is not None:
            kind, ts = turn.kind, turn.ts
        elif admission.is_result(name):
            kind = "tool_result"
        elif who and name in admission.lines:
            kind = "message"
        cited = {"id": name, "type": kind}
        if who:
            cited["summary"] = who  # the speaker: quotes have no field for a name
        if ts is not None and emitted_ts(ts) is not None:
            cited["ts"] = ts
        return _made(Citation, **cited)

    def _notes(self) -> Iterator[JsonObject]:
        yield from self._conflicts
        for each in self._items("instructions", "facts"):
            if each.stale_dependency:
                detail = f"{each.fact.fact_key} rests on a fact that no longer holds"
                yield {"type": "stale_dependency", "detail": detail, "fact_ids": [each.fact.fact_id]}
        superseded = self._admission.superseded
        quoted = [shown.turn.id for shown in self._items("profile", "quotes", "window")]
        present = {*quoted, *(tool.ref for tool in self._items("tools"))}
        present.update(id_ for unit in self._items("task", "state") for id_ in state_evidence(unit))
        for name in quoted:
            if name in superseded:
                note: JsonObject = {"type": SUPERSEDED, "detail": "a newer call says otherwise", "evidence_id": name}
                yield note | ({"superseded_by": superseded[name]} if superseded[name] in present else {})

    def _profile(self) -> JsonObject:
        """The events whose quotes form the user's profile, for renderers."""
        ids: list[JsonValue] = [shown.turn.id for shown in self._items("profile")]
        return {PROFILE: ids} if ids else {}

    def _excerpts(self) -> JsonObject:
        """The quoted stretches of long results and their sizes, for notes on the omitted rest."""
        shown: list[ShownTurn] = self._items("profile", "quotes", "window")
        held: JsonObject = {each.turn.id: excerpt_note(each.excerpt) for each in shown if each.excerpt is not None}
        return {EXCERPTS: held} if held else {}


def _quotes(kind: type[R], text_field: str, shown: ShownTurn) -> list[R]:
    """One quote, or for a long result one per stretch: each is verbatim (MP-05)."""
    turn = shown.turn
    dated = {"ts": turn.ts} if emitted_ts(turn.ts) is not None else {}
    texts = [shown.text] if shown.excerpt is None else [stretch.text for stretch in shown.excerpt.stretches]
    return [_made(kind, evidence_id=turn.id, role=turn.role, **{text_field: text}, **dated) for text in texts]


def _evidence_of(line: AllocatedLine) -> Iterable[str]:
    """The evidence ids of a line."""
    item = line.item
    if isinstance(item, ShownTurn):
        return (item.turn.id,)
    if isinstance(item, StateUnit):
        return state_evidence(item)
    if isinstance(item, ToolEvidence):
        return (item.ref,)
    if isinstance(item, ShownLine):
        return summary_evidence(item.line)
    if isinstance(item, FactCandidate):
        return item.fact.sources
    if isinstance(item, OpenLoop):
        return () if item.evidence_id is None else (item.evidence_id,)
    sources: Iterable[str] = item.sources or ()
    return sources


def _meta(request: ComposeRequest) -> PacketMeta:
    cues = request.cues
    has_cues = bool(cues.model_fields_set or cues.model_extra)
    return _made(
        PacketMeta,
        schema_version="v1",
        scope=_made(PacketScope, **dict(request.scope)),
        generated_at=request.local_now,
        purpose=request.purpose,
        task_type=request.task_type,
        budget=request.budget,
        policy_id=request.policy_id,
        **({"cues": cues} if has_cues else {}),
    )


def _filters(admission: Admission, floors: Floors) -> JsonObject:
    policy, request = admission.policy, admission.request
    return {
        "purpose": admission.purpose,
        "now": request.now,
        "facts": {"status": "active", "valid": "now", "confidence_min": policy.confidence_min},
        "time_window": {
            "episode_window_days": policy.episode_window_days,
            "raw_days": policy.raw_days,
            "phase_days": policy.phase_days,
            "milestone_days": policy.milestone_days,
        },
        "top_k": {
            "instructions": policy.instructions_max,
            "facts": policy.facts_max,
            "procedures": policy.procedures_max,
            "episodes": policy.episodes_max,
            "insights": policy.insights_max,
            "quotes": policy.quotes_max,
            "window_turns": policy.window_turns,
            "tool_evidence": policy.tool_evidence_max,
            "claims": policy.claims_max,
            "questions": policy.questions_max,
            "conflicts": policy.conflicts_max,
            "failures": policy.failures_max,
        },
        "near_duplicate": policy.near_duplicate,
        "barred_trust": list(getattr(policy, f"barred_trust_{admission.purpose}")),
        "quote_instruction_like": policy.quote_instruction_like,
        "insights_in_responder": policy.allow_validated_insights_in_responder,
        **({"exclude_session": True} if request.exclude_session else {}),
        "floors": floors.to_report(),
        **({"cues": admission.cues.to_report()} if admission.cues.is_given else {}),
        "not_gathered": {each.kind: each.to_report() for each in admission.pool.not_gathered},
    }


def _determinism(admission: Admission, policy_digest: str, counter: TokenCounter) -> JsonObject:
    return {
        "policy_id": admission.request.policy_id,
        "policy_digest": policy_digest,
        "sort_keys": SORT_KEYS,
        "token_counter": {"name": counter.name, "is_exact": counter.is_exact},
    }


def _with_marks(sheet: Sheet, marks: KnownMarks | None) -> Sheet:
    """The sheet with the numbers that the session already gave to evidence."""
    return sheet if marks is None else replace(sheet, known_marks=marks.numbers, next_mark=marks.next_number)


def _explain(notes: Explanation, allocation: Allocation) -> None:
    """Record the fate of each offered candidate."""
    for line in allocation.lines:
        candidate = line.candidate
        notes.select(candidate.name, candidate.score, candidate.rules)
        if line.step is not None:
            whole = "" if candidate.item is None else f" of {allocation.tokens_of(allocation.whole_price(candidate))}"
            section = BLOCK_NAMES[candidate.block].section
            notes.step_down(
                candidate.name, section, line.step, f"{allocation.tokens_of(line.price)}{whole} tokens kept"
            )
    for name, (reason, detail) in allocation.omitted.items():
        notes.omit(name, reason, **detail)


def _finished(packet: MemoryPacket, page: Page, usage: Usage, notes: Explanation) -> dict[str, Any]:
    """The packet as plain data, with its counts and explanations."""
    report = packet.budget_report
    whole = packet.model_copy(
        update={
            "budget_report": _made(
                BudgetReport,
                max_tokens=report.max_tokens,
                used_tokens_est=usage.total,
                section_usage=usage.to_report(),
                degradations=(),
            )
        }
    )
    wire = whole.to_wire()
    omissions = notes.omissions
    for part, name in ((wire, "citations"), (wire["short_term"], "conversation_window")):
        if name in part:
            part[name] = [dict(sorted(each.items())) for each in part[name]]
    wire["budget_report"] |= {"degradations": notes.degradations, **({"omissions": omissions} if omissions else {})}
    wire["explain"] |= {"selected": notes.selected, "omitted": notes.omitted}
    if page.marks:
        wire["explain"]["determinism"][MARKS] = dict(page.marks)
    return wire
