"""What a recall does with lessons: each candidate as it stands, what was drawn for the run, and what is left out.

Candidates come from `recalling`, scores from `hints`; here is only who of those that would be handed out is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.scope import bank_owner
from muniment.learning.fold.circumstances import circumstances_kept
from muniment.learning.hinting.episode_words import Episode, episode_of
from muniment.learning.hinting.requests import task_form
from muniment.learning.hints import Dropped, Injection, Recallable, Weighed, best_of, inject, outcome_told
from muniment.learning.keys import clashes, read_intent_key
from muniment.learning.lesson_state import LessonArm
from muniment.learning.lessons.arms import draw_arms, is_lesson, stage_of
from muniment.learning.lessons.branches import Branches, BranchRun, find_branches
from muniment.learning.lessons.counting import counted
from muniment.learning.lessons.fared import fared_alike
from muniment.learning.lessons.lately import lately_of
from muniment.learning.lessons.life import changed_at_of
from muniment.learning.lessons.uses import Uses, family_of, uses_of
from muniment.learning.lessons.ways import WayRate, WayRun, rate_ways
from muniment.learning.projection import core_name

if TYPE_CHECKING:
    from muniment.core.policy import LearnPolicy
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.learning.hints import RecallQuestion
    from muniment.learning.stored_memory import StoredMemory

__all__ = ["Handed", "as_they_stand", "branches_of", "hand_out", "rates_of", "without_stale"]


class Handed(NamedTuple):
    """What goes into a prompt, and what was drawn for each lesson that would have."""

    injection: Injection
    arms: tuple[LessonArm, ...]
    told_ids: tuple[str, ...]
    """All that the hints tell of: themselves, those that say the same, and failures told beside them."""


def as_they_stand(
    reader: Reader, scope: Scope, found: Sequence[Recallable], policy: LearnPolicy, intent_key: str | None = None
) -> tuple[list[Recallable], list[Dropped]]:
    """The candidates with what came of them counted in; and those that are not up for choice yet, or any more.

    A lesson that waits for its trial reaches no prompt. An episode of before the world of its work changed tells of
    another world, as long as the lesson that showed the change has not come back. Nothing is counted of what is
    for other work than this intent, which is dropped whatever came of it.
    """
    changed = _changes([each.memory for each in found])
    kept: list[Recallable] = []
    dropped: list[Dropped] = []
    for each in found:
        memory = each.memory
        if is_lesson(memory) and stage_of(memory) == "candidate":
            dropped.append(Dropped(memory.id, "candidate"))
        elif memory.kind == "reasoning" and memory.status != "pinned" and memory.created_at < changed(memory):
            dropped.append(Dropped(memory.id, "before_change"))
        else:
            kept.append(each)
    uses: dict[str, Uses] = {}
    for level in {each.memory.level for each in kept}:
        mine = [
            each.memory
            for each in kept
            if each.memory.level == level and not clashes(intent_key, each.memory.record.get("intent_key"))
        ]
        uses |= uses_of(reader, bank_owner(scope, level), mine, policy.lessons.uses_max)
    episodes = [(each.memory, passed) for each in kept if (passed := outcome_told(each.memory)) is not None]
    fared = fared_alike(episodes, policy.lessons.half_life_runs)
    standing: list[Recallable] = []
    for each in kept:
        memory, own = each.memory, uses.get(each.memory.id, Uses())
        lately, alike = lately_of(own, policy.lessons.half_life_runs), fared.get(memory.id)
        if alike is not None:  # its own run is among them
            lately = lately._replace(passes=alike.passes, n=alike.n, written=0.0, uses=max(1, lately.uses))
        standing.append(each._replace(memory=counted(memory, own.uses), lately=lately, fared=alike))
    return standing, dropped


def rates_of(
    found: Sequence[Recallable], asked: RecallQuestion, query: str, run_id: str | None, policy: LearnPolicy
) -> dict[str, WayRate]:
    """How often each way of doing passes on such a task, by the judged runs of the kind of work that is named; empty
    where none is named, or where ways cannot be compared.
    """
    task = task_form(query)
    here = (task.whole,)
    runs = [
        WayRun(episode.way, here if episode.is_of(task) else episode.task_key, passed)
        for _, episode, passed in _runs_of(found, asked)
    ]
    lessons = policy.lessons
    return rate_ways(runs, here, lessons.half_life_runs, run_id, lessons.exploration)


def branches_of(
    found: Sequence[Recallable], asked: RecallQuestion, run_id: str | None, policy: LearnPolicy
) -> Branches | None:
    """What decides which way passes, by the same runs: something that they found out before they chose. Of what the run
    that asks knows already, its own value alone.
    """
    lessons = policy.lessons
    runs = [
        BranchRun(memory.id, episode.way, circumstances_kept(memory), passed)
        for memory, episode, passed in _runs_of(found, asked)
    ]
    decided = find_branches(runs, lessons.half_life_runs, run_id, lessons.exploration)
    if decided is None:
        return None
    if (value := asked.circumstances.get(decided.place)) is None:
        return decided._replace(is_known=decided.place.tool in asked.called)
    here = tuple(branch for branch in decided.branches if branch.value == value)
    return decided._replace(branches=here, is_known=True) if here else None


def _runs_of(found: Sequence[Recallable], asked: RecallQuestion) -> list[tuple[StoredMemory, Episode, bool]]:
    """The judged runs of the kind of work that is named, newest first; none where none is named."""
    family = None if asked.intent_key is None else read_intent_key(asked.intent_key)
    if family is None or family.task_family is None:
        return []
    name = core_name(asked.intent_key)
    runs = []
    for each in sorted(found, key=lambda each: (each.memory.created_at, each.memory.id), reverse=True):
        passed, episode = outcome_told(each.memory), episode_of(each.memory)
        fits = family_of(each.memory) == name and not clashes(asked.intent_key, each.memory.record.get("intent_key"))
        if passed is not None and episode is not None and episode.way and fits:
            runs.append((each.memory, episode, passed))
    return runs


def without_stale(found: Sequence[Recallable]) -> tuple[list[Recallable], list[Dropped]]:
    """The candidates less those whose likes fail lately: what is told where ways cannot be compared."""
    fresh: list[Recallable] = []
    dropped: list[Dropped] = []
    for each in found:
        if each.fared is not None and each.memory.status != "pinned" and each.fared.is_stale:
            dropped.append(Dropped(each.memory.id, f"stale: {each.fared.words}"))
        else:
            fresh.append(each)
    return fresh, dropped


def _changes(memories: Sequence[StoredMemory]) -> Callable[[StoredMemory], str]:
    """When the world of a record's kind of work last changed; before all times where it did not."""
    lessons: defaultdict[tuple[str, str | None], list[StoredMemory]] = defaultdict(list)
    for memory in memories:
        if is_lesson(memory) and memory.lesson is not None:
            lessons[memory.level, family_of(memory)].append(memory)
    known = {place: changed_at_of(mine) or "" for place, mine in lessons.items()}
    return lambda memory: known.get((memory.level, family_of(memory)), "") if known else ""


