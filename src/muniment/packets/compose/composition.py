"""The way in: place section by section in the fixed order, lay the page out, count it, and write the packet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from muniment.contracts.packet import MemoryPacket, PacketMeta, PacketScope, ToolEvidence
from muniment.core.canonical import Written, canonical_bytes
from muniment.core.policy import ComposePolicy
from muniment.core.ports.models import TokenCounter
from muniment.core.record import JsonObject
from muniment.packets.compose.budget import Usage, measure
from muniment.packets.compose.conversation import Quotes, place_short_term
from muniment.packets.compose.cues import AskedCues
from muniment.packets.compose.draft import PacketDraft, Placed, Said, emitted_ts
from muniment.packets.compose.episodes import place_episodes
from muniment.packets.compose.evidence import is_asked
from muniment.packets.compose.floors import keep_floors
from muniment.packets.compose.items import allows_insights, place_facts, place_insights, place_procedures
from muniment.packets.compose.results import drop_repeated
from muniment.packets.compose.state import place_state, state_of
from muniment.packets.page.layout import (
    ANSWER_MARKS,
    EXCERPTS,
    MARKS,
    Page,
    Quoted,
    Sheet,
    excerpt_note,
    lay_out,
)
from muniment.packets.page.lines import (
    BLOCK_NAMES,
    BLOCKS,
    BlockName,
    Section,
    StateUnit,
    state_evidence,
    summary_evidence,
)
from muniment.packets.page.superseded import SUPERSEDED
from muniment.packets.pool import ComposeRequest, Pool

__all__ = [
    "SORT_KEYS",
    "Composed",
    "assemble",
    "citations_of",
    "cited_by",
    "compose",
    "determinism_of",
    "meta_of",
    "page_of",
    "write_packet",
]


@dataclass(frozen=True, slots=True)
class Composed:
    """A packet, the page it makes for its purpose, the tokens counted on it, and what its marks refer to."""

    wire: dict[str, Any] = field(repr=False)
    """The packet as plain data."""
    text: str
    tokens: int
    marks: dict[str, str]
    stable_chars: int = 0
    """How much of the text, from its beginning, seldom changes from packet to packet."""

    @property
    def packet(self) -> MemoryPacket:
        """The packet as a record: held to its contract each time it is asked for."""
        return MemoryPacket.from_wire(self.wire)


def compose(
    request: ComposeRequest, pool: Pool, policy: ComposePolicy, counter: TokenCounter, policy_digest: str
) -> Composed:
    """Compose a packet from what was gathered. The same arguments give the same bytes."""
    meta = meta_of(request).to_wire()
    determinism = determinism_of(request, policy_digest, counter)
    draft = PacketDraft(request, pool, policy, counter)
    keep_floors(draft)
    place_state(draft)
    draft.purse.served("working_state")
    place_facts(draft)
    draft.purse.served("facts")
    place_procedures(draft)
    draft.purse.served("procedures")
    quotes = place_short_term(draft)
    draft.purse.served("short_term_summary")
    place_episodes(draft)
    draft.purse.served("episodes")
    place_insights(draft)
    draft.purse.served("insights")
    quotes.retry()  # what was kept for episodes and insights and is left
    quotes.widen()
    quotes.fill_room()

    page, usage = _trim(draft, counter)
    if _top_up(draft, quotes, usage):
        page, usage = _trim(draft, counter)
    if drop_repeated(draft):
        page, usage = _trim(draft, counter)
    if page.marks:
        determinism[MARKS] = dict(page.marks)
    if answers := _answers(draft):
        determinism[ANSWER_MARKS] = {name: dict(named) for name, named in answers.items()}
    wire = assemble(draft, meta, _report(draft, usage), determinism)
    return Composed(wire, page.text, usage.total, page.marks, page.stable_chars)


def _trim(draft: PacketDraft, counter: TokenCounter) -> tuple[Page, Usage]:
    """Lay out and count until it fits. What was placed last goes first: goal, constraints, slots go last (MP-04)."""
    while True:
        page = page_of(draft)
        usage = measure(page, counter)
        section, excess = draft.purse.overspent(usage)
        if not excess:
            return page, usage
        _give_back(draft, section, excess)


def _give_back(draft: PacketDraft, section: Section | None, excess: int) -> None:
    """At least one item, and as many as were priced at the excess."""
    for placed in reversed(list(draft.placed)):
        if section is None or BLOCK_NAMES[placed.block].section == section:
            draft.take_back(placed, "over_budget", detail="the page as a whole was too long")
            excess -= placed.tokens
            if excess <= 0:
                return
    draft.says_not_found = False  # nothing else is left to give


def _top_up(draft: PacketDraft, quotes: Quotes, usage: Usage) -> bool:
    """Lines counted together can cost less than one by one: was there room for another quote?"""
    draft.purse.settle(usage)
    has_more, is_wider = quotes.retry(), quotes.widen()
    return has_more or is_wider


def _report(draft: PacketDraft, usage: Usage) -> dict[str, Any]:
    omissions = draft.tally.omissions
    return {
        "max_tokens": draft.purse.tokens_max,
        "used_tokens_est": usage.total,
        "section_usage": usage.to_report(),
        "degradations": draft.tally.degradations,
        **({"omissions": omissions} if omissions else {}),
    }


SORT_KEYS: JsonObject = {
    "instructions": ["recorded_at", "fact_id"],
    "facts": ["cue", "query_match", "confidence", "recorded_at", "fact_id"],
    "procedures": ["priority", "usage", "recorded_at", "procedure_id"],
    "quotes": ["cue", "worth", "id"],
    "episodes": ["cue", "query_match", "recency_score", "episode_id"],
    "insights": ["validated", "confidence", "recorded_at", "id"],
}


_META = set(PacketMeta.model_fields)


def meta_of(request: ComposeRequest) -> PacketMeta:
    """What was asked, as it stands in the packet; a cue's time that names no instant is the caller's error."""
    AskedCues(request.cues)
    has_cues = bool(request.cues.model_fields_set or request.cues.model_extra)
    return PacketMeta.unchecked(  # of a request that was validated
        {
            "schema_version": "v1",
            "scope": PacketScope.unchecked(dict(request.scope)),
            "generated_at": request.now,
            "purpose": request.purpose,
            "task_type": request.task_type,
            "cues": request.cues if has_cues else None,
            "budget": request.budget,
            "policy_id": request.policy_id,
        },
        _META if has_cues else _META - {"cues"},
    )


def page_of(draft: PacketDraft) -> Page:
    """What was placed, laid out: the page that `render` makes of the packet."""

    def quoted(block: BlockName) -> list[Quoted]:
        said: list[Said] = [placed.item for placed in draft.items(block)]
        return [
            Quoted(turn.id, draft.who(turn.id) or turn.role, text, emitted_ts(turn.ts), turn.role, excerpt)
            for turn, text, excerpt in said
        ]

    def held(block: BlockName) -> list[Any]:
        return [placed.item for placed in draft.items(block)]

    marks = draft.request.marks
    cited = cited_by(draft)
    return lay_out(
        Sheet(
            purpose=draft.purpose,
            now=draft.request.now,
            state=state_of(draft),
            facts=[candidate.fact for candidate in (*held("instructions"), *held("facts"))],
            procedures=held("procedures"),
            summary=_summary(draft),
            quotes=quoted("quotes"),
            superseded=_superseded(draft),
            says_not_found=draft.says_not_found,
            loops=held("loops"),
            window=quoted("window"),
            tools=held("tools"),
            episodes=held("episodes"),
            insights=held("insights"),
            allows_insights=allows_insights(draft),
            cited=cited,
            who=draft.who,
            results={name for name in cited if draft.is_result(name)},
            known_marks={} if marks is None else marks.numbers,
            next_mark=1 if marks is None else marks.next_number,
            answers=_answers(draft),
        )
    )


def _answers(draft: PacketDraft) -> dict[str, dict[str, str]]:
    """What the marks of the answers in the packet named on the pages that they were given for."""
    if not draft.answers:
        return {}
    return {name: draft.answers[name] for name in cited_by(draft) if name in draft.answers}


def assemble(draft: PacketDraft, meta: JsonObject, report: JsonObject, determinism: JsonObject) -> dict[str, Any]:
    """The packet as plain data, under its wire names: what is checked and written."""
    return {
        "meta": meta,
        "short_term": _short_term(draft),
        "long_term": _long_term(draft),
        "insight": _insight(draft),
        "citations": citations_of(draft),
        "budget_report": report,
        "explain": {
            "selected": draft.tally.selected,
            "omitted": draft.tally.omitted,
            "filters": _filters(draft),
            "conflicts": [*draft.tally.conflicts, *_superseded_notes(draft)],
            "determinism": determinism,
        },
    }


def write_packet(wire: dict[str, Any]) -> bytes:
    """A packet of `assemble` as canonical JSON.

    Its long lists hold texts, and objects of texts and whole numbers whose keys stand in order: of these any writer
    makes the same bytes, and the fastest one does.
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


