"""Learned memory as a prompt reads it: an episode alone, several of one form as one line, a lesson, a rule. Pure.

An episode that an earlier version wrote may quote what a tool answered. Of such a one only what was asked, how it ended
and the names of its tools are told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.blame import only_looks
from muniment.learning.fold.doing_words import (
    THEN,
    is_cut,
    is_given,
    name_of,
    notes_of,
    step_texts,
    with_counts,
    without_counts,
)
from muniment.learning.fold.features import is_check
from muniment.learning.fold.transcripts import WORDING, WORDING_LOOKS_ONCE
from muniment.learning.hinting.forms import LEFT_OPEN, Form, form_of, together
from muniment.learning.hinting.requests import TaskForm, request_form, told_form
from muniment.learning.hinting.tool_likeness import tools_told
from muniment.learning.lessons.wording import lesson_line
from muniment.learning.stored_memory import StoredMemory

__all__ = [
    "SAME_TASK",
    "Episode",
    "as_given",
    "episode_of",
    "hint_text",
    "is_same_task",
    "line_of_many",
    "line_to_try",
    "newest_ends",
    "passed_of",
    "share_of",
    "without_asked",
    "without_failing",
]

_ASKED = lazy_pattern(r"(?s)Asked: (.*?)[.?!…]* ((?:Passed|Failed|Not judged yet)(?:: [^.]*)?)\. ?$")
_NUMBERS = lazy_pattern(r"; \w+=\d+(?=[;)])|(?<=\()\w+=\d+(?:; |(?=\)))")
_EMPTY = lazy_pattern(r" \(\)")
SAME_TASK = 0.6
"""The share of words in common from which two tasks are one."""
_DID = lazy_pattern(r"^(?:Did|Only looked): ")
_GIVEN = lazy_pattern(r" \(([^()]*)\)")
_WORD = lazy_pattern(r"\w+")
_PLACE = lazy_pattern(r"[(;] ?(?:wrote `|\w+=[\w.-]+/|\w+=[\w-]+\.[a-z]{1,5}[;)])")
_ALONE = lazy_pattern(r"^It ")
_HALF = 0.5
_LATELY_MIN = 3
"""Runs that failed one after the other, from which on that is told."""
_NEWEST_MAX = 8
"""Of runs that say the same so many are counted, the newest: what was long ago may hold no more."""


class Episode(NamedTuple):
    """The parts of an episode's sentence."""

    asked: str
    end: str
    """`Passed`, `Failed: tool_failure`, `Not judged yet`."""
    did: str
    rest: str
    """What stands behind: how it failed, or may have."""
    how: str
    """How it failed, as a clause."""
    forms: tuple[str, ...] = ()
    """The forms of what was asked and of what was asked later, by digests of the whole; none of earlier versions."""
    is_abridged: bool = False
    """Of earlier versions: a tool that only looks is told once, however often it was called."""

    @property
    def text(self) -> str:
        asked = self.asked if self.asked[-1:] in ("…", "?", "!") else f"{self.asked}."
        return " ".join(part for part in (f"Asked: {asked}", f"{self.end}.", f"{self.did_told}.", self.rest) if part)

    @property
    def did_told(self) -> str:
        return f"{self.did} (each look is told once)" if self.is_abridged else self.did

    @property
    def form(self) -> Form:
        """Of what is told of the request."""
        return request_form(self.asked)

    @property
    def task_key(self) -> tuple[str, ...]:
        """The same for tasks of one form, whatever was asked later."""
        return self.forms[:1] or told_form(self.asked)

    @property
    def asked_key(self) -> tuple[str, ...]:
        """The same for tasks of one form of which the same was asked later."""
        return self.forms or self.form.key

    @property
    def is_of_one_place(self) -> bool:
        """Does its way name a file, or what was written? Then it is a way for this task and no other."""
        return _PLACE.search(self.way) is not None

    def is_of(self, task: TaskForm) -> bool:
        """Was it asked what is asked now, but for numbers, ids and names?"""
        return self.forms[0] == task.whole if self.forms else self.task_key == task.told

    @property
    def doing(self) -> str:
        """What was done without the numbers that calls were given, and without how often what came again did: short
        ones are told, and long ones are not.
        """
        return without_counts(_EMPTY.sub("", _NUMBERS.sub("", self.did)))

    @property
    def way(self) -> str:
        """What was done without what the task itself asked for: `paint (colour=green)` is `paint` where green was asked
        for. Empty where nothing was called, or not all of it is told: half a way is another one.
        """
        if _DID.match(self.did) is None or is_cut(self.did) or self.is_abridged:
            return ""
        return without_asked(self.doing, self.asked)


