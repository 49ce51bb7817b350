"""Why something is not in a packet: by what its explanation says, or else by what its pool was gathered from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.instants import parse_rfc3339
from muniment.packets.explain import selected_name

if TYPE_CHECKING:
    from muniment.packets.builds import Build

__all__ = ["Fate", "Fates"]

_SAID = ("profile", "quote", "turn", "tool", "summary")
"""Kinds under which the words of one event may be a candidate."""
_GATHERED = {"quote": "turns", "turn": "window", "tool": "tools", "episode": "sessions"} | {
    "procedure": "procedures", "insight": "insights", "loop": "questions",
}  # fmt: skip
"""Kind of a candidate → what the pool counts of it."""


class Fate(NamedTuple):
    """A reason, and what stands in the place of it or says the same."""

    reason: str
    by: str | None = None


class Fates:
    """What became, in one build, of things that another one tells."""

    def __init__(self, build: Build) -> None:
        self._build = build

    def of(self, item: str, since: str | None = None) -> Fate:
        """Why `item` is not told; `since` is from when it was there at all, where that is known."""
        for name in self._names(item):
            found = self._omitted.get(name)
            # A responder gets no last turns whatever they say: that is no reason why they are not quoted.
            if found is not None and (name == item or found["reason"] != "purpose"):
                by = found.get("of") or found.get("by")
                return Fate(str(found["reason"]), by if isinstance(by, str) else None)
        if item in self._selected:
            return Fate("purpose")  # in the packet, and not on the page of this purpose
        request = self._build.request
        if item.partition(":")[2] in (request.exclude or ()):
            return Fate("excluded")
        if since is not None and _is_later(since, request.now):
            return Fate("later")
        return Fate(self._not_gathered(item.partition(":")[0]))

    def chosen_by(self, item: str) -> str | None:
        """By which rules it was chosen, as the explanation has them."""
        return next((self._selected[name] for name in self._names(item) if name in self._selected), None)

    def since(self, item: str) -> str | None:
        """When a candidate of this build was written or said."""
        kind, _, id_ = item.partition(":")
        return next((at for named, each, at in self._times if named == kind and each == id_), None)

    def _names(self, item: str) -> Iterator[str]:
        """How the explanation may name it: the words of an event may be a candidate under several kinds."""
        yield item
        kind, _, id_ = item.partition(":")
        if kind in _SAID:
            yield from (f"{other}:{id_}" for other in _SAID if other != kind)
        if kind == "loop":
            yield from (f"loop:{at}" for at, loop in enumerate(self._build.pool.loops) if loop.question == id_)

    def _not_gathered(self, kind: str) -> str:
        """Why things of its kind were not looked at, where that is one reason for all of them."""
        counted = _GATHERED.get(kind)
        found = next((each.reasons for each in self._build.pool.not_gathered if each.kind == counted), {})
        return next(iter(found)) if len(found) == 1 else "not_gathered"

    @cached_property
    def _omitted(self) -> dict[str, dict[str, Any]]:
        return {each.item: each.to_wire() for each in self._build.packet.explain.omitted}

    @cached_property
    def _selected(self) -> dict[str, str]:
        lines = self._build.packet.explain.selected
        return {selected_name(line): line.rpartition(" rules=")[2] for line in lines}

    @cached_property
    def _times(self) -> list[tuple[str, str, str]]:
        pool = self._build.pool
        return [
            *(("fact", each.fact.fact_id, each.recorded_at) for each in pool.facts),
            *(("procedure", each.procedure.procedure_id, each.recorded_at) for each in pool.procedures),
            *(("insight", each.insight.id, each.recorded_at) for each in pool.insights),
            *(("profile", each.turn.id, each.turn.ts) for each in pool.profile),
            *(("quote", each.turn.id, each.turn.ts) for each in pool.hits),
            *(("turn", each.id, each.ts) for each in pool.window),
            *(("summary", each.evidence_id, each.ts) for each in pool.summary),
            *(("tool", each.ref, each.ts) for each in pool.tools),
            *(("episode", each.episode_id, each.start) for each in pool.episodes),
        ]


def _is_later(ts: str, now: str) -> bool:
    said, asked = parse_rfc3339(ts), parse_rfc3339(now)
    return said is not None and asked is not None and said > asked