def _short_term(draft: PacketDraft) -> dict[str, Any]:
    """Lists that are empty are left out, as the document lets them."""
    lists: dict[str, list[Any]] = {
        "key_quotes": [each for placed in draft.items("quotes") for each in _quoted(placed.item, "quote")],
        "conversation_window": [each for placed in draft.items("window") for each in _quoted(placed.item, "content")],
        "open_loops": _wire_items(draft, "loops"),
        "last_tool_evidence": _wire_items(draft, "tools"),
    }
    return {
        "working_state": state_of(draft).to_wire(),
        "rolling_summary": _summary(draft),
        **{name: items for name, items in lists.items() if items},
    }


def _wire_items(draft: PacketDraft, block: BlockName) -> list[dict[str, Any]]:
    """The items of a block as the packet has them."""
    return [placed.item.to_wire() for placed in draft.items(block)]


def _quoted(said: Said, field: str) -> list[dict[str, str]]:
    """One quote; of a long result, one for each stretch: each is verbatim (MP-05)."""
    turn = said.turn
    dated = {"ts": turn.ts} if emitted_ts(turn.ts) is not None else {}
    texts = [said.text] if said.excerpt is None else [stretch.text for stretch in said.excerpt.stretches]
    return [dict(sorted({"evidence_id": turn.id, field: text, "role": turn.role, **dated}.items())) for text in texts]


