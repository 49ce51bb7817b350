"""Recalled runs told by what decides between them: `When get_order says state is open, try cancel: passed 7 of 8.`

Pure. What decides is found by `lessons.branches`; here are the lines. Each stands for the runs that did so in those
circumstances, and names all of them, and those that it says did worse. Where no way passed in some circumstances,
nothing is told for these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muniment.learning.fold.blame import only_looks
from muniment.learning.fold.circumstances import when_words
from muniment.learning.fold.doing_words import THEN, name_of, step_texts
from muniment.learning.hinting.episode_words import as_given, episode_of, newest_ends, without_failing
from muniment.learning.hints import Weighed
from muniment.learning.lessons.branches import Branch, Branches, rest_with_answers
from muniment.learning.lessons.ways import answers_in

__all__ = ["branch_lines"]

_WORSE_BY, _WORSE_RUNS_MIN = 0.2, 3
"""A way that passes so much less often in these circumstances is told as well, if so many runs took it."""


def branch_lines(weighed: Sequence[Weighed], decided: Branches) -> list[Weighed]:
    """A line for each value of what decides, as an episode that stands for the runs of that way."""
    known = {each.candidate.memory.id: each for each in weighed}
    lines = [line for branch in decided.branches if (line := _line(branch, decided, known)) is not None]
    if lines and _is_to_be_called(decided):
        lines[0] = lines[0]._replace(line=f"{lines[0].line} Call {decided.place.tool} before you choose.")
    return lines


def _is_to_be_called(decided: Branches) -> bool:
    """Is the tool that tells it to be called first? One that may change something, by its name, only where no run
    passed without it.
    """
    tool = decided.place.tool
    return bool(tool) and not decided.is_known and (only_looks(tool) or decided.is_always_called)


def _line(branch: Branch, decided: Branches, known: Mapping[str, Weighed]) -> Weighed | None:
    """What to do for this value: of the ways that passed and met as little trouble as any, the one that was drawn."""
    runs = {way: [known[id_] for id_ in ids if id_ in known] for way, ids in branch.runs.items() if way in branch.rates}
    passed = {way: mine for way, mine in runs.items() if any(_ends(mine))}
    trouble = {way: min(map(_trouble, mine)) for way, mine in passed.items()}
    plain = [way for way in passed if trouble[way] == min(trouble.values())]
    way = max(plain, key=lambda way: (branch.rates[way].drawn, way), default=None)
    if way is None or branch.rates[way].drawn <= branch.rates[way].usual:
        return None
    mine = passed[way]
    lead = next(each for each in mine if any(_ends([each])))
    alike = tuple(each.candidate.memory for each in mine if each is not lead)
    steps, in_vain = _way_told(way, mine, decided.place.tool)
    told = f"When {when_words(decided.place, branch.value)}, try {steps}: passed {_rate(mine)}.{in_vain}"
    step, others = _worse(branch, way, runs)
    if step:
        told += f" Runs that called {step} there passed {_rate(others)}."
    worse = tuple(each.candidate.memory for each in others)
    return lead._replace(alike=alike, worse=worse, way=branch.rates[way], line=told)


def _way_told(way: str, mine: Sequence[Weighed], tool: str) -> tuple[str, str]:
    """A way, and a sentence of the calls that failed in all of its runs before others held: nobody is told to make
    them.
    """
    episodes = [episode_of(each.candidate.memory) for each in mine]
    rests = {without_failing(rest_with_answers(each.way, tool)) for each in episodes if each is not None}
    kept, in_vain = next(iter(rests)) if len(rests) == 1 else ("", "")
    if not in_vain:
        return way.partition(": ")[2], ""
    return THEN.join(map(as_given, kept.split(THEN))), in_vain


def _trouble(each: Weighed) -> int:
    episode = episode_of(each.candidate.memory)
    return 0 if episode is None else answers_in(episode.did)


def _ends(mine: Sequence[Weighed]) -> list[bool]:
    return newest_ends([each.candidate.memory for each in mine])


def _share(mine: Sequence[Weighed]) -> float:
    ends = _ends(mine)
    return sum(ends) / len(ends)


def _rate(mine: Sequence[Weighed]) -> str:
    ends = _ends(mine)
    lately = " lately" if len(mine) > len(ends) else ""
    return f"{sum(ends)} of {len(ends)}{lately}"


def _worse(branch: Branch, best: str, runs: Mapping[str, Sequence[Weighed]]) -> tuple[str, Sequence[Weighed]]:
    """Of the other ways the one that fails most: the step beyond the best with which runs pass least, and all runs that
    have it, whichever way they took. Nothing where these do about as well as the best.
    """
    least = branch.rates[best].expected - _WORSE_BY
    others = [
        way
        for way, mine in runs.items()
        if way != best and len(mine) >= _WORSE_RUNS_MIN and branch.rates[way].expected < least
    ]
    way = min(others, key=lambda way: (branch.rates[way].expected, way), default=None)
    apart = [] if way is None else [step for step in dict.fromkeys(step_texts(way)) if not _calls(best, step)]
    having = {step: [each for way, mine in runs.items() if _calls(way, step) for each in mine] for step in apart}
    step = min(apart, key=lambda step: _share(having[step]), default="")  # of equals the first
    return (step, having[step]) if step and _share(having[step]) < _share(runs[best]) - _WORSE_BY else ("", ())


def _calls(way: str, step: str) -> bool:
    """Has a way this step? One that is told without what it was given is any call of its tool."""
    return any(step in (each, name_of(each)) for each in step_texts(way))
