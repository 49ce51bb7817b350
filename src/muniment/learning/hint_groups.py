"""Recalled episodes put together: what is nearly the same becomes one, and what failed stands beside what passed. Pure.

Five lines that say the same are one line that says how often it was so. A run that failed is no example, so it takes no
place of its own where one that passed was found: how it failed is told in a clause of the best of those. Nothing is
dropped without the hint that stands for it naming it.
"""

from __future__ import annotations

from collections.abc import Sequence

from muniment.core.text.analyzer import analyze
from muniment.learning.hints import Weighed, hint_text, tells_of_failure
from muniment.learning.stored_memory import StoredMemory
from muniment.learning.tool_likeness import rarities, tool_likeness, tools_told

__all__ = ["put_together"]

_SAME_TASK, _SAME_DOING = 0.6, 0.8
"""Shares of words in common from which two tasks, and two ways of doing them, are one."""
_LIKE = 0.5
"""How alike two runs must be in their tools for the one to be told beside the other."""
_FAILED_MAX = 2
"""Where no run passed, so many that failed are told."""

Words = frozenset[str]
_ENDS: Words = frozenset(("ask", "pass", "fail"))
"""Words of every summary, as they are analysed: they make no two tasks alike."""


def put_together(weighed: Sequence[Weighed]) -> list[Weighed]:
    """The candidates in their order, each kind of doing once, and failures beside what passed."""
    merged = _merge(weighed)
    failed = [each for each in merged if tells_of_failure(each.candidate.memory)]
    others = [each for each in merged if not tells_of_failure(each.candidate.memory)]
    place = next((place for place, each in enumerate(others) if each.candidate.memory.kind == "reasoning"), None)
    if place is None:
        return [*others, *failed[:_FAILED_MAX]]
    others[place] = others[place]._replace(beside=_like(others[place], [each for each in failed if _how(each)]))
    return others


def _like(passed: Weighed, failed: Sequence[Weighed]) -> StoredMemory | None:
    """Of the runs that failed, the one that did most alike, if any did: where two part, something is to be learnt."""
    known = _said(passed.candidate.memory, "did")
    failed = [
        each for each in failed if _how(each).removeprefix("failed after ") not in known
    ]  # it passed all the same
    ours = tools_told(passed.candidate.memory)
    rarity = rarities([ours, *(tools_told(each.candidate.memory) for each in failed)])
    likeness = [tool_likeness(ours, tools_told(each.candidate.memory), rarity) for each in failed]
    best = max(likeness, default=0.0)
    return failed[likeness.index(best)].candidate.memory if best >= _LIKE else None


def _merge(weighed: Sequence[Weighed]) -> list[Weighed]:
    """Each with those after it that say the same."""
    leaders: list[Weighed] = []
    texts: dict[str, int] = {}
    groups: dict[tuple[bool, Words], list[tuple[int, Words, Words]]] = {}
    for each in weighed:
        memory, text = each.candidate.memory, hint_text(each.candidate.memory)
        place, did = texts.get(text), _said(memory, "did")
        if place is None and did:  # of what does not say what was done, only the very same words are one
            group = groups.setdefault((tells_of_failure(memory), tools_told(memory)), [])
            task = frozenset(analyze(text.partition(did)[0])) - _ENDS
            doing = frozenset(analyze(_how(each) or did))
            place = next((at for at, *words in group if _alike((task, doing), words)), None)
            if place is None:
                group.append((len(leaders), task, doing))
        if place is None:
            texts[text] = len(leaders)
            leaders.append(each)
        else:
            leaders[place] = leaders[place]._replace(alike=(*leaders[place].alike, memory))
    return leaders


def _alike(ours: Sequence[Words], theirs: Sequence[Words]) -> bool:
    wanted = (_SAME_TASK, _SAME_DOING)
    return all(_share(a, b) >= least for a, b, least in zip(ours, theirs, wanted, strict=True))


def _share(a: Words, b: Words) -> float:
    return len(a & b) / len(a | b) if a or b else 1.0


def _how(each: Weighed) -> str:
    return _said(each.candidate.memory, "ending")


def _said(memory: StoredMemory, name: str) -> str:
    said = memory.record.get(name)
    return said if isinstance(said, str) else ""
