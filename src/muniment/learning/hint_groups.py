"""Recalled episodes put together: what is nearly the same becomes one, and what failed stands beside what passed. Pure.

Five lines that say the same are one line that says how often it was so. A run that failed is no example, so it takes no
place of its own where one that passed was found: how it failed is told in a clause of the best of those. Nothing is
dropped without the hint that stands for it naming it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.learning.fold.circumstances import Place, circumstances_kept
from muniment.learning.hinting.branch_lines import branch_lines
from muniment.learning.hinting.culprits import LIKE, passing_like, words_beside
from muniment.learning.hinting.episode_words import (
    SAME_TASK,
    episode_of,
    hint_text,
    is_same_task,
    newest_ends,
    passed_of,
    share_of,
)
from muniment.learning.hinting.forms import form_of
from muniment.learning.hinting.requests import TaskForm, task_form
from muniment.learning.hinting.tool_likeness import rarities, tool_likeness, tools_told
from muniment.learning.hints import Dropped, Weighed, tells_of_failure
from muniment.learning.lessons.branches import Branches
from muniment.learning.lessons.ways import WayRate, answers_in, speaks_against
from muniment.learning.stored_memory import StoredMemory

__all__ = ["AGAINST", "FAILED", "OTHER_WAY", "Grouped", "put_together"]

FAILED = "failed"
"""Why an episode of a run that failed is not told: runs that passed were found, or others that failed."""
OTHER_WAY = "another way is told"
"""Why an episode is not told whose way is neither the one to try, nor near it, nor one that fails lately."""
AGAINST = "speaks against the way to try"
"""Why a lesson is left out of a run that is told to try another way; it has no arm in it."""
_NEAR, _NEAR_MAX, _FAR_MAX = 0.1, 2, 2
"""Ways whose drawn rates lie so near the best stand beside it, so many of them; and so many that fail."""

_SAME_DOING = 0.8
"""The share of words in common from which two ways of doing a task are one."""
_FAILED_MAX = 2
"""Where no run passed, so many that failed are told."""

Words = frozenset[str]
_ENDS: Words = frozenset(("ask", "pass", "fail"))
"""Words of every summary, as they are analysed: they make no two tasks alike."""


class Grouped(NamedTuple):
    """What is up for choice, in order, and what is told by another or not at all."""

    kept: list[Weighed]
    dropped: list[Dropped]


def put_together(
    weighed: Sequence[Weighed],
    rates: Mapping[str, WayRate] | None = None,
    query: str = "",
    branches: Branches | None = None,
) -> Grouped:
    """The candidates in their order, each kind of doing once, and failures beside what passed. Where it is known how
    often each way of doing passes (`rates`), the one that was drawn comes first, as the way to try; where something
    decides which of them passes (`branches`), the one for each value of it.
    """
    if branches is not None and (lines := branch_lines(weighed, branches)):
        return _by_branch(weighed, lines, branches.place)
    merged = _merge(weighed, by_way=bool(rates))
    found = [each.candidate.memory for each in weighed]
    dropped = [Dropped(other.id, f"merged with {each.candidate.memory.id}") for each in merged for other in each.alike]
    failed = [each for each in merged if tells_of_failure(each.candidate.memory)]
    others = [each for each in merged if not tells_of_failure(each.candidate.memory)]
    others.sort(key=_mostly_failed)  # the order of those that did well, and of those that did not, stays
    if rates:
        others, failed, left_out = _by_way(others, failed, rates, query)
        dropped += left_out
    place = next((place for place, each in enumerate(others) if each.candidate.memory.kind == "reasoning"), None)
    if place is None:
        left = failed[_FAILED_MAX:]
        others += failed[:_FAILED_MAX]
    else:
        beside, passing = _like(others[place], failed, found)
        others[place] = others[place]._replace(beside=beside, passing=passing)
        left = [each for each in failed if beside is None or each.candidate.memory.id != beside.id]
    dropped += [Dropped(each.candidate.memory.id, FAILED) for each in left]
    return Grouped([_beside_passing(each, found) for each in others], dropped)


def _by_branch(weighed: Sequence[Weighed], lines: Sequence[Weighed], place: Place) -> Grouped:
    """Lines for what decides, and what is no episode of their runs. Lessons that speak against one of them are left out
    of this run; what a person signed stays.
    """
    told = {id_ for line in lines for id_ in line.ids}
    worse = {memory.id for line in lines for memory in line.worse}
    leads = {memory.id: line.candidate.memory.id for line in lines for memory in line.alike}
    kept: list[Weighed] = []
    dropped: list[Dropped] = []
    for each in weighed:
        memory = each.candidate.memory
        if memory.status == "pinned" and memory.id in worse:
            kept.append(each)
        elif memory.id in told:
            if memory.id in leads:
                dropped.append(Dropped(memory.id, f"merged with {leads[memory.id]}"))
        elif memory.status == "pinned" or (memory.kind != "reasoning" and not _contradicts_any(memory, lines, place)):
            kept.append(each)
        else:
            dropped.append(Dropped(memory.id, OTHER_WAY if memory.kind == "reasoning" else AGAINST))
    return Grouped([*lines, *kept], dropped)


def _contradicts_any(memory: StoredMemory, lines: Sequence[Weighed], place: Place) -> bool:
    return any(_is_against(memory, _doing(line)) or _says_otherwise(memory, line, place) for line in lines)


def _says_otherwise(memory: StoredMemory, line: Weighed, place: Place) -> bool:
    """Is it a lesson for the very answer that a line is for, which has another call come right after it?"""
    value = circumstances_kept(line.candidate.memory).get(place)
    learnt = memory.record.get("learnt")
    if value is None or memory.kind != "tactic" or not isinstance(learnt, Mapping):
        return False
    answered = f"{place.tool}.{place.name}={value}" if place.name else f"{place.tool}={value}"
    feature, then = str(learnt.get("feature")), f"then:{answered}>"
    if not place.tool or not feature.startswith(then):
        return False
    return speaks_against({**learnt, "feature": f"order:{place.tool}>{feature.removeprefix(then)}"}, _doing(line))


def _beside_passing(each: Weighed, found: Sequence[StoredMemory]) -> Weighed:
    """An episode of a run that failed, with the runs like it that passed."""
    memory = each.candidate.memory
    return each._replace(passing=passing_like(memory, found)) if tells_of_failure(memory) else each


def _by_way(
    others: Sequence[Weighed], failed: Sequence[Weighed], rates: Mapping[str, WayRate], query: str
) -> tuple[list[Weighed], list[Weighed], list[Dropped]]:
    """What is told by how often ways pass: the one to try, some that do nearly as well, and some that fail lately.

    The one to try is of a run that met as little trouble as any: nobody is told to run into an error.
    Lessons that speak against the way to try are left out of this run; what a person signed stays. Answered with the
    failures that are still untold, and with what was left out.
    """
    task = task_form(query)
    rated = {each.candidate.memory.id: rate for each in (*others, *failed) if (rate := _rate(each, rates)) is not None}
    passing = [each for each in others if each.candidate.memory.id in rated]

    def order(each: Weighed) -> tuple[bool, float]:
        episode = episode_of(each.candidate.memory)
        return episode is None or not episode.is_of(task), -rated[each.candidate.memory.id].drawn

    fitting = [each for each in passing if _fits(each, task)]
    trouble = [answers_in(_doing(each)) for each in fitting]
    plain = [each for each, notes in zip(fitting, trouble, strict=True) if notes == min(trouble) and _has_passed(each)]
    best = max((rated[each.candidate.memory.id].drawn for each in plain), default=0.0)
    lead = min((each for each in plain if rated[each.candidate.memory.id].drawn == best), key=order, default=None)
    if lead is None or best <= rated[lead.candidate.memory.id].usual:
        return list(others), list(failed), []
    rest = [each for each in passing if each is not lead]
    near = [each for each in rest if rated[each.candidate.memory.id].drawn >= best - _NEAR and _passed_lately(each) > 0]
    far = [each for each in (*rest, *failed) if each.candidate.memory.id in rated and _passed_lately(each) < 0]
    far = [each for each in far if rated[each.candidate.memory.id].drawn < best - _NEAR]
    near, far = sorted(near, key=order)[:_NEAR_MAX], sorted(far, key=lambda each: (order(each)[0], -order(each)[1]))
    told = [lead._replace(way=rated[lead.candidate.memory.id])]
    told += [each for pair in zip_longest(far[:_FAR_MAX], near) for each in pair if each is not None]
    against = [each for each in others if _is_against(each.candidate.memory, _doing(lead))]
    dropped = [Dropped(each.candidate.memory.id, AGAINST) for each in against]
    ids = {each.candidate.memory.id for each in told}
    untried = [each for each in rest if each.candidate.memory.id not in ids]
    pinned = [each for each in untried if each.candidate.memory.status == "pinned"]
    dropped += [Dropped(each.candidate.memory.id, OTHER_WAY) for each in untried if each not in pinned]
    kept = [each for each in others if each.candidate.memory.id not in rated and each not in against] + pinned
    untold = [each for each in failed if each.candidate.memory.id not in ids]
    return [*told[:1], *kept, *told[1:]], untold, dropped


def _rate(each: Weighed, rates: Mapping[str, WayRate]) -> WayRate | None:
    return rates.get(_doing(each)) if _doing(each) else None


def _doing(each: Weighed) -> str:
    episode = episode_of(each.candidate.memory)
    return "" if episode is None else episode.way


def _fits(each: Weighed, task: TaskForm) -> bool:
    """May its way be tried on this task? What was mended in one file is no way to mend another."""
    episode = episode_of(each.candidate.memory)
    return episode is not None and (episode.is_of(task) or not episode.is_of_one_place)


def _has_passed(each: Weighed) -> bool:
    """Did one of the newest runs that it tells of pass?"""
    return any(newest_ends((each.candidate.memory, *each.alike)))


def _passed_lately(each: Weighed) -> int:
    """More of the newest runs that it tells of passed than failed: above nought; more failed: below."""
    ends = newest_ends((each.candidate.memory, *each.alike))
    return 2 * sum(ends) - len(ends)


def _is_against(memory: StoredMemory, doing: str) -> bool:
    learnt = memory.record.get("learnt")
    if memory.kind != "tactic" or memory.status == "pinned" or not isinstance(learnt, Mapping):
        return False
    return speaks_against(learnt, doing)


def _mostly_failed(each: Weighed) -> bool:
    """Did more of the runs that it tells of fail than pass?"""
    ended = [passed for memory in (each.candidate.memory, *each.alike) if (passed := passed_of(memory)) is not None]
    return each.candidate.memory.kind == "reasoning" and 2 * sum(ended) < len(ended)


def _like(
    passed: Weighed, failed: Sequence[Weighed], found: Sequence[StoredMemory]
) -> tuple[StoredMemory | None, tuple[StoredMemory, ...]]:
    """Of the runs that failed, the one that did most alike, if any did: where two part, something is to be learnt.

    Where some were asked the same, only these are looked at. One that says nothing that the passing run does not say
    too is left out: that one passed all the same. Answered with the other runs like it that passed.
    """
    ours = passed.candidate.memory
    same = [each for each in failed if is_same_task(ours, each.candidate.memory)]
    passing = {each.candidate.memory.id: passing_like(each.candidate.memory, found) for each in same or failed}
    failed = [
        each for each in same or failed if words_beside(ours, each.candidate.memory, passing[each.candidate.memory.id])
    ]
    tools = tools_told(ours)
    rarity = rarities([tools, *(tools_told(each.candidate.memory) for each in failed)])
    likeness = [tool_likeness(tools, tools_told(each.candidate.memory), rarity) for each in failed]
    best = max(likeness, default=0.0)
    if best < LIKE:
        return None, ()
    chosen = failed[likeness.index(best)].candidate.memory
    return chosen, passing[chosen.id]


def _merge(weighed: Sequence[Weighed], *, by_way: bool) -> list[Weighed]:
    """Each with those after it that say the same: tasks of one form done the same way, whatever came of them; and tasks
    in much the same words, done much the same way (where ways are compared: the same), that ended alike.
    """
    leaders: list[Weighed] = []
    known: dict[object, int] = {}
    groups: dict[tuple[bool, Words, str], list[tuple[int, Words, Words]]] = {}
    for each in weighed:
        memory = each.candidate.memory
        keys = _keys(memory)
        place = next((known[key] for key in keys if key in known), None)
        episode = episode_of(memory)
        if place is None and episode is not None:  # of what says nothing of what was done, only the same words are one
            way = episode.way if by_way else ""
            group = groups.setdefault((tells_of_failure(memory), tools_told(memory), way), [])
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
    return [hint_text(memory), (episode.asked_key, form_of(episode.doing).key, tools_told(memory))]


def _alike(ours: Sequence[Words], theirs: Sequence[Words]) -> bool:
    wanted = (SAME_TASK, _SAME_DOING)
    return all(share_of(a, b) >= least for a, b, least in zip(ours, theirs, wanted, strict=True))
