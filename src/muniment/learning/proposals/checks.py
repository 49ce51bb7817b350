"""Whether a proposed lesson holds against the events it cites. Pure: what is secret or an order is asked of the caller.

The checks say that what a lesson names is there, that a run did what it recommends, and that no run passed by what it
warns of. They do not say that it helps: that is what its trial is for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from muniment.core.text.analyzer import stem, stop_words
from muniment.learning.proposals.forbidding import forbidden_in
from muniment.learning.proposals.names import called_in, names_in, spoken_numbers, stands_in
from muniment.learning.proposals.records import REASONS, LessonProposal, Refusal, ShownEvent, ShownRun
from muniment.learning.quoted_words import contains_value, folded, words_in

__all__ = ["Refused", "Standards", "check_lesson", "check_words"]

_RUNTIME = re.compile(
    r"\b(?:ignore|bypass|skip|disable|override|circumvent|turn off|switch off|disregard|forget)\b[^.;]{0,40}"
    r"\b(?:verif\w+|verdicts?|sandbox\w*|polic(?:y|ies)|rules?|instructions?|guard\w*|permissions?|confirmations?"
    r"|approvals?|safety|system prompt|memory|lessons?|checks?)\b",
    re.IGNORECASE,
)
"""What speaks to the runtime, or to whoever judges, and not of the work."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WHOLE = re.compile(r"[\w./:-]+")
"""A name of code is one word, however many it is made of."""
_NUMBERED = re.compile(r"\b(?=\w*\d\w*\d\w*\d\w*\d)\w{4,40}\b")
"""Four digits or more in one word: what one thing is known by."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_RUN_OF_WORDS = 4
_ECHO_SHARE = 0.6
_SAID_MIN = 3
_NAMED_MAX = 3


class Standards(NamedTuple):
    """What a lesson is held to beside its evidence."""

    tokens_max: int
    count: Callable[[str], int]
    secret_in: Callable[[str], str | None]
    """What kind of secret a text holds, if any."""
    is_order: Callable[[str], bool]
    is_bound: bool
    """Whether it will be kept for one kind of work: then it needs no condition of its own."""
    now: str
    must_contrast: bool = True
    """A model's: its warning must show a run that passed without, and nothing in it may be of one task alone."""


class Refused(NamedTuple):
    """Why a proposal is not taken."""

    code: Refusal
    why: str


def check_words(proposal: LessonProposal, standards: Standards) -> Refused | None:
    """What can be said of a lesson without looking at any event."""
    said = f"{proposal.when}: {proposal.text}" if proposal.when else proposal.text
    kind = standards.secret_in(said)
    if kind is not None:
        return _refused("secret", kind)
    if standards.is_order(said) or _RUNTIME.search(said):
        return _refused("orders")
    if (tokens := standards.count(said)) > standards.tokens_max:
        return _refused("too_long", f"{tokens} tokens of at most {standards.tokens_max}")
    if len(_WORD.findall(proposal.text)) < _SAID_MIN and proposal.text.isascii():
        return _refused("says_nothing", "it is no sentence")
    if not proposal.when and not standards.is_bound:
        return _refused("no_condition")
    return None


def check_lesson(
    proposal: LessonProposal, runs: Sequence[ShownRun], passing_tools: Collection[str], standards: Standards
) -> Refused | None:
    """Why a lesson does not hold against the runs that were shown; None where it does.

    `passing_tools` are those that further runs of this work called, which passed.
    """
    found = check_words(proposal, standards)
    if found is not None:
        return found
    shown = {event.id: event for run in runs for event in run.events}
    if not proposal.event_ids:
        return _refused("no_evidence")
    unknown = [id_ for id_ in proposal.event_ids if id_ not in shown]
    if unknown:
        return _refused("unknown_event", ", ".join(unknown[:_NAMED_MAX]))
    cited = [shown[id_] for id_ in proposal.event_ids]
    reasons = [reason for run in runs for reason in run.reasons]
    return (
        _check_names(proposal, cited, reasons, standards.now)
        or _check_calls(proposal, runs, passing_tools)
        or _check_echo(proposal, cited)
        or (_check_task(proposal, runs) if standards.must_contrast else None)
        or _check_solution(proposal, runs, passing_tools, standards)
    )


