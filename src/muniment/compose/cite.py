"""Citations: every evidence id that the packet names, once, with its kind, time and speaker (MP-13)."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.compose.desk import Desk, Placed, Said, emitted_ts
from muniment.prompts.lines import StateUnit, claim_evidence
from muniment.prompts.matrix import BLOCKS
from muniment.records.packet import Decision, ToolEvidence

__all__ = ["citations_of"]

_UNKNOWN = "event"
"""The type of evidence that is named but is not itself in the pool."""


def citations_of(desk: Desk) -> list[dict[str, str]]:
    """As they stand in the packet, in the order of the page: after trimming none is left over and none is missing."""
    times = _times(desk)
    ids = dict.fromkeys(name for block in BLOCKS for placed in desk.items(block.name) for name in _named(placed))
    return [_citation(desk, name, times.get(name)) for name in ids]


def _named(placed: Placed) -> Iterator[str]:
    item = placed.item
    if isinstance(item, Said):
        yield item.turn.id
    elif isinstance(item, StateUnit):
        if isinstance(item.value, Decision) and item.value.evidence_id is not None:
            yield item.value.evidence_id
        elif isinstance(item.value, ToolEvidence):
            yield item.value.ref
        elif (evidence_id := claim_evidence(item)) is not None:
            yield evidence_id
    elif isinstance(item, ToolEvidence):
        yield item.ref
    elif placed.block == "summary":
        yield item[0].evidence_id
    elif placed.block == "facts":
        yield from item.fact.sources
    elif placed.block == "loops":
        if item.evidence_id is not None:
            yield item.evidence_id
    else:
        yield from item.sources or ()


def _citation(desk: Desk, name: str, ts: str | None) -> dict[str, str]:
    turn = desk.turns.get(name)
    kind: str = turn.kind if turn is not None else _UNKNOWN
    if turn is None and any(tool.ref == name for tool in desk.pool.tools):
        kind = "tool_result"
    cited = {"id": name, "type": kind}
    if ts is not None and emitted_ts(ts) is not None:
        cited["ts"] = ts
    if (speaker := desk.speaker(name)) is not None:
        cited["summary"] = speaker  # who said it: quotes have no field for a name
    return cited


def _times(desk: Desk) -> dict[str, str]:
    found = {line.evidence_id: line.ts for episode in desk.pool.episodes for line in episode.lines}
    found |= {line.evidence_id: line.ts for line in desk.pool.summary}
    found |= {tool.ref: tool.ts for tool in desk.pool.tools}
    return found | {turn.id: turn.ts for turn in desk.turns.values()}
