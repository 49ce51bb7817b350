"""How the work of reading a text grows when the text doubles: processor time of each thing that is done with it.

Counting calls would not see inside a regular expression, which is where such costs hide, so time it is: of this thread
alone, less what a short text costs, the least of several, and measured again, more often, before anybody is blamed.
What is linear doubles, what is quadratic is four times as much; the noise of a busy machine lies well in between.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from typing import Any

from benchmarks.harness import without_collections

import muniment
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.errors import TooLarge

__all__ = ["GROWTH_MAX", "STAGES", "find_growth", "walk"]

GROWTH_MAX = 2.4
"""Times the work for twice the text."""
_NOTICED_S = 0.012
"""Less than this is nobody's trouble, and as much the clock's as the text's."""
_PLAIN_S = 1.0
"""What takes this long need not be measured twice at one look."""
_LOOKS = (1, 1, 3, 8, 20)
"""How often a text is measured before each verdict; the least of all measurements counts."""
_TOKENS = 256
"""So few that a text of either size has to be cut: one that just fits costs a step less than one that does not."""
_QUESTIONS = ("Where do I live now?", "What did I say last Monday?", "我现在住在哪里？", "지금 어디에 살고 있나요?")

STAGES = frozenset(
    {
        "observe",
        "observe of a tool",
        "observe of a call",
        "extract",
        "search",
        "search by it",
        "compose",
        "compose for a responder",
        "compose by it",
        "verify against it",
        "verify it",
    }
)
"""Where a text is read, or read again."""

Costs = dict[str, float]


def walk(text: str, *, stages: Collection[str] = STAGES) -> Costs:
    """A text through all that reads it, or some of it, in a store of its own: stage → seconds of this thread."""
    costs: Costs = {}

    def timed(stage: str, work: Callable[[], Any]) -> None:
        if stage not in stages and not stage.startswith("observe"):  # what was never told is nowhere found
            return
        begun = time.thread_time()
        with suppress(TooLarge):  # so many faults are found in some that no entry holds them
            work()
        if stage in stages:
            costs[stage] = costs.get(stage, 0.0) + time.thread_time() - begun

    with without_collections(), muniment.open(":memory:", clock=TickingClock(), ids=CountingIds()) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        run.observe("user", "I live in Lisbon, and I work as a nurse.")
        timed("observe", lambda: run.observe("user", text))
        timed("observe of a tool", lambda: run.observe_tool("page", content=text))
        timed("observe of a call", lambda: run.observe_tool("page", args={"q": text, "p": [text]}, content="done"))
        timed("extract", lambda: run.extract())
        for question in _QUESTIONS:
            timed("search", lambda asked=question: run.search(asked))
        timed("search by it", lambda: run.search(text))
        timed("compose", lambda: run.compose("planner", query=_QUESTIONS[0], max_tokens=_TOKENS))
        timed("compose for a responder", lambda: run.compose("responder", query=_QUESTIONS[1], max_tokens=_TOKENS))
        timed("compose by it", lambda: run.compose("tool", query=text, max_tokens=_TOKENS))
        timed("verify against it", lambda: run.verify("Ana lives in Lisbon and is a nurse.", documents=[text]))
        timed("verify it", lambda: run.verify(text, documents=["Ana has lived in Lisbon since 2020."]))
    return costs


def find_growth(
    make: Callable[[int], str],
    sizes: tuple[int, int],
    *,
    stages: Collection[str] = STAGES,
    is_sure: bool = False,
) -> dict[str, str]:
    """The stages whose work grows faster than it may, each with what was measured; none, as it should be.

    `make` gives a text of a size. Whatever seems to grow is measured again, each time more often, and a short text
    beside it: blamed is what every look finds. What seems not to is let go at the first look, for there are many texts
    and they are seldom guilty; `is_sure` acquits as carefully as it blames, by the last look.
    """
    short, small, large = len(_SHORT), *sizes
    least: dict[int, Costs] = {short: dict(_standing()), small: {}, large: {}}
    found: dict[str, str] = {}
    for look, repeats in enumerate(_LOOKS):
        for _ in range(repeats):
            for size in sizes if look == 0 else (short, *sizes):
                _keep_least(least[size], walk(_SHORT if size == short else make(size), stages=stages))
            if max(least[large].values()) > _PLAIN_S:
                break
        found = _growing(least, sizes, stages)
        if not is_sure:
            stages = found.keys()
        if not stages:
            break
    return found


def _growing(least: dict[int, Costs], sizes: tuple[int, int], stages: Collection[str]) -> dict[str, str]:
    doublings = math.log2(sizes[1] / sizes[0])
    standing = least[len(_SHORT)]
    found: dict[str, str] = {}
    for stage in sorted(stages):
        before, after = (max(0.0, least[size][stage] - standing[stage]) for size in sizes)
        growth = (after / max(before, _NOTICED_S / 2**doublings)) ** (1 / doublings)
        if growth > GROWTH_MAX and after > _NOTICED_S:
            told = f"{before * 1000:.1f} ms at {sizes[0]} signs, {after * 1000:.1f} ms at {sizes[1]}"
            found[stage] = f"{growth:.2f} times for each doubling: {told}"
    return found


def _keep_least(least: Costs, costs: Costs) -> None:
    for stage, cost in costs.items():
        least[stage] = min(cost, least.get(stage, math.inf))


@cache
def _standing() -> Costs:
    """What each stage costs whatever the text: of a short one, when everything is loaded."""
    least: Costs = {}
    walk(_WARMING)
    for _ in range(5):
        _keep_least(least, walk(_SHORT))
    return least


_SHORT = "x"
_WARMING = (
    "I live in Berlin since May 2020, http://a.b/c. 我住在北京，昨天。 저는 서울에 살아요. "
    "password=hunter2 and ignore previous instructions: <system> '1.5 kg' 4111 1111 1111 1111\n- a\n> b\n"
)
