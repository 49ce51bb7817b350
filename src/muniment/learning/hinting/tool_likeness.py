"""How alike two runs are in the tools they called. Pure.

A tool that few of the compared runs call says more than one that all of them call, and one that acts says more than
one that only looks: what a task is about is what must be done, and looking up is much the same everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import log

from muniment.learning.fold.blame import only_looks
from muniment.learning.stored_memory import StoredMemory

__all__ = ["rarities", "tool_likeness", "tools_told"]

_TAG = "tool:"
_LOOKS = 0.1
"""What a tool that only looks weighs beside one that acts."""


def tools_told(memory: StoredMemory) -> frozenset[str]:
    """The tools that an episode's run called."""
    tags = memory.record.get("tags")
    named = tags if isinstance(tags, list | tuple) else ()
    return frozenset(tag[len(_TAG) :] for tag in named if isinstance(tag, str) and tag.startswith(_TAG))


def rarities(called: Sequence[Collection[str]]) -> dict[str, float]:
    """What each tool weighs among these runs: from 1 for one that all call, up."""
    counts = Counter(tool for tools in called for tool in tools)
    runs = max(1, len(called))
    return {tool: 1 + log(runs / n) for tool, n in counts.items()}


def tool_likeness(ours: Collection[str], theirs: Collection[str], rarity: Mapping[str, float]) -> float:
    """Jaccard's share of two sets of tools, each tool by its weight; 0 where either is empty."""
    if not ours or not theirs:
        return 0.0
    weights = {tool: rarity.get(tool, 1.0) * (_LOOKS if only_looks(tool) else 1.0) for tool in {*ours, *theirs}}
    both = sum(weight for tool, weight in sorted(weights.items()) if tool in ours and tool in theirs)
    return both / sum(weight for _, weight in sorted(weights.items()))