def _long_term(draft: PacketDraft) -> dict[str, Any]:
    placed = (*draft.items("instructions"), *draft.items("facts"))
    facts = [(each.item.fact.to_wire(), each.item.is_preference) for each in placed]
    preferences = [fact for fact, is_preference in facts if is_preference]
    return {
        "facts": [fact for fact, _ in facts],
        "procedures": _wire_items(draft, "procedures"),
        "episodes": _wire_items(draft, "episodes"),
        **({"preferences": preferences} if preferences else {}),
    }


def _insight(draft: PacketDraft) -> dict[str, Any]:
    items = _wire_items(draft, "insights")
    return {
        "usage_policy": {"allow_in_responder": allows_insights(draft)},
        "hypotheses": [item for item in items if item["type"] == "hypothesis"],
        "strategy_sketches": [item for item in items if item["type"] == "strategy"],
        "patterns": [item for item in items if item["type"] == "pattern"],
    }


def _summary(draft: PacketDraft) -> str:
    return "\n".join(placed.item[1] for placed in draft.items("summary"))


_QUOTING: tuple[BlockName, ...] = ("quotes", "window")


def _superseded(draft: PacketDraft) -> dict[str, str | None]:
    """The superseded results on the page, with what supersedes them if that is on the page too."""
    quoted = [placed.item.turn.id for block in _QUOTING for placed in draft.items(block)]
    present = {*quoted, *(placed.item.ref for placed in draft.items("tools"))}
    newer = {name: draft.superseded[name] for name in quoted if name in draft.superseded}
    return {name: by if by in present else None for name, by in newer.items()}


def _superseded_notes(draft: PacketDraft) -> Iterator[JsonObject]:
    for evidence_id, by in _superseded(draft).items():
        note: JsonObject = {"type": SUPERSEDED, "detail": "the call was made again", "evidence_id": evidence_id}
        yield note | ({"superseded_by": by} if by else {})