def without_asked(doing: str, asked: str) -> str:
    """What was done without the values that stand in what was asked."""
    words = f" {' '.join(_words(asked))} "
    return _GIVEN.sub(lambda notes: _without_asked(notes[1], words), doing)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _without_asked(notes: str, asked: str) -> str:
    """What a call was given, without the values that stand in what was asked."""
    kept = []
    for note in notes.split("; "):
        name, given, value = note.partition("=")
        words = " ".join(_words(value))
        if not (given and name.isidentifier() and words and f" {words} " in asked):
            kept.append(note)
    return f" ({'; '.join(kept)})" if kept else ""


def episode_of(memory: StoredMemory) -> Episode | None:
    """The parts of an episode; None for what is none, or does not say what was done."""
    record = memory.record
    did = record.get("did")
    if memory.kind != "reasoning" or not isinstance(did, str) or not did:
        return None
    start, found, rest = _one_line(record.get("summary")).partition(did)
    parts = _ASKED.match(start)
    if not found or parts is None:
        return None
    asked, end = start[len("Asked: ") : parts.end(1)], parts[2]
    asked = f"{asked}{start[parts.end(1) : parts.start(2)].strip().rstrip('.')}"
    wording = record.get("wording")
    if wording in (WORDING, WORDING_LOOKS_ONCE):
        how, forms = record.get("ending"), record.get("forms")
        return Episode(
            asked,
            end,
            did,
            rest.removeprefix(".").strip(),
            how if isinstance(how, str) else "",
            tuple(map(str, forms)) if isinstance(forms, list | tuple) else (),
            wording == WORDING_LOOKS_ONCE and any(only_looks(name_of(step)) for step in step_texts(did)),
        )
    tools = ", ".join(sorted(tools_told(memory)))
    return Episode(asked, end, f"Called: {tools}" if tools else "Called nothing", "", "")


def hint_text(memory: StoredMemory, rest: str | None = None) -> str:
    """What a record says in a prompt; of an episode `rest` in place of what stands behind."""
    if memory.kind == "tactic":
        return lesson_line(memory)
    if (episode := episode_of(memory)) is not None:
        return (episode if rest is None else episode._replace(rest=rest)).text
    record: Mapping[str, Any] = memory.record
    injection = record.get("injection")
    said = injection.get("content") if isinstance(injection, Mapping) else None
    return _one_line(said or record.get("summary") or record.get("body"))


def line_of_many(memories: Sequence[StoredMemory], rest: str | None = None) -> str:
    """Episodes that say the same, as one: `4 runs like "Find order …": passed 4 of 4. Did: by_number.`

    The first stands for all; where they are of one form, what varies is left open. Empty for what is no episode.
    """
    told = _told_of_many(memories)
    if told is None:
        return ""
    ended = _how_many_passed(memories)
    ends = {each.end.partition(": ")[2] for memory in memories if (each := episode_of(memory)) is not None}
    reasons = f" ({', '.join(ends)})" if len(ends) == 1 and all(ends) else ""
    count = f"Last {_NEWEST_MAX}" if len(memories) > _NEWEST_MAX else str(len(memories))
    behind = _ALONE.sub("They ", told.first.rest if rest is None else rest)
    said = [f'{count} runs like "{told.asked}"{ended}{reasons}.', f"{told.did}.", behind]
    return " ".join(part for part in said if part)


def line_to_try(memories: Sequence[StoredMemory]) -> str:
    """The way that is to be tried: `Try by_number: passed 4 of 4 in runs like "Find order …".` Empty for what is no
    episode, or called nothing.
    """
    told = _told_of_many(memories)
    if told is None or not told.way:
        return ""
    only = ", and no more" if told.way.startswith("Only looked: ") else ""
    way, failed = without_failing(_DID.sub("", told.way))
    runs = f'runs like "{told.asked}"' if len(newest_ends(memories)) > 1 else f'a run like "{told.asked}"'
    lately = " lately" if len(memories) > _NEWEST_MAX else ""
    ended = _how_many_passed(memories)
    return f"Try {_GIVEN.sub(_with_answers, way)}{only}{ended}{lately} in {runs}.{failed}"


