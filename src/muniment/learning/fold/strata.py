"""Which runs may be compared: those of one task where it was tried more than once, else those of one family.

Two runs are of one task when they were asked the same, or when they work on the same things: names of the kind that
comes once, such as an order number, in the request and in the first calls. Where no family is named, requests of one
form are one. What is left over shares nothing but the agent.

Where tasks are tried until they pass, the last try of each is the one that passed, whatever was done in it: then a try
is compared with those of other tasks that came after as many failures, and not with the failures before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from muniment.core.canonical import digest_of
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.results import error_shape
from muniment.learning.stored_memory import RunFacts

__all__ = ["ABOUT", "Group", "StratumKind", "about", "strata_of", "task_digest"]

StratumKind = Literal["task", "family", "rest"]
ABOUT = "about:"
"""The group of features that say what a run works on: by digests, for a name of that kind is nobody's advice."""

_WORD = lazy_pattern(r"\w+")
_ID = lazy_pattern(r"(?=[\w-]*[A-Za-z])(?=[\w-]*\d)[A-Za-z0-9][\w-]{4,63}")
"""Letters and digits in one name of five signs or more: orders, users, tickets. Dates and amounts are none."""
_MONTH = lazy_pattern(r"(?i)\d{1,2}(?:st|nd|rd|th)\w*|\d+[a-z]{1,3}|[a-z]+-?\d{1,2}")
_ABOUT_MAX = 12
_DIGEST_CHARS = 16
_UNSAID = "a run"
_STOPPED_MIN = 3
_STOPPED_SHARE = 0.9
"""So many tasks that were tried more than once and passed, and so large a share of them, were not tried again."""


class Group(NamedTuple):
    """Runs that may be compared with one another, as bits by their place."""

    mask: int
    kind: StratumKind


def task_digest(request: str) -> str | None:
    """The same for requests of the same words, however they are spaced or cased; None for one without a word."""
    words = _WORD.findall(request.casefold())
    return digest_of(words)[:_DIGEST_CHARS] if words else None


def about(texts: Sequence[str]) -> Iterator[str]:
    """The features that name what a request and the first calls are about."""
    found = dict.fromkeys(name for text in texts for name in _ID.findall(text) if _MONTH.fullmatch(name) is None)
    for name in list(found)[:_ABOUT_MAX]:
        yield f"{ABOUT}{digest_of(name.casefold())[:_DIGEST_CHARS]}"


def strata_of(runs: Sequence[RunFacts], marks: Sequence[Sequence[str]], *, is_cut: bool = False) -> list[Group]:
    """The groups of these runs, no run in two of them; `marks` are the `about` features of each.

    `is_cut`: older runs are out of sight. Which try one is can then be unknown, and such a run is in no group.
    """
    named = [_task_of(run) for run in runs]
    groups = _joined(named, _distinctive(marks))
    sizes = Counter(groups)
    tries = _tries(groups) if _stop_at_a_pass(runs, groups) else None
    members: dict[tuple[str, str, int], int] = defaultdict(int)
    unknown = _first_out_of_sight(groups) if is_cut and tries is not None else frozenset()
    for place, run in enumerate(runs):
        if groups[place] in unknown and run.attempt is None:
            continue
        is_task = sizes[groups[place]] > 1 and tries is None
        kind, key = ("task", str(groups[place])) if is_task else _family_of(run)
        members[kind, key, run.attempt or (0 if tries is None else tries[place])] |= 1 << place
    return _grouped(members)


def _grouped(members: Mapping[tuple[str, str, int], int]) -> list[Group]:
    """Tasks, families and forms as groups; a form that a single run has is none, and what is left goes together."""
    found: list[Group] = []
    rest: dict[int, int] = defaultdict(int)
    for (kind, _, attempt), mask in members.items():
        if kind == "task":
            found.append(Group(mask, "task"))
        elif kind == "family" or mask.bit_count() > 1:
            found.append(Group(mask, "family"))
        else:
            rest[attempt] |= mask
    return [*found, *(Group(mask, "rest") for mask in rest.values())]


def _tries(groups: Sequence[int]) -> list[int]:
    """Which try of its task each run is, from 0; the runs stand in the order they were made."""
    made: Counter[int] = Counter()
    found = []
    for group in groups:
        found.append(made[group])
        made[group] += 1
    return found


def _first_out_of_sight(groups: Sequence[int]) -> frozenset[int]:
    """The tasks whose first try may be older than what is seen: by the longest time between two tries of one task."""
    last: dict[int, int] = {}
    longest = 0
    first: dict[int, int] = {}
    for place, group in enumerate(groups):
        first.setdefault(group, place)
        longest = max(longest, place - last.get(group, place))
        last[group] = place
    return frozenset(group for group, place in first.items() if place < longest)


def _stop_at_a_pass(runs: Sequence[RunFacts], groups: Sequence[int]) -> bool:
    """Whether tasks seem to be tried until they pass: hardly one was tried again afterwards."""
    outcomes: dict[int, list[bool]] = defaultdict(list)
    for run, group in zip(runs, groups, strict=True):
        outcomes[group].append(run.passed)
    solved = [tries for tries in outcomes.values() if any(tries) and len(tries) > 1]
    ended = sum(not any(tries[:-1]) for tries in solved)
    return ended >= _STOPPED_MIN and ended >= _STOPPED_SHARE * len(solved)


def _task_of(run: RunFacts) -> str | None:
    """The task of a run; None where its words are not kept."""
    if run.task is not None:
        return run.task
    return None if run.x_summary in (run.intent.task_family, _UNSAID) else task_digest(run.x_summary)


def _family_of(run: RunFacts) -> tuple[str, str]:
    if run.intent.task_family is not None:
        return "family", run.intent.task_family
    return "form", error_shape(run.x_summary)


def _distinctive(marks: Sequence[Sequence[str]]) -> list[list[str]]:
    """Of each run the marks that it shares with some runs and not with most."""
    often = Counter(mark for of_run in marks for mark in set(of_run))
    return [[mark for mark in of_run if 1 < often[mark] <= len(marks) // 2] for of_run in marks]


def _joined(named: Sequence[str | None], marks: Sequence[Sequence[str]]) -> list[int]:
    """For each run the first that it belongs with, over any number of runs between them."""
    first: dict[str, int] = {}
    parents = list(range(len(named)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for place, (task, about_) in enumerate(zip(named, marks, strict=True)):
        for mark in (*([task] if task is not None else []), *about_):
            one, other = sorted((root(first.setdefault(mark, place)), root(place)))
            parents[other] = one
    return [root(place) for place in range(len(named))]
