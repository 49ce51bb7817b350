"""Two packets beside each other on a terminal: what changed, line by line, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from muniment.surfaces.cli.explained import REASONS
from muniment.surfaces.cli.terminal import one_line

if TYPE_CHECKING:
    from muniment.packets.compare import BuildDiff, LinePair, PlacedLine
    from muniment.surfaces.cli.explained import Candidate

__all__ = ["diff_lines"]

_SIGNS = {"added": "+", "removed": "-", "moved": ">", "reworded": "~", "changed": "~"}
_WHY: Mapping[str, str] = {
    **REASONS,
    "no_match": "it has nothing of what was asked",
    "no_query": "nothing was asked that could bring it up",
    "unread": "there is too much for its labels to be read",
    "not_indexed": "it was loaded in bulk and is not in the index yet",
    "not_gathered": "it was not among what was looked at",
    "later": "it came later",
}
"""Why one page has not what the other has: left out of its packet, or never a candidate for it."""
_CHARS = 110
_RULE_ENDS = re.compile(r",(?=[^_])")
"""Rules are joined by commas; a blank within one was written as `_`."""


def diff_lines(found: BuildDiff, known: Mapping[str, Candidate]) -> Iterator[str]:
    """The changes of the page, each with its reason, then those of the packet that its page does not show."""
    budgets = f" of {found.tokens_max_a} → {found.tokens_max_b}" if found.tokens_max_a != found.tokens_max_b else ""
    yield f"{found.a} → {found.b}: {found.tokens_a} → {found.tokens_b} tokens{budgets}"
    if found.request:
        yield f"asked differently: {', '.join(found.request)}"
    for each in found.sections:
        if (each.used_a, each.cap_a) != (each.used_b, each.cap_b):
            yield f"  {each.section:<18}  {each.used_a} of {each.cap_a} → {each.used_b} of {each.cap_b} tokens"
    shown = set()
    for pair in found.lines:
        if pair.item is not None:
            shown.add(pair.item)
            yield from _pair_lines(pair)
    for change in found.changes:
        if change.item not in shown and not change.item.startswith(("rule:", "state:", "summary")):
            candidate = known.get(change.item)
            text = f"  {one_line(candidate.text, _CHARS)}" if candidate is not None else ""
            yield f"{_SIGNS[change.what]} {change.item}{text}"
            _, mark, score = change.why.rpartition(" score=")
            yield f"      {f'{mark.strip()}{score}' if mark else REASONS.get(change.why, change.why)}"
    if found.is_same:
        yield "the same bytes"
    elif not found.changes and all(pair.what == "same" for pair in found.lines):
        yield "the same items"


def _pair_lines(pair: LinePair) -> Iterator[str]:
    """One line of either page; of one that is worded otherwise both."""
    if pair.what == "same":
        return
    sign = _SIGNS[pair.what]
    if pair.what == "reworded" and pair.a is not None:
        yield f"{sign} {_line(pair.a)}"
        sign = " "
    shown = pair.b or pair.a
    if shown is not None:
        yield f"{sign} {_line(shown)}"
    if pair.is_moved and pair.a is not None and pair.b is not None:
        there = f" of {pair.a.block}" if pair.a.block != pair.b.block else ""
        yield f"      moved from line {pair.a.number}{there}"
    if pair.reason is not None:
        before = "before: " if pair.what == "added" else ""
        yield f"      {before}{_WHY.get(pair.reason, pair.reason)}{f' ({pair.by})' if pair.by else ''}"
    if pair.why is not None:
        yield f"      {_RULE_ENDS.sub(', ', pair.why).replace('_', ' ')}"


def _line(line: PlacedLine) -> str:
    return f"{line.number:>3} {line.block:<12} {one_line(line.text, _CHARS)}"