def _filters(draft: PacketDraft) -> JsonObject:
    policy = draft.policy
    return {
        "purpose": draft.purpose,
        "now": draft.request.now,
        "facts": {"status": "active", "valid": "now", "confidence_min": policy.confidence_min},
        "evidence": {
            "evidence_min": policy.evidence_min,
            "evidence_share": policy.evidence_share,
            "found": draft.found if is_asked(draft) else bool(draft.placed),
            "found_min": policy.found_min,
            "says_not_found": draft.says_not_found,
        },
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
        "barred_trust": list(getattr(policy, f"barred_trust_{draft.purpose}")),
        "quote_instruction_like": policy.quote_instruction_like,
        "insights_in_responder": policy.allow_validated_insights_in_responder,
        **({"exclude_session": True} if draft.request.exclude_session else {}),
        **_excerpts(draft),
        **draft.notes,
        **({"cues": draft.cues.to_report()} if draft.cues.is_given else {}),
        "not_gathered": {each.kind: each.to_report() for each in draft.pool.not_gathered},
    }


def _excerpts(draft: PacketDraft) -> JsonObject:
    """Which stretches of long results are quoted, and how long these are: what the page says of the rest."""
    said: list[Said] = [placed.item for placed in (*draft.items("quotes"), *draft.items("window"))]
    held: JsonObject = {each.turn.id: excerpt_note(each.excerpt) for each in said if each.excerpt is not None}
    return {EXCERPTS: held} if held else {}


def determinism_of(request: ComposeRequest, policy_digest: str, counter: TokenCounter) -> JsonObject:
    return {
        "policy_id": request.policy_id,
        "policy_digest": policy_digest,
        "sort_keys": SORT_KEYS,
        "token_counter": {"name": counter.name, "is_exact": counter.is_exact},
    }


_UNKNOWN: str = "event"
"""The type of evidence that is named but is not itself in the pool."""


def citations_of(draft: PacketDraft) -> list[dict[str, str]]:
    """The citations of a packet, in the order of the page: after trimming none is left over and none is missing."""
    times = _times(draft)
    return [_citation(draft, name, times) for name in cited_by(draft)]


def cited_by(draft: PacketDraft) -> dict[str, None]:
    """The evidence ids that what was placed names, in the order of the page."""
    ids: dict[str, None] = {}
    for block in BLOCKS:
        for placed in draft.items(block.name):
            if type(placed.item) is Said:  # most of them
                ids[placed.item.turn.id] = None
            else:
                ids.update(dict.fromkeys(_evidence_ids(placed)))
    return ids


def _evidence_ids(placed: Placed) -> Iterator[str]:
    """The ids of the evidence that a placed item rests on."""
    item = placed.item
    if isinstance(item, StateUnit):
        yield from state_evidence(item)
    elif isinstance(item, ToolEvidence):
        yield item.ref
    elif placed.block == "summary":
        yield from summary_evidence(item[0])
    elif placed.block in ("instructions", "facts"):
        yield from item.fact.sources
    elif placed.block == "loops":
        if item.evidence_id is not None:
            yield item.evidence_id
    else:
        yield from item.sources or ()


def _citation(draft: PacketDraft, name: str, times: Mapping[str, str]) -> dict[str, str]:
    kind, ts, who = _UNKNOWN, times.get(name), draft.who(name)
    if (turn := draft.turns.get(name)) is not None:
        kind, ts = turn.kind, turn.ts
    elif draft.is_result(name):
        kind = "tool_result"
    elif who and name in draft.lines:
        kind = "message"
    cited = {"id": name}
    if who:
        cited["summary"] = who  # who said it: quotes have no field for a name
    if ts is not None and emitted_ts(ts) is not None:
        cited["ts"] = ts
    cited["type"] = kind
    return cited


def _times(draft: PacketDraft) -> dict[str, str]:
    """When what is no turn of the pool was said."""
    found = {line.evidence_id: line.ts for episode in draft.pool.episodes for line in episode.lines}
    found |= {line.evidence_id: line.ts for line in draft.pool.summary}
    return found | {tool.ref: tool.ts for tool in draft.pool.tools}
