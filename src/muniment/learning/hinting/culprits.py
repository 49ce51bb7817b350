"""Which step of a run that failed may be named as where it went wrong: none that a passing run like it took too. Pure.

A run that failed names the call after which it failed, or one at which it may have gone wrong. That is found by looking
at this run alone. Beside runs like it that passed, a step with the same tool and the same form of arguments decided
nothing, and to name it would keep the next run from doing what is right. What passing runs did is known when a hint is
told and not before, so nothing of this is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muniment.core.limits import remembered
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.doing_words import is_cut, name_of, notes_of, step_texts
from muniment.learning.hinting.episode_words import Episode, episode_of, is_same_task, passed_of, without_asked
from muniment.learning.hinting.forms import form_of
from muniment.learning.hinting.tool_likeness import tool_likeness, tools_told
from muniment.learning.stored_memory import StoredMemory

__all__ = ["LIKE", "passing_like", "rest_told", "words_beside"]

LIKE = 0.5
"""How alike two runs must be in their tools for the one to be told beside the other."""
_FAMILY = "family="
_GUESSED = "It may have gone wrong at "
_FAILED = lazy_pattern(r"(?:It )?failed after ")
_EXACT = lazy_pattern(r"^wrote |[./]")
_COUNTED = lazy_pattern(r" \d+ times$")

Key = tuple[str, ...]


def passing_like(failed: StoredMemory, others: Iterable[StoredMemory]) -> tuple[StoredMemory, ...]:
    """Of these the runs that passed and are like it: asked the same, of the same named work, or with the same tools."""
    kind, tools = failed.record.get("intent_key"), tools_told(failed)
    is_named = isinstance(kind, str) and _FAMILY in kind
    return tuple(
        each
        for each in others
        if passed_of(each)
        and (
            (is_named and each.record.get("intent_key") == kind)
            or tool_likeness(tools, tools_told(each), {}) >= LIKE
            or is_same_task(failed, each)
        )
    )


def rest_told(failed: StoredMemory, passing: Sequence[StoredMemory]) -> str:
    """What an episode says of how its run failed, or may have; nothing where a passing run like it did the same."""
    episode = episode_of(failed)
    if episode is None or not passing:
        return "" if episode is None else episode.rest
    step = _FAILED.sub("", episode.rest.removeprefix(_GUESSED), count=1).removesuffix(".")
    is_guess = episode.rest.startswith(_GUESSED)
    return "" if _was_taken(step, episode, passing, is_guess=is_guess) else episode.rest


def words_beside(passed: StoredMemory, failed: StoredMemory, passing: Sequence[StoredMemory] = ()) -> str:
    """What a run that failed says beside one that passed: how it failed, or what it did that none of them did.

    Empty where it says nothing else: an error that a passing run met too did not decide.
    """
    theirs = episode_of(failed)
    known = (passed, *passing)
    if theirs is None or not theirs.how:
        return ""
    if not _was_taken(_FAILED.sub("", theirs.how, count=1), theirs, known):
        return f"A run like it {theirs.how}."
    if not is_same_task(passed, failed):
        return ""
    steps = [step for step in step_texts(theirs.did) if not _was_taken(step, theirs, known, is_guess=True)]
    return f"A run like it called {steps[0]} instead, and failed." if steps else ""


def _was_taken(step: str, failed: Episode, passing: Sequence[StoredMemory], *, is_guess: bool = False) -> bool:
    """Did a passing run take a step too? Of one that is not told whole, a guess goes by the names of its tools."""
    key = _key(step, failed.asked)
    for memory in passing:
        episode = episode_of(memory)
        if episode is None:
            continue
        if key in _keys(episode.did, episode.asked):
            return True
        if is_guess and is_cut(episode.did) and name_of(step) in tools_told(memory):
            return True
    return False


@remembered(4096)
def _keys(did: str, asked: str) -> frozenset[Key]:
    """Of all steps that a run took."""
    return frozenset(_key(step, asked) for step in step_texts(did))


@remembered(4096)
def _key(step: str, asked: str) -> Key:
    """The same for steps of one tool and one form of arguments, less what the task itself asked for. What was written
    and answered, and in which file, is the same only word for word.
    """
    bare = without_asked(_COUNTED.sub("", step), asked)
    notes = ((note,) if _EXACT.search(note) or "=" not in note else form_of(note).key for note in notes_of(bare))
    return (name_of(bare), *(part for note in notes for part in (*note, "")))
