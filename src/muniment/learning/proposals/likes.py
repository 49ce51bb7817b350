"""What says the same as a proposed lesson already, and the tactic that a lesson is kept as. Pure.

Two lessons say the same where they name the same things, advise alike, and have most of their words in common; or where
one is a contrast of the very call that the other names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.contracts.learning import ConditionalTactic
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.core.text.analyzer import stem, stop_words
from muniment.learning.fold.distill import BankIds
from muniment.learning.lesson_state import LessonOrigin
from muniment.learning.proposals.names import called_in, names_in
from muniment.learning.proposals.records import Advice, LessonProposal
from muniment.learning.quoted_words import folded, words_in

__all__ = ["CheckedLesson", "Like", "find_like", "lesson_id", "lesson_tactic", "lesson_text", "with_evidence"]

_TRACES_MAX, _EVENTS_MAX = 12, 24
_LIVE = ("active", "pinned")


class CheckedLesson(NamedTuple):
    """A proposal that holds, with what it rests on."""

    proposal: LessonProposal
    origin: LessonOrigin
    trace_ids: tuple[str, ...]
    keys: Mapping[str, str]
    """Of the kind of work it is bound to: `intent_key`, `bucket_key`."""
    intent: str = ""
    """That kind of work, as ids are made of it."""
    predicates: tuple[str, ...] = ()
    by: str | None = None
    """Who wrote it, where that is known: a model's name."""


class Like(NamedTuple):
    """A record that says the same."""

    id: str
    is_gone: bool


def lesson_text(proposal: LessonProposal) -> str:
    """The sentence as an agent is told it: the condition first, unless the sentence says it."""
    text = proposal.text.strip()
    text = text if text[-1:] in ".!?…。！？" else f"{text}."
    when = proposal.when.strip().rstrip(".:,")
    if not when or folded(when) in folded(text):
        return text
    head = when if folded(when).split(" ")[0] in _CONDITIONAL else f"when {when}"
    return f"{head[:1].upper()}{head[1:]}: {text}"


_CONDITIONAL = (
    "when",
    "if",
    "before",
    "after",
    "while",
    "once",
    "until",
    "unless",
    "where",
    "whenever",
    "for",
    "on",
    "in",
)


def lesson_id(lesson: CheckedLesson, place: BankIds) -> str:
    """One for each bank, kind of work, direction and sentence."""
    said = folded(lesson_text(lesson.proposal)).rstrip(".")
    return place.id_of("tac", [lesson.intent, "said", lesson.proposal.advice, said, *lesson.predicates])


def find_like(
    lesson: CheckedLesson, records: Iterable[tuple[str, str, JsonObject]], tools: Collection[str], likeness_min: float
) -> Like | None:
    """The record of this kind of work that says the same; a live one before one that is gone.

    `records` are ids, statuses and records.
    """
    found = [
        Like(id_, status not in _LIVE)
        for id_, status, record in records
        if record.get("intent_key") == lesson.keys.get("intent_key")
        and _predicates(record) == lesson.predicates
        and _says_the_same(lesson, record, tools, likeness_min)
    ]
    return min(found, key=lambda like: like.is_gone, default=None)


def _predicates(record: Mapping[str, Any]) -> tuple[str, ...]:
    held = record.get("predicates")
    return tuple(map(str, held)) if isinstance(held, list | tuple) else ()


def _says_the_same(
    lesson: CheckedLesson, record: Mapping[str, Any], tools: Collection[str], likeness_min: float
) -> bool:
    learnt = record.get("learnt")
    if isinstance(learnt, Mapping) and isinstance(learnt.get("feature"), str):
        return learnt["feature"] == _feature(lesson.proposal, tools) and learnt.get("advice") == lesson.proposal.advice
    said = record.get("lesson")
    if not isinstance(said, Mapping) or said.get("advice", "do") != lesson.proposal.advice:
        return False
    mine, theirs = lesson_text(lesson.proposal), str(record.get("summary") or "")
    if {folded(name) for name in names_in(mine)} != {folded(name) for name in names_in(theirs)}:
        return False
    return _overlap(_stems(mine), _stems(theirs)) >= likeness_min


def _feature(proposal: LessonProposal, tools: Collection[str]) -> str | None:
    """The feature of runs that a lesson is about, where it is one call and nothing more."""
    called = called_in(proposal.text, tools)
    more = [name for name in names_in(proposal.text) if name not in called]
    return f"tool:{called[0]}" if len(called) == 1 and called[0] in tools and not more else None


def _stems(text: str) -> set[str]:
    silent = stop_words("english") - {"not", "no", "never", "before", "after", "without", "only"}
    return {stem(word) for word in words_in(folded(text).replace("_", " ")) if word not in silent}


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def lesson_tactic(lesson: CheckedLesson, id_: str, *, now: str, ttl: str) -> JsonObject:
    """The tactic that a lesson is kept as. It is on nobody's word active: it has been tried by no run."""
    said = lesson_text(lesson.proposal)
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "tactic_id": id_,
        "created_at": now,
        **lesson.keys,
        "status": "active",
        "ttl": ttl,
        "summary": said,
        "injection": {"mode": "inline", "content": said},
        "metrics": {"use_n": 0, "fail_n": 0},
        "lesson": _said_of(lesson),
    }
    if lesson.trace_ids:
        plain["evidence"] = {"trace_ids": list(lesson.trace_ids[:_TRACES_MAX])}
    if lesson.predicates:
        plain["predicates"] = list(lesson.predicates)
    return ConditionalTactic.from_wire(plain).to_wire()


def _said_of(lesson: CheckedLesson) -> JsonObject:
    advice: Advice = lesson.proposal.advice
    said: dict[str, Any] = {
        "origin": lesson.origin,
        "event_ids": list(lesson.proposal.event_ids[:_EVENTS_MAX]),
        "when": lesson.proposal.when,
        "advice": advice,
    }
    return said if lesson.by is None else said | {"by": lesson.by}


def with_evidence(record: JsonObject, lesson: CheckedLesson) -> JsonObject:
    """A record that says the same, resting on what this lesson rests on as well; as it was where nothing is new."""
    evidence = record.get("evidence")
    known: dict[str, Any] = dict(evidence) if isinstance(evidence, Mapping) else {}
    traces = _joined(known.get("trace_ids"), lesson.trace_ids, _TRACES_MAX)
    said = record.get("lesson")
    told: dict[str, Any] = dict(said) if isinstance(said, Mapping) else {"origin": "contrast", "when": ""}
    events = _joined(told.get("event_ids"), lesson.proposal.event_ids, _EVENTS_MAX)
    if traces == list(known.get("trace_ids") or ()) and events == list(told.get("event_ids") or ()):
        return record
    more = {"evidence": known | {"trace_ids": traces}} if traces else {}
    return record | more | {"lesson": told | {"event_ids": events}}


def _joined(held: Any, more: Sequence[str], most: int) -> list[str]:
    """What is there and what is new, the first so many."""
    return list(dict.fromkeys([*(held if isinstance(held, list | tuple) else ()), *more]))[:most]
