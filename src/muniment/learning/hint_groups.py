"""Recalled episodes put together: what is nearly the same becomes one, and what failed stands beside what passed. Pure.

Five lines that say the same are one line that says how often it was so. A run that failed is no example, so it takes no
place of its own where one that passed was found: how it failed is told in a clause of the best of those. Nothing is
dropped without the hint that stands for it naming it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.learning.hinting.episode_words import (
    SAME_TASK,
    episode_of,
    hint_text,
    is_same_task,
    passed_of,
    share_of,
    words_beside,
)
from muniment.learning.hinting.forms import form_of
from muniment.learning.hinting.tool_likeness import rarities, tool_likeness, tools_told
from muniment.learning.hints import Dropped, Weighed, tells_of_failure
from muniment.learning.stored_memory import StoredMemory

__all__ = ["FAILED", "Grouped", "put_together"]

FAILED = "failed"
"""Why an episode of a run that failed is not told: runs that passed were found, or others that failed."""

_SAME_DOING = 0.8
"""The share of words in common from which two ways of doing a task are one."""
_LIKE = 0.5
"""How alike two runs must be in their tools for the one to be told beside the other."""
_FAILED_MAX = 2
"""Where no run passed, so many that failed are told."""

Words = frozenset[str]
_ENDS: Words = frozenset(("ask", "pass", "fail"))
"""Words of every summary, as they are analysed: they make no two tasks alike."""


class Grouped(NamedTuple):
    """What is up for choice, in order, and what is told by another or not at all."""

    kept: list[Weighed]
    dropped: list[Dropped]


def put_together(weighed: Sequence[Weighed]) -> Grouped:
    """The candidates in their order, each kind of doing once, and failures beside what passed."""
    merged = _merge(weighed)
    dropped = [Dropped(other.id, f"merged with {each.candidate.memory.id}") for each in merged for other in each.alike]
    failed = [each for each in merged if tells_of_failure(each.candidate.memory)]
    others = [each for each in merged if not tells_of_failure(each.candidate.memory)]
    others.sort(key=_mostly_failed)  # the order of those that did well, and of those that did not, stays
    place = next((place for place, each in enumerate(others) if each.candidate.memory.kind == "reasoning"), None)
    if place is None:
        left = failed[_FAILED_MAX:]
        others += failed[:_FAILED_MAX]
    else:
        beside = _like(others[place], failed)
        others[place] = others[place]._replace(beside=beside)
        left = [each for each in failed if beside is None or each.candidate.memory.id != beside.id]
    dropped += [Dropped(each.candidate.memory.id, FAILED) for each in left]
    return Grouped(others, dropped)


def _mostly_failed(each: Weighed) -> bool:
    """Did more of the runs that it tells of fail than pass?"""
    ended = [passed for memory in (each.candidate.memory, *each.alike) if (passed := passed_of(memory)) is not None]
    return each.candidate.memory.kind == "reasoning" and 2 * sum(ended) < len(ended)


def _like(passed: Weighed, failed: Sequence[Weighed]) -> StoredMemory | None:
    """Of the runs that failed, the one that did most alike, if any did: where two part, something is to be learnt.

    Where some were asked the same, only these are looked at. One that says nothing that the passing run does not say
    too is left out: that one passed all the same.
    """
    ours = passed.candidate.memory
    same = [each for each in failed if is_same_task(ours, each.candidate.memory)]
    failed = [each for each in same or failed if words_beside(ours, each.candidate.memory)]
    tools = tools_told(ours)
    rarity = rarities([tools, *(tools_told(each.candidate.memory) for each in failed)])
    likeness = [tool_likeness(tools, tools_told(each.candidate.memory), rarity) for each in failed]
    best = max(likeness, default=0.0)
    return failed[likeness.index(best)].candidate.memory if best >= _LIKE else None


def _merge(weighed: Sequence[Weighed]) -> list[Weighed]:
    """Each with those after it that say the same: tasks of one form done the same way, whatever came of them; and tasks
    in much the same words, done much the same way, that ended alike.
    """
    leaders: list[Weighed] = []
    known: dict[object, int] = {}
    groups: dict[tuple[bool, Words], list[tuple[int, Words, Words]]] = {}
    for each in weighed:
        memory = each.candidate.memory
        keys = _keys(memory)
        place = next((known[key] for key in keys if key in known), None)
        episode = episode_of(memory)
        if place is None and episode is not None:  # of what says nothing of what was done, only the same words are one
            group = groups.setdefault((tells_of_failure(memory), tools_told(memory)), [])
            task = frozenset(analyze(f"{episode.asked} {episode.end}")) - _ENDS
            doing = frozenset(analyze(episode.how or episode.did))
            place = next((at for at, *words in group if _alike((task, doing), words)), None)
            if place is None:
                group.append((len(leaders), task, doing))
        if place is None:
            known |= dict.fromkeys(keys, len(leaders))
            leaders.append(each)
        else:
            leaders[place] = leaders[place]._replace(alike=(*leaders[place].alike, memory))
    return leaders


def _keys(memory: StoredMemory) -> list[object]:
    """What is the same for records that are one: the words; of an episode the form of the task and of what was done."""
    episode = episode_of(memory)
    if episode is None or not episode.form.has_words:
        return [hint_text(memory)]
    return [hint_text(memory), (episode.form.key, form_of(episode.doing).key, tools_told(memory))]


def _alike(ours: Sequence[Words], theirs: Sequence[Words]) -> bool:
    wanted = (SAME_TASK, _SAME_DOING)
    return all(share_of(a, b) >= least for a, b, least in zip(ours, theirs, wanted, strict=True))