def hand_out(
    weighed: Sequence[Weighed], most: int, run_id: str | None, policy: LearnPolicy, count: Callable[[str], int]
) -> Handed:
    """The best so many within the budget, less what is held out of this run; None: a look, for which nothing is drawn.

    An arm is drawn for what would stand in the prompt, and for nothing else, so that with and without are the same
    kind of run. The room that it leaves goes to what is no lesson: another one would be drawn for out of turn.
    """
    best = best_of(weighed, most)
    whole = Handed(inject(best, policy.injection, count), (), _told(best))
    if run_id is None:
        return whole
    shown = set(whole.injection.used_ids)
    drawn = [each.candidate.memory for each in best if each.candidate.memory.id in shown]
    lately = {each.candidate.memory.id: each.candidate.lately for each in best}
    arms = draw_arms(drawn, run_id, policy.lessons, lately)
    had = {arm.memory_id for arm in arms if arm.arm == "had"}
    if all(memory.id in had for memory in drawn if is_lesson(memory)):
        return whole._replace(arms=arms)
    rest = [each for each in weighed if each.candidate.memory.id in had or not is_lesson(each.candidate.memory)]
    left = best_of(rest, most)
    return Handed(inject(left, policy.injection, count), arms, _told(left))


def _told(chosen: Sequence[Weighed]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for each in chosen for id_ in each.ids))