def without_failing(way: str) -> tuple[str, str]:
    """A way without the calls that acted and answered an error before others held, and a sentence that tells of them:
    nobody is told to run into an error. A look or a check that failed told the run something, and what held when it was
    made again is the way: these stay.
    """
    parts = way.split(THEN)
    acted = [at for at, part in enumerate(parts) if _acts(part)]
    failing = [at for at in acted if any(not is_given(note) for note in notes_of(parts[at]))]
    held = {as_given(parts[at]): at for at in acted if at not in failing}
    failing = [at for at in failing if at < max(held.values(), default=0) and as_given(parts[at]) not in held]
    if not failing or any(part.startswith("(") for part in parts):
        return way, ""
    called = " and ".join(dict.fromkeys(as_given(parts[at]) for at in failing))
    kept = [part for at, part in enumerate(parts) if at not in failing]
    return THEN.join(kept), f" They called {called} before it, in vain."


def _acts(step: str) -> bool:
    name = name_of(step)
    return bool(name) and not only_looks(name) and not is_check(name)


def as_given(step: str) -> str:
    """A step without what it answered."""
    notes = list(filter(is_given, notes_of(step)))
    return f"{name_of(step)} ({'; '.join(notes)})" if notes else name_of(step)


def _with_answers(notes: re.Match[str]) -> str:
    """Nobody is asked for what a tool answered: it is told as such."""
    told = [note if is_given(note) or THEN in note else f"answered {note}" for note in notes[1].split("; ")]
    return f" ({'; '.join(told)})"


class _Many(NamedTuple):
    """What several episodes say, in words that hold for all of them."""

    asked: str
    did: str
    way: str
    """Empty where not all of them say what was done, and whole."""
    first: Episode


def _told_of_many(memories: Sequence[StoredMemory]) -> _Many | None:
    """None where one is no episode."""
    episodes = [each for memory in memories if (each := episode_of(memory)) is not None]
    if len(episodes) < len(memories):
        return None
    first = episodes[0]
    asked = together([each.form for each in episodes]) if len({each.asked_key for each in episodes}) == 1 else ""
    if asked and first.asked.endswith(LEFT_OPEN) and not asked.endswith(LEFT_OPEN):
        asked += LEFT_OPEN  # it was cut
    dids = [each.did for each in episodes]
    did = next(
        filter(None, (_as_one(told, dids) for told in (list(map(without_counts, dids)), [e.doing for e in episodes]))),
        "",
    )
    ways = [each.way for each in episodes]
    way = (_as_one(ways, dids) or with_counts(ways[0], dids[:1])) if all(ways) else ""
    whole = first._replace(did=did or first.did).did_told
    return _Many(asked or first.asked, whole, way, first)


def _as_one(told: Sequence[str], dids: Sequence[str]) -> str:
    """Lines of one form as one, with how often what came again did; nothing where they are of several forms."""
    forms = [form_of(each) for each in told]
    return with_counts(together(forms), dids) if len({form.key for form in forms}) == 1 else ""


def newest_ends(memories: Sequence[StoredMemory]) -> list[bool]:
    """Whether the newest of these runs passed, as far as they were judged, oldest first."""
    oldest_first = sorted(memories, key=lambda memory: (memory.created_at, memory.id))
    return [passed for memory in oldest_first if (passed := passed_of(memory)) is not None][-_NEWEST_MAX:]


def _how_many_passed(memories: Sequence[StoredMemory]) -> str:
    """Of the newest, and what came of the last of them where that is something else: a way that worked once may work no
    more.
    """
    judged = newest_ends(memories)
    if not judged:
        return ", not judged yet"
    lately = next((place for place, passed in enumerate(reversed(judged)) if passed), 0)
    rest = f", none of the last {lately}" if lately >= _LATELY_MIN else ""
    return f": passed {sum(judged)} of {len(judged)}{rest}"


def is_same_task(one: StoredMemory, other: StoredMemory) -> bool:
    """Were two runs asked the same: in one form, or in much the same words?"""
    ours, theirs = episode_of(one), episode_of(other)
    if ours is None or theirs is None:
        return False
    words = [frozenset(analyze(each.asked)) for each in (ours, theirs)]
    return ours.asked_key == theirs.asked_key or share_of(*words) >= SAME_TASK


def share_of(a: frozenset[str], b: frozenset[str]) -> float:
    """The words that two texts have in common, as a share of all."""
    return len(a & b) / len(a | b) if a or b else 1.0


def passed_of(memory: StoredMemory) -> bool | None:
    """Whether the run that an episode tells of passed; its `pass_p_hat` speaks of later runs once it was used."""
    tags, rate = memory.record.get("tags"), memory.record.get("pass_p_hat")
    for word in ("pass", "fail"):
        if isinstance(tags, list | tuple) and word in tags:
            return word == "pass"
    return rate >= _HALF if not memory.with_tally.n and isinstance(rate, int | float) else None


def _one_line(text: Any) -> str:
    return " ".join(str(text or "").split())
