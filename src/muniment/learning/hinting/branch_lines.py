"""Recalled runs told by what decides between them: `When get_order says state is open, try cancel: passed 7 of 8.`

Pure. What decides is found by `lessons.branches`; here are the lines. Each stands for the runs that did so in those
circumstances, and names all of them. Where no way passed in some circumstances, nothing is told for these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muniment.learning.fold.circumstances import when_words
from muniment.learning.fold.doing_words import step_texts
from muniment.learning.hinting.episode_words import episode_of, newest_ends
from muniment.learning.hints import Weighed
from muniment.learning.lessons.branches import Branch, Branches
from muniment.learning.lessons.ways import answers_in

__all__ = ["branch_lines"]

_WORSE_BY, _WORSE_RUNS_MIN = 0.2, 3
"""A way that passes so much less often in these circumstances is told as well, if so many runs took it."""


def branch_lines(weighed: Sequence[Weighed], decided: Branches) -> list[Weighed]:
    """A line for each value of what decides, as an episode that stands for the runs of that way."""
    known = {each.candidate.memory.id: each for each in weighed}
    lines = [line for branch in decided.branches if (line := _line(branch, decided, known)) is not None]
    if decided.place.tool and lines and not decided.is_known:
        lines[0] = lines[0]._replace(line=f"{lines[0].line} Call {decided.place.tool} before you choose.")
    return lines


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
    told = f"When {when_words(decided.place, branch.value)}, try {_steps(way)}{_rate(mine)}."
    worse = _worse(branch, way, runs)
    return lead._replace(alike=alike, way=branch.rates[way], line=f"{told} {worse}".rstrip())


def _steps(way: str) -> str:
    return way.partition(": ")[2]


def _trouble(each: Weighed) -> int:
    episode = episode_of(each.candidate.memory)
    return 0 if episode is None else answers_in(episode.did)


def _ends(mine: Sequence[Weighed]) -> list[bool]:
    return newest_ends([each.candidate.memory for each in mine])


def _rate(mine: Sequence[Weighed]) -> str:
    ends = _ends(mine)
    lately = " lately" if len(mine) > len(ends) else ""
    return f": passed {sum(ends)} of {len(ends)}{lately}"


def _worse(branch: Branch, best: str, runs: Mapping[str, Sequence[Weighed]]) -> str:
    """Of the other ways the one that fails most: the steps that it has beyond the best."""
    least = branch.rates[best].expected - _WORSE_BY
    others = [
        way
        for way, mine in runs.items()
        if way != best and len(mine) >= _WORSE_RUNS_MIN and branch.rates[way].expected < least
    ]
    way = min(others, key=lambda way: (branch.rates[way].expected, way), default=None)
    if way is None:
        return ""
    apart = [step for step in dict.fromkeys(step_texts(way)) if step not in step_texts(best)]
    return f"Runs that called {apart[0]} there passed {_rate(runs[way]).removeprefix(': passed ')}." if apart else ""
