"""From what was placed to the packet: its seven sections, filled in reading order (MP-01, MP-02)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pydantic_core import to_json

from muniment.contracts.memory_packet import PacketMeta, PacketScope
from muniment.core.canonical import Written, canonical_bytes
from muniment.core.ports.tokens import TokenCounter
from muniment.core.record import JsonObject
from muniment.core.rfc3339 import parse_rfc3339
from muniment.errors import InvalidInput
from muniment.packets.compose.cite import citations_of, cited_by
from muniment.packets.compose.insights import allows_insights
from muniment.packets.compose.placing import Desk, Said, emitted_ts
from muniment.packets.compose.state import state_of
from muniment.packets.page.layout import SUPERSEDED, Page, Quoted, Sheet, lay_out
from muniment.packets.page.matrix import BlockName
from muniment.packets.pool import ComposeRequest

__all__ = ["SORT_KEYS", "assemble", "determinism_of", "meta_of", "page_of", "write_packet"]

SORT_KEYS: JsonObject = {
    "facts": ["query_match", "confidence", "recorded_at", "fact_id"],
    "procedures": ["priority", "usage", "recorded_at", "procedure_id"],
    "quotes": ["score", "id"],
    "episodes": ["query_match", "cue", "recency_score", "episode_id"],
    "insights": ["validated", "confidence", "recorded_at", "id"],
}


def meta_of(request: ComposeRequest) -> PacketMeta:
    """What was asked, as it stands in the packet; a cue's time that names no instant is the caller's error."""
    asked = request.cues.time_range
    for key in ("start", "end"):
        text = getattr(asked, key, None)
        if text is not None and parse_rfc3339(text) is None:
            raise InvalidInput(
                f"{text!r:.60} names no instant",
                path=f"$.cues.time_range.{key}",
                hint="write RFC 3339 with an offset, such as 2026-05-01T12:00:00Z",
            )
    cues: dict[str, Any] = {"cues": request.cues} if request.cues.to_wire() else {}
    return PacketMeta(
        schema_version="v1",
        scope=PacketScope(**{key: getattr(request.scope, key) for key in type(request.scope).model_fields}),
        generated_at=request.now,
        purpose=request.purpose,
        task_type=request.task_type,
        budget=request.budget,
        policy_id=request.policy_id,
        **cues,
    )


def page_of(desk: Desk) -> Page:
    """What was placed, laid out: the page that `render` makes of the packet."""

    def quoted(block: BlockName) -> list[Quoted]:
        said: list[Said] = [placed.item for placed in desk.items(block)]
        return [Quoted(turn.id, desk.who(turn.id) or turn.role, text, emitted_ts(turn.ts)) for turn, text in said]

    def held(block: BlockName) -> list[Any]:
        return [placed.item for placed in desk.items(block)]

    return lay_out(
        Sheet(
            purpose=desk.purpose,
            state=state_of(desk),
            facts=[candidate.fact for candidate in held("facts")],
            procedures=held("procedures"),
            summary=_summary(desk),
            quotes=quoted("quotes"),
            superseded=dict(_superseded(desk)),
            loops=held("loops"),
            window=quoted("window"),
            tools=held("tools"),
            episodes=held("episodes"),
            insights=held("insights"),
            allows_insights=allows_insights(desk),
            cited=cited_by(desk),
            who=desk.who,
        )
    )


def assemble(desk: Desk, meta: JsonObject, report: JsonObject, determinism: JsonObject) -> dict[str, Any]:
    """The packet as plain data, under its wire names: what is checked and written."""
    return {
        "meta": meta,
        "short_term": _short_term(desk),
        "long_term": _long_term(desk),
        "insight": _insight(desk),
        "citations": citations_of(desk),
        "budget_report": report,
        "explain": {
            "selected": desk.tally.selected,
            "omitted": desk.tally.omitted,
            "filters": _filters(desk),
            "conflicts": [*desk.tally.conflicts, *map(_note, _superseded(desk))],
            "determinism": determinism,
        },
    }


def write_packet(wire: dict[str, Any]) -> bytes:
    """A packet of `assemble` as canonical JSON.

    Its long lists hold texts, and objects of texts and whole numbers whose keys stand in order: of these any writer
    makes the same bytes, and the fastest one does.
    """
    short, report, explain = dict(wire["short_term"]), dict(wire["budget_report"]), dict(wire["explain"])
    for part, names in ((short, ("key_quotes",)), (report, ("omissions",)), (explain, ("selected", "omitted"))):
        part.update({name: _written(part[name]) for name in names if name in part})
    written = {"short_term": short, "budget_report": report, "explain": explain}
    return canonical_bytes({**wire, **written, "citations": _written(wire["citations"])})


def _written(rows: Sequence[Any]) -> Written:
    return Written(to_json(rows).decode())


def _short_term(desk: Desk) -> dict[str, Any]:
    """Lists that are empty are left out, as the document lets them."""
    lists: dict[str, list[Any]] = {
        "key_quotes": [_quoted(placed.item, "quote") for placed in desk.items("quotes")],
        "conversation_window": [_quoted(placed.item, "content") for placed in desk.items("window")],
        "open_loops": _plain(desk, "loops"),
        "last_tool_evidence": _plain(desk, "tools"),
    }
    return {
        "working_state": state_of(desk).to_wire(),
        "rolling_summary": _summary(desk),
        **{name: items for name, items in lists.items() if items},
    }


def _plain(desk: Desk, block: BlockName) -> list[dict[str, Any]]:
    return [placed.item.to_wire() for placed in desk.items(block)]


def _quoted(said: Said, field: str) -> dict[str, str]:
    turn = said.turn
    quoted = {"evidence_id": turn.id, field: said.text, "role": turn.role}
    if emitted_ts(turn.ts) is not None:
        quoted["ts"] = turn.ts
    return quoted


def _long_term(desk: Desk) -> dict[str, Any]:
    facts = [(each.fact.to_wire(), each.is_preference) for each in (placed.item for placed in desk.items("facts"))]
    preferences = [fact for fact, is_preference in facts if is_preference]
    return {
        "facts": [fact for fact, _ in facts],
        "procedures": _plain(desk, "procedures"),
        "episodes": _plain(desk, "episodes"),
        **({"preferences": preferences} if preferences else {}),
    }


def _insight(desk: Desk) -> dict[str, Any]:
    items = _plain(desk, "insights")
    return {
        "usage_policy": {"allow_in_responder": allows_insights(desk)},
        "hypotheses": [item for item in items if item["type"] == "hypothesis"],
        "strategy_sketches": [item for item in items if item["type"] == "strategy"],
        "patterns": [item for item in items if item["type"] == "pattern"],
    }


def _summary(desk: Desk) -> str:
    return "\n".join(placed.item[1] for placed in desk.items("summary"))


def _superseded(desk: Desk) -> list[tuple[str, str | None]]:
    """Which evidence of quotes and facts is outdated, and by which quote, if that one is here too."""
    if not desk.newer:
        return []
    quotes = [placed.item.turn.id for placed in desk.items("quotes")]
    told = chain(quotes, *(placed.item.fact.sources for placed in desk.items("facts")))
    outdated = dict.fromkeys(evidence_id for evidence_id in told if evidence_id in desk.newer)
    present = set(quotes)
    return [(each, by if (by := desk.newer[each]) in present else None) for each in outdated]


def _note(outdated: tuple[str, str | None]) -> JsonObject:
    evidence_id, by = outdated
    named: JsonObject = (
        {"evidence_id": evidence_id} if by is None else {"evidence_id": evidence_id, "superseded_by": by}
    )
    return {"type": SUPERSEDED, "detail": "a newer turn says otherwise", **named}


def _filters(desk: Desk) -> JsonObject:
    policy = desk.policy
    return {
        "purpose": desk.purpose,
        "now": desk.request.now,
        "facts": {"status": "active", "valid": "now", "confidence_min": policy.confidence_min},
        "time_window": {
            "episode_window_days": policy.episode_window_days,
            "raw_days": policy.raw_days,
            "phase_days": policy.phase_days,
            "milestone_days": policy.milestone_days,
        },
        "top_k": {
            "facts": policy.facts_max,
            "procedures": policy.procedures_max,
            "episodes": policy.episodes_max,
            "insights": policy.insights_max,
            "quotes": policy.quotes_max,
            "window_turns": policy.window_turns,
            "tool_evidence": policy.tool_evidence_max,
        },
        "near_duplicate": policy.near_duplicate,
        "barred_trust": list(getattr(policy, f"barred_trust_{desk.purpose}")),
        "quote_instruction_like": policy.quote_instruction_like,
        "insights_in_responder": policy.allow_validated_insights_in_responder,
    }


def determinism_of(request: ComposeRequest, policy_digest: str, counter: TokenCounter) -> JsonObject:
    return {
        "policy_id": request.policy_id,
        "policy_digest": policy_digest,
        "sort_keys": SORT_KEYS,
        "token_counter": {"name": counter.name, "is_exact": counter.is_exact},
    }