def _refused(code: Refusal, what: str = "") -> Refused:
    return Refused(code, f"{REASONS[code]}: {what:.200}" if what else REASONS[code])


def _check_names(
    proposal: LessonProposal, cited: Sequence[ShownEvent], reasons: Sequence[str], now: str
) -> Refused | None:
    evidence = "\n".join([*(event.words for event in cited), *reasons])
    said = f"{proposal.when}\n{proposal.text}"
    absent = [name for name in names_in(said) if not stands_in(name, evidence, now)]
    absent += [word for word, number in spoken_numbers(said).items() if not contains_value(evidence, number, now)]
    if absent:
        return _refused("not_in_evidence", ", ".join(absent[:_NAMED_MAX]))
    held = _content_words(evidence)
    return None if _content_words(said) & held or not held else _refused("says_nothing")


def _content_words(text: str) -> set[str]:
    silent = stop_words("english")
    return {stem(word) for word in words_in(folded(text).replace("_", " ")) if word not in silent and len(word) > 1}


def _check_calls(proposal: LessonProposal, runs: Sequence[ShownRun], passing_tools: Collection[str]) -> Refused | None:
    """Whoever says to call something must have seen it called: an event can speak of any tool there is."""
    made = {event.tool for run in runs for event in run.calls if event.tool is not None} | set(passing_tools)
    known = {folded(tool) for tool in made}
    acts = "\n".join(folded(event.args) for run in runs for event in run.calls)
    unseen = [
        name
        for name in called_in(proposal.text, made)
        if folded(name) not in known and not stands_in(name, acts, "2000-01-01")
    ]
    return _refused("nobody_called_it", ", ".join(unseen[:_NAMED_MAX])) if unseen else None


def _check_echo(proposal: LessonProposal, cited: Sequence[ShownEvent]) -> Refused | None:
    """Words that somebody else put into an event are no lesson because a model says them again."""
    said = _stretches(proposal.text)
    if not said:
        return None
    for event in cited:
        if event.who != "agent" and len(said & _stretches(event.text)) >= _ECHO_SHARE * len(said):
            return _refused("repeats_an_event", event.id)
    return None


def _check_task(proposal: LessonProposal, runs: Sequence[ShownRun]) -> Refused | None:
    """An order's number, an account, a reference: what the user named in this task, and the next one will not."""
    asked = {
        number
        for run in runs
        for event in run.events
        if event.who == "user"
        for number in _NUMBERED.findall(event.text)
    }
    named = [number for number in _NUMBERED.findall(f"{proposal.when} {proposal.text}") if number in asked]
    own = [number for number in dict.fromkeys(named) if _YEAR.fullmatch(number) is None]
    return _refused("of_one_task", ", ".join(own[:_NAMED_MAX])) if own else None


def _stretches(text: str) -> set[tuple[str, ...]]:
    words = [word.strip(".:/-") for word in _WHOLE.findall(folded(text))]
    return {tuple(words[at : at + _RUN_OF_WORDS]) for at in range(len(words) - _RUN_OF_WORDS + 1)}


def _check_solution(
    proposal: LessonProposal, runs: Sequence[ShownRun], passing_tools: Collection[str], standards: Standards
) -> Refused | None:
    """A lesson must not warn of what passing runs did, as far as it says what that is.

    A model's warning needs a run that passed without: of what failed once, nobody knows which step was to blame.
    """
    tools = {event.tool for run in runs for event in run.calls if event.tool is not None} | set(passing_tools)
    warnings = list(forbidden_in(proposal, tools))
    if warnings and standards.must_contrast and not any(run.passed for run in runs):
        return _refused("no_contrast", ", ".join(warnings[0].names))
    for warned in warnings:
        for run in runs:
            if run.passed and warned.is_done_in(run):
                return _refused("forbids_solution", ", ".join(warned.names))
        if warned.order is None and len(warned.names) == 1 and warned.names[0] in passing_tools:
            return _refused("forbids_solution", warned.names[0])
    return None
