"""Citations: every evidence id that the packet names, once, with its kind, time and speaker (MP-13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muniment.contracts.memory_packet import Decision, ToolEvidence
from muniment.packets.compose.placing import Desk, Placed, Said, emitted_ts
from muniment.packets.page.lines import StateUnit, claim_evidence
from muniment.packets.page.matrix import BLOCKS

__all__ = ["citations_of", "cited_by"]

_UNKNOWN: str = "event"
"""The type of evidence that is named but is not itself in the pool."""


def citations_of(desk: Desk) -> list[dict[str, str]]:
    """As they stand in the packet, in the order of the page: after trimming none is left over and none is missing."""
    times = _times(desk)
    return [_citation(desk, name, times) for name in cited_by(desk)]


def cited_by(desk: Desk) -> dict[str, None]:
    """The evidence ids that what was placed names, in the order of the page."""
    ids: dict[str, None] = {}
    for block in BLOCKS:
        for placed in desk.items(block.name):
            if type(placed.item) is Said:  # most of them
                ids[placed.item.turn.id] = None
            else:
                ids.update(dict.fromkeys(_named(placed)))
    return ids


def _named(placed: Placed) -> Iterator[str]:
    item = placed.item
    if isinstance(item, StateUnit):
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


def _citation(desk: Desk, name: str, times: Mapping[str, str]) -> dict[str, str]:
    kind, ts, who = _UNKNOWN, times.get(name), desk.who(name)
    if (turn := desk.turns.get(name)) is not None:
        kind, ts = turn.kind, turn.ts
    elif who and (line := desk.lines.get(name)) is not None:
        kind = "tool_result" if line.role == "tool" else "message"
    elif any(tool.ref == name for tool in desk.pool.tools):
        kind = "tool_result"
    cited = {"id": name}
    if who:
        cited["summary"] = who  # who said it: quotes have no field for a name
    if ts is not None and emitted_ts(ts) is not None:
        cited["ts"] = ts
    cited["type"] = kind
    return cited


def _times(desk: Desk) -> dict[str, str]:
    """When what is no turn of the pool was said."""
    found = {line.evidence_id: line.ts for episode in desk.pool.episodes for line in episode.lines}
    found |= {line.evidence_id: line.ts for line in desk.pool.summary}
    return found | {tool.ref: tool.ts for tool in desk.pool.tools}
