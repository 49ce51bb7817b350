"""Learned memory as a prompt reads it: an episode alone, several of one form as one line, a lesson, a rule. Pure.

An episode that an earlier version wrote may quote what a tool answered. Of such a one only what was asked, how it ended
and the names of its tools are told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.transcripts import WORDING
from muniment.learning.hinting.forms import Form, form_of, together
from muniment.learning.hinting.tool_likeness import tools_told
from muniment.learning.lessons.wording import lesson_line
from muniment.learning.stored_memory import StoredMemory

__all__ = [
    "SAME_TASK",
    "Episode",
    "episode_of",
    "hint_text",
    "is_same_task",
    "line_of_many",
    "line_to_try",
    "newest_ends",
    "passed_of",
    "share_of",
    "words_beside",
]

_ASKED = lazy_pattern(r"(?s)Asked: (.*?)[.?!…]* ((?:Passed|Failed|Not judged yet)(?:: [^.]*)?)\. ?$")
_NUMBERS = lazy_pattern(r"; \w+=\d+(?=[;)])|(?<=\()\w+=\d+(?:; |(?=\)))")
_EMPTY = lazy_pattern(r" \(\)")
SAME_TASK = 0.6
"""The share of words in common from which two tasks are one."""
_DID = lazy_pattern(r"^(?:Did|Only looked): ")
_GIVEN = lazy_pattern(r" \(([^()]*)\)")
_CUT = " … "
_WORD = lazy_pattern(r"\w+")
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

    @property
    def text(self) -> str:
        asked = self.asked if self.asked[-1:] in ("…", "?", "!") else f"{self.asked}."
        return " ".join(part for part in (f"Asked: {asked}", f"{self.end}.", f"{self.did}.", self.rest) if part)

    @property
    def form(self) -> Form:
        return form_of(self.asked)

    @property
    def doing(self) -> str:
        """What was done without the numbers that calls were given: short ones are told, and long ones are not."""
        return _EMPTY.sub("", _NUMBERS.sub("", self.did))

    @property
    def way(self) -> str:
        """What was done without what the task itself asked for: `paint (colour=green)` is `paint` where green was asked
        for. Empty where nothing was called, or not all of it is told.
        """
        if _DID.match(self.did) is None or _CUT in self.did:
            return ""
        asked = f" {' '.join(_words(self.asked))} "
        return _GIVEN.sub(lambda notes: _without_asked(notes[1], asked), self.doing)


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
    if record.get("wording") == WORDING:
        how = record.get("ending")
        return Episode(asked, end, did, rest.removeprefix(".").strip(), how if isinstance(how, str) else "")
    tools = ", ".join(sorted(tools_told(memory)))
    return Episode(asked, end, f"Called: {tools}" if tools else "Called nothing", "", "")


def hint_text(memory: StoredMemory) -> str:
    """What a record says in a prompt."""
    if memory.kind == "tactic":
        return lesson_line(memory)
    if (episode := episode_of(memory)) is not None:
        return episode.text
    record: Mapping[str, Any] = memory.record
    injection = record.get("injection")
    said = injection.get("content") if isinstance(injection, Mapping) else None
    return _one_line(said or record.get("summary") or record.get("body"))


def line_of_many(memories: Sequence[StoredMemory]) -> str:
    """Episodes that say the same, as one: `4 runs like "Find order …": passed 4 of 4. Did: by_number.`

    The first stands for all; where they are of one form, what varies is left open. Empty for what is no episode.
    """
    told = _told_of_many(memories)
    if told is None:
        return ""
    asked, did, first = told
    ended = _how_many_passed(memories)
    reasons = first.end.partition(": ")[2]
    count = f"Last {_NEWEST_MAX}" if len(memories) > _NEWEST_MAX else str(len(memories))
    said = [f'{count} runs like "{asked}"{ended}{f" ({reasons})" if reasons else ""}.', f"{did}.", first.rest]
    return " ".join(part for part in said if part)


def line_to_try(memories: Sequence[StoredMemory]) -> str:
    """The way that is to be tried: `Try by_number: passed 4 of 4 in runs like "Find order …".` Empty for what is no
    episode, or called nothing.
    """
    told = _told_of_many(memories)
    ways = [each.way for memory in memories if (each := episode_of(memory)) is not None]
    if told is None or not all(ways):
        return ""
    asked, _, first = told
    forms = [form_of(way) for way in ways]
    way = together(forms) if len({form.key for form in forms}) == 1 else ways[0]
    only = ", and no more" if way.startswith("Only looked: ") else ""
    runs = f'runs like "{asked}"' if len(newest_ends(memories)) > 1 else f'a run like "{asked}"'
    lately = " lately" if len(memories) > _NEWEST_MAX else ""
    ended = _how_many_passed(memories)
    return f"Try {_DID.sub('', way)}{only}{ended}{lately} in {runs}. {first.rest}".strip()


def _told_of_many(memories: Sequence[StoredMemory]) -> tuple[str, str, Episode] | None:
    """What was asked and what was done in words for all of them, and the first; None where one is no episode."""
    episodes = [each for memory in memories if (each := episode_of(memory)) is not None]
    if len(episodes) < len(memories):
        return None
    first = episodes[0]
    forms = [each.form for each in episodes]
    asked = together(forms) if len({form.key for form in forms}) == 1 else first.asked
    whole, bare = ([form_of(did) for did in told] for told in zip(*((e.did, e.doing) for e in episodes), strict=True))
    did = next((together(told) for told in (whole, bare) if len({form.key for form in told}) == 1), first.did)
    return asked, did, first


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


def words_beside(passed: StoredMemory, failed: StoredMemory) -> str:
    """What a run that failed says beside one that passed: how it failed, or what it did that the other did not.

    Empty where it says nothing else: an error that the passing run met too did not decide.
    """
    ours, theirs = episode_of(passed), episode_of(failed)
    if theirs is None:
        return ""
    known = "" if ours is None else ours.did
    if theirs.how and theirs.how.removeprefix("failed after ") not in known:
        return f"A run like it {theirs.how}."
    if not theirs.how or not is_same_task(passed, failed):
        return ""
    steps = [step for step in _steps(theirs.did) if step not in _steps(known)]
    return f"A run like it called {steps[0]} instead, and failed." if steps else ""


def is_same_task(one: StoredMemory, other: StoredMemory) -> bool:
    """Were two runs asked the same: in one form, or in much the same words?"""
    ours, theirs = episode_of(one), episode_of(other)
    if ours is None or theirs is None:
        return False
    words = [frozenset(analyze(each.asked)) for each in (ours, theirs)]
    return ours.form.key == theirs.form.key or share_of(*words) >= SAME_TASK


def share_of(a: frozenset[str], b: frozenset[str]) -> float:
    """The words that two texts have in common, as a share of all."""
    return len(a & b) / len(a | b) if a or b else 1.0


def _steps(did: str) -> list[str]:
    return [step for part in _DID.sub("", did).split(" … ") for step in part.split(", then ")]


def passed_of(memory: StoredMemory) -> bool | None:
    """Whether the run that an episode tells of passed; its `pass_p_hat` speaks of later runs once it was used."""
    tags, rate = memory.record.get("tags"), memory.record.get("pass_p_hat")
    for word in ("pass", "fail"):
        if isinstance(tags, list | tuple) and word in tags:
            return word == "pass"
    return rate >= _HALF if not memory.with_tally.n and isinstance(rate, int | float) else None


def _one_line(text: Any) -> str:
    return " ".join(str(text or "").split())
